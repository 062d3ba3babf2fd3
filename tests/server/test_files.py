"""Opening files below a folder: nothing outside of it, whatever takes a file's place meanwhile."""

from __future__ import annotations

import errno
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from modelwire.server import files
from modelwire.server.files import MAX_DEPTH, NotServed, open_below, open_regular, read_all, walk

SECRET = b"the secret"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "folder" / "sub" / "deep").mkdir(parents=True)
    (tmp_path / "folder" / "a.txt").write_bytes(b"a")
    (tmp_path / "folder" / "sub" / "b.txt").write_bytes(b"b")
    (tmp_path / "folder" / "sub" / "deep" / "c.txt").write_bytes(b"c")
    (tmp_path / "folder" / ".hidden").write_bytes(SECRET)
    (tmp_path / "folder" / ".git").mkdir()
    (tmp_path / "folder" / ".git" / "config").write_bytes(SECRET)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "b.txt").write_bytes(SECRET)
    (tmp_path / "secret.txt").write_bytes(SECRET)
    return tmp_path / "folder"


def read(folder: Path, *names: str, hidden: bool = False) -> bytes:
    descriptor = open_below(folder, names, hidden=hidden)
    try:
        return read_all(descriptor, None)
    finally:
        os.close(descriptor)


def listed(folder: Path, *, hidden: bool = False, depth: int = MAX_DEPTH) -> list[str]:
    return ["/".join(names) for names, _ in walk(folder, hidden=hidden, depth=depth)]


@pytest.fixture(autouse=True)
def no_descriptor_is_left_open() -> Iterator[None]:
    before = len(os.listdir("/proc/self/fd"))
    yield
    assert len(os.listdir("/proc/self/fd")) == before


# --------------------------------------------------------------------------------------------------- what is served


def test_files_are_opened_by_their_names(folder: Path) -> None:
    assert read(folder, "a.txt") == b"a"
    assert read(folder, "sub", "deep", "c.txt") == b"c"
    assert listed(folder) == ["a.txt", "sub/b.txt", "sub/deep/c.txt"]


def test_depth_and_hidden_names_are_a_choice(folder: Path) -> None:
    assert listed(folder, depth=1) == ["a.txt"]
    assert listed(folder, depth=2) == ["a.txt", "sub/b.txt"]
    assert listed(folder, hidden=True) == [".hidden", "a.txt", ".git/config", "sub/b.txt", "sub/deep/c.txt"]
    assert read(folder, ".git", "config", hidden=True) == SECRET


@pytest.mark.parametrize(
    "names",
    [
        (), ("nothing",), ("sub",), ("sub", "deep"), ("a.txt", "x"), ("sub", "nothing", "x"), (".hidden",),
        (".git", "config"), ("..", "secret.txt"), ("sub", "..", "..", "secret.txt"), ("x" * 300,),
        ("sub",) * (MAX_DEPTH + 1),
    ],
    ids=lambda names: "/".join(names)[:40],
)  # fmt: skip
def test_everything_else_is_not_served(folder: Path, names: tuple[str, ...]) -> None:
    with pytest.raises(NotServed):
        read(folder, *names)


def test_links_to_files_inside_are_served_and_all_others_are_not(folder: Path) -> None:
    for link, target in {
        "inside": "sub/b.txt",
        "absolute": str(folder / "a.txt"),
        "again": "inside",
        "sub/up": "../a.txt",
        "out": "../secret.txt",
        "out absolute": str(folder.parent / "secret.txt"),
        "out by folder": "../outside/b.txt",
        "to hidden": ".hidden",
        "to hidden folder": ".git/config",
        "folder": "sub",
        "root": ".",
        "loop": "loop",
        "dangling": "nothing",
        "passwd": "/etc/passwd",
        "memory": "/proc/self/environ",
        "null": "/dev/null",
    }.items():
        (folder / link).symlink_to(target)
    served = {"inside": b"b", "absolute": b"a", "again": b"b", "sub/up": b"a"}
    for link in os.listdir(folder):
        if (folder / link).is_symlink() and link not in served:
            with pytest.raises(NotServed):
                read(folder, link)
    for name in ("b.txt", "deep/c.txt"):
        with pytest.raises(NotServed):
            read(folder, "folder", *name.split("/"))
    for link, content in served.items():
        assert read(folder, *link.split("/")) == content
    assert set(listed(folder)) == {"a.txt", "sub/b.txt", "sub/deep/c.txt", *served}


def test_the_folder_itself_may_be_a_link_that_comes_to_lead_elsewhere(folder: Path, tmp_path: Path) -> None:
    current = tmp_path / "current"
    current.symlink_to("folder/sub")
    assert read(current, "b.txt") == b"b"
    (current / "link").symlink_to("deep/c.txt")
    assert read(current, "link") == b"c"
    current.unlink()
    current.symlink_to("folder")
    assert read(current, "a.txt") == b"a"


def test_fifos_sockets_and_devices_are_neither_listed_nor_waited_for(folder: Path, monkeypatch: Any) -> None:
    os.mkfifo(folder / "fifo")
    monkeypatch.chdir(folder)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        (folder / "to fifo").symlink_to("fifo")
        for name in ("fifo", "socket", "to fifo"):
            with pytest.raises(NotServed):
                read(folder, name)
        assert listed(folder) == ["a.txt", "sub/b.txt", "sub/deep/c.txt"]
    for path in (folder / "fifo", folder / "socket", Path("/dev/null"), folder):
        with pytest.raises(NotServed):
            open_regular(path)


