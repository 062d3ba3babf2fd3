"""Calling a server: what goes out on each revision, what comes back, and what every kind of answer becomes."""

from __future__ import annotations

import asyncio
import datetime
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from modelwire import (
    Client,
    ConfigError,
    ConnectionLost,
    InvalidParams,
    MethodNotFound,
    PeerError,
    ProtocolViolation,
    ResourceNotFound,
    Server,
    ToolError,
    types,
)
from modelwire.protocol.structured import WRAPPED
from tests.fake_server import HANDSHAKE, MODERN, REVISIONS, alive, talking, text

META = "io.modelcontextprotocol/"


# --------------------------------------------------------------------------------------------------- what goes out


@pytest.mark.parametrize("revision", REVISIONS)
async def test_every_request_has_the_form_of_its_revision(revision: str) -> None:
    """The fake holds each frame against the official schema."""
    async with talking(revision) as (client, fake):
        hello = {"messages": [{"role": "user", "content": {"type": "text", "text": "hello"}}]}
        read = {"contents": [{"uri": "a:b", "text": "x"}], "ttlMs": 0, "cacheScope": "private"}
        await fake.answer(client.call_tool("t", {"a": [1, None, {"b": "ü"}]}), "tools/call", text("x"))
        await fake.answer(client.call_tool("t", on_progress=print), "tools/call", text("x"))
        await fake.answer(client.call_tool("t", meta={"mine": 1}), "tools/call", text("x"))
        await fake.answer(client.list_tools(), "tools/list", {"tools": []})
        await fake.answer(client.list_prompts(), "prompts/list", {"prompts": []})
        await fake.answer(client.list_resources(), "resources/list", {"resources": []})
        await fake.answer(client.list_resource_templates(), "resources/templates/list", {"resourceTemplates": []})
        await fake.answer(client.get_prompt("p", {"n": 5}), "prompts/get", hello)
        await fake.answer(client.read_resource("a:b"), "resources/read", read)
        completion = {"completion": {"values": ["Oslo"]}}
        found = await fake.answer(
            client.complete("p", "city", "Os", arguments={"country": "NO"}), "completion/complete", completion
        )
        assert found.values == ["Oslo"]
        await fake.answer(client.complete("file:///{name}", "name"), "completion/complete", completion)
        discovered = {"supportedVersions": [MODERN], "capabilities": {}, "ttlMs": 0, "cacheScope": "private"}
        await fake.answer(client.ping(), "server/discover" if revision == MODERN else "ping", discovered)


@pytest.mark.parametrize("revision", REVISIONS)
async def test_only_per_request_revisions_carry_who_asks_in_each_request(revision: str) -> None:
    async with talking(revision, name="me", version="7") as (client, fake):
        call = asyncio.create_task(client.call_tool("t"))
        request = await fake.expect("tools/call")
        meta = request["params"].get("_meta", {})
        if revision == MODERN:
            assert meta[f"{META}protocolVersion"] == MODERN
            assert meta[f"{META}clientInfo"] == {"name": "me", "version": "7"}
            assert meta[f"{META}clientCapabilities"] == {}
            assert f"{META}logLevel" not in meta
        else:
            assert meta == {}
        await fake.result(request, text("x"))
        await call


async def test_ids_never_come_again() -> None:
    async with talking() as (client, fake):
        ids: list[int] = []
        for _ in range(3):
            call = asyncio.create_task(client.call("t"))
            request = await fake.expect("tools/call")
            ids.append(request["id"])
            await fake.result(request, text("x"))
            await call
        assert len(set(ids)) == 3


@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_log_level_is_set_once_or_goes_with_each_request(revision: str) -> None:
    async with talking(revision) as (client, fake):
        setting = asyncio.create_task(client.set_log_level("warning"))
        if revision != MODERN:
            request = await fake.expect("logging/setLevel")
            assert request["params"] == {"level": "warning"}
            await fake.result(request, {})
        await setting
        call = asyncio.create_task(client.call("t"))
        request = await fake.expect("tools/call")
        level = request["params"].get("_meta", {}).get(f"{META}logLevel")
        assert level == ("warning" if revision == MODERN else None)
        await fake.result(request, text("x"))
        await call


