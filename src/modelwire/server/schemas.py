"""JSON Schema 2020-12 of parameters and results, compact: no titles of classes, ``$defs`` at the root.

Built from msgspec's schema, which says exactly what its decoder enforces, and from nodes where a type is converted
member by member. This file adds what msgspec's schema lacks (formats, defaults, descriptions) and takes away its
noise; it never widens or narrows what is accepted, but for the ``null`` of an optional parameter, which need not be
advertised.
"""

from __future__ import annotations

import copy
import datetime
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from modelwire.server.annotations import is_union
from modelwire.server.definitions import Definitions
from modelwire.server.nodes import Misfit, Node

_REF = "#/$defs/{name}"
_UNSAFE = re.compile(r"[^a-zA-Z0-9.\-_]")
"""What msgspec replaces by ``_`` to make a name under ``$defs`` of a class's."""
_NUMBER_KEYS = {
    int: msgspec.Meta(extra_json_schema={"propertyNames": {"pattern": r"^-?(0|[1-9][0-9]*)$"}}),
    float: msgspec.Meta(
        extra_json_schema={"propertyNames": {"pattern": r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$"}}
    ),
}
_FORMATS: dict[Any, str] = {datetime.datetime: "date-time", datetime.time: "time"}


def input_schema(
    types: Mapping[str, Any], defaults: Mapping[str, Any], descriptions: Mapping[str, str]
) -> dict[str, Any]:
    """Return the schema of an arguments object.

    Args:
        types: The annotation of each parameter, in order; a node where msgspec alone would not do.
        defaults: The default of each parameter that has one.
        descriptions: What the docstring says of parameters; an annotation's own description goes first.
    """
    schemas, components = _parameters(list(types.values()))
    properties: dict[str, Any] = {}
    for (name, annotation), schema in zip(types.items(), schemas, strict=True):
        if name in defaults:
            schema = _with_default(schema, annotation, defaults[name])
        if name in descriptions and "description" not in schema:
            schema["description"] = descriptions[name]
        properties[name] = schema
    found: dict[str, Any] = {"type": "object", "properties": properties}
    required = [name for name in types if name not in defaults]
    if required:
        found["required"] = required
    found["additionalProperties"] = False
    if components:
        found["$defs"] = components
    return found


def result_schema(annotation: Any) -> dict[str, Any]:
    """Return the schema of a result, its root inlined and ``$defs`` beside it.

    Args:
        annotation: The type; a node where msgspec alone would not do.
    """
    if isinstance(annotation, Node):
        defs = Definitions(_result_part, output=True)
        schema, components = annotation.schema(defs), defs.found
    else:
        (schema,), components = _schemas([annotation])
    name = schema.get("$ref", "").removeprefix(_REF.format(name=""))
    if name:
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**copy.deepcopy(components[name]), **rest}
        if not _refers(schema, name) and not any(
            _refers(other, name) for key, other in components.items() if key != name
        ):
            del components[name]
    return {**schema, "$defs": components} if components else schema


def _parameters(types: list[Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    if not any(isinstance(annotation, Node) for annotation in types):
        return _schemas([_with_formats(annotation) for annotation in types])
    defs = Definitions(_input_part)
    schemas = [
        dict(annotation.schema(defs) if isinstance(annotation, Node) else defs.of(annotation)) for annotation in types
    ]
    return schemas, defs.found


def _input_part(annotation: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    return _result_part(_with_formats(annotation))


def _result_part(annotation: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    (schema,), components = _schemas([annotation])
    return schema, components


def _schemas(annotations: list[Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    schemas, components = msgspec.json.schema_components(annotations, ref_template=_REF)
    for name, component in components.items():
        # msgspec names the class, which `$defs` does already; a title given by a user differs from it.
        written = _UNSAFE.sub("_", component.get("title", ""))
        if written and re.fullmatch(rf"(?:.*\.)?{re.escape(written)}(?:_\d+)?", name):
            del component["title"]
    found = [_tidy(schema) for schema in schemas]
    return found, {name: _tidy(component) for name, component in components.items()}


def _tidy(schema: Any) -> Any:
    """Drop OpenAPI's ``discriminator``, which is no JSON Schema, wherever a subschema stands.

    And the ``"items": false`` of a tuple, whose ``maxItems`` says the same: older drafts, by which clients exist that
    check results, know no ``prefixItems`` and would allow no item at all.
    """
    if not isinstance(schema, dict):
        return schema
    noise = ["discriminator", "items"] if "prefixItems" in schema else ["discriminator"]
    found: dict[str, Any] = {key: value for key, value in schema.items() if key not in noise}  # pyright: ignore[reportUnknownVariableType]
    if found.get("required") == []:
        del found["required"]
    for key in ("items", "additionalProperties", "propertyNames"):
        if key in found:
            found[key] = _tidy(found[key])
    for key in ("anyOf", "prefixItems"):
        if key in found:
            found[key] = [_tidy(item) for item in found[key]]
    if "properties" in found:
        found["properties"] = {name: _tidy(value) for name, value in found["properties"].items()}
    return found


def _with_default(schema: dict[str, Any], annotation: Any, default: Any) -> dict[str, Any]:
    if default is None:
        return _without_null(schema)
    if isinstance(annotation, Node):
        return _with_dumped(schema, annotation, default)
    try:
        written = msgspec.json.encode(default)
        # A default may be anything in Python (NaN, a sentinel); the schema shows it where a client could send it.
        msgspec.json.decode(written, type=annotation)
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError):
        return schema
    shown = msgspec.json.decode(written)
    return schema if shown is None else {**schema, "default": shown}


def _with_dumped(schema: dict[str, Any], node: Node, default: Any) -> dict[str, Any]:
    try:
        plain = node.dump(default, "")
        node.load(plain, "")
        msgspec.json.encode(plain)
    except (Misfit, TypeError, ValueError, RecursionError):
        return schema
    return {**schema, "default": plain}


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """``Optional[X] = None``: leaving the argument out says the same, so ``null`` is not advertised."""
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    if len(options) == 1:
        return {**options[0], **rest}
    return {**rest, "anyOf": options} if options else schema


def _refers(schema: Any, name: str) -> bool:
    if isinstance(schema, dict):
        found: dict[str, Any] = schema  # pyright: ignore[reportUnknownVariableType]
        return found.get("$ref") == _REF.format(name=name) or any(_refers(value, name) for value in found.values())
    return isinstance(schema, list) and any(_refers(item, name) for item in schema)  # pyright: ignore[reportUnknownVariableType]


def _with_formats(annotation: Any) -> Any:
    """Say what msgspec leaves out: the format where a time zone may be absent, and that keys are numbers."""
    if annotation in _FORMATS:
        return Annotated[annotation, msgspec.Meta(extra_json_schema={"format": _FORMATS[annotation]})]
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is None or origin is Literal or not args:
        return annotation
    if origin is Annotated:
        return annotation
    changed = tuple(_with_formats(arg) for arg in args)
    if origin is dict and args[0] in _NUMBER_KEYS:
        return Annotated[dict[changed[0], changed[1]], _NUMBER_KEYS[args[0]]]
    if changed == args:
        return annotation
    if is_union(annotation):
        return Union[changed]  # noqa: UP007 - the members are known at run time only
    return annotation.copy_with(changed) if hasattr(annotation, "copy_with") else origin[changed]  # pyright: ignore[reportInvalidTypeArguments]
