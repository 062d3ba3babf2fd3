"""What a completer returned, as the answer to ``completion/complete``: text, and never more of it than may be sent.

This file calls nobody, but it takes the first items of what is still being made.
"""

from __future__ import annotations

import copy
import enum
import itertools
from collections.abc import AsyncIterable, Iterable, Sized
from typing import Any, cast

from modelwire.protocol import types as t

MAX_VALUES = 100
"""How many suggestions one answer may hold ("Array of completion values, maximum 100 items")."""


_NO_TEXT = (type(None), bytes, bytearray, dict, list, tuple, set, frozenset)


class Begun(list[Any]):
    """The first items of something that may have more of them, or never end."""


def begun(value: Any) -> Any:
    """Return the first items of a generator, or of what else does not say how many it has; other values as they are.

    Args:
        value: What a completer returned.
    """
    if not isinstance(value, Iterable) or isinstance(value, Sized):
        return value
    found = Begun()
    items = cast("Iterable[Any]", value)
    try:
        for item in items:
            found.append(item)
            if len(found) > MAX_VALUES:
                break
    finally:
        if close := getattr(items, "close", None):
            close()
    return found


async def begun_async(value: AsyncIterable[Any]) -> Begun:
    """Return the first items of an asynchronous generator or iterable."""
    found = Begun()
    try:
        async for item in value:
            found.append(item)
            if len(found) > MAX_VALUES:
                break
    finally:
        if aclose := getattr(value, "aclose", None):
            await aclose()
    return found


def suggestions(value: Any) -> t.CompleteResult:
    """Return the answer for what a completer returned.

    Args:
        value: Strings, numbers, enum members or other plain values in anything that can be gone through; one string;
            None; or a `Completion` or `CompleteResult`, whose own ``total`` and ``has_more`` are kept.

    Raises:
        TypeError: It is something else.
        ValueError: It holds text that cannot be sent.
    """
    if isinstance(value, t.CompleteResult):
        result = copy.copy(value)
        result.completion = _bounded(value.completion)
        return result
    if isinstance(value, t.Completion):
        return t.CompleteResult(_bounded(value))
    if value is None or isinstance(value, str):
        items: list[Any] = [] if value is None else [value]
    elif isinstance(value, Iterable) and not isinstance(value, bytes | bytearray):
        items = list(itertools.islice(cast("Iterable[Any]", value), MAX_VALUES + 1))
    else:
        raise TypeError(f"a completer returns strings, not a {type(value).__name__}")
    total = len(value) if isinstance(value, Sized) and not isinstance(value, Begun) else None
    completion = t.Completion([_text(item) for item in items])
    return t.CompleteResult(completion if len(items) <= MAX_VALUES else _cut(completion, total))


def _bounded(completion: t.Completion) -> t.Completion:
    if not isinstance(cast(Any, completion.values), list | tuple):
        raise TypeError(f"the values of a Completion are a list, not a {type(completion.values).__name__}")
    total, count = completion.total, len(completion.values)
    values = [_text(item) for item in completion.values[:MAX_VALUES]]
    if count <= MAX_VALUES:
        return t.Completion(values, total=total, has_more=completion.has_more)
    return t.Completion(values, total=count if total is None else total, has_more=True)


def _cut(completion: t.Completion, total: int | None) -> t.Completion:
    return t.Completion(completion.values[:MAX_VALUES], total=total, has_more=True)


def _text(item: Any) -> str:
    if isinstance(item, enum.Enum):
        return _text(item.value)
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, _NO_TEXT):
        raise TypeError(f"a suggestion is text, not a {type(cast(Any, item)).__name__}")
    text = str(item)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"the suggestion {text[:60]!r} holds half of a surrogate pair, which cannot be sent") from None
    return text
