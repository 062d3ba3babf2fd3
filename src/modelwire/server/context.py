"""`Context`: what a handler knows of its request, and what it may say while the request is open.

Every method may be called from any thread, returns at once, and does nothing once the request is over.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from modelwire.errors import ConfigError, ProtocolViolation
from modelwire.log import log as _log
from modelwire.protocol import wire
from modelwire.protocol.jsonrpc import IdKey
from modelwire.protocol.methods import METHODS
from modelwire.protocol.revisions import LATEST, Revision
from modelwire.protocol.types import (
    LOGGING_LEVELS,
    LoggingLevel,
    LoggingMessageNotificationParams,
    Received,
    RequestParams,
)
from modelwire.rpc.call import Call
from modelwire.rules.session import Peer
from modelwire.server.asks import Asks, on_loop

if TYPE_CHECKING:
    from modelwire.server.http.exchange import HttpRequest

# "State that needs to span multiple requests [...] MUST be referenced by an explicit identifier the client passes on
# each request"; "a server must not treat connection or process identity as a proxy for conversation or session
# continuity" (2026-07-28, basic/index, Statelessness)
_NO_STATE = (
    "{revision} is stateless and has no ctx.state: a connection is no session there. Return an identifier of what is "
    "to be kept, and take it as an argument of later calls; what all clients share belongs into Server(lifespan=...)"
)
_SEVERITY = {level: rank for rank, level in enumerate(LOGGING_LEVELS)}


class Context(Asks):
    """The request that a handler is answering. A parameter annotated ``Context`` receives it.

    Example:
        ```
        @server.tool
        async def build(ctx: Context) -> str:
            for step in range(10):
                ctx.progress(step + 1, 10, f"step {step + 1}")
            ctx.log.info("built")
            return "done"
        ```
    """

    __slots__ = ("_expired", "arguments")

    def __init__(self, call: Call) -> None:
        self._first = call
        self._expired: str | None = None
        self.arguments: dict[str, Any] = {}
        """The arguments by parameter, while a function's other parameters are filled; for the server's own use."""

    @property
    def log(self) -> Log:
        """Sends log messages to the client."""
        return Log(self)  # which is not kept: two that lead to each other would stay until the collector comes by

    @property
    def _call(self) -> Call:
        """The request that is being answered: after a question inside a result, the one that brought the answer."""
        asking = self._first.asking
        return self._first if asking is None else asking.call

    @property
    def request_id(self) -> IdKey:
        """The request's id."""
        return self._call.key

    @property
    def method(self) -> str:
        """The request's method, such as ``tools/call``."""
        return self._call.method.name

    @property
    def peer(self) -> Peer:
        """Who asks: revision, info, capabilities, log level, principal."""
        return self._call.peer

    @property
    def meta(self) -> dict[str, Any]:
        """The request's ``_meta``, empty when it has none."""
        params = self._call.params
        if isinstance(params, Raw):  # a method of the user's own
            params = wire.decode(params, RequestParams)
        return params.meta

    @property
    def state(self) -> dict[str, Any]:
        """What handlers keep for this client from one request to the next, until its session ends.

        No other client sees it. ``initialize`` begins it anew. Handshake revisions only: 2026-07-28 has no sessions.

        Raises:
            ConfigError: The request is one of 2026-07-28; the message says what to do instead.
        """
        if not self._call.peer.revision.handshake:
            raise ConfigError(_NO_STATE.format(revision=self._call.peer.revision))
        return self._call.connection.session.state

    @property
    def lifespan(self) -> Any:
        """What the server's lifespan yields, as it is. Parameters get it by its type, too: see `Server`.

        Raises:
            ConfigError: The server has no lifespan.
        """
        running = self._call.connection.shared
        if running is None or not running.exists:
            raise ConfigError("ctx.lifespan is what Server(lifespan=...) yields, and this server has no lifespan")
        return running.value

    @property
    def http(self) -> HttpRequest | None:
        """The HTTP request that brought this one: its headers, and where it came from; None on other transports.

        On a WebSocket it is the one that opened it.
        """
        incoming = self._call.http or self._call.connection.http
        if incoming is None:
            return None
        from modelwire.server.http.exchange import http_request

        return http_request(incoming)

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the result any more: the client cancelled, or the time is up.

        An async function gets ``asyncio.CancelledError`` besides; a sync one has to look here.
        """
        return self._call.cancelled or self._first.cancelled or self._expired is not None

    @property
    def cancel_reason(self) -> str | None:
        """Why it was cancelled, in the words of who did it."""
        return self._expired or self._call.cancel_reason or self._first.cancel_reason

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the client how far the work is, if it asked to be told.

        "The progress value MUST increase with each notification": one that does not is left out.

        Args:
            progress: How much is done, in any unit.
            total: How much there is to do, in the same unit, if known.
            message: A few words for a person.

        Raises:
            ValueError: A number is not finite.
        """
        if not math.isfinite(progress) or (total is not None and not math.isfinite(total)):
            raise ValueError(f"progress must be finite numbers, not {progress} of {total}")
        if self._call.progress_token is not None:
            on_loop(self._call, _send_progress, progress, total, message)

    def close_stream(self, retry: float = 1.0) -> None:
        """Let the client hang up while the work goes on, and come back for the rest.

        What is said until then is kept for it. For work that takes long: nobody has to hold a connection open. It does
        nothing where clients cannot come back: on 2025-11-25 over HTTP they can, in no other revision are they sure to.

        Args:
            retry: Seconds after which the client should come back. It may close and come back many times.

        Raises:
            ValueError: ``retry`` is negative, or no number.
        """
        if not 0 <= retry < math.inf:
            raise ValueError(f"retry= is a number of seconds from 0 on, not {retry!r}")
        on_loop(self._call, _let_go, round(retry * 1000))

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send the client a notification of any kind, as part of this request.

        Args:
            method: Its name.
            params: Its parameters; anything that can be written as JSON.

        Raises:
            WireError: The parameters cannot be written as JSON.
        """
        encoded = None if params is None else wire.encode(dict(params), LATEST)
        on_loop(self._call, Call.notify, method, encoded)

    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, *, timeout: float | None = 60
    ) -> Received:
        """Send the client a request and return its result; handshake revisions only.

        Whether the client can answer is for the caller to know: see ``peer.capabilities``.

        Args:
            method: Such as ``roots/list``.
            params: Its parameters.
            timeout: Seconds to wait for the answer; None for ever.

        Raises:
            ConfigError: The revision has no requests from server to client, or cannot carry these parameters.
            PeerError: The client answered with an error.
            ProtocolViolation: Its answer breaks a rule.
            RequestTimeout: It did not answer.

        Returns:
            The result, typed for methods of the protocol; ``.raw`` has it as it came.
        """
        call = self._call
        if not call.peer.revision.server_requests:
            raise ConfigError(f"a server sends no requests in {call.peer.revision}; {method} was not sent")
        encoded = _request_params(method, params, call.peer.revision)
        raw = await call.connection.request(method, encoded, timeout=timeout, post=call.send)
        try:
            return wire.decode_result(raw, METHODS.get(method), call.peer.revision)
        except wire.WireError as error:
            raise ProtocolViolation(f"the client's answer to {method} is invalid: {error}", bytes(raw)) from None

    def limited_by(self, clock: asyncio.Timeout) -> None:
        """Note what limits the handler's time, which stands still while a person thinks. For the server's own use."""
        self._first.clock = clock

    def expire(self, reason: str) -> None:
        """Note that the time is up, so that a sync function can see it. For the server's own use."""
        self._expired = reason


