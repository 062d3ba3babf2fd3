"""Telling clients of changes: list changes and updates on handshake revisions, `subscriptions/listen` on 2026-07-28."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from modelwire import Context, Server
from tests.wire import MODERN, PREFIX, Pending, Talk, every_handshake, modern_meta, session_talk, stream_talk

ID = PREFIX + "subscriptionId"
CHANGES = ["tools", "prompts", "resources"]
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
CANCELLED = "notifications/cancelled"
UPDATED = "notifications/resources/updated"

over_both = pytest.mark.parametrize("over", [session_talk, stream_talk])


def make_server() -> Server:
    server = Server("subscriptions")
    server.add_tool(lambda: "x", name="tool")
    server.add_prompt(lambda: "x", name="prompt")
    server.add_resource("file:///a", lambda: "x", name="a")
    server.add_resource("file:///t/{id}", lambda id: id, name="t")
    return server


def changed(what: str) -> str:
    return f"notifications/{what}/list_changed"


async def listen(talk: Talk, **wanted: Any) -> tuple[Pending, dict[str, Any]]:
    """Open a subscription and wait for its acknowledgement; return it and what was agreed."""
    pending = await talk.begin("subscriptions/listen", {"notifications": wanted})
    params = await talk.take(
        lambda message: message.get("method") == ACKNOWLEDGED and message["params"]["_meta"][ID] == pending.id
    )
    return pending, params["params"]["notifications"]


def told(talk: Talk, id: Any) -> list[str]:
    """Return the methods of what came for one subscription and waits in the inbox."""
    return [message["method"] for message in talk.inbox if message.get("params", {}).get("_meta", {}).get(ID) == id]


def updated_uris(talk: Talk) -> list[str]:
    return [params["uri"] for params in talk.heard(UPDATED)]


# --------------------------------------------------------------------------------------------------- handshake


@pytest.mark.parametrize("what", CHANGES)
@over_both
@every_handshake
async def test_a_changed_list_is_told(revision: str, over: Any, what: str) -> None:
    server = make_server()
    async with over(server, revision) as talk:
        server.changed(what)
        assert await talk.hear(changed(what)) == {}
        assert await talk.quiet()


@every_handshake
async def test_adding_and_removing_tells_by_itself(revision: str) -> None:
    server = make_server()
    async with stream_talk(server, revision) as talk:
        for change, what in [
            (lambda: server.add_tool(lambda: "x", name="new"), "tools"),
            (lambda: server.remove_tool("new"), "tools"),
            (lambda: server.add_prompt(lambda: "x", name="new"), "prompts"),
            (lambda: server.remove_prompt("new"), "prompts"),
            (lambda: server.add_resource("x://new", lambda: "x", name="new"), "resources"),
            (lambda: server.remove_resource("x://new"), "resources"),
            (lambda: server.add_resource("x://{id}", lambda id: id, name="new"), "resources"),
            (lambda: server.remove_resource("x://{id}"), "resources"),
        ]:
            change()
            await talk.hear(changed(what))
            assert await talk.quiet()


async def test_what_was_there_before_the_client_came_is_not_told() -> None:
    server = make_server()
    server.changed("tools")
    async with stream_talk(server, "2025-11-25") as talk:
        assert await talk.quiet()


@over_both
async def test_a_burst_is_told_once(over: Any) -> None:
    server = make_server()
    async with over(server, "2025-11-25") as talk:
        for number in range(500):
            server.add_tool(lambda: "x", name=f"n{number}")
        for number in range(500):
            server.remove_tool(f"n{number}")
        await talk.settle()
        assert len(talk.heard(changed("tools"))) == 1
        assert talk.heard(changed("prompts")) == []


@every_handshake
async def test_a_resource_that_is_subscribed_is_told_of_until_it_is_unsubscribed(revision: str) -> None:
    server = make_server()
    async with stream_talk(server, revision) as talk:
        server.changed("file:///a")
        assert await talk.quiet()
        assert await talk.result("resources/subscribe", {"uri": "file:///a"}) == {}
        assert await talk.result("resources/subscribe", {"uri": "file:///t/5"}) == {}
        for uri in ("file:///a", "file:///t/5", "file:///t/6"):
            server.changed(uri)
        await talk.settle()
        assert sorted(updated_uris(talk)) == ["file:///a", "file:///t/5"]
        talk.inbox.clear()
        assert await talk.result("resources/unsubscribe", {"uri": "file:///a"}) == {}
        server.changed("file:///a")
        server.changed("file:///t/5")
        await talk.settle()
        assert updated_uris(talk) == ["file:///t/5"]


@every_handshake
async def test_subscribing_twice_is_one_subscription_and_unsubscribing_from_nothing_is_fine(revision: str) -> None:
    server = make_server()
    async with stream_talk(server, revision) as talk:
        for _ in range(2):
            assert await talk.result("resources/subscribe", {"uri": "file:///a"}) == {}
        server.changed("file:///a")
        await talk.settle()
        assert len(updated_uris(talk)) == 1
        talk.inbox.clear()
        for _ in range(2):
            assert await talk.result("resources/unsubscribe", {"uri": "file:///a"}) == {}
        assert await talk.result("resources/unsubscribe", {"uri": "file:///never"}) == {}
        server.changed("file:///a")
        assert await talk.quiet()


async def test_each_client_is_told_of_what_it_subscribed_to() -> None:
    server = make_server()
    async with stream_talk(server, "2024-11-05") as one, stream_talk(server, "2025-11-25") as other:
        await one.result("resources/subscribe", {"uri": "file:///a"})
        server.changed("file:///a")
        server.changed("tools")
        await one.hear(UPDATED, uri="file:///a")
        await one.hear(changed("tools"))
        await other.hear(changed("tools"))
        assert await other.quiet()


async def test_one_update_of_a_burst_is_sent_per_resource() -> None:
    server = make_server()
    async with stream_talk(server, "2025-11-25") as talk:
        for uri in ("file:///a", "file:///b"):
            await talk.result("resources/subscribe", {"uri": uri})
        for _ in range(100):
            server.changed("file:///a")
            server.changed("file:///b")
        await talk.settle()
        assert sorted(updated_uris(talk)) == ["file:///a", "file:///b"]


async def test_changes_may_be_told_from_any_thread() -> None:
    server = make_server()
    async with stream_talk(server, "2025-11-25") as talk:
        await talk.result("resources/subscribe", {"uri": "file:///a"})

        def work() -> None:
            for _ in range(100):
                server.changed("tools")
                server.changed("file:///a")

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        await asyncio.gather(*(asyncio.to_thread(thread.join) for thread in threads))
        await talk.hear(changed("tools"))
        await talk.hear(UPDATED, uri="file:///a")


async def test_changes_without_any_client_or_loop_cost_nothing() -> None:
    server = make_server()
    await asyncio.to_thread(server.changed, "tools")
    server.changed("file:///a")


async def test_what_a_client_that_left_would_be_told_is_forgotten() -> None:
    server = make_server()
    async with stream_talk(server, "2025-11-25") as talk:
        await talk.result("resources/subscribe", {"uri": "file:///a"})
    server.changed("file:///a")
    async with stream_talk(server, "2025-11-25") as talk:
        server.changed("file:///a")
        assert await talk.quiet()


# --------------------------------------------------------------------------------------------------- 2026-07-28


@over_both
async def test_a_subscription_is_acknowledged_first_and_every_message_has_its_id(over: Any) -> None:
    server = make_server()
    async with over(server, MODERN) as talk:
        pending = await talk.begin(
            "subscriptions/listen",
            {
                "notifications": {
                    "toolsListChanged": True,
                    "promptsListChanged": True,
                    "resourcesListChanged": True,
                    "resourceSubscriptions": ["file:///a"],
                }
            },
            id="my listen",
        )
        for _ in range(10):  # whenever a change comes, the acknowledgement comes before it
            server.changed("tools")
            await asyncio.sleep(0)
        await talk.settle()
        assert told(talk, "my listen")[0] == ACKNOWLEDGED
        assert talk.heard(ACKNOWLEDGED)[0]["notifications"] == {
            "toolsListChanged": True,
            "promptsListChanged": True,
            "resourcesListChanged": True,
            "resourceSubscriptions": ["file:///a"],
        }
        talk.inbox.clear()
        for what in (*CHANGES, "file:///a"):
            server.changed(what)
        await talk.settle()
        assert sorted(told(talk, "my listen")) == sorted([*map(changed, CHANGES), UPDATED])
        assert len(talk.inbox) == 4
        assert not pending.done


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"toolsListChanged": True}, [changed("tools")]),
        ({"promptsListChanged": True}, [changed("prompts")]),
        ({"resourcesListChanged": True}, [changed("resources")]),
        ({"resourceSubscriptions": ["file:///a"]}, [UPDATED]),
        ({"toolsListChanged": False, "promptsListChanged": True}, [changed("prompts")]),
        ({"resourceSubscriptions": []}, []),
        ({}, []),
    ],
    ids=str,
)
async def test_only_what_was_asked_for_is_told(wanted: dict[str, Any], expected: list[str]) -> None:
    server = make_server()
    async with stream_talk(server, MODERN) as talk:
        pending, _ = await listen(talk, **wanted)
        for what in (*CHANGES, "file:///a", "file:///other"):
            server.changed(what)
        await talk.settle()
        assert told(talk, pending.id) == expected
        assert len(talk.inbox) == len(expected)


async def test_without_a_subscription_nothing_is_told() -> None:
    server = make_server()
    async with stream_talk(server, MODERN) as talk:
        for what in (*CHANGES, "file:///a"):
            server.changed(what)
        server.add_tool(lambda: "x", name="new")
        assert await talk.quiet()


async def test_what_the_server_does_not_have_is_left_out_of_the_acknowledgement() -> None:
    server = Server("tools only")
    server.add_tool(lambda: "x", name="tool")
    async with stream_talk(server, MODERN) as talk:
        _, agreed = await listen(talk, toolsListChanged=True, promptsListChanged=True, toolsSomethingElse=True)
        assert agreed == {"toolsListChanged": True}


@over_both
async def test_several_subscriptions_at_once_are_told_apart(over: Any) -> None:
    server = make_server()
    async with over(server, MODERN) as talk:
        tools, _ = await listen(talk, toolsListChanged=True)
        both, _ = await listen(talk, toolsListChanged=True, resourceSubscriptions=["file:///a"])
        other, _ = await listen(talk, resourceSubscriptions=["file:///a", "file:///b"])
        server.changed("tools")
        server.changed("file:///a")
        server.changed("file:///b")
        await talk.settle()
        assert told(talk, tools.id) == [changed("tools")]
        assert sorted(told(talk, both.id)) == sorted([changed("tools"), UPDATED])
        assert told(talk, other.id) == [UPDATED, UPDATED]
        talk.inbox.clear()
        await talk.cancel(both)
        server.changed("tools")
        await talk.settle()
        assert told(talk, tools.id) == [changed("tools")]
        assert told(talk, both.id) == []


@pytest.mark.parametrize("id", ["1", 1, "", -7, "日本", 2**70])
async def test_the_subscription_id_is_the_id_of_the_request(id: Any) -> None:
    server = make_server()
    async with stream_talk(server, MODERN) as talk:
        await talk.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id=id)
        assert (await talk.hear(ACKNOWLEDGED))["_meta"][ID] == id
        server.changed("tools")
        got = (await talk.hear(changed("tools")))["_meta"][ID]
        assert (got, type(got)) == (id, type(id))


@over_both
async def test_a_cancelled_subscription_ends_without_a_word_and_its_id_is_free(over: Any) -> None:
    server = make_server()
    async with over(server, MODERN) as talk:
        pending, _ = await listen(talk, toolsListChanged=True)
        await talk.cancel(pending)
        server.changed("tools")
        assert await talk.quiet()
        assert not pending.done
        again = await talk.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id=pending.id)
        await talk.hear(ACKNOWLEDGED)
        server.changed("tools")
        await talk.hear(changed("tools"))
        assert not again.done


async def test_the_id_of_an_open_subscription_is_in_flight() -> None:
    server = make_server()
    async with stream_talk(server, MODERN) as talk:
        pending, _ = await listen(talk, toolsListChanged=True)
        frame = {"jsonrpc": "2.0", "id": pending.id, "method": "subscriptions/listen", "params": {}}
        await talk.raw(frame)
        assert (await pending.error())["code"] == -32600
        server.changed("tools")
        await talk.hear(changed("tools"))


async def test_the_server_tears_subscriptions_down_with_a_cancellation_and_then_the_result() -> None:
    server = make_server()
    async with stream_talk(server, MODERN) as talk:
        first, _ = await listen(talk, toolsListChanged=True)
        second, _ = await listen(talk, resourceSubscriptions=["file:///a"])
        await talk.serving.aclose()
        await talk.closed()
        for pending in (first, second):
            result = await pending.result()
            assert result["_meta"][ID] == pending.id
            assert result["resultType"] == "complete"
        cancelled = [params["requestId"] for params in talk.heard(CANCELLED)]
        assert sorted(cancelled) == [first.id, second.id]
        sent = [frame for sender, frame in talk.ledger.frames if sender == "server"]
        for pending in (first, second):
            of_it = [
                frame for frame in sent if b'"requestId":%d' % pending.id in frame or b'"id":%d' % pending.id in frame
            ]
            assert [b'"method":"notifications/cancelled"' in frame for frame in of_it] == [True, False]


async def test_what_changed_before_the_end_is_told_before_it() -> None:
    server = make_server()
    async with stream_talk(server, MODERN) as talk:
        pending, _ = await listen(talk, toolsListChanged=True)
        server.changed("tools")
        await talk.serving.aclose()
        await talk.closed()
        methods = [message["method"] for message in talk.inbox]
        assert methods == [changed("tools"), CANCELLED]
        assert "_meta" in await pending.result()


async def test_an_open_subscription_does_not_hold_up_the_end_of_a_connection() -> None:
    server = make_server()
    async with stream_talk(server, MODERN) as talk:
        await listen(talk, toolsListChanged=True)
        await talk.stream.aclose()
        async with asyncio.timeout(3):
            await talk.serving.wait()
    server.changed("tools")


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"notifications": None},
        {"notifications": []},
        {"notifications": {"toolsListChanged": "yes"}},
        {"notifications": {"resourceSubscriptions": "file:///a"}},
        {"notifications": {"resourceSubscriptions": [5]}},
    ],
    ids=str,
)
async def test_a_malformed_filter_is_invalid_params(params: dict[str, Any]) -> None:
    async with stream_talk(make_server(), MODERN) as talk:
        answer = await talk.answer_to(
            {"jsonrpc": "2.0", "id": 9, "method": "subscriptions/listen", "params": {**params, "_meta": modern_meta()}}
        )
        assert (answer["id"], answer["error"]["code"]) == (9, -32602)
        assert await talk.quiet()


async def test_log_messages_never_come_on_a_subscription() -> None:
    server = make_server()

    @server.tool
    async def log(ctx: Context) -> str:
        ctx.log.error("x")
        return "logged"

    async with stream_talk(server, MODERN) as talk:
        pending = await talk.begin(
            "subscriptions/listen", {"notifications": {"toolsListChanged": True}}, logLevel="debug"
        )
        await talk.hear(ACKNOWLEDGED)
        await talk.text("log")
        assert await talk.quiet()
        assert not pending.done


async def test_both_eras_are_told_on_one_connection_each_in_its_way() -> None:
    server = make_server()
    async with stream_talk(server, "2025-11-25") as talk:
        pending = await talk.begin(
            "subscriptions/listen", {"notifications": {"toolsListChanged": True}}, revision=MODERN
        )
        await talk.hear(ACKNOWLEDGED)
        server.changed("tools")
        await talk.settle()
        ids = [params.get("_meta", {}).get(ID) for params in talk.heard(changed("tools"))]
        assert sorted(ids, key=str) == sorted([None, pending.id], key=str)


# --------------------------------------------------------------------------------------------------- slow subscribers


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25", MODERN])
async def test_a_client_that_stops_reading_misses_no_last_state_and_costs_bounded_memory(revision: str) -> None:
    server = make_server()
    uris = [f"file:///{number}" for number in range(300)]
    async with stream_talk(server, revision) as talk:
        if revision == MODERN:
            await listen(talk, toolsListChanged=True, resourceSubscriptions=uris)
        else:
            for uri in uris:
                await talk.result("resources/subscribe", {"uri": uri})
        talk.reads.clear()
        for _ in range(200):
            for uri in uris:
                server.changed(uri)
            server.changed("tools")
            await asyncio.sleep(0)
        talk.reads.set()
        seen: set[str] = set()
        while seen != set(uris):
            seen.add((await talk.hear(UPDATED))["uri"])
        await talk.hear(changed("tools"))
        await talk.settle()
        # 60 000 changes were made; far fewer messages were kept for a client that did not read.
        assert len(talk.ledger.frames) < 20_000
        server.changed("file:///7")
        talk.inbox.clear()
        await talk.hear(UPDATED, uri="file:///7")


async def test_a_slow_client_slows_no_other() -> None:
    server = make_server()
    async with stream_talk(server, "2025-11-25") as slow, stream_talk(server, "2025-11-25") as quick:
        for talk in (slow, quick):
            await talk.result("resources/subscribe", {"uri": "file:///a"})
        slow.reads.clear()
        for _ in range(500):
            server.changed("file:///a")
            await quick.hear(UPDATED, uri="file:///a")
        slow.reads.set()
        await slow.hear(UPDATED, uri="file:///a")
