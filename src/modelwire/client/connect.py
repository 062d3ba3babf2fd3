"""Opening a conversation: which era the server speaks, and on which revision both agree.

    probe with server/discover  ── DiscoverResult ──────────────▶ per-request, newest common revision
                                ── -32022 with ``supported`` ───▶ per-request, newest common revision
                                ── any other error ─────────────▶ initialize on the same connection
                                ── nothing for 5 s ─────────────▶ initialize too; whichever answers first
                                ── the process ends ────────────▶ started again, initialize only

"The fallback MUST NOT be keyed to one specific error code" (2026-07-28, basic/transports/stdio). This module decides
the era once, and nothing after it asks again.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Any

from msgspec import Raw

from modelwire.errors import (
    HEADER_MISMATCH,
    MISSING_CAPABILITY,
    ConnectionFailed,
    ConnectionLost,
    PeerError,
    RequestTimeout,
    UnsupportedRevision,
)
from modelwire.protocol import types as t
from modelwire.protocol import wire
from modelwire.protocol.meta import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION, SERVER_INFO
from modelwire.protocol.methods import METHODS
from modelwire.protocol.revisions import LATEST, LATEST_HANDSHAKE, REVISIONS, Revision, by_name
from modelwire.rpc.connection import Connection

_log = logging.getLogger("modelwire")

PROBE_WAIT = 5.0
"""Seconds that a probe is waited for before ``initialize`` goes out as well."""


@dataclass(frozen=True, slots=True)
class Opened:
    """What an opening came to.

    Attributes:
        revision: The revision to speak.
        capabilities: What the server can do.
        info: Who it says it is, if it does.
        instructions: How it wants to be used.
        supported: The per-request revisions that it offers.
    """

    revision: Revision
    capabilities: t.ServerCapabilities
    info: t.Implementation | None
    instructions: str | None
    supported: tuple[str, ...] = ()


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
        self._capabilities = capabilities
        self._pinned = pinned
        self._probe_wait = probe_wait
        self.legacy = pinned is not None and pinned.handshake
        """Set once the server is known to speak handshake revisions only; the probe is then left out."""
        self._stray: asyncio.Future[PeerError] | None = None

    def request_meta(self, revision: Revision) -> dict[str, Any]:
        """Return the ``_meta`` that every request of a per-request revision carries."""
        return {
            PROTOCOL_VERSION: revision.name,
            CLIENT_INFO: Raw(wire.encode(self._info, revision)),
            CLIENT_CAPABILITIES: Raw(wire.encode(self._capabilities, revision)),
        }

    def stray_error(self, error: PeerError) -> None:
        """Take an error that names no request: some servers answer what they do not know so, the probe first of all."""
        if self._stray is not None and not self._stray.done():
            self._stray.set_result(error)

    async def open(self, connection: Connection, timeout: float) -> Opened:
        """Open the conversation.

        Args:
            connection: The connection, being read already.
            timeout: Seconds that it may take.

        Raises:
            ConnectionFailed: No common revision, or the server refuses.
            ConnectionLost: The connection ended meanwhile.
            RequestTimeout: It took too long.
        """
        try:
            async with asyncio.timeout(timeout):
                return await self._open(connection)
        except TimeoutError:
            what = "initialize" if self.legacy else "server/discover and initialize"
            raise RequestTimeout(what, timeout, ["the server said nothing that opens a conversation"]) from None

    async def _open(self, connection: Connection) -> Opened:
        if self.legacy:
            return await self._initialize(connection)
        probe = asyncio.ensure_future(self._probe(connection, self._pinned or LATEST))
        if self._pinned is not None:
            return await _or_fail(probe, self._pinned)
        self._stray = asyncio.get_running_loop().create_future()
        try:
            await asyncio.wait([probe, self._stray], timeout=self._probe_wait, return_when=asyncio.FIRST_COMPLETED)
            if probe.done():
                opened = _probed(probe)
                return opened if opened is not None else await self._fallen_back(connection)
            if self._stray.done():
                return await self._fallen_back(connection)
            return await self._race(connection, probe)
        finally:
            self._stray = None
            probe.cancel()

    async def _fallen_back(self, connection: Connection) -> Opened:
        self.legacy = True
        return await self._initialize(connection)

    async def _race(self, connection: Connection, probe: asyncio.Task[Opened]) -> Opened:
        """The probe is unanswered: the server is slow, or ignores what it does not know. Ask both ways."""
        handshake = asyncio.ensure_future(self._initialize(connection))
        try:
            waiting: set[asyncio.Task[Opened]] = {probe, handshake}
            while waiting:
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                if probe in done and (opened := _probed(probe)) is not None:
                    return opened
                if handshake in done and (handshake.exception() is None or not waiting):
                    self.legacy = True
                    return handshake.result()
            return handshake.result()
        finally:
            handshake.cancel()

    async def _probe(self, connection: Connection, revision: Revision) -> Opened:
        params = wire.with_meta(b"{}", self.request_meta(revision))
        method = METHODS["server/discover"]
        # Not cancelled when given up: a server that does not know the request cannot know its cancellation either.
        raw = await connection.request(method.name, params, timeout=None, cancellable=False)
        result = wire.decode_result(raw, method, revision)
        assert isinstance(result, t.DiscoverResult)
        return Opened(
            _common(result.supported_versions, revision),
            result.capabilities,
            server_info(result),
            result.instructions,
            tuple(result.supported_versions),
        )

    async def _initialize(self, connection: Connection) -> Opened:
        wanted = self._pinned if self._pinned is not None and self._pinned.handshake else LATEST_HANDSHAKE
        params = wire.encode(t.InitializeRequestParams(wanted.name, self._capabilities, self._info), wanted)
        method = METHODS["initialize"]
        try:
            raw = await connection.request(method.name, params, timeout=None, cancellable=False)
        except PeerError as error:
            raise ConnectionFailed(f"the server refuses to open a conversation: {error}") from error
        result = wire.decode_result(raw, method, wanted)
        assert isinstance(result, t.InitializeResult)
        revision = by_name(result.protocol_version)
        if revision is None or not revision.handshake or (self._pinned is not None and revision is not self._pinned):
            # "If the client does not support the version in the server's response, it SHOULD disconnect."
            raise ConnectionFailed(
                f"the server offers revision {result.protocol_version!r}; this client was asked for {wanted}"
                if self._pinned is not None
                else f"the server offers revision {result.protocol_version!r}, which this client does not speak"
            )
        connection.notify("notifications/initialized")
        return Opened(revision, result.capabilities, result.server_info, result.instructions)


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
            raise ConnectionFailed(f"the server refuses to open a conversation: {error}") from error
        return None
    if isinstance(error, wire.WireError):
        _log.warning("the answer to server/discover was not understood (%s); trying initialize", error)
        return None
    raise error


def _unsupported(error: UnsupportedRevision) -> Opened | None:
    offered = [revision for revision in reversed(REVISIONS) if revision.name in error.supported]
    if not offered:
        raise ConnectionFailed(
            f"no common revision: the server offers {', '.join(error.supported)}, "
            f"this client speaks {', '.join(r.name for r in REVISIONS)}"
        ) from error
    if offered[0].handshake:
        return None  # it named only revisions that are opened with initialize
    return Opened(offered[0], t.ServerCapabilities(), None, None, tuple(error.supported))


def _common(supported: list[str], wanted: Revision) -> Revision:
    if wanted.name in supported:
        return wanted
    for revision in reversed(REVISIONS):
        if revision.name in supported and not revision.handshake:
            return revision
    raise ConnectionFailed(f"no common revision: the server offers {', '.join(supported) or 'none'}")


async def _or_fail(probe: asyncio.Future[Opened], pinned: Revision) -> Opened:
    try:
        opened = await probe
    except (PeerError, wire.WireError) as error:
        raise ConnectionFailed(f"the server does not speak {pinned}: {error}") from error
    if opened.revision is not pinned:
        raise ConnectionFailed(f"the server does not speak {pinned}; it offers {', '.join(opened.supported)}")
    return opened


def server_info(result: t.Received) -> t.Implementation | None:
    """Return who the server says it is in a result, if it does.

    2026-07-28 puts it into ``_meta``; drafts of it had it in the body of the discovery, and servers that follow them exist.
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


__all__ = ["PROBE_WAIT", "ConnectionLost", "Opened", "Opener", "server_info"]
