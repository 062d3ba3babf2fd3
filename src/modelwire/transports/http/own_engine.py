"""HTTP/1.1 on asyncio's protocols and llhttp's parser (httptools): what a client uses where nothing else is asked for.

A call to a tool is one small POST and one small answer, and a library for everything costs several times what that
takes. What goes through a proxy, or with a client that was given, goes with that library instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
import zlib
from collections import deque
from typing import Any, cast
from urllib.parse import urlsplit

import httptools

from modelwire.rules.cookies import Cookies
from modelwire.transports.http.endpoint import Endpoint
from modelwire.transports.http.engine import CONNECT_SECONDS, KEPT_SECONDS, MOST, Broken, HeaderList
from modelwire.transports.http.trouble import broken_by
from modelwire.transports.socket_address import TcpAddress
from modelwire.transports.socket_connect import connect_first

HIGH_WATER = 1 << 18
"""Bytes of a body that wait to be taken above which nothing more is read."""
MAX_HEAD = 1 << 17
"""Bytes of the headers of a reply, and of whatever else is sent between two pieces of a body."""
PIECE = 1 << 18
"""The most bytes that are decompressed at once."""
_MEMBER = b"\x1f\x8b"
"""What a further part of a body in gzip begins with."""
LINGER = 0.5
"""Seconds in which a body of which enough is known may end, so that its connection can be used again."""
UNHEARD = 0.2
"""Seconds without use after which a connection is looked at before it is used again."""
WARY_SECONDS = 60.0
"""Seconds for which no connection is used again to a server that has hung up on one right after its answer.

Such a server does not say that it will (RFC 9112, 9.6), and whatever is sent meanwhile is lost.
"""
_DEAD_AFTER = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))
"""How TCP finds out that a server has gone without a word, while a stream is quiet."""
_GONE = "the server closed the connection without an answer"
_NO_HTTP = "what it answered is no HTTP"


class OwnEngine:
    """Sends requests to one server.

    Args:
        endpoint: The server.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        parts = urlsplit(endpoint.url)
        self._host = cast(str, parts.hostname)
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._tls = endpoint.options.tls
        self._loop = asyncio.get_running_loop()
        self._cookies = Cookies()
        self._heads: dict[tuple[str, str], str] = {}
        self._idle: list[_Connection] = []
        self._open: set[_Connection] = set()
        self._busy = 0
        """How many requests are under way of those that wait for each other."""
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._sweeper: asyncio.TimerHandle | None = None
        self._wary_until = 0.0
        self._closed = False

    async def send(self, method: str, url: str, headers: HeaderList, body: bytes | None, *, urgent: bool) -> _Reply:
        """Send a request; see `modelwire.transports.http.engine.Engine`."""
        if not urgent:
            if self._busy >= MOST:
                await self._room()
            else:
                self._busy += 1
        reply: _Reply | None = None
        try:
            connection = self._kept() or await self._connect()
            reply = _Reply(connection, self, urgent)
            connection.ask(reply, self._request(method, url, headers, body))
            await reply.head
        except BaseException:
            if reply is None:
                self._done(urgent)
            else:
                reply.close()
            raise
        return reply

    def _request(self, method: str, url: str, headers: HeaderList, body: bytes | None) -> bytes:
        start = self._heads.get((method, url))
        if start is None:
            parts = urlsplit(url)
            target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
            start = self._heads[method, url] = f"{method} {target} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        lines = [start, *[f"{name}: {value}\r\n" for name, value in headers]]
        cookies = self._cookies.header(self._loop.time()) if self._cookies.found else None
        if cookies:
            lines.append(f"Cookie: {cookies}\r\n")
        if body is None:
            lines.append("\r\n")
            return "".join(lines).encode()
        lines.append(f"Content-Length: {len(body)}\r\n\r\n")
        return "".join(lines).encode() + body

    async def _room(self) -> None:
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._done(urgent=False)  # the place that it was just given
            raise

    def _done(self, urgent: bool) -> None:
        """Note that a request is over; its place goes to the next one."""
        if urgent:
            return
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self._busy -= 1

    # ------------------------------------------------------------------ connections

    def _kept(self) -> _Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.usable and not connection.has_news(self._loop.time()):
                return connection
            connection.transport.abort()
        return None

    async def _connect(self) -> _Connection:
        if self._closed:
            raise Broken("the client was closed", unsent=True)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                # Not the loop's own race of addresses: one that is cancelled may forget the socket that has won it.
                found = await connect_first(TcpAddress(self._host, self._port))
                _, connection = await self._loop.create_connection(
                    lambda: _Connection(self),
                    sock=found,
                    ssl=self._tls,
                    server_hostname=self._host if self._tls is not None else None,
                )
        except TimeoutError:
            raise Broken("it could not be reached in time", unsent=True, hint="is it behind a firewall?") from None
        except (OSError, ValueError) as error:
            raise broken_by(error, connecting=True) from error
        return connection

    def opened(self, connection: _Connection) -> None:
        """Note a connection that is there."""
        self._open.add(connection)

    def lost(self, connection: _Connection, *, unanswered: bool) -> None:
        """Note that a connection is gone, and whether a request was on it of which nothing was answered."""
        self._open.discard(connection)
        now = self._loop.time()
        if unanswered and connection.since and now - connection.since < UNHEARD:
            self._wary_until = now + WARY_SECONDS

    def free(self, connection: _Connection) -> None:
        """Keep a connection for the next request."""
        connection.since = self._loop.time()
        if self._closed or len(self._idle) >= MOST or connection.since < self._wary_until:
            connection.transport.close()
            return
        self._idle.append(connection)
        if self._sweeper is None:
            self._sweeper = self._loop.call_later(KEPT_SECONDS, self._sweep)

    def _sweep(self) -> None:
        """Close what nobody has used for a while."""
        oldest = self._loop.time() - KEPT_SECONDS
        for connection in self._idle:
            if connection.since <= oldest:
                connection.transport.close()
        self._idle = [connection for connection in self._idle if connection.since > oldest and connection.usable]
        self._sweeper = self._loop.call_later(KEPT_SECONDS, self._sweep) if self._idle else None

    def remember(self, cookie: str) -> None:
        """Take a ``Set-Cookie`` header."""
        self._cookies.take(cookie, self._loop.time())

    async def aclose(self) -> None:
        """Close every connection."""
        self._closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        for connection in [*self._open]:
            connection.transport.abort() if connection.reply is not None else connection.transport.close()
        gone = [connection.gone for connection in self._open]
        if gone:
            await asyncio.wait(gone, timeout=1.0)
        for connection in [*self._open]:
            connection.transport.abort()

    def release(self) -> None:
        """Close the sockets; the event loop has ended."""
        for connection in self._open:
            with contextlib.suppress(Exception):
                found = connection.transport.get_extra_info("socket")
                getattr(found, "_sock", found).close()


