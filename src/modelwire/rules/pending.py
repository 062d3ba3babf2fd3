"""Our own requests that wait for an answer: ids, deadlines, progress, and which answers are too late.

Plain bookkeeping: whoever sends the frames and keeps the time calls in with ``now``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from modelwire.errors import RequestTimeout
from modelwire.protocol.jsonrpc import IdKey

OnProgress = Callable[[float, float | None, str | None], Any]
"""Called with ``(progress, total, message)``; may be an async function."""


class Outgoing:
    """One request of ours that waits for its answer.

    Attributes:
        key: Its id, which is another one when it is sent again over another connection.
        method: Its method.
        started: When it was sent first, on the caller's clock, in seconds.
        counted: Since when ``timeout`` counts: since it was sent, or since the last progress.
        timeout: Seconds without answer or progress after which it is given up; None for ever.
        max_timeout: Seconds after which it is given up whatever progress comes.
        deadline: When that is.
        limit: The moment that no progress can move the deadline past.
        on_progress: Who is told of progress.
        progress: The last progress that came.
        telling: What still tells somebody of its progress.
        settle: Called once, with the raw result or with the exception that ends the wait.
        answer: What the sender waits for; the bookkeeping never looks at it.
        heard: What had been heard before it was sent; the bookkeeping never looks at that either.
        post: What sent it, nor at that.
    """

    __slots__ = (
        "answer", "counted", "deadline", "heard", "key", "limit", "max_timeout", "method", "on_progress", "post",
        "progress", "settle", "started", "telling", "timeout",
    )  # fmt: skip

    def __init__(
        self,
        key: int,
        method: str,
        settle: Callable[[Any], None],
        *,
        now: float,
        timeout: float | None,
        max_timeout: float | None,
        on_progress: OnProgress | None,
    ) -> None:
        self.key = key
        self.method = method
        self.settle = settle
        self.started = self.counted = now
        self.timeout = timeout
        self.max_timeout = max_timeout
        self.limit = None if max_timeout is None else now + max_timeout
        self.deadline = self._within_limit(now)
        self.on_progress = on_progress
        self.progress: tuple[float, float | None] | None = None
        self.telling: set[Any] | None = None
        self.answer: Any = None
        self.heard: Any = None
        self.post: Any = None

    def moved(self, now: float) -> None:
        """Count the time anew, up to the limit."""
        self.counted = now
        self.deadline = self._within_limit(now)

    def stood_still(self, since: float, now: float) -> None:
        """Leave a time out of the count, in which it was not the peer that kept us waiting."""
        self.counted += now - max(self.counted, since)
        if self.limit is not None:
            self.limit += now - max(self.started, since)
        self.deadline = self._within_limit(self.counted)

    def late(self, now: float) -> RequestTimeout:
        """Return the error for the deadline that has passed."""
        limited = self.limit is not None and self.deadline == self.limit
        waited = self.max_timeout if limited else self.timeout
        if waited is None or (self.progress is not None and not limited):
            waited = now - self.started
        return RequestTimeout(self.method, round(waited, 3), (), "max_timeout" if limited else "timeout")

    def _within_limit(self, now: float) -> float | None:
        if self.timeout is None:
            return self.limit
        return now + self.timeout if self.limit is None else min(now + self.timeout, self.limit)


class Pending:
    """The requests of one connection that wait for their answers."""

    __slots__ = ("_last", "_waiting")

    def __init__(self) -> None:
        self._last = 0
        self._waiting: dict[IdKey, Outgoing] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(
        self,
        method: str,
        settle: Callable[[Any], None],
        *,
        now: float,
        timeout: float | None,
        max_timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> Outgoing:
        """Note a request and give it its id.

        "The request ID MUST NOT match the ID of any other request the sender has issued and not yet received a
        response for" (basic): ours count up and never come again.
        """
        self._last += 1
        entry = Outgoing(
            self._last, method, settle, now=now, timeout=timeout, max_timeout=max_timeout, on_progress=on_progress
        )
        self._waiting[self._last] = entry
        return entry

    def again(self, entry: Outgoing, settle: Callable[[Any], None]) -> None:
        """Note a request that another connection has lost, under an id of this one; its deadlines stay as they are."""
        self._last += 1
        entry.key = self._last
        entry.settle = settle
        self._waiting[self._last] = entry

    def get(self, key: IdKey | None) -> Outgoing | None:
        """Return a request that waits, and goes on waiting; None when there is none."""
        return None if key is None else self._waiting.get(key)

    def take(self, key: IdKey | None) -> Outgoing | None:
        """Return the request that an answer belongs to, which then no longer waits; None when there is none."""
        return None if key is None else self._waiting.pop(key, None)

    def take_all(self) -> list[Outgoing]:
        """Return every request; none waits any more."""
        waiting = list(self._waiting.values())
        self._waiting.clear()
        return waiting

    def was_ours(self, key: IdKey | None) -> bool:
        """Whether the id belongs to a request that was answered or given up before: its answer is late, not foreign."""
        return isinstance(key, int) and 0 < key <= self._last

    def progressed(self, token: Any, progress: float, total: float | None, now: float) -> Outgoing | None:
        """Note progress; return its request, or None when nothing that waits has the token.

        "Implementations MAY choose to reset the timeout clock when receiving a progress notification [...] However,
        implementations SHOULD always enforce a maximum timeout" (basic/patterns/cancellation).
        """
        entry = self._waiting.get(token) if isinstance(token, int | str) and not isinstance(token, bool) else None
        if entry is None or entry.on_progress is None:
            return None
        entry.progress = (progress, total)
        entry.moved(now)
        return entry

    def stood_still(self, since: float, now: float) -> None:
        """Leave a time out of the count of every request."""
        for entry in self._waiting.values():
            entry.stood_still(since, now)

    def next_deadline(self) -> float | None:
        """Return the earliest deadline, or None when nothing has one."""
        return min((entry.deadline for entry in self._waiting.values() if entry.deadline is not None), default=None)

    def expired(self, now: float) -> list[Outgoing]:
        """Return the requests whose deadline has passed; they no longer wait."""
        late = [entry for entry in self._waiting.values() if entry.deadline is not None and entry.deadline <= now]
        for entry in late:
            del self._waiting[entry.key]
        return late
