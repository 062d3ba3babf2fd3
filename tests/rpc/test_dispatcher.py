"""Request to response: admission, one decode, the handler, one encode; and whatever a handler does is an answer."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from modelwire.errors import NotFound, RpcError
from modelwire.protocol import types as t
from modelwire.protocol.methods import METHODS
from modelwire.protocol.revisions import REVISIONS, by_name
from modelwire.rpc.call import Call
from modelwire.rpc.dispatcher import Route, error_frame
from tests.rpc.desk import Desk, request, response, route

MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}


def raising(error: BaseException) -> Any:
    async def handle(call: Call) -> Any:
        raise error

    return handle


def returning(result: Any) -> Any:
    async def handle(call: Call) -> Any:
        return result

    return handle


# --------------------------------------------------------------------------------------------------- admission


async def test_an_unknown_method_is_named() -> None:
    answer = await Desk().answer(request(1, "nothing"))
    assert answer["error"] == {"code": -32601, "message": "Method not found: nothing"}


@pytest.mark.parametrize("revision", [revision.name for revision in REVISIONS])
async def test_a_method_exists_only_in_its_revisions(revision: str) -> None:
    desk = Desk(route("new", returning({}), since="2025-06-18", until="2025-11-25"), revision=revision)
    answer = await desk.answer(request(1, "new", {"_meta": META} if revision == MODERN else None))
    if revision in ("2025-06-18", "2025-11-25"):
        assert answer == response(1, {})
    else:
        assert answer["error"]["code"] == -32601
        assert f"does not exist in {revision}" in answer["error"]["message"]


async def test_a_method_of_another_revision_is_not_found_whatever_its_params() -> None:
    set_level = Route(METHODS["logging/setLevel"], returning({}), t.SetLevelRequestParams)
    answer = await Desk(set_level).answer(request(1, "logging/setLevel", {"level": 5, "_meta": META}))
    assert answer["error"]["code"] == -32601


async def test_params_are_decoded_once_into_their_type() -> None:
    seen: list[Any] = []

    async def handle(call: Call) -> Any:
        seen.append(call.params)
        return {}

    desk = Desk(Route(METHODS["tools/call"], handle, t.CallToolRequestParams))
    await desk.answer(request(1, "tools/call", {"name": "x", "arguments": {"a": 1}, "later": 5}))
    assert seen[0].name == "x"
    assert msgspec.json.decode(seen[0].arguments) == {"a": 1}


async def test_params_without_a_type_stay_raw_once_they_are_an_object() -> None:
    seen: list[Any] = []

    async def handle(call: Call) -> Any:
        seen.append(call.params)
        return {}

    desk = Desk(route("x", handle))
    await desk.answer(request(1, "x", {"a": 1}))
    await desk.answer(request(2, "x"))
    assert seen == [Raw(b'{"a": 1}'), Raw(b"{}")]
    assert (await desk.answer(request(3, "x", [1])))["error"]["code"] == -32602


@pytest.mark.parametrize("params", [{}, {"name": 5}, {"name": None}, [], {"name": "x", "_meta": 7}])
async def test_params_of_the_wrong_form_are_refused_with_words(params: Any) -> None:
    desk = Desk(Route(METHODS["tools/call"], returning({}), t.CallToolRequestParams))
    answer = await desk.answer(request(1, "tools/call", params))
    assert answer["error"]["code"] == -32602
    assert "params" in answer["error"]["message"]


async def test_before_the_opening_only_immediate_refusals_come() -> None:
    desk = Desk(route("x", returning({})), route("ping", lambda call: {}, immediate=True), revision=None)
    assert (await desk.answer(request(1, "x")))["error"]["code"] == -32602
    assert await desk.answer(request(2, "ping")) == response(2, {})


async def test_an_immediate_route_answers_in_the_order_of_arrival() -> None:
    desk = Desk(route("ping", lambda call: {}, immediate=True))
    assert isinstance(desk.take(request(1, "ping")), bytes)


@pytest.mark.parametrize("error", [ZeroDivisionError(), NotFound("x", uri="a:b"), RpcError(-32055, "x")])
async def test_an_immediate_route_that_fails_answers_too(error: Exception) -> None:
    def handle(call: Call) -> Any:
        raise error

    answer = await Desk(route("now", handle, immediate=True)).answer(request(1, "now"))
    assert answer["error"]["code"] == (-32002 if isinstance(error, NotFound) else -32603)


async def test_the_peer_of_a_per_request_message_comes_from_its_meta() -> None:
    seen: list[Call] = []

    async def handle(call: Call) -> Any:
        seen.append(call)
        return {}

    desk = Desk(route("x", handle), revision=MODERN)
    for level, token in (("info", 5), ("error", "t"), ("info", 5)):
        meta = {**META, "io.modelcontextprotocol/logLevel": level, "progressToken": token}
        await desk.answer(request(1, "x", {"_meta": meta}))
    assert [call.peer.log_level for call in seen] == ["info", "error", "info"]
    assert [call.progress_token for call in seen] == [b"5", b'"t"', b"5"]
    assert seen[0].peer.revision is by_name(MODERN)


async def test_what_is_remembered_of_meta_is_bounded() -> None:
    desk = Desk(route("x", returning({})))
    for number in range(500):
        await desk.answer(request(number, "x", {"_meta": {"progressToken": number}}))
    await desk.answer(request("big", "x", {"_meta": {"progressToken": 1, "big": "x" * 100_000}}))
    assert len(desk.dispatcher._metas) <= 128
    assert max(map(len, desk.dispatcher._metas)) <= 4096


@pytest.mark.parametrize("token", [None, 1.5, True, {}, []])
async def test_an_odd_progress_token_is_refused(token: Any) -> None:
    answer = await Desk(route("x", returning({}))).answer(request(1, "x", {"_meta": {"progressToken": token}}))
    if token is not None:
        assert answer["error"]["code"] == -32602


# --------------------------------------------------------------------------------------------------- results


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (None, {}),
        ({"a": 1}, {"a": 1}),
        (b'{"ready":true}', {"ready": True}),
        (t.Result(), {}),
        (t.CallToolResult([t.TextContent("x")]), {"content": [{"type": "text", "text": "x"}]}),
    ],
)
async def test_a_result_may_have_any_of_these_forms(result: Any, expected: Any) -> None:
    assert await Desk(route("x", returning(result))).answer(request(1, "x")) == response(1, expected)


async def test_results_are_stamped_where_the_revision_has_it() -> None:
    answer = await Desk(route("x", returning({"a": 1})), revision=MODERN).answer(request(1, "x", {"_meta": META}))
    stamp = {"io.modelcontextprotocol/serverInfo": {"name": "desk", "version": "1"}}
    assert answer["result"] == {"a": 1, "resultType": "complete", "_meta": stamp}


# --------------------------------------------------------------------------------------------------- failures


UNWRITABLE: dict[str, Any] = {
    "NaN": {"x": float("nan")},
    "an object": {"x": object()},
    "half a surrogate pair": {"x": "\ud800"},
    "something in a set": {"x": {1, object()}},
    "a number": 5,
    "a list": [1],
    "a text": "text",
}


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
@pytest.mark.parametrize("result", UNWRITABLE.values(), ids=UNWRITABLE)
async def test_a_result_that_cannot_be_written_is_an_internal_error(
    result: Any, revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk(route("x", returning(result)), revision=revision)
    answer = await desk.answer(request(1, "x", {"_meta": META} if revision == MODERN else None))
    assert answer["error"]["code"] == -32603
    assert "x failed" in caplog.text
    assert await desk.answer(request(2, "nothing")) is not None


CRASHES = [ZeroDivisionError("secret"), SystemExit(3), GeneratorExit(), MemoryError(), RecursionError()]


@pytest.mark.parametrize("error", CRASHES, ids=repr)
async def test_a_crash_gives_a_short_message_and_the_log_the_traceback(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await Desk(route("x", raising(error))).answer(request(1, "x"))
    assert answer["error"]["code"] == -32603
    assert "secret" not in json.dumps(answer)
    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [type(error)]


async def test_a_stray_cancellation_is_an_answer_and_not_the_end() -> None:
    answer = await Desk(route("x", raising(asyncio.CancelledError()))).answer(request(1, "x"))
    assert answer["error"] == {"code": -32603, "message": "x was cancelled from inside"}


async def test_the_peers_cancellation_is_no_answer() -> None:
    started = asyncio.Event()

    async def wait(call: Call) -> Any:
        started.set()
        await asyncio.sleep(1000)

    desk = Desk(route("x", wait))
    call = desk.take(request(1, "x"))
    running = asyncio.create_task(desk.run(call))
    await started.wait()
    call.cancel("bored")
    await running
    assert call.task is not None
    assert call.task.cancelled()
    assert desk.frames == []


@pytest.mark.parametrize("swallowed", [True, False])
async def test_a_handler_that_ends_otherwise_after_a_cancellation_sends_nothing(swallowed: bool) -> None:
    started = asyncio.Event()

    async def wait(call: Call) -> Any:
        started.set()
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            if not swallowed:
                raise ZeroDivisionError from None
        return {}

    desk = Desk(route("x", wait))
    call = desk.take(request(1, "x"))
    running = asyncio.create_task(desk.run(call))
    await started.wait()
    call.cancel()
    await running
    assert desk.frames == []


@pytest.mark.parametrize(
    ("error", "revision", "code"),
    [
        (RpcError(77, "mine", {"a": 1}), "2025-11-25", 77),
        (NotFound("gone", uri="a:b"), "2025-11-25", -32002),
        (NotFound("gone"), "2025-11-25", -32602),
        (RpcError(-32050, "reserved"), "2025-11-25", -32603),
        (RpcError(-32022, "x"), "2025-11-25", -32603),
    ],
)
async def test_an_error_that_is_meant_for_the_peer_reaches_it(error: RpcError, revision: str, code: int) -> None:
    answer = await Desk(route("x", raising(error)), revision=revision).answer(request(1, "x"))
    assert answer["error"]["code"] == code
    assert answer["error"]["message"] == error.message
    assert answer["error"].get("data") == error.data


def test_data_that_cannot_be_written_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    frame = error_frame(b"1", RpcError(5, "x", {"a": object()}), None)
    assert json.loads(frame)["error"] == {"code": 5, "message": "x"}
    assert "the data of an error could not be written" in caplog.text


@pytest.mark.parametrize("revision", REVISIONS, ids=str)
def test_an_error_without_an_id_has_the_form_of_its_revision(revision: Any) -> None:
    message = json.loads(error_frame(None, RpcError(5, "x"), revision))
    assert message.get("id", "absent") == (None if revision.null_error_id else "absent")


def test_nothing_reserved_is_logged_where_nothing_is_changed(caplog: pytest.LogCaptureFixture) -> None:
    error_frame(b"1", RpcError(5, "x"), REVISIONS[0])
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
