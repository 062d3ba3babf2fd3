"""An event loop that a test turns by hand: its clock stands still unless told, and it knows when nothing is left.

It knows nothing of modelwire. Only worker threads run by themselves; `idle` waits for them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import Any, TypeVar

T = TypeVar("T")

MAX_TURNS = 20_000
"""A loop that has not come to rest after so many turns never will."""


class TurnedLoop(asyncio.SelectorEventLoop):
    """An event loop with a clock of its own.

    Use it as a ``with`` block: at the end it is closed, and tasks that are left over, exceptions that nobody looked at
    and errors that the package logged (see `forgiven`) are failures.
    """

    def __init__(self) -> None:
        super().__init__()
        self._now = 1000.0
        self._threads = 0
        self._thread_done: asyncio.Event = asyncio.Event()
        self.unseen: list[str] = []
        """What ended up in the loop's exception handler."""
        self.forgiven: Callable[[logging.LogRecord], bool] = lambda record: False
        """Says which logged errors belong to the test's own handlers."""
        self._errors = _Errors()
        self.set_exception_handler(lambda loop, context: self.unseen.append(_described(context)))

    def time(self) -> float:
        return self._now

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        future = super().run_in_executor(executor, func, *args)
        self._threads += 1
        future.add_done_callback(self._thread_ended)
        return future

    def _thread_ended(self, future: asyncio.Future[Any]) -> None:
        self._threads -= 1
        self._thread_done.set()

    def idle(self) -> None:
        """Turn until nothing is scheduled for now and no worker thread is busy."""
        self.run_until_complete(self._turn())

    async def _turn(self) -> None:
        for _ in range(MAX_TURNS):
            if self._ready:  # type: ignore[attr-defined]
                await asyncio.sleep(0)
            elif self._threads:
                self._thread_done.clear()
                await self._thread_done.wait()
            else:
                return
        raise AssertionError(f"the loop has not come to rest after {MAX_TURNS} turns")

    def advance(self, seconds: float) -> None:
        """Move the clock, stopping at each timer on the way, until everything that is due is done."""
        end = self._now + seconds
        self.idle()
        while (due := self._next_timer()) is not None and due <= end:
            self._now = max(self._now, due)
            self.idle()
        self._now = end
        self.idle()

    def _next_timer(self) -> float | None:
        pending = [handle.when() for handle in self._scheduled if not handle.cancelled()]  # type: ignore[attr-defined]
        return min(pending, default=None)

    def start(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start a task and turn until nothing moves."""
        task = self.create_task(coroutine)
        self.idle()
        return task

    def finish(self, awaitable: Awaitable[T], within: float = 60.0) -> T:
        """Run something to its end, moving the clock by at most ``within`` seconds."""
        future = asyncio.ensure_future(awaitable, loop=self)
        self.idle()
        if not future.done():
            self.advance(within)
        assert future.done(), f"not done after {within:g} s"
        return future.result()

    # ------------------------------------------------------------------ the end

    def __enter__(self) -> TurnedLoop:
        logger = logging.getLogger("modelwire")
        logger.addHandler(self._errors)
        logger.setLevel(logging.ERROR)  # warnings are what bad input deserves, and thousands of them cost time
        asyncio.set_event_loop(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        left = [] if kind is not None else self.left_over()
        logger = logging.getLogger("modelwire")
        logger.removeHandler(self._errors)
        logger.setLevel(logging.NOTSET)
        for task in asyncio.all_tasks(self):
            task.cancel()
        try:
            self.idle()
        finally:
            asyncio.set_event_loop(None)
            self.close()
        assert left == []

    def left_over(self) -> list[str]:
        """Return what should not be there once everything was closed, one line each."""
        self.idle()
        found = [f"a task is left: {task!r}" for task in asyncio.all_tasks(self)]
        found += [f"nobody looked at: {text}" for text in self.unseen]
        found += [
            f"logged: {record.getMessage()} {record.exc_info and record.exc_info[1]!r}"
            for record in self._errors.records
            if not self.forgiven(record)
        ]
        if (timer := self._next_timer()) is not None:
            found.append(f"a timer is left, due in {timer - self._now:g} s")
        return found


class _Errors(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


def _described(context: dict[str, Any]) -> str:
    return f"{context.get('message')} {context.get('exception')!r}"
