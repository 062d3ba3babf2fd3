"""Structured results for revisions in which they must be objects.

Up to 2025-11-25 ``outputSchema`` has ``type: object`` and ``structuredContent`` is an object. Any other schema and
result is wrapped there as ``{"result": ...}``, marked in the tool's and in the result's ``_meta``; only what is so
marked is unwrapped. 2026-07-28 sends both as they are. The functions here change no argument.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from msgspec import UNSET

from modelwire.protocol.types.content import ToolResultContent
from modelwire.protocol.types.tools import CallToolResult, Tool

WRAPPED: Final = "dev.modelwire/wrapped"
"""The key in ``_meta`` that marks what was wrapped."""
MEMBER: Final = "result"
"""The member of the wrapping object that holds the value."""

_HOISTED: Final = ("$schema", "$id", "$defs", "definitions")
_INSIDE: Final = f"#/properties/{MEMBER}"
LITERAL: Final = frozenset({"const", "enum", "default", "examples"})
"""Keywords whose values are data, not schemas."""
NAMED: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords whose values are schemas by name."""

_R = TypeVar("_R", CallToolResult, ToolResultContent)


def needs_wrapping(schema: Any) -> bool:
    """Say whether handshake revisions cannot carry ``schema`` as ``outputSchema``."""
    return not (isinstance(schema, dict) and cast("dict[str, Any]", schema).get("type") == "object")


def is_no_object(value: Any) -> bool:
    """Say whether ``value`` certainly becomes something else than a JSON object."""
    return value is None or isinstance(value, (str, bytes, int, float, list, tuple, set, frozenset))


def wrap_schema(schema: Any) -> dict[str, Any]:
    """Return a schema of the objects ``{"result": x}`` where ``x`` fits ``schema``.

    ``$defs`` and ``definitions`` move to the root, where references to them go on pointing; references to the root or
    to anything else in it are turned to where it is now.
    """
    if not isinstance(schema, dict):
        return {"type": "object", "properties": {MEMBER: schema}, "required": [MEMBER]}
    given = cast("dict[str, Any]", schema)
    moved = _map_refs(given, lambda ref: _turned_in(ref, given.get("$id")))
    root = {key: moved.pop(key) for key in _HOISTED if key in moved}
    return {**root, "type": "object", "properties": {MEMBER: moved}, "required": [MEMBER]}


def unwrap_schema(schema: dict[str, Any]) -> Any:
    """Return what `wrap_schema` was given."""
    inner = schema["properties"][MEMBER]
    if not isinstance(inner, dict):
        return inner
    root = {key: schema[key] for key in _HOISTED if key in schema}
    return _map_refs({**root, **cast("dict[str, Any]", inner)}, lambda ref: _turned_out(ref, root.get("$id")))


def _turned_in(ref: str, base: Any) -> str:
    prefix, pointer = _local(ref, base)
    if pointer is None or pointer.split("/")[1:2] in (["$defs"], ["definitions"]):
        return ref
    return f"{prefix}{_INSIDE}{pointer}"


def _turned_out(ref: str, base: Any) -> str:
    prefix, pointer = _local(ref, base)
    inside = _INSIDE[1:]
    if pointer is None or not (pointer == inside or pointer.startswith(f"{inside}/")):
        return ref
    return f"{prefix}#{pointer[len(inside) :]}"


def _local(ref: str, base: Any) -> tuple[str, str | None]:
    """Split a reference into the document that it names and the pointer into it; None when it points elsewhere."""
    prefix, _, fragment = ref.partition("#")
    if prefix and prefix != str(base).partition("#")[0]:
        return prefix, None
    return prefix, fragment if fragment == "" or fragment.startswith("/") else None


