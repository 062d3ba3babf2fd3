"""Both directions of one connection: who is answered, what is awaited, what is cancelled."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import msgspec
import pytest

from modelwire.errors import (
    ConnectionLost,
    FrameTooLarge,
    MethodNotFound,
    ProtocolViolation,
    RequestTimeout,
    ServerExited,
)
from modelwire.rpc import connection as connection_module
from modelwire.rpc.call import Call
from modelwire.rpc.connection import lost
from modelwire.rpc.observer import Observer
from tests.clock import Clock
from tests.rpc.desk import Desk, notification, request, response, route


async def echo(call: Call) -> Any:
    return {"params": msgspec.json.decode(call.params)}


async def forever(call: Call) -> Any:
    await asyncio.sleep(10_000)


# --------------------------------------------------------------------------------------------------- what we send


async def test_a_request_carries_an_id_the_method_and_the_params() -> None:
    desk = Desk()
    waiting = desk.begin("tools/call", b'{"name":"x"}')
    await asyncio.sleep(0)
    assert desk.sent == [request(1, "tools/call", {"name": "x"})]
    desk.take(response(1, {"content": []}))
    assert bytes(await waiting) == b'{"content": []}'
    waiting = desk.begin("ping")
    await asyncio.sleep(0)
    assert desk.sent[1] == request(2, "ping")
    desk.take(response(2, {}))
    await waiting


async def test_progress_is_asked_for_only_where_somebody_is_told() -> None:
    desk = Desk()
    waiting = desk.begin("a", b'{"_meta":{"mine":1}}', on_progress=lambda *news: None)
    await asyncio.sleep(0)
    assert desk.sent[0]["params"] == {"_meta": {"mine": 1, "progressToken": 1}}
    desk.take(response(1, {}))
    await waiting


async def test_the_id_is_known_before_anything_can_come_for_it() -> None:
    desk = Desk()
    entry = desk.connection.ask("tools/call", None, timeout=60)
    assert (entry.key, desk.sent[0]["id"]) == (1, 1)
    desk.take(response(1, {}))
    assert bytes(await desk.connection.answer(entry)) == b"{}"


async def test_a_request_that_another_connection_has_lost_is_sent_again_under_an_id_of_this_one() -> None:
    clock = Clock()
    lost, found = Desk(), Desk()
    found.connection.ask("ping", None, timeout=None)
    told: list[float] = []
    entry = lost.connection.ask(
        "tools/call", b"{}", timeout=60, on_progress=lambda done, total, message: told.append(done)
    )
    await clock.advance(40)
    lost.connection.end(ConnectionLost("cut"))
    with pytest.raises(ConnectionLost):
        await lost.connection.answer(entry)
    found.connection.ask_again(entry, b"{}")
    assert found.sent[-1]["id"] == found.sent[-1]["params"]["_meta"]["progressToken"] == 2
    found.take(notification("notifications/progress", {"progressToken": 2, "progress": 1}))
    assert told == [1]
    assert lost.connection.pending.next_deadline() is None
    found.take(response(2, {"a": 1}))
    assert json.loads(bytes(await found.connection.answer(entry))) == {"a": 1}


async def test_a_request_that_is_sent_again_keeps_its_deadline() -> None:
    clock = Clock()
    lost, found = Desk(), Desk()
    entry = lost.connection.ask("tools/call", None, timeout=60)
    await clock.advance(40)
    lost.connection.end(ConnectionLost("cut"))
    found.connection.ask_again(entry, None)
    waiting = asyncio.create_task(found.connection.answer(entry))
    await clock.advance(19)
    assert not waiting.done()
    await clock.advance(2)
    with pytest.raises(RequestTimeout, match="within 60 s"):
        await waiting
    assert found.sent[-1]["params"]["requestId"] == 1


async def test_nothing_is_asked_over_a_connection_that_has_ended() -> None:
    lost, found = Desk(), Desk()
    entry = lost.connection.ask("tools/call", None, timeout=60)
    for desk in (lost, found):
        desk.connection.end(ConnectionLost("cut"))
    with pytest.raises(ConnectionLost, match="tools/call was not sent: cut"):
        found.connection.ask_again(entry, None)
    with pytest.raises(ConnectionLost, match="tools/call was not sent: cut"):
        found.connection.ask("tools/call", None, timeout=60)
    assert found.frames == []
    with pytest.raises(ConnectionLost):
        await lost.connection.answer(entry)


# --------------------------------------------------------------------------------------------------- time that stops


async def test_no_deadline_passes_while_deadlines_are_stopped() -> None:
    clock = Clock()
    desk = Desk()
    waiting = desk.begin(timeout=60, max_timeout=100)
    await clock.advance(50)
    with desk.connection.deadlines_stopped():
        await clock.advance(1000)
        late = desk.begin(timeout=20)
        await clock.advance(500)
        assert not waiting.done()
        assert not late.done()
    await clock.advance(9)
    assert not waiting.done()
    await clock.advance(2)
    with pytest.raises(RequestTimeout, match="within 60 s"):
        await waiting
    await clock.advance(8)
    assert not late.done()
    await clock.advance(2)
    with pytest.raises(RequestTimeout, match="within 20 s"):
        await late


async def test_deadlines_stand_still_from_the_first_reason_to_the_end_of_the_last() -> None:
    clock = Clock()
    desk = Desk()
    waiting = desk.begin(timeout=60)
    await clock.advance(50)
    first, second = desk.connection.deadlines_stopped(), desk.connection.deadlines_stopped()
    first.__enter__()
    await clock.advance(100)
    second.__enter__()
    first.__exit__(None, None, None)
    await clock.advance(100)
    second.__exit__(None, None, None)
    await clock.advance(9)
    assert not waiting.done()
    await clock.advance(2)
    with pytest.raises(RequestTimeout, match="within 60 s"):
        await waiting


async def test_a_connection_that_ends_while_deadlines_are_stopped_leaves_no_timer() -> None:
    desk = Desk()
    waiting = desk.begin(timeout=60)
    await asyncio.sleep(0)
    with desk.connection.deadlines_stopped():
        desk.connection.end(ConnectionLost("cut"))
        with pytest.raises(ConnectionLost):
            await waiting
    assert desk.connection._timer is None or desk.connection._timer.cancelled()


# --------------------------------------------------------------------------------------------------- answers


async def test_an_error_is_raised_as_its_class() -> None:
    desk = Desk()
    waiting = desk.begin()
    await asyncio.sleep(0)
    desk.take({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no", "data": 5}})
    with pytest.raises(MethodNotFound) as caught:
        await waiting
    assert caught.value.data == 5


@pytest.mark.parametrize("cancellable", [True, False])
async def test_a_request_that_is_given_up_is_cancelled_at_the_peer_where_that_is_allowed(cancellable: bool) -> None:
    desk = Desk()
    waiting = desk.begin(cancellable=cancellable)
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    told = desk.sent[1:]
    assert [message["method"] for message in told] == (["notifications/cancelled"] if cancellable else [])
    if cancellable:
        assert told[0]["params"]["requestId"] == 1
        assert told[0]["params"]["reason"]
    desk.take(response(1, {}))
    assert len(desk.connection.pending) == 0


async def test_an_answer_and_a_cancellation_in_one_turn_tell_the_peer_nothing() -> None:
    desk = Desk()
    waiting = desk.begin()
    await asyncio.sleep(0)
    desk.take(response(1, {}))
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert len(desk.frames) == 1


@pytest.mark.parametrize("cancellable", [True, False])
async def test_a_deadline_that_passes_is_told_where_that_is_allowed(cancellable: bool) -> None:
    clock = Clock()
    desk = Desk()
    waiting = desk.begin("initialize", timeout=5, cancellable=cancellable)
    await clock.advance(6)
    with pytest.raises(RequestTimeout, match="no answer to initialize within 5 s"):
        await waiting
    assert len(desk.frames) == (2 if cancellable else 1)


async def test_one_timer_serves_all_deadlines_in_any_order() -> None:
    clock = Clock()
    desk = Desk()
    waiting = {seconds: desk.begin(timeout=seconds) for seconds in (300, 100, 200, 100)}
    waiting[None] = desk.begin(timeout=None)  # type: ignore[index]
    for seconds in (100, 200, 300):
        await clock.advance(99)
        assert not waiting[seconds].done()
        await clock.advance(1)
        with pytest.raises(RequestTimeout):
            await waiting[seconds]
    await clock.advance(1e6)
    last = waiting.pop(None)  # type: ignore[call-overload]
    assert not last.done()
    last.cancel()
    await asyncio.gather(last, return_exceptions=True)
    desk.connection.end(ConnectionLost("the end"))


async def test_a_reason_is_cut_to_a_reasonable_length_and_may_be_any_text() -> None:
    desk = Desk()
    waiting = desk.begin()
    await asyncio.sleep(0)
    waiting.cancel("\ud800" + "x" * 10_000)
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert len(desk.sent[1]["params"]["reason"]) <= 200


# --------------------------------------------------------------------------------------------------- the end


async def test_the_end_fails_what_waits_and_refuses_what_comes_after() -> None:
    desk = Desk()
    waiting = [desk.begin(), desk.begin("ping")]
    await asyncio.sleep(0)
    desk.connection.end(ServerExited("it died", exit_code=3, stderr="no space"))
    desk.connection.end(ConnectionLost("another reason, too late"))
    for each, method in zip(waiting, ("tools/call", "ping"), strict=True):
        with pytest.raises(ServerExited, match=f"before {method} was answered: it died") as caught:
            await each
        assert (caught.value.exit_code, caught.value.stderr) == (3, "no space")
    with pytest.raises(ServerExited, match="x was not sent: it died"):
        await desk.connection.request("x", None, timeout=1)
    sent = len(desk.frames)
    desk.connection.notify("x")
    assert len(desk.frames) == sent


async def test_the_end_cancels_what_is_being_answered() -> None:
    desk = Desk(route("slow", forever))
    call = desk.take(request(1, "slow"))
    running = asyncio.create_task(desk.run(call))
    await asyncio.sleep(0)
    desk.connection.end(ConnectionLost("gone"))
    await running
    assert call.cancelled
    assert desk.frames == []
    assert desk.connection.calls == {}


def test_any_reason_becomes_a_lost_connection() -> None:
    assert str(lost(OSError("no route"), "x was not sent")) == "x was not sent: no route"
    assert isinstance(lost(ServerExited("gone", exit_code=1), "x"), ServerExited)


# --------------------------------------------------------------------------------------------------- what we answer


async def test_a_request_is_answered_once_with_its_id() -> None:
    desk = Desk(route("echo", echo))
    assert await desk.answer(request("a", "echo", {"x": 1})) == response("a", {"params": {"x": 1}})
    assert desk.connection.calls == {}


async def test_an_id_that_is_open_is_refused_and_the_first_request_lives_on() -> None:
    gate = asyncio.Event()

    async def wait(call: Call) -> Any:
        await gate.wait()
        return {}

    desk = Desk(route("wait", wait))
    running = asyncio.create_task(desk.answer(request(1, "wait")))
    await asyncio.sleep(0)
    second = await desk.answer(request(1, "wait"))
    assert (second["id"], second["error"]["code"]) == (1, -32600)
    assert (await desk.answer(request("1", "nothing")))["error"]["code"] == -32601
    gate.set()
    assert await running == response(1, {})
    assert await desk.answer(request(1, "wait")) == response(1, {})


async def test_a_request_too_many_is_refused_and_the_rest_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "MAX_REQUESTS", 3)
    desk = Desk(route("slow", forever), route("echo", echo))
    calls = [desk.take(request(number, "slow")) for number in range(3)]
    refused = await desk.answer(request(9, "echo"))
    assert "3 requests are open" in refused["error"]["message"]
    calls[0].cancel()
    assert await desk.answer(request(9, "echo", {})) == response(9, {"params": {}})
    desk.connection.end(ConnectionLost("the end"))


@pytest.mark.parametrize("key", [1, "1", "", 10**30])
async def test_the_peer_may_cancel_its_request(key: Any) -> None:
    desk = Desk(route("slow", forever))
    call = desk.take(request(key, "slow"))
    running = asyncio.create_task(desk.run(call))
    await asyncio.sleep(0)
    desk.take(notification("notifications/cancelled", {"requestId": key, "reason": "bored"}))
    await running
    assert (call.cancelled, call.cancel_reason, call.open) == (True, "bored", False)
    call.notify("late")
    assert desk.frames == []
    assert desk.connection.calls == {}


@pytest.mark.parametrize(
    "params",
    [
        None, {}, {"requestId": 99}, {"requestId": "1"}, {"requestId": {}}, {"requestId": None}, {"requestId": 1.0},
        {"requestId": True}, {"requestId": [1]}, {"reason": "x"}, [1], {"requestId": 1, "reason": 5},
    ],
    ids=str,
)  # fmt: skip
async def test_an_unknown_or_malformed_cancellation_is_ignored(params: Any) -> None:
    desk = Desk(route("slow", forever))
    call = desk.take(request(1, "slow"))
    assert desk.take(notification("notifications/cancelled", params)) is None
    assert not call.cancelled
    assert await desk.answer(request(2, "nothing")) is not None
    desk.connection.end(ConnectionLost("the end"))


async def test_a_cancellation_after_the_answer_is_ignored() -> None:
    desk = Desk(route("echo", echo))
    await desk.answer(request(1, "echo", {}))
    desk.take(notification("notifications/cancelled", {"requestId": 1}))
    assert await desk.answer(request(1, "echo", {})) == response(1, {"params": {}})


async def test_requests_are_ignored_where_the_peer_must_not_send_any(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk(route("echo", echo))
    desk.connection.answers_requests = False
    assert await desk.answer(request(1, "echo", {})) is None
    assert "which its revision forbids" in caplog.text


async def test_notifications_are_handed_on_in_order_and_one_that_fails_costs_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk = Desk(route("echo", echo))
    desk.take(notification("a"))
    desk.take(notification("b", {"x": 1}))
    assert [note.method for note in desk.noticed] == ["a", "b"]

    def fail(*given: Any) -> None:
        raise ZeroDivisionError

    desk.dispatcher.notice = fail
    desk.take(notification("c"))
    assert "handling the notification c failed" in caplog.text
    assert await desk.answer(request(1, "echo", {})) is not None


# --------------------------------------------------------------------------------------------------- invalid frames


@pytest.mark.parametrize(
    ("frame", "id_", "code"),
    [
        (b"nope", None, -32700),
        (b'{"jsonrpc":"2.0","id":5,"method":"a","params":{"x":NaN}}', 5, -32700),
        (b'{"jsonrpc":"2.0","id":5,"method":7}', 5, -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"a"}', None, -32600),
        (b'{"jsonrpc":"2.0","id":5,"method":"a","result":{}}', 5, -32600),
        (b"5", None, -32600),
    ],
)
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"])
async def test_a_server_answers_what_it_cannot_read(frame: bytes, id_: Any, code: int, revision: str) -> None:
    desk = Desk(revision=revision)
    answer = await desk.answer(frame)
    assert answer["error"]["code"] == code
    if id_ is not None:
        assert answer["id"] == id_
    elif revision in ("2024-11-05", "2025-06-18"):
        assert answer["id"] is None
    else:
        assert "id" not in answer


@pytest.mark.parametrize(
    "frame",
    [
        b"nope", b"5", b"{}", b'{"jsonrpc":"2.0","id":null,"method":"a"}',
        b'{"jsonrpc":"2.0","id":9,"result":1,"error":1}',
    ],
)  # fmt: skip
async def test_a_client_answers_no_noise(frame: bytes, caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk(answers_invalid=False)
    assert await desk.answer(frame) is None
    assert "a frame was dropped" in caplog.text
    assert desk.connection.noticed() == [f"1 unreadable message, the last one {desk.connection._dropped}"]


async def test_a_client_answers_a_request_that_is_invalid_and_has_an_id() -> None:
    desk = Desk(answers_invalid=False)
    waiting = desk.begin()
    await asyncio.sleep(0)
    answer = await desk.answer(b'{"jsonrpc":"2.0","id":1,"method":7}')
    assert (answer["id"], answer["error"]["code"]) == (1, -32600)
    assert not waiting.done()  # the ids of both sides have nothing to do with each other
    desk.take(response(1, {}))
    await waiting


@pytest.mark.parametrize("answers_invalid", [True, False])
@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}',
        b'{"jsonrpc":"2.0","id":1,"error":5}',
        b'{"id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"x":Infinity}}',
        b'{"jsonrpc":"2.0","id":1,"result":"\xff"}',
    ],
)
async def test_an_answer_that_is_invalid_fails_its_request_and_is_never_answered(
    frame: bytes, answers_invalid: bool
) -> None:
    desk = Desk(answers_invalid=answers_invalid)
    waiting = desk.begin()
    await asyncio.sleep(0)
    assert desk.take(frame) is None
    with pytest.raises(ProtocolViolation, match="the answer to tools/call is invalid") as caught:
        await waiting
    assert caught.value.frame == frame


async def test_an_error_that_belongs_to_no_request_is_handed_on(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk()
    desk.take({"jsonrpc": "2.0", "error": {"code": -5, "message": "what?"}})
    assert [(error.code, error.message) for error in desk.strays] == [(-5, "what?")]
    assert "an error that belongs to no request: what? (-5)" in caplog.text


@pytest.mark.parametrize("evil", ["x\nERROR all is lost", "x\r\x1b[2Jy", "x\x9b2Jy\x85z\u2028"])
async def test_a_peer_writes_no_lines_of_its_own_into_the_log(evil: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "modelwire")
    desk = Desk()
    for frame in (
        {"jsonrpc": "2.0", "error": {"code": -5, "message": evil}},
        {"jsonrpc": "2.0", "id": evil, "result": {}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": evil, "reason": evil}},
        json.dumps({"jsonrpc": "2.0", "id": 5, evil: 1, "error": 5}, ensure_ascii=False).encode(),
        b'{"jsonrpc":"2.0","id":5,\n"ERROR":"all is lost","error":5}',
    ):
        desk.take(frame)
    said = [record.getMessage() for record in caplog.records]
    assert len(said) >= 3
    for line in said:
        assert line.isprintable(), line


async def test_late_and_foreign_answers_are_told_apart(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "modelwire")
    desk = Desk()
    waiting = desk.begin()
    await asyncio.sleep(0)
    desk.take(response(1, {}))
    await waiting
    desk.take(response(1, {}))
    desk.take({"jsonrpc": "2.0", "id": 77, "error": {"code": 1, "message": "x"}})
    assert [record.levelname for record in caplog.records] == ["DEBUG", "WARNING"]


def too_large(head: bytes) -> FrameTooLarge:
    error = FrameTooLarge(1000)
    error.frame = head
    return error


async def test_an_answer_that_is_too_large_fails_its_request_at_once_and_names_the_setting() -> None:
    desk = Desk(answers_invalid=False)
    first, second = desk.begin(), desk.begin()
    await asyncio.sleep(0)
    assert desk.connection.oversized(too_large(b'{"jsonrpc":"2.0","id":2,"result":{"content":[')) is None
    with pytest.raises(FrameTooLarge, match="raise max_message"):
        await second
    assert not first.done()
    desk.take(response(1, {}))
    await first


async def test_a_request_that_is_too_large_is_refused_with_its_id() -> None:
    desk = Desk()
    refusal = desk.connection.oversized(too_large(b'{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{'))
    assert refusal is not None
    answer = json.loads(refusal)
    assert (answer["id"], answer["error"]["code"]) == ("x", -32600)
    assert "max_message" in answer["error"]["message"]
    assert "id" not in json.loads(desk.connection.oversized(too_large(b"xxxx")) or b"")


# --------------------------------------------------------------------------------------------------- batches


async def test_a_batch_gets_one_array_back() -> None:
    desk = Desk(route("echo", echo), revision="2025-03-26")
    answers = await desk.answer(
        [request(1, "echo", {"a": 1}), notification("n"), request(2, "nothing"), 5, request(3, "initialize", {})]
    )
    found = {answer.get("id"): answer for answer in answers}
    assert found[1] == response(1, {"params": {"a": 1}})
    assert found[2]["error"]["code"] == -32601
    assert found[3]["error"]["code"] == found[None]["error"]["code"] == -32600
    assert len(answers) == 4
    assert [note.method for note in desk.noticed] == ["n"]
    assert desk.frames == []


async def test_a_batch_without_anything_to_answer_gets_silence() -> None:
    desk = Desk(revision="2025-03-26")
    waiting = desk.begin()
    await asyncio.sleep(0)
    assert await desk.answer([notification("n"), response(1, {})]) is None
    await waiting


async def test_an_empty_batch_is_one_error() -> None:
    answer = await Desk(revision="2025-03-26").answer([])
    assert isinstance(answer, dict)
    assert answer["error"]["code"] == -32600


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28", None])
async def test_a_batch_is_refused_where_the_revision_has_none(revision: str | None) -> None:
    desk = Desk(route("echo", echo), revision=revision)
    waiting = desk.begin()
    await asyncio.sleep(0)
    answer = await desk.answer([request(1, "echo"), response(1, {})])
    assert answer["error"]["code"] == -32600
    assert "batches exist only in revision 2025-03-26" in answer["error"]["message"]
    with pytest.raises(ProtocolViolation, match="batches exist only"):
        await waiting
    assert await desk.answer([response(1, {})]) is None


# --------------------------------------------------------------------------------------------------- callbacks


async def test_progress_is_told_in_order_until_the_answer() -> None:
    told: list[Any] = []
    desk = Desk()
    waiting = desk.begin(on_progress=lambda *news: told.append(news))
    await asyncio.sleep(0)
    for progress in (1, 2.5):
        desk.take(notification("notifications/progress", {"progressToken": 1, "progress": progress, "message": "m"}))
    desk.take(response(1, {}))
    desk.take(notification("notifications/progress", {"progressToken": 1, "progress": 3}))
    await waiting
    assert told == [(1, None, "m"), (2.5, None, "m")]


async def test_a_request_waits_for_its_own_async_progress_and_for_no_other_callback() -> None:
    gate = asyncio.Event()
    told: list[str] = []

    async def tell(*news: Any) -> None:
        await asyncio.sleep(0)
        told.append("progress")

    desk = Desk()
    stuck = desk.connection.follow(gate.wait())
    waiting = desk.begin(on_progress=tell)
    await asyncio.sleep(0)
    desk.take(notification("notifications/progress", {"progressToken": 1, "progress": 1}))
    desk.take(response(1, {}))
    await waiting
    assert told == ["progress"]
    assert not stuck.done()
    gate.set()
    await stuck


async def test_callbacks_at_the_end_get_their_time_and_are_then_cancelled() -> None:
    desk = Desk()
    gate = asyncio.Event()
    quick, stuck, spared = (desk.connection.follow(each) for each in (asyncio.sleep(0), gate.wait(), gate.wait()))
    await desk.connection.callbacks.settle(0.01, {spared})
    assert quick.done()
    assert stuck.cancelled()
    assert not spared.done()
    gate.set()
    await spared
    await desk.connection.callbacks.settle(1000)


async def test_observers_see_each_frame_before_it_is_handled_or_sent() -> None:
    seen: list[Any] = []

    class Watching(Observer):
        def frame(self, direction: str, frame: bytes) -> None:
            seen.append((direction, json.loads(frame).get("id"), len(desk.frames)))

    desk = Desk(route("echo", echo), observers=[Watching()])
    await desk.answer(request(5, "echo", {}))
    assert seen == [("in", 5, 0), ("out", 5, 0)]


async def test_whoever_drives_the_connection_is_told_to_stop() -> None:
    desk = Desk()
    desk.connection.stop()
    stopped: list[bool] = []
    desk.connection.on_stop = lambda: stopped.append(True)
    desk.connection.stop()
    assert stopped == [True]
