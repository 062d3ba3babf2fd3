"""What a client keeps of a server's answers: which may be used again, for how long, and what takes them back.

By 2026-07-28, server/utilities/caching. An answer is known by its method and the one parameter that it depends on. It
is fresh while ``now < received + ttlMs``, and gone at once when

- a notification says that what it was made of has changed,
- an error gives reason to doubt it,
- a later request for the same was answered otherwise.

An answer to a request that had begun before such news is not kept either: nobody knows which came first. All answers
of a `Store` are for one principal, so ``cacheScope`` changes nothing: a ``private`` answer may be used again by whom it
was made for, and only a cache that several principals share would have to tell it from a ``public`` one.

Answers are bytes. Who asks, and what an answer means, is `modelwire.client.cache`'s business.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec

from modelwire.rules.subscriptions import is_below

Key: TypeAlias = tuple[str, str | None]
"""A method, and what its result depends on: the URI of ``resources/read``, the cursor of a list."""

_RESOURCE_LISTS = ("resources/list", "resources/templates/list")
CHANGED: Final[dict[str, tuple[str, ...]]] = {
    "notifications/tools/list_changed": ("tools/list",),
    "notifications/prompts/list_changed": ("prompts/list",),
    "notifications/resources/list_changed": _RESOURCE_LISTS,
}
"""The lists that a notification says have changed, every page of them."""
UPDATED: Final = "notifications/resources/updated"
DOUBTED: Final[dict[str, tuple[str, ...]]] = {
    "tools/call": ("tools/list",),
    "prompts/get": ("prompts/list",),
    "resources/read": _RESOURCE_LISTS,
}
"""The lists to doubt when a request is refused because there is no such thing, or not with such arguments: "Clients MAY
re-fetch before the TTL expires if they have reason to believe the data has changed"."""


class _Uri(msgspec.Struct):
    uri: str


_decode_uri = msgspec.json.Decoder(_Uri).decode


class Asked:
    """A request that is under way, whose answer may be kept."""

    __slots__ = ("key", "number")

    def __init__(self, key: Key, number: int) -> None:
        self.key = key
        self.number = number


class _Open:
    """The requests for one thing that are under way."""

    __slots__ = ("count", "overtaken")

    def __init__(self) -> None:
        self.count = 0
        self.overtaken = 0
        """The number of the last request that began before what was asked for changed, or was answered otherwise."""


class _Answer:
    __slots__ = ("data", "received", "until")

    def __init__(self, data: bytes, received: float, until: float) -> None:
        self.data = data
        self.received = received
        self.until = until


