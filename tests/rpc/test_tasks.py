"""Each call runs inside a task of its own from beginning to end, and none sees what another left behind."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any

import pytest

from modelwire import Client, Context, Server

variable: ContextVar[str] = ContextVar("variable", default="clean")


def watching() -> tuple[Server, list[Any]]:
    """A server whose tools note the task that they run in."""
    server = Server("s")
    tasks: list[Any] = []

    @server.tool
    async def quick() -> str:
        tasks.append(asyncio.current_task())
        return "quick"

    @server.tool
    async def slow() -> str:
        before = asyncio.current_task()
        await asyncio.sleep(0)
        assert asyncio.current_task() is before
        tasks.append(before)
        return "slow"

    return server, tasks


async def test_each_call_has_a_task_for_itself_whether_it_waits_or_not() -> None:
    server, tasks = watching()
    async with Client(server) as client:
        await asyncio.gather(*(client.call(name) for name in ("slow", "quick", "slow", "quick", "quick")))
    assert len(set(tasks)) == 5


async def test_a_call_that_waits_holds_up_no_other() -> None:
    server = Server("s")
    release = asyncio.Event()

    @server.tool
    async def wait() -> str:
        await release.wait()
        return "waited"

    @server.tool
    async def quick() -> str:
        return "quick"

    async with Client(server) as client:
        waiting = [asyncio.create_task(client.call("wait")) for _ in range(3)]
        assert await client.call("quick") == "quick"
        release.set()
        assert await asyncio.gather(*waiting) == ["waited"] * 3


async def test_context_variables_of_one_call_are_not_seen_by_the_next() -> None:
    server = Server("s")

    @server.tool
    async def look_and_set(value: str) -> str:
        seen = variable.get()
        variable.set(value)
        return seen

    async with Client(server) as client:
        seen = await asyncio.gather(*(client.call("look_and_set", {"value": str(i)}) for i in range(5)))
    assert seen == ["clean"] * 5


@pytest.mark.parametrize("cancelled", [0, 1, 2])
async def test_the_cancellation_of_one_call_reaches_no_other(cancelled: int) -> None:
    server = Server("s")
    begun = asyncio.Semaphore(0)
    release = asyncio.Event()
    stopped: list[int] = []

    @server.tool
    async def wait(number: int) -> int:
        begun.release()
        try:
            await release.wait()
        except asyncio.CancelledError:
            stopped.append(number)
            raise
        return number

    async with Client(server) as client:
        calls = [asyncio.create_task(client.call("wait", {"number": number}, returns=int)) for number in range(3)]
        for _ in calls:
            await begun.acquire()
        calls[cancelled].cancel()
        await asyncio.wait([calls[cancelled]])
        await client.ping()
        release.set()
        results = await asyncio.gather(*calls, return_exceptions=True)
    assert stopped == [cancelled]
    assert [result for result in results if isinstance(result, int)] == [n for n in range(3) if n != cancelled]


async def test_timeouts_and_task_groups_work_inside_handlers() -> None:
    server = Server("s")

    @server.tool
    async def limited() -> str:
        try:
            async with asyncio.timeout(0):
                await asyncio.sleep(60)
        except TimeoutError:
            async with asyncio.TaskGroup() as group:
                task = group.create_task(asyncio.sleep(0, "in time"))
            return task.result()
        return "never"

    async with Client(server) as client:
        assert await asyncio.gather(*(client.call("limited") for _ in range(3))) == ["in time"] * 3


async def test_a_handler_that_cancels_its_own_task_harms_no_later_call(caplog: pytest.LogCaptureFixture) -> None:
    server = Server("s")

    @server.tool
    async def suicidal() -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return "said"

    @server.tool
    async def slow(ctx: Context) -> str:
        await asyncio.sleep(0)
        return "slow"

    async with Client(server) as client:
        results = await asyncio.gather(client.call_tool("suicidal"), client.call("slow"), client.call("slow"))
        assert results[1:] == ["slow", "slow"]


async def test_what_a_handler_leaves_armed_for_its_task_harms_no_later_call() -> None:
    server = Server("s")

    @server.tool
    async def watchdog() -> str:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().call_later(0.01, task.cancel)
        return "watched"

    @server.tool
    async def taken_back() -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        task.uncancel()
        return "taken back"

    @server.tool
    async def slow() -> str:
        await asyncio.sleep(0.05)
        return "slow"

    async with Client(server) as client:
        calls = (client.call("watchdog"), client.call("slow"), client.call_tool("taken_back"), client.call("slow"))
        results = await asyncio.gather(*calls)
        assert [result for result in results if result == "slow"] == ["slow", "slow"]


async def test_context_variables_that_equal_the_old_ones_are_not_seen_either() -> None:
    server = Server("s")
    token = variable.set("1")

    @server.tool
    async def assign() -> str:
        variable.set("".join(("1",)))
        return "set"

    @server.tool
    async def look() -> int:
        return id(variable.get())

    try:
        async with Client(server) as client:
            seen = await asyncio.gather(client.call("look"), client.call("assign"), client.call("look"))
        assert seen[0] == seen[2]
    finally:
        variable.reset(token)


async def test_a_task_factory_of_the_old_kind_is_used() -> None:
    server, tasks = watching()
    loop = asyncio.get_running_loop()
    loop.set_task_factory(lambda loop, coroutine: asyncio.Task(coroutine, loop=loop))  # type: ignore[arg-type]
    try:
        async with Client(server) as client:
            assert await client.call("quick") == "quick"
        assert [task.get_name() for task in tasks] == ["tools/call"]
    finally:
        loop.set_task_factory(None)