async def test_a_client_with_on_log_asks_for_logs_where_requests_carry_the_level() -> None:
    async with talking(MODERN, on_log=print) as (client, fake):
        call = asyncio.create_task(client.call("t"))
        request = await fake.expect("tools/call")
        assert request["params"]["_meta"][f"{META}logLevel"] == "info"
        await fake.result(request, text("x"))
        await call


async def test_an_unknown_log_level_is_refused_before_anything_is_sent() -> None:
    async with talking() as (client, fake):
        with pytest.raises(ConfigError, match="unknown log level 'loud'; known are debug, info"):
            await client.set_log_level("loud")  # type: ignore[arg-type]
        assert fake.inbox == []


UNSENDABLE: dict[str, Any] = {
    "NaN": {"x": float("nan")},
    "an object": {"x": object()},
    "half a surrogate pair": {"x": "\ud800"},
    "deep inside": {"x": [{"y": {1, object()}}]},
}


@pytest.mark.parametrize("arguments", UNSENDABLE.values(), ids=UNSENDABLE)
async def test_arguments_that_cannot_be_sent_are_named_and_nothing_is_sent(arguments: Any) -> None:
    async with talking() as (client, fake):
        for attempt in (client.call_tool("t", arguments), client.get_prompt("p", arguments)):
            with pytest.raises(ConfigError, match="cannot be sent|was not sent"):
                await attempt
        for attempt in (client.request("x", arguments), client.notify("x", arguments)):
            with pytest.raises(ConfigError, match="x was not sent"):
                await attempt
        assert fake.inbox == []
        await alive(client, fake)


async def test_prompt_arguments_that_are_no_strings_are_sent_as_their_json() -> None:
    async with talking() as (client, fake):
        arguments = {"n": 5, "f": 1.5, "l": [1, "2"], "d": {"a": None}, "b": True, "z": None, "s": "5", "u": "ü"}
        call = asyncio.create_task(client.get_prompt("p", arguments))
        request = await fake.expect("prompts/get")
        assert request["params"]["arguments"] == {
            "n": "5", "f": "1.5", "l": '[1,"2"]', "d": '{"a":null}', "b": "true", "s": "5", "u": "ü",
        }  # fmt: skip
        await fake.result(request, {"messages": []})
        await call


async def test_a_method_that_the_revision_lacks_is_not_sent() -> None:
    async with talking(MODERN) as (client, fake):
        with pytest.raises(ConfigError, match="resources/subscribe does not exist in 2026-07-28"):
            await client.subscribe("a:b")
        assert fake.inbox == []


@pytest.mark.parametrize("revision", REVISIONS)
async def test_any_method_can_be_requested_and_any_notification_sent(revision: str) -> None:
    async with talking(revision, own=["acme/do", "acme/happened"]) as (client, fake):
        call = asyncio.create_task(client.request("acme/do", {"a": 1, "_meta": {"mine": 2}}))
        request = await fake.expect("acme/do")
        assert request["params"]["a"] == 1
        assert request["params"]["_meta"]["mine"] == 2
        assert (f"{META}protocolVersion" in request["params"]["_meta"]) is (revision == MODERN)
        await fake.result(request, {"unknown": [1], "resultType": "odd"})
        assert await call == {"unknown": [1], "resultType": "odd"}
        await client.notify("acme/happened", {"b": 2})
        assert (await fake.expect("acme/happened"))["params"] == {"b": 2}
        await client.notify("acme/happened")
        assert "params" not in await fake.expect("acme/happened")


async def test_a_notification_sent_just_before_the_end_still_goes_out() -> None:
    async with talking(own=["acme/bye"]) as (client, fake):
        await client.notify("acme/bye")
        await client.close()
        await fake.expect("acme/bye")


# --------------------------------------------------------------------------------------------------- what comes back


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_result_without_a_result_type_is_complete(revision: str) -> None:
    async with talking(revision) as (client, fake):
        call = asyncio.create_task(client.call("t"))
        request = await fake.expect("tools/call")
        await fake.send({"jsonrpc": "2.0", "id": request["id"], "result": text("done")})
        assert await call == "done"


