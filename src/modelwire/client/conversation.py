"""One open conversation with a server: its stream, its connection, what the opening came to.

It opens, sends requests in the form that the revision wants, hands on what the server says, and closes. It knows
methods only by their rows; what they are for is the client's business.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec import UNSET, Raw

from modelwire.client.connect import Opened, Opener
from modelwire.client.targets import Target
from modelwire.errors import ConnectionFailed, ConnectionLost, ProtocolViolation, ServerExited, peer_error
from modelwire.protocol import types as t
from modelwire.protocol import wire
from modelwire.protocol.jsonrpc import ErrorResponse, Notification
from modelwire.protocol.meta import LOG_LEVEL
from modelwire.protocol.methods import METHODS, Method
from modelwire.rpc.call import Call
from modelwire.rpc.connection import Connection
from modelwire.rpc.dispatcher import Dispatcher, Route
from modelwire.rpc.message_stream import MessageStream
from modelwire.rpc.observer import Observer
from modelwire.rpc.stream import Link
from modelwire.rules.pending import OnProgress
from modelwire.rules.session import Peer, Session
from modelwire.transports.process import ProcessStream

_log = logging.getLogger("modelwire")


class Conversation:
    """A conversation, from opening to closing.

    Args:
        target: What to open.
        opener: How.
        handlers: Who answers the server's requests, by method; called with ``(params, call)``.
        hear: Called with every notification.
        lost: Called once when the conversation ends by itself.
        observers: Who watches the frames.
    """

    def __init__(
        self,
        target: Target,
        opener: Opener,
        *,
        handlers: Mapping[str, Callable[[dict[str, Any], Call], Any]],
        hear: Callable[[Notification], None],
        lost: Callable[[Exception], None],
        observers: Sequence[Observer],
    ) -> None:
        self._target = target
        self._opener = opener
        self._hear = hear
        self._lost = lost
        self._observers = observers
        self._dispatcher = Dispatcher(_routes(handlers), self._notice, stray_error=self._stray_error)
        self._link: Link | None = None
        self._reading: asyncio.Task[None] | None = None
        self._closing = False
        self._opened: Opened | None = None
        self.log_level: t.LoggingLevel | None = None
        """The level that each request asks for, where the revision has it so."""

    # ------------------------------------------------------------------ opening

    async def open(self, timeout: float) -> Opened:
        """Open the conversation.

        Args:
            timeout: Seconds that it may take, all attempts together.

        Raises:
            ConnectionFailed: It could not be opened.
            ServerExited: The server's process ended.
            RequestTimeout: It took too long.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout
        try:
            return await self._attempt(timeout)
        except ServerExited:
            if self._opener.legacy or not self._target.can_restart:
                raise
            # A server of the handshake era may end on a request that it does not know.
            _log.info("%s ended on server/discover; starting it again for initialize", self._target)
            self._opener.legacy = True
            await self.close()
            self._closing = False
            return await self._attempt(max(until - loop.time(), 1.0))

    async def _attempt(self, timeout: float) -> Opened:
        stream = await self._target.open()
        session = Session()
        self._link = link = Link(
            stream, self._dispatcher, session=session, observers=self._observers, answers_invalid=False
        )
        self._reading = asyncio.create_task(self._read(link, stream))
        try:
            opened = await self._opener.open(link.connection, timeout)
        except ConnectionLost as error:
            raise _at_start(error) from None
        self._opened = opened
        revision = opened.revision
        session.peer = Peer(revision, opened.info)
        link.connection.batching = revision.batching
        link.connection.answers_requests = revision.server_requests
        return opened

    async def _read(self, link: Link, stream: MessageStream) -> None:
        why: Exception
        try:
            await link.run()
            why = _how_it_ended(stream)
        except ConnectionLost as error:
            why = error
        except Exception as error:
            _log.exception("reading from %s failed", self._target)
            why = ConnectionLost(f"reading failed: {error}")
        link.connection.end(why)
        if not self._closing and self._opened is not None:
            self._lost(why)

    # ------------------------------------------------------------------ requests

    @property
    def opened(self) -> Opened:
        """What the opening came to.

        Raises:
            ConnectionFailed: The conversation is not open.
        """
        if self._opened is None:
            raise ConnectionFailed("the client is not connected; use `async with client:` or `await client.connect()`")
        return self._opened

    @property
    def connected(self) -> bool:
        """Whether requests can be sent."""
        return self._opened is not None and self._link is not None and self._link.connection.ended is None

    @property
    def process(self) -> ProcessStream | None:
        """The server's process, where it is one."""
        stream = None if self._link is None else self._link.stream
        return stream if isinstance(stream, ProcessStream) else None

    async def request(
        self,
        method: str,
        params: Any = None,
        *,
        timeout: float | None,
        max_timeout: float | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
        on_sent: Callable[[int], None] | None = None,
    ) -> Raw:
        """Send a request in the form of the revision; return the raw result. See `Connection.request`."""
        encoded = self._encoded(params, meta)
        return await self._connection().request(
            method, encoded, timeout=timeout, max_timeout=max_timeout, on_progress=on_progress, on_sent=on_sent
        )

    def notify(self, method: str, params: Any = None) -> None:
        """Send a notification."""
        encoded = None if params is None else wire.encode_params(params, self.opened.revision)
        self._connection().notify(method, encoded)

    def decode(self, raw: Raw, method: Method | None) -> t.Received:
        """Return a result, typed.

        Raises:
            ProtocolViolation: The server broke a rule.
        """
        try:
            return wire.decode_result(raw, method, self.opened.revision)
        except wire.WireError as error:
            name = "a request" if method is None else method.name
            raise ProtocolViolation(f"the answer to {name} is invalid: {error}", bytes(raw)) from None

    def _encoded(self, params: Any, meta: Mapping[str, Any] | None) -> bytes | None:
        revision = self.opened.revision
        encoded = b"{}" if params is None else wire.encode_params(params, revision)
        added: dict[str, Any] = dict(meta or {})
        if not revision.handshake:
            added.update(self._opener.request_meta(revision))
            if self.log_level is not None:
                added[LOG_LEVEL] = self.log_level
        if added:
            encoded = wire.with_meta(encoded, added)
        return None if encoded == b"{}" else encoded

    def _connection(self) -> Connection:
        self.opened  # noqa: B018 - says that the client is not connected, if so
        assert self._link is not None
        return self._link.connection

    # ------------------------------------------------------------------ hearing

    def follow(self, told: Any) -> None:
        """Run a callback that turned out to be async."""
        self._connection().follow(told)

    def _notice(self, connection: Connection, notification: Notification) -> None:
        self._hear(notification)

    def _stray_error(self, connection: Connection, error: ErrorResponse) -> None:
        self._opener.stray_error(peer_error(error.code, error.message, error.data))

    # ------------------------------------------------------------------ closing

    async def close(self, goodbye: bool = False) -> None:
        """Close the conversation. May be called twice and from any task.

        Args:
            goodbye: Send ``shutdown`` and ``exit`` first, which tutorials teach; handshake revisions only.
        """
        if goodbye and self.connected and self.opened.revision.handshake:
            await self._say_goodbye()
        self._closing = True
        link, reading = self._link, self._reading
        if link is not None:
            await link.aclose()
        if reading is not None and reading is not asyncio.current_task():
            reading.cancel()
            await asyncio.wait([reading])
        await self._target.closed()

    async def _say_goodbye(self) -> None:
        connection = self._connection()
        try:
            await connection.request("shutdown", None, timeout=2.0, cancellable=False)
            connection.notify("exit")
            assert self._link is not None
            await asyncio.wait_for(self._link.flushed(), 1.0)
        except Exception as error:
            _log.debug("the polite shutdown was not answered: %s", error)


