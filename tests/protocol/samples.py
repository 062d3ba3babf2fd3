"""Full-blown values of every type of the protocol, made from the types themselves."""

from __future__ import annotations

import types
import typing
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import Raw, Struct, UnsetType

from modelwire.protocol import types as t
from modelwire.protocol.revisions import Revision, Span
from modelwire.protocol.types.base import is_choice

FULL_META = Raw(
    b'{"progressToken":"p","io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    b'"io.modelcontextprotocol/clientCapabilities":{"sampling":{}},"io.modelcontextprotocol/logLevel":"info",'
    b'"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"com.example/x":1}'
)
BY_FIELD: dict[str, list[Any]] = {
    "_meta": [{"com.example/x": {"deep": [1, None]}}],
    "inputSchema": [{"type": "object", "properties": {"a": True, "b": {"type": "string"}}, "required": ["a"]}],
    "outputSchema": [
        {"type": "array", "items": {"$ref": "#/$defs/x"}, "$defs": {"x": {"type": "integer"}}},
        {"type": "object", "properties": {"a": False, "b": {}}},
    ],
    "structuredContent": [{"a": 1}, [1, 2], None, "text", 0.5],
}
SCALARS: dict[Any, list[Any]] = {
    str: ["text"],
    int: [1],
    float: [0.5],
    bool: [True, False],
    Any: [{"any": ["thing", 1]}],
    Raw: [Raw(b'{"action":"accept","content":{"n":1}}')],
}


def variants(annotation: Any, wire_name: str = "") -> list[Any]:
    """Return values of an annotation with every optional field set: together they show every member of its unions."""
    if wire_name == "_meta" and Raw in get_args(_inner(annotation)):
        return [FULL_META]
    if wire_name in BY_FIELD:
        return BY_FIELD[wire_name]
    return _variants(_inner(annotation))


def _variants(annotation: Any) -> list[Any]:
    origin = get_origin(annotation)
    if origin in (typing.Union, types.UnionType):
        members = [member for member in get_args(annotation) if member not in (type(None), UnsetType)]
        return [value for member in members for value in variants(member)]
    if origin is Literal:
        return list(get_args(annotation))
    if origin is list:
        return [variants(get_args(annotation)[0])]
    if origin is dict:
        return [{f"k{i}": value for i, value in enumerate(variants(get_args(annotation)[1]))}]
    if annotation in SCALARS:
        return SCALARS[annotation]
    if is_choice(annotation):
        return [value for member in annotation.members for value in struct_variants(member)]
    return struct_variants(annotation)


def _inner(annotation: Any) -> Any:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def struct_variants(kind: type[Struct]) -> list[Any]:
    """Return as many values of a struct as its most variable field has."""
    if kind is t.NumberSchema:
        bounds = {"minimum": 0, "maximum": 2.5, "title": "t", "description": "d"}
        return [kind("integer", default=1, **bounds), kind("number", default=1, **bounds)]
    if kind is t.ElicitResult:
        answer = {"a": "text", "b": 1, "c": True}
        return [kind(action, content=answer, meta={"a": 1}) for action in ("accept", "decline", "cancel")]
    columns = {field.name: variants(field.type, field.encode_name) for field in msgspec.structs.fields(kind)}
    count = max((len(values) for values in columns.values()), default=1)
    return [kind(**{name: values[i % len(values)] for name, values in columns.items()}) for i in range(count)]


def span_of(annotation: Any) -> Span:
    """Return which revisions have the field that is so annotated."""
    return next((mark for mark in getattr(annotation, "__metadata__", ()) if isinstance(mark, Span)), Span())


def wire_fields(kind: type[Struct], revision: Revision) -> dict[str, Any]:
    """Return the members that a struct has in a revision, by wire name, with their annotations."""
    found = {
        field.encode_name: field.type
        for field in msgspec.structs.fields(kind)
        if revision.covers(span_of(field.type).since, span_of(field.type).until)
    }
    tag_field = kind.__struct_config__.tag_field
    return found if tag_field is None else {tag_field: Literal[kind.__struct_config__.tag], **found}
