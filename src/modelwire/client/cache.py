"""What a client keeps of its server's answers, where the revision has it (2026-07-28): settings, and when to use it.

Which answers may be used again is decided by `modelwire.rules.cache`. An answer is kept as the bytes that came, and
read anew for each caller, so that nobody can spoil another one's. It belongs to the connection that it came over: when
that is lost it is no longer fresh, and when another one has taken its place it is gone, for there may be another
server. Nothing is sent here, and nothing is shared between clients.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from msgspec import Raw

from modelwire.client.connect import Opened
from modelwire.client.contacts import Contacts
from modelwire.errors import (
    INTERNAL_ERROR,
    ConfigError,
    ConnectionFailed,
    ConnectionLost,
    InvalidParams,
    MethodNotFound,
    ModelwireError,
    PeerError,
    ProtocolViolation,
    RequestTimeout,
)
from modelwire.log import log as _log
from modelwire.protocol import types as t
from modelwire.rules.cache import Asked, Key, Store

T = TypeVar("T")

_NOBODY_ANSWERED = (ConnectionLost, ConnectionFailed, RequestTimeout, ProtocolViolation)
"""The errors in whose place an older answer may be used, if the user wants it so: nobody has said that it is wrong."""


@dataclass(frozen=True, slots=True)
class Cache:
    """What a client keeps of its server's lists and resources while they are fresh (2026-07-28).

    How long that is, the server says with each; most say nothing, and nothing is kept. These are settings: two clients
    that are given the same ones share no answers, for they may be different people to their servers.

    Args:
        entries: How many answers are kept, pages and resources; what was not used for longest gives way.
        bytes: What they may hold together.
        max_ttl: Seconds for which an answer is fresh at most, whatever the server says.
        stale_if_error: Seconds for which an answer is used that is no longer fresh, where the server cannot be reached,
            does not answer in time, or fails (-32603); the log says so. None: the error is raised.
    """

    entries: int = 1000
    bytes: int = 16 << 20
    max_ttl: float = 86_400
    stale_if_error: float | None = None

    def __post_init__(self) -> None:
        for name in ("entries", "bytes"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ConfigError(f"cache: {name} is a whole number from 1 on, not {value!r}")
        for name in ("max_ttl", "stale_if_error"):
            value: Any = getattr(self, name)
            if not (_is_seconds(value) or (value is None and name == "stale_if_error")):
                raise ConfigError(f"cache: {name} is a number of seconds above 0, not {value!r}")


def _is_seconds(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


def settings(given: Any) -> Cache | None:
    """Return what was given as ``cache=`` as settings; None to keep nothing.

    Raises:
        ConfigError: It is something else.
    """
    if isinstance(given, bool):
        return Cache() if given else None
    if not isinstance(given, Cache):
        raise ConfigError(f"cache= is True, False or a Cache(...), not {given!r}")
    return given


class Kept:
    """What one client keeps.

    Args:
        settings: How much, and for how long; None for nothing.
        contacts: The connections that answers come over.
    """

    def __init__(self, settings: Cache | None, contacts: Contacts) -> None:
        self._contacts = contacts
        self._off = settings is None
        settings = settings or Cache()
        self._opened: Opened | None = None
        """The opening of the connection that everything here came over."""
        self._store = Store(
            entries=settings.entries,
            size=settings.bytes,
            max_ttl=settings.max_ttl,
            grace=settings.stale_if_error or 0.0,
        )
        self.heard = self._store.heard
        """Takes in a notification, before anybody else hears it."""
        self.forget = self._store.forget
        self.clear = self._store.clear

    async def get(
        self, key: Key, ask: Callable[[Asked | None], Awaitable[T]], decode: Callable[[Raw], T], *, fresh: bool
    ) -> T:
        """Return the answer that is kept and fresh, or else what asking comes to.

        Two who ask for the same at the same time both ask: each has a deadline of its own, and may give up.

        Args:
            key: What is asked for.
            ask: Sends the request, and hands what comes to `answered` where it is given something to note it by.
            decode: Reads an answer.
            fresh: Ask in any case.
        """
        if not fresh and self._fresh(key) is not None:
            await asyncio.sleep(0)  # who asks in a loop lets the news come in
            found = self._fresh(key)
            if found is not None:
                return decode(Raw(found))
        asked = self._begin(key)
        if asked is None:
            return await ask(None)
        try:
            return await ask(asked)
        except ModelwireError as error:
            self._failed(asked, error)
            found = None if fresh else self._instead(asked, error)
            if found is None:
                raise
            return decode(Raw(found))
        finally:
            self._store.done(asked)

    def _fresh(self, key: Key) -> bytes | None:
        if not self._store:  # nearly always
            return None
        self._check_opening()
        now = self._now()
        return self._store.fresh(key, now) if self._contacts.connected else None

    def _begin(self, key: Key) -> Asked | None:
        """Note that a request begins. None where the revision, or the user, has nothing kept."""
        self._check_opening()
        return None if self._off or not self._contacts.opened.revision.stamped_results else self._store.ask(key)

    def answered(self, asked: Asked, raw: Raw, result: t.Received) -> None:
        """Take in the answer to the request itself; not that to a retry with answers to questions."""
        if self._contacts.opened is not self._opened:
            return  # it was sent again over another connection
        if isinstance(result, t.CacheableResult):
            self._store.keep(asked, raw, result.ttl_ms, self._now())
        else:  # a question
            self._store.refused(asked)

    def _failed(self, asked: Asked, error: Exception) -> None:
        """Note that the request failed; a refusal is its answer."""
        if isinstance(error, PeerError) and error.code != INTERNAL_ERROR:
            self._store.refused(asked)

    def _instead(self, asked: Asked, error: Exception) -> bytes | None:
        """Return an older answer to use where asking has failed; None where there is none, or the error is one."""
        if isinstance(error, PeerError):
            wanted = error.code == INTERNAL_ERROR
        else:
            wanted = isinstance(error, _NOBODY_ANSWERED)
        if not wanted or self._contacts.closed:
            return None
        self._check_opening()
        found = self._store.stale(asked.key, self._now())
        if found is None:
            return None
        data, age = found
        _log.warning("%s failed, and what came %.3g s ago is used in its place: %s", _named(asked.key), age, error)
        return data

    def doubt(self, method: str, error: Exception) -> None:
        """Note that a request was refused: what was listed may no longer be there."""
        if isinstance(error, InvalidParams | MethodNotFound):
            self._store.doubt(method)

    def _check_opening(self) -> None:
        """Forget everything once another connection has taken the place of the one that it came over."""
        opened = self._contacts.opened
        if opened is not self._opened:
            self._store.clear()
            self._opened = opened

    def _now(self) -> float:
        return self._contacts.here().loop.time()


def _named(key: Key) -> str:
    method, name = key
    return method if name is None else f"{method} of {name!r:.200}"