class _Connection(asyncio.Protocol):
    """One connection, with one request at a time."""

    __slots__ = ("_engine", "_head", "_headers", "_parser", "gone", "reply", "since", "transport")

    def __init__(self, engine: OwnEngine) -> None:
        self._engine = engine
        self._parser: Any = httptools.HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._head = 0
        self.reply: _Reply | None = None
        self.since = 0.0
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def usable(self) -> bool:
        """Whether a request can be sent."""
        return not self.transport.is_closing()

    def has_news(self, now: float) -> bool:
        """Whether something came while nobody asked for anything, which can only be the end.

        The event loop may not have had the time to notice it, and what is sent then is lost.
        """
        if now - self.since < UNHEARD:
            return False
        found = select.poll()
        found.register(self.transport.get_extra_info("socket").fileno(), select.POLLIN)
        return bool(found.poll(0))

    def ask(self, reply: _Reply, request: bytes) -> None:
        """Send a request, to which ``reply`` will be the reply."""
        self.reply = reply
        self._head = 0
        self.transport.write(request)

    # ------------------------------------------------------------------ asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        found = transport.get_extra_info("socket")
        with contextlib.suppress(OSError, AttributeError):
            found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in _DEAD_AFTER:
                if hasattr(socket, name):
                    found.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        self._engine.opened(self)

    def data_received(self, data: bytes) -> None:
        reply = self.reply
        if reply is None:  # nobody has asked for anything
            self.transport.abort()
            return
        self._head += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserCallbackError) as error:
            reply.broke(Broken(f"{_NO_HTTP}: {error}"))
            self.transport.abort()
        except httptools.HttpParserUpgrade:
            reply.broke(Broken("it wants to speak another protocol"))
            self.transport.abort()
        if self._head > MAX_HEAD and self.reply is reply:
            reply.broke(Broken("the headers of its answer are too large"))
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        reply, self.reply = self.reply, None
        if reply is not None:
            reply.ended_by(exc)
        self._engine.lost(self, unanswered=reply is not None and not reply.status)
        if not self.gone.done():
            self.gone.set_result(None)

    # ------------------------------------------------------------------ httptools

    def on_message_begin(self) -> None:
        if self.reply is None:  # a second answer to one request: whose the next one is, nobody knows
            self.transport.abort()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.reply is None or self.reply.status:
            return  # a trailer, which says nothing that matters here
        key = name.decode("latin-1").lower()
        text = value.decode("latin-1")
        if key == "set-cookie":
            self._engine.remember(text)
            return
        known = self._headers.get(key)
        self._headers[key] = text if known is None else f"{known}, {text}"

    def on_headers_complete(self) -> None:
        headers, self._headers = self._headers, {}
        status = self._parser.get_status_code()
        if status >= 200 and self.reply is not None:
            self._head = 0
            self.reply.begun(status, headers)

    def on_body(self, body: bytes) -> None:
        self._head = 0
        if self.reply is not None:
            self.reply.fed(body)

    def on_message_complete(self) -> None:
        reply = self.reply
        if reply is None or not reply.status:
            return  # of an interim response, such as 103
        self.reply = None
        keeps = self._parser.should_keep_alive()
        reply.complete()
        if keeps and self.usable:
            self._engine.free(self)
        else:
            self.transport.close()


