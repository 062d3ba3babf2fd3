"""The collections that lists are made of: tools, resources, templates, prompts.

A registry hands out pages, and keeps each page encoded until something changes, since clients ask for the same list
again and again. It does not know what the items do.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

from modelwire.errors import INVALID_PARAMS, ConfigError, RpcError
from modelwire.protocol import wire
from modelwire.protocol.revisions import LATEST
from modelwire.rpc.call import Call
from modelwire.server.caching import Caching
from modelwire.server.collection import EVERYBODY, Answers, Collection, Slot
from modelwire.server.visibility import Visibility

T = TypeVar("T")

_MAX_PAGES = 1024
_PageKey: TypeAlias = tuple[str, str | None, tuple[bool, ...]]
"""The revision, the cursor, and what each guard said."""


def refuse_unwritable(what: str, definition: Any) -> None:
    """Refuse an item that would make every list fail that it is in.

    Args:
        what: The item, for the message.
        definition: What a list says of it.

    Raises:
        ConfigError: It cannot be written as JSON.
    """
    try:
        wire.encode(definition, LATEST)
    except wire.WireError as error:
        raise ConfigError(f"{what}: {error}") from None


class Registry(Collection[T]):
    """Items that are listed.

    Args:
        kind: What an item is, for messages: "tool", "prompt", ...
        definition: Returns what a list says of an item.
        result: Builds the list's result from definitions and the cursor of the next page.
        page_size: Items per page; None for everything at once.
        server_info: Our identity as JSON, for stamped results.
        caching: How clients may keep the list. Where a function decides about an item, nobody may share it.
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
        caching: Caching,
        changed: Callable[[], None],
    ) -> None:
        super().__init__(kind)
        self._definition = definition
        self._result = result
        self._page_size = page_size
        self._server_info = server_info
        self._caching = caching
        self._changed = changed
        # Replaced at every change, after the items: who made a page of the old ones puts it where nobody looks.
        self._pages: dict[_PageKey, bytes] = {}

    # ------------------------------------------------------------------ changes

    def add(self, key: str, item: T | None, seen: Visibility = EVERYBODY) -> int:
        """Append an item, as any collection does; clients are told.

        Raises:
            ConfigError: There is one of that key already, or what a list would say of it cannot be written as JSON.
        """
        if item is not None:
            refuse_unwritable(f"{self.kind} {key!r}", self._definition(item))
        serial = super().add(key, item, seen)
        self._changed()
        return serial

    def fill(self, key: str, serial: int, item: T) -> None:
        """Put an item into the place that was kept for it, as any collection does.

        Raises:
            ConfigError: What a list would say of it cannot be written as JSON.
        """
        refuse_unwritable(f"{self.kind} {key!r}", self._definition(item))
        super().fill(key, serial, item)

    def remove(self, key: str) -> None:
        """Remove an item, as any collection does; clients are told."""
        super().remove(key)
        self._changed()

    def replace(self, gone: Iterable[str], items: Mapping[str, T], seen: Mapping[str, Visibility]) -> None:
        """Take items out and put others in, at once; one that is there already keeps its place, and for whom it is.

        Args:
            gone: Keys of those to take out; one that is not there is ignored.
            items: Those to put in, in order.
            seen: For whom the new ones are there.
        """
        with self._lock:
            before = set(self._slots)
            for key in gone:
                if key in self._slots:
                    self._drop(key)
            for key, item in items.items():
                slot = self._slots.get(key)
                if slot is None:
                    self._append(key, item, seen.get(key, EVERYBODY))
                else:
                    self._put(key, Slot(slot.serial, item, slot.seen))
            came_or_went = before != set(self._slots)
        if came_or_went:
            self._changed()

    def _put(self, key: str, slot: Slot[T]) -> None:
        super()._put(key, slot)
        self._pages = {}

    def _drop(self, key: str) -> None:
        super()._drop(key)
        self._pages = {}

    # ------------------------------------------------------------------ lists

    def definitions(self) -> list[Any]:
        """Return what a list says of every item that is there for everybody."""
        return [self._definition(item) for _, _, item in self._shown({})]

    def page(self, call: Call) -> bytes:
        """Answer a list request: the JSON of the page that its cursor names.

        Raises:
            RpcError: The cursor is not one of ours ("Invalid cursors SHOULD result in an error with code -32602").
        """
        pages = self._pages
        cursor: str | None = call.params.cursor
        answers = self._answers(call) if self._guarded else {}
        key = (call.peer.revision.name, cursor, tuple(answers.values()))
        encoded = pages.get(key)
        if encoded is None:
            result = self._result(*self._slice(cursor, answers))
            result = self._caching.stamp(result, personal=bool(self._guarded))
            encoded = wire.encode_result(result, call.method, call.peer.revision, self._server_info)
            with self._lock:
                if len(pages) >= _MAX_PAGES:
                    del pages[next(iter(pages))]
                pages[key] = encoded
        return encoded

    def _slice(self, cursor: str | None, answers: Answers) -> tuple[list[Any], str | None]:
        # A cursor names the item before the page, so that neither additions nor removals shift what follows.
        after = 0 if cursor is None else self._serial_of(cursor)
        rest = [(serial, item) for _, serial, item in self._shown(answers) if serial > after]
        if self._page_size is None or len(rest) <= self._page_size:
            return [self._definition(item) for _, item in rest], None
        page = rest[: self._page_size]
        return [self._definition(item) for _, item in page], self._cursor(page[-1][0])

    def _cursor(self, serial: int) -> str:
        return base64.urlsafe_b64encode(f"{self.kind}:{serial}".encode()).decode().rstrip("=")

    def _serial_of(self, cursor: str) -> int:
        # The item may have been removed or hidden since the cursor was given out; its place is known all the same.
        try:
            text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
        except ValueError:
            text = ""
        kind, _, number = text.rpartition(":")
        serial = int(number) if number.isascii() and number.isdigit() and len(number) < 20 else 0
        if kind != self.kind or not 0 < serial <= self._serial or self._cursor(serial) != cursor:
            raise RpcError(INVALID_PARAMS, f"Invalid cursor {cursor[:80]!r}: start again without one")
        return serial
