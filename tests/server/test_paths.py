"""`safe_join`: what comes out is below the folder, whatever the parts are."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelwire import NotFound, Server, safe_join
from tests.wire import MODERN, session_talk


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = tmp_path / "base"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_text("a")
    (folder / "sub" / "b c.txt").write_text("b")
    (tmp_path / "secret.txt").write_text("the secret")
    (tmp_path / "base2").mkdir()
    (tmp_path / "base2" / "secret.txt").write_text("secret")
    return folder


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (("a.txt",), "a.txt"),
        (("sub", "b c.txt"), "sub/b c.txt"),
        (("sub/b c.txt",), "sub/b c.txt"),
        ((PurePosixPath("sub"), "b c.txt"), "sub/b c.txt"),
        (("sub",), "sub"),
        (("new/file.txt",), "new/file.txt"),
        (("...",), None),
        ((".hidden",), ".hidden"),
        (("a..b",), "a..b"),
        (("..a",), "..a"),
        (("日本 é😀",), "日本 é😀"),
        (("%2e%2e",), "%2e%2e"),
        (("~",), "~"),
        (("$HOME",), "$HOME"),
        (("-rf",), "-rf"),
        (("console.txt",), "console.txt"),
        (("com",), "com"),
        (("x" * 255,), "x" * 255),
    ],
    ids=str,
)
def test_relative_parts_are_joined_below_the_folder(base: Path, parts: Any, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(NotFound):
            safe_join(base, *parts)
        return
    assert safe_join(base, *parts) == base / expected
    assert safe_join(str(base), *parts) == base / expected


REFUSED = [
    "..", "../secret.txt", "sub/../../secret.txt", "sub/..", "sub/../a.txt", "a.txt/..", "./a.txt", ".", "sub/.",
    "/", "//", "/etc/passwd", "//etc/passwd", "///a.txt", "sub//b c.txt", "sub/", "",
    "..\\secret.txt", "sub\\b c.txt", "\\", "\\\\server\\share", "\\..\\..\\x", "..\\/x", "..%5c\\",
    "C:", "C:\\x", "c:/x", "C:x", "a.txt:stream", "a.txt::$DATA", "file:x", ":",
    "a\0.txt", "a.txt\0", "\0", "../\0", "a\n", "\x1b[31m", "\x7f", "a\r\nb",
    "NUL", "nul", "NUL.txt", "nul.tar.gz", "sub/CON", "PRN.", "aux ", "AUX .txt", "COM1", "com9.log", "LPT¹", "lpt0",
    "CONIN$", "conout$.txt",
    "a.", "a. ", "a ", ". ", ".. ", "...", ".. .", "sub /a", "sub./a",
    "\ud800", "\udc2e\udc2e/x", "a\udcff",
    "x" * 256, "é" * 128, "/".join(["x" * 200] * 21),
]  # fmt: skip


@pytest.mark.parametrize("part", REFUSED, ids=ascii)
@pytest.mark.parametrize("how", ["alone", "first", "last"])
def test_what_could_mean_something_else_on_any_platform_is_not_found(base: Path, part: str, how: str) -> None:
    parts = {"alone": (part,), "first": (part, "a.txt"), "last": ("sub", part)}[how]
    with pytest.raises(NotFound) as refused:
        safe_join(base, *parts)
    assert str(base.parent) not in str(refused.value)
    assert len(str(refused.value)) < 600


def test_no_parts_at_all_are_no_path(base: Path) -> None:
    with pytest.raises(NotFound):
        safe_join(base)


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("up", ".."),
        ("secret", "../secret.txt"),
        ("absolute", "/etc"),
        ("sub/up", "../.."),
        ("sibling", "../base2"),
        ("missing", "../not there"),
        ("loop", "loop"),
        ("chain", "up2"),
    ],
)
def test_links_that_lead_out_are_not_found_and_not_told_apart(base: Path, link: str, target: str) -> None:
    (base / link).symlink_to(target)
    (base / "up2").symlink_to("..")
    for name in (link, f"{link}/secret.txt", f"{link}/passwd"):
        with pytest.raises(NotFound) as refused:
            safe_join(base, name)
        assert str(refused.value) == f"there is no {name!r} (-32602)"


def test_links_that_stay_inside_are_followed_to_the_real_path(base: Path) -> None:
    (base / "link").symlink_to("sub")
    (base / "sub" / "back").symlink_to("../a.txt")
    (base / "out and in").symlink_to("../base/a.txt")
    assert safe_join(base, "link", "b c.txt") == base / "sub" / "b c.txt"
    assert safe_join(base, "sub/back") == base / "a.txt"
    assert safe_join(base, "out and in") == base / "a.txt"


def test_the_folder_itself_may_be_reached_by_a_link_or_be_relative(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (base.parent / "alias").symlink_to(base)
    assert safe_join(base.parent / "alias", "a.txt") == base / "a.txt"
    monkeypatch.chdir(base.parent)
    assert safe_join("base", "a.txt") == base / "a.txt"
    assert safe_join("base/../base", "a.txt") == base / "a.txt"


def test_a_folder_whose_name_another_one_begins_with_is_another_folder(base: Path) -> None:
    (base / "link").symlink_to(base.parent / "base2" / "secret.txt")
    with pytest.raises(NotFound):
        safe_join(base, "link")


def test_the_root_may_be_the_folder() -> None:
    assert safe_join("/", "usr") == Path(os.path.realpath("/usr"))


@given(st.lists(st.text(alphabet=st.sampled_from("./\\:\0ab%2eE~ \n"), max_size=8), max_size=4))
def test_whatever_the_parts_are_the_path_is_below(parts: list[str]) -> None:
    try:
        found = safe_join("/usr", *parts)
    except NotFound:
        return
    assert str(found).startswith(os.path.realpath("/usr") + "/")


@pytest.mark.parametrize(
    "uri",
    [
        "docs://../secret.txt", "docs://%2e%2e/secret.txt", "docs://..%2Fsecret.txt", "docs://%2E%2E%2Fsecret.txt",
        "docs://sub/..%2f..%2fsecret.txt", "docs://%252e%252e/secret.txt", "docs://..%5Csecret.txt",
        "docs://%c0%ae%c0%ae/secret.txt", "docs:///etc/passwd", "docs://%2Fetc%2Fpasswd", "docs://a.txt%00",
        "docs://up/secret.txt", "docs://NUL", "docs://C:%5Csecret.txt",
    ],
)  # fmt: skip
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_a_resource_that_uses_it_is_not_found_and_reveals_no_path(revision: str, uri: str, base: Path) -> None:
    server = Server("s")
    (base / "up").symlink_to("..")

    @server.resource("docs://{+path}")
    def doc(path: str) -> str:
        found = safe_join(base, path)
        return found.read_text() if found.exists() else "nothing there"

    async with session_talk(server, revision) as talk:
        answer = await talk.request("resources/read", {"uri": uri})
        assert "the secret" not in str(answer)
        assert str(base.parent) not in str(answer)
        if "error" in answer:
            assert answer["error"]["code"] == (-32602 if revision == MODERN else -32002)
        else:  # a name like any other, below the folder
            assert answer["result"]["contents"][0]["text"] == "nothing there"
        read = await talk.result("resources/read", {"uri": "docs://sub/b%20c.txt"})
        assert read["contents"][0]["text"] == "b"
