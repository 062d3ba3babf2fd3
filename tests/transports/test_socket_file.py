"""The file of a Unix socket: who may use it, what it replaces, what it leaves alone, and when it goes."""

from __future__ import annotations

import errno
import os
import re
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from modelwire.errors import ConnectionFailed
from modelwire.transports import socket_file
from modelwire.transports.socket_address import MAX_PATH, UnixAddress
from modelwire.transports.socket_file import SocketFile, listen_unix


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mcp.sock"


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def listening(path: Path) -> tuple[socket.socket, SocketFile]:
    return listen_unix(UnixAddress(str(path)), 8)


def stale(path: Path) -> None:
    """Leave a socket as a killed server does."""
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))


def reaches(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_only_its_owner_may_connect_whatever_the_umask(path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        server, file = listening(path)
    finally:
        os.umask(before)
    with server:
        assert mode(path) == 0o600
        assert reaches(path)
        file.remove()


@pytest.mark.usefixtures("umask")
def test_it_is_never_more_open_and_never_looks_abandoned(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    looking: list[bool] = []

    def look() -> None:
        for entry in path.parent.iterdir():
            if entry.is_dir():
                assert mode(entry) == 0o700
            else:
                assert mode(entry) == 0o600
                assert reaches(entry)
                seen.append(entry.name)

    def watched(call: Any) -> Any:
        def called(*given: Any, **more: Any) -> Any:
            result = call(*given, **more)
            if not looking:
                looking.append(True)
                look()
                looking.clear()
            return result

        return called

    for name in ("chmod", "link", "rename", "unlink", "lstat", "rmdir"):
        monkeypatch.setattr(os, name, watched(getattr(os, name)))
    server, file = listening(path)
    with server:
        assert "mcp.sock" in seen
        file.remove()


def test_nothing_but_the_socket_is_left_in_its_folder(path: Path) -> None:
    server, file = listening(path)
    with server:
        assert [entry.name for entry in path.parent.iterdir()] == ["mcp.sock"]
        file.remove()
        assert list(path.parent.iterdir()) == []


def test_a_socket_that_a_dead_server_left_is_replaced(path: Path) -> None:
    stale(path)
    server, file = listening(path)
    with server:
        assert reaches(path)
        assert [entry.name for entry in path.parent.iterdir()] == ["mcp.sock"]
        file.remove()


def test_a_socket_where_somebody_listens_is_refused_and_goes_on(path: Path) -> None:
    server, file = listening(path)
    with server:
        with pytest.raises(ConnectionFailed, match="another server listens there; end it, or choose another path"):
            listening(path)
        assert reaches(path)
        assert [entry.name for entry in path.parent.iterdir()] == ["mcp.sock"]
        file.remove()


def test_a_server_whose_queue_is_full_is_alive(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen(0)
        clients = [socket.socket(socket.AF_UNIX) for _ in range(3)]
        for client in clients:
            client.setblocking(False)
            client.connect_ex(str(path))
        with pytest.raises(ConnectionFailed, match="another server listens there"):
            listening(path)
        for client in clients:
            client.close()


@pytest.mark.parametrize(
    "kind", ["a file", "a folder", "a FIFO", "a link", "a dangling link", "a link to a live socket"]
)
def test_what_is_no_socket_is_never_removed(path: Path, kind: str, tmp_path: Path) -> None:
    live: list[socket.socket] = []
    if kind == "a file":
        path.write_text("precious")
    elif kind == "a folder":
        path.mkdir()
    elif kind == "a FIFO":
        os.mkfifo(path)
    elif kind == "a link to a live socket":
        live.append(listening(tmp_path / "other.sock")[0])
        path.symlink_to(tmp_path / "other.sock")
    else:
        if kind == "a link":
            stale(tmp_path / "other.sock")
        path.symlink_to(tmp_path / "other.sock")
    before = path.lstat()
    with pytest.raises(ConnectionFailed, match="a file that is no socket is there; it was left alone"):
        listening(path)
    assert path.lstat() == before
    for server in live:
        server.close()


def test_a_socket_of_another_kind_that_is_in_use_is_left_alone(path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams:
        datagrams.bind(str(path))
        with pytest.raises(ConnectionFailed, match="another server listens there"):
            listening(path)
        assert path.exists()


def test_a_server_that_begins_at_the_same_moment_is_not_robbed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stale(path)
    others: list[socket.socket] = []

    def just_too_late(where: str) -> bool:
        path.unlink()
        others.append(listening(path)[0])
        return False

    monkeypatch.setattr(socket_file, "_is_alive", just_too_late)
    with pytest.raises(ConnectionFailed, match="another server has just begun to listen there"):
        listening(path)
    assert reaches(path)
    assert [entry.name for entry in path.parent.iterdir()] == ["mcp.sock"]
    others[0].close()


def test_a_stale_socket_that_goes_by_itself_is_no_hindrance(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stale(path)
    lstat = os.lstat

    def gone(where: str) -> os.stat_result:
        if where == str(path) and path.exists():
            path.unlink()
        return lstat(where)

    monkeypatch.setattr(os, "lstat", gone)
    server, file = listening(path)
    with server:
        assert reaches(path)
        file.remove()


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOTSUP])
def test_a_file_system_without_links_to_sockets_will_do(
    path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> None:
        raise OSError(number, "no links here")

    monkeypatch.setattr(os, "link", refused)
    stale(path)
    server, file = listening(path)
    with server:
        assert mode(path) == 0o600
        assert reaches(path)
        with pytest.raises(ConnectionFailed, match="another server listens there"):
            listening(path)
        assert reaches(path)
        file.remove()
    path.write_text("precious")
    with pytest.raises(ConnectionFailed, match="a file that is no socket is there"):
        listening(path)
    assert path.read_text() == "precious"


def test_a_file_that_keeps_coming_back_is_given_up(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(*_: Any) -> None:
        raise FileExistsError(errno.EEXIST, "there")

    monkeypatch.setattr(os, "link", taken)
    with pytest.raises(ConnectionFailed, match="others keep making it"):
        listening(path)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (errno.EACCES, "permission denied: its folder must be one that you can write to"),
        (errno.EROFS, "its folder cannot be written to"),
        (errno.ENOSPC, "No space left on device"),
    ],
)
def test_a_folder_that_cannot_be_written_to_is_told(
    path: Path, number: int, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr(os, "mkdir", refused)
    with pytest.raises(ConnectionFailed, match=re.escape(f"cannot listen on unix://{path}: {why}")):
        listening(path)


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in ("nowhere", "file"):
        with pytest.raises(ConnectionFailed, match="its folder does not exist; make it first"):
            listening(tmp_path / folder / "x.sock")


def test_a_path_that_is_just_too_long_to_be_made_is_told(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * (MAX_PATH - len(os.fsencode(tmp_path)) - 4))
    folder.mkdir()
    with pytest.raises(ConnectionFailed, match="the path of its folder is too long"):
        listening(folder / "s")
    assert list(folder.iterdir()) == []


def test_at_the_end_the_file_is_removed_once(path: Path) -> None:
    server, file = listening(path)
    with server:
        file.remove()
        assert not path.exists()
        file.remove()


def test_a_file_that_somebody_else_put_there_is_not_removed(path: Path) -> None:
    first, file = listening(path)
    path.unlink()
    second, other = listening(path)
    with first, second:
        file.remove()
        assert reaches(path)
        other.remove()
        assert not path.exists()


def test_a_link_that_was_made_for_it_is_not_removed(path: Path) -> None:
    server, file = listening(path)
    with server:
        path.rename(path.with_name("kept"))
        path.symlink_to(path.with_name("kept"))
        file.remove()
        assert path.is_symlink()
