"""`Server.asgi`: an ASGI application that serves MCP, mountable under any prefix of any other.

Both eras are served on one path at the same time: a POST of 2026-07-28 says so in its headers. The application starts
itself with the first request; where ASGI's lifespan is run, its end is graceful. It opens no socket.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

from modelwire.errors import ConfigError
from modelwire.log import log as _log
from modelwire.protocol import jsonrpc
from modelwire.protocol.jsonrpc import InvalidFrame
from modelwire.rules import cors
from modelwire.rules.http import (
    EVENTS,
    JSON,
    LOOPBACK,
    Allowed,
    Headers,
    Refusal,
    accepts,
    is_json,
    is_loopback,
    revision_named,
)
from modelwire.server.http import handshake, old_sse, per_request
from modelwire.server.http.at_work import AtWork
from modelwire.server.http.exchange import Incoming
from modelwire.server.http.old_sse import OldSse
from modelwire.server.http.reply import Receive, Send, refuse, respond
from modelwire.server.http.sessions import Sessions
from modelwire.server.lifespan import Running

if TYPE_CHECKING:
    from modelwire.server.server import Server

Scope = MutableMapping[str, Any]
Principal = Callable[[Scope], "str | Awaitable[str | None] | None"]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]

BODY_SECONDS = 30.0
"""Seconds that a request's body may take to arrive."""


