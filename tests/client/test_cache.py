"""Lists and resources that a server calls fresh for a while: 2026-07-28, server/utilities/caching."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import Any

import pytest

from modelwire import (
    Cache,
    Client,
    ConfigError,
    ConnectionFailed,
    ConnectionLost,
    Group,
    InvalidParams,
    Missed,
    PeerError,
    ResourceNotFound,
    Server,
    ToolsChanged,
    types,
)
from modelwire.testing import connected
from tests.clock import Clock
from tests.fake_server import HANDSHAKE, MODERN, FakeServer, coming_back, talking, text

TOOL = {"name": "x", "inputSchema": {"type": "object"}}
LISTS: list[tuple[str, str, Any, dict[str, Any]]] = [
    ("tools/list", "tools", Client.list_tools, TOOL),
    ("resources/list", "resources", Client.list_resources, {"name": "x", "uri": "a:b"}),
    (
        "resources/templates/list", "resourceTemplates", Client.list_resource_templates,
        {"name": "x", "uriTemplate": "a:{b}"},
    ),
    ("prompts/list", "prompts", Client.list_prompts, {"name": "x"}),
]  # fmt: skip
EACH_LIST = pytest.mark.parametrize(("method", "field", "list_them", "item"), LISTS, ids=[row[0] for row in LISTS])
URI = "notes://today"


def tools(*names: str, ttl: Any = 60_000, **more: Any) -> dict[str, Any]:
    return {"tools": [{**TOOL, "name": name} for name in names], "ttlMs": ttl, "cacheScope": "private", **more}


def contents(words: str, ttl: Any = 60_000, **more: Any) -> dict[str, Any]:
    return {"contents": [{"uri": URI, "text": words}], "ttlMs": ttl, "cacheScope": "private", **more}


async def names(listing: Awaitable[list[types.Tool]]) -> list[str]:
    return [tool.name for tool in await listing]


async def words(reading: Awaitable[types.ReadResourceResult]) -> str:
    [found] = (await reading).contents
    assert isinstance(found, types.TextResourceContents)
    return found.text


async def lose(client: Client, fake: FakeServer) -> None:
    """End the connection, and wait until the client knows."""
    await fake.aclose()
    while client.connected:
        await asyncio.sleep(0)


# ------------------------------------------------------------------ what is kept, and for how long


@EACH_LIST
async def test_a_fresh_list_is_not_asked_for_again(method: str, field: str, list_them: Any, item: Any) -> None:
    async with talking(MODERN) as (client, fake):
        answer = {field: [item], "ttlMs": 60_000, "cacheScope": "public"}
        first = await fake.answer(list_them(client), method, answer)
        assert await list_them(client) == first
        assert fake.methods.count(method) == 1


async def test_a_fresh_resource_is_not_read_again_and_another_one_is() -> None:
    async with talking(MODERN) as (client, fake):
        await fake.answer(client.read_resource(URI), "resources/read", contents("sun"))
        assert await words(client.read_resource(URI)) == "sun"
        assert await words(fake.answer(client.read_resource(URI + "/2"), "resources/read", contents("rain"))) == "rain"
        assert fake.methods.count("resources/read") == 2


async def test_when_the_time_is_over_it_is_asked_for_again() -> None:
    clock = Clock(frozen=True)
    async with talking(MODERN) as (client, fake):
        await fake.answer(client.list_tools(), "tools/list", tools("old", ttl=5000))
        await clock.advance(4.999)
        assert await names(client.list_tools()) == ["old"]
        await clock.advance(0.001)
        assert await names(fake.answer(client.list_tools(), "tools/list", tools("new"))) == ["new"]
        assert await names(client.list_tools()) == ["new"]


@pytest.mark.parametrize("ttl", [0, -5, None, "60000", 1.5, True], ids=str)
async def test_without_a_usable_time_it_is_asked_for_each_time(ttl: Any, caplog: pytest.LogCaptureFixture) -> None:
    async with talking(MODERN) as (client, fake):
        answer = tools("x", ttl=ttl)
        if ttl is None:
            del answer["ttlMs"]
        assert await names(fake.answer(client.list_tools(), "tools/list", answer)) == ["x"]
        assert await names(fake.answer(client.list_tools(), "tools/list", tools("y"))) == ["y"]
    assert ("result.ttlMs must be an integer" in caplog.text) == (isinstance(ttl, str | float | bool))


@pytest.mark.parametrize("scope", ["shared", None, 7], ids=str)
async def test_a_scope_that_is_none_costs_neither_the_list_nor_its_time(scope: Any) -> None:
    async with talking(MODERN) as (client, fake):
        await fake.answer(client.list_tools(), "tools/list", {**tools("x"), "cacheScope": scope})
        assert await names(client.list_tools()) == ["x"]


async def test_a_time_without_measure_is_cut() -> None:
    clock = Clock(frozen=True)
    async with talking(MODERN, timeout=None, max_timeout=None) as (client, fake):
        await fake.answer(client.list_tools(), "tools/list", tools("old", ttl=10**300))
        await clock.advance(86_399)
        assert await names(client.list_tools()) == ["old"]
        await clock.advance(1)
        assert await names(fake.answer(client.list_tools(), "tools/list", tools("new"))) == ["new"]


@pytest.mark.parametrize("revision", [HANDSHAKE[0], HANDSHAKE[-1]])
async def test_where_the_revision_has_no_such_hints_they_mean_nothing(revision: str) -> None:
    async with talking(revision) as (client, fake):
        await fake.answer(client.list_tools(), "tools/list", tools("old"))
        assert await names(fake.answer(client.list_tools(), "tools/list", tools("new"))) == ["new"]


async def test_what_is_handed_out_belongs_to_whom_it_was_given() -> None:
    async with talking(MODERN) as (client, fake):
        schema = {"type": "object", "properties": {"a": {"type": "string"}}}
        answer = {"tools": [{"name": "x", "inputSchema": schema}], "ttlMs": 60_000, "cacheScope": "private"}
        for listing in (fake.answer(client.list_tools(), "tools/list", answer), client.list_tools()):
            [tool] = found = await listing
            tool.name = "spoilt"
            tool.input_schema["properties"].clear()
            found.clear()
        [tool] = await client.list_tools()
        assert (tool.name, tool.input_schema) == ("x", schema)
        first = await fake.answer(client.read_resource(URI), "resources/read", contents("sun"))
        first.raw["contents"].clear()
        first.contents.clear()
        assert await words(client.read_resource(URI)) == "sun"
        assert (await client.read_resource(URI)).raw["ttlMs"] == 60_000


async def test_fresh_asks_in_any_case_and_what_comes_is_kept() -> None:
    async with talking(MODERN) as (client, fake):
        await fake.answer(client.list_tools(), "tools/list", tools("old"))
        assert await names(fake.answer(client.list_tools(fresh=True), "tools/list", tools("new"))) == ["new"]
        assert await names(client.list_tools()) == ["new"]
        await fake.answer(client.read_resource(URI), "resources/read", contents("old"))
        assert (
            await words(fake.answer(client.read_resource(URI, fresh=True), "resources/read", contents("new"))) == "new"
        )
        assert await words(client.read_resource(URI)) == "new"


async def test_who_wants_nothing_kept_says_so() -> None:
    async with talking(MODERN, cache=False) as (client, fake):
        await fake.answer(client.list_tools(), "tools/list", tools("old"))
        assert await names(fake.answer(client.list_tools(), "tools/list", tools("new"))) == ["new"]


async def test_a_request_of_the_users_own_always_goes_out() -> None:
    async with talking(MODERN) as (client, fake):
        await fake.answer(client.list_tools(), "tools/list", tools("old"))
        raw = await fake.answer(client.request("tools/list"), "tools/list", tools("new"))
        assert raw["tools"][0]["name"] == "new"


async def test_who_lists_in_a_loop_hears_of_changes_meanwhile() -> None:
    async with talking(MODERN) as (client, fake):
        await fake.answer(client.list_tools(), "tools/list", tools("old"))

        async def until_there() -> None:
            while "new" not in await names(client.list_tools()):
                pass

        looking = asyncio.create_task(until_there())
        await fake.notify("notifications/tools/list_changed")
        await fake.result(await fake.expect("tools/list"), tools("new"))
        await looking


# ------------------------------------------------------------------ pages


async def test_each_page_is_kept_by_its_cursor_for_its_own_time() -> None:
    clock = Clock(frozen=True)
    async with talking(MODERN) as (client, fake):
        listing = asyncio.create_task(client.list_tools())
        await fake.result(await fake.expect("tools/list"), tools("a", ttl=60_000, nextCursor="c"))
        await fake.result(await fake.expect("tools/list"), tools("b", ttl=1000))
        assert await names(listing) == ["a", "b"]
        assert await names(client.list_tools()) == ["a", "b"]
        await clock.advance(1)
        wanted = {"method": "tools/list", "params": {"cursor": "c"}}
        assert await names(fake.answer(client.list_tools(), wanted, tools("b2", ttl=1000))) == ["a", "b2"]


async def test_a_cursor_that_is_no_longer_valid_has_the_list_begun_anew() -> None:
    async with talking(MODERN) as (client, fake):
        listing = asyncio.create_task(client.list_tools())
        await fake.result(await fake.expect("tools/list"), tools("a", nextCursor="c"))
        await fake.result(await fake.expect("tools/list"), tools("b", ttl=0))
        await listing
        listing = asyncio.create_task(client.list_tools())
        await fake.error(
            await fake.expect({"method": "tools/list", "params": {"cursor": "c"}}), -32602, "no such cursor"
        )
        request = await fake.expect("tools/list")
        assert "cursor" not in request["params"]
        await fake.result(request, tools("new"))
        assert await names(listing) == ["new"]


async def test_a_cursor_that_was_never_valid_is_the_error_that_it_was() -> None:
    async with talking(MODERN) as (client, fake):
        listing = asyncio.create_task(client.list_tools())
        await fake.result(await fake.expect("tools/list"), tools("a", ttl=0, nextCursor="c"))
        await fake.error(await fake.expect("tools/list"), -32602, "no such cursor")
        with pytest.raises(InvalidParams):
            await listing


# ------------------------------------------------------------------ what is never kept


async def test_a_question_is_not_kept_nor_is_the_result_of_the_retry_that_answers_it() -> None:
    form = {"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}}}
    ask = {"method": "elicitation/create", "params": form}
    async with talking(MODERN, on_elicit=lambda question: {}) as (client, fake):
        for round_ in ("first", "second"):
            reading = asyncio.create_task(client.read_resource(URI))
            request = await fake.expect("resources/read")
            assert "inputResponses" not in request["params"]
            asked = {"resultType": "input_required", "inputRequests": {"k": ask}, "requestState": "s", "ttlMs": 60_000}
            await fake.result(request, asked)
            await fake.result(await fake.expect("resources/read"), contents(round_))
            assert await words(reading) == round_


async def test_what_was_answered_by_hand_is_not_kept_and_not_served() -> None:
    async with talking(MODERN) as (client, fake):
        await fake.answer(client.read_resource(URI), "resources/read", contents("plain"))
        by_hand = client.read_resource(URI, request_state="s")
        assert await words(fake.answer(by_hand, "resources/read", contents("mine"))) == "mine"
        assert await words(client.read_resource(URI)) == "plain"


async def test_an_error_is_not_kept_and_takes_back_what_was() -> None:
    async with talking(MODERN) as (client, fake):
        await fake.answer(client.read_resource(URI), "resources/read", contents("sun"))
        reading = asyncio.create_task(client.read_resource(URI, fresh=True))
        await fake.error(await fake.expect("resources/read"), -32602, "Resource not found", {"uri": URI})
        with pytest.raises(ResourceNotFound):
            await reading
        assert await words(fake.answer(client.read_resource(URI), "resources/read", contents("back"))) == "back"


# ------------------------------------------------------------------ what takes it back


@pytest.mark.parametrize(
    ("notification", "params", "again"),
    [
        ("notifications/tools/list_changed", {}, {"tools/list"}),
        ("notifications/prompts/list_changed", {}, {"prompts/list"}),
        ("notifications/resources/list_changed", {}, {"resources/list", "resources/templates/list"}),
        ("notifications/resources/updated", {"uri": URI}, {"resources/read"}),
        ("notifications/resources/updated", {"uri": "notes://"}, {"resources/read"}),
        ("notifications/resources/updated", {"uri": "notes://other"}, set[str]()),
    ],
)
async def test_a_notification_takes_back_what_it_is_about(notification: str, params: Any, again: set[str]) -> None:
    calls: dict[str, tuple[Any, Any]] = {
        method: (call, {field: [], "ttlMs": 60_000, "cacheScope": "private"}) for method, field, call, _ in LISTS
    }
    calls["resources/read"] = (lambda client: client.read_resource(URI), contents("sun"))
    async with talking(MODERN) as (client, fake):
        for method, (call, answer) in calls.items():
            await fake.answer(call(client), method, answer)
        await fake.notify(notification, params)
        await fake.answer(client.call("x"), "tools/call", text("heard"))
        for method, (call, answer) in calls.items():
            before = fake.methods.count(method)
            await (fake.answer(call(client), method, answer) if method in again else call(client))
            assert fake.methods.count(method) == before + (method in again)


async def test_an_answer_that_the_news_overtake_is_handed_out_and_not_kept() -> None:
    async with talking(MODERN) as (client, fake):
        listing = asyncio.create_task(client.list_tools())
        request = await fake.expect("tools/list")
        await fake.result(request, tools("old"))
        await fake.notify("notifications/tools/list_changed")
        assert await names(listing) == ["old"]
        assert await names(fake.answer(client.list_tools(), "tools/list", tools("new"))) == ["new"]


async def test_who_hears_of_a_change_gets_the_new_list() -> None:
    server = Server("s", list_ttl=60)
    server.add_tool(lambda: "", name="a")
    async with connected(server) as client, client.listen(tools=True) as events:
        assert await names(client.list_tools()) == ["a"]
        server.add_tool(lambda: "", name="b")
        assert await anext(events) == ToolsChanged()
        assert await names(client.list_tools()) == ["a", "b"]
        assert await names(client.list_tools()) == ["a", "b"]
        assert len(client.frames.sent("tools/list")) == 2


async def test_a_tool_that_turns_out_not_to_be_there_puts_the_list_in_doubt() -> None:
    async with talking(MODERN) as (client, fake):
        await fake.answer(client.list_tools(), "tools/list", tools("x"))
        calling = asyncio.create_task(client.call("x"))
        await fake.error(await fake.expect("tools/call"), -32602, "Unknown tool")
        with pytest.raises(InvalidParams):
            await calling
        assert await names(fake.answer(client.list_tools(), "tools/list", tools("y"))) == ["y"]


async def test_what_came_over_a_connection_goes_with_it() -> None:
    async with coming_back(MODERN) as (client, fake, comings):
        await fake.answer(client.list_tools(), "tools/list", tools("old"))
        await lose(client, fake)
        listing = asyncio.create_task(client.list_tools())
        other = await comings.opened(MODERN)
        await other.result(await other.expect("tools/list"), tools("new"))
        assert await names(listing) == ["new"]


async def test_the_answer_to_a_request_that_was_sent_again_is_not_kept_but_those_that_follow_are() -> None:
    async with coming_back(MODERN) as (client, fake, comings):
        listing = asyncio.create_task(client.list_tools())
        await fake.expect("tools/list")
        await fake.aclose()
        other = await comings.opened(MODERN)
        await other.result(await other.expect("tools/list"), tools("new"))
        assert await names(listing) == ["new"]
        assert await names(other.answer(client.list_tools(), "tools/list", tools("newer"))) == ["newer"]
        assert await names(client.list_tools()) == ["newer"]


async def test_who_is_told_to_list_again_because_news_may_be_missing_gets_a_new_list() -> None:
    async with coming_back(MODERN) as (client, fake, comings):

        async def agree(other: FakeServer) -> None:
            request = await other.expect("subscriptions/listen")
            tag = {"io.modelcontextprotocol/subscriptionId": request["id"]}
            agreed = {"notifications": {"toolsListChanged": True}, "_meta": tag}
            await other.notify("notifications/subscriptions/acknowledged", agreed)

        agreeing = asyncio.create_task(agree(fake))
        async with client.listen(tools=True) as events:
            await agreeing
            await fake.aclose()
            other = await comings.opened(MODERN)
            while not client.connected:
                await asyncio.sleep(0)
            assert await names(other.answer(client.list_tools(), "tools/list", tools("before"))) == ["before"]
            await agree(other)
            assert await anext(events) == Missed()
            assert await names(other.answer(client.list_tools(), "tools/list", tools("after"))) == ["after"]


async def test_over_a_socket_it_is_as_in_memory() -> None:
    server = Server("s", list_ttl=60)
    server.add_tool(lambda: "", name="a")
    serving = server.serving("tcp://127.0.0.1:0")
    async with serving, connected(serving.url) as client, client.listen(tools=True) as events:
        for _ in range(3):
            assert await names(client.list_tools()) == ["a"]
        assert len(client.frames.sent("tools/list")) == 1
        server.add_tool(lambda: "", name="b")
        await anext(events)
        assert await names(client.list_tools()) == ["a", "b"]


async def test_a_client_that_is_closed_has_nothing_and_one_that_is_opened_again_asks() -> None:
    async with coming_back(MODERN, cache=Cache(stale_if_error=60)) as (client, fake, comings):
        await fake.answer(client.list_tools(), "tools/list", tools("old"))
        await client.close()
        with pytest.raises(ConnectionLost):
            await client.list_tools()
        opening = asyncio.create_task(client.connect())
        other = await comings.opened(MODERN)
        await opening
        assert await names(other.answer(client.list_tools(), "tools/list", tools("new"))) == ["new"]


async def test_a_client_that_was_never_open_says_so() -> None:
    with pytest.raises(ConnectionFailed, match="not connected"):
        await Client(FakeServer().stream).read_resource(URI)


async def test_two_clients_share_nothing_whatever_the_scope_and_the_settings() -> None:
    settings = Cache()
    async with talking(MODERN, cache=settings) as (one, fake), talking(MODERN, cache=settings) as (other, fake2):
        await fake.answer(one.list_tools(), "tools/list", {**tools("mine"), "cacheScope": "public"})
        assert await names(fake2.answer(other.list_tools(), "tools/list", tools("yours"))) == ["yours"]


# ------------------------------------------------------------------ stale on error


async def test_an_error_is_an_error_where_nobody_asked_for_what_is_stale() -> None:
    async with talking(MODERN) as (client, fake):
        await fake.answer(client.list_tools(), "tools/list", tools("old"))
        listing = asyncio.create_task(client.list_tools(fresh=True))
        await fake.error(await fake.expect("tools/list"), -32603, "out of order")
        with pytest.raises(PeerError):
            await listing


@pytest.mark.parametrize("ttl", [0, 1000])
async def test_where_the_server_fails_what_is_stale_is_used_for_as_long_as_was_said(
    ttl: int, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock(frozen=True)
    async with talking(MODERN, cache=Cache(stale_if_error=10)) as (client, fake):

        async def failing() -> list[str]:
            listing = asyncio.create_task(client.list_tools())
            await fake.error(await fake.expect("tools/list"), -32603, "out of order")
            return await names(listing)

        await fake.answer(client.list_tools(), "tools/list", tools("old", ttl=ttl))
        await clock.advance(ttl / 1000 + 9)
        caplog.set_level(logging.WARNING)
        assert await failing() == ["old"]
        assert "tools/list failed, and what came" in caplog.text
        assert "out of order" in caplog.text
        await clock.advance(1)
        with pytest.raises(PeerError):
            await failing()


async def test_where_no_answer_comes_or_a_broken_one_what_is_stale_is_used() -> None:
    clock = Clock(frozen=True)
    async with talking(MODERN, cache=Cache(stale_if_error=1000)) as (client, fake):
        await fake.answer(client.read_resource(URI), "resources/read", contents("sun", ttl=0))
        reading = asyncio.create_task(client.read_resource(URI, timeout=5))
        await fake.expect("resources/read")
        await clock.advance(5)
        assert await words(reading) == "sun"
        await fake.expect("notifications/cancelled")
        broken = fake.answer(client.read_resource(URI), "resources/read", {"contents": 7})
        assert await words(broken) == "sun"


async def test_where_the_server_does_not_come_back_what_is_stale_is_used() -> None:
    async with talking(MODERN, cache=Cache(stale_if_error=1000)) as (client, fake):
        await fake.answer(client.read_resource(URI), "resources/read", contents("sun"))
        await lose(client, fake)
        assert await words(client.read_resource(URI)) == "sun"
    async with coming_back(MODERN, cache=Cache(stale_if_error=1000)) as (client, fake, comings):
        await fake.answer(client.read_resource(URI), "resources/read", contents("sun"))
        comings.absent = True
        await lose(client, fake)
        assert await words(client.read_resource(URI, timeout=0.01)) == "sun"


async def test_so_is_every_page_of_a_list() -> None:
    async with coming_back(MODERN, cache=Cache(stale_if_error=1000)) as (client, fake, comings):
        listing = asyncio.create_task(client.list_tools())
        await fake.result(await fake.expect("tools/list"), tools("a", nextCursor="c"))
        await fake.result(await fake.expect("tools/list"), tools("b"))
        assert await names(listing) == ["a", "b"]
        comings.absent = True
        await lose(client, fake)
        assert await names(client.list_tools(timeout=0.01)) == ["a", "b"]


async def test_a_question_is_not_used_in_the_place_of_a_result_nor_is_what_was_there_before_it() -> None:
    async with talking(MODERN, cache=Cache(stale_if_error=1000)) as (client, fake):
        await fake.answer(client.read_resource(URI), "resources/read", contents("before", ttl=0))
        asked = {"resultType": "input_required", "requestState": "s"}
        question = await fake.answer(client.read_resource(URI, rounds=False), "resources/read", asked)
        assert isinstance(question, types.InputRequiredResult)
        reading = asyncio.create_task(client.read_resource(URI))
        await fake.error(await fake.expect("resources/read"), -32603)
        with pytest.raises(PeerError):
            await reading


@pytest.mark.parametrize(("code", "kind"), [(-32602, InvalidParams), (-32601, PeerError), (-32000, PeerError)])
async def test_a_refusal_is_an_answer_and_no_reason_for_what_is_stale(code: int, kind: type[Exception]) -> None:
    async with talking(MODERN, cache=Cache(stale_if_error=1000)) as (client, fake):
        await fake.answer(client.read_resource(URI), "resources/read", contents("sun", ttl=0))
        for attempt in (code, -32603):
            reading = asyncio.create_task(client.read_resource(URI))
            await fake.error(await fake.expect("resources/read"), attempt)
            with pytest.raises(kind if attempt == code else PeerError):
                await reading


async def test_who_asks_in_any_case_wants_nothing_that_is_stale() -> None:
    async with talking(MODERN, cache=Cache(stale_if_error=1000)) as (client, fake):
        await fake.answer(client.list_tools(), "tools/list", tools("old"))
        listing = asyncio.create_task(client.list_tools(fresh=True))
        await fake.error(await fake.expect("tools/list"), -32603, "out of order")
        with pytest.raises(PeerError):
            await listing


async def test_what_has_changed_is_not_used_even_then() -> None:
    async with talking(MODERN, cache=Cache(stale_if_error=1000)) as (client, fake):
        await fake.answer(client.read_resource(URI), "resources/read", contents("sun"))
        await fake.notify("notifications/resources/updated", {"uri": URI})
        await fake.answer(client.call("x"), "tools/call", text("heard"))
        reading = asyncio.create_task(client.read_resource(URI))
        await fake.error(await fake.expect("resources/read"), -32603)
        with pytest.raises(PeerError):
            await reading


# ------------------------------------------------------------------ settings, groups


@pytest.mark.parametrize(
    "make",
    [
        lambda: Cache(entries=0),
        lambda: Cache(entries=True),
        lambda: Cache(bytes=1.5),  # type: ignore[arg-type]
        lambda: Cache(max_ttl=-1),
        lambda: Cache(max_ttl=float("inf")),
        lambda: Cache(max_ttl=None),  # type: ignore[arg-type]
        lambda: Cache(stale_if_error=0),
        lambda: Cache(stale_if_error=float("nan")),
        lambda: Cache(stale_if_error=True),
        lambda: Client(["server"], cache=60),  # type: ignore[arg-type]
        lambda: Client(["server"], cache=None),  # type: ignore[arg-type]
    ],
)
def test_settings_that_make_no_sense_are_refused(make: Any) -> None:
    with pytest.raises(ConfigError, match="cache"):
        make()


async def test_a_group_that_does_not_know_a_name_asks_in_any_case() -> None:
    server = Server("s", list_ttl=60)
    server.add_tool(lambda: "a", name="a")
    async with Group({"s": server}, prefix=False) as group:
        assert await names(group.list_tools()) == ["a"]
        server.add_tool(lambda: "b", name="b")
        assert await names(group.list_tools()) == ["a"]
        assert await group.call("b") == "b"
        assert await names(group.list_tools()) == ["a", "b"]
