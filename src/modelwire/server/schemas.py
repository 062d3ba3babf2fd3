"""JSON Schema 2020-12 of parameters and results, compact: no titles of classes, ``$defs`` at the root.

Built from nodes, which say what they take. Only types without parts are described by msgspec, whose schema says
exactly what its decoder enforces; this file adds what that lacks (formats, the names of numbers, defaults,
descriptions). It never widens or narrows what is accepted, but for the ``null`` of an optional parameter, which need
not be advertised.
"""

from __future__ import annotations

import datetime
import decimal
import functools
import uuid
from collections.abc import Mapping
from typing import Any, get_origin

import msgspec

from modelwire.server.annotations import is_simple
from modelwire.server.defaults import is_plain
from modelwire.server.definitions import PREFIX, Definitions
from modelwire.server.json_values import copied
from modelwire.server.nodes import Misfit, Node

_FORMATS: dict[Any, str] = {datetime.datetime: "date-time", datetime.time: "time"}
"""What msgspec leaves out where a time zone may be absent."""
_NUMBERS = {
    dict[int, Any]: r"^-?(0|[1-9][0-9]*)$",
    dict[float, Any]: r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$",
}
"""How the names of an object are written that stand for numbers."""


def input_schema(
    types: Mapping[str, Node], defaults: Mapping[str, Any], descriptions: Mapping[str, str]
) -> dict[str, Any]:
    """Return the schema of an arguments object.

    Args:
        types: The type of each parameter, in order.
        defaults: The default of each parameter that has one.
        descriptions: What the docstring says of parameters; an annotation's own description goes first.
    """
    defs = Definitions(_taken)
    properties: dict[str, Any] = {}
    for name, node in types.items():
        schema = dict(node.schema(defs))
        if name in defaults:
            schema = _with_default(schema, node, defaults[name])
        if name in descriptions and "description" not in schema:
            schema["description"] = descriptions[name]
        properties[name] = schema
    found: dict[str, Any] = {"type": "object", "properties": properties}
    required = [name for name in types if name not in defaults]
    if required:
        found["required"] = required
    found["additionalProperties"] = False
    if defs.found:
        found["$defs"] = defs.found
    return found


def result_schema(node: Node) -> dict[str, Any]:
    """Return the schema of a result, its root inlined and ``$defs`` beside it."""
    defs = Definitions(_given, output=True)
    schema, components = node.schema(defs), defs.found
    name = schema.get("$ref", "").removeprefix(PREFIX)
    if name:
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**components[name], **rest}
        if not _refers(schema, name) and not any(
            _refers(other, name) for key, other in components.items() if key != name
        ):
            del components[name]
        else:
            schema = copied(schema)
    return {**schema, "$defs": components} if components else schema


def _taken(annotation: Any) -> dict[str, Any]:
    """The schema of what comes for a type without parts."""
    found = _given(annotation)
    if isinstance(annotation, type):
        return {"format": _FORMATS[annotation], **found} if annotation in _FORMATS else found
    if get_origin(annotation) is dict and annotation in _NUMBERS:
        return {**found, "propertyNames": {"pattern": _NUMBERS[annotation]}}
    return found


def _given(annotation: Any) -> dict[str, Any]:
    leaf = annotation in _LEAVES if isinstance(annotation, type) else is_simple(annotation)
    return dict(_LEAF(annotation)) if leaf else msgspec.json.schema(annotation)


_LEAF = functools.cache(msgspec.json.schema)
_LEAVES = frozenset({
    str, int, float, bool, type(None), decimal.Decimal, uuid.UUID,
    datetime.date, datetime.datetime, datetime.time, datetime.timedelta,
})  # fmt: skip
"""Types of which many parameters are, and whose schema is one object of plain words."""


def _with_default(schema: dict[str, Any], node: Node, default: Any) -> dict[str, Any]:
    """A default may be anything in Python (NaN, a sentinel); it is shown where a client could send it."""
    if default is None:
        return _without_null(schema)
    if is_plain(node, default):
        return {**schema, "default": default}
    try:
        plain = node.dump(default, "")
        node.load(plain, "")
        shown = msgspec.json.decode(msgspec.json.encode(plain))
    except (Misfit, TypeError, ValueError, RecursionError):
        return schema
    return schema if shown is None else {**schema, "default": shown}


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """``Optional[X] = None``: leaving the argument out says the same, so ``null`` is not advertised."""
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    if len(options) == 1:
        return {**options[0], **rest}
    return {**rest, "anyOf": options} if options else schema


def _refers(schema: Any, name: str) -> bool:
    try:
        written = msgspec.json.encode(schema)
    except (TypeError, ValueError, RecursionError):
        return _found_in(schema, name)
    return (PREFIX + name).encode() in written and _found_in(schema, name)


def _found_in(schema: Any, name: str) -> bool:
    if isinstance(schema, dict):
        found: dict[str, Any] = schema  # pyright: ignore[reportUnknownVariableType]
        return found.get("$ref") == PREFIX + name or any(_found_in(value, name) for value in found.values())
    return isinstance(schema, list) and any(_found_in(item, name) for item in schema)  # pyright: ignore[reportUnknownVariableType]
