"""The application among others: where it is mounted, what else it answers, pages of other origins, no state at all."""

from __future__ import annotations

from typing import Any

import pytest

from modelwire import ConfigError, Server
from tests.clock import Clock
from tests.server.http.asgi import BOTH, Http, Legacy, Modern, modern, serving
from tests.server.http.servers import make
from tests.wire import MODERN, dumps, opening

PAGE = "https://app.example"
PREFLIGHT = {
    "Origin": PAGE,
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "content-type,mcp-method,mcp-param-region",
}


# ------------------------------------------------------------------ where it is


@pytest.mark.parametrize(
    ("path", "scope"),
    [
        ("/mcp", {"path": "/mcp"}),
        ("/mcp", {"path": "/mcp/"}),
        ("/mcp/", {"path": "/mcp"}),
        ("/mcp", {"path": "/api/mcp", "root_path": "/api"}),
        ("/mcp", {"path": "/api/mcp/", "root_path": "/api/"}),
        ("/mcp", {"path": "/mcp", "root_path": "/api"}),  # a server that takes the prefix away
        ("/mcp", {"path": "/mcp/mcp", "root_path": "/mcp"}),
        ("/mcp", {"path": "/mcp", "root_path": "/mcp"}),
        ("/", {"path": "/"}),
        ("/", {"path": ""}),
        ("/", {"path": "/mcp", "root_path": "/mcp"}),
        ("/", {"path": "/mcp/", "root_path": "/mcp"}),
    ],
)
async def test_it_is_found_under_any_prefix_with_and_without_a_slash_and_without_a_redirect(
    path: str, scope: dict[str, Any]
) -> None:
    async with modern(make().server, path=path) as client:
        message = client.message("tools/list")
        headers = {"Content-Type": "application/json", "Accept": BOTH, **client.headers(message)}
        assert await client.http.ask("POST", headers, dumps(message), **scope).done() == 200


@pytest.mark.parametrize("path", ["/", "/mcpx", "/mcp/x", "/x/mcp", "mcp", "//mcp", "/MCP"])
async def test_anything_else_is_not_found(path: str) -> None:
    async with modern(make().server) as client:
        exchange = client.ask("tools/list", path=path)
        assert await exchange.done() == 404
        assert "/mcp" in exchange.body.decode()


def test_a_path_begins_with_a_slash() -> None:
    for wrong in ({"path": "mcp"}, {"health": "health"}, {"routes": {"x": None}}):
        with pytest.raises(ConfigError, match="slash"):
            Server("s").asgi(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"allowed_hosts": "api.example"},
        {"allowed_origins": "https://app.example"},
        {"allowed_origins": ["app.example"]},
        {"max_sessions": 0},
        {"principal": "ada"},
    ],
    ids=str,
)
def test_a_setting_that_cannot_be_right_is_refused_by_its_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"^{next(iter(wrong))}="):
        Server("s").asgi(**wrong)


async def test_health_is_told_to_anybody_until_the_end() -> None:
    async with serving(make().server, health="/health") as http:
        exchange = http.ask("GET", {"Host": "10.0.0.1"}, path="/health")
        assert await exchange.json() == {"status": "ok"}
        head = http.ask("HEAD", path="/health")
        assert await head.done() == 200
        assert head.body == b""
        assert await http.ask("POST", path="/health").done() == 405
        await http.app.aclose()
        assert await http.ask("GET", path="/health").done() == 503
    async with serving(make().server) as http:
        assert await http.ask("GET", path="/health").done() == 404


