"""How the functions that users register are called, one by one and under a timeout."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from modelwire import Context, Server
from modelwire.server.functions import Expired, run_sync, within
from modelwire.server.workers import WorkerPool
from tests.wire import session_talk, stream_talk


async def test_within_gives_the_result_of_what_is_quick_enough() -> None:
    async def quick() -> int:
        return 5

    assert await within(60, quick()) == 5


async def test_within_ends_what_is_too_slow() -> None:
    ended = False

    async def slow() -> None:
        nonlocal ended
        try:
            await asyncio.Event().wait()
        finally:
            ended = True

    with pytest.raises(Expired, match=r"0\.01 s"):
        await within(0.01, slow())
    assert ended


async def test_a_timeout_of_the_functions_own_is_not_taken_for_ours() -> None:
    async def own() -> None:
        raise TimeoutError("of the database")

    with pytest.raises(TimeoutError, match="database") as caught:
        await within(60, own())
    assert not isinstance(caught.value, Expired)


async def test_a_cancellation_from_outside_passes_through() -> None:
    task = asyncio.create_task(within(60, asyncio.Event().wait()))
    await asyncio.sleep(0)
    task.cancel("outside")
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_sync_function_runs_here_or_in_a_thread() -> None:
    pool = WorkerPool(1)
    assert await run_sync(threading.get_ident, None) == threading.get_ident()
    assert await run_sync(threading.get_ident, pool) != threading.get_ident()


@pytest.mark.parametrize("error", [StopIteration("x"), GeneratorExit()])
@pytest.mark.parametrize("threaded", [False, True])
async def test_errors_that_a_future_cannot_carry_become_ones_that_it_can(error: BaseException, threaded: bool) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(RuntimeError, match=type(error).__name__):
        await run_sync(fail, WorkerPool(1) if threaded else None)


async def test_a_generator_is_closed_when_its_call_fails() -> None:
    closed = threading.Event()
    server = Server("s")

    @server.tool
    def items() -> Iterator[int]:
        try:
            yield 1
            raise ValueError("in the middle")
        finally:
            closed.set()

    async with session_talk(server, "2025-11-25") as talk:
        assert (await talk.call("items"))["isError"] is True
    assert closed.is_set()


async def test_calls_run_at_once_and_each_has_its_own_context() -> None:
    server = Server("s")
    barrier = asyncio.Barrier(3)

    @server.tool
    async def meet(ctx: Context) -> str:
        await barrier.wait()
        return str(ctx.request_id)

    async with stream_talk(server, "2025-11-25") as talk:
        calls = [await talk.begin_call("meet", id=f"call {number}") for number in range(3)]
        assert [(await call.result())["content"][0]["text"] for call in calls] == ["call 0", "call 1", "call 2"]


async def test_mutable_defaults_are_pythons_own() -> None:
    server = Server("s")

    @server.tool
    def keep(items: list[int] = []) -> str:  # noqa: B006
        items.append(1)
        return str(len(items))

    async with session_talk(server, "2025-11-25") as talk:
        assert [await talk.text("keep") for _ in range(2)] == ["1", "2"]
        assert await talk.text("keep", {"items": [5]}) == "2"


async def test_a_function_may_call_back_into_its_own_server() -> None:
    server = Server("s")

    @server.tool
    async def grow() -> str:
        def added() -> str:
            return "added"

        server.add_tool(added)
        return "grown"

    async with stream_talk(server, "2025-11-25") as talk:
        assert await talk.text("grow") == "grown"
        await talk.hear("notifications/tools/list_changed")
        assert await talk.text("added") == "added"
        result: Any = await talk.call("grow")
        assert result["isError"] is True  # the name is taken by now
