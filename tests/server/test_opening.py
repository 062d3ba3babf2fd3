"""How a conversation opens, on both eras: negotiation, what each side declares, what is refused before and after."""

from __future__ import annotations

from typing import Any

import pytest

from modelwire import Context, Server, types
from tests.wire import (
    HANDSHAKE,
    MODERN,
    PREFIX,
    every_handshake,
    every_revision,
    modern_meta,
    opening,
    session_talk,
    stream_talk,
)


def full_server() -> Server:
    server = Server(
        "full",
        version="1.2.3",
        title="Full",
        description="Has everything",
        instructions="Use it well.",
        icons=[types.Icon("https://example.com/i.png")],
        website_url="https://example.com",
        extensions={"com.example/ext": {"a": 1}},
        experimental={"com.example/try": {"b": 2}},
    )

    @server.tool
    async def revision(ctx: Context) -> str:
        return ctx.peer.revision.name

    @server.tool
    async def capabilities(ctx: Context) -> str:
        return "sampling" if ctx.peer.capabilities.sampling is not None else "none"

    @server.tool
    async def name(ctx: Context) -> str:
        return ctx.peer.info.name if ctx.peer.info else ""

    @server.tool
    async def noisy(ctx: Context) -> str:
        ctx.log.debug("d")
        ctx.log.info("i")
        ctx.log.error("e")
        return "said"

    @server.resource("file:///a")
    async def a() -> str:
        return "a"

    @server.prompt
    def ask(topic: str) -> str:
        return topic

    @server.complete("ask", "topic")
    async def topics(value: str) -> list[str]:
        return [value]

    return server


# --------------------------------------------------------------------------------------------------- negotiation


@every_handshake
async def test_a_known_handshake_revision_is_answered_with_itself(revision: str) -> None:
    async with session_talk(full_server(), revision, opened=False) as talk:
        assert (await talk.open())["protocolVersion"] == revision
        assert await talk.text("revision") == revision


@pytest.mark.parametrize("wanted", ["1900-01-01", "2026-07-28", "2099-12-31", "", "DRAFT-2025", "2025-06-18 "])
async def test_any_other_revision_is_answered_with_the_latest_handshake_revision(wanted: str) -> None:
    async with session_talk(full_server(), "2025-11-25", opened=False) as talk:
        result = await talk.result("initialize", opening(wanted))
        assert result["protocolVersion"] == "2025-11-25"
        assert await talk.text("revision") == "2025-11-25"


@pytest.mark.parametrize(
    "params",
    [
        None,
        {},
        opening(None),  # type: ignore[arg-type]
        opening(20250618),  # type: ignore[arg-type]
        opening(["2025-06-18"]),  # type: ignore[arg-type]
        opening("2025-06-18", clientInfo=None),
        opening("2025-06-18", clientInfo={}),
        opening("2025-06-18", clientInfo={"name": 1, "version": "1"}),
        opening("2025-06-18", capabilities=None),
        opening("2025-06-18", capabilities=[]),
        *[
            {key: value for key, value in opening("2025-06-18").items() if key != missing}
            for missing in ("protocolVersion", "capabilities", "clientInfo")
        ],
    ],
)
async def test_a_malformed_initialize_is_invalid_params_and_opens_nothing(params: dict[str, Any] | None) -> None:
    async with session_talk(full_server(), "2025-06-18", opened=False) as talk:
        frame = {"jsonrpc": "2.0", "id": 1, "method": "initialize"} | ({} if params is None else {"params": params})
        answer = await talk.answer_to(frame)
        assert (answer["id"], answer["error"]["code"]) == (1, -32602)
        assert (await talk.error("tools/list"))["code"] == -32602
        await talk.open()
        assert await talk.text("revision") == "2025-06-18"


async def test_initialize_carrying_per_request_meta_does_not_exist() -> None:
    async with session_talk(full_server(), "2025-11-25", opened=False) as talk:
        frame = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {**opening("2025-11-25"), "_meta": modern_meta()},
        }
        answer = await talk.answer_to(frame)
        assert (answer["id"], answer["error"]["code"]) == (1, -32601)
        assert (await talk.error("tools/list"))["code"] == -32602


# --------------------------------------------------------------------------------------------------- before and after


