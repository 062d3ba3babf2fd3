"""Why a JSON value does not fit a type, in words that a model can act on.

Works on msgspec's description of the type and on decoded JSON, and runs only once a value was refused. It never
decides whether a value is accepted, and never shows a value whose place has a name that smells of a secret.
"""

from __future__ import annotations

import datetime
import decimal
import difflib
import re
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
from msgspec import inspect as mi

from modelwire.server.json_values import is_list, is_object

_SECRET = re.compile(
    r"passw|passphrase|passcode|token|secret|key|credential|authoriz|bearer|cookie|\bpin\b|\botp\b", re.IGNORECASE
)
_SHOWN = 60
"""Characters of a value that a message may show."""

_PLAIN: dict[type[mi.Type], tuple[Any, str]] = {
    mi.DateTimeType: (datetime.datetime, 'a date and time such as "2026-01-31T09:30:00Z"'),
    mi.DateType: (datetime.date, 'a date such as "2026-01-31"'),
    mi.TimeType: (datetime.time, 'a time such as "09:30:00"'),
    mi.TimeDeltaType: (datetime.timedelta, 'a duration such as "PT1H30M"'),
    mi.UUIDType: (uuid.UUID, 'a UUID such as "3f2b8a52-6c1d-4e8e-9d2a-0c5b7f9e1a64"'),
    mi.DecimalType: (decimal.Decimal, 'a decimal number such as "12.50"'),
    mi.BytesType: (bytes, "base64 text"),
    mi.ByteArrayType: (bytes, "base64 text"),
    mi.MemoryViewType: (bytes, "base64 text"),
}
_OBJECTS = (mi.DataclassType, mi.TypedDictType, mi.StructType)


def problems(kind: mi.Type, value: Any, path: str) -> Iterator[str]:
    """Yield one clause per place of ``value`` that does not fit, each naming its place.

    Args:
        kind: What was wanted.
        value: Decoded JSON that was refused.
        path: What to call the value.
    """
    kind = bare(kind)
    if type(kind) in _MEMBERS and _outer_fits(kind, value):
        yield from _MEMBERS[type(kind)](kind, value, path)
    elif isinstance(kind, mi.UnionType):
        yield from _union_problems(kind, value, path)
    elif not _leaf_fits(kind, value):
        yield mismatch(kind, value, path)


def mismatch(kind: mi.Type, value: Any, path: str) -> str:
    """One clause: what was expected at ``path``, and what came."""
    return f"{path}: expected {expected(kind)}, got {shown(value, path)}"


def faults(kind: mi.Type, value: Any, path: str, error: BaseException) -> list[str]:
    """Return the clauses for a value that msgspec refused.

    Args:
        kind: What was wanted.
        value: Decoded JSON.
        path: What to call the value.
        error: What msgspec raised.
    """
    found = list(problems(kind, value, path))
    if not found and error.__cause__ is not None and not repeats_secret(str(error.__cause__), value, path):
        return [f"{path}: {error.__cause__}"]  # what a class said in its `__post_init__`
    return found or [mismatch(kind, value, path)]


def unknown_argument(name: str, known: Iterable[str]) -> str:
    """One clause: an argument that is not known, and the one that may have been meant."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if near:
        hint = f"did you mean {near[0]}?"
    else:
        hint = f"known are {', '.join(names)}" if names else "none is taken"
    return f"{name[:_SHOWN]}: unknown argument; {hint}"


def unknown_member(path: str, name: str, known: Iterable[str]) -> str:
    """One clause: a member of an object that is not known, and the one that may have been meant."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"{path}.{name[:_SHOWN]}: unknown member" + (f"; did you mean {near[0]}?" if near else "")


def inside(kind: mi.Type, value: Any) -> bool:
    """Whether a refused value is of the right kind itself, so that the fault lies in its members."""
    kind = bare(kind)
    return type(kind) in _MEMBERS and _outer_fits(kind, value)


