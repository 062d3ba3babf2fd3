"""A client over HTTP: on every revision, what it asks and how, and what it knows of a server."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import pytest

from modelwire import (
    Client,
    ConnectionFailed,
    Context,
    Observer,
    PeerError,
    RequestTimeout,
    Server,
    ToolsChanged,
)
from modelwire.transports.http.endpoint import HttpOptions, endpoint
from tests.transports.http.scripted import (
    HANDSHAKE,
    SAID,
    Out,
    Request,
    done,
    legacy,
    modern,
    web,
)
from tests.wire import MODERN, every_handshake, every_revision


@dataclass
class Person:
    name: str


def make_server() -> Server:
    server = Server("over http", version="1")

    @server.tool
    def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    async def slow(ctx: Context) -> str:
        ctx.progress(1, 2, "half")
        ctx.log("info", "working")
        return "done"

    @server.tool
    async def ask(ctx: Context) -> str:
        return (await ctx.elicit("Name?", Person)).name

    server.add_resource("file:///größe", lambda: "big", name="size")
    server.add_prompt(lambda: "say", name="grüße")
    return server


# ------------------------------------------------------------------ every revision


@every_revision
async def test_everything_is_there_on_every_revision(revision: str) -> None:
    logs: list[Any] = []
    progress: list[Any] = []
    async with (
        make_server().serving("http://127.0.0.1:0/mcp") as serving,
        Client(serving.url, revision=revision, on_log=logs.append) as client,
    ):
        assert client.revision.name == revision
        assert [tool.name for tool in await client.list_tools()] == ["add", "slow", "ask"]
        assert await client.call("add", {"a": 1, "b": 2}, returns=int) == 3
        text = await client.call("slow", on_progress=lambda *args: progress.append(args))
        assert (text, progress[0][:2]) == ("done", (1.0, 2.0))
        assert [log.data for log in logs] == ["working"]
        assert (await client.read_resource("file:///größe")).contents[0].text == "big"  # type: ignore[union-attr]
        assert len((await client.get_prompt("grüße")).messages) == 1
        await client.ping()


@pytest.mark.parametrize("revision", ["2025-06-18", HANDSHAKE, "2026-07-28"])
async def test_questions_are_answered_on_every_revision_that_has_them(revision: str) -> None:
    async with (
        make_server().serving("http://127.0.0.1:0/mcp") as serving,
        Client(serving.url, revision=revision, on_elicit=lambda question: {"name": "Ada"}) as client,
    ):
        assert await client.call("ask") == "Ada"


@every_revision
async def test_changes_are_told_on_every_revision(revision: str) -> None:
    server = make_server()
    async with (
        server.serving("http://127.0.0.1:0/mcp") as serving,
        Client(serving.url, revision=revision) as client,
        client.listen(tools=True) as events,
    ):
        server.changed("tools")
        async with asyncio.timeout(10):
            assert await anext(events) == ToolsChanged()


@every_handshake
async def test_http_with_sse_is_found_where_nothing_else_is_spoken(revision: str) -> None:
    async with make_server().serving("http://127.0.0.1:0/mcp", sse=True) as serving:
        assert serving.url is not None
        url = serving.url.replace("/mcp", "/sse")
        for _ in range(2):  # the second time it is known
            async with Client(url, revision=revision, on_elicit=lambda question: {"name": "Ada"}) as client:
                assert client.revision.name == revision
                assert await client.call("add", {"a": 1, "b": 2}, returns=int) == 3
                assert await client.call("slow") == "done"


async def test_many_calls_at_once_share_few_connections() -> None:
    async with web(modern(done)) as server, Client(server.url) as client:
        results = await asyncio.gather(*(client.call("t") for _ in range(300)))
        assert results == ["done"] * 300
        assert server.connections <= 129


async def test_observers_see_frames_and_nothing_else() -> None:
    seen: list[tuple[str, Any]] = []

    class Watch(Observer):
        def frame(self, direction: Any, frame: bytes) -> None:
            seen.append((direction, json.loads(frame)))

    async with web(modern(done)) as server, Client(server.url, observers=[Watch()]) as client:
        await client.call("t")
    assert [(way, "method" in frame) for way, frame in seen] == [("out", True), ("in", False)] * 2


# ------------------------------------------------------------------ what is asked, and how


async def test_requests_of_2026_07_28_repeat_in_headers_what_the_body_says() -> None:
    schema = {
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "on": {"type": "boolean", "x-mcp-header": "On"},
            "deep": {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
            "none": {"type": "string", "x-mcp-header": "None"},
        },
    }
    async with (
        web(modern(done, lambda: [{"name": "größe", "inputSchema": schema}])) as server,
        Client(server.url) as client,
    ):
        await client.list_tools()
        await client.call("größe", {"region": " x", "on": True, "deep": {"n": 42}, "none": None})
    for request in server.requests:
        assert request.headers["content-type"] == "application/json"
        assert request.headers["accept"] == "application/json, text/event-stream"
        assert request.headers["mcp-protocol-version"] == "2026-07-28"
        assert request.headers["mcp-method"] == request.rpc
        assert "mcp-session-id" not in request.headers
    headers = server.asked("tools/call")[0].headers
    assert headers["mcp-name"] == "=?base64?Z3LDtsOfZQ==?="
    assert headers["mcp-param-region"] == "=?base64?IHg=?="
    assert (headers["mcp-param-on"], headers["mcp-param-n"]) == ("true", "42")
    assert "mcp-param-none" not in headers


async def test_a_header_mismatch_has_the_tools_listed_anew_and_the_call_sent_again() -> None:
    async def on_call(request: Request, out: Out) -> None:
        if "mcp-param-region" in request.headers:
            await done(request, out)
        else:
            await out.error(request, -32020, "Header mismatch: Mcp-Param-Region is missing", 400)

    schema = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    async with (
        web(modern(on_call, lambda: [{"name": "t", "inputSchema": schema}])) as server,
        Client(server.url) as client,
    ):
        assert await client.call("t", {"region": "eu"}) == "done"
        assert await client.call("t", {"region": "eu"}) == "done"
        with pytest.raises(PeerError, match="Header mismatch"):
            await client.call("t", {})
    assert len(server.asked("tools/list")) == 2


async def test_tools_with_invalid_headers_are_left_out_of_lists(caplog: pytest.LogCaptureFixture) -> None:
    bad = {"name": "bad", "inputSchema": {"type": "object", "x-mcp-header": "X"}}
    good = {"name": "good", "inputSchema": {"type": "object"}}
    async with web(modern(done, lambda: [bad, good])) as server, Client(server.url) as client:
        assert [tool.name for tool in await client.list_tools()] == ["good"]
    assert "'bad' is left out" in caplog.text


async def test_a_session_has_its_id_and_revision_in_every_request_after_initialize() -> None:
    async with web(legacy(done)) as server, Client(server.url) as client:
        assert await client.call("t") == "done"
        await server.wait_for("GET")
    assert "mcp-session-id" not in server.asked("initialize")[0].headers
    for rpc in ("notifications/initialized", "GET", "tools/call", "DELETE"):
        headers = server.asked(rpc)[0].headers
        assert (headers["mcp-session-id"], headers["mcp-protocol-version"]) == ("s1", HANDSHAKE)
    order = [request.rpc for request in server.requests]
    assert order.index("notifications/initialized") < min(order.index("GET"), order.index("tools/call"))


async def test_a_server_without_sessions_is_sent_none() -> None:
    async with web(legacy(done, session=None, revision="2025-03-26")) as server, Client(server.url) as client:
        assert await client.call("t") == "done"
    assert not server.asked("DELETE")
    assert not any({"mcp-session-id", "mcp-protocol-version"} & set(r.headers) for r in server.asked("tools/call"))


async def test_headers_are_those_of_the_user_and_may_be_made_for_each_request() -> None:
    count = 0

    async def headers() -> dict[str, str]:
        nonlocal count
        count += 1
        return {"X-Count": str(count)}

    async with web(modern(done)) as server:
        async with Client(server.url, headers={"Authorization": "Bearer abc", "Accept": "text/html"}) as client:
            await client.call("t")
        async with Client(server.url, headers=headers) as client:
            await client.call("t")
        url = server.url.replace("http://", "http://me:p%40ss@")
        async with Client(url) as client:
            await client.call("t")
    first, second, third = server.asked("tools/call")
    assert first.headers["authorization"] == "Bearer abc"
    assert first.headers["accept"] == "application/json, text/event-stream"
    assert second.headers["x-count"] == "2"
    assert third.headers["authorization"] == "Basic bWU6cEBzcw=="


async def test_cookies_are_sent_back() -> None:
    async def on_call(request: Request, out: Out) -> None:
        await out.result(request, SAID, set_cookie="place=7; Path=/")

    async with web(modern(on_call)) as server, Client(server.url) as client:
        await client.call("t")
        await client.call("t")
    assert [request.headers.get("cookie") for request in server.asked("tools/call")] == [None, "place=7"]


# ------------------------------------------------------------------ the era, and what is known of it

OTHER_WORLDS: dict[str, Any] = {
    "foreign id": (400, b'{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Bad"}}'),
    "null id": (400, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad"}}'),
    "page": (400, b"<html>"),
    "empty": (400, b""),
    "404": (404, b""),
    "406": (406, b""),
    "500": (500, b"oops"),
    "200": (200, b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"unknown"}}'),
}


@pytest.mark.parametrize(("status", "body"), OTHER_WORLDS.values(), ids=OTHER_WORLDS.keys())
async def test_a_server_of_the_handshake_era_may_refuse_the_probe_in_any_way(status: int, body: bytes) -> None:
    # Case 35, over HTTP.
    async def play(request: Request, out: Out) -> None:
        if request.rpc == "server/discover":
            await out.send(status, body, "application/json")
        else:
            await legacy(done)(request, out)

    async with web(play) as server:
        async with Client(server.url) as client:
            assert client.revision.name == HANDSHAKE
        async with Client(server.url) as client:
            assert await client.call("t") == "done"
        assert len(server.asked("server/discover")) == 1


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_a_server_that_cannot_answer_now_is_not_taken_for_one_of_the_handshake_era(status: int) -> None:
    async def play(request: Request, out: Out) -> None:
        if request.rpc == "server/discover" and len(server.asked("server/discover")) == 1:
            await out.send(status, b"not now", "text/plain")
        else:
            await modern(done)(request, out)

    async with web(play) as server:
        with pytest.raises(ConnectionFailed, match=str(status)):
            await Client(server.url).connect()
        async with Client(server.url) as client:
            assert client.revision.name == MODERN
        assert server.asked("initialize") == []


@pytest.mark.parametrize("code", [-32020, -32021, -32022])
async def test_an_error_of_the_newer_era_is_no_reason_to_fall_back(code: int) -> None:
    async def play(request: Request, out: Out) -> None:
        await out.error(None, code, "not like this", 400, data={"supported": ["2030-01-01"]})

    async with web(play) as server:
        with pytest.raises(ConnectionFailed):
            await Client(server.url).connect()
        assert {request.rpc for request in server.requests} == {"server/discover"}


async def test_a_revision_that_was_chosen_is_not_taken_for_what_the_server_speaks() -> None:
    async with make_server().serving("http://127.0.0.1:0/mcp") as serving:
        async with Client(serving.url, revision=HANDSHAKE):
            pass
        async with Client(serving.url) as client:
            assert client.revision.name == "2026-07-28"


async def test_what_was_known_of_a_server_is_found_out_anew_when_it_no_longer_holds() -> None:
    scripts = [legacy(done), modern(done)]

    async def play(request: Request, out: Out) -> None:
        if request.rpc == "initialize" and scripts[0] is not first:
            await out.error(request, -32601, "unknown", 404)
        elif request.method == "GET":
            await out.send(405)
        else:
            await scripts[0](request, out)

    first = scripts[0]
    async with web(play) as server:
        async with Client(server.url):
            pass
        scripts.pop(0)
        async with Client(server.url) as client:
            assert client.revision.name == "2026-07-28"


async def test_a_server_that_was_known_to_be_old_may_have_become_newer() -> None:
    async def play(request: Request, out: Out) -> None:
        if request.method == "GET":
            await out.send(405)
        elif request.rpc == "initialize":
            await out.error(request, -32601, "unknown", 404)
        else:
            await modern(done)(request, out)

    for revision in ("2026-07-28", None):
        async with web(play) as server:
            endpoint(server.url, HttpOptions()).known.old = True
            async with Client(server.url, revision=revision) as client:
                assert await client.call("t") == "done"


async def test_the_place_of_messages_on_another_server_is_refused() -> None:
    async def play(request: Request, out: Out) -> None:
        if request.method == "GET":
            await out.events()
            await out.event("http://127.0.0.1:9/messages", name="endpoint")
            await asyncio.Event().wait()
        else:
            await out.send(405, b"only GET", "text/plain")

    async with web(play) as server:
        with pytest.raises(ConnectionFailed, match="HTTP 405"):
            await Client(server.url).connect()


async def test_the_end_of_the_one_stream_of_http_with_sse_is_a_lost_connection() -> None:
    streams: list[Out] = []

    async def play(request: Request, out: Out) -> None:
        if request.method == "GET":
            await out.events()
            streams.append(out)
            await out.event("/messages?id=7", name="endpoint")
            await asyncio.Event().wait()
        elif request.path == "/mcp":
            await out.send(405)
        else:
            await out.send(202, b"Accepted", "text/plain")
            if request.rpc == "initialize":
                result = {
                    "protocolVersion": "2024-11-05",
                    "capabilities": {},
                    "serverInfo": {"name": "o", "version": "1"},
                }
                await streams[-1].event({"jsonrpc": "2.0", "id": request.message["id"], "result": result})
            elif request.rpc == "ping":
                await streams[-1].event({"jsonrpc": "2.0", "id": request.message["id"], "result": {}})

    async with web(play) as server, Client(server.url) as client:
        await client.ping()
        streams[0].reset()
        await client.ping()
        assert len(streams) == 2


# ------------------------------------------------------------------ giving up


async def test_giving_up_a_request_of_2026_07_28_closes_its_stream() -> None:
    async def on_call(request: Request, out: Out) -> None:
        await asyncio.Event().wait()

    async with web(modern(on_call)) as server, Client(server.url) as client:
        with pytest.raises(RequestTimeout):
            await client.call("t", timeout=0.05)
        async with asyncio.timeout(10):
            await server.hung_up.wait()
        await client.list_tools()
    assert {request.rpc for request in server.requests} == {"server/discover", "tools/call", "tools/list"}


async def test_giving_up_a_request_of_a_session_is_told() -> None:
    async def on_call(request: Request, out: Out) -> None:
        if request.rpc == "notifications/cancelled":
            await out.send(202)
        else:
            await asyncio.Event().wait()

    async with web(legacy(on_call)) as server, Client(server.url) as client:
        call = asyncio.create_task(client.call("t"))
        await server.wait_for("tools/call")
        call.cancel()
        cancelled = await server.wait_for("notifications/cancelled")
        assert cancelled.message["params"]["requestId"] == server.asked("tools/call")[0].message["id"]


async def test_closing_waits_for_no_server() -> None:
    async def silent(request: Request, out: Out) -> None:
        if request.method == "DELETE":
            await out.send(405)
            return
        await asyncio.Event().wait()

    async with web(legacy(silent, get=silent)) as server:
        client = Client(server.url)
        await client.connect()
        calls = [asyncio.create_task(client.call("t")) for _ in range(3)]
        await server.wait_for("tools/call", 3)
        await client.close()
        await client.close()
        for call in calls:
            with pytest.raises(Exception, match="the client was closed"):
                await call
