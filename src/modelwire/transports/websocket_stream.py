"""A WebSocket to a server as a stream of frames: one text frame is one message. It connects nothing.

The frames are websockets' business. Whether the other end is still there is asked by whoever watches the stream
(`modelwire.rpc.heartbeat`): by any sign of life, and not by pongs alone, which wait behind whatever is under way.
"""

from __future__ import annotations

import asyncio
from typing import Any

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed
from websockets.frames import Close
from websockets.protocol import State

from modelwire.errors import ConnectionLost

CLOSE_SECONDS = 1.0
"""How long the server may take to close, too, once one side has."""
DRAIN_SECONDS = 1.0
"""How long a slow reader may take what is queued before that."""
WRITE_LIMIT = 1 << 20
"""Bytes that may be queued before `WebSocketStream.send` waits."""
_DONE = 1000
_UNSUPPORTED_DATA = 1003
_TOO_LARGE = 1009
_MEANINGS = {
    1000: "done",
    1001: "going away",
    1002: "protocol error",
    1003: "unsupported data",
    1005: "no reason given",
    1007: "invalid data",
    1008: "not allowed",
    1009: "too large",
    1010: "an extension is missing",
    1011: "it has failed",
    1012: "it starts anew",
    1013: "try again later",
    1014: "bad gateway",
}


class Wire(ClientConnection):
    """A connection that notes signs of life, and waits for the end no longer than it must."""

    stirred = False
    _receiving = False
    _pong: bytes | None = None
    """What is to be answered to the last ping, once there is room."""
    _giving_up: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        self.stirred = self._receiving = True
        super().data_received(data)
        self._receiving = False
        if self._giving_up is None and self.response is not None and self.protocol.close_expected():
            # Who only receives would wait for ever for a server that does not close.
            self._giving_up = self.loop.call_later(CLOSE_SECONDS, self.transport.abort)

    def send_data(self) -> None:
        if self._receiving and self.paused and not self.protocol.close_expected():
            # Answers to pings that a server does not read; the last one is enough (RFC 6455, 5.5.3).
            self._pong = (self.protocol.data_to_send() or [self._pong])[-1]
        else:
            super().send_data()

    def resume_writing(self) -> None:
        super().resume_writing()
        pong, self._pong = self._pong, None
        if pong is not None:
            self.transport.write(pong)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._giving_up is not None:
            self._giving_up.cancel()
        super().connection_lost(exc)


class WebSocketStream:
    """Frames over a WebSocket; a `modelwire.rpc.message_stream.MessageStream`.

    Args:
        wire: The open connection.
        name: What to call the server in errors.
        max_message: The longest message in bytes; for errors.
    """

    def __init__(self, wire: Wire, *, name: str, max_message: int) -> None:
        self.name = name
        self._wire = wire
        self._max_message = max_message
        self._problem: str | None = None
        self._unsent = 0

    async def receive(self) -> bytes | None:
        """Return the next message, or None once the server has closed and has no complaint.

        Raises:
            ConnectionLost: It closed for another reason, which the error names, or the connection broke.
        """
        try:
            message = await self._wire.recv()
        except ConnectionClosed:
            said = self._wire.protocol.close_rcvd
            if self._problem is None and said is not None and said.code == _DONE and not said.reason:
                return None
            raise self._lost() from None
        if isinstance(message, bytes):
            self._problem = f"{self.name} sent a binary frame, where messages are text frames; the WebSocket was closed"
            await self._close(_UNSUPPORTED_DATA, "messages are text frames, and this one is binary")
            raise self._lost()
        return message.encode()

    async def send(self, frame: bytes) -> None:
        """Queue a message; waits while more than 1 MiB is queued.

        Raises:
            ConnectionLost: The connection broke, or is closed.
        """
        if self._wire.state is State.CLOSED:
            raise self._lost()
        try:
            await self._wire.send(frame, text=True)
        except ConnectionClosed:
            raise self._lost() from None

    async def aclose(self) -> None:
        """Close the connection in order, within 2 seconds. May be called twice and from any task."""
        await self._close(_DONE, "")

    async def _close(self, code: int, reason: str) -> None:
        if self._wire.state is State.CLOSED:
            return
        try:
            async with asyncio.timeout(DRAIN_SECONDS + CLOSE_SECONDS):
                await self._wire.close(code, reason)
        except TimeoutError:
            self._wire.transport.abort()
            await self._wire.wait_closed()

    def _lost(self) -> ConnectionLost:
        return ConnectionLost(self._problem or _explained(self.name, self._wire, self._max_message))

    # ------------------------------------------------------------------ signs of life

    @property
    def blocked(self) -> bool:
        """Whether the server does not take what is queued for it."""
        return self._wire.transport.get_write_buffer_size() > 0

    def stirred(self) -> bool:
        """Whether the server gave a sign of life since this was asked last: it sent, or took what was waiting."""
        unsent = self._wire.transport.get_write_buffer_size()
        stirred = self._wire.stirred or unsent < self._unsent
        self._wire.stirred, self._unsent = False, unsent
        return stirred

    async def ping(self) -> None:
        """Ask for a sign of life. That it comes is told by `stirred`."""
        try:
            await self._wire.ping()
        except ConnectionClosed:
            return

    def fail(self, problem: str) -> None:
        """Give the connection up: `receive` and `send` raise ConnectionLost."""
        if self._wire.state is not State.CLOSED:
            self._problem = problem
            self._wire.transport.abort()


def _explained(name: str, wire: Wire, max_message: int) -> str:
    protocol: Any = wire.protocol
    received: Close | None = protocol.close_rcvd
    sent: Close | None = protocol.close_sent
    if received is not None and (sent is None or protocol.close_rcvd_then_sent):
        meaning = _MEANINGS.get(received.code)
        reason = f": {received.reason}" if received.reason else ""
        return f"the server closed the WebSocket: {received.code}{f' ({meaning})' if meaning else ''}{reason}"
    if sent is None:
        cause = wire.close_exc.__cause__
        return f"the connection to {name} broke{f': {cause}' if cause is not None and str(cause) else ''}"
    if sent.code == _TOO_LARGE:
        return f"{name} sent a message that is larger than max_message={max_message} bytes, or in too many fragments"
    if sent.code == _DONE:
        return "the WebSocket was closed"
    return f"{name} sent what is no WebSocket's ({sent.code}: {sent.reason}); the connection was closed"
