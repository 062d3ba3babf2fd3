"""Coroutines that never wait, run to their end at once: what they would see of a task is there, the task is not.

A task costs a fifth of a whole call, most of it for waiting in the loop's queue. Whoever has no ``await`` needs none.
What is run here has its own context variables and its own current task, as in a task; only `never_waits` may be run.
"""

from __future__ import annotations

import asyncio
import contextvars
import dis
import inspect
import types
from collections.abc import Callable, Coroutine
from typing import Any

_WAITING = frozenset(dis.opmap[name] for name in ("SEND", "YIELD_VALUE", "GET_AWAITABLE") if name in dis.opmap)
_enter: Any = asyncio.tasks._enter_task  # documented for whoever makes tasks
_leave: Any = asyncio.tasks._leave_task


def never_waits(function: Callable[..., Any]) -> bool:
    """Whether a function is ``async`` but has no ``await`` (nor ``async for`` or ``async with``) in its code."""
    inner = getattr(function, "__func__", function)
    if not isinstance(inner, types.FunctionType) or not inner.__code__.co_flags & inspect.CO_COROUTINE:
        return False
    # Every second byte is an opcode, the ones between are their arguments.
    return _WAITING.isdisjoint(inner.__code__.co_code[::2])


class Moment:
    """What ``asyncio.current_task()`` is meanwhile: new for each call, for what goes by the task.

    It is no `asyncio.Task`, but answers as one. To cancel it has no effect, as with a task that waits no more.
    """

    __slots__ = ("__weakref__", "_cancelling", "_coroutine", "_loop", "_name", "callbacks")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop) -> None:
        self._coroutine = coroutine
        self._loop = loop
        self.callbacks: list[tuple[Callable[[Moment], object], contextvars.Context | None]] | None = None

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """Return the loop."""
        return self._loop

    def get_coro(self) -> Coroutine[Any, Any, Any]:
        """Return what is run."""
        return self._coroutine

    def get_name(self) -> str:
        """Return the name."""
        return getattr(self, "_name", self._coroutine.__qualname__)

    def set_name(self, value: object) -> None:
        """Set the name."""
        self._name = str(value)

    def get_stack(self, *, limit: int | None = None) -> list[types.FrameType]:
        """Return no frames, as a task does that has ended."""
        return []

    def done(self) -> bool:
        """Return whether it has ended."""
        return inspect.getcoroutinestate(self._coroutine) == inspect.CORO_CLOSED

    def cancelled(self) -> bool:
        """Return whether it was cancelled before it ended, which cannot be."""
        return False

    def cancel(self, msg: Any = None) -> bool:
        """Note the wish; there is no ``await`` at which it could come true."""
        self._cancelling = self.cancelling() + 1
        return True

    def cancelling(self) -> int:
        """Return how often `cancel` was called, less `uncancel`."""
        return getattr(self, "_cancelling", 0)

    def uncancel(self) -> int:
        """Take back a `cancel`."""
        self._cancelling = max(0, self.cancelling() - 1)
        return self._cancelling

    def add_done_callback(
        self, callback: Callable[[Moment], object], *, context: contextvars.Context | None = None
    ) -> None:
        """Have ``callback(this)`` called soon after the end."""
        self.callbacks = [*(self.callbacks or ()), (callback, context)]

    def remove_done_callback(self, callback: Callable[[Moment], object]) -> int:
        """Take back an `add_done_callback`, and return how often it was there."""
        before = self.callbacks or []
        self.callbacks = [entry for entry in before if entry[0] != callback]
        return len(before) - len(self.callbacks)

    def end(self) -> None:
        """Call who wants to know of the end."""
        for callback, context in self.callbacks or ():
            self._loop.call_soon(callback, self, context=context)


def run_at_once(coroutine: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop) -> Any:
    """Run a coroutine of a function that `never_waits`, and return its result.

    Args:
        coroutine: The coroutine.
        loop: The running loop.

    Raises:
        BaseException: What it raised.
    """
    moment = Moment(coroutine, loop)
    outer = asyncio.current_task(loop)
    if outer is not None:
        _leave(loop, outer)
    _enter(loop, moment)
    try:
        contextvars.copy_context().run(coroutine.send, None)
    except StopIteration as done:
        return done.value
    finally:
        _leave(loop, moment)
        if outer is not None:
            _enter(loop, outer)
        if moment.callbacks is not None:
            moment.end()
    coroutine.close()
    raise RuntimeError("a function without an await waited after all; was its code exchanged?")
