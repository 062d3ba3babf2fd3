"""How often, and how soon, a lost connection is opened again by itself.

The first time at once; each further time within a minute later than the one before; then not at all, until the minute
is over. So a server that dies of every request comes back a few times and then stays down, and one that dies once a day
always comes back.
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise

DELAYS = (0.0, 0.5, 1.0, 2.0, 4.0)
"""Seconds to wait before the first, second, ... opening within `WINDOW`."""
WINDOW = 60.0
"""Seconds after which an opening no longer counts."""
MOST = len(DELAYS)
"""How many openings there may be within `WINDOW`."""

assert all(one < next_ for one, next_ in pairwise(DELAYS))


class Restarts:
    """Counts the openings of one connection. Callers pass ``now``, in seconds on a clock that never goes back."""

    __slots__ = ("_times",)

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=MOST)

    def next(self, now: float) -> float | None:
        """Count one more opening; return the seconds to wait before it, or None when it must not be."""
        recent = sum(now - time < WINDOW for time in self._times)
        if recent == MOST:
            return None
        self._times.append(now)
        return DELAYS[recent]

    def forgiven_in(self, now: float) -> float:
        """Return the seconds until there may be an opening again."""
        return max(0.0, self._times[0] + WINDOW - now) if len(self._times) == MOST else 0.0
