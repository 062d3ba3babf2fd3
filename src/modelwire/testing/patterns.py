"""JSON patterns: what a test expects of a message, and what is different about the one that came.

A pattern is a value like the one expected, in which

- ``...`` stands for any value, a type such as ``str`` for any value of it, a compiled regular expression for a string
  that it is found in, and a function for what it returns true for;
- an object names the members that matter: others may be there. ``Exactly({...})`` allows no others, and a member whose
  pattern is `Absent` must not be there;
- a list has as many items, unless it ends in ``...``.

Everything else is compared as JSON does: ``1`` is ``1.0``, and no truth value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, cast


class _Absent:
    def __repr__(self) -> str:
        return "Absent"


Absent: Final[Any] = _Absent()
"""The pattern of a member that must not be there."""

SHOWN = 200
"""Characters of a value that a difference shows."""


class Exactly:
    """An object with just these members.

    Args:
        members: Their patterns.
    """

    def __init__(self, members: Mapping[str, Any]) -> None:
        self.members = members

    def __repr__(self) -> str:
        return f"Exactly({dict(self.members)!r})"


def differences(value: Any, pattern: Any, where: str = "") -> list[str]:
    """Return what is different about a value, one line each; nothing when it is as the pattern has it.

    Args:
        value: The value, as JSON has it.
        pattern: What is expected of it.
        where: What the value is part of, for the lines: ``params.arguments``.

    Example:
        >>> differences({"id": 1, "method": "ping"}, {"method": "ping"})
        []
        >>> differences({"params": {"name": "add"}}, {"params": {"name": "sub", "arguments": {}}})
        ['params.name: expected "sub", got "add"', 'params.arguments: missing']
    """
    if pattern is ...:
        return []
    if isinstance(pattern, Mapping):
        return _of_object(value, cast("Mapping[str, Any]", pattern), where)
    if isinstance(pattern, Exactly):
        rest = sorted(set(cast("dict[str, Any]", value)) - set(pattern.members)) if isinstance(value, dict) else []
        return [
            *_of_object(value, pattern.members, where),
            *(f"{_at(where, name)}: not expected, got {shown(value[name])}" for name in rest),
        ]
    if isinstance(pattern, list):
        return _of_list(value, cast("list[Any]", pattern), where)
    return [] if _fits(value, pattern) else [f"{where or 'value'}: expected {_asked(pattern)}, got {shown(value)}"]


def _of_object(value: Any, pattern: Mapping[str, Any], where: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{where or 'value'}: expected an object, got {shown(value)}"]
    members = cast("dict[str, Any]", value)
    found: list[str] = []
    for name, expected in pattern.items():
        at = _at(where, name)
        if expected is Absent:
            found += [f"{at}: must not be there, got {shown(members[name])}"] if name in members else []
        elif name not in members:
            found.append(f"{at}: missing")
        else:
            found += differences(members[name], expected, at)
    return found


def _of_list(value: Any, pattern: list[Any], where: str) -> list[str]:
    if not isinstance(value, list):
        return [f"{where or 'value'}: expected a list, got {shown(value)}"]
    items = cast("list[Any]", value)
    is_open = pattern[-1:] == [...]
    expected = pattern[:-1] if is_open else pattern
    found: list[str] = []
    for at, (item, one) in enumerate(zip(items, expected)):
        found += differences(item, one, f"{where}[{at}]")
    if len(items) < len(expected) or (len(items) > len(expected) and not is_open):
        count = f"{len(expected)} or more" if is_open else f"{len(expected)}"
        found.append(f"{where or 'value'}: expected {count} items, got {len(items)}: {shown(items)}")
    return found


def _fits(value: Any, pattern: Any) -> bool:
    if isinstance(pattern, type):
        return isinstance(value, pattern) and (pattern is bool or pattern is object or not isinstance(value, bool))
    if isinstance(pattern, re.Pattern):
        return isinstance(value, str) and cast("re.Pattern[str]", pattern).search(value) is not None
    if callable(pattern):
        return bool(pattern(value))
    return isinstance(value, bool) == isinstance(pattern, bool) and bool(value == pattern)


def _asked(pattern: Any) -> str:
    if isinstance(pattern, type):
        return f"a {pattern.__name__}"
    if isinstance(pattern, re.Pattern):
        return f"a string with {cast('re.Pattern[str]', pattern).pattern!r} in it"
    if callable(pattern):
        return f"what {getattr(pattern, '__name__', repr(pattern))} takes"
    return shown(pattern)


def _at(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def shown(value: Any) -> str:
    """Return a value as JSON, shortened."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}... ({len(text)} characters)"


def of_message(pattern: Any) -> Any:
    """Return the pattern of a message: the name of a method stands for any message of it."""
    return {"method": pattern} if isinstance(pattern, str) else pattern
