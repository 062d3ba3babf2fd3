"""What a client tells its server again once a lost connection is back, and what those who listen hear of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from modelwire import (
    Client,
    ConnectionLost,
    Missed,
    ResourceUpdated,
    Server,
    ToolsChanged,
)
from modelwire.client.listening import Event, Listening
from modelwire.rules import restarts
from tests.clock import Clock
from tests.fake_server import (
    HANDSHAKE,
    MODERN,
    REVISIONS,
    FakeServer,
    alive,
    child,
    coming_back,
    text,
)

META = "io.modelcontextprotocol/"
TAG = f"{META}subscriptionId"


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_the_log_level_and_subscriptions_are_told_again(revision: str) -> None:
    async with coming_back(revision) as (client, fake, comings):
        await fake.answer(client.set_log_level("error"), "logging/setLevel", {})
        for uri in ("a:1", "a:2", "a:3"):
            await fake.answer(client.subscribe(uri), "resources/subscribe", {})
        await fake.answer(client.unsubscribe("a:2"), "resources/unsubscribe", {})
        await fake.hang_up()
        fake = await comings.opened(revision)
        told = [await fake.next() for _ in range(3)]
        assert [(request["method"], request["params"]) for request in told] == [
            ("logging/setLevel", {"level": "error"}),
            ("resources/subscribe", {"uri": "a:1"}),
            ("resources/subscribe", {"uri": "a:3"}),
        ]
        for request in told:
            await fake.result(request, {})
        await alive(client, fake)


async def test_subscriptions_come_back_although_no_request_does() -> None:
    """News come unasked: nobody would send the request that opens the connection."""
    heard: list[Any] = []
    async with coming_back(on_notification=lambda method, params: heard.append(params)) as (client, fake, comings):
        await fake.answer(client.subscribe("a:1"), "resources/subscribe", {})
        await fake.hang_up()
        fake = await comings.opened("2025-11-25")
        await fake.result(await fake.expect("resources/subscribe"), {})
        await fake.notify("notifications/resources/updated", {"uri": "a:1"})
        await Clock().turn()
        assert heard == [{"uri": "a:1"}]


async def test_the_log_level_of_per_request_revisions_goes_with_every_request_as_before() -> None:
    async with coming_back(MODERN) as (client, fake, comings):
        await client.set_log_level("error")
        await fake.hang_up()
        call = asyncio.create_task(client.call("t"))
        fake = await comings.opened(MODERN)
        request = await fake.expect("tools/call")
        assert request["params"]["_meta"][f"{META}logLevel"] == "error"
        await fake.result(request, text("x"))
        await call


async def test_what_cannot_be_told_again_is_logged_and_costs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with coming_back() as (client, fake, comings):
        await fake.answer(client.subscribe("a:1"), "resources/subscribe", {})
        await fake.hang_up()
        fake = await comings.opened("2025-11-25")
        await fake.error(await fake.expect("resources/subscribe"), -32002, "no such resource")
        await alive(client, fake)
    assert "resources/subscribe could not be repeated over the new connection: no such resource" in caplog.text


async def test_a_request_does_not_wait_for_what_is_told_again() -> None:
    async with coming_back() as (client, fake, comings):
        await fake.answer(client.subscribe("a:1"), "resources/subscribe", {})
        await fake.hang_up()
        call = asyncio.create_task(client.call("t"))
        fake = await comings.opened("2025-11-25")
        await fake.expect("resources/subscribe")
        await fake.result(await fake.expect("tools/call"), text("x"))
        assert await call == "x"


async def test_after_a_close_nothing_but_the_log_level_is_told_again() -> None:
    async with coming_back() as (client, fake, comings):
        await fake.answer(client.set_log_level("error"), "logging/setLevel", {})
        await fake.answer(client.subscribe("a:1"), "resources/subscribe", {})
        await client.close()
        connecting = asyncio.create_task(client.connect())
        fake = await comings.opened("2025-11-25")
        await connecting
        await fake.result(await fake.expect("logging/setLevel"), {})
        await alive(client, fake)


# --------------------------------------------------------------------------------------------------- who listens


async def agree(fake: FakeServer, **wanted: Any) -> Any:
    """Have a server agree to what a listening asks of it; return the request, where there is one."""
    if fake.revision != MODERN:
        for uri in wanted.get("uris", ()):
            request = await fake.expect("resources/subscribe")
            assert request["params"] == {"uri": uri}
            await fake.result(request, {})
        return None
    request = await fake.expect("subscriptions/listen")
    await tell(
        fake, request, "notifications/subscriptions/acknowledged", notifications=request["params"]["notifications"]
    )
    return request


async def tell(fake: FakeServer, listen: Any, method: str, **params: Any) -> None:
    await fake.notify(method, params | ({} if listen is None else {"_meta": {TAG: listen["id"]}}))


async def begin(client: Client, fake: FakeServer, **wanted: Any) -> Listening:
    events = client.listen(**wanted)
    entering = asyncio.create_task(events.__aenter__())
    await agree(fake, **wanted)
    return await entering


async def soon(events: Listening) -> Event:
    async with asyncio.timeout(10):
        return await anext(events)


@pytest.mark.parametrize("revision", REVISIONS)
async def test_who_listens_goes_on_after_a_word_that_something_may_be_missed(revision: str) -> None:
    wanted: dict[str, Any] = {"tools": True, "uris": ["a:1", "a:2"]}
    async with coming_back(revision) as (client, fake, comings):
        events = await begin(client, fake, **wanted)
        await fake.hang_up()
        waiting = asyncio.create_task(soon(events))
        fake = await comings.opened(revision)
        listen = await agree(fake, **wanted)
        await tell(fake, listen, "notifications/tools/list_changed")
        await tell(fake, listen, "notifications/resources/updated", uri="a:2")
        heard = [await waiting, await soon(events), await soon(events)]
        if revision == MODERN:
            assert heard[0] == Missed()
        assert set(heard) == {Missed(), ToolsChanged(), ResourceUpdated("a:2")}
        assert comings.tried == 2


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_what_was_heard_before_the_loss_comes_first(revision: str) -> None:
    async with coming_back(revision) as (client, fake, comings):
        events = client.listen(tools=True)
        entering = asyncio.create_task(events.__aenter__())
        listen = await agree(fake)
        await entering
        await tell(fake, listen, "notifications/tools/list_changed")
        await fake.hang_up()
        fake = await comings.opened(revision)
        listen = await agree(fake)
        assert [await soon(events), await soon(events)] == [ToolsChanged(), Missed()]
        await tell(fake, listen, "notifications/tools/list_changed")
        assert await soon(events) == ToolsChanged()


async def test_news_of_the_lost_subscription_are_not_ours_any_more() -> None:
    """On another connection the same id may be anything else."""
    async with coming_back(MODERN) as (client, fake, comings):
        await alive(client, fake)
        events = client.listen(tools=True)
        entering = asyncio.create_task(events.__aenter__())
        old = await agree(fake)
        await entering
        await fake.hang_up()
        fake = await comings.next()
        await fake.open(MODERN)
        request = await fake.expect("subscriptions/listen")
        assert request["id"] != old["id"]
        await tell(fake, old, "notifications/tools/list_changed")
        await fake.notify("notifications/tools/list_changed")
        await tell(fake, request, "notifications/subscriptions/acknowledged", notifications={"toolsListChanged": True})
        assert await soon(events) == Missed()
        assert events._events == {}


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_a_listening_survives_any_number_of_losses(revision: str) -> None:
    clock = Clock()
    async with coming_back(revision) as (client, fake, comings):
        events = await begin(client, fake, uris=["a:1"])
        for delay in restarts.DELAYS[:3]:
            await fake.hang_up()
            for _ in range(3):
                await clock.turn()
            await clock.advance(delay)
            fake = await comings.opened(revision)
            await agree(fake, uris=["a:1"])
            assert await soon(events) == Missed()


async def test_several_listenings_are_told_apart_after_the_loss_too() -> None:
    async with coming_back(MODERN) as (client, fake, comings):
        first, second = await begin(client, fake, tools=True), await begin(client, fake, tools=True)
        await fake.hang_up()
        fake = await comings.opened(MODERN)
        requests = [await agree(fake), await agree(fake)]
        assert {await soon(first), await soon(second)} == {Missed()}
        owner = first if first._id == requests[0]["id"] else second
        await tell(fake, requests[0], "notifications/tools/list_changed")
        assert await soon(owner) == ToolsChanged()
        assert (second if owner is first else first)._events == {}


async def test_what_the_new_server_agrees_to_counts(caplog: pytest.LogCaptureFixture) -> None:
    async with coming_back(MODERN) as (client, fake, comings):
        events = await begin(client, fake, tools=True, prompts=True)
        await fake.hang_up()
        fake = await comings.opened(MODERN)
        request = await fake.expect("subscriptions/listen")
        await tell(fake, request, "notifications/subscriptions/acknowledged", notifications={"toolsListChanged": True})
        assert await soon(events) == Missed()
        await Clock().turn()
        assert events.honoured.prompts_list_changed is None
    assert "did not agree to tell of changes of: prompts" in caplog.text


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_a_new_server_that_refuses_ends_the_listening_and_nothing_else(revision: str) -> None:
    async with coming_back(revision) as (client, fake, comings):
        events = await begin(client, fake, uris=["a:1"])
        await fake.hang_up()
        fake = await comings.opened(revision)
        await fake.error(await fake.next(), -32603, "no more of that")
        with pytest.raises(ConnectionLost, match="nothing more will be told: no more of that"):
            await soon(events)
        await alive(client, fake)


async def test_a_new_server_that_does_not_agree_in_time_ends_the_listening_and_is_told() -> None:
    clock = Clock()
    async with coming_back(MODERN) as (client, fake, comings):
        events = await begin(client, fake, tools=True)
        await fake.hang_up()
        fake = await comings.opened(MODERN)
        request = await fake.expect("subscriptions/listen")
        await clock.advance(61)
        with pytest.raises(ConnectionLost, match="subscriptions/listen within 60 s.*did not acknowledge"):
            await soon(events)
        assert (await fake.expect("notifications/cancelled"))["params"]["requestId"] == request["id"]


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_a_connection_that_does_not_come_back_is_raised_to_who_iterates(revision: str) -> None:
    clock = Clock()
    async with coming_back(revision) as (client, fake, comings):
        events = await begin(client, fake, uris=["a:1"])
        comings.absent = True
        await fake.hang_up()
        waiting = asyncio.create_task(soon(events))
        for _ in range(3):
            await clock.turn()
        for delay in restarts.DELAYS:
            await clock.advance(delay)
        with pytest.raises(ConnectionLost, match="nothing more will be told: 5 attempts within 60 s to open"):
            await waiting
        tried = comings.tried
        await clock.advance(1000)
        assert comings.tried == tried, "nobody listens any more"


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_without_reconnect_the_loss_is_raised_to_who_iterates(revision: str) -> None:
    async with coming_back(revision, reconnect=False) as (client, fake, comings):
        events = await begin(client, fake, uris=["a:1"])
        await fake.hang_up()
        with pytest.raises(ConnectionLost, match="nothing more will be told: the server closed the connection"):
            await soon(events)
        assert comings.tried == 1


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_a_connection_lost_while_a_listening_begins_begins_it_again(revision: str) -> None:
    async with coming_back(revision) as (client, fake, comings):
        events = client.listen(uris=["a:1"])
        entering = asyncio.create_task(events.__aenter__())
        await fake.next()
        await fake.hang_up()
        fake = await comings.opened(revision)
        listen = await agree(fake, uris=["a:1"])
        await entering
        await tell(fake, listen, "notifications/resources/updated", uri="a:1")
        assert await soon(events) == ResourceUpdated("a:1"), "nothing was missed: it had not begun"
        assert fake.inbox == []


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
@pytest.mark.parametrize("who", ["the listening", "the client"])
@pytest.mark.parametrize("moment", ["while it is opened", "while the server is asked"])
async def test_closing_while_it_comes_back_ends_the_iteration(revision: str, who: str, moment: str) -> None:
    async with coming_back(revision) as (client, fake, comings):
        events = await begin(client, fake, uris=["a:1"])
        await fake.hang_up()
        waiting = asyncio.create_task(in_full(events))
        fake = await comings.next()
        if moment == "while the server is asked":
            await fake.open(revision)
        asked = await fake.next()
        closing = asyncio.create_task(events.aclose() if who == "the listening" else client.close())
        if who == "the listening" and moment == "while it is opened":
            await (fake.discovered(asked) if revision == MODERN else fake.initialized(asked, revision))
        elif who == "the listening" and revision != MODERN:
            await fake.result(asked, {})
            await fake.result(await fake.expect("resources/unsubscribe"), {})
        assert await waiting == []
        await closing
        if who == "the listening":
            await Clock().turn()
            if "subscriptions/listen" in fake.methods:
                await fake.expect("notifications/cancelled")
            await alive(client, fake)


async def in_full(events: Listening) -> list[Event]:
    async with asyncio.timeout(10):
        return [event async for event in events]


async def test_a_server_in_this_process_tells_again_after_it_has_left() -> None:
    server = Server("here")
    server.add_tool(lambda: "hi", name="greet")
    async with Client(server, revision="2025-11-25") as client, client.listen(tools=True) as events:
        await client.notify("exit")
        assert await soon(events) == Missed()
        server.add_tool(lambda: "ho", name="other")
        assert await soon(events) == ToolsChanged()


async def test_a_process_that_is_killed_comes_back_for_who_listens() -> None:
    script = """
opened()
say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
while (request := read()) is not None:
    if request["method"] == "tools/call":
        os._exit(9)
"""
    async with Client(child(script), revision="2025-11-25") as client, client.listen(tools=True) as events:
        with pytest.raises(ConnectionLost):
            await client.call("die")
        seen = {await soon(events), await soon(events)}
        assert seen <= {Missed(), ToolsChanged()}
        assert Missed() in seen
