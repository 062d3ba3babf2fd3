"""Why a JSON value does not fit a type, in words that a model can act on.

The words only: what is expected, what came, what may have been meant. Nothing here decides whether a value is
accepted, and no value is shown whose place has a name that smells of a secret.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
from msgspec import inspect as mi

from modelwire.server.json_values import is_list, is_object

_SECRET = re.compile(
    r"passw|passphrase|passcode|token|secret|key|credential|authoriz|bearer|cookie|\bpin\b|\botp\b", re.IGNORECASE
)
_SHOWN = 60
"""Characters of a value that a message may show."""


def unknown_argument(name: str, known: Iterable[str]) -> str:
    """One clause: an argument that is not known, and the one that may have been meant."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if near:
        hint = f"did you mean {near[0]}?"
    else:
        hint = f"known are {', '.join(names)}" if names else "none is taken"
    return f"{short(name)}: unknown argument; {hint}"


def unknown_member(path: str, name: str, known: Iterable[str]) -> str:
    """One clause: a member of an object that is not known, and the one that may have been meant."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"{path}.{short(name)}: unknown member" + (f"; did you mean {near[0]}?" if near else "")


def short(name: str) -> str:
    """Return a name as messages show it."""
    return name[:_SHOWN]


def one_of(choices: Sequence[Any]) -> str:
    """Say which values there are."""
    shown = [msgspec.json.encode(choice).decode() for choice in choices]
    return shown[0] if len(shown) == 1 else f"one of {', '.join(shown)}"


def bare(kind: mi.Type) -> mi.Type:
    """The type without the metadata around it."""
    while isinstance(kind, mi.Metadata):
        kind = kind.type
    return kind


def expected(kind: mi.Type) -> str:
    """Say what values of a type without parts are, as a noun phrase.

    Args:
        kind: Msgspec's description of the type.
    """
    kind = bare(kind)
    unit = "characters" if isinstance(kind, mi.StrType) else "bytes"
    return _NOUNS.get(type(kind), "another value") + limits(lambda name: getattr(kind, name, None), unit)


_NOUNS: dict[type[mi.Type], str] = {
    mi.NoneType: "null",
    mi.BoolType: "true or false",
    mi.IntType: "an integer",
    mi.FloatType: "a number",
    mi.StrType: "text",
    mi.AnyType: "any JSON value",
    mi.RawType: "any JSON value",
    mi.FrozenDictType: "an object",
    mi.DateTimeType: 'a date and time such as "2026-01-31T09:30:00Z"',
    mi.DateType: 'a date such as "2026-01-31"',
    mi.TimeType: 'a time such as "09:30:00"',
    mi.TimeDeltaType: 'a duration such as "PT1H30M"',
    mi.UUIDType: 'a UUID such as "3f2b8a52-6c1d-4e8e-9d2a-0c5b7f9e1a64"',
    mi.DecimalType: 'a decimal number such as "12.50"',
    mi.BytesType: "base64 text",
    mi.ByteArrayType: "base64 text",
    mi.MemoryViewType: "base64 text",
}
_BOUNDS = (
    ("ge", ">= {}"),
    ("gt", "> {}"),
    ("le", "<= {}"),
    ("lt", "< {}"),
    ("multiple_of", "that is a multiple of {}"),
)


def limits(values: Callable[[str], Any], unit: str) -> str:
    """Say which limits there are, to follow a noun.

    Args:
        values: Returns the limit of a name of msgspec's, None without one.
        unit: What sizes are counted in.
    """
    found = [text.format(value) for name, text in _BOUNDS if (value := values(name)) is not None]
    least, most = values("min_length"), values("max_length")
    sized = [] if least is None or least == most else [f"at least {least} {unit}"]
    sized += [] if most is None else [f"{'exactly' if least == most else 'at most'} {most} {unit}"]
    pattern = values("pattern")
    clauses = [" and ".join(found)] if found else []
    clauses += ["of " + " and ".join(sized)] if sized else []
    clauses += [f"that matches {pattern}"] if pattern is not None else []
    zone = values("tz")
    clauses += [] if zone is None else ["with a time zone" if zone else "without a time zone"]
    return "".join(f" {clause}" for clause in clauses)


def shown(value: Any, path: str) -> str:
    """Show a value in a message: scalars shortened, containers by their size, secrets not at all."""
    if isinstance(value, dict):
        return f"an object with {len(value)} members"  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, list):
        return f"a list of {len(value)} items"  # pyright: ignore[reportUnknownArgumentType]
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if is_secret(path):
        return "text (not shown)" if isinstance(value, str) else "a number (not shown)"
    if isinstance(value, str):
        if value.lstrip()[:1] in ("{", "["):  # JSON in a string may hold secrets of its own
            return f"text of {len(value)} characters"
        return msgspec.json.encode(value if len(value) <= _SHOWN else value[:_SHOWN] + "…").decode()
    return f"the number {str(value)[:_SHOWN]}"


def repeats_secret(text: str, value: Any, path: str) -> bool:
    """Whether a message about a value, not written here, might repeat what should not be.

    Args:
        text: The message.
        value: Decoded JSON.
        path: What the value is called.
    """
    if is_object(value):
        return any(repeats_secret(text, item, name) for name, item in value.items())
    if is_list(value):
        return any(repeats_secret(text, item, path) for item in value)
    return is_secret(path) and value is not None and str(value) in text


def is_secret(path: str) -> bool:
    """Whether a place has a name whose values should not be repeated."""
    return _SECRET.search(path) is not None


def misspelt(missing: str, known: Iterable[str], value: dict[str, Any]) -> str:
    """Say which member of an object may have been meant for one that is missing; empty without any."""
    names = set(known)
    near = difflib.get_close_matches(missing, [name for name in value if name not in names], n=1)
    return f" (there is {near[0][:_SHOWN]}; is that it?)" if near else ""
