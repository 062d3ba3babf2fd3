"""Files and directories over the wire: what is listed, what is read, and what never is."""

from __future__ import annotations

import base64
import os
import socket
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from modelwire import Client, ConfigError, Server, types
from modelwire.server import files
from tests.wire import MODERN, Talk, every_revision, session_talk

NEWEST_OF_EACH_ERA = pytest.mark.parametrize("revision", ["2025-11-25", MODERN])


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "sub" / "deep").mkdir(parents=True)
    (folder / "a.md").write_text("# A\n")
    (folder / "sub" / "b.json").write_text('{"b":1}')
    (folder / "sub" / "deep" / "c.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (folder / ".hidden").write_text("the secret")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("the secret")
    (tmp_path / "secret.txt").write_text("the secret")
    return folder


def serving(folder: Path, uri: str = "docs://", **options: Any) -> Server:
    server = Server("s", **{key: options.pop(key) for key in ("page_size", "max_result") if key in options})
    server.add_directory(uri, folder, **options)
    return server


async def uris(talk: Talk) -> list[str]:
    return [item["uri"] for item in (await talk.result("resources/list"))["resources"]]


async def content(talk: Talk, uri: str) -> Any:
    (found,) = (await talk.result("resources/read", {"uri": uri}))["contents"]
    assert found["uri"] == uri
    return found


async def missing(talk: Talk, uri: str) -> None:
    error = await talk.error("resources/read", {"uri": uri})
    assert error["code"] == (-32602 if talk.revision == MODERN else -32002)
    assert error["data"] == {"uri": uri}


# --------------------------------------------------------------------------------------------------- the list


@every_revision
async def test_every_file_below_a_directory_is_listed_with_what_is_known_of_it(revision: str, docs: Path) -> None:
    os.utime(docs / "a.md", (0, 1_700_000_000.9))
    async with session_talk(serving(docs), revision) as talk:
        listed = (await talk.result("resources/list"))["resources"]
        assert [(item["uri"], item["name"], item["mimeType"]) for item in listed] == [
            ("docs://a.md", "a.md", "text/markdown"),
            ("docs://sub/b.json", "b.json", "application/json"),
            ("docs://sub/deep/c.png", "c.png", "image/png"),
        ]
        if revision >= "2025-06-18":
            assert [item["size"] for item in listed] == [4, 7, 8]
            assert listed[0]["annotations"] == {"lastModified": "2023-11-14T22:13:20Z"}
        assert (await talk.result("resources/templates/list"))["resourceTemplates"] == []


async def test_what_is_said_of_all_files_stands_beside_what_is_known(docs: Path) -> None:
    about = types.Annotations(audience=["user"], priority=0.5, last_modified="1999-01-01T00:00:00Z")
    server = serving(docs, pattern="*.md", mime_type="text/plain", annotations=about, meta={"com.example/k": 1})
    async with session_talk(server, MODERN) as talk:
        (item,) = (await talk.result("resources/list"))["resources"]
        assert item["annotations"]["audience"] == ["user"]
        assert item["annotations"]["lastModified"] > "2000"
        assert (item["mimeType"], item["_meta"]) == ("text/plain", {"com.example/k": 1})
        assert (await content(talk, "docs://a.md"))["mimeType"] == "text/plain"


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("docs://", "docs://sub/b.json"),
        ("docs:", "docs:sub/b.json"),
        ("docs://manual", "docs://manual/sub/b.json"),
        ("docs://manual/", "docs://manual/sub/b.json"),
        ("file:///srv/docs", "file:///srv/docs/sub/b.json"),
        ("docs://caf%C3%A9/", "docs://caf%C3%A9/sub/b.json"),
    ],
)
async def test_uris_begin_with_the_prefix(uri: str, expected: str, docs: Path) -> None:
    async with session_talk(serving(docs, uri), "2025-11-25") as talk:
        assert expected in await uris(talk)
        assert (await content(talk, expected))["text"] == '{"b":1}'


