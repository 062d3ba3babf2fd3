"""The application inside real frameworks: under Starlette's and FastAPI's mounts, behind their middleware."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from modelwire import Context, Server
from tests.clock import Clock
from tests.leftovers import nothing_left
from tests.server.http.asgi import Exchange, Http, Legacy, Modern
from tests.server.http.raw import call, connected, opened
from tests.server.http.servers import Bench, make
from tests.wire import PATIENCE

PAGE = "https://app.example"

Outer = Callable[[Any], Any]
"""Puts our application into one of others."""


@contextlib.asynccontextmanager
async def mounted(bench: Bench, outer: Outer, path: str, *, at: str = "/mcp", **options: Any) -> AsyncIterator[Http]:
    """Requests to what our application is mounted in; at the end no task is left."""
    before = asyncio.all_tasks()
    app = bench.server.asgi(at, **options)
    whole = outer(app)

    async def served(scope: Any, receive: Any, send: Any) -> None:
        async def sending(message: Any) -> None:
            with contextlib.suppress(OSError):  # as uvicorn has it: nobody is told that a client has gone
                await send(message)

        await whole(scope, receive, sending)

    http = Http(served, path, closes=app)
    yield http
    await http.aclose()
    await Clock().turn()
    assert asyncio.all_tasks() - before == set()


# ------------------------------------------------------------------ where it is mounted


def nested(app: Any) -> Any:
    return Starlette(routes=[Mount("/outer", routes=[Mount("/inner", app=app)])])


def fast(app: Any) -> Any:
    outer = FastAPI()
    outer.mount("/api", app)
    return outer


def fast_in_fast(app: Any) -> Any:
    inner, outer = FastAPI(), FastAPI()
    inner.mount("/v1", app)
    outer.mount("/api", inner)
    return outer


def fast_behind_proxy(app: Any) -> Any:
    """The proxy takes ``/proxy`` away, and the application is told so."""
    outer = fast(app)

    async def server(scope: Any, receive: Any, send: Any) -> None:
        await outer({**scope, "root_path": "/proxy"}, receive, send)

    return server


def taking_away(app: Any) -> Any:
    """A router that takes the prefix away, and says nothing."""

    async def router(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "path": scope["path"].removeprefix("/api")}, receive, send)

    return router


MOUNTS = {
    "starlette": (lambda app: Starlette(routes=[Mount("/api", app=app)]), "/api"),
    "starlette, as the last route": (lambda app: Starlette(routes=[Mount("/", app=app)]), ""),
    "starlette, nested": (nested, "/outer/inner"),
    "starlette, with a parameter": (lambda app: Starlette(routes=[Mount("/{tenant}", app=app)]), "/acme"),
    "fastapi": (fast, "/api"),
    "fastapi in fastapi": (fast_in_fast, "/api/v1"),
    "fastapi behind a proxy": (fast_behind_proxy, "/api"),
    "a router that takes the prefix away": (taking_away, "/api"),
}
mounts = pytest.mark.parametrize(("outer", "prefix"), MOUNTS.values(), ids=MOUNTS)


@mounts
@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
async def test_both_eras_are_served_under_a_prefix(outer: Outer, prefix: str, path: str) -> None:
    async with mounted(make(), outer, prefix + path) as http:
        client = Modern(http)
        assert (await client.call("add", {"a": 1, "b": 2}).result())["structuredContent"] == 3
        told, answer = await client.call("steps", {"count": 1}, meta={"progressToken": 1}).messages()
        assert told["method"] == "notifications/progress"
        assert "result" in answer
        session = await Legacy(http).open()
        assert "result" in await session.ask("tools/list").answer()
        assert await session.delete().done() == 204
        assert client.ledger.faults + session.ledger.faults == []


@mounts
async def test_health_and_other_routes_are_found_under_a_prefix(outer: Outer, prefix: str) -> None:
    page = PlainTextResponse("about")
    async with mounted(make(), outer, prefix + "/mcp", health="/health", routes={"/about": page}) as http:
        assert await http.ask("GET", path=prefix + "/health").json() == {"status": "ok"}
        about = http.ask("GET", path=prefix + "/about")
        assert await about.done() == 200
        assert about.body == b"about"
        assert await http.ask("GET", path=prefix + "/other").done() == 404


@pytest.mark.parametrize(
    ("outer", "path", "endpoint"),
    [
        (nested, "/outer/inner/other", "/outer/inner/mcp"),
        (fast, "/api/other", "/api/mcp"),
        (fast_behind_proxy, "/api/other", "/proxy/api/mcp"),
    ],
)
async def test_what_is_not_there_says_where_the_endpoint_is_for_clients(outer: Outer, path: str, endpoint: str) -> None:
    async with mounted(make(), outer, path) as http:
        error = (await http.ask("POST").json())["error"]
        assert error["message"] == f"there is nothing here; the MCP endpoint is {endpoint}"


@mounts
async def test_a_stream_is_taken_up_again_under_a_prefix(outer: Outer, prefix: str) -> None:
    bench = make()
    async with mounted(bench, outer, prefix + "/mcp") as http:
        session = await Legacy(http).open()
        call = session.call("steps", {"count": 1, "then_wait": True}, meta={"progressToken": 1})
        id_ = (await call.event()).id
        await bench.waiting.wait()
        await call.leave()
        bench.go.set()
        again = session.get(id_)
        told = [message.get("method", "answer") for message in await again.messages()]
        assert told == ["notifications/progress", "answer"]
        assert session.ledger.faults == []


@mounts
async def test_clients_of_http_with_sse_are_told_where_to_post_under_a_prefix(outer: Outer, prefix: str) -> None:
    async with mounted(make(), outer, prefix + "/mcp", sse=True) as http:
        stream = http.ask("GET", {"Accept": "text/event-stream"}, path=prefix + "/sse")
        told = await stream.event()
        assert told.type == "endpoint"
        path, _, query = told.data.partition("?")
        # What a proxy has taken away, it takes away again.
        path = path.removeprefix("/proxy")
        assert path == (prefix if outer is not taking_away else "") + "/messages"
        posted = http.post(
            {"jsonrpc": "2.0", "id": 1, "method": "ping"}, path=prefix + "/messages", query_string=query.encode()
        )
        assert await posted.done() == 202
        assert (await stream.message())["id"] == 1
        await stream.leave()


@pytest.mark.parametrize(
    ("outer", "at", "path"),
    [
        (lambda app: Starlette(routes=[Route("/mcp", endpoint=app)]), "/mcp", "/mcp"),
        (lambda app: Starlette(routes=[Mount("/api", routes=[Route("/mcp", endpoint=app)])]), "/mcp", "/api/mcp"),
        (lambda app: Starlette(routes=[Mount("/mcp", app=app)]), "/", "/mcp/"),
        (lambda app: Starlette(routes=[Mount("/mcp", app=app)]), "/mcp", "/mcp/"),
    ],
)
async def test_the_endpoint_may_be_the_very_path_that_it_is_mounted_at(outer: Outer, at: str, path: str) -> None:
    async with mounted(make(), outer, path, at=at) as http:
        assert await Modern(http).ask("tools/list").done() == 200


async def test_two_servers_in_one_application_have_nothing_in_common() -> None:
    one, two = make(), make()
    first, second = one.server.asgi(), two.server.asgi()
    app = Starlette(routes=[Mount("/one", app=first), Mount("/two", app=second)])
    try:
        here, there = Http(app, "/one/mcp"), Http(app, "/two/mcp")
        session = await Legacy(here).open()
        stranger = Legacy(there)
        stranger.session = session.session
        assert await stranger.ask("ping").done() == 404
        assert await session.ask("ping").done() == 200
        assert await Modern(there).ask("tools/list").done() == 200
        await first.aclose()
        assert await Modern(here).ask("tools/list").done() == 503
        assert await Modern(there).ask("tools/list").done() == 200
    finally:
        await first.aclose()
        await second.aclose()


async def test_the_end_of_an_application_ends_nothing_of_another_that_serves_the_same_server() -> None:
    bench = make()
    first, second = bench.server.asgi(), bench.server.asgi()
    app = Starlette(routes=[Mount("/one", app=first), Mount("/two", app=second)])
    params = {"notifications": {"toolsListChanged": True}}
    try:
        ends, stays = (Modern(Http(app, path)).ask("subscriptions/listen", params) for path in ("/one/mcp", "/two/mcp"))
        session = await Legacy(Http(app, "/two/mcp")).open()
        stream = session.get()
        for listening in (ends, stays):
            assert (await listening.message())["method"] == "notifications/subscriptions/acknowledged"
        await stream.started()
        await first.aclose()
        assert "result" in await ends.answer()
        bench.server.add_tool(lambda: "x", name="more")
        for listening in (stays, stream):
            assert (await listening.message())["method"] == "notifications/tools/list_changed"
    finally:
        await first.aclose()
        await second.aclose()
    assert "result" in await stays.answer()


# ------------------------------------------------------------------ lifespans


async def lived(app: Any, during: Callable[[], Any]) -> list[str]:
    """What an application says during a lifespan."""
    said: list[str] = []
    messages = iter(["lifespan.startup", "lifespan.shutdown"])

    async def receive() -> Any:
        if said:
            await during()
        return {"type": next(messages)}

    async def send(message: Any) -> None:
        said.append(message["type"])

    await app({"type": "lifespan", "state": {}}, receive, send)
    return said


@pytest.mark.parametrize("passed_on", [False, True])
async def test_a_lifespan_may_be_passed_on(passed_on: bool) -> None:
    events: list[str] = []

    async def lifespan(server: Server) -> AsyncIterator[None]:
        events.append("begin")
        yield
        events.append("end")

    bench = make(lifespan=lifespan)
    inner = bench.server.asgi()

    @contextlib.asynccontextmanager
    async def outer(app: Any) -> AsyncIterator[None]:
        try:
            yield
        finally:
            if passed_on:
                await inner.aclose()

    app = Starlette(routes=[Mount("/api", app=inner)], lifespan=outer)
    http = Http(app, "/api/mcp")

    async def ask() -> None:
        assert events == []
        assert await Modern(http).ask("tools/list").done() == 200
        assert events == ["begin"]

    assert await lived(app, ask) == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert events == ["begin", "end"] if passed_on else ["begin"]
    if not passed_on:
        await inner.aclose()


# ------------------------------------------------------------------ middleware


class Buffering(BaseHTTPMiddleware):
    """Middleware as most people write it: with a `receive` and a `send` of its own."""

    async def dispatch(self, request: Request, call_next: Any) -> Any:
        request.state.person = request.headers.get("x-person")
        response = await call_next(request)
        response.headers["x-seen"] = "yes"
        return response


class Reading(BaseHTTPMiddleware):
    """One that has read the body before we do."""

    async def dispatch(self, request: Request, call_next: Any) -> Any:
        await request.body()
        return await call_next(request)


STACKS = {
    "one": [Middleware(Buffering)],
    "several": [Middleware(Buffering), Middleware(Reading), Middleware(Buffering)],
    "gzip": [Middleware(GZipMiddleware, minimum_size=1)],
    "gzip inside": [Middleware(Buffering), Middleware(GZipMiddleware, minimum_size=1)],
}
stacks = pytest.mark.parametrize("stack", STACKS.values(), ids=STACKS)


def behind(stack: list[Middleware]) -> Outer:
    return lambda app: Starlette(routes=[Mount("/api", app=app)], middleware=stack)


@stacks
async def test_answers_streams_and_sessions_come_through_middleware(stack: list[Middleware]) -> None:
    bench = make()
    async with mounted(bench, behind(stack), "/api/mcp") as http:
        client = Modern(http)
        assert "result" in await client.call("add", {"a": 1, "b": 2}).answer()
        call = client.call("steps", {"count": 2, "then_wait": True}, meta={"progressToken": 1})
        assert [(await call.message())["params"]["progress"] for _ in range(2)] == [1, 2]
        bench.go.set()
        assert "result" in await call.answer()
        session = await Legacy(http).open()
        listening = session.get()
        await listening.started()
        bench.server.add_tool(lambda: "x", name="more")
        assert (await listening.message())["method"] == "notifications/tools/list_changed"
        assert await session.delete().done() == 204
        await listening.done()
        assert client.ledger.faults + session.ledger.faults == []


@stacks
async def test_who_leaves_behind_middleware_cancels_its_request_where_the_revision_has_that(
    stack: list[Middleware],
) -> None:
    bench = make()
    async with mounted(bench, behind(stack), "/api/mcp") as http:
        call = Modern(http).call("steps", {"count": 1, "then_wait": True}, meta={"progressToken": 1})
        await call.event()
        await bench.waiting.wait()
        await call.leave()
        async with asyncio.timeout(PATIENCE):
            await bench.cancelled.wait()
        bench.waiting.clear()
        session = await Legacy(http).open()
        call = session.call("wait", {"name": "stays"})
        await bench.waiting.wait()
        await call.leave()
        bench.go.set()
        assert await session.ask("ping").done() == 200
        await Clock().turn()
        assert bench.events == ["steps cancelled", "stays finished"]


async def test_cors_of_a_framework_is_the_only_one_that_is_told() -> None:
    cors = Middleware(
        CORSMiddleware,
        allow_origins=[PAGE],
        allow_methods=["*"],
        allow_headers=["*"],
        expose_headers=["Mcp-Session-Id"],
    )
    async with mounted(make(), behind([cors]), "/api/mcp", allowed_origins=[PAGE]) as http:
        exchange = Modern(http).call("add", {"a": 1, "b": 2}, headers={"Origin": PAGE})  # no header may stand twice
        assert await exchange.done() == 200
        assert exchange.headers["access-control-allow-origin"] == PAGE
        stranger = Modern(http).call("add", {"a": 1, "b": 2}, headers={"Origin": "https://evil.example"})
        assert await stranger.done() == 403
        assert "access-control-allow-origin" not in stranger.headers


# ------------------------------------------------------------------ who asks


class Basic:
    """An authentication as Starlette has it."""

    async def authenticate(self, connection: Any) -> Any:
        from starlette.authentication import AuthCredentials, SimpleUser

        name = connection.headers.get("x-person")
        return None if name is None else (AuthCredentials(["authenticated"]), SimpleUser(name))


WHO: dict[str, tuple[Middleware, Callable[[Any], str | None]]] = {
    "request.state": (Middleware(Buffering), lambda scope: scope["state"]["person"]),
    "request.user": (
        Middleware(AuthenticationMiddleware, backend=Basic()),
        lambda scope: scope["user"].display_name or None,
    ),
}


@pytest.mark.parametrize(("middleware", "principal"), WHO.values(), ids=WHO)
async def test_who_asks_is_what_middleware_has_found_out(middleware: Middleware, principal: Any) -> None:
    bench = make()

    @bench.server.tool
    async def who(ctx: Context) -> str:
        return str(ctx.peer.principal)

    async def say(exchange: Exchange) -> str:
        return (await exchange.result())["content"][0]["text"]

    async with mounted(bench, behind([middleware]), "/api/mcp", principal=principal) as http:
        for name in ("ann", "bob"):
            assert await say(Modern(http).call("who", headers={"X-Person": name})) == name
        assert await say(Modern(http).call("who")) == "None"
        session = Legacy(http)
        opened = session.ask("initialize", json.loads(json.dumps(INITIALIZE)), headers={"X-Person": "ann"})
        assert await opened.done() == 200
        session.session = opened.headers["mcp-session-id"]
        assert await say(session.call("who", headers={"X-Person": "ann"})) == "ann"
        assert await session.call("who", headers={"X-Person": "bob"}).done() == 404
        assert await session.call("who").done() == 404


INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


# ------------------------------------------------------------------ under uvicorn, as anybody starts it


class Quiet(uvicorn.Server):
    """uvicorn that leaves the signals to the tests."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.asynccontextmanager
