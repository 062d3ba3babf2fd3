"""What both client programs share: they are told how many calls to make, make them, and say what it cost them.

An order is a line ``CALLS DEPTH`` on stdin; the answer is a line of JSON on stdout, with this process's CPU seconds.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable

Add = Callable[[int, int], Awaitable[object]]
"""Calls the tool; returns the structured content of its result."""


async def obey(add: Add) -> None:
    """Take orders until stdin ends.

    Args:
        add: Calls the server's tool ``add``.
    """
    while True:
        # The client has nothing to do between two orders, so its loop may stand still.
        order = sys.stdin.readline()
        if not order:
            return
        calls, depth = map(int, order.split())
        started = time.process_time()
        await asyncio.gather(*(_call(add, range(first, calls, depth)) for first in range(depth)))
        print(json.dumps({"seconds": time.process_time() - started}), flush=True)


async def _call(add: Add, numbers: range) -> None:
    for number in numbers:
        found = await add(number, 2)
        # Revisions before 2026-07-28 wrap what is no object, and a client may or may not take that off again.
        if found != number + 2 and found != {"result": number + 2}:
            raise SystemExit(f"add({number}, 2) came to {found!r}")
