"""What a client meant by a value of the wrong type: a short table, and nothing beside it.

    ==============================  =======================================
    came                            taken as, where the type wants that
    ==============================  =======================================
    text that is a JSON number      integer, or finite number
    text ``true`` or ``false``      boolean
    text that is a JSON list        list
    text that is a JSON object      object
    a number without a fraction     integer (also inside lists and objects)
    ==============================  =======================================

msgspec itself takes a number for a decimal, whose schema asks for text; what is exact loses nothing by it.

Used only once strict decoding has refused a value, so text stays text wherever text is allowed. It never decides
whether a value is accepted: what it returns is decoded strictly.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import inspect as mi

from modelwire.server import explain

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)", re.ASCII)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
_EXACT = 2**53
"""Above it a number that was written as a float may stand for several integers."""

_BY_TYPE: tuple[tuple[Any, str], ...] = (
    (mi.BoolType, "boolean"),
    (mi.IntType, "integer"),
    (mi.FloatType, "number"),
    ((mi.CollectionType, mi.TupleType, mi.NamedTupleType), "array"),
    ((mi.DictType, mi.FrozenDictType, mi.DataclassType, mi.TypedDictType), "object"),
)


def meant(kind: mi.Type, value: Any) -> Any:
    """Return what a refused value stands for by the table, or the value itself.

    Args:
        kind: The type that refused it.
        value: Decoded JSON.
    """
    if type(value) is str:
        found = inside_text(value, wanted(kind))
        return value if found is value else integral(kind, found)
    return integral(kind, value)


def inside_text(value: str, kinds: frozenset[str]) -> Any:
    """Return the JSON value that text stands for where one of these kinds is wanted, or the text itself."""
    text = _json_inside(value, kinds)
    if text is None:
        return value
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return value


def wanted(kind: mi.Type) -> frozenset[str]:
    """The kinds of JSON value that a type takes and that text may stand for."""
    kind = explain.bare(kind)
    if isinstance(kind, mi.UnionType):
        return frozenset[str]().union(*(wanted(member) for member in kind.types))
    if isinstance(kind, mi.StructType):
        return frozenset({"array" if kind.array_like else "object"})
    if isinstance(kind, mi.LiteralType | mi.EnumType):
        values = kind.values if isinstance(kind, mi.LiteralType) else [member.value for member in kind.cls]
        return frozenset({"integer"} if any(type(value) is int for value in values) else ())
    return frozenset(word for types, word in _BY_TYPE if isinstance(kind, types))


def _json_inside(value: str, kinds: frozenset[str]) -> str | None:
    text = value.strip(" \t\r\n")
    bracket = {"[": "array", "{": "object"}.get(text[:1])
    if bracket is not None:
        return text if bracket in kinds else None
    return value if _scalar_kinds(value) & kinds else None


def _scalar_kinds(text: str) -> frozenset[str]:
    if text in ("true", "false"):
        return frozenset({"boolean"})
    if _INTEGER.fullmatch(text):
        return frozenset({"integer", "number"})
    return frozenset({"number"}) if _NUMBER.fullmatch(text) else frozenset()


def integral(kind: mi.Type, value: Any) -> Any:
    """Replace floats without a fraction by integers, where the type wants integers: in JSON Schema 3.0 is one."""
    kind = explain.bare(kind)
    if type(value) is float:
        whole = "integer" in wanted(kind) and "number" not in wanted(kind) and value.is_integer()
        return int(value) if whole and abs(value) <= _EXACT else value
    if isinstance(kind, mi.UnionType):
        options = [integral(member, value) for member in kind.types]
        fitting = (option for member, option in zip(kind.types, options, strict=True) if _fits(member, option))
        return next(fitting, value)
    replace = _CONTAINERS.get(type(kind))
    return value if replace is None else replace(kind, value)


def _fits(kind: mi.Type, value: Any) -> bool:
    return next(explain.problems(kind, value, ""), None) is None


def _in_list(kind: mi.CollectionType, value: Any) -> Any:
    return [integral(kind.item_type, item) for item in value] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]


def _in_tuple(kind: mi.TupleType, value: Any) -> Any:
    if not isinstance(value, list) or len(value) != len(kind.item_types):  # pyright: ignore[reportUnknownArgumentType]
        return value  # pyright: ignore[reportUnknownVariableType]
    return [integral(member, item) for member, item in zip(kind.item_types, value, strict=True)]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _in_dict(kind: mi.DictType | mi.FrozenDictType, value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: integral(kind.value_type, item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]


def _in_object(kind: Any, value: Any) -> Any:
    if isinstance(value, dict):
        types = {field.encode_name: field.type for field in kind.fields}
        return {key: integral(types[key], item) if key in types else item for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list):
        head = [integral(field.type, item) for field, item in zip(kind.fields, value, strict=False)]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        return head + value[len(head) :]
    return value


_CONTAINERS: dict[type[mi.Type], Callable[[Any, Any], Any]] = {
    mi.ListType: _in_list,
    mi.VarTupleType: _in_list,
    mi.SetType: _in_list,
    mi.FrozenSetType: _in_list,
    mi.TupleType: _in_tuple,
    mi.DictType: _in_dict,
    mi.FrozenDictType: _in_dict,
    mi.NamedTupleType: _in_object,
    mi.DataclassType: _in_object,
    mi.TypedDictType: _in_object,
    mi.StructType: _in_object,
}
