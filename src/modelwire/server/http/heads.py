"""What the head of a request decides by itself: who may ask, for what, in which form.

Clients send the same headers again and again, so that each decision is made once for each set of them and kept.
Bodies, sessions and whether the server is ending are not looked at here.
"""

from __future__ import annotations

from collections.abc import Collection, MutableMapping
from typing import Any, Final

from msgspec import Struct

from modelwire.protocol.revisions import Revision
from modelwire.rules.http import (
    EVENTS,
    JSON,
    LOOPBACK,
    Allowed,
    Headers,
    Refusal,
    Routed,
    accepts,
    is_json,
    is_loopback,
    named_hosts,
    named_origins,
    revision_named,
    routed,
)

EVENTS_PATH: Final = "/sse"
MESSAGES_PATH: Final = "/messages"
SSE_PATHS: Final = frozenset({EVENTS_PATH, MESSAGES_PATH})
"""Where HTTP+SSE is served."""

SOCKET_PATH: Final = "/ws"
"""Where a WebSocket is opened, besides at the endpoint."""

WITHOUT_SESSIONS: Final = "POST, OPTIONS"
"""The HTTP methods of what has no sessions."""

KEPT: Final = 512
"""How many sets of headers are remembered."""
LARGEST: Final = 4096
"""Bytes of headers above which they are not."""

Scope = MutableMapping[str, Any]


class Head(Struct, frozen=True):
    """What was decided.

    Attributes:
        headers: The headers.
        path: The path below the prefix that the application is mounted under, without a slash at its end.
        refusal: Why the request is refused before its body is read.
        origin: The origin of the page that asks, where somebody has said that it may.
        revision: The revision that the headers name; None without one, the text where it is unknown.
        routed: What the headers say that the body asks for (2026-07-28), where they say it plainly.
    """

    headers: Headers
    path: str
    refusal: Refusal | None
    origin: str | None
    revision: Revision | str | None
    routed: Routed | None


class Heads:
    """Decides, and remembers what it has decided.

    Args:
        path: Where the endpoint is, without a slash at its end.
        hosts: Names that ``Host`` may have; None for those of the address that the server is bound to.
        origins: Origins that may ask.
        methods: The HTTP methods that the endpoint serves.
        most: The most bytes that a body may have.
        sse: Whether the paths of HTTP+SSE are served as well.
    """

    def __init__(
        self, path: str, hosts: Collection[str] | None, origins: Collection[str], methods: str, most: int, *, sse: bool
    ) -> None:
        self._path = path
        self._hosts = None if hosts is None else named_hosts(hosts)
        self._origins = named_origins(origins)
        self.methods = methods
        self._most = most
        self._sse = sse
        self._allowed: dict[str | None, Allowed] = {}
        self._known: dict[Any, dict[Any, Head]] = {}
        self._count = 0

    def of(self, scope: Scope) -> Head:
        """Return what the head of a request decides."""
        place = scope["method"], scope["path"], scope.get("root_path", ""), scope.get("server")
        headers = tuple(scope["headers"])
        try:
            return self._known[place][headers]
        except KeyError:
            pass
        except TypeError:  # a server that gives lists where ASGI has pairs
            return self._decide(scope)
        head = self._decide(scope)
        if sum(len(name) + len(value) for name, value in headers) + len(scope["path"]) <= LARGEST:
            self._keep(place, headers, head)
        return head

    def of_socket(self, scope: Scope) -> Head:
        """Return what the head of a WebSocket's request decides."""
        headers, path = Headers(scope["headers"]), below(scope)
        allowed = self._allowed_at(scope.get("server"))
        refusal = self._misplaced(scope, path, SOCKET_PATH) or allowed.refusal(headers) or _unshared(headers, allowed)
        return Head(headers, path, refusal, None, None, None)

    def _keep(self, place: Any, headers: Any, head: Head) -> None:
        if self._count >= KEPT:
            self._known.clear()
            self._count = 0
        self._known.setdefault(place, {})[headers] = head
        self._count += 1

    def _decide(self, scope: Scope) -> Head:
        headers, method = Headers(scope["headers"]), scope["method"]
        allowed = self._allowed_at(scope.get("server"))
        refusal = self._refusal(scope, headers, allowed)
        named = revision_named(headers)
        origin = allowed.shares(headers)
        plain = routed(headers) if method == "POST" and refusal is None and origin is None else None
        return Head(headers, below(scope), refusal, origin, named, plain)

    def _refusal(self, scope: Scope, headers: Headers, allowed: Allowed) -> Refusal | None:
        path = below(scope)
        if self._sse and path in SSE_PATHS:
            unfit = _unfit_for_sse(path, scope["method"], headers)
            return allowed.refusal(headers) or unfit or self._too_large(headers)
        if scope["method"] == "GET" and (headers.one("upgrade") or "").lower() == "websocket":
            # It was meant to become a WebSocket, and has come as a plain request.
            return self._misplaced(scope, path, SOCKET_PATH) or allowed.refusal(headers) or _NO_WEBSOCKETS
        refusal = self._misplaced(scope, path) or allowed.refusal(headers) or self._unfit(scope["method"], headers)
        return refusal or self._too_large(headers)

    def _misplaced(self, scope: Scope, path: str, *others: str) -> Refusal | None:
        if path in others or self._path in (path, scope["path"].rstrip("/")):
            return None
        endpoint = scope.get("root_path", "").rstrip("/") + self._path
        return Refusal(404, f"there is nothing here; the MCP endpoint is {endpoint or '/'}", -32601)

    def _too_large(self, headers: Headers) -> Refusal | None:
        given = headers.one("content-length") or ""
        if given.isascii() and given.isdigit() and int(given[:20]) > self._most:
            return Refusal(413, f"the body is larger than max_message={self._most} bytes")
        return None

    def _unfit(self, method: str, headers: Headers) -> Refusal | None:
        if method == "OPTIONS":
            return None
        if method not in self.methods.split(", "):
            return Refusal(405, f"{method} is not served here", headers={"allow": self.methods})
        if method != "POST":
            named = revision_named(headers)
            if not isinstance(named, Revision) or named.handshake:
                return None
            return Refusal(405, f"{method} is not served in this revision", headers={"allow": WITHOUT_SESSIONS})
        if not is_json(headers):
            return Refusal(415, f"the body must be {JSON}; say so in Content-Type")
        if (coding := headers.one("content-encoding")) is not None and coding.lower() != "identity":
            return Refusal(415, f"the body must not be encoded, and Content-Encoding says {coding!r}")
        if not (accepts(headers, JSON) and accepts(headers, EVENTS)):
            return Refusal(406, f"answers are {JSON} or {EVENTS}; list both in Accept")
        return None

    def _allowed_at(self, bound: Any) -> Allowed:
        address = None if bound is None else bound[0]
        found = self._allowed.get(address)
        if found is None:
            hosts = self._hosts
            if hosts is None and address is not None and is_loopback(address):
                # Behind a proxy or in a test nobody knows where requests come in; on loopback only its names do.
                hosts = {*LOOPBACK, address}
            if len(self._allowed) >= KEPT:  # some servers take it from the request
                self._allowed.clear()
            found = self._allowed[address] = Allowed(hosts, self._origins)
        return found


