"""One timer for all streams of an application that say nothing: each is told when its silence has lasted too long.

A timer for each of them would be larger than the rest of it.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

COARSE: Final = 1.0
"""Seconds between two looks at all of them, at least, unless none may be silent for as long as that."""


class Silent(Protocol):
    """A stream that says nothing."""

    @property
    def due(self) -> float:
        """When its silence is to be broken, on the loop's clock."""
        ...

    def break_silence(self) -> None:
        """Break it; `due` moves on."""
        ...


class Silences:
    """The streams that say nothing at this moment."""

    __slots__ = ("_streams", "_timer")

    def __init__(self) -> None:
        self._streams: dict[Silent, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, stream: Silent) -> None:
        """Have a stream told."""
        self._streams[stream] = None
        self._arm(asyncio.get_running_loop(), stream.due)

    def remove(self, stream: Silent) -> None:
        """Forget a stream. May be called twice."""
        self._streams.pop(stream, None)
        if not self._streams and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        if self._timer is not None:
            if self._timer.when() <= due:
                return
            self._timer.cancel()
        self._timer = loop.call_at(due, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        now = loop.time()
        for stream in [*self._streams]:
            if stream.due <= now:
                stream.break_silence()
        if self._streams:
            self._arm(loop, max(min(stream.due for stream in self._streams), now + COARSE))
