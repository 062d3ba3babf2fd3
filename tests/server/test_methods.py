"""`server.method`: methods and notifications of the user's own, and standard ones answered in another way."""

from __future__ import annotations

import asyncio
import json
import math
import threading
from typing import Any

import pytest

from modelwire import Context, RpcError, Server
from tests.wire import MODERN, every_handshake, every_revision, modern_meta, session_talk, stream_talk

OWN = "com.example/own"


def server_with(function: Any, name: str = OWN) -> Server:
    server = Server("methods")
    server.method(name)(function)
    return server


@every_revision
async def test_a_method_of_the_users_own_is_answered(revision: str) -> None:
    async def own(params: dict[str, Any], ctx: Context) -> dict[str, Any]:
        return {"got": params["a"], "method": ctx.method, "revision": str(ctx.peer.revision)}

    async with session_talk(server_with(own), revision, own=[OWN]) as talk:
        result = await talk.result(OWN, {"a": [1, None, {"b": "日本"}]})
    assert result["got"] == [1, None, {"b": "日本"}]
    assert (result["method"], result["revision"]) == (OWN, revision)
    assert result.get("resultType") == ("complete" if revision == MODERN else None)


@pytest.mark.parametrize("kind", ["none", "params", "both", "sync"])
async def test_the_function_takes_as_much_as_it_likes(kind: str) -> None:
    async def none() -> dict[str, Any]:
        return {"kind": "none"}

    async def params(params: dict[str, Any]) -> dict[str, Any]:
        return {"kind": "params", **params}

    async def both(params: dict[str, Any], ctx: Context) -> dict[str, Any]:
        return {"kind": "both", "id": ctx.request_id, **params}

    def sync(params: dict[str, Any]) -> dict[str, Any]:
        return {"kind": "sync", **params}

    function = {"none": none, "params": params, "both": both, "sync": sync}[kind]
    async with session_talk(server_with(function), "2025-11-25", own=[OWN]) as talk:
        result = await talk.result(OWN, {"a": 1})
        assert result["kind"] == kind
        assert await talk.result(OWN) is not None  # params may be left out


async def test_the_function_stays_a_plain_function() -> None:
    server = Server("s")

    @server.method(OWN)
    async def own(params: dict[str, Any]) -> dict[str, Any]:
        return params

    assert await own({"a": 1}) == {"a": 1}


@every_revision
async def test_it_may_use_its_context(revision: str) -> None:
    async def own(params: dict[str, Any], ctx: Context) -> dict[str, Any]:
        ctx.progress(1, 2)
        return {}

    async with session_talk(server_with(own), revision, own=[OWN]) as talk:
        await talk.result(OWN, {}, progressToken="t")
        await talk.hear("notifications/progress", progressToken="t", progress=1)


@pytest.mark.parametrize(
    "fault", [ValueError("secret"), SystemExit(3), asyncio.CancelledError(), BaseException("secret")], ids=repr
)
@every_revision
async def test_a_crash_is_an_internal_error_of_its_own_request(revision: str, fault: BaseException) -> None:
    async def own() -> dict[str, Any]:
        raise fault

    async with stream_talk(server_with(own), revision, own=[OWN]) as talk:
        error = await talk.error(OWN)
        assert error["code"] == -32603
        assert "secret" not in json.dumps(error)
        assert await talk.quiet()


async def test_it_may_answer_with_an_error_of_its_own() -> None:
    async def own() -> dict[str, Any]:
        raise RpcError(1234, "mine", [1])

    async with session_talk(server_with(own), "2025-11-25", own=[OWN]) as talk:
        assert await talk.error(OWN) == {"code": 1234, "message": "mine", "data": [1]}


@pytest.mark.parametrize(
    "value", [{"n": math.nan}, {"o": object()}, [1], "text", 5], ids=["nan", "object", "list", "text", "number"]
)
@every_revision
async def test_a_result_that_is_no_object_of_json_costs_its_own_request(revision: str, value: Any) -> None:
    async def own() -> Any:
        return value

    async with session_talk(server_with(own), revision, own=[OWN]) as talk:
        answer = await talk.request(OWN)
        assert "result" not in answer or isinstance(answer["result"], dict)
        assert await talk.quiet()