def test_a_name_that_is_no_utf_8_is_a_name(folder: Path) -> None:
    name = os.fsdecode(b"caf\xe9.txt")
    (folder / name).write_bytes(b"latin")
    assert name in listed(folder)
    assert read(folder, name) == b"latin"


def test_a_tree_that_is_too_deep_is_listed_as_far_as_it_can_be_read(folder: Path) -> None:
    deep = folder / "sub"
    for _ in range(MAX_DEPTH + 5):
        deep = deep / "d"
        deep.mkdir()
        (deep / "f").write_bytes(b"")
    depths = [path.count("/") + 1 for path in listed(folder)]
    assert max(depths) == MAX_DEPTH
    assert read(folder, "sub", *["d"] * (MAX_DEPTH - 2), "f") == b""


def test_reading_stops_one_byte_after_the_limit(folder: Path) -> None:
    (folder / "big").write_bytes(b"x" * 1000)
    descriptor = open_below(folder, ["big"], hidden=False)
    assert read_all(descriptor, 10) == b"x" * 11
    os.close(descriptor)


# --------------------------------------------------------------------------------------------------- races


class Swap:
    """Does something once, in the very moment after a function of `os` was called with a name."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, function: str, name: str, swap: Callable[[], None]) -> None:
        self.done = False
        original: Any = getattr(os, function)

        def patched(path: Any, *args: Any, **options: Any) -> Any:
            result = original(path, *args, **options)
            if path == name and not self.done:
                self.done = True
                swap()
            return result

        monkeypatch.setattr(files.os, function, patched)


@pytest.mark.parametrize("target", ["../../secret.txt", "/etc/passwd", "../a.txt"])
def test_a_link_that_takes_a_files_place_after_the_check_is_not_followed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    def swap() -> None:
        (folder / "sub" / "b.txt").unlink()
        (folder / "sub" / "b.txt").symlink_to(target)

    swapped = Swap(monkeypatch, "stat", "b.txt", swap)
    with pytest.raises(NotServed):
        read(folder, "sub", "b.txt")
    assert swapped.done


def test_a_fifo_that_takes_a_files_place_after_the_check_is_not_waited_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def swap() -> None:
        (folder / "a.txt").unlink()
        os.mkfifo(folder / "a.txt")

    swapped = Swap(monkeypatch, "stat", "a.txt", swap)
    with pytest.raises(NotServed):
        read(folder, "a.txt")
    assert swapped.done


def test_a_link_that_takes_a_folders_place_changes_nothing_for_who_has_it_open(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def swap() -> None:
        (folder / "sub").rename(folder / "moved")
        (folder / "sub").symlink_to("../outside")

    swapped = Swap(monkeypatch, "open", "sub", swap)
    assert read(folder, "sub", "b.txt") == b"b"
    assert swapped.done
    with pytest.raises(NotServed):
        read(folder, "sub", "b.txt")


def test_a_link_whose_target_becomes_a_link_is_not_followed_further(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "link").symlink_to("sub/b.txt")

    def swap() -> None:
        (folder / "sub").rename(folder / "moved")
        (folder / "sub").symlink_to("../outside")

    real = os.path.realpath

    def realpath(path: Any, **options: Any) -> str:
        found = real(path, **options)
        if str(path).endswith("link"):
            swap()
        return found

    monkeypatch.setattr(files.os.path, "realpath", realpath)
    with pytest.raises(NotServed):
        read(folder, "link")


def test_a_folder_that_becomes_a_link_is_not_listed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []
    for names, _ in walk(folder, hidden=False, depth=MAX_DEPTH):
        found.append("/".join(names))
        if names == ("a.txt",):
            (folder / "sub").rename(folder / "moved")
            (folder / "sub").symlink_to("../outside")
    assert found == ["a.txt"]


def test_no_read_ever_sees_the_outside_while_links_come_and_go(folder: Path) -> None:
    stop = threading.Event()

    def flip() -> None:
        link, other = folder / "sub", folder / "moved"
        while not stop.is_set():
            link.rename(other)
            link.symlink_to("../outside")
            link.unlink()
            other.rename(link)

    thread = threading.Thread(target=flip)
    thread.start()
    seen = set[bytes]()
    try:
        for _ in range(2000):
            try:
                seen.add(read(folder, "sub", "b.txt"))
            except NotServed:
                seen.add(b"nothing")
    finally:
        stop.set()
        thread.join()
    assert SECRET not in seen


# --------------------------------------------------------------------------------------------------- failures


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.ENOENT, errno.ELOOP, errno.ENAMETOOLONG])
def test_what_may_not_be_read_is_not_served(folder: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(path: Any, *args: Any, **options: Any) -> int:
        raise OSError(number, "no")

    monkeypatch.setattr(files.os, "open", refuse)
    with pytest.raises(NotServed):
        read(folder, "a.txt")
    with pytest.raises(NotServed):
        open_regular(folder / "a.txt")


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO, errno.ENOMEM])
def test_a_fault_of_the_system_is_not_taken_for_a_missing_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fail(path: Any, *args: Any, **options: Any) -> int:
        raise OSError(number, "broken")

    monkeypatch.setattr(files.os, "open", fail)
    with pytest.raises(OSError, match="broken"):
        read(folder, "a.txt")


def test_a_folder_that_cannot_be_read_costs_only_what_is_in_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = os.open

    def refuse(path: Any, *args: Any, **options: Any) -> int:
        if path == "deep":
            raise PermissionError(errno.EACCES, "no")
        return original(path, *args, **options)

    monkeypatch.setattr(files.os, "open", refuse)
    assert listed(folder) == ["a.txt", "sub/b.txt"]


def test_a_missing_root_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        listed(tmp_path / "nothing")
