"""Why a value cannot be written, or JSON cannot be read, in our own words.

The codecs find out that something is wrong; this module says what, and where. It runs only after a failure, and never
decides what is right.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

import msgspec

from modelwire.errors import ModelwireError
from modelwire.protocol.types.base import UnknownContent, encode_hook

MAX_DEPTH: Final = 500
"""How deep a value may be nested before it counts as endless."""


class WireError(ModelwireError):
    """A value that has no wire form, or JSON that is not what was expected; the message names the place."""


def join(path: str, key: str | int) -> str:
    """Return the path of a member of what is at ``path``."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def write_fault(value: Any) -> str | None:
    """Say what in ``value`` cannot be written as JSON, and where; None when nothing can be found."""
    try:
        return _search(value)
    except Exception as error:
        return f"cannot be written as JSON: looking through it raised {error!r}"


def _search(value: Any) -> str | None:
    stack: list[tuple[Any, str, int]] = [(value, "", 0)]
    while stack:
        item, path, depth = stack.pop()
        if depth > MAX_DEPTH:
            return f"nested more than {MAX_DEPTH} deep, or inside itself: {_shorten(path)}"
        members = list(_members(item, path))
        if not members:
            fault = _leaf_fault(item)
            if fault is not None:
                return f"{_shorten(path) or 'the value'} {fault}"
        stack.extend((member, where, depth + 1) for where, member in reversed(members))
    return None


def _members(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield what ``value`` consists of, each with its path."""
    if isinstance(value, UnknownContent):
        value = value.raw
    if isinstance(value, Mapping):
        return _entries(cast("Mapping[Any, Any]", value), path)
    if isinstance(value, (list, tuple, set, frozenset)):
        return ((join(path, index), item) for index, item in enumerate(cast("list[Any]", value)))
    return ((join(path, shown), getattr(value, name, None)) for name, shown in _field_names(value))


def _entries(value: Mapping[Any, Any], path: str) -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        if not isinstance(key, str):
            yield f"a key of {path or 'the value'}", {} if isinstance(key, (int, float)) else _Key(key)
        elif not key.isascii():
            yield f"a key of {path or 'the value'}", key
        yield join(path, str(key)), item


@dataclasses.dataclass(frozen=True, slots=True)
class _Key:
    """Stands for a dictionary key that is no string."""

    key: Any


def _field_names(value: Any) -> Iterable[tuple[str, str]]:
    """Yield the fields of ``value``: Python name, wire name."""
    if isinstance(value, msgspec.Struct):
        return zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
    if isinstance(value, (type, _Key)):
        return ()
    if dataclasses.is_dataclass(value):
        return [(field.name, field.name) for field in dataclasses.fields(value)]
    return [(field.name, field.name) for field in getattr(value, "__attrs_attrs__", ())]


def _leaf_fault(value: Any) -> str | None:
    if value is msgspec.UNSET or isinstance(value, msgspec.Raw):
        return None
    if isinstance(value, _Key):
        return f"is of type {type(value.key).__name__}, not a string"
    if isinstance(value, float) and not math.isfinite(value):
        return f"is {value}, which JSON cannot say"
    try:
        msgspec.json.encode(value, enc_hook=encode_hook)
    except UnicodeEncodeError:
        return "holds half of a surrogate pair, which UTF-8 cannot say"
    except Exception:
        return f"is of type {type(value).__name__}, which cannot be written as JSON"
    return None


def _shorten(path: str) -> str:
    return path if len(path) <= 100 else f"{path[:80]}..."


_EXPECTED = re.compile(r"Expected `(?P<want>[^`]*)`(?:, got `(?P<got>[^`]*)`)?")
_PATH = re.compile(r" - at `(?:key in )?\$(?P<path>[^`]*)`$")
_MISSING = re.compile(r"Object missing required field `(?P<name>.*)`$")
_WORDS: Final = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "null",
}


def read_fault(error: Exception, path: str) -> str:
    """Put a decoding error into words.

    Args:
        error: What the decoder raised.
        path: Where the decoder stood.
    """
    if isinstance(error, RecursionError):
        return f"{path} is nested too deeply"
    if not isinstance(error, msgspec.ValidationError):
        return f"{path} is not valid JSON"
    text = str(error)
    if (inner := _PATH.search(text)) is not None:
        path += inner["path"].replace("[...]", "[]")
        text = text[: inner.start()]
    if (found := _MISSING.match(text)) is not None:
        return missing(found["name"], path)
    if (found := _EXPECTED.match(text)) is not None:
        got = f", not {word(found['got'])}" if found["got"] else ""
        return f"{path} must be {word(found['want'])}{got}"
    return f"{path}: {text[:1].lower()}{text[1:]}"


def missing(name: str, path: str) -> str:
    """Say that a required member is not there."""
    return f'missing "{name}" in {path}'


def word(kinds: str) -> str:
    """Name JSON kinds, given as ``int | str``, for people."""
    return " or ".join(_WORDS.get(kind, kind) for kind in kinds.split(" | "))


def kind_of(data: bytes) -> str:
    """Name the kind of a piece of JSON by its first character."""
    first = bytes(data[:1])
    if first in (b"-", *(b"%d" % digit for digit in range(10))):
        return "an integer" if not any(mark in data for mark in b".eE") else "a number"
    return {b"{": "an object", b"[": "a list", b'"': "a string", b"n": "null"}.get(first, "true or false")