_NO_WEBSOCKETS: Final = Refusal(
    501,
    "WebSockets are not served here; where the server runs, uvicorn needs websockets for it: "
    "pip install 'modelwire[http,ws]'",
)


def _unshared(headers: Headers, allowed: Allowed) -> Refusal | None:
    """Return why a page gets no WebSocket although it may ask over HTTP.

    There a browser keeps the answers from every page that is neither ours nor named. With a WebSocket it keeps nothing.
    """
    origin = headers.one("origin")
    if origin is None or allowed.shares(headers) is not None:
        return None
    if origin.partition("://")[2].lower() == (headers.one("host") or "").lower():
        return None
    return Refusal(403, f"the Origin {origin!r} may not open a WebSocket; add it to allowed_origins=")


def _unfit_for_sse(path: str, method: str, headers: Headers) -> Refusal | None:
    wanted = "GET" if path == EVENTS_PATH else "POST"
    if method not in (wanted, "OPTIONS"):
        return Refusal(405, f"{method} is not served here", headers={"allow": f"{wanted}, OPTIONS"})
    if method == "GET" and not accepts(headers, EVENTS):
        return Refusal(406, f"a GET is answered with {EVENTS}; list it in Accept")
    if method == "POST" and not is_json(headers):
        return Refusal(415, f"the body must be {JSON}; say so in Content-Type")
    return None


def below(scope: Scope) -> str:
    """Return the path below the prefix that the application is mounted under, without a slash at its end."""
    path: str = scope["path"]
    prefix: str = scope.get("root_path", "").rstrip("/")
    while prefix:
        if path.startswith(prefix) and path[len(prefix) : len(prefix) + 1] in ("", "/"):
            path = path[len(prefix) :]
            break
        # What a proxy has taken away stands before the prefixes of frameworks here, and in the path no more.
        prefix = prefix[prefix.find("/", 1) :] if "/" in prefix[1:] else ""
    return path.rstrip("/")
