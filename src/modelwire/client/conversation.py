"""One open conversation with a server: its stream, its connection, what the opening came to.

It opens, sends requests in the form that the revision wants, hands on what the server says, and closes. It knows
methods only by their rows; what they are for is the client's business.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec import UNSET, Raw

from modelwire.client.connect import Opened, Opener
from modelwire.client.hearing import Hearing
from modelwire.client.targets import Target
from modelwire.errors import (
    ConfigError,
    ConnectionFailed,
    ConnectionLost,
    PeerError,
    ProtocolViolation,
    RequestTimeout,
    ServerExited,
    peer_error,
)
from modelwire.log import log as _log
from modelwire.protocol import types as t
from modelwire.protocol import wire
from modelwire.protocol.jsonrpc import ErrorResponse, Notification
from modelwire.protocol.meta import LOG_LEVEL
from modelwire.protocol.methods import METHODS, Method
from modelwire.protocol.revisions import Revision
from modelwire.rpc.call import Call
from modelwire.rpc.connection import Connection, lost
from modelwire.rpc.dispatcher import Dispatcher, Route
from modelwire.rpc.message_stream import MessageStream
from modelwire.rpc.observer import Observer
from modelwire.rpc.stream import Link
from modelwire.rules.pending import OnProgress
from modelwire.rules.session import Peer, Session
from modelwire.transports.process import ProcessStream

FLUSH_SECONDS = 1.0
"""How long closing lets the stream take what was sent before."""
CLOSE_SECONDS = 10.0
"""How long closing waits for a stream; one to a process takes at most half of it."""
SHUTDOWN_SECONDS = 2.0
"""How long a polite shutdown waits for the answer."""
CALLBACK_SECONDS = 1.0
"""How long closing waits for async callbacks that still run."""

Handler = Callable[[dict[str, Any]], Any]
"""Answers one of the server's requests; may be async."""