async def test_an_unknown_result_type_is_a_violation_that_costs_only_its_call() -> None:
    async with talking(MODERN) as (client, fake):
        call = asyncio.create_task(client.call("t"))
        await fake.result(await fake.expect("tools/call"), {"resultType": "partial", **text("x")})
        with pytest.raises(ProtocolViolation, match="'partial'"):
            await call
        await alive(client, fake)


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_result_type_means_nothing_where_the_revision_has_none(revision: str) -> None:
    async with talking(revision) as (client, fake):
        assert await fake.answer(client.call("t"), "tools/call", {"resultType": "odd", **text("x")}) == "x"


@pytest.mark.parametrize(
    "result", [{}, {"content": 5}, {"content": [{"type": "text"}]}, {"content": [], "isError": "yes"}, 5, None, []]
)
async def test_a_result_of_the_wrong_form_is_a_violation_that_costs_only_its_call(result: Any) -> None:
    async with talking() as (client, fake):
        call = asyncio.create_task(client.call_tool("t"))
        await fake.result(await fake.expect("tools/call"), result)
        with pytest.raises(ProtocolViolation, match="the answer to tools/call is invalid"):
            await call
        await alive(client, fake)


async def test_unknown_content_and_fields_are_kept() -> None:
    async with talking() as (client, fake):
        hologram = {"type": "hologram", "depth": 3}
        result = await fake.answer(client.call_tool("t"), "tools/call", {"content": [hologram], "later": {"a": 1}})
        assert isinstance(result.content[0], types.UnknownContent)
        assert result.content[0].raw == hologram
        assert result.raw["later"] == {"a": 1}


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_failed_tool_is_a_result_or_a_tool_error(revision: str) -> None:
    async with talking(revision) as (client, fake):
        failed = {**text("the disk is full"), "isError": True}
        result = await fake.answer(client.call_tool("t"), "tools/call", failed)
        assert result.is_error
        with pytest.raises(ToolError, match="the disk is full") as caught:
            await fake.answer(client.call("t"), "tools/call", failed)
        assert caught.value.content is not None
        assert caught.value.content[0].text == "the disk is full"
        with pytest.raises(ToolError, match="said nothing"):
            await fake.answer(client.call("t"), "tools/call", {"content": [], "isError": True})


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
async def test_structured_results_are_unwrapped_only_where_they_are_marked(revision: str) -> None:
    wrapped = {"content": [], "structuredContent": {"result": [1, 2]}}
    async with talking(revision) as (client, fake):
        assert await fake.answer(client.call("t"), "tools/call", wrapped) == {"result": [1, 2]}
        marked = {**wrapped, "_meta": {WRAPPED: True}}
        assert await fake.answer(client.call("t", returns=list[int]), "tools/call", marked) == [1, 2]
        odd = {"content": [], "structuredContent": {"other": 1}, "_meta": {WRAPPED: True}}
        assert await fake.answer(client.call("t"), "tools/call", odd) == {"other": 1}


async def test_output_schemas_are_unwrapped_only_where_they_are_marked() -> None:
    schema = {"type": "object", "properties": {"result": {"type": "integer"}}, "required": ["result"]}
    tools = [
        {"name": "a", "inputSchema": {"type": "object"}, "outputSchema": schema, "_meta": {WRAPPED: True}},
        {"name": "b", "inputSchema": {"type": "object"}, "outputSchema": schema},
    ]
    async with talking() as (client, fake):
        first, second = await fake.answer(client.list_tools(), "tools/list", {"tools": tools})
        assert first.output_schema == {"type": "integer"}
        assert second.output_schema == schema


async def test_the_newest_revision_carries_any_value_as_it_is() -> None:
    async with talking(MODERN) as (client, fake):
        for value in ([1], 5, None, "x", {"result": 1}):
            result = {"content": [], "structuredContent": value}
            assert await fake.answer(client.call("t"), "tools/call", result) == value


