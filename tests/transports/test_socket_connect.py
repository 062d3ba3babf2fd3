"""Connecting: what is tried, in which order, and what is said when it does not work."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from modelwire.errors import ConfigError, ConnectionFailed
from modelwire.transports import socket_connect
from modelwire.transports.socket_address import Address, TcpAddress, UnixAddress
from modelwire.transports.socket_connect import connect_socket, interleaved
from tests.clock import Clock
from tests.transports.sockets import descriptors, resolving, tasks
from tests.transports.turns import let_others_run

V4, V6 = socket.AF_INET, socket.AF_INET6


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def listening(stack: ExitStack, host: str = "127.0.0.1", port: int = 0, backlog: int = 8) -> TcpAddress:
    server = socket.create_server((host, port), backlog=backlog, family=V6 if ":" in host else V4)
    stack.callback(server.close)
    return TcpAddress(host, server.getsockname()[1])


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def silent(stack: ExitStack) -> TcpAddress:
    """An address that does not answer: its queue of connections is full."""
    address = listening(stack, backlog=0)
    for _ in range(3):
        filler = socket.socket()
        stack.callback(filler.close)
        filler.setblocking(False)
        filler.connect_ex((address.host, address.port))
    return address


async def failure(address: Address) -> str:
    before = descriptors(), tasks()
    with pytest.raises(ConnectionFailed) as failed:
        await connect_socket(address)
    await let_others_run()
    assert (descriptors(), tasks()) == before
    text = str(failed.value)
    assert text.startswith(f"cannot connect to {address}: ")
    return text.removeprefix(f"cannot connect to {address}: ")


@asynccontextmanager
async def echo(address: Address) -> AsyncIterator[Address]:
    """A server that sends back what it gets."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line)
        writer.close()
        await writer.wait_closed()

    if isinstance(address, UnixAddress):
        server = await asyncio.start_unix_server(serve, address.path)
    else:
        server = await asyncio.start_server(serve, address.host, address.port)
        address = TcpAddress(address.host, server.sockets[0].getsockname()[1])
    async with server:
        yield address


# --------------------------------------------------------------------------------------------------- it works


@pytest.mark.parametrize("kind", ["tcp", "unix"])
async def test_a_stream_carries_frames_both_ways(kind: str, tmp_path: Path) -> None:
    async with echo(TcpAddress("127.0.0.1", 0) if kind == "tcp" else UnixAddress(str(tmp_path / "s"))) as address:
        stream = await connect_socket(address)
        await stream.send(b"[1]")
        assert await stream.receive() == b"[1]"
        await stream.aclose()
        assert await stream.receive() is None


async def test_ipv6_works_or_is_said_not_to_be_there() -> None:
    address = TcpAddress("::1", closed_port())
    try:
        async with echo(TcpAddress("::1", 0)) as there:
            stream = await connect_socket(there)
            await stream.send(b"[6]")
            assert await stream.receive() == b"[6]"
            await stream.aclose()
        assert "nothing listens there" in await failure(address)
    except OSError:  # this machine has no IPv6
        assert re.search("no address of that kind|cannot be reached", await failure(address))