class Log:
    """Sends log messages to the client, those at least as severe as it asked for."""

    __slots__ = ("_context",)

    def __init__(self, context: Context) -> None:
        self._context = context

    @property
    def _call(self) -> Call:
        return self._context._call  # pyright: ignore[reportPrivateUsage] -- its own

    def __call__(self, level: LoggingLevel, data: Any, logger: str | None = None) -> None:
        """Send a message.

        "The server MUST NOT emit notifications/message for a request that does not include this field [logLevel]"
        (2026-07-28); on handshake revisions the client's ``logging/setLevel`` holds, and "info" before it.

        Args:
            level: One of the eight levels of RFC 5424.
            data: What to say: a string, or anything that can be written as JSON.
            logger: Who says it.
        """
        rank = _SEVERITY.get(level)
        if rank is None:
            raise ValueError(f"unknown log level {level!r}; known are {', '.join(LOGGING_LEVELS)}")
        wanted = self._call.peer.log_level if self._call.peer.revision.log_level_per_request else self._session_level()
        if wanted is None or rank < _SEVERITY[wanted]:
            return
        try:
            params = wire.encode(LoggingMessageNotificationParams(level, data, logger=logger), self._call.peer.revision)
        except wire.WireError as error:
            _log.warning("a log message could not be sent: %s", error)
            return
        on_loop(self._call, _send_log, params)

    def _session_level(self) -> LoggingLevel | None:
        peer = self._call.connection.session.peer
        return None if peer is None else peer.log_level

    def debug(self, data: Any, *, logger: str | None = None) -> None:
        """Send a message of level ``debug``."""
        self("debug", data, logger)

    def info(self, data: Any, *, logger: str | None = None) -> None:
        """Send a message of level ``info``."""
        self("info", data, logger)

    def notice(self, data: Any, *, logger: str | None = None) -> None:
        """Send a message of level ``notice``."""
        self("notice", data, logger)

    def warning(self, data: Any, *, logger: str | None = None) -> None:
        """Send a message of level ``warning``."""
        self("warning", data, logger)

    def error(self, data: Any, *, logger: str | None = None) -> None:
        """Send a message of level ``error``."""
        self("error", data, logger)

    def critical(self, data: Any, *, logger: str | None = None) -> None:
        """Send a message of level ``critical``."""
        self("critical", data, logger)

    def alert(self, data: Any, *, logger: str | None = None) -> None:
        """Send a message of level ``alert``."""
        self("alert", data, logger)

    def emergency(self, data: Any, *, logger: str | None = None) -> None:
        """Send a message of level ``emergency``."""
        self("emergency", data, logger)