class Conversation:
    """A conversation, from opening to closing. It can be opened again once it has ended.

    Args:
        target: What to open.
        opener: How.
        handlers: Who answers the server's requests, by method.
        hearing: Told of every notification, and when the conversation ends by itself.
        observers: Who watches the frames.
    """

    def __init__(
        self,
        target: Target,
        opener: Opener,
        *,
        handlers: Mapping[str, Handler],
        hearing: Hearing,
        observers: Sequence[Observer],
    ) -> None:
        self._target = target
        self._opener = opener
        self._hearing = hearing
        self._observers = observers
        self._dispatcher = Dispatcher(_routes(handlers), self._notice, stray_error=self._stray_error)
        self._link: Link | None = None
        self._reading: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()
        self._opened: Opened | None = None
        self._closing: asyncio.Task[None] | None = None
        self._closed = False
        """Set when somebody has asked for the end; an opening that is under way then stops."""
        self._closers: set[asyncio.Task[Any] | None] = set()
        self.log_level: t.LoggingLevel | None = "info" if hearing.wants_logs else None
        """The level that each request asks for, where the revision has it so."""
        self._stamp: tuple[t.LoggingLevel | None, dict[str, Any]] | None = None

    # ------------------------------------------------------------------ opening

    async def open(self, timeout: float | None) -> None:
        """Open the conversation, unless it is open.

        Args:
            timeout: Seconds that it may take, all attempts together.

        Raises:
            ConnectionFailed: It could not be opened.
            ConnectionLost: It ended meanwhile; `ServerExited` when the server's process did.
            RequestTimeout: It took too long.
        """
        async with self._opening:
            if self.connected:
                return
            await self.close()
            self._closed = False
            self._opened = self._stamp = None
            try:
                await self._open(timeout)
            except BaseException:
                self._opener.forget()
                await self.close()
                raise

    async def _open(self, timeout: float | None) -> None:
        loop = asyncio.get_running_loop()
        until = None if timeout is None else loop.time() + timeout
        try:
            return await self._attempt(timeout)
        except ServerExited:
            if self._closed or not (self._opener.may_fall_back and self._target.can_restart):
                raise
        # A server of the handshake era may end on a request that it does not know.
        _log.info("%s ended on server/discover; starting it again for initialize", self._target)
        await self._release()
        self._opener.legacy = True
        await self._attempt(None if until is None else max(until - loop.time(), 1.0))

    async def _attempt(self, timeout: float | None) -> None:
        stream = await self._target.open()
        if self._closed:
            await stream.aclose()
            raise ConnectionLost("the client was closed while the conversation was being opened")
        session = Session()
        self._link = link = Link(
            stream, self._dispatcher, session=session, observers=self._observers, answers_invalid=False
        )
        self._reading = asyncio.create_task(self._read(link, stream))
        try:
            opened = await self._opener.open(link.connection, timeout)
        except ConnectionLost as error:
            failed = await self._target.failed_to_serve()
            if failed is not None:
                raise failed from failed.__cause__
            raise await _at_start(error, stream) from None
        except RequestTimeout as late:
            raise _with_stderr(late, stream) from None
        revision = opened.revision
        session.peer = Peer(revision, opened.info)
        link.connection.batching = revision.batching
        link.connection.answers_requests = revision.server_requests
        self._opened = opened

    async def _read(self, link: Link, stream: MessageStream) -> None:
        why: Exception = ConnectionLost("reading was cancelled")
        try:
            await link.run()
            why = _how_it_ended(stream)
        except ConnectionLost as error:
            why = error
        except Exception as error:
            _log.exception("reading from %s failed", self._target)
            why = ConnectionLost(f"reading failed: {error!r}")
        finally:  # whatever ended the reading, what waits for an answer must hear of it
            link.connection.end(why)
            if not self._closed and self._opened is not None:
                self._hearing.lost(why)

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
        """Send a request in the form of the revision; return the raw result. See `Connection.request`.

        Raises:
            ConfigError: The parameters cannot be written as JSON.
        """
        connection = self._connection()
        encoded = self._encoded(method, params, meta)
        return await connection.request(
            method, encoded, timeout=timeout, max_timeout=max_timeout, on_progress=on_progress, on_sent=on_sent
        )

    def notify(self, method: str, params: Any = None) -> None:
        """Send a notification.

        Raises:
            ConnectionLost: The connection has ended.
            ConfigError: The parameters cannot be written as JSON.
        """
        connection = self._connection()
        if connection.ended is not None:
            raise lost(connection.ended, f"{method} was not sent")
        try:
            encoded = None if params is None else wire.encode_params(params, self.opened.revision)
        except wire.WireError as error:
            raise ConfigError(f"{method} was not sent: {error}") from None
        connection.notify(method, encoded)

    def decode(self, raw: Raw, method: Method) -> t.Received:
        """Return a result, typed.

        Raises:
            ProtocolViolation: The server broke a rule.
        """
        try:
            return wire.decode_result(raw, method, self.opened.revision)
        except wire.WireError as error:
            raise ProtocolViolation(f"the answer to {method.name} is invalid: {error}", bytes(raw)) from None

    def _encoded(self, method: str, params: Any, meta: Mapping[str, Any] | None) -> bytes | None:
        revision = self.opened.revision
        added = {} if revision.handshake else self._who_asks(revision)
        if meta:
            added = {**meta, **added}
        try:
            encoded = b"{}" if params is None else wire.encode_params(params, revision)
            if added:
                encoded = wire.with_meta(encoded, added)
        except wire.WireError as error:
            raise ConfigError(f"{method} was not sent: {error}") from None
        return None if encoded == b"{}" else encoded

    def _who_asks(self, revision: Revision) -> dict[str, Any]:
        """Return the ``_meta`` of every request, made once; it changes with the log level only."""
        if self._stamp is None or self._stamp[0] != self.log_level:
            level: dict[str, Any] = {} if self.log_level is None else {LOG_LEVEL: self.log_level}
            self._stamp = self.log_level, {**self._opener.request_meta(revision), **level}
        return self._stamp[1]

    def _connection(self) -> Connection:
        self.opened  # noqa: B018 - says that the client is not connected, if so
        assert self._link is not None
        connection = self._link.connection
        if connection.loop is not asyncio.get_running_loop():
            raise ConfigError("the client was connected in another event loop; connect it in the one that uses it")
        return connection

    # ------------------------------------------------------------------ hearing

    def _notice(self, connection: Connection, notification: Notification) -> None:
        self._hearing.hear(connection, notification)

    def _stray_error(self, connection: Connection, error: ErrorResponse) -> None:
        self._opener.stray_error(peer_error(error.code, error.message, error.data))

    # ------------------------------------------------------------------ closing

    async def close(self, goodbye: bool = False) -> None:
        """Close the conversation. May be called twice and from any task; a caller that is cancelled does not stop it.

        Args:
            goodbye: Send ``shutdown`` and ``exit`` first, which tutorials teach; handshake revisions only.
        """
        self._closed = True
        if self._link is None:
            return
        if self._closing is None or self._closing.done():
            self._closing = asyncio.create_task(self._close(goodbye))
        closer = asyncio.current_task()
        self._closers.add(closer)
        try:
            await asyncio.shield(self._closing)
        finally:
            self._closers.discard(closer)

    async def _close(self, goodbye: bool) -> None:
        if goodbye and self.connected and self.opened.revision.handshake:
            await self._say_goodbye()
        await self._release()

    async def _release(self) -> None:
        """Let go of everything that the last attempt holds."""
        link, reading = self._link, self._reading
        if link is None or reading is None:
            return
        if link.connection.ended is None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(link.flushed(), FLUSH_SECONDS)
        try:
            await asyncio.wait_for(link.aclose(), CLOSE_SECONDS)
        except TimeoutError:
            _log.warning("%s did not let itself be closed within %g s; it was left", self._target, CLOSE_SECONDS)
        except Exception:
            _log.exception("closing the stream to %s failed", self._target)
        reading.cancel()
        await asyncio.wait([reading])
        await link.connection.settle_callbacks(CALLBACK_SECONDS, self._closers)
        await self._target.closed()

    async def _say_goodbye(self) -> None:
        connection = self._connection()
        try:
            await connection.request("shutdown", None, timeout=SHUTDOWN_SECONDS, cancellable=False)
        except (PeerError, RequestTimeout, ProtocolViolation) as error:
            _log.debug("the polite shutdown was not answered as it should be: %s", error)
        except ConnectionLost:
            return
        connection.notify("exit")


