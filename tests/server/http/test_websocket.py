"""WebSockets, to the application in this process: who gets one, what a frame is, and how it ends."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import asynccontextmanager
from typing import Any

import pytest

from modelwire import Context, Server
from tests.clock import Clock
from tests.server.http.asgi import Http, Modern
from tests.server.http.servers import make
from tests.server.http.sockets import AsgiSocket, asgi_socket, talking
from tests.wire import MODERN, PATIENCE, dumps, every_handshake, every_revision, modern_meta

PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


async def refusal(socket: AsgiSocket) -> tuple[int, str]:
    await socket.done()
    assert socket.accepted is None
    assert socket.refused is not None
    status, body = socket.refused
    return status, json.loads(body)["error"]["message"]


# --------------------------------------------------------------------------------------------------- conversations


@every_revision
async def test_every_revision_is_spoken(revision: str) -> None:
    async with asgi_socket(make().server) as open_, talking(open_(), revision) as talk:
        assert await talk.text("add", {"a": 1, "b": 2}) == "3"
        assert (await talk.call("add", {"a": "x"}))["isError"]
        steps = await talk.begin_call("steps", {"count": 3}, progressToken="p")
        assert [(await talk.expect("notifications/progress"))["params"]["progress"] for _ in range(3)] == [1, 2, 3]
        assert (await steps.result())["content"][0]["text"] == "3 steps"


async def test_clients_of_both_eras_and_of_http_are_served_at_once() -> None:
    async with (
        asgi_socket(make().server) as open_,
        talking(open_("/ws"), MODERN) as new,
        talking(open_("/mcp"), "2025-06-18") as old,
    ):
        over_http = Modern(Http(open_.app)).call("add", {"a": 1, "b": 1})
        assert await new.text("add", {"a": 2, "b": 2}) == "4"
        assert await old.text("add", {"a": 3, "b": 3}) == "6"
        assert (await over_http.result())["content"][0]["text"] == "2"


@every_handshake
async def test_a_client_is_asked_over_its_own_socket(revision: str) -> None:
    server = Server("asks")

    @server.tool
    async def roots(ctx: Context) -> str:
        return ", ".join(str(root.uri) for root in await ctx.roots())

    async with asgi_socket(server) as open_, talking(open_(), revision, capabilities={"roots": {}}) as talk:
        call = await talk.begin_call("roots")
        asked = await talk.expect("roots/list")
        await talk.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": [{"uri": "file:///a"}]}})
        assert (await call.result())["content"][0]["text"] == "file:///a"


async def test_a_subscription_of_2026_ends_with_its_result_when_the_serving_does() -> None:
    async with asgi_socket(make().server) as open_:
        socket = open_()
        async with talking(socket, MODERN) as talk:
            listening = await talk.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
            await talk.expect("notifications/subscriptions/acknowledged")
            await open_.app.aclose()
            assert (await listening.result())["resultType"] == "complete"
        await socket.done()
        assert socket.closed == (1001, "the server is ending")


async def test_a_cancelled_request_is_not_answered() -> None:
    bench = make()
    async with asgi_socket(bench.server) as open_, talking(open_(), "2025-11-25") as talk:
        call = await talk.begin_call("wait")
        await bench.waiting.wait()
        await talk.cancel(call)
        async with asyncio.timeout(PATIENCE):
            await bench.cancelled.wait()
        assert await talk.quiet()
        assert not call.done


async def test_messages_are_answered_in_the_order_in_which_they_came() -> None:
    async with asgi_socket(make().server) as open_:
        socket = open_()
        async with talking(socket, "2025-11-25"):
            pass
        socket = open_()
        for number in range(100):
            await socket.say(f'{{"jsonrpc":"2.0","id":{number},"method":"ping"}}')
        answers = [json.loads(await socket.receive() or b"") for _ in range(100)]
        assert [answer["id"] for answer in answers] == list(range(100))


async def test_a_handler_knows_the_request_that_opened_its_socket() -> None:
    async with (
        asgi_socket(make().server) as open_,
        talking(open_(headers={"User-Agent": "me"}), "2025-11-25") as talk,
    ):
        found = json.loads(await talk.text("where"))
        assert found == {"client": ["127.0.0.1", 50000], "agent": "me", "path": "/mcp"}


async def test_who_asks_is_the_principal_of_every_request() -> None:
    server = Server("who")
    asked: list[str] = []

    @server.tool
    async def who(ctx: Context) -> str | None:
        return ctx.peer.principal

    async def principal(scope: Any) -> str:
        asked.append(scope["type"])
        return "ann"

    async with asgi_socket(server, principal=principal) as open_, talking(open_(), "2025-11-25") as talk:
        assert await talk.text("who") == "ann"
    assert asked == ["websocket"]


# --------------------------------------------------------------------------------------------------- who gets one


@pytest.mark.parametrize(
    ("offered", "chosen"), [([], None), (["mcp"], "mcp"), (["other", "mcp"], "mcp")], ids=["none", "mcp", "several"]
)
async def test_the_subprotocol_is_mcp_where_any_was_offered(offered: list[str], chosen: str | None) -> None:
    async with asgi_socket(make().server) as open_:
        socket = open_(subprotocols=offered)
        await socket.say(PING)
        assert json.loads(await socket.receive() or b"")["result"] == {}
        assert socket.accepted is not None
        assert socket.accepted.get("subprotocol") == chosen


async def test_who_offers_other_subprotocols_only_is_refused() -> None:
    async with asgi_socket(make().server) as open_:
        status, why = await refusal(open_(subprotocols=["graphql-ws"]))
        assert (status, why) == (400, "the subprotocol is 'mcp'; offer it, or none, and not graphql-ws")


@pytest.mark.parametrize(
    ("headers", "setting"),
    [
        ({"Origin": "http://evil.example"}, "allowed_origins="),
        # Over HTTP the browser keeps the answers from it.
        ({"Origin": "http://localhost:3000"}, "allowed_origins="),
        ({"Origin": "null"}, "allowed_origins="),
        ({"Host": "evil.example"}, "allowed_hosts="),
        ({"Host": "evil.example:8000", "Origin": "http://evil.example:8000"}, "allowed_hosts="),
    ],
    ids=["origin", "other page", "null", "host", "rebinding"],
)
async def test_strangers_pages_and_hosts_get_none(headers: dict[str, str], setting: str) -> None:
    async with asgi_socket(make().server) as open_:
        status, why = await refusal(open_(headers=headers))
        assert status == 403
        assert setting in why
        silent = open_(headers=headers, extensions={})
        await silent.done()
        assert silent.accepted is None
        assert silent.closed == (1008, why)


async def test_pages_that_are_allowed_and_the_server_s_own_get_one() -> None:
    allowed = ["https://app.example", "http://localhost:3000"]
    async with asgi_socket(make().server, allowed_origins=allowed) as open_:
        for origin in (*allowed, "http://127.0.0.1:8000"):
            socket = open_(headers={"Origin": origin})
            await socket.say(PING)
            assert await socket.receive() is not None


async def test_there_is_none_elsewhere_and_below_a_mount_there_is() -> None:
    async with asgi_socket(make().server) as open_:
        assert await refusal(open_("/other")) == (404, "there is nothing here; the MCP endpoint is /mcp")
        for path in ("/api/ws", "/api/mcp", "/api/mcp/"):
            socket = open_(path, root_path="/api")
            await socket.say(PING)
            assert await socket.receive() is not None


async def test_there_are_only_so_many_and_one_that_left_makes_room() -> None:
    async with asgi_socket(make().server, max_sessions=1) as open_:
        first = open_()
        await first.say(PING)
        await first.receive()
        assert (await refusal(open_()))[0] == 503
        await first.leave()
        again = open_()
        await again.say(PING)
        assert await again.receive() is not None


async def test_there_is_none_once_the_application_was_closed() -> None:
    async with asgi_socket(make().server) as open_:
        await open_.app.aclose()
        assert await refusal(open_()) == (503, "the server is ending")


async def test_a_request_that_never_became_one_is_told_what_is_missing() -> None:
    http = Http(make().server.asgi())
    exchange = http.ask("GET", {"Upgrade": "websocket", "Connection": "Upgrade"})
    assert "pip install 'modelwire[http,ws]'" in (await exchange.json())["error"]["message"]
    assert exchange.status == 501
    await http.aclose()


async def test_a_path_of_somebody_else_is_theirs_as_a_websocket_too() -> None:
    async def own(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "websocket.close", "code": 3000, "reason": "mine"})

    async with asgi_socket(make().server, routes={"/own": own}) as open_:
        socket = open_("/own")
        await socket.done()
        assert socket.closed == (3000, "mine")


# --------------------------------------------------------------------------------------------------- frames


async def test_what_is_no_json_is_answered_and_the_socket_stays() -> None:
    async with asgi_socket(make().server) as open_, talking(open_(), "2025-11-25") as talk:
        for wrong, code in ((b"{", -32700), (b"[]", -32600), (b'{"jsonrpc":"2.0"}', -32600)):
            answer = await talk.answer_to(wrong)
            assert (answer["error"]["code"], answer.get("id")) == (code, None)
        assert await talk.text("add", {"a": 1, "b": 2}) == "3"


async def test_a_message_may_have_line_ends_in_it() -> None:
    async with asgi_socket(make().server) as open_:
        socket = open_()
        await socket.say(json.dumps(json.loads(PING), indent=2))
        assert json.loads(await socket.receive() or b"")["result"] == {}


async def test_a_binary_frame_ends_it(caplog: pytest.LogCaptureFixture) -> None:
    async with asgi_socket(make().server) as open_:
        socket = open_()
        await socket.say(PING)
        await socket.say(data=PING.encode())
        await socket.done()
        assert socket.closed == (1003, "messages are text frames, and this one is binary")
    assert "this one is binary" in caplog.text


async def test_a_message_over_the_limit_ends_it_whatever_carries_the_socket() -> None:
    async with asgi_socket(make(max_message=1000).server) as open_:
        socket = open_()
        await socket.say(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": "x" * 1000}}))
        await socket.done()
        assert socket.closed is not None
        assert socket.closed[0] == 1009
        assert "max_message=1000" in socket.closed[1]


# --------------------------------------------------------------------------------------------------- the end


async def test_a_client_that_goes_ends_what_it_has_asked_for_and_nobody_else() -> None:
    bench = make()
    async with asgi_socket(bench.server) as open_:
        goes, stays = open_(), open_()
        async with talking(goes, "2025-11-25") as gone, talking(stays, MODERN) as talk:
            await gone.begin_call("wait", {"name": "gone"})
            await bench.waiting.wait()
            kept = await talk.begin_call("wait", {"name": "stays"})
            await goes.leave(1006)
            assert bench.events == ["gone cancelled"]
            bench.go.set()
            assert (await kept.result())["content"][0]["text"] == "stays"


async def test_what_a_client_has_told_before_it_went_is_heard() -> None:
    bench = make()
    async with asgi_socket(bench.server) as open_:
        socket = open_()
        await Clock().turn()
        assert socket.accepted is not None
        params = {"name": "wait", "arguments": {}, "_meta": modern_meta()}
        await socket.send(dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}))
        await socket.leave()
        assert bench.events == ["wait cancelled"]


async def test_the_end_of_the_serving_lets_requests_finish() -> None:
    bench = make()
    async with asgi_socket(bench.server) as open_:
        socket = open_()
        async with talking(socket, "2025-11-25") as talk:
            call = await talk.begin_call("wait")
            await bench.waiting.wait()
            ending = asyncio.create_task(open_.app.aclose(grace=PATIENCE))
            await Clock().turn()
            bench.go.set()
            assert (await call.result())["content"][0]["text"] == "wait"
            await ending
        assert socket.closed == (1001, "the server is ending")


async def test_the_end_of_the_serving_waits_no_longer_than_it_may() -> None:
    bench = make()
    async with asgi_socket(bench.server) as open_:
        socket = open_()
        async with talking(socket, "2025-11-25") as talk:
            await talk.begin_call("wait")
            await bench.waiting.wait()
            await open_.app.aclose()
        assert bench.events == ["wait cancelled"]
        assert socket.closed == (1001, "the server is ending")


async def test_a_goodbye_of_the_client_s_closes_it_in_order() -> None:
    async with asgi_socket(make().server) as open_:
        socket = open_()
        async with talking(socket, "2025-11-25") as talk:
            assert await talk.result("shutdown") == {}
            await talk.notify("exit")
            await socket.done()
        assert socket.closed == (1000, "")


async def test_a_lifespan_that_fails_closes_it_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    fail = asyncio.Event()

    @asynccontextmanager
    async def lifespan(server: Server) -> Any:
        async with asyncio.TaskGroup() as group:
            group.create_task(breaks())
            yield None

    async def breaks() -> None:
        await fail.wait()
        raise RuntimeError("broken")

    with pytest.raises(ExceptionGroup):  # noqa: PT012 - it is raised at the end of the block
        async with asgi_socket(Server("fails", lifespan=lifespan)) as open_:
            socket = open_()
            async with talking(socket, "2025-11-25"):
                fail.set()
                await socket.done()
            assert socket.closed == (1011, "the server has failed")


async def test_of_a_client_that_does_not_read_little_is_taken_in() -> None:
    server = Server("large", max_message=1 << 20)

    @server.tool(inline=True)
    def large() -> str:
        return "x" * (1 << 20)

    call = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"large"%s}}'
    filler = f',"_meta":{{"f":"{"y" * 60_000}"}}'
    async with asgi_socket(server) as open_:
        socket = open_()
        async with talking(socket, "2025-11-25"):
            socket.reads.clear()
            for number in range(1000):
                await socket.say(call % (number, filler))
            clock, before = Clock(), -1
            while socket.received != before:
                before = socket.received
                await clock.turn()
            assert before < 400
            await socket.leave()


async def test_a_client_that_does_not_read_holds_up_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("modelwire.server.http.websocket.CLOSE_SECONDS", 0.01)
    monkeypatch.setattr("modelwire.server.serve.STOP", 0.01)
    async with asgi_socket(make().server) as open_:
        socket = open_()
        async with talking(socket, "2025-11-25") as talk:
            socket.reads.clear()
            await talk.begin_call("add", {"a": 1, "b": 2})
            await Clock().turn()
            await open_.app.aclose()
            await socket.done()
        assert socket.closed is None
