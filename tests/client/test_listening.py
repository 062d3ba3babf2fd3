"""Events of what changes, the same on every revision."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from modelwire import (
    Client,
    ConnectionFailed,
    ConnectionLost,
    InvalidParams,
    MethodNotFound,
    PromptsChanged,
    RequestTimeout,
    ResourcesChanged,
    ResourceUpdated,
    ToolsChanged,
)
from modelwire.client import listening
from modelwire.client.listening import Event, Listening
from tests.clock import Clock
from tests.fake_server import HANDSHAKE, MODERN, REVISIONS, FakeServer, talking

TAG = "io.modelcontextprotocol/subscriptionId"
HINTS: list[tuple[str, Event]] = [
    ("tools/list", ToolsChanged()),
    ("resources/list", ResourcesChanged()),
    ("notifications/root", ResourcesChanged()),
]


class Told:
    """A listening on either era, from the server's side."""

    def __init__(self, client: Client, fake: FakeServer, **wanted: Any) -> None:
        self.listening = client.listen(**wanted)
        self.fake = fake
        self.request: Any = None

    async def __aenter__(self) -> Told:
        entering = asyncio.create_task(self.listening.__aenter__())
        if self.fake.revision == MODERN:
            self.request = await self.fake.expect("subscriptions/listen")
            agreed = {"notifications": self.request["params"]["notifications"]}
            await self.tell("notifications/subscriptions/acknowledged", agreed)
        else:
            for uri in self.listening._wanted.resource_subscriptions or ():
                request = await self.fake.expect("resources/subscribe")
                assert request["params"] == {"uri": uri}
                await self.fake.result(request, {})
        await entering
        return self

    async def __aexit__(self, *error: object) -> None:
        leaving = asyncio.create_task(self.listening.aclose())
        if self.fake.revision == MODERN:
            told = await self.fake.expect("notifications/cancelled")
            assert told["params"] == {"requestId": self.request["id"], "reason": "the client stopped listening"}
        else:
            for uri in self.listening._wanted.resource_subscriptions or ():
                request = await self.fake.expect("resources/unsubscribe")
                assert request["params"] == {"uri": uri}
                await self.fake.result(request, {})
        await leaving

    async def tell(self, method: str, params: dict[str, Any] | None = None) -> None:
        if self.request is not None:
            params = {**(params or {}), "_meta": {TAG: self.request["id"]}}
        await self.fake.notify(method, params)

    async def next(self) -> Event:
        async with asyncio.timeout(10):
            return await self.listening.__anext__()


async def in_order(events: Listening, count: int) -> list[Event]:
    return [await anext(events) for _ in range(count)]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_what_changes_is_told_as_typed_events(revision: str) -> None:
    async with (
        talking(revision) as (client, fake),
        Told(client, fake, tools=True, prompts=True, resources=True, uris=["file:///a"]) as told,
    ):
        assert told.listening.honoured == told.listening._wanted
        await told.tell("notifications/tools/list_changed")
        assert await told.next() == ToolsChanged()
        await told.tell("notifications/prompts/list_changed")
        assert await told.next() == PromptsChanged()
        await told.tell("notifications/resources/list_changed")
        assert await told.next() == ResourcesChanged()
        await told.tell("notifications/resources/updated", {"uri": "file:///a"})
        assert await told.next() == ResourceUpdated("file:///a")


@pytest.mark.parametrize("revision", REVISIONS)
async def test_what_was_not_asked_for_is_not_told(revision: str) -> None:
    async with talking(revision) as (client, fake), Told(client, fake, tools=True, uris=["file:///a"]) as told:
        await told.tell("notifications/prompts/list_changed")
        await told.tell("notifications/resources/updated", {"uri": "file:///ab"})
        await told.tell("notifications/resources/updated", {"uri": "file:///"})
        await told.tell("notifications/message", {"level": "info", "data": 1})
        await told.tell("notifications/tools/list_changed")
        assert await told.next() == ToolsChanged()


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_part_of_a_resource_that_is_followed_is_told(revision: str) -> None:
    async with talking(revision) as (client, fake), Told(client, fake, uris=["file:///a", "b:/c/"]) as told:
        for uri in ("file:///a/deep/x", "file:///a?q", "file:///a#f", "b:/c/d"):
            await told.tell("notifications/resources/updated", {"uri": uri})
            assert await told.next() == ResourceUpdated(uri)


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_burst_is_told_once_and_a_slow_reader_loses_nothing(revision: str) -> None:
    async with talking(revision) as (client, fake), Told(client, fake, tools=True, uris=["a:1", "a:2"]) as told:
        for _ in range(100):
            await told.tell("notifications/tools/list_changed")
            await told.tell("notifications/resources/updated", {"uri": "a:2"})
            await told.tell("notifications/resources/updated", {"uri": "a:1"})
        await Clock().turn()
        assert await in_order(told.listening, 3) == [ToolsChanged(), ResourceUpdated("a:2"), ResourceUpdated("a:1")]
        await told.tell("notifications/tools/list_changed")
        assert await told.next() == ToolsChanged()


