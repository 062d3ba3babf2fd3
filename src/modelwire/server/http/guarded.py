"""uvicorn's connections with bounds: who opens one and says nothing, too little or too much in headers is cut off.

uvicorn with httptools waits for the end of headers for ever, takes as many as come, and takes trailers for headers.
Bodies that are read are bounded by `modelwire.server.http.app`, those that nobody reads here, and so are clients that
take nothing of what they are sent. Only `modelwire.server.http.run` uses this; uvicorn is imported with it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sized
from typing import Any

from httptools import HttpRequestParser
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from modelwire.log import log as _log

HEADER_SECONDS = 30.0
"""Seconds that headers may take to arrive, and that a connection may stay without its first request."""
SEND_SECONDS = 60.0
"""Seconds that a client may take nothing of what waits to be sent to it."""
MAX_HEADER_BYTES = 64 << 10
MAX_HEADERS = 200
MOST_WAITING = 32
"""Requests of one connection that may wait behind the one that is being answered before no more are read."""
MOST_READ = 1024
"""Those that came in one piece with the last that may wait: who sends more than that is no client of ours."""
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 60\r\ncontent-type: text/plain\r\ncontent-length: 30\r\n"
    b"connection: close\r\n\r\nthere are too many connections"
)


class _TooLarge(Exception):
    pass


class _TooMany(Exception):
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
        line: The requests that wait for their turn: while they are many, no more are read.
    """

    __slots__ = ("_line", "_room", "_transport", "read_paused", "write_paused")

    def __init__(self, transport: Any, line: Sized) -> None:
        self._transport = transport
        self._line = line
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
        """Read again, if there is room in the line. Whenever one leaves it this is called anew."""
        if self.read_paused and len(self._line) < MOST_WAITING:
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


class _Endless(int):
    """The length of a response that has none, for uvicorn, which counts down from it and wants nothing left."""

    def __lt__(self, other: object) -> bool:
        return False

    def __ne__(self, other: object) -> bool:
        return False

    def __sub__(self, other: int) -> _Endless:
        return self


