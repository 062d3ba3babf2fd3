"""2025-03-26 to 2025-11-25 over HTTP: sessions, statuses, streams of both kinds, questions, batches."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest

from modelwire import Context, Server
from tests.clock import Clock
from tests.server.http.asgi import BOTH, Exchange, Legacy, Modern, legacy, serving
from tests.server.http.servers import make
from tests.wire import dumps, opening

PROGRESS = {"progressToken": "p"}
OLD, NEW = "2025-03-26", "2025-11-25"
every_http = pytest.mark.parametrize("revision", [OLD, "2025-06-18", NEW])
old_and_new = pytest.mark.parametrize("revision", [OLD, NEW])


async def code(exchange: Exchange) -> int:
    return (await exchange.json())["error"]["code"]


# ------------------------------------------------------------------ sessions


async def test_a_session_is_opened_used_and_ended() -> None:
    async with legacy(make().server) as client:
        assert (await client.call("add", {"a": 1, "b": 2}).json())["result"]["structuredContent"] == {"result": 3}
        assert await client.delete().done() in (200, 202, 204)
        for exchange in (client.ask("tools/list"), client.get(), client.delete()):
            assert await exchange.done() == 404
        assert await client.tell("notifications/initialized").done() == 404


async def test_ids_of_sessions_cannot_be_guessed() -> None:
    async with serving(make().server) as http:
        ids = {(await Legacy(http).open()).session for _ in range(20)}
        assert len(ids) == 20
        for id_ in ids:
            assert id_ is not None
            assert re.fullmatch(r"[\x21-\x7e]{22,}", id_)


async def test_only_an_initialize_needs_no_session_and_a_wrong_one_is_not_found() -> None:
    async with legacy(make().server) as client:
        for message in ("tools/list", "ping"):
            assert await client.ask(message, headers={"Mcp-Session-Id": None}).done() == 400
            for id_ in ("x", "", f"{client.session}x", f"{client.session}, {client.session}"):
                assert await client.ask(message, headers={"Mcp-Session-Id": id_}).done() == 404
        assert await client.tell("notifications/initialized", headers={"Mcp-Session-Id": None}).done() == 400
        assert await client.get(headers={"Mcp-Session-Id": "x"}).done() == 404
        for exchange in (client.get(headers={"Mcp-Session-Id": None}), client.http.ask("GET", {"Accept": "*/*"})):
            error = (await exchange.json())["error"]
            assert exchange.status == 400
            assert error["message"].startswith(
                "Mcp-Session-Id is missing: this address is for MCP clients, which POST "
            )
        assert await client.http.ask("DELETE").done() == 400
        assert await client.ask("tools/list").done() == 200


async def test_a_refused_initialize_opens_no_session() -> None:
    async with serving(make().server, max_sessions=1) as http:
        for params in ({}, {"protocolVersion": 5}, {"protocolVersion": NEW}):
            exchange = http.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
            assert "error" in await exchange.json()
            assert "mcp-session-id" not in exchange.headers
        await Legacy(http).open()  # the one place is free


async def test_a_second_initialize_opens_no_other_session_and_the_session_goes_on() -> None:
    async with legacy(make().server) as client:
        again = client.ask("initialize", opening(NEW))
        await again.json()
        assert again.headers.get("mcp-session-id", client.session) == client.session
        assert (await client.ask("tools/list").result())["tools"]


async def test_an_unknown_revision_is_answered_with_one_that_is_known() -> None:
    async with serving(make().server) as http:
        exchange = http.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening("1999-01-01")})
        assert (await exchange.json())["result"]["protocolVersion"] == NEW
        assert "mcp-session-id" in exchange.headers


async def test_a_session_belongs_to_who_opened_it() -> None:
    async def who(scope: Any) -> str | None:
        return dict(scope["headers"]).get(b"x-user", b"").decode() or None

    async with serving(make().server, principal=who) as http:
        client = Legacy(http)
        exchange = client.ask("initialize", opening(NEW), headers={"X-User": "ada"})
        client.session = (await exchange.result()) and exchange.headers["mcp-session-id"]
        for other in ("bob", None):
            assert await client.ask("tools/list", headers={"X-User": other}).done() == 404
            assert await client.get(headers={"X-User": other}).done() == 404
        assert await client.ask("tools/list", headers={"X-User": "ada"}).done() == 200


async def test_sessions_are_bounded_and_a_place_becomes_free() -> None:
    async with serving(make().server, max_sessions=2) as http:
        first = await Legacy(http).open()
        await Legacy(http).open()
        full = Legacy(http).ask("initialize", opening(NEW))
        assert await full.done() == 503
        assert "retry-after" in full.headers
        assert "mcp-session-id" not in full.headers
        await first.delete().done()
        await Legacy(http).open()


async def test_a_session_that_nobody_uses_is_ended_and_one_in_use_is_not() -> None:
    bench = make()
    async with serving(bench.server, session_idle=100) as http:
        clock = Clock()
        idle, listening, calling = [await Legacy(http).open() for _ in range(3)]
        stream = listening.get()
        await stream.started()
        call = calling.call("wait")
        await bench.waiting.wait()
        for _ in range(12):
            await clock.advance(11)
        assert await idle.ask("tools/list").done() == 404
        assert not stream.over
        bench.go.set()
        assert (await call.result())["content"][0]["text"] == "wait"
        for client in (listening, calling):
            assert await client.ask("tools/list").done() == 200


async def test_the_end_of_a_session_ends_what_is_open_in_it() -> None:
    bench = make()
    async with legacy(bench.server) as client:
        stream = client.get()
        await stream.started()
        call = client.call("wait")
        await bench.waiting.wait()
        await client.delete().done()
        await stream.done()
        await call.done()
        assert bench.events == ["wait cancelled"]


async def test_the_end_of_the_application_ends_what_is_open() -> None:
    bench = make()
    async with legacy(bench.server) as client:
        stream = client.get()
        await stream.started()
        call = client.call("wait")
        await bench.waiting.wait()
        await client.http.app.aclose()
        await stream.done()
        await call.done()
        assert await client.ask("tools/list").done() == 503


async def test_an_end_with_grace_waits_for_what_is_being_answered() -> None:
    bench = make()
    async with legacy(bench.server) as client:
        stream = client.get()
        await stream.started()
        call = client.call("wait")
        await bench.waiting.wait()
        ending = asyncio.create_task(client.http.app.aclose(5))
        await stream.done()  # nothing more comes on it
        bench.go.set()
        assert (await call.result())["content"][0]["text"] == "wait"
        await ending


# ------------------------------------------------------------------ versions and statuses


async def test_the_version_may_be_missing_and_must_be_known() -> None:
    async with legacy(make().server) as client:
        assert await client.ask("tools/list", headers={"MCP-Protocol-Version": None}).done() == 200
        for wrong in ("1999-01-01", "nonsense", ""):
            headers = {"MCP-Protocol-Version": wrong}
            ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            assert await client.http.post(ping, client.headers(headers)).done() == 400
            assert await client.get(headers=headers).done() == 400
            assert await client.http.ask("DELETE", client.headers(headers)).done() == 400
        assert await client.ask("tools/list").done() == 200


async def test_errors_are_answers_with_status_200() -> None:
    async with legacy(make().server) as client:
        unknown = client.ask("nothing/here", valid=False)
        assert await code(unknown) == -32601
        assert unknown.status == 200
        wrong = client.call("nothing")
        assert await code(wrong) == -32602
        assert wrong.status == 200


async def test_what_is_no_message_is_refused() -> None:
    async with legacy(make().server) as client:
        for body, expected in ((b"{", -32700), (b"", -32700), (b"5", -32600), (b"{}", -32600), (b"[]", -32600)):
            for headers in ({}, {"Mcp-Session-Id": None}):
                exchange = client.http.post(body, client.headers(headers))
                assert await code(exchange) == expected
                assert exchange.status == 400


async def test_accept_and_content_type_are_asked_for() -> None:
    async with legacy(make().server) as client:
        assert await client.ask("tools/list", headers={"Accept": "application/json"}).done() == 406
        assert await client.ask("tools/list", headers={"Content-Type": "text/plain"}).done() == 415
        assert await client.get(headers={"Accept": "application/json"}).done() == 406
        assert await client.get(headers={"Accept": "text/event-stream;q=0, */*"}).done() == 406
        assert await client.ask("tools/list", headers={"Origin": "http://evil.example"}).done() == 403


async def test_notifications_and_answers_are_accepted_without_a_body() -> None:
    async with legacy(make().server) as client:
        for exchange in (client.tell("notifications/roots/list_changed"), client.reply(999, {})):
            assert await exchange.done() == 202
            assert exchange.body == b""


# ------------------------------------------------------------------ streams of requests


@every_http
async def test_a_notification_makes_a_stream_whose_events_have_ids(revision: str) -> None:
    async with legacy(make().server, revision) as client:
        exchange = client.call("steps", {"count": 2}, meta=PROGRESS)
        *told, answer = await exchange.messages()
        assert [m["params"]["progress"] for m in told] == [1, 2]
        assert answer["result"]["content"][0]["text"] == "2 steps"
        ids = [event.id for event in exchange.events]
        assert len({*ids, ""}) == 4
        assert exchange.headers["x-accel-buffering"] == "no"


@old_and_new
async def test_only_2025_11_25_begins_a_stream_with_an_event_that_says_nothing(revision: str) -> None:
    async with legacy(make().server, revision) as client:
        exchange = client.call("steps", {"count": 1}, meta=PROGRESS)
        await exchange.done()
        assert (b"data: \n\n" in exchange.body or b"data:\n\n" in exchange.body) is (revision == NEW)
        if revision == NEW:
            first = exchange.body.split(b"\n\n")[0]
            assert b"id: " in first
            assert b"progress" not in first


@old_and_new
async def test_silence_begins_a_stream_that_can_be_taken_up_again_where_the_revision_has_it(revision: str) -> None:
    bench = make()
    async with legacy(bench.server, revision) as client:
        clock = Clock()
        exchange = client.call("wait")
        await bench.waiting.wait()
        await clock.advance(16)
        assert await exchange.started() == 200
        assert exchange.streams
        if revision == NEW:
            last = exchange.reader.last_id
            assert last
            await exchange.leave()
            again = client.get(last)
            await again.started()
            bench.go.set()
            assert (await again.result())["content"][0]["text"] == "wait"
        else:
            bench.go.set()
            assert (await exchange.result())["content"][0]["text"] == "wait"


@pytest.mark.parametrize("begun", [False, True])
async def test_a_disconnect_cancels_nothing(begun: bool) -> None:
    bench = make()
    async with legacy(bench.server) as client:
        exchange = client.call("steps", {"count": 1 if begun else 0, "then_wait": True}, meta=PROGRESS)
        await bench.waiting.wait()
        if begun:
            await exchange.message()
        await exchange.leave()
        await Clock().turn()
        assert bench.events == []
        bench.go.set()
        await Clock().turn()
        assert bench.events == ["steps finished"]
        assert await client.ask("tools/list").done() == 200


async def test_a_request_that_is_cancelled_before_its_first_byte_ends_as_an_empty_stream() -> None:
    bench = make()
    async with legacy(bench.server) as client:
        exchange = client.call("wait", id=7)
        await bench.waiting.wait()
        assert await client.tell("notifications/cancelled", {"requestId": 7}).done() == 202
        assert await exchange.done() == 200
        assert exchange.streams
        assert exchange.events == []
        assert bench.events == ["wait cancelled"]


async def test_calls_at_once_are_answered_each_on_its_own_stream() -> None:
    bench = make()
    async with serving(bench.server) as http:
        clients = [await Legacy(http).open() for _ in range(10)]
        calls = [(n, client.call("steps", {"count": n % 3}, id=1, meta=PROGRESS)) for n, client in enumerate(clients)]
        for n, exchange in calls:
            answer = await exchange.answer()
            assert answer["result"]["content"][0]["text"] == f"{n % 3} steps"


async def test_an_id_that_is_in_use_is_refused_and_the_first_goes_on() -> None:
    bench = make()
    async with legacy(bench.server) as client:
        first = client.call("wait", id=1)
        await bench.waiting.wait()
        second = client.call("add", {"a": 1, "b": 2}, id=1, valid=False)
        assert "error" in await second.answer()
        bench.go.set()
        assert (await first.result())["content"][0]["text"] == "wait"


# ------------------------------------------------------------------ the stream of GET


async def test_what_belongs_to_no_request_is_heard_on_the_stream_of_get_only() -> None:
    bench = make()
    async with legacy(bench.server) as client:
        stream = client.get()
        await stream.started()
        call = client.call("wait")
        await bench.waiting.wait()
        bench.server.add_tool(lambda: "x", name="more")
        assert (await stream.message())["method"] == "notifications/tools/list_changed"
        bench.go.set()
        assert (await call.json())["result"]
        assert stream.events == []


async def test_the_headers_of_a_get_stream_come_at_once_and_comments_follow() -> None:
    async with legacy(make().server) as client:
        clock = Clock()
        stream = client.get()
        assert await stream.started() == 200
        assert stream.streams
        for _ in range(2):
            before = stream.reader.comments
            await clock.advance(15.1)
            assert stream.reader.comments == before + 1


async def test_comments_on_the_stream_of_a_request_are_as_rare() -> None:
    bench = make()
    async with legacy(bench.server) as client:
        clock = Clock()
        exchange = client.call("wait")
        await bench.waiting.wait()
        await clock.advance(15.1)
        before = exchange.reader.comments
        for _ in range(4):
            await clock.advance(7.6)
        assert exchange.reader.comments == before + 2
        bench.go.set()
        await exchange.done()


async def test_a_new_get_stream_takes_the_place_of_the_old() -> None:
    bench = make()
    async with legacy(bench.server) as client:
        first = client.get()
        await first.started()
        second = client.get()
        assert await second.started() == 200
        await first.done()
        bench.server.add_tool(lambda: "x", name="more")
        assert (await second.message())["method"] == "notifications/tools/list_changed"
        assert first.events == []


async def test_after_a_get_stream_was_lost_another_can_be_opened() -> None:
    bench = make()
    async with legacy(bench.server) as client:
        first = client.get()
        await first.started()
        await first.leave()
        second = client.get()
        await second.started()
        bench.server.add_tool(lambda: "x", name="more")
        assert (await second.message())["method"] == "notifications/tools/list_changed"


async def test_what_was_said_while_nobody_listened_is_heard_by_the_first_who_does() -> None:
    bench = make()
    async with legacy(bench.server) as client:
        bench.server.add_tool(lambda: "x", name="more")
        stream = client.get()
        assert (await stream.message())["method"] == "notifications/tools/list_changed"
        await stream.leave()
        again = client.get()
        await again.started()
        await Clock().turn()
        assert again.events == []


# ------------------------------------------------------------------ taking up again


async def all_events(exchange: Exchange) -> list[Any]:
    await exchange.done()
    return [(event.id, json.loads(event.data)) for event in exchange.events]


async def test_every_place_of_every_stream_can_be_gone_on_from() -> None:
    async with legacy(make().server) as client:
        whole = {n: await all_events(client.call("steps", {"count": n}, meta=PROGRESS)) for n in (1, 3)}
        for events in whole.values():
            for place in range(len(events)):
                again = client.get(events[place][0])
                assert await all_events(again) == events[place + 1 :]


async def test_a_stream_that_goes_on_is_taken_up_where_it_was() -> None:
    bench = make()
    async with legacy(bench.server) as client:
        first = client.call("steps", {"count": 2, "then_wait": True}, meta=PROGRESS)
        seen = await first.event()
        await bench.waiting.wait()
        await first.leave()
        again = client.get(seen.id)
        assert (await again.message())["params"]["progress"] == 2
        bench.go.set()
        assert (await again.message())["params"]["progress"] == 3
        assert (await again.result())["content"][0]["text"] == "2 steps"


async def test_an_answer_that_nobody_heard_is_heard_later() -> None:
    bench = make()
    async with legacy(bench.server) as client:
        first = client.call("steps", {"count": 1, "then_wait": True}, meta=PROGRESS)
        seen = await first.event()
        await bench.waiting.wait()
        await first.leave()
        bench.go.set()
        await Clock().turn()
        assert [m for _, m in await all_events(client.get(seen.id))][-1]["result"]["content"][0]["text"] == "1 steps"


async def test_the_stream_of_get_can_be_taken_up_again() -> None:
    bench = make()
    async with legacy(bench.server) as client:
        stream = client.get()
        bench.server.add_tool(lambda: "x", name="one")
        seen = await stream.event()
        await stream.leave()
        bench.server.add_prompt(lambda: "x", name="two")
        again = client.get(seen.id)
        assert (await again.message())["method"] == "notifications/prompts/list_changed"


@pytest.mark.parametrize("last", ["", "x", "99-1", "1-99", "0-99", "1", "-1-1"])
async def test_an_id_that_was_never_given_is_refused(last: str) -> None:
    async with legacy(make().server) as client:
        await client.call("steps", {"count": 1}, meta=PROGRESS).done()
        exchange = client.get(last)
        assert await exchange.done() == 400
        assert not exchange.streams


async def test_an_id_of_another_session_is_worth_nothing() -> None:
    async with serving(make().server) as http:
        one, two = await Legacy(http).open(), await Legacy(http).open()
        events = await all_events(one.call("steps", {"count": 1}, meta=PROGRESS))
        assert await two.get(events[0][0]).done() == 400


# ------------------------------------------------------------------ asking


def asking_server() -> Server:
    server = Server("asking")

    @server.tool
    async def everything(ctx: Context, kind: str) -> str:
        if kind == "roots":
            return str([str(root.uri) for root in await ctx.roots()])
        if kind == "sample":
            return str((await ctx.sample("say", max_tokens=5)).content)
        form = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        return str(await ctx.elicit("Who?", schema=form))

    return server


ANSWERS = {
    "roots/list": {"roots": [{"uri": "file:///home", "name": "home"}]},
    "sampling/createMessage": {"role": "assistant", "content": {"type": "text", "text": "said"}, "model": "m"},
    "elicitation/create": {"action": "accept", "content": {"name": "Ada"}},
}
CAPABILITIES = {"roots": {}, "sampling": {}, "elicitation": {}}


@every_http
async def test_a_question_is_asked_on_the_stream_of_its_request_and_answered_by_post(revision: str) -> None:
    kinds = {"roots": "home", "sample": "said", **({} if revision == OLD else {"elicit": "Ada"})}
    capabilities = {key: {} for key in CAPABILITIES if key != "elicitation" or revision != OLD}
    async with legacy(asking_server(), revision, capabilities=capabilities) as client:
        own = client.get()
        await own.started()
        for kind, said in kinds.items():
            call = client.call("everything", {"kind": kind})
            question = await call.message()
            exchange = client.reply(question["id"], ANSWERS[question["method"]])
            assert await exchange.done() == 202
            assert exchange.body == b""
            assert said in (await call.result())["content"][0]["text"]
        assert own.events == []


async def test_a_question_survives_the_loss_of_its_stream() -> None:
    async with legacy(asking_server(), capabilities=CAPABILITIES) as client:
        call = client.call("everything", {"kind": "roots"})
        await call.message()
        last = call.reader.last_id
        stream, place = last.rsplit("-", 1)
        await call.leave()
        again = client.get(f"{stream}-{int(place) - 1}")
        question = await again.message()
        assert await client.reply(question["id"], ANSWERS["roots/list"]).done() == 202
        assert "home" in (await again.result())["content"][0]["text"]


async def test_an_answer_of_another_session_answers_nothing() -> None:
    async with serving(asking_server()) as http:
        one, two = [await Legacy(http).open(**CAPABILITIES) for _ in range(2)]
        call = one.call("everything", {"kind": "roots"})
        question = await call.message()
        wrong = {"roots": [{"uri": "file:///evil"}]}
        assert await two.reply(question["id"], wrong).done() == 202
        await Clock().turn()
        assert not call.over
        await one.reply(question["id"], ANSWERS["roots/list"]).done()
        assert "home" in (await call.result())["content"][0]["text"]


# ------------------------------------------------------------------ batches


async def test_a_batch_of_2025_03_26_is_answered_together() -> None:
    async with legacy(make().server, OLD) as client:
        requests: list[Any] = [
            {"jsonrpc": "2.0", "id": "a", "method": "ping"},
            {
                "jsonrpc": "2.0",
                "id": "b",
                "method": "tools/call",
                "params": {"name": "add", "arguments": {"a": 1, "b": 2}},
            },
            {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
        ]
        exchange = client.post(dumps(requests))
        await exchange.done()
        if exchange.streams:
            found = [json.loads(event.data) for event in exchange.events]
        else:
            found = json.loads(exchange.body)
        flat = [m for item in found for m in (item if isinstance(item, list) else [item])]
        assert sorted(m["id"] for m in flat) == ["a", "b"]
        assert all("result" in m for m in flat)


async def test_a_batch_that_cancels_one_of_its_own_requests_is_answered_without_it() -> None:
    async with legacy(make().server, OLD) as client:
        add = {"name": "add", "arguments": {"a": 1, "b": 2}}
        exchange = client.post(
            dumps(
                [
                    {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "wait", "arguments": {}}},
                    {"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": add},
                    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}},
                ]
            )
        )
        answer = await exchange.answer()
        assert [message["id"] for message in answer] == [4]


async def test_a_batch_without_requests_is_accepted() -> None:
    async with legacy(make().server, OLD) as client:
        told = [{"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}] * 2
        exchange = client.post(dumps(told))
        assert await exchange.done() == 202
        assert exchange.body == b""


async def test_a_batch_with_progress_streams_and_then_answers() -> None:
    async with legacy(make().server, OLD) as client:
        params = {"name": "steps", "arguments": {"count": 2}}
        requests = [
            {"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {**params, "_meta": {"progressToken": n}}}
            for n in (1, 2)
        ]
        exchange = client.post(dumps(requests))
        messages = await exchange.messages()
        flat = [m for item in messages for m in (item if isinstance(item, list) else [item])]
        assert sorted(m["params"]["progressToken"] for m in flat if "method" in m) == [1, 1, 2, 2]
        assert sorted(m["id"] for m in flat if "id" in m) == [1, 2]


async def test_later_revisions_have_no_batches() -> None:
    async with legacy(make().server) as client:
        exchange = client.post(dumps([{"jsonrpc": "2.0", "id": 1, "method": "ping"}]), valid=False)
        assert await code(exchange) == -32600
        assert exchange.status == 400


# ------------------------------------------------------------------ both eras at once


async def test_both_eras_are_served_on_one_path_at_once() -> None:
    bench = make()
    async with serving(bench.server) as http:
        old, new = await Legacy(http).open(), Modern(http)
        old_call, new_call = old.call("wait", {"name": "old"}, id=1), new.call("wait", {"name": "new"}, id=1)
        listening, stream = new.ask("subscriptions/listen", {"notifications": {"toolsListChanged": True}}), old.get()
        await listening.message()
        await stream.started()
        bench.server.add_tool(lambda: "x", name="more")
        for heard in (listening, stream):
            assert (await heard.message())["method"] == "notifications/tools/list_changed"
        bench.go.set()
        assert (await old_call.result())["content"][0]["text"] == "old"
        assert (await new_call.result())["content"][0]["text"] == "new"
        both = new.ask("tools/list", headers={"Mcp-Session-Id": old.session})
        assert "resultType" in await both.result()


async def test_a_handler_knows_the_request_of_its_call() -> None:
    async with legacy(make().server) as client:
        found = (await client.call("where", headers={"User-Agent": "test/2"}).result())["structuredContent"]
        assert found["agent"] == "test/2"


async def test_many_sessions_leave_nothing() -> None:
    async with serving(make().server) as http:
        for _ in range(100):
            client = await Legacy(http).open()
            await client.call("steps", {"count": 1}, meta=PROGRESS).done()
            await client.delete().done()
        await asyncio.sleep(0)
        fresh = http.ask("GET", {"Mcp-Session-Id": "x", "Accept": BOTH})
        assert await fresh.done() == 404
