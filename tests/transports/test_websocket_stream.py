"""A client's WebSocket: what it takes for a message, why it ended, and an end that is bounded in time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection
from websockets.frames import Opcode

from modelwire import ConnectionLost
from modelwire.transports import websocket_connect, websocket_stream
from modelwire.transports.websocket_connect import connect_websocket
from modelwire.transports.websocket_stream import WebSocketStream
from tests.leftovers import nothing_left
from tests.transports.websockets_server import Script, playing, say
from tests.wire import PATIENCE

MAX = 1 << 16


@asynccontextmanager
async def connected(script: Script, **options: Any) -> AsyncIterator[WebSocketStream]:
    async with playing(script, **options) as url:
        stream = await connect_websocket(url, headers={}, tls=None, max_message=MAX)
        try:
            async with asyncio.timeout(PATIENCE):
                yield stream
        finally:
            await stream.aclose()


async def until_closed(connection: ServerConnection) -> None:
    async for _ in connection:
        pass


async def stuck(connection: ServerConnection) -> None:
    """Take nothing more."""
    connection.transport.pause_reading()
    await asyncio.Event().wait()


async def test_messages_go_both_ways_in_order(caplog: pytest.LogCaptureFixture) -> None:
    async def echo(connection: ServerConnection) -> None:
        async for message in connection:
            assert isinstance(message, str)
            await connection.send(message)

    async with nothing_left(caplog), connected(echo) as stream:
        sent = [f'"ä{number}"'.encode() for number in range(100)]
        for frame in sent:
            await stream.send(frame)
        assert [await stream.receive() for _ in sent] == sent


async def test_fragments_with_pings_between_are_one_message() -> None:
    async def fragments(connection: ServerConnection) -> None:
        whole = '"ä"'.encode()
        say(connection, Opcode.TEXT, b"", fin=False)
        for at in range(len(whole)):
            say(connection, Opcode.CONT, whole[at : at + 1], fin=False)
            say(connection, Opcode.PING, b"?")
        say(connection, Opcode.CONT, b"")
        await until_closed(connection)

    async with connected(fragments) as stream:
        assert await stream.receive() == '"ä"'.encode()


async def test_a_server_that_closes_without_a_word_is_the_end() -> None:
    async def done(connection: ServerConnection) -> None:
        await connection.send("1")

    async with connected(done) as stream:
        assert await stream.receive() == b"1"
        assert await stream.receive() is None
        with pytest.raises(ConnectionLost, match="the server closed the WebSocket: 1000 \\(done\\)"):
            await stream.send(b"1")


@pytest.mark.parametrize(
    ("code", "reason", "told"),
    [
        (1001, "the server is ending", "the server closed the WebSocket: 1001 (going away): the server is ending"),
        (1009, "at most 10", "the server closed the WebSocket: 1009 (too large): at most 10"),
        (1000, "enough", "the server closed the WebSocket: 1000 (done): enough"),
        (4711, "", "the server closed the WebSocket: 4711"),
    ],
)
async def test_the_code_of_a_close_is_explained(code: int, reason: str, told: str) -> None:
    async def close(connection: ServerConnection) -> None:
        await connection.close(code, reason)

    async with connected(close) as stream:
        with pytest.raises(ConnectionLost) as caught:
            await stream.receive()
        assert str(caught.value) == told


@pytest.mark.parametrize(
    ("frames", "code", "told"),
    [
        ([(Opcode.BINARY, b"1", True)], 1003, "sent a binary frame"),
        ([(Opcode.TEXT, b'"\xff"', True)], 1007, "sent what is no WebSocket's (1007"),
        ([(Opcode.TEXT, b"x" * (MAX + 1), True)], 1009, f"larger than max_message={MAX} bytes"),
        ([(Opcode.TEXT, b"x" * MAX, False), (Opcode.CONT, b"x", True)], 1009, "larger than max_message="),
        ([(Opcode.CONT, b"x", True)], 1002, "sent what is no WebSocket's (1002"),
    ],
    ids=["binary", "utf-8", "large", "fragments", "order"],
)
async def test_a_wrong_frame_ends_it_with_its_code(
    frames: list[tuple[Opcode, bytes, bool]], code: int, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    codes: list[int | None] = []

    async def wrong(connection: ServerConnection) -> None:
        for opcode, data, fin in frames:
            say(connection, opcode, data, fin=fin)
        with contextlib.suppress(Exception):
            await until_closed(connection)
        await connection.wait_closed()
        received = connection.protocol.close_rcvd
        codes.append(None if received is None else received.code)

    async with nothing_left(caplog), connected(wrong) as stream:
        with pytest.raises(ConnectionLost) as caught:
            await stream.receive()
        assert told in str(caught.value)
        with pytest.raises(ConnectionLost):
            await stream.send(b"1")
    assert codes == [code]


async def test_a_connection_that_breaks_is_told_to_who_waits() -> None:
    async def breaks(connection: ServerConnection) -> None:
        connection.transport.abort()

    async with connected(breaks) as stream:
        with pytest.raises(ConnectionLost, match="the connection to ws://127.0.0.1:.* broke"):
            await stream.receive()


async def test_a_server_that_does_not_close_holds_up_no_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("CLOSE_SECONDS", "DRAIN_SECONDS"):
        monkeypatch.setattr(websocket_stream, name, 0.05)
    async with nothing_left(caplog):
        async with connected(stuck) as stream:
            await stream.aclose()
            await stream.aclose()
            with pytest.raises(ConnectionLost, match="the WebSocket was closed"):
                await stream.receive()
        async with connected(stuck) as stream:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.05):
                    while True:
                        await stream.send(b"x" * (1 << 20))
            assert stream.blocked


async def test_a_server_that_sends_too_much_and_does_not_close_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket_stream, "CLOSE_SECONDS", 0.05)

    async def wrong(connection: ServerConnection) -> None:
        say(connection, Opcode.TEXT, b"x" * (MAX + 1))
        await stuck(connection)

    async with connected(wrong) as stream:
        with pytest.raises(ConnectionLost, match="larger than max_message="):
            await stream.receive()


async def test_signs_of_life_are_noted_and_who_gives_none_can_be_given_up() -> None:
    async with connected(until_closed) as stream:
        assert stream.stirred()
        assert not stream.stirred()
        assert not stream.blocked
        await stream.ping()
        while not stream.stirred():
            await asyncio.sleep(0)
        stream.fail("given up")
        for gone in (stream.receive(), stream.send(b"1")):
            with pytest.raises(ConnectionLost, match="given up"):
                await gone
        await stream.ping()


async def test_a_flood_of_pings_whose_answers_nobody_reads_takes_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket_connect, "WRITE_LIMIT", 1 << 14)
    reads = asyncio.Event()

    async def flood(connection: ServerConnection) -> None:
        connection.transport.pause_reading()
        for number in range(40_000):
            say(connection, Opcode.PING, b"%06d" % number + b"x" * 119)
        await connection.send("1")
        await reads.wait()
        connection.transport.resume_reading()
        await connection.send((await connection.recv()) or "")

    async with connected(flood) as stream:
        assert await stream.receive() == b"1"
        wire = stream._wire  # pyright: ignore[reportPrivateUsage]
        assert wire.paused
        assert wire.transport.get_write_buffer_size() < 1 << 20
        reads.set()
        await stream.send(b'"still there"')
        assert await stream.receive() == b'"still there"'


async def test_it_can_be_closed_from_several_tasks_at_once() -> None:
    async with connected(until_closed) as stream:
        receiving = asyncio.create_task(stream.receive())
        await asyncio.gather(*(stream.aclose() for _ in range(3)))
        with contextlib.suppress(ConnectionLost):
            assert await receiving is None