async def test_a_date_comes_as_a_date() -> None:
    async with talking() as (client, fake):
        result = {"content": [], "structuredContent": {"at": "2026-01-02"}}
        found = await fake.answer(client.call("t", returns=dict[str, datetime.date]), "tools/call", result)
        assert found == {"at": datetime.date(2026, 1, 2)}


# --------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("code", "data", "kind"),
    [
        (-32601, None, MethodNotFound),
        (-32602, None, InvalidParams),
        (-32602, {"uri": "a:b"}, ResourceNotFound),
        (-32002, {"uri": "a:b"}, ResourceNotFound),
        (-32603, None, PeerError),
        (0, None, PeerError),
        (123456789, [1], PeerError),
    ],
)
async def test_an_error_is_the_peers_own_code_message_and_data(code: int, data: Any, kind: type[PeerError]) -> None:
    async with talking() as (client, fake):
        call = asyncio.create_task(client.read_resource("a:b"))
        await fake.error(await fake.expect("resources/read"), code, "not here", data)
        with pytest.raises(kind, match=rf"not here \({code}\)") as caught:
            await call
        assert type(caught.value) is kind
        assert (caught.value.code, caught.value.message, caught.value.data) == (code, "not here", data)
        await alive(client, fake)


async def test_one_failing_call_harms_no_other() -> None:
    async with talking() as (client, fake):
        calls = [asyncio.create_task(client.call("t", {"n": n})) for n in range(4)]
        requests = [await fake.expect("tools/call") for _ in calls]
        await fake.send({"jsonrpc": "2.0", "id": requests[1]["id"], "result": {}, "error": {}})
        await fake.error(requests[2], -32603, "broken")
        calls[0].cancel()
        await fake.result(requests[3], text("fine"))
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [asyncio.CancelledError, ProtocolViolation, PeerError, str]


async def test_answers_may_come_in_any_order() -> None:
    async with talking() as (client, fake):
        calls = [asyncio.create_task(client.call("t", {"n": n})) for n in range(5)]
        for request in reversed([await fake.expect("tools/call") for _ in calls]):
            await fake.result(request, text(str(request["params"]["arguments"]["n"])))
        assert await asyncio.gather(*calls) == ["0", "1", "2", "3", "4"]


async def test_a_raw_result_that_is_no_object_is_a_violation() -> None:
    async with talking() as (client, fake):
        for result in (5, None, [1], "x"):
            with pytest.raises(ProtocolViolation, match="must be an object"):
                await fake.answer(client.request("ping"), "ping", result)


# --------------------------------------------------------------------------------------------------- lost


async def test_every_open_call_fails_when_the_connection_ends() -> None:
    said = "before tools/call was answered; it may have run or not, and was not sent again: the server closed"
    async with talking() as (client, fake):
        calls = [asyncio.create_task(client.call("t")) for _ in range(3)]
        for _ in calls:
            await fake.expect("tools/call")
        await fake.hang_up()
        for call in calls:
            with pytest.raises(ConnectionLost, match=said):
                await call
        assert not client.connected
        with pytest.raises(ConnectionLost, match="tools/call was not sent"):
            await client.call("t")
        with pytest.raises(ConnectionLost, match="acme was not sent"):
            await client.notify("acme")


async def test_nothing_is_logged_at_error_in_an_ordinary_conversation(caplog: pytest.LogCaptureFixture) -> None:
    async with talking() as (client, fake):
        await alive(client, fake)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_server_in_this_process_that_fails_later_says_why_to_who_waits_and_who_comes() -> None:
    crashing = asyncio.Event()

    async def crash() -> None:
        await crashing.wait()
        raise RuntimeError("the database is gone")

    async def lifespan(server: Server) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            group.create_task(crash())
            yield

    server = Server("frail", version="1", lifespan=lifespan)

    @server.tool
    async def go() -> str:
        crashing.set()
        await asyncio.Event().wait()
        return "never"

    async with Client(server, reconnect=False) as client:
        for said in ("tools/call was answered; it may have run", "tools/call was not sent"):
            with pytest.raises(ConnectionLost, match=f"{said}.*'frail'.*it failed: .*") as caught:
                await client.call("go")
            assert isinstance(caught.value.__cause__, BaseExceptionGroup)
