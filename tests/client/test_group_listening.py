"""Changes of every server of a group as one row of events, with the server's name."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from modelwire import (
    Client,
    ConfigError,
    Group,
    GroupEvent,
    PromptsChanged,
    ResourcesChanged,
    ResourceUpdated,
    Server,
    ToolsChanged,
)
from modelwire.client import group_listening, listening
from modelwire.client.group_listening import GroupListening
from tests.client.test_listening import Told
from tests.clock import Clock
from tests.fake_server import REVISIONS, fake_server

AT_REVISION = pytest.mark.parametrize("revision", REVISIONS)


def named(name: str) -> Server:
    server = Server(name, declare=["tools", "prompts", "resources"])
    server.add_resource(f"{name}://log", lambda: "x", name="log")
    return server


async def told(events: GroupListening, count: int) -> set[tuple[str, Any]]:
    async with asyncio.timeout(10):
        found = [await anext(events) for _ in range(count)]
    assert all(isinstance(event, GroupEvent) for event in found)
    return {(event.server, event.event) for event in found}


@AT_REVISION
async def test_changes_come_with_the_name_of_their_server(revision: str) -> None:
    one, other = named("one"), named("other")
    targets = {"a": one, "b": other}
    group = Group(targets, client=lambda name, target: Client(target, revision=revision))
    async with group, group.listen(tools=True, prompts=True, resources=True, uris=["other://log"]) as changes:
        one.add_tool(lambda: "x", name="x")
        other.add_prompt(lambda: "x", name="x")
        other.add_resource("x:1", lambda: "x", name="x")
        other.changed("other://log")
        one.changed("one://log")
        assert await told(changes, 4) == {
            ("a", ToolsChanged()),
            ("b", PromptsChanged()),
            ("b", ResourcesChanged()),
            ("b", ResourceUpdated("other://log")),
        }


async def test_only_the_servers_of_the_uris_are_listened_to_where_no_list_is() -> None:
    one, other = named("one"), named("other")
    async with Group({"a": one, "b": other}) as group, group.listen(uris=["one://log"]) as changes:
        one.changed("one://log")
        other.changed("other://log")
        assert await told(changes, 1) == {("a", ResourceUpdated("one://log"))}


async def test_servers_that_are_added_are_heard_and_those_removed_no_longer() -> None:
    one, other = named("one"), named("other")
    async with Group({"a": one}) as group, group.listen(tools=True) as changes:
        await group.add("b", other)
        other.add_tool(lambda: "x", name="x")
        assert await told(changes, 1) == {("b", ToolsChanged())}
        await group.remove("b")
        other.add_tool(lambda: "x", name="y")
        one.add_tool(lambda: "x", name="x")
        assert await told(changes, 1) == {("a", ToolsChanged())}


async def test_a_burst_is_told_once_per_server_and_event() -> None:
    one, other = named("one"), named("other")
    async with Group({"a": one, "b": other}) as group, group.listen(tools=True) as changes:
        for number in range(5):
            one.add_tool(lambda: "x", name=f"x{number}")
        other.add_tool(lambda: "x", name="x")
        assert await told(changes, 2) == {("a", ToolsChanged()), ("b", ToolsChanged())}


async def test_a_server_that_does_not_agree_is_reported_and_costs_the_others_nothing() -> None:
    server = named("one")
    async with fake_server() as fake:
        failed: list[tuple[str, str]] = []
        group = Group(
            {"fake": fake.stream, "a": server}, on_failure=lambda name, error: failed.append((name, str(error)))
        )
        opening = asyncio.create_task(group.connect())
        await fake.open("2026-07-28")
        await opening
        entering = asyncio.create_task(group.listen(tools=True).__aenter__())
        await fake.error(await fake.expect("subscriptions/listen"), -32603, "busy")
        changes = await entering
        assert failed == [("fake", "busy (-32603)")]
        server.add_tool(lambda: "x", name="x")
        assert await told(changes, 1) == {("a", ToolsChanged())}
        await group.close()


async def test_a_server_that_ends_is_reported_and_the_others_are_heard() -> None:
    server = named("one")
    async with fake_server() as fake:
        group = Group({"fake": fake.stream, "a": server})
        opening = asyncio.create_task(group.connect())
        await fake.open("2025-11-25")
        await opening
        async with group.listen(tools=True) as changes:
            await fake.hang_up()
            server.add_tool(lambda: "x", name="x")
            assert await told(changes, 1) == {("a", ToolsChanged())}
            assert set(group.failures) == {"fake"}
        await group.close()


@pytest.mark.parametrize("how", ["group", "block", "servers"])
async def test_the_iteration_ends_with_the_block_the_group_or_the_last_server(how: str) -> None:
    group = Group({"a": named("one")})
    async with group:
        changes = await group.listen(tools=True).__aenter__()
        waiting = asyncio.create_task(anext(changes, None))
        await {"group": group.close, "block": changes.aclose, "servers": lambda: group.remove("a")}[how]()
        async with asyncio.timeout(10):
            assert await waiting is None
        await changes.aclose()


async def test_the_servers_are_told_at_the_end() -> None:
    async with fake_server() as fake:
        group = Group({"fake": fake.stream})
        opening = asyncio.create_task(group.connect())
        await fake.open("2026-07-28")
        await opening
        async with Told(group.clients["fake"], fake, tools=True):
            entering = asyncio.create_task(group.listen(tools=True).__aenter__())
            request = await fake.expect("subscriptions/listen")
            entering.cancel()
            cancelled = await fake.expect("notifications/cancelled")
            assert cancelled["params"]["requestId"] == request["id"]
            with pytest.raises(asyncio.CancelledError):
                await entering
        await group.close()


async def test_what_cannot_be_listened_for_is_refused() -> None:
    async with Group({"a": named("one"), "b": named("other")}) as group:
        with pytest.raises(ConfigError, match="listen.. was asked for nothing"):
            group.listen()
        with pytest.raises(ConfigError, match="uris= takes a list of URIs"):
            group.listen(uris="one://log")
        with pytest.raises(ConfigError, match="no server of the group lists 'nobody://1'"):
            await group.listen(uris=["nobody://1"]).__aenter__()
        with pytest.raises(ConfigError, match="a listening is an `async with` block"):
            async for _ in group.listen(tools=True):
                pass


async def test_a_server_that_is_removed_is_listened_to_no_more_even_if_its_client_goes_on() -> None:
    one, other = named("one"), named("other")
    async with Client(one) as mine:
        group = Group({"a": mine, "b": other})
        async with group, group.listen(tools=True) as changes:
            await group.remove("a")
            assert mine.connected
            one.add_tool(lambda: "x", name="x")
            other.add_tool(lambda: "x", name="x")
            assert await told(changes, 1) == {("b", ToolsChanged())}
            await mine.ping()
            assert not changes._events


async def test_events_for_a_slow_reader_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_listening, "MAX_EVENTS", 5)
    monkeypatch.setattr(listening, "MAX_EVENTS", 5)
    async with fake_server() as fake:
        group = Group({"a": fake.stream})
        opening = asyncio.create_task(group.connect())
        await fake.open("2025-11-25")
        await opening
        block = group.listen(uris=["one://log"])
        entering = asyncio.create_task(block.__aenter__())
        await fake.play(
            ("resources/list", {"resources": [{"uri": "one://log", "name": "log"}]}),
            ("resources/templates/list", {"resourceTemplates": []}),
            ("resources/subscribe", {}),
        )
        changes = await entering
        for number in range(100):
            await fake.notify("notifications/resources/updated", {"uri": f"one://log/{number}"})
            await Clock().turn()
        assert len(changes._events) == 5
        heard = await told(changes, 12)
        assert ("a", ResourceUpdated("one://log")) in heard, "what was too much is told as the resource itself"
        await fake.hang_up()
        await group.close()
