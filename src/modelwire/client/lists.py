"""Whole lists, page by page. Knows cursors and nothing of what is listed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from modelwire.client.contact import Contact
from modelwire.client.contacts import Contacts
from modelwire.errors import ConnectionLost, InvalidParams, MethodNotFound, ProtocolViolation

MAX_PAGES = 1000
"""How many pages of one list are followed."""


async def whole_list(
    method: str,
    field: str,
    page: Callable[[str | None, Contact | None], Awaitable[Any]],
    contacts: Contacts,
    forget: Callable[[], bool],
) -> list[Any]:
    """Return the items of every page; begun anew, once, where a cursor turns out to mean nothing any more.

    Args:
        method: What is asked, for messages.
        field: Where a page has its items.
        page: Gets the page at a cursor, over one connection only where there is one.
        contacts: The connections: a cursor is good for the one that it came over.
        forget: Forgets the pages that are kept, and says whether there were any.

    Raises:
        ProtocolViolation: There are more than 1000 pages.
    """
    contact: Contact | None = None

    async def fetch(cursor: str | None) -> Any:
        nonlocal contact
        found = await page(cursor, contact)
        here = contacts.here()
        if contact is None and here.opened is not None:  # else nobody was there, and the page is one that was kept
            contact = here
        return found

    try:
        return await all_pages(method, field, fetch)
    except ConnectionLost:
        # The cursor of a server that is gone means nothing to the one that comes after it.
        if contact is None or not contacts.comes_back:
            raise
    except InvalidParams:
        # "If a cursor becomes invalid [...], the client SHOULD discard all cached pages and re-fetch from the
        # beginning" (2026-07-28, server/utilities/caching)
        if contact is None or not forget():
            raise
    contact = None
    return await all_pages(method, field, fetch)


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