async def test_endless_parts_of_one_resource_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "MAX_EVENTS", 3)
    async with talking() as (client, fake), Told(client, fake, uris=["a:b"]) as told:
        for number in range(50):
            await told.tell("notifications/resources/updated", {"uri": f"a:b/{number}"})
        await Clock().turn()
        parts = [ResourceUpdated(f"a:b/{number}") for number in range(3)]
        assert await in_order(told.listening, 4) == [*parts, ResourceUpdated("a:b")]
        assert told.listening._events == {}


@pytest.mark.parametrize("revision", HANDSHAKE)
@pytest.mark.parametrize(("hint", "event"), HINTS, ids=[hint for hint, _ in HINTS])
async def test_a_hint_counts_as_what_it_means_and_the_client_lists_again(
    revision: str, hint: str, event: Event
) -> None:
    """Tutorials teach notifications named like the requests. What they bring along is not trusted."""
    capabilities: dict[str, Any] = {"tools": {}, "resources": {}}
    async with (
        talking(revision, capabilities) as (client, fake),
        Told(client, fake, tools=True, resources=True) as told,
    ):
        tool = {"name": "evil", "inputSchema": {"type": "object"}}
        await fake.notify(hint, {"tools": [tool], "resources": "nonsense"})
        assert await told.next() == event
        listing = asyncio.create_task(client.list_tools())
        await fake.result(await fake.expect("tools/list"), {"tools": [{**tool, "name": "echo"}]})
        assert [found.name for found in await listing] == ["echo"]


@pytest.mark.parametrize("revision", HANDSHAKE)
@pytest.mark.parametrize("hint", [hint for hint, _ in HINTS])
async def test_after_a_hint_the_client_lists_again_by_itself_what_it_has_listed(revision: str, hint: str) -> None:
    """A burst is one listing; what was never listed is not listed now; the hint's own list is not believed."""
    kind = "tools" if hint == "tools/list" else "resources"
    first = {"name": "a", "inputSchema": {"type": "object"}} if kind == "tools" else {"name": "a", "uri": "x://a"}
    async with talking(revision, {"tools": {}, "resources": {}}) as (client, fake):
        await fake.notify(hint, {kind: [{**first, "name": "evil"}]})
        listing = asyncio.create_task(client.list_tools() if kind == "tools" else client.list_resources())
        await fake.result(await fake.expect(f"{kind}/list"), {kind: [first]})
        await listing
        for _ in range(3):
            await fake.notify(hint, {kind: [{**first, "name": "evil"}]})
        await fake.result(await fake.expect(f"{kind}/list"), {kind: [first, {**first, "name": "b", "uri": "x://b"}]})
        await Clock().turn()
        known = client.tools if kind == "tools" else client.resources
        assert [item.name for item in known or ()] == ["a", "b"]


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_the_same_names_as_requests_are_refused_and_no_hint(revision: str) -> None:
    async with talking(revision) as (client, fake), Told(client, fake, tools=True) as told:
        assert (await fake.ask(1, "tools/list"))["error"]["code"] == -32601
        await Clock().turn()
        assert told.listening._events == {}


async def test_news_without_the_subscriptions_id_is_not_ours() -> None:
    async with talking(MODERN) as (client, fake), Told(client, fake, tools=True) as told:
        own = told.request["id"]
        for tag in (None, own + 1, str(own), float(own) + 0.5, True, {"a": own}):
            meta = {} if tag is None else {"_meta": {TAG: tag}}
            await fake.notify("notifications/tools/list_changed", meta)
        await fake.notify("tools/list")
        await Clock().turn()
        assert told.listening._events == {}


