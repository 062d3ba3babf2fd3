"""What a peer may have us keep: large requests and async callbacks are bounded, and both are let go of."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from modelwire.rpc import bounds
from modelwire.rpc import connection as connection_module
from modelwire.rpc.call import Call
from tests.clock import Clock
from tests.rpc.desk import Desk, notification, request, response, route


async def nothing(call: Call) -> Any:
    return {}


@pytest.fixture
def tight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "LARGE", 1000)
    monkeypatch.setattr(bounds, "MAX_OPEN", 3000)


def large(id_: Any) -> dict[str, Any]:
    return request(id_, "nothing", {"text": "x" * 1000})


@pytest.mark.usefixtures("tight")
async def test_large_requests_are_refused_while_too_many_bytes_of_them_are_open() -> None:
    desk = Desk(route("nothing", nothing))
    calls = [desk.take(large(key)) for key in range(3)]
    refusal = desk.take(large(3))
    assert b'"id":3' in refusal
    assert b'"code":429' in refusal
    assert isinstance(desk.take(request(4, "nothing")), Call), "a small one costs little"
    await desk.run(calls[0])
    assert await desk.answer(large(5)) == response(5, {})


@pytest.mark.usefixtures("tight")
async def test_a_cancelled_request_counts_no_more() -> None:
    desk = Desk(route("nothing", nothing))
    for key in range(3):
        desk.take(large(key))
    desk.take(notification("notifications/cancelled", {"requestId": 1}))
    assert await desk.answer(large(5)) == response(5, {})


@pytest.mark.usefixtures("tight")
async def test_a_large_batch_counts_while_any_of_it_is_open() -> None:
    desk = Desk(route("nothing", nothing), revision="2025-03-26")
    batch = desk.take([request(key, "nothing", {"text": "x" * 500}) for key in range(8)])
    assert b'"code":429' in desk.take(large(10))
    for call in batch.calls[1:]:
        await desk.run(call)
    assert b'"code":429' in desk.take([large(11)])
    await desk.run(batch.calls[0])
    assert await desk.answer(large(12)) == response(12, {})


async def test_callbacks_are_bounded_by_their_number_and_by_what_they_were_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(bounds, "MAX_CALLBACKS", 3)
    monkeypatch.setattr(bounds, "MAX_HEARD", 1000)
    gate = asyncio.Event()
    told: list[float] = []

    async def tell(done: float, *more: Any) -> None:
        told.append(done)
        await gate.wait()

    desk = Desk()
    waiting = desk.begin(on_progress=tell)
    await asyncio.sleep(0)
    for done in range(1, 6):
        desk.take(notification("notifications/progress", {"progressToken": 1, "progress": done}))
    await Clock().turn()
    assert told == [1, 2, 3]
    assert [record.levelno for record in caplog.records if "too many callbacks" in record.message] == [logging.WARNING]
    gate.set()
    await Clock().turn()
    gate.clear()
    for done in range(6, 9):
        news = {"progressToken": 1, "progress": done, "message": "x" * 2000}
        desk.take(notification("notifications/progress", news))
    await Clock().turn()
    assert told == [1, 2, 3, 6]
    gate.set()
    desk.take(response(1, {}))
    await waiting
    assert len(desk.connection.callbacks) == 0
    assert not desk.connection.callbacks.full


async def test_of_a_notification_only_the_beginning_of_its_name_is_kept() -> None:
    desk = Desk()
    desk.take(notification("x" * 100_000))
    assert [len(name) for name in desk.connection.heard] == [100]
