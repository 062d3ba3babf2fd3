"""What changed, who wants to know, and what they have not been told yet. Plain values; nothing here sends.

A subscriber's news are a set, so a burst of one kind is told once, and a slow reader holds back only what it wants to
know: never more than one entry per list and per URI it follows.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from modelwire.protocol.types import SubscriptionFilter

ListName: TypeAlias = Literal["tools", "prompts", "resources"]

LISTS: Final[tuple[ListName, ...]] = ("tools", "prompts", "resources")

MAX_SUBSCRIPTIONS: Final = 10_000
"""How many URIs one subscriber may follow."""


class News:
    """What one subscriber has not been told yet, in the order in which it happened."""

    __slots__ = ("_items",)

    def __init__(self) -> None:
        self._items: dict[tuple[str, str], None] = {}

    def __bool__(self) -> bool:
        return bool(self._items)

    def add(self, kind: str, name: str) -> None:
        """Note that the list ``name`` (kind "list") or the resource ``name`` (kind "resource") changed."""
        self._items[kind, name] = None

    def take(self) -> list[tuple[str, str]]:
        """Return everything noted, and forget it."""
        taken = list(self._items)
        self._items.clear()
        return taken


def agreed(wanted: SubscriptionFilter, declared: frozenset[str]) -> SubscriptionFilter:
    """Return the part of a filter that the server honours.

    "The notifications field in the acknowledgment reflects the subset the server agreed to honor. Notification types
    the server does not support are omitted." (2026-07-28, basic/patterns/subscriptions)

    Args:
        wanted: What the client asked for.
        declared: The lists that the server has.
    """
    return SubscriptionFilter(
        tools_list_changed=True if wanted.tools_list_changed and "tools" in declared else None,
        prompts_list_changed=True if wanted.prompts_list_changed and "prompts" in declared else None,
        resources_list_changed=True if wanted.resources_list_changed and "resources" in declared else None,
        resource_subscriptions=(
            list(wanted.resource_subscriptions)
            if wanted.resource_subscriptions is not None and "resources" in declared
            else None
        ),
    )


def wants(given: SubscriptionFilter, kind: str, name: str) -> bool:
    """Whether a filter lets a piece of news through."""
    if kind == "resource":
        return name in (given.resource_subscriptions or ())
    return bool(getattr(given, f"{name}_list_changed"))


def is_below(uri: str, above: str) -> bool:
    """Whether a URI is another one, or the URI of a part of what that one names."""
    return uri == above or (uri.startswith(above) and (above[-1:] == "/" or uri[len(above)] in "/?#"))
