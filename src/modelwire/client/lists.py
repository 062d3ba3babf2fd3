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
        ProtocolViolation: There are more than 1000 pages.
    """
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        try:
            page = await fetch(cursor)
        except MethodNotFound:
            return found
        found += getattr(page, field)
        # One that is empty or was there before is a cursor like any other: "Don't make any determination based on
        # cursor value other than whether a non-null value was provided" (2026-07-28, server/utilities/pagination).
        cursor = page.next_cursor
        if cursor is None:
            return found
    raise ProtocolViolation(
        f"the server's {method} has more than {MAX_PAGES} pages; ask page by page with client.request({method!r}, ...)"
    )