async def test_several_listenings_on_one_stream_are_told_apart() -> None:
    async with (
        talking(MODERN) as (client, fake),
        Told(client, fake, tools=True) as first,
        Told(client, fake, tools=True) as second,
    ):
        await second.tell("notifications/tools/list_changed")
        assert await second.next() == ToolsChanged()
        assert first.listening._events == {}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("notifications/resources/updated", {}),
        ("notifications/resources/updated", {"uri": 5}),
        ("notifications/resources/updated", [1]),
        ("notifications/tools/list_changed", {"_meta": 7}),
        ("notifications/cancelled", {"requestId": {}}),
        ("notifications/subscriptions/acknowledged", {}),
        ("notifications/subscriptions/acknowledged", {"notifications": 3}),
    ],
    ids=str,
)
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_malformed_news_is_dropped(revision: str, method: str, params: Any) -> None:
    async with talking(revision) as (client, fake), Told(client, fake, tools=True, uris=["a:b"]) as told:
        await fake.notify(method, params)
        if isinstance(params, dict) and "_meta" not in params:
            await told.tell(method, params)
        await told.tell("notifications/resources/updated", {"uri": "a:b"})
        seen = await told.next()
        while seen == ToolsChanged():
            seen = await told.next()
        assert seen == ResourceUpdated("a:b")


# --------------------------------------------------------------------------------------------------- what is agreed


