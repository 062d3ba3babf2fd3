"""Runs the calls of one connection, each inside a task, and as few tasks as that takes.

A handler that never waits needs no task of its own: one task runs such calls one after another. As soon as a handler
waits, the task is that call's alone, and another one takes over the rest. So a handler is inside one and the same task
from its beginning to its end, as asyncio's timeouts and task groups demand; and no two calls that ever wait share one.
Context variables that a handler sets are never seen by another call.

Making a task for every call would be a fifth of what a call costs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import copy_context
from typing import Any, cast

from modelwire.rpc.call import Call


class Runner:
    """Runs calls.

    Args:
        loop: The connection's event loop.
        answer: Returns the coroutine that answers a call.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, answer: Callable[[Call], Coroutine[Any, Any, None]]) -> None:
        self._loop = loop
        self._answer = answer
        self._ready: deque[Call] = deque()
        self._runs = False
        self._base = copy_context()
        """What every task begins with, whoever happens to start it."""
        self._tasks: set[asyncio.Task[None]] = set()

    def submit(self, call: Call) -> None:
        """Have a call answered; calls begin in the order in which they were submitted."""
        self._ready.append(call)
        if not self._runs:
            self._runs = True
            self._start(self._ready)

    def _start(self, calls: deque[Call]) -> None:
        task = self._loop.create_task(self._run(calls), name="modelwire: calls", context=self._base.copy())
        self._tasks.add(task)  # the loop itself holds tasks weakly
        task.add_done_callback(self._tasks.discard)

    async def _run(self, calls: deque[Call]) -> None:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        clean = copy_context()
        waits: _Begun | None = None
        try:
            while calls and waits is None:
                call = calls.popleft()
                if call.cancelled:
                    continue
                call.task = task
                coroutine = self._answer(call)
                try:
                    waits = _Begun(coroutine, coroutine.send(None))
                except StopIteration:
                    if task.cancelling() or copy_context() != clean:
                        break  # the handler has left something behind in the task
        finally:  # whatever happened, somebody must go on with the rest
            self._hand_over(calls, each=waits is not None)
        if waits is not None:
            await waits

    def _hand_over(self, calls: deque[Call], *, each: bool) -> None:
        """Start what goes on: one task for all the rest, or one for each, when others are likely to wait, too."""
        if calls is not self._ready:
            return  # a task that was started for one call
        if each:
            while calls:
                self._start(deque((calls.popleft(),)))
        if calls:
            self._start(calls)
        else:
            self._runs = False


class _Begun:
    """A coroutine that has been begun and waits for something; awaiting this is awaiting the rest of it."""

    def __init__(self, coroutine: Coroutine[Any, Any, None], waits_for: Any) -> None:
        self._coroutine = coroutine
        self._waits_for = waits_for

    def __await__(self) -> Generator[Any, Any, None]:
        waits_for = self._waits_for
        try:
            while True:
                try:
                    sent = yield waits_for
                except BaseException as error:
                    waits_for = self._coroutine.throw(error)
                else:
                    waits_for = self._coroutine.send(sent)
        except StopIteration:
            return
