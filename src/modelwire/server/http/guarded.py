"""uvicorn's connections with bounds: who opens one and says nothing, too little or too much in headers is cut off.

uvicorn with httptools waits for the end of headers for ever, and takes as many as come. Bodies are bounded by
`modelwire.server.http.app`. Only `modelwire.server.http.run` uses this; uvicorn is imported with it.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from modelwire.log import log as _log

HEADER_SECONDS = 30.0
"""Seconds that headers may take to arrive, and that a connection may stay without its first request."""
MAX_HEADER_BYTES = 64 << 10
MAX_HEADERS = 200
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class _TooLarge(Exception):
    pass


class _Line(list[Any]):
    """Requests that wait for their turn. There hardly ever are any, and an empty list is a tenth of an empty deque."""

    def appendleft(self, item: Any) -> None:
        self.insert(0, item)


class _Signal:
    """What tells an application of news from its client: an `asyncio.Event`, at a tenth of its size."""

    __slots__ = ("_set", "_waiting")

    def __init__(self) -> None:
        self._set = False
        self._waiting: tuple[asyncio.Future[None], ...] = ()

    def set(self) -> None:
        """Let whoever waits go on."""
        self._set = True
        waiting, self._waiting = self._waiting, ()
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)

    def clear(self) -> None:
        """Have them wait from now on."""
        self._set = False

    async def wait(self) -> None:
        """Wait until it is set."""
        if not self._set:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting = (*self._waiting, waiter)
            await waiter


class Flow:
    """Whether a connection may be read and written: what uvicorn's own does, at a tenth of its size.

    Args:
        transport: The connection's.
    """

    __slots__ = ("_room", "_transport", "read_paused", "write_paused")

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self.read_paused = self.write_paused = False
        self._room: asyncio.Future[None] | None = None

    async def drain(self) -> None:
        """Wait until more may be written."""
        while self.write_paused:
            if self._room is None:
                self._room = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._room)

    def pause_reading(self) -> None:
        """Read no more."""
        if not self.read_paused:
            self.read_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        if self.read_paused:
            self.read_paused = False
            self._transport.resume_reading()

    def pause_writing(self) -> None:
        """Have whoever writes wait."""
        self.write_paused = True

    def resume_writing(self) -> None:
        """Let them go on."""
        self.write_paused = False
        if self._room is not None:
            self._room.set_result(None)
            self._room = None


class Guarded(HttpToolsProtocol):
    """A connection."""

    # Beyond thirty attributes a dict is no longer shared with those of its kind, and costs a KiB and a half.
    __slots__ = ("_chunk", "_partial", "_patience", "_seen", "_too_large")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.pipeline = _Line()  # type: ignore[assignment]
        self._patience: asyncio.TimerHandle | None = None
        self._partial = True
        """Whether headers are awaited, or come."""
        self._chunk = self._seen = 0
        self._too_large = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]
        self.flow = Flow(transport)  # type: ignore[assignment]
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._chunk = len(data)
        self._seen += self._chunk
        super().data_received(data)
        # Nearly always the headers came as a whole, and nothing has to be done.
        if self._partial and not self.transport.is_closing():
            if self._seen > MAX_HEADER_BYTES:
                self._refuse()
            elif self._patience is None:
                self._wait()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._partial = True
        self._seen = self._chunk

    def on_headers_complete(self) -> None:
        self._partial = False
        self._wait_no_more()
        if len(self.headers) > MAX_HEADERS or (self._seen > MAX_HEADER_BYTES and self._size() > MAX_HEADER_BYTES):
            self._too_large = True
            raise _TooLarge
        self.begin()

    def begin(self) -> None:
        """Have the application told of a request whose headers are there."""
        super().on_headers_complete()
        parser: Any = self.parser
        if not (parser.should_upgrade() and self._should_upgrade()):
            self.cycle.message_event = _Signal()  # type: ignore[assignment]

    def send_400_response(self, msg: str) -> None:
        if self._too_large:
            self._refuse()
        else:
            super().send_400_response(msg)

    def _size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) for name, value in self.headers)

    def _refuse(self) -> None:
        _log.warning("a request was refused: its headers are larger than %d bytes, or too many", MAX_HEADER_BYTES)
        self.transport.write(_TOO_LARGE)
        self.transport.close()

    def _wait(self) -> None:
        self._patience = self.loop.call_later(HEADER_SECONDS, self._cut_off)

    def _wait_no_more(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _cut_off(self) -> None:
        self._patience = None
        if self._partial:
            self.transport.abort()
