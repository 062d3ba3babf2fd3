"""Opening a conversation: which era the server speaks, and on which revision both agree.

    probe with server/discover  ── DiscoverResult ──────────────▶ per-request, newest common revision
                                ── -32022 with ``supported`` ───▶ newest common revision
                                ── any other error ─────────────▶ initialize on the same connection
                                ── an error without an id ──────▶ initialize too; whichever answers first
                                ── nothing for 5 s ─────────────▶ initialize too; whichever answers first
                                ── it ends, or hangs up ────────▶ opened again, initialize only

"The fallback MUST NOT be keyed to one specific error code" (2026-07-28, basic/transports/stdio). This module decides
the era once, and nothing after it asks again. It opens no stream and starts no process.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any

from msgspec import Raw

from modelwire.client.declared import in_revision
from modelwire.errors import (
    HEADER_MISMATCH,
    MISSING_CAPABILITY,
    ConnectionFailed,
    HttpFailed,
    PeerError,
    ProtocolViolation,
    RequestTimeout,
    UnsupportedRevision,
    peer_error,
)
from modelwire.log import log as _log
from modelwire.protocol import types as t
from modelwire.protocol import wire
from modelwire.protocol.jsonrpc import ErrorResponse
from modelwire.protocol.meta import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION, SERVER_INFO
from modelwire.protocol.methods import METHODS
from modelwire.protocol.revisions import LATEST, LATEST_HANDSHAKE, REVISIONS, Revision, by_name
from modelwire.rpc.connection import Connection

PROBE_WAIT = 5.0
"""Seconds that a probe is waited for before ``initialize`` goes out as well."""

_WHO_ASKS = (401, 403, 407)
"""Statuses that no other message would change."""
_SPOKEN = ", ".join(revision.name for revision in REVISIONS)


@dataclass(frozen=True, slots=True)
class Opened:
    """What an opening came to.

    Attributes:
        revision: The revision to speak.
        capabilities: What the server can do.
        info: Who it says it is, if it does.
        instructions: How it wants to be used.
        declared: Whether the server has said what it can do; otherwise ask and see.
    """

    revision: Revision
    capabilities: t.ServerCapabilities
    info: t.Implementation | None = None
    instructions: str | None = None
    declared: bool = True


class Opener:
    """Opens the conversation on one connection.

    Args:
        info: Who we are.
        capabilities: What we can do.
        pinned: The only revision to accept, or None to find out.
        probe_wait: Seconds before ``initialize`` goes out beside an unanswered probe.
    """

    def __init__(
        self,
        info: t.Implementation,
        capabilities: t.ClientCapabilities,
        *,
        pinned: Revision | None,
        probe_wait: float = PROBE_WAIT,
    ) -> None:
        self._info = info
        self.capabilities = capabilities
        self._pinned = pinned
        self._probe_wait = probe_wait
        self.legacy = pinned is not None and pinned.handshake
        """Set once the server is known to speak handshake revisions only; the probe is then left out."""
        self._modern: Revision | None = None
        """The per-request revision that was agreed on before; nothing else is tried then."""
        self._stray: asyncio.Future[PeerError] | None = None
        self._strays: deque[str] = deque(maxlen=3)

    @property
    def may_fall_back(self) -> bool:
        """Whether ``initialize`` is worth trying once the probe has failed."""
        return self._pinned is None and not self.legacy and self._modern is None

    @property
    def remembers(self) -> bool:
        """Whether it goes by what it found out before."""
        return self._pinned is None and (self.legacy or self._modern is not None)

    def remember(self, revision: Revision) -> None:
        """Open in the same way the next time."""
        if self._pinned is None:
            self.legacy = revision.handshake
            self._modern = None if revision.handshake else revision

    def forget(self) -> None:
        """Find out anew: "re-probing if the cached assumption later fails" (2026-07-28, basic/versioning)."""
        self.legacy = self._pinned is not None and self._pinned.handshake
        self._modern = None

    def request_meta(self, revision: Revision) -> dict[str, Any]:
        """Return the ``_meta`` that every request of a per-request revision carries."""
        return {
            PROTOCOL_VERSION: revision.name,
            CLIENT_INFO: Raw(wire.encode(self._info, revision)),
            CLIENT_CAPABILITIES: Raw(wire.encode(in_revision(self.capabilities, revision), revision)),
        }

    def ping(self, connection: Connection, revision: Revision, timeout: float) -> Awaitable[object]:
        """Ask for a sign of life on an open connection."""
        params = None if revision.handshake else wire.with_meta(b"{}", self.request_meta(revision))
        return connection.request(ping_method(revision), params, timeout=timeout)

    @property
    def strays(self) -> list[str]:
        """The last errors that named no request, one clause each."""
        return list(self._strays)

    def stray_error(self, connection: Connection, answer: ErrorResponse) -> None:
        """Take an error that names no request: some servers answer what they do not know so, the probe first of all."""
        error = peer_error(answer.code, answer.message, answer.data)
        self._strays.append(f"an error that names no request: {str(error)[:500]}")
        if self._stray is not None and not self._stray.done():
            self._stray.set_result(error)

    async def open(self, connection: Connection, timeout: float | None, until: float | None = None) -> Opened:
        """Open the conversation.

        Args:
            connection: The connection, being read already.
            timeout: Seconds that it may take.
            until: The loop's time when they are over, where connecting has taken some of them.

        Raises:
            ConnectionFailed: No common revision, or the server refuses.
            ConnectionLost: The connection ended meanwhile.
            RequestTimeout: It took too long.
        """
        self._strays.clear()
        try:
            async with asyncio.timeout(timeout) if until is None else asyncio.timeout_at(until):
                return await self._open(connection)
        except TimeoutError:
            what = "initialize" if self.legacy else "server/discover"
            heard = [*self.strays, *connection.noticed(0)]
            raise RequestTimeout(what, timeout or 0, heard, "connect_timeout") from None

    async def _open(self, connection: Connection) -> Opened:
        if self.legacy:
            return self._greeted(connection, await self._initialize(connection))
        if self._pinned is not None or self._modern is not None:
            return await self._only(connection, self._pinned or self._modern or LATEST)
        self._stray = asyncio.get_running_loop().create_future()
        probe = asyncio.create_task(self._probe(connection, LATEST))
        try:
            await asyncio.wait([probe, self._stray], timeout=self._probe_wait, return_when=asyncio.FIRST_COMPLETED)
            if not probe.done():
                return await self._race(connection, probe, 0.0 if self._stray.done() else self._probe_wait)
            opened = _probed(probe)
            if opened is not None:
                return opened
            self.legacy = True
            return self._greeted(connection, await self._initialize(connection))
        finally:
            self._stray = None
            _drop(probe)

    async def _race(self, connection: Connection, probe: asyncio.Task[Opened], patience: float) -> Opened:
        """The probe is unanswered: the server is slow, or ignores what it does not know. Ask both ways.

        Args:
            connection: The connection.
            probe: What waits for the answer to ``server/discover``.
            patience: How long to wait for that answer once ``initialize`` was refused.
        """
        handshake = asyncio.create_task(self._initialize(connection))
        try:
            await asyncio.wait([probe, handshake], return_when=asyncio.FIRST_COMPLETED)
            if not probe.done() and handshake.exception() is not None:
                await asyncio.wait([probe], timeout=patience)
            if probe.done() and (opened := _probed(probe)) is not None:
                return opened
            opened = await handshake
            self.legacy = True
            return self._greeted(connection, opened)
        finally:
            _drop(handshake)

    async def _probe(self, connection: Connection, revision: Revision) -> Opened:
        params = wire.with_meta(b"{}", self.request_meta(revision))
        method = METHODS["server/discover"]
        # Not cancelled when given up: a server that does not know the request cannot know its cancellation either.
        raw = await connection.request(method.name, params, timeout=None, cancellable=False)
        result = wire.decode_result(raw, method, revision)
        assert isinstance(result, t.DiscoverResult)
        return Opened(
            _common(result.supported_versions, revision), result.capabilities, server_info(result), result.instructions
        )

    async def _only(self, connection: Connection, pinned: Revision) -> Opened:
        try:
            return await self._probe(connection, pinned)
        except HttpFailed as error:
            raise ConnectionFailed(str(error)) from error
        except (PeerError, ProtocolViolation, wire.WireError) as error:
            raise ConnectionFailed(f"the server does not speak {pinned}: {error}{_offers(error)}") from error

    async def _initialize(self, connection: Connection) -> Opened:
        wanted = self._pinned or LATEST_HANDSHAKE
        try:
            result = await self._initialized(connection, wanted)
        except PeerError as error:
            other = None if self._pinned is not None else _named(error)
            if other is None:
                raise _refused(error) from error
            # It answers an unknown version with an error that lists the versions it knows (2025-11-25,
            # basic/lifecycle, Error Handling), where others answer with one of them.
            try:
                result = await self._initialized(connection, other)
            except PeerError as again:
                raise _refused(again) from again
        return Opened(
            self._agreed(result.protocol_version), result.capabilities, result.server_info, result.instructions
        )

    async def _initialized(self, connection: Connection, wanted: Revision) -> t.InitializeResult:
        params = wire.encode(
            t.InitializeRequestParams(wanted.name, in_revision(self.capabilities, wanted), self._info), wanted
        )
        method = METHODS["initialize"]
        try:
            raw = await connection.request(method.name, params, timeout=None, cancellable=False)
            result = wire.decode_result(raw, method, wanted)
        except HttpFailed as error:
            raise ConnectionFailed(str(error)) from error
        except (ProtocolViolation, wire.WireError) as error:
            raise ConnectionFailed(f"the server's answer to initialize is invalid: {error}") from error
        assert isinstance(result, t.InitializeResult)
        return result

    def _agreed(self, name: str) -> Revision:
        revision = by_name(name)
        if self._pinned is not None and revision is not self._pinned:
            raise ConnectionFailed(
                f"the server offers revision {name!r}; this client was asked for {self._pinned}. "
                "Leave revision= out to take what the server offers"
            )
        if revision is None or not revision.handshake:
            # "If the client does not support the version in the server's response, it SHOULD disconnect."
            raise ConnectionFailed(
                f"the server offers revision {name!r}, which cannot be opened with initialize here; "
                f"this client speaks {_SPOKEN}"
            )
        return revision

    def _greeted(self, connection: Connection, opened: Opened) -> Opened:
        connection.notify("notifications/initialized")
        return opened


def _probed(probe: asyncio.Task[Opened]) -> Opened | None:
    """Return what the probe found; None when the server is one to ``initialize``.

    Raises:
        ConnectionFailed: The server is of the per-request era, and there is no common revision.
        ConnectionLost: It ended.
    """
    error = probe.exception()
    if error is None:
        return probe.result()
    if isinstance(error, UnsupportedRevision) and error.supported:
        return _unsupported(error)
    if isinstance(error, PeerError):
        if error.code in (HEADER_MISMATCH, MISSING_CAPABILITY):
            raise _refused(error) from error
        return None
    if isinstance(error, HttpFailed):
        # A server of the handshake era may refuse the request in any way; but not because of who asks, or not at all.
        if error.broken or error.status is None or error.status in _WHO_ASKS or 300 <= error.status < 400:
            raise ConnectionFailed(str(error)) from error
        return None
    if isinstance(error, wire.WireError | ProtocolViolation):
        _log.warning("the answer to server/discover was not understood (%s); trying initialize", error)
        return None
    raise error


def _unsupported(error: UnsupportedRevision) -> Opened | None:
    offered = [revision for revision in reversed(REVISIONS) if revision.name in error.supported]
    if not offered:
        raise ConnectionFailed(f"no common revision{_offers(error)}; this client speaks {_SPOKEN}") from error
    if offered[0].handshake:
        return None  # what both speak is opened with initialize
    return Opened(offered[0], t.ServerCapabilities(), declared=False)


def _common(supported: list[str], wanted: Revision) -> Revision:
    if wanted.name in supported:
        return wanted
    offered = [revision for revision in reversed(REVISIONS) if revision.name in supported]
    for revision in offered:
        if not revision.handshake:
            return revision
    # "Do not fall back to initialize" once a server has answered server/discover; people may, if they say so.
    hint = f"; pin revision={offered[0].name!r} to open with initialize" if offered else ""
    raise ConnectionFailed(
        f"no common revision: the server answers server/discover and offers {', '.join(supported) or 'none'}{hint}"
    )


def _named(error: PeerError) -> Revision | None:
    """Return the newest handshake revision that an error lists, unless it is the one just asked for."""
    names = _supported(error)
    offered = [revision for revision in reversed(REVISIONS) if revision.handshake and revision.name in names]
    return offered[0] if offered and offered[0] is not LATEST_HANDSHAKE else None


def _refused(error: PeerError) -> ConnectionFailed:
    return ConnectionFailed(f"the server refuses to open a conversation: {error}{_offers(error)}")


def _offers(error: Exception) -> str:
    supported = _supported(error)
    return f"; it offers {', '.join(supported)}" if supported else ""


def _supported(error: Exception) -> list[str]:
    """Return the revisions that an error lists, whatever its code."""
    return UnsupportedRevision(error.code, error.message, error.data).supported if isinstance(error, PeerError) else []


def _drop(task: asyncio.Task[Any]) -> None:
    """Give up a task whose outcome no longer matters, and hear it out so that nobody warns of it."""
    task.cancel()
    task.add_done_callback(lambda done: done.cancelled() or done.exception())


def ping_method(revision: Revision) -> str:
    """Return what asks for a sign of life: ``ping``, or ``server/discover`` where the revision has no ping."""
    return "ping" if revision.handshake else "server/discover"


def server_info(result: t.Received) -> t.Implementation | None:
    """Return who the server says it is in a result, if it does.

    2026-07-28 puts it into ``_meta``; drafts of it had it in the body of the discovery, and servers that follow those
    drafts exist.
    """
    found = (result.meta or {}).get(SERVER_INFO)
    if found is None:
        found = result.raw.get("serverInfo")
    if not isinstance(found, dict):
        return None
    try:
        return wire.decode(wire.encode(found, LATEST), t.Implementation)
    except wire.WireError:
        return None


__all__ = ["PROBE_WAIT", "Opened", "Opener", "ping_method", "server_info"]