@pytest.mark.parametrize(
    "uri", ["", "docs", "/docs", "docs://{x}", "docs://a b/", "docs://é", "docs://%zz", "a?b:", "x:#"]
)
def test_a_prefix_that_no_uri_begins_with_is_refused(uri: str, docs: Path) -> None:
    with pytest.raises(ConfigError, match="no beginning of a URI"):
        serving(docs, uri)


@pytest.mark.parametrize(("pattern", "expected"), [
    ("**/*.md", ["docs://a.md"]),
    ("sub/*", ["docs://sub/b.json"]),
    ("**/*.*", ["docs://a.md", "docs://sub/b.json", "docs://sub/deep/c.png"]),
    ("*.pdf", []),
])  # fmt: skip
async def test_only_files_that_fit_the_pattern_are_listed_or_read(
    pattern: str, expected: list[str], docs: Path
) -> None:
    async with session_talk(serving(docs, pattern=pattern), "2025-11-25") as talk:
        assert await uris(talk) == expected
        for uri in ["docs://a.md", "docs://sub/b.json", "docs://sub/deep/c.png"]:
            if uri in expected:
                await content(talk, uri)
            else:
                await missing(talk, uri)


async def test_a_directory_that_is_empty_is_a_directory(tmp_path: Path) -> None:
    server = serving(tmp_path)
    async with session_talk(server, "2025-11-25", opened=False) as talk:
        assert "resources" in (await talk.open())["capabilities"]
        assert await uris(talk) == []
        (tmp_path / "new").write_text("n")
        assert await uris(talk) == ["docs://new"]


