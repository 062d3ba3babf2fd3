"""`Server.asgi`: an ASGI application that serves MCP, mountable under any prefix of any other.

Both eras are served on one path at the same time: a POST of 2026-07-28 says so in its headers. The application starts
itself with the first request; where ASGI's lifespan is run, its end is graceful. It opens no socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

from modelwire.errors import ConfigError
from modelwire.protocol import jsonrpc
from modelwire.protocol.jsonrpc import InvalidFrame
from modelwire.rules import cors
from modelwire.rules.http import Refusal
from modelwire.rules.lines import BOM
from modelwire.rules.settings import function, whole
from modelwire.server.http import handshake, per_request
from modelwire.server.http.answers import Begin, Begun, Response, Whole
from modelwire.server.http.at_once import AtOnce
from modelwire.server.http.at_work import AtWork
from modelwire.server.http.body import Arriving, whole_body
from modelwire.server.http.exchange import Incoming
from modelwire.server.http.heads import SSE_PATHS, WITHOUT_SESSIONS, Head, Heads, Scope, below
from modelwire.server.http.old_sse import OldSse
from modelwire.server.http.reply import Receive, Reply, Send, answered, refuse, respond
from modelwire.server.http.sessions import Sessions
from modelwire.server.http.silences import Silences
from modelwire.server.http.websocket import WebSockets, refuse_socket
from modelwire.server.lifespan import Running

if TYPE_CHECKING:
    from modelwire.server.server import Server

Principal = Callable[[Scope], "str | Awaitable[str | None] | None"]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]

_ENDING = Refusal(503, "the server is ending", headers={"retry-after": "1"})


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
        methods = WITHOUT_SESSIONS if stateless else "POST, GET, DELETE, OPTIONS"
        self._heads = Heads(path.rstrip("/"), allowed_hosts, allowed_origins, methods, server.max_message, sse=sse)
        self._at_once = AtOnce(server)
        self._arriving = Arriving()
        self._principal = function(principal, "principal", "ASGI's scope")
        self._stateless = stateless
        self._health = None if health is None else health.rstrip("/")
        self._routes = {name.rstrip("/"): route for name, route in (routes or {}).items()}
        self._sessions = Sessions(whole(max_sessions, "max_sessions"), session_idle)
        self._old = OldSse(server, max_sessions) if sse else None
        self._sockets = WebSockets(server, max_sessions)
        self._at_work = AtWork()
        self._silences = Silences()
        self._starting = asyncio.Lock()
        self._running: Running | None = None
        self._closed = False
        self._no_sessions: str | None = None
        """Why no session can be kept; None where one can be."""

    def keep_no_sessions(self, why: str) -> None:
        """Refuse what needs a session, because other processes answer at this address, too: it would be lost there.

        Args:
            why: The beginning of a sentence.
        """
        self._no_sessions = why
        self._heads.methods = WITHOUT_SESSIONS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, as ASGI has it."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        route = self._routes.get(below(scope)) if self._routes else None
        if route is not None:
            await route(scope, receive, send)
        elif scope["type"] == "http":
            # What is left to do may take hours, in which nothing of the way to it stays.
            await (await self._http(scope, receive, send))
        elif scope["type"] == "websocket":
            await self._websocket(scope, receive, send)

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
        await self._server.features.listeners.end_of(self._at_work.calls())
        self._sessions.hang_up()
        over: list[asyncio.Future[None]] = [call.closed() for call in (*self._at_work.calls(), *self._sessions.calls())]
        apart = [asyncio.ensure_future(self._sockets.close(grace))]
        if self._old is not None:
            apart.append(asyncio.ensure_future(self._old.close(grace)))
        if over:
            await asyncio.wait([*over, *apart], timeout=grace)
        await self._at_work.close()
        await asyncio.gather(*apart)
        await self._sessions.close("the server is ending")
        running, self._running = self._running, None
        if running is not None:
            await self._server.features.lifespan.leave(running)

    # ------------------------------------------------------------------ requests

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Return what answers a request."""
        if self._health is not None and below(scope) == self._health:
            return self._say_how_it_is(scope["method"], send)
        head = self._heads.of(scope)
        if head.origin is not None:
            send = _with(send, cors.shared_with(head.origin))
        refusal = _ENDING if self._closed else head.refusal
        if refusal is not None:
            return refuse(send, refusal, method=scope["method"])
        if scope["method"] == "OPTIONS":
            more = [] if head.origin is None else cors.preflight(head.headers)
            return respond(send, 204, headers=[(b"allow", self._heads.methods.encode()), *more])
        body = b""
        if scope["method"] == "POST":
            whole = await whole_body(receive, self._server.max_message, self._arriving)
            if isinstance(whole, Refusal):
                return refuse(send, whole)
            body = whole
        return await self._answer(scope, receive, send, head, body)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, head: Head, body: bytes) -> Awaitable[None]:
        running = self._running or await self.start()
        principal = None if self._principal is None else await _asks(self._principal, scope)
        if head.routed is not None:
            answer = self._at_once.answer(head.routed, body, principal)
            if answer is not None:
                return respond(send, *answer)
        incoming = Incoming(scope, head, body, principal)
        if self._old is not None and head.path in SSE_PATHS:
            return self._old.answer(running, incoming, receive, send)
        begin = functools.partial(Reply, send, self._silences)
        return answered(await self._route(running, incoming, begin), receive, send)

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        head = self._heads.of_socket(scope)
        refusal = _ENDING if self._closed else head.refusal or self._sockets.unfit(scope)
        if refusal is not None:
            await refuse_socket(scope, send, refusal)
            return
        running = self._running or await self.start()
        principal = None if self._principal is None else await _asks(self._principal, scope)
        await self._sockets.serve(running, Incoming(scope, head, b"", principal), receive, send)

    async def _route(self, running: Running, incoming: Incoming, begin: Begin) -> Whole | Begun:
        method = incoming.scope["method"]
        if method == "GET":
            return handshake.get(self._sessions, incoming, begin)
        if method == "DELETE":
            return handshake.delete(self._sessions, incoming)
        message: Any
        try:
            message = jsonrpc.decode(incoming.body.removeprefix(BOM))
        except InvalidFrame as invalid:
            message = invalid
        if per_request.names_per_request(incoming.head.revision, message):
            return per_request.answer(self._server, running, self._at_work, incoming, message, begin)
        if self._no_sessions is not None and not self._stateless:
            return handshake.refuse_session(self._no_sessions, incoming, message)
        post = handshake.post_alone if self._stateless else handshake.post
        return await post(self._server, running, self._sessions, incoming, message, begin)

    def directly(self, scope: Scope, body: bytes, begin: Callable[..., Response]) -> Whole | Begun | None:
        """Begin to answer a request, where nothing has to be waited for before; None where something has, or may have.

        Args:
            scope: ASGI's.
            body: The body.
            begin: Begins a response: a `Begin`, with the `Silences` before the rest.
        """
        if self._running is None or self._closed or self._principal is not None or self._stateless:
            return None
        head = self._heads.of(scope)
        if head.refusal is not None or head.origin is not None or self._is_elsewhere(head.path):
            return None
        if head.routed is not None:
            answer = self._at_once.answer(head.routed, body, None)
            if answer is not None:
                return answer
        incoming = Incoming(scope, head, body, None)
        return self._begun(self._running, incoming, functools.partial(begin, self._silences))

    def _begun(self, running: Running, incoming: Incoming, begin: Begin) -> Whole | Begun | None:
        if incoming.scope["method"] == "GET":
            return handshake.get(self._sessions, incoming, begin)
        try:
            message = jsonrpc.decode(incoming.body)
        except InvalidFrame:
            return None
        if per_request.names_per_request(incoming.head.revision, message):
            return per_request.answer(self._server, running, self._at_work, incoming, message, begin)
        return handshake.post_to_session(self._sessions, incoming, message, begin)

    def _is_elsewhere(self, path: str) -> bool:
        """Whether a path, that may be the endpoint's, too, is that of something else."""
        return path == self._health or path in self._routes or (self._old is not None and path in SSE_PATHS)

    async def _say_how_it_is(self, method: str, send: Send) -> None:
        if method not in ("GET", "HEAD"):
            await respond(send, 405, headers=[(b"allow", b"GET, HEAD")])
            return
        body = b"" if method == "HEAD" else b'{"status":"ending"}' if self._closed else b'{"status":"ok"}'
        await respond(send, 503 if self._closed else 200, body, [(b"cache-control", b"no-store")])


async def _asks(principal: Principal, scope: Scope) -> str | None:
    found = principal(scope)
    return await found if isinstance(found, Awaitable) else found


def _with(send: Send, headers: Iterable[tuple[bytes, bytes]]) -> Send:
    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *headers]
        await send(message)

    return sending
