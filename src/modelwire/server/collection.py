"""What is registered, by name and in order, and which of it is there for whom.

Any thread may change a collection; requests read it on their event loops. This file lists nothing:
`modelwire.server.registry` does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Generic, TypeAlias, TypeVar

from modelwire.errors import ConfigError
from modelwire.rpc.call import Call
from modelwire.server.visibility import Guard, Visibility

T = TypeVar("T")

Answers: TypeAlias = dict[int, bool]
"""What the functions of guards said of one request, each by its identity."""
EVERYBODY = Visibility()


@dataclass(frozen=True, slots=True)
class Slot(Generic[T]):
    """An item and its place; the item is None as long as it waits for something to be defined."""

    serial: int
    item: T | None
    seen: Visibility


class Collection(Generic[T]):
    """Items by key, in the order in which they came.

    Args:
        kind: What an item is, for messages: "tool", "prompt", ...
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._lock = threading.Lock()
        self._serial = 0
        self._slots: dict[str, Slot[T]] = {}
        # The same again, those that are switched on: what everybody may see, and what a guard decides about.
        self._open: dict[str, T] = {}
        self._guarded: dict[str, tuple[Guard, T]] = {}

    # ------------------------------------------------------------------ whatever is registered

    def __len__(self) -> int:
        return len(self._slots)

    def __iter__(self) -> Iterator[T]:
        return (slot.item for slot in list(self._slots.values()) if slot.item is not None)

    def __contains__(self, key: object) -> bool:
        return key in self._slots

    def keys(self) -> list[str]:
        """Return every key, in order."""
        return list(self._slots)

    def get(self, key: str) -> T | None:
        """Return the item, whoever may see it, or None."""
        slot = self._slots.get(key)
        return None if slot is None else slot.item

    def seen(self, key: str) -> Visibility | None:
        """Return for whom an item is there; None where there is no such item."""
        slot = self._slots.get(key)
        return None if slot is None else slot.seen

    def tags(self) -> set[str]:
        """Return every tag of every item."""
        return {tag for slot in list(self._slots.values()) for tag in slot.seen.tags}

    def tagged(self, tag: str) -> list[str]:
        """Return the keys of the items with a tag."""
        return [key for key, slot in list(self._slots.items()) if tag in slot.seen.tags]

    # ------------------------------------------------------------------ changes

    def add(self, key: str, item: T | None, seen: Visibility = EVERYBODY) -> int:
        """Append an item, and return the number that it has from now on.

        Args:
            key: Its name.
            item: The item; None to keep its place until `fill`.
            seen: For whom it is there.

        Raises:
            ConfigError: There is one of that key already.
        """
        with self._lock:
            if key in self._slots:
                raise ConfigError(f"there is already a {self.kind} {key!r}; remove it first, or choose another name")
            return self._append(key, item, seen)

    def waits(self, key: str, serial: int) -> bool:
        """Whether a place is kept for an item; no longer, when that was removed meanwhile."""
        slot = self._slots.get(key)
        return slot is not None and slot.serial == serial and slot.item is None

    def fill(self, key: str, serial: int, item: T) -> None:
        """Put an item into the place that was kept for it."""
        with self._lock:
            if self.waits(key, serial):
                self._put(key, replace(self._slots[key], item=item))

    def remove(self, key: str) -> None:
        """Remove an item.

        Raises:
            ConfigError: There is none of that key.
        """
        with self._lock:
            if key not in self._slots:
                raise ConfigError(f"there is no {self.kind} {key!r} to remove")
            self._drop(key)

    def switch(self, keys: Iterable[str], on: bool) -> bool:
        """Switch items on or off, and return whether any was the other way before. Nobody is told."""
        with self._lock:
            slots = [(key, slot) for key in keys if (slot := self._slots.get(key)) is not None and slot.seen.on != on]
            for key, slot in slots:
                self._put(key, replace(slot, seen=replace(slot.seen, on=on)))
        return bool(slots)

    def _append(self, key: str, item: T | None, seen: Visibility) -> int:
        self._serial += 1
        self._put(key, Slot(self._serial, item, seen))
        return self._serial

    def _put(self, key: str, slot: Slot[T]) -> None:
        """Put a slot into its place; the lock is held. Every addition and change goes through here."""
        self._slots[key] = slot
        guard = slot.seen.guard
        if slot.item is None or not slot.seen.on:
            self._open.pop(key, None)
            self._guarded.pop(key, None)
        elif guard is None:
            self._open[key] = slot.item
        else:
            self._guarded[key] = guard, slot.item

    def _drop(self, key: str) -> None:
        """Take a slot out; the lock is held. Every removal goes through here."""
        del self._slots[key]
        self._open.pop(key, None)
        self._guarded.pop(key, None)

    # ------------------------------------------------------------------ what is there for one request

    @property
    def hides(self) -> bool:
        """Whether there is anything at this moment that not everybody may see."""
        return len(self._open) != len(self._slots)

    def find(self, key: str, call: Call) -> T | None:
        """Return the item if it is there for this request, or None."""
        item = self._open.get(key)
        if item is None and self._guarded:
            guard, guarded = self._guarded.get(key, (None, None))
            return guarded if guard is not None and guard.allows(call) else None
        return item

    def open(self, key: str) -> T | None:
        """Return the item if it is there for everybody, or None."""
        return self._open.get(key)

    def visible(self, call: Call | None) -> dict[str, T]:
        """Return what is there for this request, in order; without a request, what is there for anybody."""
        return {key: item for key, _, item in self._shown(None if call is None else self._answers(call))}

    def shows(self, call: Call | None) -> Callable[[str], bool]:
        """Return what tells of any key whether its item is there, as `visible` would."""
        answers = None if call is None else self._answers(call)
        slots = self._slots
        return lambda key: (slot := slots.get(key)) is not None and _shows(slot.seen, answers)

    def _answers(self, call: Call) -> Answers:
        """What each guard says of this request. One function may guard many items, and is asked once."""
        guards = {id(guard.function): guard for guard, _ in list(self._guarded.values())}
        return {key: guard.allows(call) for key, guard in guards.items()}

    def _shown(self, answers: Answers | None) -> list[tuple[str, int, T]]:
        return [
            (key, slot.serial, slot.item)
            for key, slot in list(self._slots.items())
            if slot.item is not None and _shows(slot.seen, answers)
        ]


def _shows(seen: Visibility, answers: Answers | None) -> bool:
    """Whether an item is there; without answers, whether it might be for anybody."""
    if not seen.on or seen.guard is None or answers is None:
        return seen.on
    return answers.get(id(seen.guard.function), False)