async def test_an_address_needs_no_thread_to_be_looked_up_in(stack: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(asyncio.BaseEventLoop, "getaddrinfo")
    (await connect_socket(listening(stack))).release()


# --------------------------------------------------------------------------------------------------- it does not


async def test_a_closed_port_is_told_with_what_to_look_at() -> None:
    why = await failure(TcpAddress("127.0.0.1", closed_port()))
    assert why == "nothing listens there. Is the server running, and is the port right?"


@pytest.mark.parametrize("error", [socket.gaierror(socket.EAI_NONAME, "x"), UnicodeError("label too long")])
async def test_a_name_that_cannot_be_resolved_is_told(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    async def unknown(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", unknown)
    with pytest.raises(ConnectionFailed, match="the name 'nowhere.invalid' cannot be resolved. Is it spelled right"):
        await connect_socket(TcpAddress("nowhere.invalid", 1))


async def test_port_0_is_for_listeners() -> None:
    with pytest.raises(ConfigError, match="port 0 is for servers"):
        await connect_socket(TcpAddress("127.0.0.1", 0))


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (errno.EHOSTUNREACH, "the machine cannot be reached"),
        (errno.ENETUNREACH, "its network cannot be reached from here"),
        (errno.EACCES, "this machine's own rules forbid it"),
        (errno.ETIMEDOUT, "no answer. Is the machine running"),
        (errno.ECONNABORTED, os.strerror(errno.ECONNABORTED)),
    ],
)
async def test_the_system_s_reason_is_told_in_plain_words(
    number: int, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(*_: Any) -> None:
        raise OSError(number, "the system's own words")

    monkeypatch.setattr(socket.socket, "connect", connect)
    text = await failure(TcpAddress("127.0.0.1", 1))
    assert why in text
    assert "the system's own words" not in text


async def test_a_connection_to_itself_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    port = closed_port()

    async def from_the_same_port(self: Any, connection: socket.socket, where: Any) -> None:
        connection.bind(where)
        await connect(self, connection, where)

    loop = type(asyncio.get_running_loop())
    connect = loop.sock_connect
    monkeypatch.setattr(loop, "sock_connect", from_the_same_port)
    assert "nothing listens there" in await failure(TcpAddress("127.0.0.1", port))


# --------------------------------------------------------------------------------------------------- several addresses


def test_families_take_turns() -> None:
    found = [(V6, ("a",)), (V6, ("b",)), (V6, ("c",)), (V4, ("d",)), (V4, ("e",))]
    assert [where[0] for _, where in interleaved(found)] == ["a", "d", "b", "e", "c"]
    assert interleaved([]) == []


async def test_the_next_address_is_tried_at_once_when_one_refuses(
    stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = listening(stack)
    monkeypatch.setattr(socket_connect, "STAGGER_SECONDS", 3600.0)
    resolving(monkeypatch, "127.0.0.3", "127.0.0.2", "127.0.0.1")
    stream = await connect_socket(TcpAddress("several", address.port))
    stream.release()


async def test_the_next_address_is_tried_beside_one_that_does_not_answer(
    stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    mute = silent(stack)
    listening(stack, "127.0.0.2", mute.port)
    resolving(monkeypatch, "127.0.0.1", "127.0.0.2")
    clock = Clock()
    before = tasks()
    connecting = asyncio.create_task(connect_socket(TcpAddress("several", mute.port)))
    await clock.turn()
    assert not connecting.done()
    await clock.advance(socket_connect.STAGGER_SECONDS + 0.01)
    stream = await connecting
    stream.release()
    await let_others_run()
    assert tasks() == before


async def test_when_all_addresses_fail_all_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, "127.0.0.1", "127.0.0.2")
    why = await failure(TcpAddress("several", closed_port()))
    assert why.startswith("nothing listens there.")
    assert why.endswith("(Tried: 127.0.0.1, 127.0.0.2.)")


async def test_different_reasons_are_told_for_each_address(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, "::1", "127.0.0.1")
    loop = type(asyncio.get_running_loop())
    connect = loop.sock_connect

    async def without_ipv6(self: Any, connection: socket.socket, where: Any) -> None:
        if where[0] == "::1":
            raise OSError(errno.ENETUNREACH, "no")
        await connect(self, connection, where)

    monkeypatch.setattr(loop, "sock_connect", without_ipv6)
    why = await failure(TcpAddress("several", closed_port()))
    assert "at ::1 its network cannot be reached from here; at 127.0.0.1 nothing listens there." in why


async def test_connecting_that_is_cancelled_leaves_nothing(stack: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    mute = silent(stack)
    resolving(monkeypatch, "127.0.0.1", "127.0.0.1", "127.0.0.1")
    clock = Clock()
    before = descriptors(), tasks()
    connecting = asyncio.create_task(connect_socket(TcpAddress("several", mute.port)))
    await clock.advance(socket_connect.STAGGER_SECONDS + 0.01)
    assert descriptors() > before[0]
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting
    await let_others_run()
    assert (descriptors(), tasks()) == before


# --------------------------------------------------------------------------------------------------- Unix


async def test_a_path_where_nothing_is_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("nowhere", "file/within", "no/folder"):
        why = await failure(UnixAddress(str(tmp_path / name)))
        assert why == "there is no such file. Is the server running?"


async def test_a_socket_that_a_dead_server_left_is_told(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "s"))
    why = await failure(UnixAddress(str(tmp_path / "s")))
    assert why == "nobody listens there: the file was left by a server that has ended. Start it again"


async def test_a_file_that_is_no_socket_is_told(tmp_path: Path) -> None:
    (tmp_path / "s").touch()
    assert await failure(UnixAddress(str(tmp_path / "s"))) == "the file is no socket"


async def test_a_socket_of_another_kind_is_told(tmp_path: Path, stack: ExitStack) -> None:
    datagrams = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    datagrams.bind(str(tmp_path / "s"))
    assert "a socket of another kind" in await failure(UnixAddress(str(tmp_path / "s")))


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (errno.EACCES, "permission denied: only the user who started the server may connect"),
        (errno.ELOOP, os.strerror(errno.ELOOP)),
    ],
)
async def test_the_system_s_reason_about_a_path_is_told(number: int, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*_: Any) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr(socket.socket, "connect", connect)
    assert await failure(UnixAddress("/run/mcp.sock")) == why


async def test_a_server_that_is_slow_to_accept_is_waited_for(tmp_path: Path, stack: ExitStack) -> None:
    path = str(tmp_path / "s")
    server = stack.enter_context(socket.socket(socket.AF_UNIX))
    server.bind(path)
    server.listen(0)
    stack.enter_context(socket.socket(socket.AF_UNIX)).connect(path)
    clock = Clock()
    connecting = asyncio.create_task(connect_socket(UnixAddress(path)))
    await clock.advance(1)
    assert not connecting.done()
    server.accept()[0].close()
    await clock.advance(1)
    (await connecting).release()


async def test_waiting_for_a_server_that_never_accepts_can_be_cancelled(tmp_path: Path, stack: ExitStack) -> None:
    path = str(tmp_path / "s")
    server = stack.enter_context(socket.socket(socket.AF_UNIX))
    server.bind(path)
    server.listen(0)
    stack.enter_context(socket.socket(socket.AF_UNIX)).connect(path)
    before = descriptors()
    connecting = asyncio.create_task(connect_socket(UnixAddress(path)))
    await let_others_run()
    assert descriptors() > before
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting
    assert descriptors() == before