async def test_more_files_than_may_be_listed_are_told_to_the_log_once_and_can_be_read(
    docs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = serving(docs, max_files=2)
    async with session_talk(server, "2025-11-25") as talk:
        for _ in range(3):
            assert await uris(talk) == ["docs://a.md", "docs://sub/b.json"]
        assert "blob" in await content(talk, "docs://sub/deep/c.png")
    assert caplog.text.count("has more files than the 2 that are listed") == 1
    assert "max_files" in caplog.text


async def test_as_many_files_as_may_be_listed_are_no_fault(docs: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with session_talk(serving(docs, max_files=3), "2025-11-25") as talk:
        assert len(await uris(talk)) == 3
    assert caplog.text == ""


async def test_files_that_do_not_fit_are_not_looked_at_without_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(25):
        (tmp_path / f"{number:02}.txt").write_text("")
    (tmp_path / "z.md").write_text("")
    async with session_talk(serving(tmp_path, pattern="*.md", max_files=1), "2025-11-25") as talk:
        assert await uris(talk) == []
        assert (await content(talk, "docs://z.md"))["text"] == ""
    assert "has more files than the 0 that are listed" in caplog.text


# --------------------------------------------------------------------------------------------------- names

NAMES = [
    "my file.md", "日本 é😀.txt", "100%.txt", "%41", "%2e%2e", "a?b#c", "a&b=c;d,e", "a:b@c", "[x]{y}", "a+b", "'q\"",
    "back\\slash", "new\nline", "tab\t", "..", "...", "..a", "~", "-rf", " ", "a~b_c-d.e", "CON", "nul.txt", "*", "|<>",
]  # fmt: skip


@every_revision
async def test_any_name_that_the_file_system_has_becomes_a_uri_and_is_read_by_it(revision: str, tmp_path: Path) -> None:
    names = [name for name in NAMES if name != ".."] + [os.fsdecode(b"caf\xe9"), os.fsdecode(b"\xc0\xae\xc0\xae")]
    for name in names:
        (tmp_path / name).write_bytes(os.fsencode(name))
    served = sorted(name for name in names if not name.startswith("."))
    async with session_talk(serving(tmp_path), revision) as talk:
        listed = (await talk.result("resources/list"))["resources"]
        assert [item["uri"] for item in listed] == ["docs://" + quote(os.fsencode(name), safe="") for name in served]
        assert [item["name"] for item in listed] == [os.fsencode(name).decode(errors="replace") for name in served]
        for item, name in zip(listed, served):
            assert item["uri"].isascii()
            found = await content(talk, item["uri"])
            data = found["text"].encode() if "text" in found else base64.b64decode(found["blob"])
            assert data == os.fsencode(name)


@NEWEST_OF_EACH_ERA
async def test_a_name_may_be_spelled_raw_or_in_small_letters(revision: str, tmp_path: Path) -> None:
    (tmp_path / "é ü").mkdir()
    (tmp_path / "é ü" / "a~b.txt").write_text("found")
    async with session_talk(serving(tmp_path), revision) as talk:
        for spelling in ["é ü/a~b.txt", "%c3%a9%20%c3%bc/a%7eb.txt", "%C3%A9 ü/%61~b.txt"]:
            assert (await content(talk, "docs://" + spelling))["text"] == "found"
        for other in ["e%CC%81%20%C3%BC/a~b.txt", "%E9%20%FC/a~b.txt", "é+ü/a~b.txt", "%25C3%25A9%20ü/a~b.txt"]:
            await missing(talk, "docs://" + other)


# --------------------------------------------------------------------------------------------------- what is read


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a.md", "# é\r\n".encode(), {"text": "# é\r\n", "mimeType": "text/markdown"}),
        ("a.txt", b"", {"text": "", "mimeType": "text/plain"}),
        ("a.txt", b"\xef\xbb\xbfbom", {"text": "\ufeffbom", "mimeType": "text/plain"}),
        ("a.txt", b"a\0b", {"text": "a\0b", "mimeType": "text/plain"}),
        ("a.txt", b"caf\xe9", {"blob": "Y2Fm6Q==", "mimeType": "text/plain"}),
        ("a.txt", b"\xed\xa0\x80", {"blob": "7aCA", "mimeType": "text/plain"}),
        ("a.json", b'{"a":1}', {"text": '{"a":1}', "mimeType": "application/json"}),
        ("a.svg", b"<svg/>", {"text": "<svg/>", "mimeType": "image/svg+xml"}),
        ("a.png", b"text", {"blob": "dGV4dA==", "mimeType": "image/png"}),
        ("README", b"read", {"text": "read", "mimeType": "text/plain"}),
        ("unknown", b"text", {"text": "text", "mimeType": "text/plain"}),
        ("unknown", b"a\0b", {"blob": "YQBi", "mimeType": "application/octet-stream"}),
        ("unknown", b"\xff", {"blob": "/w==", "mimeType": "application/octet-stream"}),
        ("unknown", b"\x89PNG\r\n\x1a\n", {"blob": "iVBORw0KGgo=", "mimeType": "image/png"}),
    ],
    ids=repr,
)
@NEWEST_OF_EACH_ERA
async def test_text_in_utf_8_is_text_and_everything_else_a_blob(
    revision: str, name: str, data: bytes, expected: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(data)
    server = serving(tmp_path)
    server.add_file("x:file", tmp_path / name)
    async with session_talk(server, revision) as talk:
        assert await content(talk, f"docs://{name}") == {"uri": f"docs://{name}", **expected}
        assert await content(talk, "x:file") == {"uri": "x:file", **expected}


@every_revision
async def test_a_file_is_read_anew_each_time_and_as_soon_as_it_exists(revision: str, docs: Path) -> None:
    async with session_talk(serving(docs), revision) as talk:
        await uris(talk)
        await missing(talk, "docs://new.txt")
        (docs / "new.txt").write_text("one")
        assert (await content(talk, "docs://new.txt"))["text"] == "one"
        (docs / "new.txt").write_text("two")
        assert (await content(talk, "docs://new.txt"))["text"] == "two"
        (docs / "new.txt").unlink()
        await missing(talk, "docs://new.txt")


@pytest.mark.parametrize("kind", ["directory", "file"])
@every_revision
async def test_a_file_above_max_result_is_not_read_at_all(
    revision: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "big.txt").open("wb") as file:
        file.truncate(5_000_000_000)
    server = serving(tmp_path, max_result=10_000)
    server.add_file("x:big", tmp_path / "big.txt")
    monkeypatch.setattr("modelwire.server.directories.read_all", None)
    async with session_talk(server, revision) as talk:
        error = await talk.error("resources/read", {"uri": "x:big" if kind == "file" else "docs://big.txt"})
        assert "5000000000 bytes" in error["message"]
        assert error["data"] == {"size": 5_000_000_000, "limit": 10_000}


@NEWEST_OF_EACH_ERA
async def test_a_file_that_hides_its_size_is_read_up_to_the_limit(
    revision: str, tmp_path: Path, monkeypatch: Any
) -> None:
    (tmp_path / "grows.bin").write_bytes(b"x" * 9_000)
    (tmp_path / "wide.bin").write_bytes(b"x" * 9_990)
    server = serving(tmp_path, max_result=10_000)
    async with session_talk(server, revision) as talk:
        # A blob is a third longer on the wire than on the disk.
        assert (await talk.error("resources/read", {"uri": "docs://wide.bin"}))["data"]["limit"] == 10_000
        monkeypatch.setattr("modelwire.server.directories.read_all", lambda descriptor, limit: b"x" * (limit + 1))
        error = await talk.error("resources/read", {"uri": "docs://grows.bin"})
        assert error["data"] == {"size": 10_001, "limit": 10_000}


# --------------------------------------------------------------------------------------------------- what never is

TRAVERSALS = [
    "../secret.txt", "..", "../", "../docs/a.md", "./a.md", ".", "sub/../a.md", "sub/../../secret.txt", "sub/..",
    "%2e%2e/secret.txt", "%2E%2E/secret.txt", ".%2e/secret.txt", "%2e./secret.txt", "sub/%2e%2e/a.md",
    "..%2fsecret.txt", "..%2Fsecret.txt", "%2e%2e%2fsecret.txt", "sub%2fb.json", "sub%2Fb.json", "%2Fetc%2Fpasswd",
    "%252e%252e/secret.txt", "%252e%252e%252fsecret.txt", "..%252fsecret.txt", "%25252e%25252e/secret.txt",
    "..%5csecret.txt", "..\\secret.txt", "..%5C..%5Csecret.txt", "sub\\b.json", "sub%5Cb.json",
    "%c0%ae%c0%ae/secret.txt", "%c0%ae%c0%ae%c0%afsecret.txt", "..%c0%afsecret.txt", "%e0%80%ae%e0%80%ae/secret.txt",
    "%f0%80%80%ae./secret.txt", "..%ef%bc%8fsecret.txt", "%ef%bc%8e%ef%bc%8e/secret.txt", "．．/secret.txt",
    "/etc/passwd", "//etc/passwd", "/", "", "//", "/../secret.txt", "file:///etc/passwd", "C:/secret.txt",
    "a.md%00", "a.md%00.png", "%00", "a%00/../../secret.txt", "a.md\0", "a.md/", "a.md/.", "a.md/..", "sub/", "sub",
    "sub//b.json", "a.md?x=1", "a.md#x", "a.md;x", "%", "%2", "%zz", "a.md%", "%u002e%u002e/secret.txt",
    ".hidden", ".git/config", "%2ehidden", "%2Egit/config", "sub/.hidden", "A.md", "a.md ", " a.md", "a.md.",
    "sub/../.hidden", "~root/.bashrc", "$HOME/x", "proc/self/environ", "x" * 5000, "sub/" * 2000 + "a",
    "../" * 50 + "etc/passwd", "%2e%2e/" * 50 + "etc/passwd",
]  # fmt: skip


@pytest.mark.parametrize("path", TRAVERSALS, ids=lambda path: ascii(path)[:40])
@NEWEST_OF_EACH_ERA
async def test_nothing_but_its_own_files_is_read_however_it_is_asked_for(revision: str, path: str, docs: Path) -> None:
    async with session_talk(serving(docs), revision) as talk:
        await missing(talk, f"docs://{path}")
        answer = str(talk.ledger.frames[-1])
        assert "the secret" not in answer
        assert str(docs.parent) not in answer


@pytest.mark.parametrize("prefix", ["file:///srv/docs/", "docs:", "docs://a"])
@pytest.mark.parametrize(
    "path", ["../secret.txt", "%2e%2e/secret.txt", "..%2fsecret.txt", "/etc/passwd", "%2fetc%2fpasswd", "//etc/passwd"]
)
async def test_every_kind_of_prefix_keeps_its_files_together(prefix: str, path: str, docs: Path) -> None:
    async with session_talk(serving(docs, prefix), "2025-11-25") as talk:
        await missing(talk, prefix + path)
        await missing(talk, prefix.rstrip("/") + "/" + path)


@every_revision
async def test_links_out_hidden_files_and_what_is_no_file_are_neither_listed_nor_read(
    revision: str, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = ["docs://a.md", "docs://sub/b.json", "docs://sub/deep/c.png"]
    for link, target in {
        "out": "../secret.txt", "absolute": "/etc/passwd", "folder": "..", "hidden-by-link": ".hidden",
        "loop": "loop", "dangling": "nothing", "sub/environ": "/proc/self/environ", "zero": "/dev/zero",
    }.items():  # fmt: skip
        (docs / link).symlink_to(target)
    os.mkfifo(docs / "fifo")
    monkeypatch.chdir(docs)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        async with session_talk(serving(docs), revision) as talk:
            assert await uris(talk) == before
            for name in ["out", "absolute", "folder/secret.txt", "hidden-by-link", "loop", "dangling", "sub/environ"]:
                await missing(talk, f"docs://{name}")
            for name in ["fifo", "socket", "zero", ".hidden", ".git/config", "sub"]:
                await missing(talk, f"docs://{name}")


async def test_hidden_files_are_served_where_that_is_wanted(docs: Path) -> None:
    (docs / "to-hidden").symlink_to(".hidden")
    async with session_talk(serving(docs, hidden=True), "2025-11-25") as talk:
        assert {"docs://.hidden", "docs://.git/config", "docs://to-hidden"} < set(await uris(talk))
        assert (await content(talk, "docs://.git/config"))["text"] == "the secret"
        await missing(talk, "docs://.git/../../secret.txt")


async def test_a_file_that_may_not_be_read_is_not_found_and_the_log_says_why(
    docs: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    original = os.open

    def refuse(path: Any, *args: Any, **options: Any) -> int:
        if path == "a.md":
            raise PermissionError(13, "Permission denied")
        return original(path, *args, **options)

    async with session_talk(serving(docs), "2025-11-25") as talk:
        monkeypatch.setattr(files.os, "open", refuse)
        await missing(talk, "docs://a.md")
    assert "'docs://a.md' cannot be read: permission denied" in caplog.text


@NEWEST_OF_EACH_ERA
async def test_a_fault_of_the_system_is_an_internal_error_without_internals(
    revision: str, docs: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server = serving(docs)

    def fail(path: Any, *args: Any, **options: Any) -> int:
        raise OSError(5, "Input/output error", str(path))

    async with session_talk(server, revision) as talk:
        monkeypatch.setattr(files.os, "open", fail)
        error = await talk.error("resources/read", {"uri": "docs://a.md"})
        assert error["code"] == -32603
        assert str(docs) not in error["message"]
    assert "Input/output error" in caplog.text


# --------------------------------------------------------------------------------------------------- one file


@every_revision
async def test_a_file_is_a_resource_with_its_size_and_time(revision: str, docs: Path) -> None:
    server = Server("s")
    server.add_file("docs://readme", docs / "a.md", title="T", description="D", meta={"com.example/k": 1})
    server.add_file("any thing é", str(docs / "sub" / "b.json"), name="n", mime_type="text/x-own")
    async with session_talk(server, revision) as talk:
        first, second = (await talk.result("resources/list"))["resources"]
        assert (first["uri"], first["name"], first["mimeType"]) == ("docs://readme", "a.md", "text/markdown")
        assert (second["uri"], second["name"], second["mimeType"]) == ("any thing é", "n", "text/x-own")
        assert first["description"] == "D"
        assert (await content(talk, "any thing é"))["text"] == '{"b":1}'
        (docs / "a.md").write_text("longer than before")
        assert (await content(talk, "docs://readme"))["text"] == "longer than before"
        if revision >= "2025-06-18":
            assert (await talk.result("resources/list"))["resources"][0]["size"] == 18
            os.utime(docs / "a.md", (0, 0))
            first = (await talk.result("resources/list"))["resources"][0]
            assert first["annotations"]["lastModified"] == "1970-01-01T00:00:00Z"


@every_revision
async def test_a_file_that_is_gone_is_not_found_and_not_listed_until_it_is_back(revision: str, docs: Path) -> None:
    server = Server("s")
    server.add_file("x:a", docs / "a.md")
    server.add_file("x:b", docs / "sub" / "b.json")
    async with session_talk(server, revision) as talk:
        (docs / "a.md").unlink()
        await missing(talk, "x:a")
        assert await uris(talk) == ["x:b"]
        (docs / "a.md").write_text("back")
        assert sorted(await uris(talk)) == ["x:a", "x:b"]
        assert (await content(talk, "x:a"))["text"] == "back"


@pytest.mark.parametrize("name", ["nothing", "sub", ".", "fifo", "a.md/x"])
def test_a_file_that_is_not_there_is_refused_at_registration(name: str, docs: Path) -> None:
    os.mkfifo(docs / "fifo")
    with pytest.raises(ConfigError, match="there is no file"):
        Server("s").add_file("x:a", docs / name)


@pytest.mark.parametrize("name", ["nothing", "a.md", "a.md/x"])
def test_a_directory_that_is_not_there_is_refused_at_registration(name: str, docs: Path) -> None:
    with pytest.raises(ConfigError, match="no directory to read"):
        serving(docs / name)


@pytest.mark.parametrize("options", [{"pattern": "../*"}, {"pattern": ""}, {"max_files": 0}], ids=str)
def test_options_that_cannot_work_are_refused(options: dict[str, Any], docs: Path) -> None:
    with pytest.raises(ConfigError):
        serving(docs, **options)


async def test_relative_paths_are_those_of_the_moment_of_registration(
    docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(docs.parent)
    server = serving(Path("docs"))
    server.add_file("x:a", "docs/a.md")
    monkeypatch.chdir("/")
    async with session_talk(server, "2025-11-25") as talk:
        assert (await content(talk, "x:a"))["text"] == "# A\n"
        assert (await content(talk, "docs://a.md"))["text"] == "# A\n"


@every_revision
async def test_our_client_lists_and_reads_files(revision: str, docs: Path) -> None:
    async with Client(serving(docs), revision=revision) as client:
        for item in await client.list_resources():
            assert (await client.read_resource(item.uri)).contents[0].uri == item.uri


# --------------------------------------------------------------------------------------------------- switched off


@NEWEST_OF_EACH_ERA
async def test_a_file_that_is_switched_off_is_so_under_every_spelling_of_its_uri(revision: str, docs: Path) -> None:
    server = serving(docs)
    server.disable("docs://a.md")
    async with session_talk(server, revision) as talk:
        for uri in ("docs://a.md", "docs://%61.md", "docs://a%2Emd", "docs://a%2emd", "docs://%61%2e%6D%64"):
            await missing(talk, uri)
        server.enable("docs://a.md")
        assert (await content(talk, "docs://%61.md"))["text"] == "# A\n"


async def test_what_stands_in_a_files_place_and_is_hidden_hides_the_file_under_every_spelling(docs: Path) -> None:
    server = serving(docs)
    server.remove_resource("docs://")
    server.add_resource("docs://a.md", lambda: "never", name="a", enabled=lambda: False)
    server.add_directory("docs://", docs)
    async with session_talk(server, MODERN) as talk:
        await missing(talk, "docs://a.md")
        await missing(talk, "docs://%61.md")


async def test_a_file_that_was_switched_off_stays_so_when_it_goes_and_comes_back(docs: Path) -> None:
    server = serving(docs, pattern="*.md")
    server.disable("docs://a.md")
    async with session_talk(server, MODERN) as talk:
        (docs / "a.md").unlink()
        assert await uris(talk) == []
        (docs / "a.md").write_text("again")
        await missing(talk, "docs://a.md")
        await missing(talk, "docs://%61.md")
        assert await uris(talk) == []
        await missing(talk, "docs://a.md")
        server.enable("docs://a.md")
        assert await uris(talk) == ["docs://a.md"]
        (docs / "a.md").unlink()
        assert await uris(talk) == []
        (docs / "a.md").write_text("again")
        assert await uris(talk) == ["docs://a.md"]


async def test_switching_a_directory_switches_the_files_that_are_gone_as_well(docs: Path) -> None:
    server = serving(docs, pattern="*.md")
    server.disable("docs://a.md")
    async with session_talk(server, MODERN) as talk:
        (docs / "a.md").unlink()
        assert await uris(talk) == []
        server.enable("docs://")
        (docs / "a.md").write_text("again")
        assert await uris(talk) == ["docs://a.md"]


async def test_a_uri_that_passes_to_another_directory_is_there_for_whom_that_one_is(docs: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "b.json").write_text("a longer secret")
    server = serving(docs, pattern="sub/*.json")
    server.add_directory("docs://sub/", other, enabled=lambda: False)
    async with session_talk(server, MODERN) as talk:
        assert await uris(talk) == ["docs://sub/b.json"]
        (docs / "sub" / "b.json").unlink()
        assert await uris(talk) == []
        await missing(talk, "docs://sub/b.json")


async def test_a_single_file_that_became_a_folder_is_not_listed_and_not_suggested(docs: Path) -> None:
    server = Server("s")
    server.add_file("docs://one", docs / "a.md")
    async with session_talk(server, MODERN) as talk:
        (docs / "a.md").unlink()
        error = await talk.error("resources/read", {"uri": "docs://one"})
        assert error["message"] == "Resource not found: docs://one"
        (docs / "a.md").mkdir()
        assert await uris(talk) == []


@pytest.mark.parametrize(
    "more", [{"title": "\ud800"}, {"description": "\udcff"}, {"meta": {"com.example/k": float("nan")}}]
)
def test_what_no_list_could_say_is_refused_at_once(docs: Path, more: Any) -> None:
    server = Server("s")
    with pytest.raises(ConfigError, match="^file 'docs://a': "):
        server.add_file("docs://a", docs / "a.md", **more)
    if "meta" in more:
        with pytest.raises(ConfigError, match="^directory 'docs://': "):
            server.add_directory("docs://", docs, **more)


async def test_a_single_file_whose_name_is_no_utf_8_is_listed(docs: Path) -> None:
    name = os.fsdecode(b"caf\xe9.txt")
    (docs / name).write_text("coffee")
    server = Server("s")
    server.add_file("docs://cafe", docs / name)
    async with session_talk(server, MODERN) as talk:
        (item,) = (await talk.result("resources/list"))["resources"]
        assert item["name"] == "caf\ufffd.txt"
        assert (await content(talk, "docs://cafe"))["text"] == "coffee"
