"""The ordered collections that lists are made of: tools, resources, templates, prompts.

A registry keeps the order of registration, hands out pages, and keeps each page encoded until something changes, since
clients ask for the same list again and again. It does not know what the items do.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from modelwire.errors import INVALID_PARAMS, ConfigError, RpcError
from modelwire.protocol import wire
from modelwire.rpc.call import Call

T = TypeVar("T")

_MAX_PAGES = 1024


class Registry(Generic[T]):
    """Items by key, in the order in which they came.

    Args:
        kind: What an item is, for messages: "tool", "prompt", ...
        definition: Returns what a list says of an item.
        result: Builds the list's result from definitions and the cursor of the next page.
        page_size: Items per page; None for everything at once.
        server_info: Our identity as JSON, for stamped results.
        changed: Called after an item came or went.
    """

    def __init__(
        self,
        kind: str,
        *,
        definition: Callable[[T], Any],
        result: Callable[[list[Any], str | None], Any],
        page_size: int | None,
        server_info: bytes,
        changed: Callable[[], None],
    ) -> None:
        self.kind = kind
        self._definition = definition
        self._result = result
        self._page_size = page_size
        self._server_info = server_info
        self._changed = changed
        self._items: dict[str, tuple[int, T]] = {}
        self._serial = 0
        self._pages: dict[tuple[str, str | None], bytes] = {}

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        return (item for _, item in self._items.values())

    def __contains__(self, key: object) -> bool:
        return key in self._items

    def keys(self) -> list[str]:
        """Return every key, in order."""
        return list(self._items)

    def get(self, key: str) -> T | None:
        """Return the item, or None."""
        found = self._items.get(key)
        return None if found is None else found[1]

    def add(self, key: str, item: T) -> None:
        """Append an item.

        Raises:
            ConfigError: There is one of that key already.
        """
        if key in self._items:
            raise ConfigError(f"there is already a {self.kind} {key!r}; remove it first, or choose another name")
        self._serial += 1
        self._items = {
            **self._items,
            key: (self._serial, item),
        }  # a new dict: another thread may be reading the old one
        self._pages.clear()
        self._changed()

    def remove(self, key: str) -> None:
        """Remove an item.

        Raises:
            ConfigError: There is none of that key.
        """
        if key not in self._items:
            raise ConfigError(f"there is no {self.kind} {key!r} to remove")
        self._items = {name: entry for name, entry in self._items.items() if name != key}
        self._pages.clear()
        self._changed()

    def replace(self, gone: Iterable[str], items: Mapping[str, T]) -> None:
        """Take items out and put others in, at once; one that is there already keeps its place.

        Args:
            gone: Keys of those to take out; one that is not there is ignored.
            items: Those to put in, in order.
        """
        leaving = set(gone)
        kept = {key: entry for key, entry in self._items.items() if key not in leaving}
        for key, item in items.items():
            if key in kept:
                kept[key] = (kept[key][0], item)
            else:
                self._serial += 1
                kept[key] = (self._serial, item)
        came_or_went = kept.keys() != self._items.keys()
        self._items = kept
        self._pages.clear()
        if came_or_went:
            self._changed()

    def definitions(self) -> list[Any]:
        """Return what a list says of every item."""
        return [self._definition(item) for item in self]

    def page(self, call: Call) -> bytes:
        """Answer a list request: the JSON of the page that its cursor names.

        Raises:
            RpcError: The cursor is not one of ours ("Invalid cursors SHOULD result in an error with code -32602").
        """
        cursor: str | None = call.params.cursor
        key = (call.peer.revision.name, cursor)
        encoded = self._pages.get(key)
        if encoded is None:
            result = self._result(*self._slice(cursor))
            encoded = wire.encode_result(result, call.method, call.peer.revision, self._server_info)
            if len(self._pages) < _MAX_PAGES:
                self._pages[key] = encoded
        return encoded

    def _slice(self, cursor: str | None) -> tuple[list[Any], str | None]:
        # A cursor names the item before the page, so that neither additions nor removals shift what follows.
        after = 0 if cursor is None else self._serial_of(cursor)
        rest = [(serial, item) for serial, item in self._items.values() if serial > after]
        if self._page_size is None or len(rest) <= self._page_size:
            return [self._definition(item) for _, item in rest], None
        page = rest[: self._page_size]
        return [self._definition(item) for _, item in page], self._cursor(page[-1][0])

    def _cursor(self, serial: int) -> str:
        return base64.urlsafe_b64encode(f"{self.kind}:{serial}".encode()).decode().rstrip("=")

    def _serial_of(self, cursor: str) -> int:
        for serial, _ in self._items.values():
            if self._cursor(serial) == cursor:
                return serial
        # The item may have been removed since the cursor was given out.
        try:
            text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
        except ValueError:
            text = ""
        kind, _, number = text.rpartition(":")
        serial = int(number) if number.isascii() and number.isdigit() and len(number) < 10 else 0
        if kind != self.kind or not 0 < serial <= self._serial or self._cursor(serial) != cursor:
            raise RpcError(INVALID_PARAMS, f"Invalid cursor {cursor[:80]!r}: start again without one")
        return serial
