"""Methods that wait, made from those that are awaited: one line each, with parameters, types and docstring kept.

`modelwire.sync` repeats nothing of the asynchronous classes, so that the two cannot differ.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from modelwire.client.requests import DEFAULT
from modelwire.sync.loop import LoopThread, shared

P = ParamSpec("P")
R = TypeVar("R")


class Blocking:
    """Something whose methods wait for those of an asynchronous object.

    Args:
        inner: The asynchronous object.
    """

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._held: LoopThread | None = None

    @property
    def _loop(self) -> LoopThread:
        """The loop that runs the asynchronous object: the one of the process that uses it first."""
        if self._held is None:
            self._held = shared()
        return self._held

    def _run(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Run a method of the asynchronous object, and wait for it."""
        return self._loop.run(getattr(self._inner, method), *arguments, **options)

    def connect(self, *, timeout: float | None = DEFAULT) -> Self:
        """Open it; at the end of the process it is closed if nobody has done it before."""
        self._loop.open.add(self._inner)
        try:
            self._run("connect", timeout=timeout)
        finally:
            if not self._inner.connected:
                self._loop.open.discard(self._inner)
        return self

    def close(self) -> None:
        """Close it. In a forked child, and at the end of the process, there is nothing left to close."""
        if self._held is not None and not self._held.gone:
            self._run("close")
            self._held.open.discard(self._inner)

    def __enter__(self) -> Self:
        self._inner._check_entry()
        return self.connect()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def inner_of(outer: Blocking) -> Any:
    """Return the asynchronous object."""
    return outer._inner  # pyright: ignore[reportPrivateUsage]


def blocking(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]) -> Callable[Concatenate[Any, P], R]:
    """Return a method that waits for this one of the asynchronous object; its overloads are kept.

    Args:
        method: The method as its class has it, such as ``Client.list_tools``.
    """
    name = method.__name__

    def wait(self: Blocking, *arguments: Any, **options: Any) -> Any:
        return self._run(name, *arguments, **options)  # pyright: ignore[reportPrivateUsage]

    return functools.wraps(method, assigned=("__name__", "__qualname__", "__doc__"))(wait)
