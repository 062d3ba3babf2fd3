"""Functions with one ``yield``: what stands before it sets something up, what stands after it cleans up.

Asynchronous generators run on the event loop, plain ones step by step in worker threads; what ``@contextmanager`` and
``@asynccontextmanager`` made of either is taken the same way. This file knows neither requests nor servers.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, cast

from modelwire.server.crashes import log_crash
from modelwire.server.functions import run_sync
from modelwire.server.workers import WorkerPool


class Held(Protocol):
    """Something that is set up, used, and cleaned up."""

    async def start(self) -> Any:
        """Set it up and return what it is about."""
        ...

    async def finish(self, error: BaseException | None) -> BaseException | None:
        """Clean up; return what went wrong with that, or None.

        Does nothing where `start` has failed, or has not been called.

        Args:
            error: What the use of it has ended with. It is raised at the ``yield``, and is never what is returned.
        """
        ...


def held(name: str, made: Any, pool: WorkerPool) -> Held | None:
    """Return what sets up and cleans up by a generator; None when ``made`` is something else.

    Args:
        name: What to call it in messages.
        made: What a function with a ``yield`` has returned.
        pool: The threads that plain generators run in.
    """
    generator: Any = getattr(made, "gen", made)  # where a context manager of contextlib keeps it
    if inspect.isasyncgen(generator):
        return AsyncYield(name, cast("AsyncGenerator[Any, None]", generator))
    if inspect.isgenerator(generator):
        return SyncYield(name, cast("Generator[Any, None, None]", generator), pool)
    return None


class AsyncYield:
    """An asynchronous generator.

    Args:
        name: What to call it in messages.
        generator: The generator, not started yet.
    """

    def __init__(self, name: str, generator: AsyncGenerator[Any, None]) -> None:
        self._name = name
        self._generator = generator
        self._suspended = False
        """Whether it stands at its ``yield``."""

    async def start(self) -> Any:
        """Run it up to its ``yield`` and return what it yields."""
        try:
            value = await anext(self._generator)
        except StopAsyncIteration:
            raise _without_yield(self._name) from None
        self._suspended = True
        return value

    async def finish(self, error: BaseException | None) -> BaseException | None:
        """Let it run on from its ``yield`` to its end; see `Held.finish`."""
        if not self._suspended:
            return None
        self._suspended = False
        trace = None if error is None else error.__traceback__
        try:
            await (anext(self._generator) if error is None else self._generator.athrow(error))
        except StopAsyncIteration:
            return None
        except BaseException as raised:
            return _failure(raised, error)
        finally:
            if error is not None:
                error.__traceback__ = trace  # the ways through the generators do not belong into it
        try:
            await self._generator.aclose()
        except BaseException as raised:
            return raised
        return _second_yield(self._name)


class SyncYield:
    """A plain generator, whose steps run in worker threads, all of them with the same context variables.

    Args:
        name: What to call it in messages.
        generator: The generator, not started yet.
        pool: The threads.
    """

    def __init__(self, name: str, generator: Generator[Any, None, None], pool: WorkerPool) -> None:
        self._name = name
        self._generator = generator
        self._pool = pool
        self._context = contextvars.copy_context()
        self._lock = threading.Lock()
        self._suspended = False
        """Whether it stands at its ``yield``."""
        self._given_up = False
        """Whether nobody waits for the ``yield`` any more; a thread that comes to it cleans up by itself."""

    async def start(self) -> Any:
        """Run it up to its ``yield`` and return what it yields."""
        (value,) = await run_sync(self._begin, self._pool)
        return value

    def _begin(self) -> list[Any]:
        try:
            value = self._context.run(next, self._generator)
        except StopIteration:
            raise _without_yield(self._name) from None
        with self._lock:
            self._suspended = True
            if not self._given_up:
                return [value]  # in a list, for what can be awaited would be
        failure = self._end(asyncio.CancelledError())
        if failure is not None:
            log_crash(f"the clean-up of {self._name}, which was given up while it was set up, failed", failure)
        return [None]

    async def finish(self, error: BaseException | None) -> BaseException | None:
        """Let it run on from its ``yield`` to its end; see `Held.finish`."""
        with self._lock:
            self._given_up = True
            if not self._suspended:
                return None
        ending = asyncio.ensure_future(run_sync(lambda: self._end(error), self._pool))
        try:
            await to_its_end(ending)
        except asyncio.CancelledError as cancelled:
            return ending.result() or cancelled
        return ending.result()

    def _end(self, error: BaseException | None) -> BaseException | None:
        trace = None if error is None else error.__traceback__
        try:
            if error is None:
                self._context.run(next, self._generator)
            else:
                self._context.run(self._generator.throw, error)
        except StopIteration:
            return None
        except KeyboardInterrupt as raised:
            # Ctrl-C reaches the main thread only: here it is the function's own doing, as in `run_sync`.
            return None if raised is error else _interrupted(self._name, raised)
        except BaseException as raised:
            return _failure(raised, error)
        finally:
            if error is not None:
                error.__traceback__ = trace
        try:
            self._context.run(self._generator.close)
        except BaseException as raised:
            return raised
        return _second_yield(self._name)


class Managed:
    """An async context manager that is no generator.

    Args:
        manager: The manager, not entered yet.
    """

    def __init__(self, manager: AbstractAsyncContextManager[Any]) -> None:
        self._manager = manager
        self._entered = False

    async def start(self) -> Any:
        """Enter it and return what that gives."""
        value = await self._manager.__aenter__()
        self._entered = True
        return value

    async def finish(self, error: BaseException | None) -> BaseException | None:
        """Leave it; see `Held.finish`."""
        if not self._entered:
            return None
        self._entered = False
        try:
            await self._manager.__aexit__(type(error) if error is not None else None, error, None)
        except BaseException as raised:
            return None if raised is error else raised
        return None


def _failure(raised: BaseException, error: BaseException | None) -> BaseException | None:
    """Return what came out of a generator, unless it is what was thrown in."""
    # Out of a generator no StopIteration may come; Python wraps it.
    stopped = isinstance(error, StopIteration | StopAsyncIteration) and raised.__cause__ is error
    return None if raised is error or stopped else raised


def _interrupted(name: str, interrupt: KeyboardInterrupt) -> RuntimeError:
    failure = RuntimeError(f"{name} raised KeyboardInterrupt")
    failure.__cause__ = interrupt
    return failure


def _without_yield(name: str) -> RuntimeError:
    return RuntimeError(f"{name} came to its end without a yield; it must yield once")


def _second_yield(name: str) -> RuntimeError:
    return RuntimeError(f"{name} yields more than once; what stands after its first yield is the clean-up")


async def to_its_end(task: asyncio.Future[Any], seconds: float | None = None) -> None:
    """Wait until a task is done. A cancellation meanwhile is raised afterwards: what has begun to end shall end.

    Args:
        task: The task; its outcome is for the caller to look at.
        seconds: How long to wait at most.
    """
    loop = asyncio.get_running_loop()
    until = None if seconds is None else loop.time() + seconds
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            left = None if until is None else max(0.0, until - loop.time())
            await asyncio.wait([task], timeout=left)
            break
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