@every_revision
async def test_no_result_is_an_empty_one(revision: str) -> None:
    async def own() -> None:
        return None

    async with session_talk(server_with(own), revision, own=[OWN]) as talk:
        assert not set(await talk.result(OWN)) - {"resultType", "_meta"}


@every_revision
async def test_it_is_cancelled_like_any_other(revision: str) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def own() -> dict[str, Any]:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return {}

    async with stream_talk(server_with(own), revision, own=[OWN]) as talk:
        pending = await talk.begin(OWN)
        await asyncio.wait_for(started.wait(), 5)
        await talk.cancel(pending)
        await asyncio.wait_for(ended.wait(), 5)
        assert await talk.quiet()
        assert not pending.done


@pytest.mark.parametrize("over", [session_talk, stream_talk])
@every_revision
async def test_a_notification_of_the_users_own_is_handed_over_and_not_answered(revision: str, over: Any) -> None:
    got: asyncio.Queue[Any] = asyncio.Queue()
    name = "notifications/com.example/own"

    async def own(params: dict[str, Any]) -> None:
        await got.put(params)

    async with over(server_with(own, name), revision, own=[name]) as talk:
        await talk.notify(name, {"a": 1})
        assert await asyncio.wait_for(got.get(), 5) == {"a": 1}
        await talk.notify(name)
        assert await asyncio.wait_for(got.get(), 5) == {}
        assert await talk.quiet()


@every_revision
async def test_a_crash_in_a_notification_is_logged_and_goes_no_further(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    name = "notifications/com.example/own"

    async def own(params: dict[str, Any]) -> None:
        raise SystemExit("secret")

    async with stream_talk(server_with(own, name), revision, own=[name]) as talk:
        await talk.notify(name, {"a": 1})
        assert await talk.quiet()
    assert caplog.records


@every_handshake
async def test_a_standard_method_may_be_answered_in_another_way(revision: str) -> None:
    server = Server("s")
    server.add_tool(lambda: "x", name="real")

    @server.method("tools/list")
    async def tools(params: dict[str, Any]) -> dict[str, Any]:
        return {"tools": [{"name": "mine", "inputSchema": {"type": "object"}}]}

    async with session_talk(server, revision) as talk:
        assert [tool["name"] for tool in (await talk.result("tools/list"))["tools"]] == ["mine"]


@every_revision
async def test_a_standard_method_that_the_server_lacks_may_be_added(revision: str) -> None:
    server = Server("s")

    @server.method("completion/complete")
    async def complete(params: dict[str, Any]) -> dict[str, Any]:
        return {"completion": {"values": [params["argument"]["value"] + "!"]}}

    async with session_talk(server, revision) as talk:
        params = {"ref": {"type": "ref/prompt", "name": "any"}, "argument": {"name": "a", "value": "x"}}
        assert (await talk.result("completion/complete", params))["completion"]["values"] == ["x!"]


async def test_before_opening_it_is_refused_like_any_other() -> None:
    async def own() -> dict[str, Any]:
        return {}

    async with session_talk(server_with(own), "2025-11-25", own=[OWN], opened=False) as talk:
        assert (await talk.error(OWN))["code"] == -32602
        answer = await talk.answer_to({"jsonrpc": "2.0", "id": 5, "method": OWN, "params": {"_meta": modern_meta()}})
        assert "result" in answer


async def test_sync_functions_do_not_block_the_loop() -> None:
    gate = threading.Event()

    def own() -> dict[str, Any]:
        gate.wait(10)
        return {}

    async with stream_talk(server_with(own), "2025-11-25", own=[OWN]) as talk:
        pending = await talk.begin(OWN)
        await talk.settle()
        assert not pending.done
        gate.set()
        await pending.result()
