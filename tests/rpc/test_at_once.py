"""A coroutine that never waits is run at once, and sees nothing different from a task of its own."""

from __future__ import annotations

import asyncio
import functools
import gc
import weakref
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from typing import Any

import pytest

from modelwire import Client, Server
from modelwire.rpc.at_once import never_waits, run_at_once

variable: ContextVar[str] = ContextVar("variable", default="clean")


async def _done() -> None:
    return None


async def plain(a: int, b: int) -> int:
    return a + b


async def with_parts(values: list[int]) -> list[Any]:
    async def inner() -> None:
        await _done()

    return [inner, [value + 1 for value in values], sum(value for value in values), lambda: values]


async def awaiting() -> None:
    await _done()


async def looping(items: AsyncIterator[int]) -> list[int]:
    return [item async for item in items]


async def entering() -> None:
    async with asyncio.timeout(1):
        pass


async def streaming() -> AsyncIterator[int]:
    yield 1


class Methods:
    async def quick(self) -> str:
        return "quick"

    async def slow(self) -> None:
        await _done()


def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def outer(*args: Any) -> Any:
        return await function(*args)

    return outer


@pytest.mark.parametrize("function", [plain, with_parts, Methods().quick, Methods.quick])
def test_a_coroutine_function_without_an_await_never_waits(function: Callable[..., Any]) -> None:
    assert never_waits(function)


@pytest.mark.parametrize(
    "function",
    [awaiting, looping, entering, streaming, Methods().slow, decorated(plain), functools.partial(plain, 1), len],
)
def test_whatever_else_may_wait(function: Callable[..., Any]) -> None:
    assert not never_waits(function)


async def test_it_returns_what_the_function_returns_and_raises_what_it_raises() -> None:
    async def fail() -> None:
        raise KeyError("x")

    loop = asyncio.get_running_loop()
    assert run_at_once(plain(1, 2), loop) == 3
    with pytest.raises(KeyError, match="x"):
        run_at_once(fail(), loop)


async def test_the_task_around_it_is_the_current_one_again_afterwards() -> None:
    async def fail() -> None:
        assert asyncio.current_task() is not around
        raise KeyError("x")

    around = asyncio.current_task()
    with pytest.raises(KeyError):
        run_at_once(fail(), asyncio.get_running_loop())
    assert asyncio.current_task() is around


async def test_outside_of_a_task_there_is_none_afterwards() -> None:
    seen: list[Any] = []

    async def note() -> None:
        seen.append(asyncio.current_task())

    def callback() -> None:
        run_at_once(note(), loop)
        seen.append(asyncio.current_task())

    loop = asyncio.get_running_loop()
    loop.call_soon(callback)
    await asyncio.sleep(0)
    assert seen[0] is not None
    assert seen[1] is None


async def test_context_variables_do_not_leave_it() -> None:
    async def change() -> str:
        before = variable.get()
        variable.set("dirty")
        return before

    loop = asyncio.get_running_loop()
    assert [run_at_once(change(), loop) for _ in range(2)] == ["clean", "clean"]
    assert variable.get() == "clean"


async def test_what_goes_by_the_task_goes_by_the_call_and_is_freed_with_it() -> None:
    sessions: weakref.WeakKeyDictionary[Any, list[int]] = weakref.WeakKeyDictionary()

    async def scoped(value: int) -> list[int]:
        return [*sessions.setdefault(asyncio.current_task(), [value])]

    loop = asyncio.get_running_loop()
    assert [run_at_once(scoped(value), loop) for value in range(3)] == [[0], [1], [2]]
    gc.collect()
    assert not sessions


async def test_its_task_answers_as_one() -> None:
    ended: list[Any] = []

    async def look() -> Any:
        task: Any = asyncio.current_task()
        assert task.get_name().endswith("look")
        task.set_name(7)
        assert (task.get_name(), task.done(), task.cancelled(), task.get_stack()) == ("7", False, False, [])
        assert (task.cancelling(), task.cancel("why"), task.cancelling(), task.uncancel()) == (0, True, 1, 0)
        assert task.get_coro().__name__ == "look"
        assert task.get_loop() is asyncio.get_running_loop()
        task.add_done_callback(ended.append)
        task.add_done_callback(print)
        assert task.remove_done_callback(print) == 1
        return task

    task = run_at_once(look(), asyncio.get_running_loop())
    assert ended == []
    await asyncio.sleep(0)
    assert ended == [task]
    assert task.done()


async def test_tasks_that_it_starts_run_on() -> None:
    ran = asyncio.Event()

    async def start() -> asyncio.Task[Any]:
        return asyncio.create_task(set_it())

    async def set_it() -> None:
        assert asyncio.current_task() is task
        ran.set()

    task = run_at_once(start(), asyncio.get_running_loop())
    await task
    assert ran.is_set()


async def test_code_that_was_exchanged_for_some_that_waits_is_an_error_and_no_hang() -> None:
    async def waits() -> None:
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="waited after all"):
        run_at_once(waits(), asyncio.get_running_loop())


async def test_a_task_factory_makes_a_task_for_every_call() -> None:
    made: list[Any] = []
    seen: list[Any] = []
    server = Server("s")

    @server.tool
    async def quick() -> None:
        seen.append(asyncio.current_task())

    def factory(loop: asyncio.AbstractEventLoop, coroutine: Any, **more: Any) -> Any:
        made.append(asyncio.Task(coroutine, loop=loop, **more))
        return made[-1]

    loop = asyncio.get_running_loop()
    async with Client(server) as client:
        loop.set_task_factory(factory)
        try:
            await client.call("quick")
        finally:
            loop.set_task_factory(None)
    assert seen[0] in made


@pytest.mark.parametrize("names", [["quick", "slow", "quick"], ["slow", "quick", "slow"], ["quick", "quick", "slow"]])
async def test_calls_begin_in_the_order_in_which_they_came_whether_they_wait_or_not(names: list[str]) -> None:
    begun: list[str] = []
    server = Server("s")

    @server.tool
    async def quick(mark: str) -> None:
        begun.append(mark)

    @server.tool
    async def slow(mark: str) -> None:
        begun.append(mark)
        await asyncio.sleep(0)

    marks = [f"{name} {number}" for number, name in enumerate(names)]
    async with Client(server) as client:
        await asyncio.gather(*(client.call(mark.split()[0], {"mark": mark}) for mark in marks))
    assert begun == marks