class App:
    """The application. Made by `Server.asgi`, which says what the arguments mean."""

    def __init__(
        self,
        server: Server,
        path: str,
        *,
        allowed_hosts: Collection[str] | None,
        allowed_origins: Collection[str],
        principal: Principal | None,
        max_sessions: int,
        session_idle: float,
        stateless: bool,
        sse: bool,
        health: str | None,
        routes: Mapping[str, Asgi] | None,
    ) -> None:
        for name in (path, *(() if health is None else (health,)), *(routes or ())):
            if not name.startswith("/"):
                raise ConfigError(f"a path begins with a slash, as in '/mcp'; {name!r} does not")
        self._server = server
        self._path = path.rstrip("/")
        self._hosts = allowed_hosts
        self._origins = tuple(allowed_origins)
        self._principal = principal
        self._stateless = stateless
        self._health = None if health is None else health.rstrip("/")
        self._routes = {name.rstrip("/"): route for name, route in (routes or {}).items()}
        self._bound: dict[str | None, Allowed] = {}
        self._sessions = Sessions(max_sessions, session_idle)
        self._old = OldSse(server, max_sessions) if sse else None
        self._at_work = AtWork()
        self._starting = asyncio.Lock()
        self._running: Running | None = None
        self._closed = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, as ASGI has it."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        route = self._routes.get(below(scope)) if self._routes else None
        if route is not None:
            await route(scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000, "reason": "there is no WebSocket here"})

    # ------------------------------------------------------------------ beginning and end

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        self._closed = False  # a lifespan may begin again, as in tests of whoever mounts us
        try:
            await self.start()
        except Exception as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            raise
        await send({"type": "lifespan.startup.complete"})
        await receive()
        with contextlib.suppress(Exception):
            await self.aclose()
        await send({"type": "lifespan.shutdown.complete"})

    async def start(self) -> Running:
        """Start what the first request would start: the server's lifespan."""
        if self._running is None:
            async with self._starting:
                if self._running is None:
                    self._server.settle()
                    self._running = await self._server.features.lifespan.enter()
        return self._running

    async def aclose(self, grace: float = 0.0) -> None:
        """End what is open: subscriptions with their result, requests, sessions, then the server's lifespan.

        Args:
            grace: Seconds that running requests may take to finish.
        """
        self._closed = True
        await self._server.features.listeners.end_all()
        self._sessions.hang_up()
        over = [call.closed() for call in (*self._at_work.calls(), *self._sessions.calls())]
        if over:
            await asyncio.wait(over, timeout=grace)
        await self._at_work.close()
        if self._old is not None:
            await self._old.close(grace)
        await self._sessions.close("the server is ending")
        running, self._running = self._running, None
        if running is not None:
            await self._server.features.lifespan.leave(running)

    # ------------------------------------------------------------------ requests

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope["headers"])
        if self._health is not None and below(scope) == self._health:
            await self._say_how_it_is(scope["method"], send)
            return
        allowed = self._allowed(scope)
        origin = allowed.shares(headers)
        if origin is not None:
            send = _with(send, cors.shared_with(origin))
        refusal = self._refusal(scope, headers, allowed)
        if refusal is not None:
            await refuse(send, refusal, method=scope["method"])
            return
        if scope["method"] == "OPTIONS":
            more = [] if origin is None else cors.preflight(headers)
            await respond(send, 204, headers=[(b"allow", self._methods.encode()), *more])
            return
        body = b""
        if scope["method"] == "POST":
            found = await self._body(receive)
            if isinstance(found, Refusal):
                await respond(send, found.status, found.body(), [(b"connection", b"close")])
                return
            body = found
        running = await self.start()
        incoming = Incoming(scope, receive, send, headers, body, await self._asks(scope))
        if self._old is not None and below(scope) in old_sse.PATHS:
            await self._old.answer(running, incoming)
        else:
            await self._route(running, incoming)

    async def _route(self, running: Running, incoming: Incoming) -> None:
        method = incoming.scope["method"]
        if method == "GET":
            await handshake.get(self._sessions, incoming)
            return
        if method == "DELETE":
            await handshake.delete(self._sessions, incoming)
            return
        message: Any
        try:
            message = jsonrpc.decode(incoming.body)
        except InvalidFrame as invalid:
            message = invalid
        if per_request.names_per_request(revision_named(incoming.headers), message):
            await per_request.answer(self._server, running, self._at_work, incoming, message)
        else:
            post = handshake.post_alone if self._stateless else handshake.post
            await post(self._server, running, self._sessions, incoming, message)

    def _refusal(self, scope: Scope, headers: Headers, allowed: Allowed) -> Refusal | None:
        """Return why a request is refused before its body is read."""
        if self._closed:
            return Refusal(503, "the server is ending", headers={"retry-after": "1"})
        if self._old is not None and below(scope) in old_sse.PATHS:
            return allowed.refusal(headers) or old_sse.unfit(below(scope), scope["method"], headers)
        if self._path not in (below(scope), scope["path"].rstrip("/")):
            return Refusal(404, f"there is nothing here; the MCP endpoint is {self._path or '/'}", -32601)
        return allowed.refusal(headers) or self._unfit(scope["method"], headers)

    @property
    def _methods(self) -> str:
        return "POST, OPTIONS" if self._stateless else "POST, GET, DELETE, OPTIONS"

    def _unfit(self, method: str, headers: Headers) -> Refusal | None:
        if method == "OPTIONS":
            return None
        if method not in self._methods.split(", "):
            return Refusal(405, f"{method} is not served here", headers={"allow": self._methods})
        if method != "POST":
            if handshake.speaks_handshake(revision_named(headers)):
                return None
            return Refusal(405, f"{method} is not served in this revision", headers={"allow": "POST, OPTIONS"})
        if not is_json(headers):
            return Refusal(415, f"the body must be {JSON}; say so in Content-Type")
        if not (accepts(headers, JSON) and accepts(headers, EVENTS)):
            return Refusal(406, f"answers are {JSON} or {EVENTS}; list both in Accept")
        return None

    def _allowed(self, scope: Scope) -> Allowed:
        bound = scope.get("server")
        address = None if bound is None else bound[0]
        found = self._bound.get(address)
        if found is None:
            hosts = self._hosts
            if hosts is None and address is not None and is_loopback(address):
                # Behind a proxy or in a test nobody knows where requests come in; on loopback only its names do.
                hosts = {*LOOPBACK, address}
            found = self._bound[address] = Allowed(hosts, self._origins)
        return found

    async def _say_how_it_is(self, method: str, send: Send) -> None:
        if method not in ("GET", "HEAD"):
            await respond(send, 405, headers=[(b"allow", b"GET, HEAD")])
            return
        body = b"" if method == "HEAD" else b'{"status":"ending"}' if self._closed else b'{"status":"ok"}'
        await respond(send, 503 if self._closed else 200, body, [(b"cache-control", b"no-store")])

    async def _body(self, receive: Receive) -> bytes | Refusal:
        most = self._server.max_message
        chunks: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while True:
                    part = await receive()
                    if part["type"] != "http.request":
                        return Refusal(400, "the body did not arrive as a whole")
                    chunks.append(part.get("body", b""))
                    size += len(chunks[-1])
                    if size > most:
                        return Refusal(413, f"the body is larger than max_message={most} bytes")
                    if not part.get("more_body", False):
                        return chunks[0] if len(chunks) == 1 else b"".join(chunks)
        except TimeoutError:
            _log.warning("a request's body did not arrive within %g s", BODY_SECONDS)
            return Refusal(408, f"the body did not arrive within {BODY_SECONDS:g} s")

    async def _asks(self, scope: Scope) -> str | None:
        if self._principal is None:
            return None
        found = self._principal(scope)
        return await found if isinstance(found, Awaitable) else found


def below(scope: Scope) -> str:
    """Return the path below the prefix that the application is mounted under, without a slash at its end."""
    return scope["path"].removeprefix(scope.get("root_path", "").rstrip("/")).rstrip("/")


def _with(send: Send, headers: Iterable[tuple[bytes, bytes]]) -> Send:
    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *headers]
        await send(message)

    return sending