def _routes(handlers: Mapping[str, Callable[[dict[str, Any], Call], Any]]) -> dict[str, Route]:
    routes = {"ping": Route(METHODS["ping"], lambda call: {}, t.RequestParams, immediate=True)}
    for name, handler in handlers.items():
        row = METHODS.get(name) or Method(name, t.RequestParams, t.Result, "server")
        routes[name] = Route(row, _handle(handler), None)
    return routes


def _handle(handler: Callable[[dict[str, Any], Call], Any]) -> Callable[[Call], Any]:
    async def handle(call: Call) -> Any:
        params = cast("dict[str, Any]", msgspec.json.decode(call.params)) if call.params is not UNSET else {}
        return await handler(params, call)

    return handle


def _how_it_ended(stream: MessageStream) -> ConnectionLost:
    if isinstance(stream, ProcessStream):
        code = stream.exit_code
        how = (
            "closed its output"
            if code is None
            else f"exited with code {code}"
            if code >= 0
            else f"died of signal {-code}"
        )
        return ServerExited(f"the server {how}", exit_code=code, stderr=stream.stderr_tail())
    return ConnectionLost("the server closed the connection")


def _at_start(error: ConnectionLost) -> ConnectionLost:
    if isinstance(error, ServerExited):
        return error
    return ConnectionLost(f"{error} while the conversation was being opened")
