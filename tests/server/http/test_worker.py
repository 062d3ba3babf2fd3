"""How a process learns that it is a worker, and what it takes for such a message that is none."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from modelwire import ConfigError
from modelwire.server.http.worker import VARIABLE, Hello, is_worker, take_place
from tests.leftovers import open_files

HELLO = Hello("http://127.0.0.1:0/mcp", "http://127.0.0.1:9/mcp", "k" * 32)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_without_a_variable_a_process_is_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert not is_worker()
    assert take_place(HELLO.endpoint) is None


@pytest.mark.parametrize("value", ["", "x", ":", "5", "-1:words", "99999:words"])
def test_what_is_no_descriptor_makes_no_worker(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, value)
    assert not is_worker()
    assert take_place(HELLO.endpoint) is None


def test_a_descriptor_of_another_kind_is_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        monkeypatch.setenv(VARIABLE, f"{file.fileno()}:words")
        assert take_place(HELLO.endpoint) is None
        file.write(b"still open")


@pytest.mark.parametrize("waiting", [b"", b"other words", b"wo"])
def test_a_socket_on_which_other_words_wait_is_left_alone(
    waiting: bytes, pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = pair
    ours.sendall(waiting)
    monkeypatch.setenv(VARIABLE, f"{theirs.fileno()}:words")
    assert not is_worker()
    assert take_place(HELLO.endpoint) is None
    assert VARIABLE in os.environ
    ours.sendall(b"!")
    assert theirs.recv(100) == waiting + b"!"


def test_a_program_that_comes_to_serve_something_else_is_refused(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = pair
    with socket.create_server(("127.0.0.1", 0)) as listening:
        socket.send_fds(ours, [b"words\n" + msgspec.json.encode(HELLO)], [listening.fileno()])
        count = len(open_files())
        fd = theirs.detach()
        monkeypatch.setenv(VARIABLE, f"{fd}:words")
        assert is_worker()
        with pytest.raises(ConfigError, match="was to serve http://127.0.0.1:0/mcp and has come to serve http://x/mcp"):
            take_place("http://x/mcp")
        assert len(open_files()) == count - 1  # our end alone; not what came through it, either
        assert VARIABLE not in os.environ
    with contextlib.suppress(OSError):
        assert ours.recv(1) == b""