async def under_uvicorn(app: Any, inner: Any) -> AsyncIterator[str]:
    """Serve an application; give its origin."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = Quiet(uvicorn.Config(app, log_config=None, ws="none"))
    serving = asyncio.create_task(server.serve([listening]))
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        await inner.aclose()
        server.should_exit = True
        async with asyncio.timeout(PATIENCE):
            await serving
        listening.close()


@pytest.mark.parametrize("framework", [Starlette, FastAPI])
async def test_a_mounted_application_speaks_over_tcp(framework: Any, caplog: pytest.LogCaptureFixture) -> None:
    bench = make()
    inner = bench.server.asgi(health="/health")
    outer = framework(middleware=[Middleware(Buffering), Middleware(GZipMiddleware, minimum_size=1)])
    outer.mount("/api", inner)
    async with nothing_left(caplog), under_uvicorn(outer, inner) as origin, connected(origin) as http:
        path = "/api/mcp"
        await http.ask("POST", *call("add", {"a": 1, "b": 2}), path=path)
        assert b'"structuredContent":3' in (await http.whole())[2]
        await http.ask("POST", *call("steps", {"count": 1, "then_wait": True}, progressToken=1), path=path)
        _, headers = await http.head()
        assert (headers["content-type"], headers["x-seen"]) == ("text/event-stream", "yes")
        assert b"notifications/progress" in await http.chunk()
        bench.go.set()
        assert "result" in (await http.messages())[-1]
        session = await opened(http, path=path)
        async with connected(origin) as listening, connected(origin) as leaving:
            await listening.ask("GET", session, path=path)
            assert (await listening.head())[0] == 200
            bench.server.add_tool(lambda: "x", name="more")
            while b"list_changed" not in await listening.chunk():
                pass
            bench.go.clear()
            bench.waiting.clear()
            await leaving.ask("POST", *call("wait"), path=path)
            await bench.waiting.wait()
            leaving.writer.transport.abort()
            async with asyncio.timeout(PATIENCE):
                await bench.cancelled.wait()
            await http.ask("DELETE", session, path=path)
            assert (await http.head())[0] == 204
            assert await listening.messages() == []