def known_members(kind: mi.Type, value: Any) -> int:
    """Return how many members of an object, or of the objects in a list, a type knows."""
    kind = bare(kind)
    if isinstance(value, list) and isinstance(kind, mi.CollectionType):
        return sum(known_members(kind.item_type, item) for item in value)  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict) and isinstance(kind, _OBJECTS):
        return sum(field.encode_name in value for field in kind.fields)
    return 0


def outlined(kind: mi.Type) -> str:
    """Say what values of this type are, an object by the members that it must have."""
    kind = bare(kind)
    if isinstance(kind, mi.UnionType):
        return " or ".join(dict.fromkeys(outlined(member) for member in kind.types))
    names = [field.encode_name for field in kind.fields if field.required] if isinstance(kind, _OBJECTS) else []
    return f"an object with {', '.join(names[:5])}" if names else expected(kind)


def bare(kind: mi.Type) -> mi.Type:
    """The type without the metadata around it."""
    while isinstance(kind, mi.Metadata):
        kind = kind.type
    return kind


def expected(kind: mi.Type) -> str:
    """Say what values of this type are, as a noun phrase."""
    kind = bare(kind)
    if type(kind) in _PLAIN:
        return _PLAIN[type(kind)][1] + _limits(kind)
    if isinstance(kind, mi.UnionType):
        return " or ".join(dict.fromkeys(expected(member) for member in kind.types))
    if isinstance(kind, mi.LiteralType | mi.EnumType):
        choices = _choices(kind)
        return choices[0] if len(choices) == 1 else f"one of {', '.join(choices)}"
    return _noun(kind) + _limits(kind)


def _noun(kind: mi.Type) -> str:
    for known, noun in _NOUNS:
        if isinstance(kind, known):
            return noun
    return "another value"


_NOUNS: tuple[tuple[Any, str], ...] = (
    (mi.NoneType, "null"),
    (mi.BoolType, "true or false"),
    (mi.IntType, "an integer"),
    (mi.FloatType, "a number"),
    (mi.StrType, "text"),
    ((mi.CollectionType, mi.TupleType, mi.NamedTupleType), "a list"),
    ((mi.DictType, mi.FrozenDictType, *_OBJECTS), "an object"),
    ((mi.AnyType, mi.RawType), "any JSON value"),
)


_BOUNDS = (
    ("ge", ">= {}"),
    ("gt", "> {}"),
    ("le", "<= {}"),
    ("lt", "< {}"),
    ("multiple_of", "that is a multiple of {}"),
)


def _limits(kind: mi.Type) -> str:
    """The constraints of a type, to follow its noun."""
    found = [text.format(value) for name, text in _BOUNDS if (value := getattr(kind, name, None)) is not None]
    unit = "characters" if isinstance(kind, mi.StrType) else "bytes" if type(kind) in _PLAIN else "items"
    sizes = (("min_length", f"at least {{}} {unit}"), ("max_length", f"at most {{}} {unit}"))
    sized = [text.format(value) for name, text in sizes if (value := getattr(kind, name, None)) is not None]
    if isinstance(kind, mi.TupleType):
        sized.append(f"exactly {len(kind.item_types)} items")
    pattern = getattr(kind, "pattern", None)
    clauses = [" and ".join(found)] if found else []
    clauses += ["of " + " and ".join(sized)] if sized else []
    clauses += [f"that matches {pattern}"] if pattern is not None else []
    zone = getattr(kind, "tz", None)
    clauses += [] if zone is None else ["with a time zone" if zone else "without a time zone"]
    return "".join(f" {clause}" for clause in clauses)


def _choices(kind: mi.LiteralType | mi.EnumType) -> list[str]:
    values = kind.values if isinstance(kind, mi.LiteralType) else [member.value for member in kind.cls]
    return [msgspec.json.encode(value).decode() for value in values]


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