def _routes(handlers: Mapping[str, Handler]) -> dict[str, Route]:
    routes = {"ping": Route(METHODS["ping"], lambda call: {}, t.RequestParams, immediate=True)}
    for name, handler in handlers.items():
        row = METHODS.get(name) or Method(name, t.RequestParams, t.Result, "server")
        routes[name] = Route(row, _handle(handler), None)
    return routes


def _handle(handler: Handler) -> Callable[[Call], Any]:
    async def handle(call: Call) -> Any:
        params = cast("dict[str, Any]", msgspec.json.decode(call.params)) if call.params is not UNSET else {}
        result = handler(params)
        return await result if inspect.isawaitable(result) else result

    return handle


def _how_it_ended(stream: MessageStream) -> ConnectionLost:
    if isinstance(stream, ProcessStream):
        return ServerExited(
            f"the server {_exit(stream.exit_code)}", exit_code=stream.exit_code, stderr=stream.stderr_tail()
        )
    return ConnectionLost("the server closed the connection")


def _exit(code: int | None) -> str:
    if code is None:
        return "closed its output"
    return f"exited with code {code}" if code >= 0 else f"died of signal {-code}"


async def _at_start(error: ConnectionLost, stream: MessageStream) -> ConnectionLost:
    """Say how the server ended, also when the first sign of it was that it no longer takes what we send."""
    if isinstance(error, ServerExited):
        return _with_hint(error)
    if isinstance(stream, ProcessStream):
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stream.wait_exit(), FLUSH_SECONDS)
        if stream.exit_code is not None:
            return _with_hint(
                ServerExited(
                    f"the server {_exit(stream.exit_code)} while the conversation was being opened",
                    exit_code=stream.exit_code,
                    stderr=stream.stderr_tail(),
                )
            )
    return ConnectionLost(f"{error} while the conversation was being opened")


_MISSING_VARIABLE = re.compile(r"KeyError: '(\w+)'")


def _with_hint(error: ServerExited) -> ServerExited:
    """Add what people most often forget, where the end of the server looks like it."""
    if error.exit_code == 0:
        return error.hinted("it ended without serving: does it call server.run()?")
    for name in _MISSING_VARIABLE.findall(error.stderr):
        if name in os.environ:
            return error.hinted(f"a server gets a minimal environment; hand {name} on with pass_env=[{name!r}] or env=")
    return error


def _with_stderr(late: RequestTimeout, stream: MessageStream) -> RequestTimeout:
    tail = stream.stderr_tail().strip() if isinstance(stream, ProcessStream) else ""
    if not tail:
        return late
    heard = [*late.heard, f"the server wrote to stderr: {tail[-2000:]}"]
    return RequestTimeout(late.method, late.seconds, heard, late.setting)
