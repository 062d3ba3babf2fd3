"""What an HTTP request is, once its body is there, and what a handler may know of it."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from modelwire.rpc.observer import Observer
from modelwire.server.http.heads import Head
from modelwire.server.serve import watching

if TYPE_CHECKING:
    from modelwire.server.server import Server


class Incoming(Struct, frozen=True):
    """One HTTP request.

    Attributes:
        scope: ASGI's.
        head: What its head has decided.
        body: The body; empty where the method has none.
        principal: Who asks, where somebody has looked.
    """

    scope: MutableMapping[str, Any]
    head: Head
    body: bytes
    principal: str | None

    def kept(self) -> Incoming:
        """Return what is kept of it while it is being answered: all but the body."""
        return Incoming(self.scope, self.head, b"", self.principal)

    def watchers(self, server: Server) -> Sequence[Observer]:
        """Return who watches a conversation that begins with it."""
        return watching(server, self.peer) if server.observers else ()

    @property
    def peer(self) -> str:
        """Who asks, for people."""
        client = self.scope.get("client")
        if client is None:
            return "a client"
        host, port = client
        return f"the client [{host}]:{port}" if ":" in host else f"the client {host}:{port}"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """What `Context.http` says of the request that is being answered.

    Attributes:
        headers: The headers by lower-case name, several of a name joined by commas. They are the client's word.
        client: The address that the request came from, which may be a proxy's; None where the server does not know.
        scope: ASGI's, for what middleware has put there.
    """

    headers: dict[str, str]
    client: tuple[str, int] | None
    scope: MutableMapping[str, Any]


def http_request(incoming: Incoming) -> HttpRequest:
    """Return what a handler may know of a request."""
    client = incoming.scope.get("client")
    return HttpRequest(
        incoming.head.headers.plain(), None if client is None else (client[0], client[1]), incoming.scope
    )
