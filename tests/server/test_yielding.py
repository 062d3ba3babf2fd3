"""Functions with one ``yield``: their set-up, their clean-up, and what is said of those that do it otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from typing import Any

import pytest

from modelwire.server.workers import WorkerPool
from modelwire.server.yielding import Held, held, to_its_end

Body = Callable[[], Iterator[Any]]


def as_generator(body: Body) -> Any:
    return body()


def as_async_generator(body: Body) -> Any:
    async def later() -> AsyncIterator[Any]:
        steps = body()
        while True:
            try:
                value = next(steps)
            except StopIteration:
                return
            try:
                yield value
            except BaseException as error:
                try:
                    value = steps.throw(error)  # type: ignore[attr-defined]
                except StopIteration:
                    return
                yield value

    return later()


def as_manager(body: Body) -> Any:
    return contextmanager(body)()


def as_async_manager(body: Body) -> Any:
    @asynccontextmanager
    async def later() -> AsyncIterator[Any]:
        async for value in as_async_generator(body):
            yield value

    return later()


every_kind = pytest.mark.parametrize("kind", [as_generator, as_async_generator, as_manager])


def holding(kind: Callable[[Body], Any], body: Body) -> Held:
    found = held("it", kind(body), WorkerPool(2))
    assert found is not None
    return found


@every_kind
async def test_what_stands_around_the_yield_runs_in_turn(kind: Any) -> None:
    lines: list[str] = []

    def body() -> Iterator[int]:
        lines.append("before")
        yield 5
        lines.append("after")

    it = holding(kind, body)
    assert await it.start() == 5
    assert lines == ["before"]
    assert await it.finish(None) is None
    assert lines == ["before", "after"]


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), asyncio.CancelledError(), StopIteration(1)])
@every_kind
async def test_an_error_is_raised_at_the_yield_and_is_no_failure_of_the_clean_up(
    kind: Any, error: BaseException
) -> None:
    caught: list[BaseException] = []

    def raises_again() -> Iterator[None]:
        try:
            yield
        except BaseException as found:
            caught.append(found)
            raise

    def swallows() -> Iterator[None]:
        try:
            yield
        except BaseException as found:
            caught.append(found)

    def knows_nothing() -> Iterator[None]:
        yield

    for body in (raises_again, swallows, knows_nothing):
        it = holding(kind, body)
        await it.start()
        assert await it.finish(error) is None
    assert caught == [error, error]
    assert error.__traceback__ is None  # it is not marked by the way


@every_kind
async def test_what_the_clean_up_raises_is_returned(kind: Any) -> None:
    def fails() -> Iterator[None]:
        try:
            yield
        finally:
            raise OSError("cannot close")

    for error in (None, ValueError("x")):
        it = holding(kind, fails)
        await it.start()
        failure = await it.finish(error)
        assert isinstance(failure, OSError)


@every_kind
async def test_a_set_up_that_fails_raises_and_has_no_clean_up(kind: Any) -> None:
    def fails() -> Iterator[None]:
        raise OSError("cannot open")
        yield

    it = holding(kind, fails)
    with pytest.raises(OSError, match="cannot open"):
        await it.start()
    assert await it.finish(None) is None
    assert await it.finish(ValueError()) is None


@every_kind
async def test_no_yield_and_a_second_one_are_said_by_name(kind: Any) -> None:
    def none() -> Iterator[None]:
        return
        yield

    def twice() -> Iterator[None]:
        yield
        yield

    def after_the_error() -> Iterator[None]:
        try:
            yield
        except ValueError:
            yield

    with pytest.raises(RuntimeError, match="^it came to its end without a yield"):
        await holding(kind, none).start()
    for body, error in ((twice, None), (after_the_error, ValueError())):
        it = holding(kind, body)
        await it.start()
        failure = await it.finish(error)
        assert isinstance(failure, RuntimeError)
        assert str(failure).startswith("it yields more than once")


@every_kind
async def test_a_clean_up_runs_once(kind: Any) -> None:
    lines: list[str] = []

    def body() -> Iterator[None]:
        yield
        lines.append("after")

    it = holding(kind, body)
    await it.start()
    assert await it.finish(None) is None
    assert await it.finish(None) is None
    assert lines == ["after"]
    assert await holding(kind, body).finish(None) is None  # which was not started
    assert lines == ["after"]


async def test_what_is_no_generator_is_not_held() -> None:
    pool = WorkerPool(1)
    for made in (5, "text", iter([1]), nullcontext(), asyncio.Event(), object()):
        assert held("it", made, pool) is None
    assert held("it", as_async_manager(lambda: iter([1])), pool) is not None


async def test_a_cancellation_is_raised_after_the_end_that_was_waited_for() -> None:
    gate = asyncio.Event()
    task = asyncio.create_task(gate.wait())
    waiting = asyncio.create_task(to_its_end(task))
    for _ in range(3):
        await asyncio.sleep(0)
        waiting.cancel("enough")
    await asyncio.sleep(0)
    assert not waiting.done()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert task.result() is True


async def test_an_end_is_waited_for_so_long_and_no_longer() -> None:
    task = asyncio.create_task(asyncio.Event().wait())
    await to_its_end(task, 0.01)
    assert not task.done()
    task.cancel()
    await to_its_end(task)
    await to_its_end(task)
    assert task.cancelled()


@pytest.mark.parametrize("kind", [as_generator, as_manager])
@pytest.mark.parametrize("error", [None, ValueError("x")])
async def test_a_clean_up_in_a_thread_that_raises_keyboardinterrupt_interrupts_nobody(
    kind: Callable[[Body], Any], error: BaseException | None
) -> None:
    def body() -> Iterator[int]:
        try:
            yield 1
        finally:
            raise KeyboardInterrupt

    it = holding(kind, body)
    await it.start()
    failure = await it.finish(error)
    assert isinstance(failure, RuntimeError)
    assert str(failure) == "it raised KeyboardInterrupt"
    assert isinstance(failure.__cause__, KeyboardInterrupt)
