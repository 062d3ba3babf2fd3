"""Deadlines, calls that are given up, and progress."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from modelwire import (
    RequestTimeout,
)
from tests.clock import Clock
from tests.fake_server import REVISIONS, alive, talking, text

# --------------------------------------------------------------------------------------------------- deadlines


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_call_without_an_answer_is_given_up_and_the_server_told(revision: str) -> None:
    async with talking(revision) as (client, fake):
        with pytest.raises(RequestTimeout, match=r"no answer to tools/call within 0\.01 s; nothing was heard") as late:
            await client.call("slow", timeout=0.01)
        assert late.value.method == "tools/call"
        request = await fake.expect("tools/call")
        told = await fake.expect("notifications/cancelled")
        assert told["params"] == {"requestId": request["id"], "reason": "no answer within 0.01 s"}
        await fake.result(request, text("too late"))
        await alive(client, fake)


async def test_the_deadline_of_the_client_holds_for_every_request() -> None:
    async with talking(timeout=0.01) as (client, fake):
        requests = [client.list_tools, client.ping, lambda: client.read_resource("a:b"), lambda: client.call("x")]
        requests += [lambda: client.complete("p", "a"), lambda: client.get_prompt("p"), lambda: client.request("ping")]
        requests += [lambda: client.subscribe("a:b"), lambda: client.set_log_level("info"), client.list_prompts]
        for request in requests:
            with pytest.raises(RequestTimeout):
                await request()
            sent = await fake.next()
            assert (await fake.expect("notifications/cancelled"))["params"]["requestId"] == sent["id"]


async def test_a_late_error_names_what_was_heard_meanwhile() -> None:
    clock = Clock()
    async with talking() as (client, fake):
        call = asyncio.create_task(client.call("t", on_progress=lambda *told: None))
        request = await fake.expect("tools/call")
        await fake.progress(request, 3, total=7)
        await fake.notify("notifications/tools/list_changed")
        await fake.send(b"a banner")
        await clock.advance(61)
        with pytest.raises(RequestTimeout) as late:
            await call
        words = str(late.value)
        assert "progress 3 of 7" in words
        assert "2 notifications (notifications/progress, notifications/tools/list_changed)" in words
        assert "1 unreadable message, the last one 'a banner'" in words


async def test_progress_moves_the_deadline() -> None:
    clock = Clock()
    async with talking() as (client, fake):
        call = asyncio.create_task(client.call("t", on_progress=lambda *told: None))
        request = await fake.expect("tools/call")
        for step in range(5):
            await clock.advance(50)
            await fake.progress(request, step)
        await clock.advance(50)
        await fake.result(request, text("done"))
        assert await call == "done"


async def test_progress_does_not_move_the_deadline_past_the_maximum() -> None:
    clock = Clock()
    async with talking() as (client, fake):
        call = asyncio.create_task(client.call("t", max_timeout=100, on_progress=lambda *told: None))
        request = await fake.expect("tools/call")
        for step in range(3):
            await clock.advance(40)
            await fake.progress(request, step)
        with pytest.raises(RequestTimeout, match=r"within 100 s.*progress.*Pass max_timeout= to wait longer"):
            await call
        await fake.expect("notifications/cancelled")


async def test_without_progress_the_deadline_stays() -> None:
    clock = Clock()
    async with talking() as (client, fake):
        call = asyncio.create_task(client.call("t", on_progress=lambda *told: None))
        await fake.expect("tools/call")
        await clock.advance(59)
        assert not call.done()
        await clock.advance(2)
        with pytest.raises(RequestTimeout, match="within 60 s"):
            await call


async def test_the_maximum_holds_without_any_progress() -> None:
    clock = Clock()
    async with talking() as (client, fake):
        call = asyncio.create_task(client.call_tool("t", timeout=None, max_timeout=20))
        await fake.expect("tools/call")
        await clock.advance(21)
        with pytest.raises(RequestTimeout, match=r"within 20 s.*max_timeout="):
            await call


@pytest.mark.parametrize("timeout", [None, 5000])
async def test_a_longer_timeout_of_a_call_is_not_cut_short_by_the_clients_maximum(timeout: float | None) -> None:
    clock = Clock()
    async with talking() as (client, fake):
        call = asyncio.create_task(client.call("t", timeout=timeout, on_progress=lambda *told: None))
        request = await fake.expect("tools/call")
        await clock.advance(1000)
        await fake.progress(request, 1)
        await clock.advance(3000)
        await fake.result(request, text("done"))
        assert await call == "done"


async def test_each_of_many_calls_has_its_own_deadline() -> None:
    clock = Clock()
    async with talking() as (client, fake):
        calls = {seconds: asyncio.create_task(client.call("t", timeout=seconds)) for seconds in (300, 100, 200)}
        for _ in calls:
            await fake.expect("tools/call")
        for seconds in (100, 200, 300):
            await clock.advance(90)
            assert not calls[seconds].done()
            await clock.advance(10)
            with pytest.raises(RequestTimeout, match=f"within {seconds} s"):
                await calls[seconds]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_caller_that_gives_up_has_the_server_told(revision: str) -> None:
    async with talking(revision) as (client, fake):
        call = asyncio.create_task(client.call("t"))
        request = await fake.expect("tools/call")
        call.cancel("the user pressed stop")
        with pytest.raises(asyncio.CancelledError):
            await call
        told = await fake.expect("notifications/cancelled")
        assert told["params"] == {"requestId": request["id"], "reason": "the user pressed stop"}
        await fake.result(request, text("too late"))
        await alive(client, fake)


async def test_a_timeout_of_the_callers_own_is_told_too() -> None:
    async with talking() as (client, fake):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.call("t"), 0.01)
        await fake.expect("tools/call")
        assert (await fake.expect("notifications/cancelled"))["params"]["reason"]


async def test_fifty_abandoned_calls_leave_nothing_that_waits() -> None:
    async with talking() as (client, fake):
        calls = [asyncio.create_task(client.call("t")) for _ in range(50)]
        requests = [await fake.expect("tools/call") for _ in calls]
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        told = [await fake.expect("notifications/cancelled") for _ in calls]
        assert {note["params"]["requestId"] for note in told} == {request["id"] for request in requests}
        await alive(client, fake)


# --------------------------------------------------------------------------------------------------- progress


@pytest.mark.parametrize("revision", REVISIONS)
async def test_all_progress_before_the_result_is_delivered_before_the_call_returns(revision: str) -> None:
    told: list[Any] = []
    async with talking(revision) as (client, fake):
        call = asyncio.create_task(client.call("t", on_progress=lambda *news: told.append(news)))
        request = await fake.expect("tools/call")
        await fake.progress(request, 1)
        await fake.progress(request, 2, total=4)
        await fake.progress(request, 2.5, total=4, message="nearly")
        await fake.result(request, text("x"))
        await fake.progress(request, 4)
        await call
        assert told == [(1, None, None), (2, 4, None), (2.5, 4, "nearly")]
        await alive(client, fake)
        assert len(told) == 3


async def test_async_progress_is_finished_before_the_call_returns() -> None:
    told: list[float] = []

    async def tell(done: float, total: float | None, message: str | None) -> None:
        for _ in range(5):
            await asyncio.sleep(0)
        told.append(done)

    async with talking() as (client, fake):
        call = asyncio.create_task(client.call("t", on_progress=tell))
        request = await fake.expect("tools/call")
        await fake.progress(request, 1)
        await fake.result(request, text("x"))
        await call
        assert told == [1]


async def test_a_progress_callback_may_itself_call_the_server() -> None:
    found: list[str] = []
    async with talking() as (client, fake):

        async def tell(done: float, total: float | None, message: str | None) -> None:
            found.append(await client.call("inner"))

        call = asyncio.create_task(client.call("outer", on_progress=tell))
        outer = await fake.expect("tools/call")
        await fake.progress(outer, 1)
        await fake.progress(outer, 2)
        inner = [await fake.expect("tools/call") for _ in range(2)]
        await fake.result(outer, text("x"))
        for request in inner:
            await fake.result(request, text("y"))
        assert await call == "x"
        assert found == ["y", "y"]


@pytest.mark.parametrize(
    "params",
    [
        None, {}, {"progressToken": None, "progress": 1}, {"progressToken": [1], "progress": 1}, {"progress": 1},
        {"progressToken": "TOKEN", "progress": "1"}, {"progressToken": "TOKEN"}, {"progressToken": 4711, "progress": 1},
        {"progressToken": "TOKEN", "progress": 1, "total": "2"}, {"progressToken": True, "progress": 1},
        [1, 2], {"progressToken": "STRING", "progress": 1},
    ],
    ids=str,
)  # fmt: skip
async def test_malformed_and_foreign_progress_is_dropped(params: Any) -> None:
    told: list[Any] = []
    async with talking() as (client, fake):
        call = asyncio.create_task(client.call("t", on_progress=lambda *news: told.append(news)))
        request = await fake.expect("tools/call")
        token = request["params"]["_meta"]["progressToken"]
        if isinstance(params, dict) and params.get("progressToken") in ("TOKEN", "STRING"):
            params = {**params, "progressToken": token if params["progressToken"] == "TOKEN" else str(token)}
        await fake.notify("notifications/progress", params)
        await fake.result(request, text("x"))
        assert await call == "x"
        assert told == []


async def test_progress_callbacks_that_fail_are_logged_and_cost_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def fail(*news: Any) -> None:
        raise ZeroDivisionError

    async def fail_later(*news: Any) -> None:
        raise LookupError

    async with talking() as (client, fake):
        for callback in (fail, fail_later):
            call = asyncio.create_task(client.call("t", on_progress=callback))
            request = await fake.expect("tools/call")
            await fake.progress(request, 1)
            await fake.result(request, text("x"))
            assert await call == "x"
    assert "ZeroDivisionError" in caplog.text
    assert "LookupError" in caplog.text


async def test_progress_that_nobody_asked_for_is_ignored() -> None:
    async with talking() as (client, fake):
        call = asyncio.create_task(client.call("t"))
        request = await fake.expect("tools/call")
        assert "_meta" not in request["params"]
        await fake.notify("notifications/progress", {"progressToken": request["id"], "progress": 1})
        await fake.result(request, text("x"))
        assert await call == "x"
