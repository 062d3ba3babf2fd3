"""Opening and closing as people do it: negotiation, both eras, what tutorials teach."""

from __future__ import annotations

from typing import Any

import pytest

from modelwire import Server
from tests.wire import HANDSHAKE, MODERN, every_handshake, modern_meta, opening, session_talk, stream_talk


def make_server(**options: Any) -> Server:
    server = Server("lifecycle", **options)

    @server.tool
    async def echo(value: str) -> str:
        return value

    @server.resource("file:///a")
    async def a() -> str:
        return "a"

    return server


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [(revision, revision) for revision in HANDSHAKE]
    + [("1900-01-01", "2025-11-25"), (MODERN, "2025-11-25"), ("", "2025-11-25")],
)
async def test_initialize_is_answered_with_the_same_revision_or_the_latest_of_its_era(
    wanted: str, expected: str
) -> None:
    async with session_talk(make_server(), expected, opened=False) as talk:
        assert (await talk.result("initialize", opening(wanted)))["protocolVersion"] == expected


@pytest.mark.parametrize(
    "params",
    [
        opening(None),  # type: ignore[arg-type]
        opening(20250618),  # type: ignore[arg-type]
        {"protocolVersion": "2025-06-18", "capabilities": {}},
    ],
)
async def test_initialize_with_a_missing_or_wrong_field_is_invalid_params(params: dict[str, Any]) -> None:
    async with session_talk(make_server(), "2025-06-18", opened=False) as talk:
        answer = await talk.answer_to({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
        assert answer["error"]["code"] == -32602


@pytest.mark.parametrize("over", [session_talk, stream_talk])
async def test_initialize_after_discover_is_served_since_one_process_speaks_both_eras(over: Any) -> None:
    async with over(make_server(), "2025-06-18", opened=False) as talk:
        assert (await talk.result("server/discover", revision=MODERN))["supportedVersions"] == [MODERN]
        await talk.open()
        assert await talk.text("echo", {"value": "old"}) == "old"
        assert await talk.text("echo", {"value": "new"}, revision=MODERN) == "new"


async def test_a_refused_revision_names_those_that_are_supported() -> None:
    meta = modern_meta() | {"io.modelcontextprotocol/protocolVersion": "2031-01-01"}
    async with session_talk(make_server(), MODERN, opened=False) as talk:
        answer = await talk.answer_to(
            {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}}
        )
        assert answer["error"]["code"] == -32022
        assert answer["error"]["data"]["supported"] == [MODERN]


# --------------------------------------------------------------------------------------------------- what is tolerated


@every_handshake
async def test_shutdown_is_answered_with_an_empty_result_and_ends_nothing(revision: str) -> None:
    async with stream_talk(make_server(), revision) as talk:
        assert await talk.result("shutdown") == {}
        assert await talk.text("echo", {"value": "x"}) == "x"


@every_handshake
async def test_exit_ends_the_connection(revision: str) -> None:
    async with stream_talk(make_server(), revision) as talk:
        await talk.notify("exit")
        await talk.closed()


@every_handshake
async def test_requests_accepted_before_exit_are_answered(revision: str) -> None:
    async with stream_talk(make_server(), revision) as talk:
        pending = await talk.begin_call("echo", {"value": "accepted"})
        shutdown = await talk.begin("shutdown")
        await talk.notify("exit")
        assert (await pending.result())["content"][0]["text"] == "accepted"
        assert await shutdown.result() == {}
        await talk.closed()


async def test_shutdown_and_exit_mean_nothing_on_2026_07_28() -> None:
    async with stream_talk(make_server(), MODERN) as talk:
        answer = await talk.answer_to(
            {"jsonrpc": "2.0", "id": 1, "method": "shutdown", "params": {"_meta": modern_meta()}}
        )
        assert (answer["id"], answer["error"]["code"]) == (1, -32601)
        await talk.raw({"jsonrpc": "2.0", "method": "exit"})
        assert await talk.text("echo", {"value": "x"}) == "x"


@every_handshake
async def test_a_bare_initialized_counts_as_the_notification(revision: str) -> None:
    server = make_server()
    async with stream_talk(server, revision, opened=False) as talk:
        await talk.result("initialize", opening(revision))
        await talk.notify("initialized")
        server.changed("tools")
        await talk.hear("notifications/tools/list_changed")


@pytest.mark.parametrize(
    "method", ["tools/list", "resources/list", "notifications/root", "nothing/known", "$/cancelRequest"]
)
@every_handshake
async def test_a_notification_of_no_known_kind_is_ignored(revision: str, method: str) -> None:
    async with session_talk(make_server(), revision) as talk:
        await talk.raw({"jsonrpc": "2.0", "method": method, "params": {"tools": [{"name": 1}]}})
        assert await talk.quiet()


# --------------------------------------------------------------------------------------------------- announcing lists


@every_handshake
async def test_announce_lists_sends_changed_lists_as_tutorials_do(revision: str) -> None:
    server = make_server(announce_lists=True)
    async with stream_talk(server, revision) as talk:
        assert [tool["name"] for tool in (await talk.hear("tools/list"))["tools"]] == ["echo"]
        await talk.settle()
        talk.inbox.clear()
        server.add_tool(lambda: "x", name="late")
        announced = await talk.hear("tools/list")
        assert [tool["name"] for tool in announced["tools"]] == ["echo", "late"]
        await talk.hear("notifications/tools/list_changed")
        server.add_resource("file:///b", lambda: "b", name="b")
        announced = await talk.hear("resources/list")
        assert [resource["uri"] for resource in announced["resources"]] == ["file:///a", "file:///b"]
        await talk.hear("notifications/root")
        await talk.hear("notifications/resources/list_changed")


@every_handshake
async def test_lists_are_never_announced_before_initialized(revision: str) -> None:
    server = make_server(announce_lists=True)
    async with stream_talk(server, revision, opened=False) as talk:
        await talk.result("initialize", opening(revision))
        server.changed("tools")
        server.changed("resources")
        assert await talk.quiet()


async def test_lists_are_not_announced_by_default_nor_on_2026_07_28() -> None:
    plain, loud = make_server(), make_server(announce_lists=True)
    async with stream_talk(plain, "2025-06-18") as talk:
        plain.changed("tools")
        await talk.hear("notifications/tools/list_changed")
        assert await talk.quiet()
    async with stream_talk(loud, MODERN) as talk:
        await talk.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        await talk.hear("notifications/subscriptions/acknowledged")
        loud.changed("tools")
        await talk.hear("notifications/tools/list_changed")
        assert await talk.quiet()