@pytest.mark.parametrize(
    "method", ["tools/list", "tools/call", "resources/list", "prompts/list", "logging/setLevel", "server/discover"]
)
async def test_before_opening_a_request_without_meta_is_refused_naming_both_ways_to_open(method: str) -> None:
    async with session_talk(full_server(), "2025-11-25", opened=False) as talk:
        answer = await talk.answer_to({"jsonrpc": "2.0", "id": 1, "method": method})
        assert answer["error"]["code"] == -32602
        assert "initialize" in answer["error"]["message"]
        assert PREFIX + "protocolVersion" in answer["error"]["message"]


async def test_before_opening_ping_is_answered() -> None:
    async with session_talk(full_server(), "2025-11-25", opened=False) as talk:
        assert await talk.result("ping") == {}


@every_handshake
async def test_requests_are_served_as_soon_as_initialize_is_answered(revision: str) -> None:
    async with stream_talk(full_server(), revision, opened=False) as talk:
        initialize = await talk.begin("initialize", opening(revision))
        listing = await talk.begin("tools/list")  # sent before the answer, and before notifications/initialized
        assert (await initialize.result())["protocolVersion"] == revision
        assert len((await listing.result())["tools"]) == 4


@pytest.mark.parametrize("initialized", ["notifications/initialized", "initialized"])
@every_handshake
async def test_the_client_is_told_of_changes_once_it_says_initialized_bare_or_not(
    revision: str, initialized: str
) -> None:
    server = full_server()
    async with stream_talk(server, revision, opened=False) as talk:
        await talk.result("initialize", opening(revision))
        server.changed("tools")
        assert await talk.quiet()  # a ping is no sign that the client has finished opening
        await talk.notify(initialized)
        server.changed("tools")
        await talk.hear("notifications/tools/list_changed")


async def test_a_second_initialize_negotiates_anew_and_starts_levels_and_subscriptions_over() -> None:
    server = full_server()
    async with stream_talk(server, "2025-06-18") as talk:
        await talk.result("logging/setLevel", {"level": "error"})
        await talk.result("resources/subscribe", {"uri": "file:///a"})
        await talk.open()
        server.changed("file:///a")
        assert await talk.quiet()
        await talk.call("noisy")
        assert [params["data"] for params in talk.heard("notifications/message")] == ["i", "e"]


async def test_what_one_client_opened_holds_for_it_alone() -> None:
    server = full_server()
    async with session_talk(server, "2024-11-05") as one, session_talk(server, "2025-06-18", opened=False) as other:
        assert (await other.error("tools/list"))["code"] == -32602
        await other.open()
        await one.result("logging/setLevel", {"level": "emergency"})
        assert await one.text("revision") == "2024-11-05"
        assert await other.text("revision") == "2025-06-18"
        await other.call("noisy")
        assert len(other.heard("notifications/message")) == 2
        assert one.inbox == []


# --------------------------------------------------------------------------------------------------- both eras at once


async def test_both_eras_are_served_on_one_connection_at_once() -> None:
    async with stream_talk(full_server(), "2024-11-05") as talk:
        old = await talk.begin_call("revision")
        new = await talk.begin_call("revision", revision=MODERN)
        assert (await old.result())["content"][0]["text"] == "2024-11-05"
        result = await new.result()
        assert result["content"][0]["text"] == MODERN
        assert result["resultType"] == "complete"
        assert "resultType" not in await talk.result("tools/list")
        assert (await talk.result("tools/list", revision=MODERN))["ttlMs"] == 0


async def test_discover_and_then_initialize_on_one_connection_are_both_answered() -> None:
    async with session_talk(full_server(), "2025-11-25", opened=False) as talk:
        assert (await talk.result("server/discover", revision=MODERN))["supportedVersions"] == [MODERN]
        assert (await talk.open())["protocolVersion"] == "2025-11-25"
        assert await talk.text("revision") == "2025-11-25"


async def test_per_request_metadata_is_of_that_request_alone() -> None:
    async with session_talk(full_server(), MODERN, opened=False) as talk:
        assert await talk.text("capabilities", clientCapabilities={"sampling": {}}) == "sampling"
        assert await talk.text("capabilities") == "none"
        answer = await talk.answer_to(
            {"jsonrpc": "2.0", "id": "bare", "method": "tools/call", "params": {"name": "name", "arguments": {}}}
        )
        assert answer["error"]["code"] == -32602  # earlier requests opened nothing


