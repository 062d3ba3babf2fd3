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
from typing import Any

import msgspec
from msgspec import inspect as mi

from modelwire.server import explain

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)", re.ASCII)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
_EXACT = 2**53
"""Above it a number that was written as a float may stand for several integers."""

_WANTED: dict[type[mi.Type], frozenset[str]] = {
    mi.BoolType: frozenset({"boolean"}),
    mi.IntType: frozenset({"integer"}),
    mi.FloatType: frozenset({"number"}),
    mi.FrozenDictType: frozenset({"object"}),
}


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
    """The kind of JSON value that a type without parts takes and that text may stand for."""
    return _WANTED.get(type(explain.bare(kind)), frozenset())


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
    """Return a float without a fraction as an integer where the type wants one: in JSON Schema 3.0 is an integer."""
    if type(value) is not float or not isinstance(explain.bare(kind), mi.IntType) or not value.is_integer():
        return value
    return int(value) if abs(value) <= _EXACT else value