class Guarded(HttpToolsProtocol):
    """A connection."""

    # Beyond thirty attributes a dict is no longer shared with those of its kind, and costs a KiB and a half.
    __slots__ = (
        "_answering", "_before", "_data", "_partial", "_patience", "_seen", "_stuck", "_too_large", "_unsent"
    )  # fmt: skip

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.pipeline = _Line()  # type: ignore[assignment]
        self._patience: asyncio.TimerHandle | None = None
        self._stuck: asyncio.TimerHandle | None = None
        self._unsent = 0
        """Bytes that waited to be sent at the last look."""
        self._partial = True
        """Whether headers are awaited, or come."""
        self._data = b""
        """What is being read."""
        self._seen = 0
        """Bytes since the headers that come began, without what was read together with their first."""
        self._too_large = False
        self._answering: Any = None
        """The request that is being answered; others may wait behind it."""
        self._before: Any = None
        """What uvicorn took for the last request before one that offers an upgrade."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]
        self.flow = Flow(transport, self.pipeline)  # type: ignore[assignment]
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        self._take_no_more_looks()
        if self._answering is not None and not self._answering.response_complete:
            # uvicorn tells the last request of several; the one that is being answered would go on for ever.
            self._answering.disconnected = True
            self._answering.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._data = data
        self._seen += len(data)
        super().data_received(data)
        self._data, self._before = b"", None
        # Nearly always the headers came as a whole, and nothing has to be done.
        if self._partial and not self.transport.is_closing():
            if self._seen > MAX_HEADER_BYTES:
                self._refuse()
            elif self._patience is None:
                self._wait()
        elif self._patience is None and self.timeout_keep_alive_task is None and self._idle and not self._upgraded:
            self._wait()  # blank lines, or the rest of what was refused: uvicorn keeps who sends those for ever

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._partial = True
        self._seen = 0  # nobody knows how much of what is being read belongs to those before it

    def on_header(self, name: bytes, value: bytes) -> None:
        # What comes after the body is not looked at: no proxy has checked it, and there is no end to it. The rest is
        # what uvicorn does, without a call for each.
        if self._partial:
            name = name.lower()
            if name == b"expect" and value.lower() == b"100-continue":
                self.expect_100_continue = True
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._partial = False
        self._wait_no_more()
        if len(self.headers) > MAX_HEADERS or (
            self._seen + len(self._data) > MAX_HEADER_BYTES and self._size() > MAX_HEADER_BYTES
        ):
            self._too_large = True
            raise _TooLarge
        if len(self.pipeline) > MOST_READ:
            _log.warning("a client was cut off: more than %d of its requests wait for their turn", MOST_READ)
            self.transport.abort()
            raise _TooMany
        self._before = self.cycle
        self.begin()

    def begin(self) -> None:
        """Have the application told of a request whose headers are there."""
        super().on_headers_complete()
        parser: Any = self.parser
        if not (parser.should_upgrade() and self._should_upgrade()):
            self.cycle.message_event = _Signal()  # type: ignore[assignment]
            if self.scope["http_version"] == "1.0":
                # "A server MUST NOT send a response containing Transfer-Encoding unless the corresponding request
                # indicates HTTP/1.1" (RFC 9112, 6.1); there a response without a length ends with its connection.
                self.cycle.chunked_encoding = False
                self.cycle.expected_content_length = _Endless()

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        if not self.parser.should_upgrade() or cycle is not self.cycle:
            self._answering = cycle
            super()._start_asgi_task(cycle, app)

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection on, unless there are too many, or something on it is still to be answered."""
        most = self.limit_concurrency
        if not self._idle or self.pipeline:
            _log.warning("a client was cut off: it wants a WebSocket where its last request is not answered yet")
            self.transport.abort()
        elif most is not None and (len(self.connections) >= most or len(self.tasks) >= most):
            _log.warning("a WebSocket was refused: there are %d connections already", most)
            self.transport.write(_FULL)
            self.transport.close()
        else:
            self._take_no_more_looks()
            super().handle_websocket_upgrade()

    def _unsupported_upgrade_warning(self) -> None:
        """Go on as if no upgrade had been offered, with the body that the parser takes for the other protocol.

        "A server MAY ignore a received Upgrade header field if it wishes to continue using the current protocol" (RFC
        9110, 7.8). Java's client offers HTTP/2 with its first request, whatever that is.
        """
        offer: Any = sys.exception()
        rest = self._data[offer.args[0] :]
        if self.pipeline and self.pipeline[0][0] is self.cycle:
            del self.pipeline[0]
        self.cycle = self._before
        # What was to become a WebSocket is refused by the application, which has to know.
        dropped = b"connection" if self._get_upgrade() == b"websocket" else b"upgrade"
        kept = [(name, value) for name, value in self.headers if name != dropped]
        if len(kept) == len(self.headers):
            self.send_400_response("There is no tunnel here.")
            return
        head = [self.scope["method"].encode(), b" ", self.url, b" HTTP/1.1\r\n"]
        for name, value in kept:
            head += [name, b": ", value, b"\r\n"]
        self.parser = HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self.data_received(b"".join([*head, b"\r\n", rest]))

    def send_400_response(self, msg: str) -> None:
        if self._too_large:
            self._refuse()
        elif not self.transport.is_closing():
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
        if self._partial or self._idle:
            self.transport.abort()

    @property
    def _idle(self) -> bool:
        """Whether no request is being answered, nor read by whoever answers it."""
        last: Any = self.cycle  # None before the first one, whatever its type says
        return last is None or last.response_complete

    @property
    def _upgraded(self) -> bool:
        """Whether it is somebody else's connection now."""
        return self.transport.get_protocol() is not self

    # ------------------------------------------------------------------ clients that do not read

    def pause_writing(self) -> None:
        super().pause_writing()
        self._look_later()

    def resume_writing(self) -> None:
        self._take_no_more_looks()
        super().resume_writing()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing() and self.transport.get_write_buffer_size():
            self._look_later()

    def timeout_keep_alive_handler(self) -> None:
        if self.transport.get_write_buffer_size():
            self.transport.abort()  # to close is to wait for who does not read, without end
        super().timeout_keep_alive_handler()

    def _look_later(self) -> None:
        if self._stuck is None:
            self._unsent = self.transport.get_write_buffer_size()
            self._stuck = self.loop.call_later(SEND_SECONDS, self._look)

    def _look(self) -> None:
        self._stuck = None
        if self.transport.get_write_buffer_size() < self._unsent:
            self._look_later()
        else:
            _log.warning("a client was cut off: it has taken nothing of what it is sent for %g s", SEND_SECONDS)
            self.transport.abort()

    def _take_no_more_looks(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None
