"""`Header` in a tool's parameters: the ``inputSchema`` as clients can read it, and which integers may be mirrored.

Clients look for ``x-mcp-header`` along ``properties`` only, so the classes that hold one are laid open there instead of
being referred to. The rules themselves are `modelwire.rules.param_headers`'; nothing here decides one.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, get_args

import msgspec

from modelwire.errors import SignatureError
from modelwire.rules.param_headers import KEYWORD, MAX_INTEGER, InvalidParamHeader, param_headers
from modelwire.server.annotations import is_union, without_annotated
from modelwire.server.constraints import read
from modelwire.server.json_values import is_object, members_of

_PREFIX = "#/$defs/"
_NULL = {"type": "null"}
_NONE = -MAX_INTEGER - 1
"""A limit as good as none."""
_NAMES: dict[Any, str] = {str: "string", int: "integer", bool: "boolean"}


def safe_limits(annotation: Any) -> dict[str, int]:
    """Return the limits that a mirrored integer lacks; none where the type is no integer.

    "Integer values MUST be within the safe range" (2026-07-28, server/tools, x-mcp-header).

    Args:
        annotation: The type, evaluated.
    """
    lacking = {"ge": -MAX_INTEGER, "le": MAX_INTEGER}
    while annotation is not int:
        limits = read(getattr(annotation, "__metadata__", ())).limits
        if max(limits.get("ge", _NONE), limits.get("gt", _NONE)) >= -MAX_INTEGER:
            lacking.pop("ge", None)
        if min(limits.get("le", -_NONE), limits.get("lt", -_NONE)) <= MAX_INTEGER:
            lacking.pop("le", None)
        inner = _inner(annotation)
        if inner is None:
            return {}
        annotation = inner
    return lacking


def _inner(annotation: Any) -> Any:
    """What stands within ``Annotated``, beside None, or behind a name; None where that is nothing of the kind."""
    plain = without_annotated(annotation)
    if plain is not annotation:
        return plain
    if is_union(annotation):
        options = [option for option in get_args(annotation) if option is not type(None)]
        return options[0] if len(options) == 1 else None
    return getattr(annotation, "__supertype__", None) or getattr(annotation, "__value__", None)


def with_headers(name: str, schema: dict[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
    """Return a tool's ``inputSchema`` with its headers, where clients look for them, beside a type that they know.

    Args:
        name: The tool.
        schema: The schema without them; it is not changed. Classes in its ``$defs`` may have headers already.
        headers: The header of each parameter that has one.

    Raises:
        SignatureError: One breaks a rule; the message names the parameter.
    """
    if not headers and not _mentions(schema):
        return schema
    found = _laid_open(schema, headers)
    try:
        param_headers(found)
    except InvalidParamHeader as error:
        raise SignatureError(f"{name}: {_called(found, error.steps)}: its Header {error.reason}") from None
    return found


def refuse_headers(what: str, schema: dict[str, Any]) -> None:
    """Refuse a `Header` where there is no tool.

    Args:
        what: What is registered, for the message.
        schema: The schema of its parameters.

    Raises:
        SignatureError: There is one.
    """
    for path in param_headers(schema).values():
        raise SignatureError(f"{what}: parameter {'.'.join(path)!r} has a Header, and only a tool's may be mirrored")


def _laid_open(schema: dict[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
    defs: dict[str, Any] = schema.get("$defs", {})
    properties: dict[str, Any] = {
        name: {**item, KEYWORD: headers[name]} if name in headers else item
        for name, item in schema["properties"].items()
    }
    opened = {**schema, "properties": {name: _open(item, defs, ()) for name, item in properties.items()}}
    opened.pop("$defs", None)
    needed = _needed(opened, defs)
    return {**opened, "$defs": {name: defs[name] for name in defs if name in needed}} if needed else opened


def _mentions(schema: dict[str, Any]) -> bool:
    return KEYWORD.encode() in msgspec.json.encode(schema)


def _called(schema: dict[str, Any], steps: tuple[str, ...]) -> str:
    """Name the parameter, or those, in whose schemas a place is."""
    if steps[0] == "properties":
        inner = "".join(f".{name}" for name in steps[3::2]) if set(steps[::2]) == {"properties"} else ""
        return f"parameter '{steps[1]}{inner}'"
    defs: dict[str, Any] = schema["$defs"]
    names = [repr(name) for name, item in schema["properties"].items() if steps[1] in _needed(item, defs)]
    return f"parameter {', '.join(names)} ({'.'.join(steps[1::2])})"


def _open(schema: Any, defs: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
    if not is_object(schema):
        return schema
    found: dict[str, Any] = schema
    name = str(found.get("$ref", "")).removeprefix(_PREFIX)
    if name in defs and name not in inside and (KEYWORD in found or _leads_to_mark(defs[name], defs)):
        rest = {key: value for key, value in found.items() if key != "$ref"}
        return _open({**copy.deepcopy(defs[name]), **rest}, defs, (*inside, name))
    if KEYWORD in found:
        return _typed(found, defs, inside)
    if "properties" in found:
        return {**found, "properties": {key: _open(item, defs, inside) for key, item in found["properties"].items()}}
    return found


def _typed(schema: dict[str, Any], defs: Mapping[str, Any], inside: tuple[str, ...]) -> dict[str, Any]:
    """Say the type of a marked parameter by ``type``, one and no other: clients leave out tools without it.

    ``null`` is not advertised; where it comes, no header does.
    """
    options = [option for option in schema.get("anyOf", ()) if option != _NULL]
    if len(options) == 1:
        rest = {key: value for key, value in schema.items() if key != "anyOf"}
        return _open({**options[0], **rest}, defs, inside)
    found = dict(schema)
    if found.get("default", False) is None:
        del found["default"]
    if "enum" in found:
        found["enum"] = [value for value in found["enum"] if value is not None]
    kinds = {_NAMES.get(type(value), "") for value in found.get("enum", ())} - {""}
    return {"type": kinds.pop(), **found} if len(kinds) == 1 else found


def _leads_to_mark(schema: Any, defs: Mapping[str, Any]) -> bool:
    return _mentions({"": schema}) or any(_mentions({"": defs[name]}) for name in _needed(schema, defs))


def _needed(schema: Any, defs: Mapping[str, Any]) -> set[str]:
    """The definitions that a schema refers to, and those that they refer to."""
    found: set[str] = set()
    waiting = list(_references(schema))
    while waiting:
        name = waiting.pop()
        if name in defs and name not in found:
            found.add(name)
            waiting += _references(defs[name])
    return found


def _references(schema: Any) -> Iterator[str]:
    if is_object(schema) and isinstance(schema.get("$ref"), str):
        yield schema["$ref"].removeprefix(_PREFIX)
    for item in members_of(schema):
        yield from _references(item)