async def test_client_info_is_optional_per_request() -> None:
    meta = modern_meta()
    del meta[PREFIX + "clientInfo"]
    async with session_talk(full_server(), MODERN, opened=False) as talk:
        frame = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "name", "_meta": meta}}
        answer = await talk.answer_to(frame)
        assert answer["result"]["content"][0]["text"] == ""


# --------------------------------------------------------------------------------------------------- refused metadata


@pytest.mark.parametrize("requested", [*HANDSHAKE, "1900-01-01", "2099-01-01", "", "2026-07-28 "])
@pytest.mark.parametrize("method", ["server/discover", "tools/list"])
async def test_a_revision_that_is_not_per_request_is_unsupported_in_meta(requested: str, method: str) -> None:
    meta = modern_meta() | {PREFIX + "protocolVersion": requested}
    async with session_talk(full_server(), MODERN, opened=False) as talk:
        answer = await talk.answer_to({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta}})
        assert answer["error"]["code"] == -32022
        assert answer["error"]["data"] == {"supported": [MODERN], "requested": requested}


@pytest.mark.parametrize(
    "meta",
    [
        {PREFIX + "protocolVersion": MODERN},
        modern_meta() | {PREFIX + "clientCapabilities": None},
        modern_meta() | {PREFIX + "clientCapabilities": []},
        modern_meta() | {PREFIX + "protocolVersion": 20260728},
        modern_meta() | {PREFIX + "protocolVersion": None},
        modern_meta() | {PREFIX + "logLevel": "loud"},
        modern_meta() | {PREFIX + "logLevel": 3},
        modern_meta() | {PREFIX + "clientInfo": {"name": "no version"}},
        modern_meta() | {"progressToken": 1.5},
        modern_meta() | {"progressToken": {}},
        [],
        "meta",
    ],
)
async def test_malformed_metadata_is_invalid_params(meta: Any) -> None:
    async with session_talk(full_server(), MODERN, opened=False) as talk:
        answer = await talk.answer_to({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}})
        assert (answer["id"], answer["error"]["code"]) == (1, -32602)
        assert len((await talk.result("tools/list"))["tools"]) == 4


# --------------------------------------------------------------------------------------------------- what is declared


@every_revision
async def test_the_server_says_who_it_is_in_the_fields_of_the_revision(revision: str) -> None:
    expected: dict[str, Any] = {"name": "full", "version": "1.2.3"}
    if revision >= "2025-06-18":
        expected["title"] = "Full"
    if revision >= "2025-11-25":
        expected |= {
            "description": "Has everything",
            "icons": [{"src": "https://example.com/i.png"}],
            "websiteUrl": "https://example.com",
        }
    async with session_talk(full_server(), revision, opened=False) as talk:
        result = await talk.open()
    info = result["_meta"][PREFIX + "serverInfo"] if revision == MODERN else result["serverInfo"]
    assert info == expected
    assert result["instructions"] == "Use it well."


@every_revision
async def test_capabilities_are_those_of_what_is_registered(revision: str) -> None:
    async with session_talk(full_server(), revision, opened=False) as talk:
        declared = (await talk.open())["capabilities"]
    expected: dict[str, Any] = {
        "logging": {},
        "tools": {"listChanged": True},
        "prompts": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
        "experimental": {"com.example/try": {"b": 2}},
    }
    if revision >= "2025-03-26":
        expected["completions"] = {}
    if revision == MODERN:
        expected["extensions"] = {"com.example/ext": {"a": 1}}
    assert declared == expected


@every_revision
async def test_a_server_with_nothing_declares_nothing_but_what_it_can_always_do(revision: str) -> None:
    async with session_talk(Server("empty"), revision, opened=False) as talk:
        result = await talk.open()
        assert result["capabilities"] == {"logging": {}}
        assert "instructions" not in result


@every_revision
async def test_features_may_be_declared_before_anything_is_registered(revision: str) -> None:
    server = Server("later", declare=["tools", "resources", "prompts", "completions"])
    async with session_talk(server, revision, opened=False) as talk:
        declared = (await talk.open())["capabilities"]
        assert {"tools", "resources", "prompts"} < set(declared)
        assert ("completions" in declared) is (revision >= "2025-03-26")
        assert (await talk.result("tools/list"))["tools"] == []