def _map_refs(schema: Any, turn: Callable[[str], str]) -> Any:
    """Return a copy of ``schema`` with every reference of this document turned."""
    if isinstance(schema, list):
        return [_inner(item, turn) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    copied: dict[str, Any] = {}
    for key, value in cast("dict[str, Any]", schema).items():
        if key in ("$ref", "$dynamicRef") and isinstance(value, str):
            copied[key] = turn(value)
        elif key in LITERAL:
            copied[key] = value
        elif key in NAMED and isinstance(value, dict):
            copied[key] = {name: _inner(item, turn) for name, item in cast("dict[str, Any]", value).items()}
        else:
            copied[key] = _inner(value, turn)
    return copied


def _inner(schema: Any, turn: Callable[[str], str]) -> Any:
    """A subschema with an ``$id`` is a document of its own; what it refers to did not move."""
    if isinstance(schema, dict) and isinstance(cast("dict[str, Any]", schema).get("$id"), str):
        return cast("dict[str, Any]", schema)
    return _map_refs(schema, turn)


def wrap_tool(tool: Tool) -> Tool:
    """Return ``tool`` as handshake revisions can list it; the same object when they can list it as it is."""
    if tool.output_schema is None or not needs_wrapping(tool.output_schema):
        return tool
    wrapped = copy.copy(tool)
    wrapped.output_schema = wrap_schema(tool.output_schema)
    wrapped.meta = {**(tool.meta or {}), WRAPPED: True}
    return wrapped


def unwrap_tool(tool: Tool) -> Tool:
    """Return ``tool`` as its server declared it; the same object when it is not marked."""
    schema = tool.output_schema
    if not _marked(tool.meta) or schema is None or not _holds_member(schema.get("properties")):
        return tool
    unwrapped = copy.copy(tool)
    unwrapped.output_schema = unwrap_schema(schema)
    unwrapped.meta = _unmarked(tool.meta)
    return unwrapped


def wrap_result(result: _R) -> _R:
    """Return ``result`` with its ``structuredContent`` wrapped; the same object when it has none.

    For results of tools whose schema `needs_wrapping`, in revisions with `Revision.structured` but without
    `Revision.any_structured`. What is wrapped already stays so.
    """
    if result.structured_content is UNSET or _marked(result.meta):
        return result
    wrapped = copy.copy(result)
    wrapped.structured_content = {MEMBER: result.structured_content}
    wrapped.meta = {**(result.meta or {}), WRAPPED: True}
    return wrapped


def unwrap_result(result: _R) -> _R:
    """Return ``result`` as its server meant it; the same object when it is not marked."""
    content: Any = result.structured_content
    if not _marked(result.meta) or not _holds_member(content):
        return result
    unwrapped = copy.copy(result)
    unwrapped.structured_content = content[MEMBER]
    unwrapped.meta = _unmarked(result.meta)
    return unwrapped


def is_wrapping(value: Any) -> bool:
    """Say whether ``value`` looks like what is wrapped, here or by others: an object with the one member."""
    return isinstance(value, dict) and cast("dict[Any, Any]", value).keys() == {MEMBER}


def _marked(meta: dict[str, Any] | None) -> bool:
    return meta is not None and meta.get(WRAPPED) is True


def _unmarked(meta: dict[str, Any] | None) -> dict[str, Any] | None:
    return {key: value for key, value in (meta or {}).items() if key != WRAPPED} or None


def _holds_member(value: Any) -> bool:
    return isinstance(value, dict) and MEMBER in value


def plain_properties(tool: Tool) -> Tool:
    """Return ``tool`` with property schemas that are objects; the same object when they all are.

    Handshake revisions allow no ``true`` or ``false`` there. ``{}`` and ``{"not": {}}`` mean the same.
    """
    changes: dict[str, Any] = {}
    for name in ("input_schema", "output_schema"):
        schema = cast("dict[str, Any] | None", getattr(tool, name))
        properties = schema.get("properties") if isinstance(schema, dict) else None
        if schema is not None and isinstance(properties, dict):
            plain = {key: _plain(item) for key, item in cast("dict[str, Any]", properties).items()}
            if any(plain[key] is not item for key, item in cast("dict[str, Any]", properties).items()):
                changes[name] = {**schema, "properties": plain}
    if not changes:
        return tool
    changed = copy.copy(tool)
    for name, schema in changes.items():
        setattr(changed, name, schema)
    return changed


def _plain(schema: Any) -> Any:
    if isinstance(schema, bool):
        return {} if schema else {"not": {}}
    return schema
