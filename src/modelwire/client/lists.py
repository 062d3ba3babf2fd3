"""Whole lists, page by page. Knows cursors and nothing of what is listed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from modelwire.errors import MethodNotFound, ProtocolViolation

MAX_PAGES = 1000
"""How many pages of one list are followed."""


async def all_pages(method: str, field: str, fetch: Callable[[str | None], Awaitable[Any]]) -> list[Any]:
    """Return the items of every page, in order; none when the server does not know the method.

    Args:
        method: What is asked, for messages.
        field: Where a page has its items.
        fetch: Gets the page at a cursor, the first one for None.

    Raises:
        ProtocolViolation: A cursor comes again, or there are more than 1000 pages.
    """
    found: list[Any] = []
    seen: set[str] = set()
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        try:
            page = await fetch(cursor)
        except MethodNotFound:
            return found
        found += getattr(page, field)
        # An empty string is a cursor like any other: "Clients MUST treat cursors as opaque tokens".
        cursor = page.next_cursor
        if cursor is None:
            return found
        if cursor in seen:
            raise ProtocolViolation(f"the server's {method} repeats the cursor {cursor[:80]!r}: the list has no end")
        seen.add(cursor)
    raise ProtocolViolation(
        f"the server's {method} has more than {MAX_PAGES} pages; ask page by page with client.request({method!r}, ...)"
    )
