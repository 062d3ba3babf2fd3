"""A clock that a test moves: deadlines pass when the test says so, and nothing really waits."""

from __future__ import annotations

import asyncio


class Clock:
    """Moves the time of the running event loop.

    Args:
        frozen: Whether time passes only when the test says so.
    """

    def __init__(self, *, frozen: bool = False) -> None:
        loop = asyncio.get_running_loop()
        real = loop.time
        began = real()
        self._ahead = 0.0
        loop.time = lambda: (began if frozen else real()) + self._ahead  # type: ignore[method-assign]

    async def advance(self, seconds: float) -> None:
        """Let time pass, and what was due happen."""
        await self.turn()
        self._ahead += seconds
        await self.turn()

    async def turn(self) -> None:
        """Let everything happen that needs no time."""
        for _ in range(10):
            await asyncio.sleep(0)
