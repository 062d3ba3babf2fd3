"""The functions that every measured server offers, plain Python so that each library can register them.

A server is told by its first argument which of them: `ADD`, `ADD_AMONG_200`, `MANY` or `KIT`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

ADD, ADD_AMONG_200, MANY, KIT = "add", "add-among-200", "many", "kit"
MANY_COUNT = 200
GROUP = 10
"""How many functions of `benchmarks.programs.mixture` belong together."""
PAGE_URI = "bench://page"
PAGE_TEXT = "One page of text.\n" * 64
STEPS = 10
REFUSAL = "there is nothing to be done"


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def add_after_a_turn(a: int, b: int) -> int:
    """Add two numbers, once the event loop has turned."""
    await asyncio.sleep(0)
    return a + b


def add_in_thread(a: int, b: int) -> int:
    """Add two numbers, in a function that is not async."""
    return a + b


async def echo(text: str) -> str:
    """Return the text that came."""
    return text


def many(count: int) -> list[Callable[..., Any]]:
    """Return functions of five parameters, each with a name of its own."""
    return [_numbered(number) for number in range(count)]


def _numbered(number: int) -> Callable[..., Any]:
    async def search(query: str, limit: int, offset: int = 0, exact: bool = False, language: str = "en") -> str:
        """Search the collection and return the titles of what was found.

        Args:
            query: Words to look for, in any order.
            limit: How many titles to return at most.
            offset: How many titles to leave out at the start.
            exact: Whether the words must stand as they are written.
            language: The language of the collection, as a code of two letters.
        """
        return f"{query} {limit} {offset} {exact} {language}"

    search.__name__ = search.__qualname__ = f"search_{number}"
    return search


def functions(chosen: str) -> list[Callable[..., Any]]:
    """Return what the server's first argument stands for; `KIT` has more, which needs the library itself."""
    return {
        ADD: [add],
        ADD_AMONG_200: [add, *many(MANY_COUNT - 1)],
        MANY: many(MANY_COUNT),
        KIT: [add, add_after_a_turn, add_in_thread],
    }[chosen]
