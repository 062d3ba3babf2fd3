"""Who is the peer of this request: the one place where an inbound message meets the two eras.

    state       message                               what happens
    ----------  ------------------------------------  ---------------------------------------------------
    any         request with per-request ``_meta``     its peer comes from ``_meta``; the state stays
    any         ``initialize`` with such ``_meta``     refused: ``-32601``
    NEW         ``initialize``                         HANDSHAKEN, with the revision that was negotiated
    NEW         ``ping``                               allowed
    NEW         any other request                      refused: ``-32602`` naming both ways to open
    HANDSHAKEN  ``initialize``                         negotiated anew; levels, subscriptions, state start over
    HANDSHAKEN  any other request                      its peer is the one that ``initialize`` named

A session holds what one client's handshake established. Nothing here awaits, keeps time or sends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

from modelwire.errors import INVALID_PARAMS, METHOD_NOT_FOUND, UNSUPPORTED_REVISION, RpcError
from modelwire.protocol.meta import RequestMeta
from modelwire.protocol.revisions import LATEST_HANDSHAKE, REVISIONS, Revision, by_name, negotiate
from modelwire.protocol.types.lifecycle import ClientCapabilities, Implementation, InitializeRequestParams
from modelwire.protocol.types.logging import LoggingLevel

HOW_TO_OPEN = (
    "this connection is not open yet: send initialize first, or put io.modelcontextprotocol/protocolVersion and "
    "io.modelcontextprotocol/clientCapabilities into the request's _meta"
)


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is at the other end, for one request.

    Attributes:
        revision: The revision that the request is served under.
        info: What the peer says of itself; for display only, never to be trusted.
        capabilities: What the peer can do, as it declared.
        log_level: The least severe log message it wants, or None when it wants none.
        principal: Who it is, where the transport authenticated it.
        unknown: Whether it may have declared capabilities of which nothing was kept.
    """

    revision: Revision
    info: Implementation | None = None
    capabilities: ClientCapabilities = ClientCapabilities()
    log_level: LoggingLevel | None = None
    principal: str | None = None
    unknown: bool = False

    def supports(self, capability: str) -> bool:
        """Say whether the peer has declared a capability.

        Args:
            capability: Its name on the wire, such as ``"sampling"``; a dot leads to a part of it, as in
                ``"elicitation.form"``, ``"elicitation.url"``, ``"sampling.tools"``.
        """
        found: Any = self.capabilities
        parts = capability.split(".")
        if parts == ["elicitation", "form"] and self.capabilities.elicitation is not None:
            # "an empty capabilities object is equivalent to declaring support for form mode only"
            return self.capabilities.elicitation.form is not None or self.capabilities.elicitation.url is None
        for part in parts:
            inner = (
                cast("dict[str, Any]", found).get(part)
                if isinstance(found, dict)
                else getattr(found, _field(part), None)
            )
            if inner is None or inner is False:
                return False
            found = inner
        return True


def _field(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


_UNOPENED = Peer(LATEST_HANDSHAKE)


class Session:
    """What one client's opening established on one connection, process or HTTP session.

    Args:
        principal: Who the client is, where the transport knows.
    """

    how_to_open: ClassVar[str] = HOW_TO_OPEN
    """What a request is told that comes before anything says who asks."""

    __slots__ = (
        "declared", "initialized", "on_ready", "peer", "principal", "served", "state", "subscribed"
    )  # fmt: skip

    def __init__(self, principal: str | None = None) -> None:
        self.principal = principal
        self.peer: Peer | None = None
        """The peer that `initialize` named; None in state NEW."""
        self.initialized = False
        """Whether ``notifications/initialized`` (or a bare ``initialized``) has come."""
        self.served = False
        """Whether an ordinary request has been admitted since the handshake."""
        self.subscribed: dict[str, bool] = {}
        """The URIs of ``resources/subscribe``, and whether each is there for this client: it is not told of one that
        is not, and cannot know that either."""
        self.state: dict[str, Any] = {}
        """What handlers keep from one request to the next; for handshake revisions, which have sessions."""
        self.declared: Mapping[str, Any] = {}
        """The capabilities that our answer to ``initialize`` declared."""
        self.on_ready: Callable[[], None] | None = None
        """Called when a request shows that the client has finished opening, although it never said so."""

    @property
    def revision(self) -> Revision | None:
        """The revision that the handshake settled, or None before it and on per-request connections."""
        return None if self.peer is None else self.peer.revision

    @property
    def ready(self) -> bool:
        """Whether the client has finished opening, so that it may be told things."""
        return self.initialized or self.served

    def open(self, params: InitializeRequestParams) -> Revision:
        """Take in an ``initialize`` and return the revision that holds from now on.

        "If the server supports the requested protocol version, it MUST respond with the same version. Otherwise, the
        server MUST respond with another protocol version it supports." (2025-11-25, basic/lifecycle)
        """
        revision = negotiate(params.protocol_version)
        # Until the client sets a level the specification leaves the choice to the server; ours is "info".
        self.peer = Peer(revision, params.client_info, params.capabilities, "info", self.principal)
        self.served = self.initialized = False
        self.subscribed.clear()
        self.state = {}
        return revision

    def suppose(self, revision: Revision) -> None:
        """Take it that a handshake was held elsewhere, of which nothing is known but the revision."""
        self.peer = Peer(revision, log_level="info", principal=self.principal, unknown=True)
        self.initialized = True

    def set_level(self, level: LoggingLevel) -> None:
        """Take in a ``logging/setLevel``."""
        if self.peer is not None:
            self.peer = replace(self.peer, log_level=level)

    def admit(self, method: str, meta: RequestMeta | None) -> Peer:
        """Return the peer of a request.

        Args:
            method: The request's method.
            meta: The reserved keys of its ``_meta``, or None when it had no ``_meta``.

        Raises:
            RpcError: The request is refused; the error is the answer.
        """
        if meta is not None and meta.protocol_version is not None:
            return self._per_request(method, meta)
        if method == "initialize":
            return self.peer or _UNOPENED
        if self.peer is None:
            if method == "ping":
                return _UNOPENED
            raise RpcError(INVALID_PARAMS, self.how_to_open)
        if not self.served and method != "ping":
            self.served = True
            if self.on_ready is not None:
                self.on_ready()
        return self.peer

    def _per_request(self, method: str, meta: RequestMeta) -> Peer:
        requested = meta.protocol_version
        revision = by_name(requested) if requested is not None else None
        if revision is None or revision.handshake:
            raise RpcError(
                UNSUPPORTED_REVISION,
                f"Unsupported protocol version: {requested!r}",
                {"supported": per_request_revisions(), "requested": requested},
            )
        if method == "initialize":
            raise RpcError(
                METHOD_NOT_FOUND,
                f"Method not found: initialize does not exist in {revision}; leave it out, or the _meta fields",
            )
        if meta.client_capabilities is None:
            raise RpcError(
                INVALID_PARAMS,
                "the request's _meta lacks io.modelcontextprotocol/clientCapabilities, which is required",
            )
        return Peer(revision, meta.client_info, meta.client_capabilities, meta.log_level, self.principal)


def per_request_revisions() -> list[str]:
    """Return the revisions that ``server/discover`` and ``-32022`` list, newest first."""
    return [revision.name for revision in reversed(REVISIONS) if not revision.handshake]