def _outer_fits(kind: Any, value: Any) -> bool:
    """Whether the container itself is right, so that the fault lies in its members."""
    wanted = dict if isinstance(kind, (*_OBJECTS, mi.DictType, mi.FrozenDictType)) else list
    if isinstance(kind, mi.StructType) and kind.array_like:
        wanted = list
    if not isinstance(value, wanted):
        return False
    if isinstance(kind, mi.TupleType):
        return len(value) == len(kind.item_types)  # pyright: ignore[reportUnknownArgumentType]
    return _size_fits(kind, len(value))  # pyright: ignore[reportUnknownArgumentType]


def _size_fits(kind: Any, size: int) -> bool:
    least: int | None = getattr(kind, "min_length", None)
    most: int | None = getattr(kind, "max_length", None)
    return (least is None or size >= least) and (most is None or size <= most)


def _leaf_fits(kind: mi.Type, value: Any) -> bool:
    if type(kind) in _PLAIN:
        try:
            converted = msgspec.convert(value, _PLAIN[type(kind)][0])
        except msgspec.ValidationError:
            return False
        zone = getattr(kind, "tz", None)
        return _size_fits(kind, len(converted)) if isinstance(converted, bytes) else _zone_fits(zone, converted)
    if isinstance(kind, mi.LiteralType):
        return any(type(value) is type(choice) and value == choice for choice in kind.values)
    if isinstance(kind, mi.EnumType):
        return any(type(value) is type(member.value) and value == member.value for member in kind.cls)
    return _scalar_fits(kind, value)


def _zone_fits(zone: bool | None, converted: Any) -> bool:
    return zone is None or (converted.tzinfo is not None) == zone


def _scalar_fits(kind: Any, value: Any) -> bool:
    if isinstance(kind, mi.IntType | mi.FloatType):
        wanted = (int,) if isinstance(kind, mi.IntType) else (int, float)
        return type(value) in wanted and _number_fits(kind, value)
    if isinstance(kind, mi.StrType):
        pattern = kind.pattern
        return (
            isinstance(value, str)
            and _size_fits(kind, len(value))
            and (pattern is None or re.search(pattern, value) is not None)
        )
    if isinstance(kind, mi.BoolType | mi.NoneType):
        return isinstance(value, bool) if isinstance(kind, mi.BoolType) else value is None
    return isinstance(kind, mi.AnyType | mi.RawType)


def _number_fits(kind: mi.IntType | mi.FloatType, value: float) -> bool:
    return (
        (kind.ge is None or value >= kind.ge)
        and (kind.gt is None or value > kind.gt)
        and (kind.le is None or value <= kind.le)
        and (kind.lt is None or value < kind.lt)
        and (kind.multiple_of is None or value % kind.multiple_of == 0)
    )


def _union_problems(kind: mi.UnionType, value: Any, path: str) -> Iterator[str]:
    """The faults of the member that the value is nearest to: the one container of its kind, if there is one."""
    found = [(bare(member), list(problems(member, value, path))) for member in kind.types]
    if any(not faults for _, faults in found):
        return
    near = [
        faults
        for member, faults in found
        if type(member) in _MEMBERS and _outer_fits(member, value) and _tag_fits(member, value)
    ]
    if len(near) == 1:
        yield from near[0]
    else:
        yield mismatch(kind, value, path)


def _tag_fits(kind: Any, value: Any) -> bool:
    tag: str | None = getattr(kind, "tag_field", None)
    if tag is None:
        return True
    if kind.array_like:
        return value[:1] == [kind.tag]
    return tag not in value or value[tag] == kind.tag


def _list_problems(kind: mi.CollectionType, value: list[Any], path: str) -> Iterator[str]:
    for index, item in enumerate(value):
        yield from problems(kind.item_type, item, f"{path}[{index}]")


def _tuple_problems(kind: mi.TupleType, value: list[Any], path: str) -> Iterator[str]:
    for index, (member, item) in enumerate(zip(kind.item_types, value, strict=True)):
        yield from problems(member, item, f"{path}[{index}]")