def _request_params(method: str, params: Mapping[str, Any] | None, revision: Revision) -> bytes | None:
    """Write parameters for a revision; those of the protocol's own methods without what the revision lacks."""
    if params is None:
        return None
    row = METHODS.get(method)
    try:
        encoded = wire.encode(dict(params), LATEST)
        return encoded if row is None else wire.encode(wire.decode(encoded, row.params), revision)
    except wire.WireError as error:
        raise ConfigError(f"{method} was not sent: {error}") from None


def _send_progress(call: Call, progress: float, total: float | None, message: str | None) -> None:
    token = call.progress_token
    if token is None or not call.open or (call.progressed is not None and progress <= call.progressed):
        return
    if call.connection.crowded():
        return  # the client reads too slowly; the next progress says more than this one
    call.progressed = progress
    params = b'{"progressToken":' + token + b',"progress":' + msgspec.json.encode(progress)
    if total is not None:
        params += b',"total":' + msgspec.json.encode(total)
    if message is not None and call.peer.revision.covers("2025-03-26", None):
        params += b',"message":' + msgspec.json.encode(message.encode("utf-8", "replace").decode())
    call.notify("notifications/progress", params + b"}")


def _let_go(call: Call, milliseconds: int) -> None:
    if call.open and call.let_go is not None:
        call.let_go(milliseconds)


def _send_log(call: Call, params: bytes) -> None:
    if call.connection.crowded(64):
        _log.warning("a log message was dropped: the client does not read what it is sent")
        return
    call.notify("notifications/message", params)
