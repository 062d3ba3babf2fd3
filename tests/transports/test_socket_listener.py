"""Listening: who is accepted, who is turned away and why, and that nothing is left when it is over."""

from __future__ import annotations

import asyncio
import errno
import json
import random
import re
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from modelwire.errors import ConnectionFailed
from modelwire.transports import socket_file, socket_listener
from modelwire.transports.socket_address import Address, TcpAddress, UnixAddress
from modelwire.transports.socket_connect import connect_socket
from modelwire.transports.socket_listener import SocketListener, listen
from modelwire.transports.socket_stream import SocketStream
from tests.clock import Clock
from tests.transports.sockets import MiB, RawClient, descriptors, tasks
from tests.transports.turns import let_others_run

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
LOOPBACK = TcpAddress("127.0.0.1", 0)
KINDS = pytest.mark.parametrize("kind", ["tcp", "unix"])


class Echo:
    """Serves each connection by sending back what comes; keeps count."""

    def __init__(self) -> None:
        self.open = 0
        self.served = 0
        self.names: list[str] = []

    async def __call__(self, stream: SocketStream) -> None:
        self.open += 1
        self.served += 1
        self.names.append(stream.name)
        try:
            while (frame := await stream.receive()) is not None:
                await stream.send(frame)
        finally:
            self.open -= 1
            await stream.aclose()


class Place:
    """A listener, and clients that are closed with it."""

    def __init__(self, listener: SocketListener) -> None:
        self.listener = listener
        self.clients: list[RawClient] = []

    @property
    def address(self) -> Address:
        return self.listener.address

    async def client(self, *lines: bytes, address: Address | None = None) -> RawClient:
        """A client that has sent these lines."""
        client = await RawClient.to(address or self.address)
        self.clients.append(client)
        if lines:
            await client.write(b"".join(line + b"\n" for line in lines))
        return client


@asynccontextmanager
async def listening(serve: Any = None, address: Address = LOOPBACK, **options: Any) -> AsyncIterator[Place]:
    place = Place(await listen(address, serve or Echo(), **options))
    place.listener.start()
    try:
        yield place
    finally:
        for client in place.clients:
            client.close()
        await place.listener.aclose()


def somewhere(kind: str, folder: Path) -> Address:
    return LOOPBACK if kind == "tcp" else UnixAddress(str(folder / "s"))


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0)


# --------------------------------------------------------------------------------------------------- many at once


@KINDS
async def test_many_connections_are_served_at_once(kind: str, tmp_path: Path) -> None:
    echo = Echo()
    async with listening(echo, somewhere(kind, tmp_path)) as here:
        clients = [await here.client() for _ in range(50)]
        for number, client in enumerate(clients):
            await client.write(b"[%d]\n" % number)
        for number, client in reversed(list(enumerate(clients))):
            assert await client.line() == b"[%d]\n" % number
        assert echo.open == 50
        for client in clients:
            client.close()
        await until(lambda: echo.open == 0)


@KINDS
async def test_200_connections_that_come_and_go_in_any_order_leave_nothing(kind: str, tmp_path: Path) -> None:
    order = random.Random(7)
    echo = Echo()
    before = descriptors(), tasks()
    async with listening(echo, somewhere(kind, tmp_path)) as here:
        clients: list[RawClient] = []
        for _ in range(200):
            client = await here.client(*order.choice([[], [PING], [PING, PING]]))
            clients.append(client)
            await client.write(order.choice([b"", b"{", PING]))
            if order.random() < 0.7:
                leaving = clients.pop(order.randrange(len(clients)))
                leaving.reset() if kind == "tcp" and order.random() < 0.5 else leaving.close()
        order.shuffle(clients)
        for client in clients:
            client.close()
        await until(lambda: tasks() == before[1])
        assert echo.open == 0
    assert (descriptors(), tasks()) == before


