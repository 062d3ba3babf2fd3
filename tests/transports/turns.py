"""What several tests of streams need: to see whether a coroutine waits, and to let the loop turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest


def without_suspension(awaitable: Awaitable[Any]) -> Any:
    """Run a coroutine that must finish without giving up the loop."""
    step = awaitable.__await__()
    with pytest.raises(StopIteration) as done:
        next(step)
    return done.value.value


async def let_others_run(turns: int = 5) -> None:
    """Give the loop some turns."""
    for _ in range(turns):
        await asyncio.sleep(0)