class Store:
    """The answers of one server to one principal. Callers pass ``now``, in seconds on a clock that never goes back.

    Args:
        entries: How many answers there may be; the one that was not used for longest gives way.
        size: How many bytes they may have together.
        max_ttl: Seconds after which none is fresh any more, whatever its server says.
        grace: Seconds for which an answer is kept on when it is no longer fresh, for `stale`.
    """

    def __init__(self, *, entries: int, size: int, max_ttl: float, grace: float = 0.0) -> None:
        self._most = entries
        self._max_size = size
        self._max_ttl = max_ttl
        self._grace = grace
        self._answers: dict[Key, _Answer] = {}
        self._open: dict[Key, _Open] = {}
        self._count = 0
        self.size = 0
        """The bytes that are kept."""

    def __len__(self) -> int:
        return len(self._answers)

    # ------------------------------------------------------------------ finding

    def fresh(self, key: Key, now: float) -> bytes | None:
        """Return the answer that may be used instead of asking; None where there is none."""
        found = self._answers.get(key)
        if found is None or now >= found.until:
            if found is not None and now >= found.until + self._grace:
                self._drop(key)
            return None
        self._answers[key] = self._answers.pop(key)  # used last
        return found.data

    def stale(self, key: Key, now: float) -> tuple[bytes, float] | None:
        """Return what may be used where asking has failed, and how many seconds ago it was received.

        None where there is nothing, and always without grace.
        """
        found = self._answers.get(key)
        if found is None or not self._grace or now >= found.until + self._grace:
            return None
        return found.data, now - found.received

    # ------------------------------------------------------------------ keeping

    def ask(self, key: Key) -> Asked:
        """Note that a request begins; `done` must follow."""
        self._count += 1
        self._open.setdefault(key, _Open()).count += 1
        return Asked(key, self._count)

    def keep(self, asked: Asked, data: bytes | msgspec.Raw, ttl_ms: int | None, now: float) -> None:
        """Take in the answer to a request, if it is worth it.

        Args:
            asked: The request.
            data: The answer.
            ttl_ms: For how long its server says that it is fresh; None, and what is below 0, are as 0: "clients SHOULD
                ignore it and treat it as 0".
            now: When it was received.
        """
        if not self._supersede(asked):
            return
        key = asked.key
        fresh = 0.0 if ttl_ms is None or ttl_ms <= 0 else min(ttl_ms, self._max_ttl * 1000) / 1000
        size = _size(key, data)
        if fresh + self._grace > 0 and size <= self._max_size and self._most:
            self._answers[key] = _Answer(bytes(data), now, now + fresh)
            self.size += size
            while len(self._answers) > self._most or self.size > self._max_size:
                self._drop(next(iter(self._answers)))

    def done(self, asked: Asked) -> None:
        """Note that a request is over, in whatever way."""
        others = self._open[asked.key]
        others.count -= 1
        if not others.count:
            del self._open[asked.key]

    # ------------------------------------------------------------------ taking back

    def heard(self, method: str, params: bytes | msgspec.Raw) -> None:
        """Take in a notification."""
        if method in CHANGED:
            self.forget(*CHANGED[method])
        elif method == UPDATED:
            try:
                uri = _decode_uri(params).uri
            except (msgspec.MsgspecError, UnicodeError, RecursionError):
                self.forget("resources/read")  # one of them, and nobody knows which
            else:
                self._forget(lambda key: key[0] == "resources/read" and _related(str(key[1]), uri))

    def doubt(self, method: str) -> None:
        """Note that a request was refused as naming something that is not there, or wrongly."""
        self.forget(*DOUBTED.get(method, ()))

    def refused(self, asked: Asked) -> None:
        """Note that what was asked for was answered with an error, or a question: that is the answer now."""
        self._supersede(asked)

    def forget(self, *methods: str) -> bool:
        """Forget every answer to these methods; return whether there was one."""
        return self._forget(lambda key: key[0] in methods) if methods else False

    def clear(self) -> None:
        """Forget everything."""
        self._forget(lambda key: True)

    def _supersede(self, asked: Asked) -> bool:
        """Forget what there is to a request that is answered, and what may still come to earlier ones.

        False where the answer is overtaken itself.
        """
        others = self._open[asked.key]
        if asked.number <= others.overtaken:
            return False
        others.overtaken = asked.number
        self._drop(asked.key)
        return True

    def _forget(self, concerns: Callable[[Key], bool]) -> bool:
        for key, others in self._open.items():
            if concerns(key):
                others.overtaken = self._count
        concerned = [key for key in self._answers if concerns(key)]
        for key in concerned:
            self._drop(key)
        return bool(concerned)

    def _drop(self, key: Key) -> None:
        dropped = self._answers.pop(key, None)
        if dropped is not None:
            self.size -= _size(key, dropped.data)


def _size(key: Key, data: bytes | msgspec.Raw) -> int:
    return len(data) + len(key[1] or "")


def _related(kept: str, updated: str) -> bool:
    """Whether what is kept of one URI may be another thing now that another one was updated.

    What lies below it was part of it. What lies above may show it, as a folder does: the URI of the notification "might
    be a sub-resource of the one that the client actually subscribed to" (schema).
    """
    return is_below(kept, updated) or is_below(updated, kept)