@KINDS
async def test_the_end_closes_every_connection_and_leaves_nothing(kind: str, tmp_path: Path) -> None:
    before = descriptors(), tasks()
    echo = Echo()
    async with listening(echo, somewhere(kind, tmp_path)) as here:
        clients = [await here.client(PING) for _ in range(10)]
        for client in clients:
            await client.line()
        clients += [await here.client() for _ in range(10)]  # these never say anything
        closing = asyncio.create_task(here.listener.aclose())
        assert [await client.rest() for client in clients] == [b""] * 20
        for client in clients:
            client.close()
        await closing
        assert echo.open == 0
        with pytest.raises(ConnectionFailed):
            await connect_socket(here.address)
    assert (descriptors(), tasks()) == before


async def test_a_listener_that_never_started_leaves_nothing(tmp_path: Path) -> None:
    before = descriptors(), tasks()
    for address in (LOOPBACK, UnixAddress(str(tmp_path / "s"))):
        await (await listen(address, Echo())).aclose()
    assert (descriptors(), tasks()) == before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("turns", range(5))
async def test_a_connection_that_comes_just_before_the_end_is_closed(turns: int) -> None:
    before = descriptors(), tasks()
    async with listening() as here:
        client = await here.client(PING)
        for _ in range(turns):  # by now it is accepted, or not, or its task has not begun
            await asyncio.sleep(0)
        await here.listener.aclose()
        assert await client.rest() in (b"", PING + b"\n")
    assert (descriptors(), tasks()) == before


async def test_a_connection_that_fails_harms_no_other(caplog: pytest.LogCaptureFixture) -> None:
    echo = Echo()

    async def serve(stream: SocketStream) -> None:
        if echo.served:
            await echo(stream)
        else:
            echo.served = 1
            raise ZeroDivisionError

    async with listening(serve) as here:
        first, second = await here.client(), await here.client()
        await first.write(PING + b"\n")
        assert await first.rest() == b""
        await second.write(PING + b"\n")
        assert await second.line() == PING + b"\n"
        first.close()
        second.close()
    assert "ZeroDivisionError" in caplog.text


# --------------------------------------------------------------------------------------------------- how many