@every_revision
async def test_the_peer_is_who_the_client_said_it_is(revision: str) -> None:
    async with session_talk(full_server(), revision) as talk:
        assert await talk.text("name") == "test"


async def test_capabilities_of_a_handshake_client_hold_for_the_session() -> None:
    async with session_talk(full_server(), "2025-06-18", opened=False) as talk:
        await talk.open(capabilities={"sampling": {}, "roots": {"listChanged": True}, "unknown": {"x": 1}})
        assert await talk.text("capabilities") == "sampling"


# --------------------------------------------------------------------------------------------------- stamps


@every_revision
async def test_results_are_stamped_where_the_revision_has_stamps(revision: str) -> None:
    async with session_talk(full_server(), revision) as talk:
        cacheable = {
            "tools/list": await talk.result("tools/list"),
            "resources/list": await talk.result("resources/list"),
            "resources/templates/list": await talk.result("resources/templates/list"),
            "prompts/list": await talk.result("prompts/list"),
            "resources/read": await talk.result("resources/read", {"uri": "file:///a"}),
        }
        other = [
            await talk.call("revision"),
            await talk.result("prompts/get", {"name": "ask", "arguments": {"topic": "x"}}),
        ]
        if revision == MODERN:
            cacheable["server/discover"] = await talk.result("server/discover")
    for method, result in cacheable.items():
        expected = ("complete", 0, "private") if revision == MODERN else (None, None, None)
        assert (result.get("resultType"), result.get("ttlMs"), result.get("cacheScope")) == expected, method
    for result in other:
        assert result.get("resultType") == ("complete" if revision == MODERN else None)
        assert not {"ttlMs", "cacheScope"} & set(result)
    for result in [*cacheable.values(), *other]:
        assert (PREFIX + "serverInfo" in result.get("_meta", {})) is (revision == MODERN)


@every_handshake
async def test_ping_is_answered_with_an_empty_result(revision: str) -> None:
    async with session_talk(full_server(), revision) as talk:
        assert await talk.result("ping") == {}


@pytest.mark.parametrize(
    "method",
    ["ping", "initialize", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "tasks/get", "shutdown"],
)
async def test_what_2026_07_28_took_away_is_not_found_there(method: str) -> None:
    async with session_talk(full_server(), MODERN) as talk:
        answer = await talk.answer_to(
            {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"uri": "x", "_meta": modern_meta()}}
        )
        assert (answer["id"], answer["error"]["code"]) == (1, -32601)


@pytest.mark.parametrize(
    "method", ["server/discover", "subscriptions/listen", "tasks/get", "tasks/list", "tasks/cancel", "tasks/result"]
)
@every_handshake
async def test_what_a_handshake_revision_lacks_is_not_found_there(revision: str, method: str) -> None:
    async with session_talk(full_server(), revision) as talk:
        answer = await talk.answer_to({"jsonrpc": "2.0", "id": 99, "method": method, "params": {"taskId": "x"}})
        assert (answer["id"], answer["error"]["code"]) == (99, -32601)


@pytest.mark.parametrize(
    "method", ["sampling/createMessage", "elicitation/create", "roots/list", "nothing", "", "ping "]
)
@every_revision
async def test_what_no_client_may_send_is_not_found(revision: str, method: str) -> None:
    async with session_talk(full_server(), revision) as talk:
        params = {"_meta": modern_meta()} if revision == MODERN else {}
        answer = await talk.answer_to({"jsonrpc": "2.0", "id": 99, "method": method, "params": params})
        assert (answer["id"], answer["error"]["code"]) == (99, -32601)


# --------------------------------------------------------------------------------------------------- order


async def test_levels_and_subscriptions_take_effect_in_the_order_received() -> None:
    server = full_server()

    @server.tool
    async def touch() -> str:
        server.changed("file:///a")
        return "touched"

    async with stream_talk(server, "2025-06-18") as talk:
        await talk.begin("logging/setLevel", {"level": "error"})
        await talk.begin("resources/subscribe", {"uri": "file:///a"})
        await talk.begin_call("noisy")
        await talk.begin_call("touch")
        await talk.hear("notifications/resources/updated", uri="file:///a")
        await talk.begin("resources/unsubscribe", {"uri": "file:///a"})
        await talk.begin_call("touch")
        await talk.settle()
        assert [params["data"] for params in talk.heard("notifications/message")] == ["e"]
        assert talk.heard("notifications/resources/updated") == []