def _dict_problems(kind: mi.DictType | mi.FrozenDictType, value: dict[str, Any], path: str) -> Iterator[str]:
    for key, item in value.items():
        if not _key_fits(kind.key_type, key):
            yield mismatch(kind.key_type, key, f"a member name of {path}")
        yield from problems(kind.value_type, item, f"{path}[…]" if is_secret(path) else f"{path}.{key[:_SHOWN]}")


def _key_fits(kind: mi.Type, key: str) -> bool:
    """A key is text on the wire, and stands for a number where the type wants one."""
    if not list(problems(kind, key, "")):
        return True
    try:
        number = msgspec.json.decode(key)
    except (msgspec.DecodeError, ValueError):
        return False
    return not list(problems(kind, number, ""))


def _object_problems(kind: Any, value: dict[str, Any], path: str) -> Iterator[str]:
    if isinstance(kind, mi.StructType) and kind.array_like:
        yield from _row_problems(kind, value, path)  # pyright: ignore[reportArgumentType]
        return
    tag: str | None = getattr(kind, "tag_field", None)
    if tag is not None and tag in value and value[tag] != kind.tag:
        wanted = msgspec.json.encode(kind.tag).decode()
        yield f"{path}.{tag}: expected {wanted}, got {shown(value[tag], path)}"
    for field in kind.fields:
        if field.encode_name in value:
            yield from problems(field.type, value[field.encode_name], f"{path}.{field.encode_name}")
        elif field.required:
            yield f"{path}.{field.encode_name}: missing; expected {expected(field.type)}" + _instead(kind, field, value)
    if getattr(kind, "forbid_unknown_fields", False):
        names = [field.encode_name for field in kind.fields] + ([tag] if tag else [])
        yield from (unknown_member(path, name, names) for name in value if name not in names)


def _instead(kind: Any, field: Any, value: dict[str, Any]) -> str:
    """The member that may have been meant for one that is missing: others are passed over, unless forbidden."""
    if getattr(kind, "forbid_unknown_fields", False):
        return ""
    return misspelt(field.encode_name, {other.encode_name for other in kind.fields}, value)


def misspelt(missing: str, known: Iterable[str], value: dict[str, Any]) -> str:
    """Say which member of an object may have been meant for one that is missing; empty without any."""
    names = set(known)
    near = difflib.get_close_matches(missing, [name for name in value if name not in names], n=1)
    return f" (there is {near[0][:_SHOWN]}; is that it?)" if near else ""


def _row_problems(kind: Any, value: list[Any], path: str) -> Iterator[str]:
    """A NamedTuple or an array-like struct: members by position, after the tag if it has one."""
    if getattr(kind, "tag_field", None) is not None:
        if not _tag_fits(kind, value):
            yield f"{path}[0]: expected {msgspec.json.encode(kind.tag).decode()}"
        value = value[1:]
    for index, field in enumerate(kind.fields):
        if index < len(value):
            yield from problems(field.type, value[index], f"{path}[{index}]")
        elif field.required:
            yield f"{path}[{index}]: missing; expected {expected(field.type)} ({field.name})"
    if len(value) > len(kind.fields):
        yield f"{path}: expected at most {len(kind.fields)} items, got {len(value)}"


_MEMBERS: dict[type[mi.Type], Callable[[Any, Any, str], Iterator[str]]] = {
    mi.ListType: _list_problems,
    mi.VarTupleType: _list_problems,
    mi.SetType: _list_problems,
    mi.FrozenSetType: _list_problems,
    mi.TupleType: _tuple_problems,
    mi.DictType: _dict_problems,
    mi.FrozenDictType: _dict_problems,
    mi.NamedTupleType: _row_problems,
    mi.DataclassType: _object_problems,
    mi.TypedDictType: _object_problems,
    mi.StructType: _object_problems,
}