@KINDS
async def test_above_max_connections_further_ones_are_told_and_closed(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    echo = Echo()
    async with listening(echo, somewhere(kind, tmp_path), max_connections=2) as here:
        first, second = await here.client(), await here.client()
        for client in (first, second):
            await client.write(PING + b"\n")
            assert await client.line() == PING + b"\n"
        for _ in range(3):
            third = await here.client()
            told = json.loads(await third.rest())
            assert told["error"]["code"] == 429
            assert "2 connections are open, and max_connections allows no more" in told["error"]["message"]
            third.close()
        warnings = [record.getMessage() for record in caplog.records]
        assert len(warnings) == 1
        assert warnings[0].startswith(f"connections to {here.address} are closed for now: 2 connections are open")
        first.close()
        await until(lambda: echo.open == 1)
        await let_others_run()
        fourth = await here.client()
        await fourth.write(PING + b"\n")
        assert await fourth.line() == PING + b"\n"
        fifth = await here.client()
        await fifth.rest()
        assert len(caplog.records) == 2
        for client in (second, fourth, fifth):
            client.close()


async def test_who_has_said_nothing_yet_counts_too() -> None:
    async with listening(max_connections=1) as here:
        mute, other = await here.client(), await here.client()
        assert b"429" in await other.rest()
        other.close()
        mute.close()


async def test_a_process_without_descriptors_waits_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    accept = socket.socket.accept
    calls = 0

    def exhausted(self: socket.socket) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise OSError(errno.EMFILE, "no more")
        return accept(self)

    monkeypatch.setattr(socket.socket, "accept", exhausted)
    clock = Clock()
    async with listening() as here:
        client = await here.client(PING)
        await until(lambda: calls > 0)
        await let_others_run(50)
        assert calls == 1  # it does not turn in circles meanwhile
        await clock.advance(socket_listener.PAUSE_SECONDS + 0.01)
        assert await client.line() == PING + b"\n"
        client.close()
    assert "Too many open files" in caplog.text


async def test_the_end_may_come_while_it_waits_for_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[socket.socket] = []

    def exhausted(self: socket.socket) -> Any:
        calls.append(self)
        raise OSError(errno.ENFILE, "no more")

    monkeypatch.setattr(socket.socket, "accept", exhausted)
    clock = Clock()
    async with listening() as here:
        client = await here.client()
        await until(lambda: bool(calls))
    await clock.advance(socket_listener.PAUSE_SECONDS + 0.01)
    assert len(calls) == 1
    client.close()


async def test_a_client_that_is_gone_before_it_is_accepted_is_no_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    accept = socket.socket.accept
    calls = 0

    def aborted(self: socket.socket) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise OSError(errno.ECONNABORTED, "gone")
        return accept(self)

    monkeypatch.setattr(socket.socket, "accept", aborted)
    async with listening() as here:
        client = await here.client(PING)
        assert await client.line() == PING + b"\n"
        client.close()


# --------------------------------------------------------------------------------------------------- the first line


@KINDS
@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"POST / HTTP/1.1\r\nContent-Type: text/plain\r\nContent-Length: 41\r\n\r\n" + PING, "an HTTP request"),
        (b"GET / HTTP/1.1\r\n\r\n", "an HTTP request"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "an HTTP request"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "a TLS handshake"),
        (b"hello\n", "no JSON"),
    ],
)
async def test_another_protocol_is_closed_without_a_word_and_never_served(
    kind: str, data: bytes, said: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    echo = Echo()
    async with listening(echo, somewhere(kind, tmp_path)) as here:
        client = await here.client()
        await client.write(data)
        assert await client.rest() == b""
        assert echo.served == 0
        assert f"was refused at {here.address}: it sent {said}" in caplog.text
        client.close()


@KINDS
async def test_a_first_line_that_is_no_message_is_told_so(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    echo = Echo()
    async with listening(echo, somewhere(kind, tmp_path), max_message=1000) as here:
        for data in (b"{hello}\n", b'{"a":"' + b"x" * 5000):
            client = await here.client()
            await client.write(data)
            told = json.loads(await client.rest())
            assert told["error"]["code"] in (-32700, -32600)
            client.close()
        assert echo.served == 0
    assert caplog.text.count("its first line is no message") == 2


@KINDS
async def test_a_first_line_may_come_byte_by_byte_with_more_behind_it(kind: str, tmp_path: Path) -> None:
    async with listening(None, somewhere(kind, tmp_path)) as here:
        client = await here.client()
        for byte in b"\xef\xbb\xbf\r\n" + PING + b"\r\n":
            await client.write(bytes([byte]))
            await let_others_run(2)
        await client.write(b"GET / HTTP/1.1\n[3]\n")
        assert await client.line() == PING + b"\n"
        assert await client.line() == b"GET / HTTP/1.1\n"  # whoever serves says what is wrong with a later line
        assert await client.line() == b"[3]\n"
        client.close()


@KINDS
async def test_a_large_first_line_is_served(kind: str, tmp_path: Path) -> None:
    async with listening(None, somewhere(kind, tmp_path)) as here:
        stream = await connect_socket(here.address)
        frame = b'{"a":"' + b"x" * 5 * MiB + b'"}'
        sending = asyncio.create_task(stream.send(frame))
        assert await stream.receive() == frame
        await sending
        await stream.aclose()


@KINDS
async def test_a_line_without_its_end_counts_when_the_client_closes_its_side(kind: str, tmp_path: Path) -> None:
    async with listening(None, somewhere(kind, tmp_path)) as here:
        client = await here.client()
        await client.write(PING)
        client.write_eof()
        assert await client.rest() == PING + b"\n"
        client.close()


@pytest.mark.parametrize("begun", [b"", b"\n", b'{"jsonrpc":'])
async def test_who_sends_no_first_line_is_closed_after_a_while(begun: bytes, caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    echo = Echo()
    async with listening(echo) as here:
        client = await here.client()
        await client.write(begun)
        await until(lambda: tasks() > 1)
        reading = asyncio.create_task(client.rest())
        await clock.advance(socket_listener.FIRST_LINE_SECONDS / 2)
        await client.write(begun)  # a little more does not buy more time
        await clock.advance(socket_listener.FIRST_LINE_SECONDS / 2 - 1)
        assert not reading.done()
        await clock.advance(2)
        assert await reading == b""
        assert echo.served == 0
        client.close()
    assert "it sent no first line within 30 s" in caplog.text


async def test_who_has_sent_a_first_line_may_be_silent_from_then_on() -> None:
    clock = Clock()
    async with listening() as here:
        client = await here.client(PING)
        assert await client.line() == PING + b"\n"
        await clock.advance(100 * socket_listener.FIRST_LINE_SECONDS)
        await client.write(b"[2]\n")
        assert await client.line() == b"[2]\n"
        client.close()


async def test_who_connects_and_leaves_is_not_worth_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    async with listening() as here:
        for leave in (RawClient.close, RawClient.reset):
            leave(await here.client())
        await until(lambda: tasks() == 1)
    assert [record for record in caplog.records if record.levelname != "DEBUG"] == []


# --------------------------------------------------------------------------------------------------- addresses


async def test_port_0_takes_a_free_one_and_says_which() -> None:
    async with listening() as one, listening() as other:
        assert isinstance(one.address, TcpAddress)
        assert isinstance(other.address, TcpAddress)
        assert 0 not in (one.address.port, other.address.port)
        assert one.address.port != other.address.port


async def test_a_port_can_be_taken_again_right_after_the_end() -> None:
    async with listening() as here:
        address = here.address
        client = await here.client(PING)
        await client.line()
    async with listening(address=address) as again:
        assert again.address == address
    client.close()


async def test_ipv6_works_or_is_said_not_to_be_there() -> None:
    try:
        listener = await listen(TcpAddress("::1", 0), Echo())
    except ConnectionFailed as failed:
        why = str(failed)
    else:
        why = "it works"
        assert str(listener.address).startswith("tcp://[::1]:")
        listener.start()
        client = await RawClient.to(listener.address)
        await client.write(PING + b"\n")
        assert await client.line() == PING + b"\n"
        client.close()
        await listener.aclose()
    assert re.search("it works|this machine (does not have that address|has no address of that kind)", why)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "localhost"])
async def test_loopback_is_no_reason_to_warn(host: str, caplog: pytest.LogCaptureFixture) -> None:
    async with listening(address=TcpAddress(host, 0)):
        pass
    assert caplog.text == ""


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "::", "fe80::1%eth0", "2001:db8::1"])
def test_what_other_machines_can_reach_is_warned_of(host: str, caplog: pytest.LogCaptureFixture) -> None:
    class Listening:
        def getsockname(self) -> tuple[Any, ...]:
            return (host, 9000, 0, 0)

    sockets: Any = [Listening()]
    socket_listener._warn_of_strangers(TcpAddress("all", 9000), sockets)
    assert "tcp://all:9000 can be reached from other machines" in caplog.text


async def test_clients_are_called_by_their_addresses(tmp_path: Path) -> None:
    echo = Echo()
    async with listening(echo) as here:
        client = await here.client(PING)
        await client.line()
        host, port = client.connection.getsockname()
        client.close()
    async with listening(echo, UnixAddress(str(tmp_path / "s"))) as here:
        client = await here.client(PING)
        await client.line()
        client.close()
    assert echo.names == [f"the client {host}:{port}", "a client on this machine"]


async def test_the_file_of_a_unix_socket_is_there_while_it_is_listened(tmp_path: Path) -> None:
    async with listening(address=UnixAddress(str(tmp_path / "s"))):
        assert [entry.name for entry in tmp_path.iterdir()] == ["s"]
    assert list(tmp_path.iterdir()) == []


async def test_a_second_close_leaves_the_file_of_the_next_listener(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A system may give the next file the number of one that is gone.
    monkeypatch.setattr(socket_file, "_identity", lambda found: (1, 1))
    address = UnixAddress(str(tmp_path / "s"))
    async with listening(address=address) as first:
        await first.listener.aclose()
        async with listening(address=address):
            await first.listener.aclose()
            assert (tmp_path / "s").exists()