class _Reply:
    """The reply to one request."""

    __slots__ = (
        "_connection", "_encoding", "_engine", "_error", "_headers", "_held", "_lingering", "_over", "_paused",
        "_pieces", "_size", "_unpacker", "_urgent", "_waiter", "head", "status",
    )  # fmt: skip

    def __init__(self, connection: _Connection, engine: OwnEngine, urgent: bool) -> None:
        self._connection = connection
        self._engine = engine
        self._urgent = urgent
        self._held = True
        """Whether it takes one of the places of requests that are under way."""
        self.head: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.status = 0
        self._headers: dict[str, str] = {}
        self._pieces: list[bytes] = []
        self._size = 0
        self._paused = False
        self._over = False
        self._error: Broken | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._unpacker: Any = None
        self._encoding = ""
        self._lingering: asyncio.TimerHandle | None = None

    def header(self, name: str) -> str | None:
        return self._headers.get(name)

    async def chunk(self) -> bytes:
        if self._unpacker is not None or self._encoding:
            return await self._unpacked()
        return await self._packed()

    async def _packed(self) -> bytes:
        while not self._pieces:
            if self._error is not None:
                raise self._error
            if self._over:
                return b""
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        pieces, self._pieces = self._pieces, []
        self._size = 0
        if self._paused:
            self._paused = False
            self._connection.transport.resume_reading()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def _unpacked(self) -> bytes:
        while True:
            over = self._unpacker is not None and self._unpacker.eof
            rest = b"" if self._unpacker is None else self._unpacker.unconsumed_tail or self._unpacker.unused_data
            if rest:
                await asyncio.sleep(0)  # a little that came may be a lot, and others want their turn
            packed = rest or await self._packed()
            if not packed or (over and not packed.startswith(_MEMBER)):
                return b""
            if over:
                self._unpacker = None
            try:
                if self._unpacker is None:
                    # Some say deflate and mean the bare form; the other begins with these four bits.
                    bare = self._encoding == "deflate" and packed[0] & 15 != 8
                    self._unpacker = zlib.decompressobj(-zlib.MAX_WBITS if bare else 32 + zlib.MAX_WBITS)
                found = self._unpacker.decompress(packed, PIECE)
            except zlib.error as error:
                raise Broken(f"its answer could not be decompressed: {error}") from None
            if found:
                return found

    def finish(self) -> None:
        """Let go of it once enough is known: its end is waited for, for a moment, by nobody in particular."""
        if not self._over and self._error is None and self._lingering is None:
            self._lingering = asyncio.get_running_loop().call_later(LINGER, self.close)
            self._size = 0
            if self._paused:
                self._connection.transport.resume_reading()
        self._let_go()

    def close(self) -> None:
        """Let go of it; a connection on which more may come is closed."""
        if not self._over:
            self._over = True
            if self._connection.reply is self:
                self._connection.reply = None
                self._connection.transport.abort()
        self._let_go()

    def _let_go(self) -> None:
        if self._held:
            self._held = False
            self._engine._done(self._urgent)  # pyright: ignore[reportPrivateUsage]

    # ------------------------------------------------------------------ the connection's

    def begun(self, status: int, headers: dict[str, str]) -> None:
        """The head is there."""
        self.status = status
        self._headers = headers
        encoding = headers.get("content-encoding", "").strip().lower()
        if encoding in ("gzip", "x-gzip", "deflate"):
            self._encoding = encoding
        if not self.head.done():
            self.head.set_result(None)

    def fed(self, piece: bytes) -> None:
        """A piece of the body is there."""
        if self._lingering is not None:
            self._size += len(piece)
            if self._size > HIGH_WATER:
                self.close()
            return
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size > HIGH_WATER and not self._paused:
            self._paused = True
            self._connection.transport.pause_reading()
        self._wake()

    def complete(self) -> None:
        """The body is there as a whole."""
        self._over = True
        if self._lingering is not None:
            self._lingering.cancel()
        self._let_go()
        self._wake()

    def broke(self, error: Broken) -> None:
        """There will be no more of it."""
        if self._lingering is not None:
            self._lingering.cancel()
        if self._over or self._error is not None:
            return
        self._error = error
        if not self.head.done():
            self.head.set_exception(error)
            self.head.exception()
        self._wake()

    def ended_by(self, exc: Exception | None) -> None:
        """The connection has ended."""
        if not self.status:
            self.broke(Broken(_GONE) if exc is None else broken_by(exc, connecting=False))
        elif exc is None and not ({"content-length", "transfer-encoding"} & self._headers.keys()):
            self.complete()  # its end was to be the end of the body
        else:
            self.broke(Broken("the answer broke off"))

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
