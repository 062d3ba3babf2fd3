"""Decoded JSON: which kind a value is, told in a way that type checkers follow, what is in it, and how deep it is."""

from __future__ import annotations

import marshal
from collections.abc import Iterable
from typing import Any, TypeGuard


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether this is a JSON object."""
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Whether this is a JSON array."""
    return isinstance(value, list)


def members_of(value: Any) -> Iterable[Any]:
    """Return what an object or an array holds; nothing for other values."""
    if is_object(value):
        return value.values()
    return value if is_list(value) else ()


def copied(value: Any) -> Any:
    """Return decoded JSON that shares no object and no array with ``value``."""
    try:
        return marshal.loads(marshal.dumps(value))  # several times as fast as what follows
    except ValueError:  # a subclass of text somewhere, say
        return _copied(value)


def _copied(value: Any) -> Any:
    if is_object(value):
        return {name: _copied(item) for name, item in value.items()}
    return [_copied(item) for item in value] if is_list(value) else value


def depth(value: Any, most: int) -> int:
    """Return how many objects and arrays with members stand within each other, ``most + 1`` for more than ``most``."""
    level: list[Any] = [value]
    found = -1
    while level and found <= most:
        found += 1
        level = [inner for item in level if is_object(item) or is_list(item) for inner in members_of(item)]
    return found