async def test_what_the_server_does_not_agree_to_is_left_out_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with talking(MODERN) as (client, fake):
        events = client.listen(tools=True, prompts=True, uris=["a:b", "a:c"])
        entering = asyncio.create_task(events.__aenter__())
        request = await fake.expect("subscriptions/listen")
        agreed = {"toolsListChanged": True, "resourceSubscriptions": ["a:c"]}
        await fake.notify(
            "notifications/subscriptions/acknowledged", {"notifications": agreed, "_meta": {TAG: request["id"]}}
        )
        await entering
        assert events.honoured.tools_list_changed
        assert events.honoured.prompts_list_changed is None
        assert events.honoured.resource_subscriptions == ["a:c"]
        await events.aclose()
    assert "did not agree to tell of changes of: prompts, a:b" in caplog.text


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_what_a_handshake_server_does_not_declare_is_left_out_and_logged(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with talking(revision, {"tools": {"listChanged": True}, "resources": {}}) as (client, fake):
        async with client.listen(tools=True, resources=True, uris=["a:b"]) as events:
            assert events.honoured.tools_list_changed
            assert events.honoured.resources_list_changed is None
            assert events.honoured.resource_subscriptions is None
            assert fake.inbox == []
        assert fake.inbox == []
    assert "did not agree to tell of changes of: resources, a:b" in caplog.text


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_resource_that_cannot_be_followed_takes_the_others_back(revision: str) -> None:
    async with talking(revision) as (client, fake):
        entering = asyncio.create_task(client.listen(uris=["a:b", "a:c"]).__aenter__())
        await fake.result(await fake.expect("resources/subscribe"), {})
        await fake.error(await fake.expect("resources/subscribe"), -32602, "no such resource")
        request = await fake.expect("resources/unsubscribe")
        assert request["params"] == {"uri": "a:b"}
        await fake.result(request, {})
        with pytest.raises(InvalidParams, match="no such resource"):
            await entering


async def test_a_server_that_knows_no_listening_says_so() -> None:
    async with talking(MODERN) as (client, fake):
        entering = asyncio.create_task(client.listen(tools=True).__aenter__())
        await fake.error(await fake.expect("subscriptions/listen"), -32601)
        with pytest.raises(
            MethodNotFound, match="does not tell of changes on 2026-07-28; a client with revision='2025-11-25'"
        ):
            await entering
        assert fake.inbox == []


async def test_a_server_that_does_not_acknowledge_is_given_up_and_told() -> None:
    async with talking(MODERN, timeout=0.01) as (client, fake):
        with pytest.raises(RequestTimeout, match=r"subscriptions/listen within 0\.01 s.*did not acknowledge"):
            await client.listen(tools=True).__aenter__()
        request = await fake.expect("subscriptions/listen")
        assert (await fake.expect("notifications/cancelled"))["params"]["requestId"] == request["id"]


async def test_a_listening_has_no_deadline_once_it_is_acknowledged() -> None:
    clock = Clock()
    async with talking(MODERN) as (client, fake), Told(client, fake, tools=True) as told:
        await clock.advance(100_000)
        await told.tell("notifications/tools/list_changed")
        assert await told.next() == ToolsChanged()


# --------------------------------------------------------------------------------------------------- the end


async def ended(events: Listening) -> bool:
    async with asyncio.timeout(10):
        return [event async for event in events] == []


@pytest.mark.parametrize("how", ["result", "cancelled", "cancelled, then result"])
async def test_the_server_may_end_a_listening(how: str) -> None:
    async with talking(MODERN) as (client, fake):
        told = Told(client, fake, tools=True)
        await told.__aenter__()
        await told.tell("notifications/tools/list_changed")
        if "cancelled" in how:
            await fake.notify("notifications/cancelled", {"requestId": told.request["id"], "reason": "shutting down"})
        if "result" in how:
            await fake.result(told.request, {"_meta": {TAG: told.request["id"]}})
        await Clock().turn()
        assert await told.next() == ToolsChanged()
        assert await ended(told.listening)
        await told.listening.aclose()
        await Clock().turn()
        assert fake.methods.count("notifications/cancelled") == (1 if how == "cancelled" else 0)


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_broken_connection_is_raised_to_who_iterates(revision: str) -> None:
    async with talking(revision) as (client, fake):
        told = Told(client, fake, tools=True)
        await told.__aenter__()
        waiting = asyncio.create_task(told.next())
        await Clock().turn()
        await fake.hang_up()
        with pytest.raises(ConnectionLost, match="the server closed the connection"):
            await waiting
        with pytest.raises(ConnectionLost):
            await told.next()
        await told.listening.aclose()


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("who", [lambda client, events: client.close(), lambda client, events: events.aclose()])
async def test_closing_ends_the_iteration(revision: str, who: Callable[[Client, Listening], Any]) -> None:
    async with talking(revision) as (client, fake):
        told = Told(client, fake, tools=True)
        await told.__aenter__()
        waiting = asyncio.create_task(ended(told.listening))
        await Clock().turn()
        await who(client, told.listening)
        assert await waiting
        await told.listening.aclose()
        await told.listening.aclose()


@pytest.mark.parametrize("revision", REVISIONS)
async def test_an_exception_inside_the_block_leaves_it_as_itself_even_when_the_server_is_stuck(revision: str) -> None:
    clock = Clock()
    async with talking(revision) as (client, fake):

        async def fails() -> None:
            told = Told(client, fake, uris=["a:b"])
            await told.__aenter__()
            try:
                raise ZeroDivisionError
            finally:
                await told.listening.__aexit__(None, None, None)

        failing = asyncio.create_task(fails())
        await clock.turn()
        await clock.turn()
        await clock.advance(listening.UNSUBSCRIBE_SECONDS + 1)
        with pytest.raises(ZeroDivisionError):
            await failing


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_the_last_to_follow_a_resource_takes_the_subscription_back(revision: str) -> None:
    async with talking(revision) as (client, fake):
        first, second = Told(client, fake, uris=["a:b"]), Told(client, fake, uris=["a:b"])
        await first.__aenter__()
        await second.__aenter__()
        await first.listening.aclose()
        assert fake.inbox == []
        await fake.notify("notifications/resources/updated", {"uri": "a:b"})
        assert await second.next() == ResourceUpdated("a:b")
        await second.__aexit__()


async def test_a_subscription_by_hand_is_not_taken_back_by_a_listening() -> None:
    async with talking() as (client, fake):
        subscribing = asyncio.create_task(client.subscribe("a:b"))
        await fake.result(await fake.expect("resources/subscribe"), {})
        await subscribing
        told = Told(client, fake, uris=["a:b"])
        await told.__aenter__()
        await told.listening.aclose()
        assert fake.inbox == []
        unsubscribing = asyncio.create_task(client.unsubscribe("a:b"))
        await fake.result(await fake.expect("resources/unsubscribe"), {})
        await unsubscribing


async def test_a_cancelled_listener_leaves_nothing_behind() -> None:
    async with talking(MODERN) as (client, fake):
        entering = asyncio.create_task(client.listen(tools=True).__aenter__())
        await fake.expect("subscriptions/listen")
        entering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await entering
        await fake.expect("notifications/cancelled")
        assert client._hearing.listenings == set()


async def test_a_listening_on_a_client_that_is_not_connected_says_so() -> None:
    async with talking() as (client, _):
        await client.close()
        with pytest.raises(ConnectionLost):
            await client.listen(uris=["a:b"]).__aenter__()
    with pytest.raises(ConnectionFailed, match="not connected"):
        await Client(["x"]).listen(tools=True).__aenter__()
