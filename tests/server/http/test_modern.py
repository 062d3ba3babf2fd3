"""2026-07-28 over HTTP: statuses, JSON or a stream, headers that agree, closing that cancels, streams that listen."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from modelwire import Context, RpcError, Server
from tests.clock import Clock
from tests.server.http.asgi import BOTH, Exchange, Modern, modern, serving
from tests.server.http.servers import make
from tests.wire import MODERN, PREFIX, dumps

PROGRESS = {"progressToken": "p"}


async def problem(exchange: Exchange) -> tuple[int, int]:
    """The status and the code of an error that is answered as JSON."""
    found = await exchange.json()
    assert exchange.status is not None
    return exchange.status, found["error"]["code"]


# ------------------------------------------------------------------ JSON or a stream


async def test_an_answer_that_nothing_precedes_is_json() -> None:
    async with modern(make().server) as client:
        exchange = client.call("add", {"a": 1, "b": 2})
        assert (await exchange.json())["result"]["structuredContent"] == 3
        assert exchange.status == 200
        assert "mcp-session-id" not in exchange.headers


async def test_an_answer_after_notifications_is_a_stream() -> None:
    async with modern(make().server) as client:
        exchange = client.call("steps", {"count": 2}, meta=PROGRESS, id="x")
        first, second, answer = await exchange.messages()
        assert exchange.status == 200
        assert exchange.headers["x-accel-buffering"] == "no"
        assert [m["params"]["progress"] for m in (first, second)] == [1, 2]
        assert answer["id"] == "x"
        assert answer["result"]["content"][0]["text"] == "2 steps"
        assert [event.id for event in exchange.events] == ["", "", ""]  # nothing here can be taken up again


async def test_a_notification_is_sent_while_the_request_goes_on() -> None:
    bench = make()
    async with modern(bench.server) as client:
        exchange = client.call("steps", {"count": 1, "then_wait": True}, meta=PROGRESS)
        assert (await exchange.message())["method"] == "notifications/progress"
        assert not exchange.over
        bench.go.set()
        assert (await exchange.message())["params"]["progress"] == 2
        assert (await exchange.result())["content"][0]["text"] == "1 steps"


async def test_silence_begins_a_stream_and_comments_keep_it() -> None:
    bench = make()
    async with modern(bench.server) as client:
        clock = Clock()
        exchange = client.call("wait")
        await bench.waiting.wait()
        await clock.advance(14)
        assert exchange.status is None
        await clock.advance(1.1)
        assert await exchange.started() == 200
        assert exchange.streams
        for _ in range(3):
            before = exchange.reader.comments
            await clock.advance(15.1)
            assert exchange.reader.comments == before + 1
        bench.go.set()
        assert (await exchange.result())["content"][0]["text"] == "wait"


async def test_an_error_in_a_stream_is_its_last_event() -> None:
    server = Server("late")

    @server.resource("file:///{name}")
    async def late(name: str, ctx: Context) -> str:
        ctx.progress(1)
        raise RpcError(-32602, f"there is no {name}")

    async with modern(server) as client:
        exchange = client.ask("resources/read", {"uri": "file:///x", "_meta": PROGRESS})
        told, answer = await exchange.messages()
        assert exchange.status == 200
        assert told["method"] == "notifications/progress"
        assert answer["error"]["code"] == -32602


# ------------------------------------------------------------------ statuses


async def test_the_status_of_errors_of_the_protocol() -> None:
    async with modern(make().server) as client:
        unknown = Modern(client.http).ask("nothing/here")
        assert await problem(unknown) == (404, -32601)
        assert await problem(client.call("nothing")) == (400, -32602)
        assert await problem(client.ask("resources/read", {"uri": "file:///none"})) == (400, -32602)
        capability = Modern(client.http).call("ask_name")
        assert await problem(capability) == (400, -32021)


async def test_what_is_no_json_is_told_as_that() -> None:
    async with modern(make().server) as client:
        for body in (b"", b"{", b"nonsense", b'{"a":1}x', b"\xff\xfe", b"[" * 100_000, b"NaN"):
            exchange = client.http.post(body, {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"})
            assert await problem(exchange) == (400, -32700), body[:10]
            assert json.loads(exchange.body).get("id") is None


@pytest.mark.parametrize("body", [b"5", b"null", b'"x"', b"{}", b"[]", b'{"jsonrpc":"2.0","id":1}'])
async def test_json_that_is_no_request_is_refused(body: bytes) -> None:
    async with modern(make().server) as client:
        exchange = client.http.post(body, {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"})
        assert await problem(exchange) == (400, -32600)


async def test_batches_and_responses_are_refused() -> None:
    async with modern(make().server) as client:
        message = client.message("tools/list")
        batch = client.http.post(dumps([message]), client.headers(message))
        assert await problem(batch) == (400, -32600)
        response = client.http.post({"jsonrpc": "2.0", "id": 1, "result": {}}, client.headers(message))
        assert await problem(response) == (400, -32600)


async def test_a_notification_is_accepted_without_a_body_and_dropped() -> None:
    bench = make()
    async with modern(bench.server) as client:
        waiting = client.call("wait", id=7)
        await bench.waiting.wait()
        told = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
        exchange = client.http.post(told, {"MCP-Protocol-Version": MODERN, "Mcp-Method": told["method"]})  # type: ignore[dict-item]
        assert await exchange.done() == 202
        assert exchange.body == b""
        assert "content-type" not in exchange.headers
        bench.go.set()
        assert (await waiting.result())["content"][0]["text"] == "wait"


async def test_a_revision_that_nobody_knows_is_answered_with_those_that_are_known() -> None:
    async with modern(make().server) as client:
        message = client.message("tools/list")
        message["params"]["_meta"][PREFIX + "protocolVersion"] = "2099-01-01"
        exchange = client.http.post(message, {**client.headers(message), "MCP-Protocol-Version": "2099-01-01"})
        assert await problem(exchange) == (400, -32022)
        assert MODERN in json.loads(exchange.body)["error"]["data"]["supported"]
        assert json.loads(exchange.body)["id"] == message["id"]


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH", "TRACE", "BREW"])
async def test_only_post_is_served(method: str) -> None:
    async with modern(make().server) as client:
        exchange = client.http.ask(method, {"MCP-Protocol-Version": MODERN, "Accept": BOTH})
        assert await exchange.done() == 405
        assert "POST" in exchange.headers["allow"]


async def test_accept_and_content_type_are_asked_for() -> None:
    async with modern(make().server) as client:
        for accept in ("application/json", "text/event-stream", "text/event-stream;q=0, application/json", "text/html"):
            assert await client.ask("tools/list", headers={"Accept": accept}).done() == 406
        for kind in ("text/plain", "text/plain; a=application/json", None):
            assert await client.ask("tools/list", headers={"Content-Type": kind}).done() == 415
        for kind in ("Application/JSON", "application/json;charset=UTF-8"):
            assert await client.ask("tools/list", headers={"Content-Type": kind, "Accept": "*/*"}).done() == 200
        assert await client.ask("tools/list", headers={"Accept": None}).done() == 200


async def test_a_body_may_come_in_pieces_and_not_be_too_large() -> None:
    async with modern(make(max_message=2000).server) as client:
        message = client.message("tools/list")
        body = dumps(message)
        pieces = client.http.post([body[n : n + 1] for n in range(len(body))], client.headers(message))
        assert "tools" in (await pieces.json())["result"]
        large = client.http.post([b" " * 999, b" " * 1001, b" ", body], client.headers(message))
        assert await large.done() == 413
        exact = client.http.post(body + b" " * (2000 - len(body)), client.headers(message))
        assert await exact.done() == 200
        for length, status in (("2001", 413), ("9" * 30, 413), ("2000", 200), ("\xb2", 200), ("x", 200), ("", 200)):
            announced = client.http.post(body, {**client.headers(message), "Content-Length": length})
            assert await announced.done() == status


async def test_a_body_that_does_not_come_is_not_waited_for_without_end() -> None:
    async with serving(make().server) as http:
        clock = Clock()

        class Slow(list[bytes]):
            def __iter__(self) -> Any:
                return iter([])

        exchange = http.ask("POST", {"Content-Type": "application/json", "Accept": BOTH}, Slow())
        await clock.advance(60)
        assert await exchange.done() == 408


async def test_a_client_that_goes_in_the_middle_of_its_body_is_no_failure() -> None:
    async with serving(make().server) as http:

        async def app_sees() -> None:
            messages = iter([{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}])

            async def receive() -> Any:
                return next(messages)

            async def send(message: Any) -> None:
                raise OSError("the client has gone")

            scope = {"type": "http", "method": "POST", "path": "/mcp", "server": ("127.0.0.1", 1)}
            headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
            await http.app({**scope, "headers": headers}, receive, send)

        await app_sees()


async def test_the_host_and_the_origin_are_looked_at_first() -> None:
    async with modern(make().server) as client:
        for headers in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}, {"Origin": "null"}):
            exchange = client.ask("tools/list", headers=headers)
            assert await exchange.done() == 403
            assert "allowed_" in exchange.body.decode()
            assert "id" not in json.loads(exchange.body) or json.loads(exchange.body)["id"] is None
        for headers in ({"Host": "localhost"}, {"Host": "[::1]:8000"}, {"Origin": "http://localhost:5173"}):
            assert await client.ask("tools/list", headers=headers).done() == 200


async def test_what_was_allowed_is_served() -> None:
    allowed = {"allowed_hosts": ["api.example"], "allowed_origins": ["https://app.example"]}
    async with modern(make().server, **allowed) as client:
        headers = {"Host": "API.example:443", "Origin": "https://app.example"}
        assert await client.ask("tools/list", headers=headers).done() == 200
        assert await client.ask("tools/list", headers={**headers, "Host": "localhost"}).done() == 403


async def test_another_address_of_loopback_is_loopback() -> None:
    async with modern(make().server, scope={"server": ("127.0.0.2", 8000)}) as client:
        assert await client.ask("tools/list", headers={"Host": "evil.example"}).done() == 403
        assert await client.ask("tools/list", headers={"Host": "localhost"}).done() == 200


# ------------------------------------------------------------------ headers and body

MISMATCHES: dict[str, dict[str, str | None]] = {
    "no version": {"MCP-Protocol-Version": None},
    "no method": {"Mcp-Method": None},
    "another method": {"Mcp-Method": "tools/list"},
    "the method in upper case": {"Mcp-Method": "TOOLS/CALL"},
    "no name": {"Mcp-Name": None},
    "another name": {"Mcp-Name": "add"},
    "a name in bad base64": {"Mcp-Name": "=?base64?!?="},
    "no parameter": {"Mcp-Param-Region": None},
    "another parameter": {"Mcp-Param-Region": "south"},
    "another number": {"Mcp-Param-Number": "43"},
    "an older version": {"MCP-Protocol-Version": "2025-11-25"},
}


@pytest.mark.parametrize("what", MISMATCHES)
async def test_headers_that_contradict_the_body_are_refused(what: str) -> None:
    async with modern(make().server) as client:
        right = {"Mcp-Param-Region": "north", "Mcp-Param-Number": "42"}
        exchange = client.call("region", {"place": "north", "number": 42}, headers={**right, **MISMATCHES[what]}, id=9)
        assert await problem(exchange) == (400, -32020)
        assert json.loads(exchange.body)["id"] == 9
        assert "mcp-session-id" not in exchange.headers


async def test_a_routing_header_twice_is_refused() -> None:
    async with modern(make().server) as client:
        message = client.message("tools/list")
        pairs = [*client.headers(message).items(), ("Content-Type", "application/json"), ("Accept", BOTH)]
        for name in ("Mcp-Method", "MCP-Protocol-Version"):
            exchange = client.http.ask("POST", [*pairs, (name, client.headers(message)[name])], dumps(message))
            assert (await exchange.json())["error"]["code"] in (-32020, -32022)
            assert exchange.status == 400


async def test_headers_that_agree_in_another_form_are_served() -> None:
    async with modern(make().server) as client:
        forms = {"Mcp-Param-Region": "=?base64?bm9ydGg=?=", "mcp-param-number": "42.0", "Mcp-Param-Unknown": "x"}
        exchange = client.call("region", {"place": "north", "number": 42}, headers=forms)
        assert (await exchange.result())["content"][0]["text"] == "north 42"
        without = client.call("region", {"place": "north", "number": None}, headers={"Mcp-Param-Region": "north"})
        assert (await without.result())["content"][0]["text"] == "north None"
        assert (await client.call("größe").result())["content"][0]["text"] == "big"
        assert (await client.ask("resources/read", {"uri": "file:///a"}).result())["contents"]
        assert (await client.ask("prompts/get", {"name": "prompt"}).result())["messages"]


async def test_a_body_without_its_meta_is_an_error_of_its_params() -> None:
    async with modern(make().server) as client:
        for params in ({"params": {}}, {}, {"params": []}, {"params": {"_meta": 5}}):
            message = {"jsonrpc": "2.0", "id": 3, "method": "tools/list", **params}
            headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"}
            status, code = await problem(client.http.post(message, headers))
            assert (status, code) in ((400, -32602), (400, -32600))
        bare = {"jsonrpc": "2.0", "id": 3, "method": "tools/list"}
        error = (await client.http.post(bare, headers).json())["error"]
        version = "io.modelcontextprotocol/protocolVersion"
        assert error["message"] == f'missing "{version}" in params._meta; every request of {MODERN} carries it'


async def test_headers_of_other_revisions_are_ignored() -> None:
    async with modern(make().server) as client:
        exchange = client.ask("tools/list", headers={"Mcp-Session-Id": "x", "Last-Event-ID": "1-1"})
        assert await exchange.done() == 200
        assert "mcp-session-id" not in exchange.headers


# ------------------------------------------------------------------ closing cancels


@pytest.mark.parametrize("first", ["nothing", "a notification"])
async def test_closing_the_stream_cancels_the_request(first: str) -> None:
    bench = make()
    async with modern(bench.server) as client:
        if first == "nothing":
            exchange = client.call("wait", {"name": "steps"})
        else:
            exchange = client.call("steps", {"then_wait": True}, meta=PROGRESS)
            await exchange.message()
        bystander = client.call("wait", {"name": "bystander"})
        await bench.waiting.wait()
        await Clock().turn()
        await exchange.leave()
        async with asyncio.timeout(5):
            await bench.cancelled.wait()
        bench.go.set()
        assert (await bystander.result())["content"][0]["text"] == "bystander"
        assert bench.events == ["steps cancelled", "bystander finished"]


async def test_a_send_that_fails_is_a_client_that_went() -> None:
    bench = make()
    async with modern(bench.server) as client:
        exchange = client.call("steps", {"then_wait": True, "count": 1}, meta=PROGRESS)
        await exchange.message()
        await bench.waiting.wait()
        exchange.left = True  # the next send raises, and no disconnect is told
        clock = Clock()
        await clock.advance(16)
        async with asyncio.timeout(5):
            await exchange.task
            await bench.cancelled.wait()
        assert bench.events == ["steps cancelled"]


async def test_an_application_that_is_cancelled_cancels_the_request() -> None:
    bench = make()
    async with serving(bench.server) as http:
        exchange = Modern(http).call("wait")
        await bench.waiting.wait()
        exchange.task.cancel()
        http.open.remove(exchange)
        async with asyncio.timeout(5):
            await bench.cancelled.wait()


# ------------------------------------------------------------------ listening


async def test_a_listener_hears_changes_and_its_stream_ends_with_its_result() -> None:
    bench = make()
    async with modern(bench.server) as client:
        stream = client.ask("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id="sub")
        acknowledged = await stream.message()
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        bench.server.add_tool(lambda: "x", name="more")
        assert (await stream.message())["method"] == "notifications/tools/list_changed"
        clock = Clock()
        comments = stream.reader.comments
        await clock.advance(15.1)
        assert stream.reader.comments == comments + 1
        await client.http.app.aclose()
        answer = await stream.answer()
        assert answer["id"] == "sub"
        assert answer["result"]["_meta"][PREFIX + "subscriptionId"] == "sub"


async def test_a_listener_that_goes_is_forgotten() -> None:
    bench = make()
    async with modern(bench.server) as client:
        gone = client.ask("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        stays = client.ask("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        await gone.message()
        await stays.message()
        await gone.leave()
        bench.server.add_tool(lambda: "x", name="more")
        assert (await stays.message())["method"] == "notifications/tools/list_changed"
        assert gone.events == []


# ------------------------------------------------------------------ the end


async def test_an_end_with_grace_waits_for_what_is_being_answered() -> None:
    bench = make()
    async with modern(bench.server) as client:
        exchange = client.call("wait")
        await bench.waiting.wait()
        ending = asyncio.create_task(client.http.app.aclose(5))
        await Clock().turn()
        assert await client.ask("tools/list").done() == 503
        bench.go.set()
        assert (await exchange.result())["content"][0]["text"] == "wait"
        await ending


async def test_an_end_without_grace_is_an_error_for_whoever_waits() -> None:
    bench = make()
    async with modern(bench.server) as client:
        exchange = client.call("wait")
        stream = client.call("steps", {"count": 1, "then_wait": True}, meta=PROGRESS)
        await stream.message()
        await bench.waiting.wait()
        await client.http.app.aclose()
        assert sorted(bench.events) == ["steps cancelled", "wait cancelled"]
        assert await problem(exchange) == (503, -32603)
        assert (await stream.answer())["error"]["code"] == -32603


# ------------------------------------------------------------------ asking, and who asks


async def test_a_question_is_a_result_that_is_answered_with_the_next_post() -> None:
    async with modern(make().server, meta={"clientCapabilities": {"elicitation": {}}}) as client:
        asked = await client.call("ask_name").result()
        assert asked["resultType"] == "input_required"
        (key,) = asked["inputRequests"]
        given = {
            "requestState": asked["requestState"],
            "inputResponses": {key: {"action": "accept", "content": {"name": "Ada"}}},
        }
        params = {"name": "ask_name", "arguments": {}, **given}
        assert (await client.ask("tools/call", params).result())["content"][0]["text"] == "hello Ada"
        lost = client.ask("tools/call", {**params, "requestState": "nonsense"})
        assert await problem(lost) == (400, -32602)


async def test_a_state_belongs_to_who_it_was_made_for() -> None:
    def who(scope: Any) -> str | None:
        return scope["client"][0]

    async with modern(make().server, meta={"clientCapabilities": {"elicitation": {}}}, principal=who) as client:
        asked = await client.call("ask_name").result()
        (key,) = asked["inputRequests"]
        given = {
            "requestState": asked["requestState"],
            "inputResponses": {key: {"action": "accept", "content": {"name": "Ada"}}},
        }
        params = {"name": "ask_name", "arguments": {}, **given}
        assert await problem(client.ask("tools/call", params, client=("10.0.0.1", 1))) == (400, -32602)
        assert (await client.ask("tools/call", params).result())["content"][0]["text"] == "hello Ada"


async def test_a_handler_knows_the_request() -> None:
    async with modern(make().server) as client:
        found = (await client.call("where", headers={"User-Agent": "test/1"}).result())["structuredContent"]
        assert found == {"client": ["127.0.0.1", 50000], "agent": "test/1", "path": "/mcp"}


async def test_fifty_clients_that_all_use_id_1_get_their_own_answers() -> None:
    async with modern(make().server) as client:
        calls = {n: client.call("add", {"a": n, "b": 1000}, id=1) for n in range(50)}
        for n, exchange in calls.items():
            assert (await exchange.json())["result"]["structuredContent"] == n + 1000
