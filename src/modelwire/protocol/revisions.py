"""The revisions of the specification as named facts, one row each, and the rule that picks one.

Code that behaves differently for some peers asks a fact of that peer's `Revision` (`revision.batching`).
It never compares names or dates: `Revision.covers` is the only comparison of revisions in the package.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, eq=False)
class Revision:
    """One dated edition of the specification. There is one object per revision; compare with ``is``."""

    name: str
    """The date that is sent as ``protocolVersion``."""
    handshake: bool
    """``initialize`` opens a session. Otherwise every request carries its own metadata."""
    server_requests: bool
    """The server may send requests to the client. Otherwise it asks inside an ``input_required`` result."""
    batching: bool
    """JSON-RPC batches must be accepted."""
    sessions: bool
    """Streamable HTTP has sessions (``Mcp-Session-Id``)."""
    streamable_http: bool
    """HTTP is one endpoint. Otherwise it is HTTP+SSE: a stream that names the address to post to."""
    resumable: bool
    """A lost stream is taken up again with ``Last-Event-ID``."""
    version_header: bool
    """HTTP requests carry ``MCP-Protocol-Version``."""
    routing_headers: bool
    """HTTP requests repeat method and name in ``Mcp-Method`` and ``Mcp-Name``."""
    listen: bool
    """Change notifications come on ``subscriptions/listen``, not unasked."""
    log_level_per_request: bool
    """The log level is a key of each request's ``_meta``, not set by ``logging/setLevel``."""
    stamped_results: bool
    """Results carry ``resultType`` and ``serverInfo``; those that may be cached ``ttlMs`` and ``cacheScope``."""
    structured: bool
    """Tools have ``outputSchema``, results have ``structuredContent``."""
    any_structured: bool
    """``outputSchema`` and ``structuredContent`` may be anything. Otherwise they must be objects."""
    null_error_id: bool
    """An error without a request to answer carries ``id: null``. Otherwise it has no ``id``."""
    resource_not_found_code: int
    """The error code for a resource that does not exist."""

    def covers(self, since: str | None, until: str | None) -> bool:
        """Say whether this revision lies between two others, both included.

        Args:
            since: The name of the first revision, or None for "from the beginning".
            until: The name of the last revision, or None for "no end so far".
        """
        return (since is None or since <= self.name) and (until is None or self.name <= until)

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return by_name, (self.name,)


def _handshake(
    name: str,
    *,
    batching: bool = False,
    streamable_http: bool = True,
    version_header: bool = True,
    structured: bool = True,
    null_error_id: bool = False,
) -> Revision:
    return Revision(
        name,
        handshake=True,
        server_requests=True,
        batching=batching,
        sessions=streamable_http,
        streamable_http=streamable_http,
        resumable=streamable_http,
        version_header=version_header,
        routing_headers=False,
        listen=False,
        log_level_per_request=False,
        stamped_results=False,
        structured=structured,
        any_structured=False,
        null_error_id=null_error_id,
        resource_not_found_code=-32002,
    )


REVISIONS: Final[tuple[Revision, ...]] = (
    _handshake("2024-11-05", streamable_http=False, version_header=False, structured=False, null_error_id=True),
    _handshake("2025-03-26", batching=True, version_header=False, structured=False, null_error_id=True),
    _handshake("2025-06-18", null_error_id=True),
    _handshake("2025-11-25"),
    Revision(
        "2026-07-28",
        handshake=False,
        server_requests=False,
        batching=False,
        sessions=False,
        streamable_http=True,
        resumable=False,
        version_header=True,
        routing_headers=True,
        listen=True,
        log_level_per_request=True,
        stamped_results=True,
        structured=True,
        any_structured=True,
        null_error_id=False,
        resource_not_found_code=-32602,
    ),
)
"""Every revision that modelwire speaks, oldest first."""

LATEST: Final[Revision] = REVISIONS[-1]
"""The newest revision."""

LATEST_HANDSHAKE: Final[Revision] = [revision for revision in REVISIONS if revision.handshake][-1]
"""The newest revision that is opened with ``initialize``."""

_BY_NAME: Final[dict[str, Revision]] = {revision.name: revision for revision in REVISIONS}


def by_name(name: str) -> Revision | None:
    """Return the revision of that name, or None when modelwire does not speak it."""
    return _BY_NAME.get(name)


def negotiate(requested: str) -> Revision:
    """Return the revision to answer an ``initialize`` with.

    "If the server supports the requested protocol version, it MUST respond with the same version. Otherwise, the
    server MUST respond with another protocol version it supports" (2025-11-25, lifecycle, Version Negotiation).
    A per-request revision cannot be opened with ``initialize`` and counts as not supported there.

    Args:
        requested: The ``protocolVersion`` that the client sent.
    """
    revision = _BY_NAME.get(requested)
    return revision if revision is not None and revision.handshake else LATEST_HANDSHAKE


@dataclass(frozen=True, slots=True)
class Span:
    """Which revisions have a field; an entry of ``Annotated[...]`` in `modelwire.protocol.types`."""

    since: str | None = None
    until: str | None = None
    required: bool = False
    """The revisions that have the field demand it."""


def since(name: str, *, required: bool = False) -> Span:
    """Mark a field that came with the revision ``name``."""
    return Span(since=name, required=required)


def until(name: str) -> Span:
    """Mark a field that the revision ``name`` was the last to have."""
    return Span(until=name)


def only(name: str, *, required: bool = False) -> Span:
    """Mark a field that the revision ``name`` alone has."""
    return Span(since=name, until=name, required=required)
