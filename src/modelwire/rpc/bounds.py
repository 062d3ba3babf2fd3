"""What a peer may have us keep at once, in bytes: requests that are open, and callbacks that have not ended.

Whoever asks and never ends, or tells faster than anybody can listen, must not fill the memory. What waits to be sent is
bounded by `modelwire.rpc.stream`, what was read ahead by the transports. Nothing is refused here; that is the caller's.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Collection, Iterable
from typing import Any

from modelwire.log import log as _log
from modelwire.rpc.call import Call

LARGE = 1 << 16
"""Bytes above which a request is counted by its size; smaller ones are bounded by their number."""
MAX_OPEN = 1 << 28
"""Bytes of large requests that may be open on one connection."""
HEARD = 64
"""How many names of notifications are kept."""
NAME = 100
"""Characters of such a name that are kept."""
MAX_CALLBACKS = 4096
"""How many async callbacks of one connection may run at once."""
MAX_HEARD = 1 << 26
"""Bytes of notifications that such callbacks were called with."""


class OpenBytes:
    """Knows how large the large requests are that are open."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: list[tuple[list[weakref.ref[Call]], int]] = []

    @property
    def full(self) -> bool:
        """Whether no further large request is to be taken."""
        self._held = [(calls, size) for calls, size in self._held if any(map(_is_open, calls))]
        return sum(size for _, size in self._held) > MAX_OPEN

    def hold(self, calls: Iterable[Call], size: int) -> None:
        """Count a frame for as long as one of its calls is open."""
        self._held.append(([weakref.ref(call) for call in calls], size))


def _is_open(call: weakref.ref[Call]) -> bool:
    found = call()
    return found is not None and found.open


class Callbacks:
    """The async callbacks of one connection that still run."""

    __slots__ = ("_running", "_size")

    def __init__(self) -> None:
        self._running: dict[asyncio.Future[Any], int] = {}
        self._size = 0

    def __len__(self) -> int:
        return len(self._running)

    @property
    def full(self) -> bool:
        """Whether so many run that no further one is to be called."""
        return self._size > MAX_HEARD or len(self._running) >= MAX_CALLBACKS

    def follow(self, told: Any, size: int = 0) -> asyncio.Future[Any]:
        """Run a callback that turned out to be async; its failure is logged.

        Args:
            told: What it returned.
            size: The bytes of what it was told.
        """
        task = asyncio.ensure_future(told)
        self._running[task] = size
        self._size += size
        task.add_done_callback(self._followed)
        return task

    async def settle(self, seconds: float, spared: Collection[asyncio.Future[Any] | None] = ()) -> None:
        """Wait for those that still run; cancel those that take longer.

        Args:
            seconds: How long to wait.
            spared: Which to leave alone: those that wait for this.
        """
        running = self._running.keys() - spared
        if running:
            _, late = await asyncio.wait(running, timeout=seconds)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=seconds)

    def _followed(self, task: asyncio.Future[Any]) -> None:
        self._size -= self._running.pop(task, 0)
        if not task.cancelled() and task.exception() is not None:
            _log.error("a callback failed", exc_info=task.exception())
