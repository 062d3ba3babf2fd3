"""How clients may keep what they are told, as people say it of lists and resources: for how long, and for whom.

It becomes ``ttlMs`` and ``cacheScope`` of a result (2026-07-28). `modelwire.protocol.wire` leaves both out where the
revision lacks them, and stamps 0 and ``private`` where nobody has said anything. Nothing is kept here.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast

from modelwire.errors import ConfigError
from modelwire.protocol import types as t
from modelwire.server.names import did_you_mean
from modelwire.server.visibility import Visibility

R = TypeVar("R", bound=t.CacheableResult)

ListKind: TypeAlias = Literal["tools", "prompts", "resources", "templates", "discover"]
"""What clients may keep besides resources: the lists, and what ``server/discover`` says."""
KINDS: Final[tuple[ListKind, ...]] = ("tools", "prompts", "resources", "templates", "discover")
_LONGEST: Final = 1 << 53
"""Milliseconds that every reader of JSON can read."""


@dataclass(frozen=True, slots=True)
class Caching:
    """How one list or resource may be kept.

    Args:
        ttl_ms: For how many milliseconds it is fresh.
        shared: Whether what one client was told may be told to others.
    """

    ttl_ms: int = 0
    shared: bool = False

    def stamp(self, result: R, *, personal: bool = False) -> R:
        """Return a result with what is said here; what it says itself stays.

        Args:
            result: The result; it is not changed.
            personal: It was made for whoever asked, so nobody may share it.
        """
        if self is NOT_KEPT:
            return result
        stamped = copy.copy(result)
        if stamped.ttl_ms is None:
            stamped.ttl_ms = self.ttl_ms
        if stamped.cache_scope is None:
            stamped.cache_scope = "public" if self.shared and not personal else "private"
        return stamped


NOT_KEPT: Final = Caching()


def caching(what: str, ttl: Any, shared: Any, seen: Visibility) -> Caching:
    """Return what was asked for at registration.

    Args:
        what: The list or resource, for messages.
        ttl: Seconds; None for 0.
        shared: True or False.
        seen: For whom it is there.

    Raises:
        ConfigError: These are other things, or what is there for some only is to be shared.
    """
    if not isinstance(shared, bool):
        raise ConfigError(f"{what}: shared= is True or False, not {shared!r}")
    if shared and seen.guard is not None:
        raise ConfigError(
            f"{what}: shared=True lets anybody have what one client was told, and enabled= decides for whom it is "
            "there; leave one of them out"
        )
    return _caching(_milliseconds(what, ttl), shared)


def list_caching(ttl: Any, shared: Any) -> dict[ListKind, Caching]:
    """Return how each list may be kept.

    Args:
        ttl: Seconds, for all; or by list.
        shared: True for all; or the lists that are.

    Raises:
        ConfigError: These are other things, or name no list.
    """
    if isinstance(ttl, Mapping):
        times = dict(cast("Mapping[Any, Any]", ttl))
        _check_kinds("list_ttl", times)
    else:
        times = dict.fromkeys(KINDS, ttl)
    if isinstance(shared, bool):
        common = set(KINDS) if shared else set[Any]()
    elif isinstance(shared, Collection) and not isinstance(shared, str | bytes | Mapping):
        common = set(cast("Collection[Any]", shared))
        _check_kinds("list_shared", common)
    else:
        raise ConfigError(f"list_shared= is True, False or a set of lists, such as {{'tools'}}, not {shared!r}")
    return {kind: _caching(_milliseconds("list_ttl", times.get(kind)), kind in common) for kind in KINDS}


def _caching(ttl_ms: int, shared: bool) -> Caching:
    return Caching(ttl_ms, shared) if ttl_ms or shared else NOT_KEPT


def _check_kinds(setting: str, given: Collection[Any]) -> None:
    for name in given:
        if name not in KINDS:
            near = did_you_mean(str(name), KINDS)
            raise ConfigError(f"{setting}= names lists, which are {', '.join(KINDS)}; {name!r} is none{near}")


def _milliseconds(what: str, ttl: Any) -> int:
    if ttl is None:
        return 0
    # NaN compares with nothing, and fails both.
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not 0 <= ttl <= _LONGEST / 1000:
        raise ConfigError(f"{what}: ttl is a number of seconds from 0 on, for which clients may keep it, not {ttl!r}")
    return max(round(ttl * 1000), 1) if ttl else 0