async def test_applications_of_others_are_served_beside_it() -> None:
    async def page(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": scope["path"].encode()})

    async with serving(make().server, routes={"/about": page, "/": page}) as http:
        for path in ("/about", "/"):
            exchange = http.ask("GET", path=path)
            assert await exchange.done() == 200
            assert exchange.body == path.encode()
        assert await Modern(http).ask("tools/list").done() == 200
        assert await http.ask("GET", path="/other").done() == 404


async def lived(app: Any) -> list[str]:
    """What an application says during a lifespan in which it answers a request."""
    said: list[str] = []
    messages = iter(["lifespan.startup", "lifespan.shutdown"])

    async def receive() -> Any:
        if said:
            assert await Modern(Http(app)).ask("tools/list").done() == 200
        return {"type": next(messages)}

    async def send(message: Any) -> None:
        said.append(message["type"])

    await app({"type": "lifespan"}, receive, send)
    return said


async def test_a_lifespan_starts_and_ends_it_and_may_do_so_again() -> None:
    events: list[str] = []

    async def lifespan(server: Server) -> Any:
        events.append("begin")
        yield
        events.append("end")

    app = make(lifespan=lifespan).server.asgi()
    for _ in range(2):
        assert await lived(app) == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert events == ["begin", "end"] * 2


async def test_a_lifespan_that_fails_is_told() -> None:
    async def lifespan(server: Server) -> Any:
        raise OSError("no database")
        yield

    said: list[Any] = []

    async def receive() -> Any:
        return {"type": "lifespan.startup"}

    async def send(message: Any) -> None:
        said.append(message)

    with pytest.raises(OSError, match="no database"):
        await make(lifespan=lifespan).server.asgi()({"type": "lifespan"}, receive, send)
    assert said == [{"type": "lifespan.startup.failed", "message": "no database"}]


# ------------------------------------------------------------------ HEAD, OPTIONS and pages of other origins


async def test_head_and_options_have_no_body() -> None:
    async with serving(make().server) as http:
        head = http.ask("HEAD")
        assert await head.done() == 405
        options = http.ask("OPTIONS")
        assert await options.done() in (200, 204)
        for exchange in (head, options):
            assert exchange.body == b""
            assert "POST" in exchange.headers["allow"]


async def test_a_page_of_an_allowed_origin_may_ask_and_read() -> None:
    async with modern(make().server, allowed_origins=[PAGE]) as client:
        asked = client.http.ask("OPTIONS", PREFLIGHT)
        assert await asked.done() in (200, 204)
        assert asked.headers["access-control-allow-origin"] == PAGE
        assert "POST" in asked.headers["access-control-allow-methods"]
        allowed = asked.headers["access-control-allow-headers"].lower()
        assert all(name in allowed for name in ("content-type", "mcp-method", "mcp-param-region"))
        assert "access-control-allow-credentials" not in asked.headers
        for exchange in (
            client.call("add", {"a": 1, "b": 2}, headers={"Origin": PAGE}),
            client.call("steps", {"count": 1}, meta={"progressToken": 1}, headers={"Origin": PAGE}),
            client.ask("tools/list", headers={"Origin": PAGE, "Mcp-Method": "x"}),
        ):
            await exchange.done()
            assert exchange.headers["access-control-allow-origin"] == PAGE
            assert "mcp-session-id" in exchange.headers["access-control-expose-headers"].lower()
            assert "origin" in exchange.headers["vary"].lower()


async def test_a_page_of_any_other_origin_is_told_nothing() -> None:
    async with modern(make().server, allowed_origins=[PAGE]) as client:
        for origin in ("https://evil.example", "null", f"{PAGE}.evil.example"):
            asked = client.http.ask("OPTIONS", {**PREFLIGHT, "Origin": origin})
            assert await asked.done() == 403
            assert not [name for name in asked.headers if name.startswith("access-control")]


async def test_without_an_allowed_origin_there_is_no_word_of_cors() -> None:
    async with modern(make().server) as client:
        local = {"Origin": "http://localhost:5173"}
        for exchange in (client.http.ask("OPTIONS", {**PREFLIGHT, **local}), client.ask("tools/list", headers=local)):
            assert await exchange.done() in (200, 204)
            assert not [name for name in exchange.headers if name.startswith("access-control")]


# ------------------------------------------------------------------ no state


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-11-25"])
async def test_without_state_every_post_stands_alone(revision: str) -> None:
    async with serving(make().server, stateless=True) as http:
        client = Legacy(http, revision)
        opened = client.ask("initialize", opening(revision))
        assert (await opened.result())["protocolVersion"] == revision
        assert "mcp-session-id" not in opened.headers
        named = {"MCP-Protocol-Version": revision if revision > "2025-06" else None}
        assert await client.tell("notifications/initialized", headers=named).done() == 202
        result = await client.call("add", {"a": 1, "b": 2}, headers=named).result()
        assert ("structuredContent" in result) is (revision == "2025-11-25")
        stream = client.call("steps", {"count": 1}, meta={"progressToken": 1}, headers=named)
        told, answer = await stream.messages()
        assert told["method"] == "notifications/progress"
        assert "result" in answer
        assert b"id:" not in stream.body  # nobody can come back to it
        assert await client.ask("tools/list", headers={**named, "Mcp-Session-Id": "from elsewhere"}).done() == 200
        for method in ("GET", "DELETE"):
            refused = http.ask(method, {"Accept": BOTH})
            assert await refused.done() == 405
            assert "GET" not in refused.headers["allow"]
        assert client.ledger.faults == []


async def test_without_state_2025_03_26_is_assumed_where_no_header_names_a_revision() -> None:
    async with serving(make().server, stateless=True) as http:
        batch = [{"jsonrpc": "2.0", "id": id, "method": "ping"} for id in (1, 2)]
        found = await http.post(dumps(batch)).json()
        assert sorted(answer["id"] for answer in found) == [1, 2]
        assert await http.post(dumps(batch), {"MCP-Protocol-Version": "2025-06-18"}).done() == 400


async def test_without_state_nobody_can_be_asked_and_a_disconnect_cancels_nothing() -> None:
    bench = make()
    async with serving(bench.server, stateless=True) as http:
        client = Legacy(http)
        version = {"MCP-Protocol-Version": "2025-11-25"}
        asked = await client.call("ask_name", headers=version).result()
        assert asked["isError"]
        assert "keeps nothing of its clients (stateless=True)" in asked["content"][0]["text"]
        gone = client.call("wait", headers=version)
        await bench.waiting.wait()
        gone.left = True
        gone._gone.set()
        await Clock().turn()
        assert bench.events == []
        bench.go.set()
        await Clock().turn()
        assert bench.events == ["wait finished"]


async def test_without_state_the_end_ends_what_runs() -> None:
    bench = make()
    async with serving(bench.server, stateless=True) as http:
        call = Legacy(http).call("wait", headers={"MCP-Protocol-Version": "2025-11-25"})
        await bench.waiting.wait()
        await http.app.aclose()
        await call.done()
        assert bench.events == ["wait cancelled"]


async def test_without_state_the_newest_revision_is_as_ever() -> None:
    async with modern(make().server, stateless=True) as client:
        assert await client.call("add", {"a": 1, "b": 2}).done() == 200
        unknown = client.http.post(b"{", {"MCP-Protocol-Version": MODERN})
        assert await unknown.done() == 400
