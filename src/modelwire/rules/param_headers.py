"""Tool parameters that HTTP headers repeat: where ``x-mcp-header`` stands in an ``inputSchema``, and whether it may.

An argument so marked is also sent as ``Mcp-Param-{name}``, so that a proxy can route by it without reading the body
(2026-07-28, basic/transports/streamable-http, Custom Headers from Tool Parameters). A tool that breaks a rule is
invalid as a whole: servers refuse to register it, clients over HTTP leave it out. This file reads schemas and
arguments; it builds no header.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias, cast
from urllib.parse import unquote

from modelwire.protocol.structured import LITERAL, NAMED

KEYWORD: Final = "x-mcp-header"
MAX_INTEGER: Final = 2**53 - 1
"""The largest integer that may be mirrored; the smallest is its negative."""

Path: TypeAlias = tuple[str, ...]
"""Names of properties, from the arguments object inwards."""

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_KINDS: Final = ("string", "integer", "boolean")
_UNSAFE: Final = "an integer beyond ±(2**53-1)"


class InvalidParamHeader(ValueError):
    """An ``x-mcp-header`` breaks a rule, which makes its tool invalid.

    Args:
        steps: Where it stands: the keys that lead there from the root of the schema.
        reason: Which rule, as the end of a sentence.
    """

    def __init__(self, steps: tuple[str, ...], reason: str) -> None:
        super().__init__(f"{KEYWORD} at #/{'/'.join(steps)} {reason}")
        self.steps = steps
        self.reason = reason


def param_headers(schema: Any) -> dict[str, Path]:
    """Return the names of the headers, the part after ``Mcp-Param-``, each with the path of its parameter.

    A parameter is of one of three types, ``string``, ``integer`` and ``boolean``, said by ``type``, by the values that
    it lists, or by what it refers to. It may be ``null`` as well, in which case no header is sent; but not of two of
    them, since a header does not tell ``5`` from ``"5"``.

    Args:
        schema: The ``inputSchema``, as JSON.

    Raises:
        InvalidParamHeader: One of them breaks a rule.
    """
    found: dict[str, Path] = {}
    first: dict[str, str] = {}
    for steps, annotated, path in _annotated(schema):
        name = annotated[KEYWORD]
        reason = _name_fault(name) or _place_fault(path) or _type_fault(schema, annotated)
        if reason is None and name.lower() in first:
            reason = f"is {name!r}, which {first[name.lower()]!r} has already; upper and lower case are one"
        if reason is not None:
            raise InvalidParamHeader(steps, reason)
        found[name] = path or ()
        first[name.lower()] = ".".join(found[name])
    return found


def value_at(arguments: Any, path: Path) -> Any:
    """Return the value that a header repeats; None where there is none to send.

    "If no value is present at that path in the call arguments, the header is omitted", and so it is for ``null``.

    Args:
        arguments: The arguments of the call, as JSON.
        path: As `param_headers` gave it.
    """
    found: Any = arguments
    for name in path:
        if not isinstance(found, Mapping):
            return None
        found = cast("Mapping[str, Any]", found).get(name)
    return found


def is_unsafe(value: Any) -> bool:
    """Whether a value is a number outside the range of integers that every peer can hold exactly."""
    return type(value) in (int, float) and abs(value) > MAX_INTEGER


def _annotated(schema: Any) -> Iterator[tuple[tuple[str, ...], dict[str, Any], Path | None]]:
    """Every subschema with the keyword, in order: where it stands, and its path if only ``properties`` lead there."""
    waiting: list[tuple[tuple[str, ...], Any, Path | None]] = [((), schema, ())]
    while waiting:
        steps, found, path = waiting.pop()
        inner: list[tuple[tuple[str, ...], Any, Path | None]] = []
        if isinstance(found, list):
            inner = [((*steps, str(index)), item, None) for index, item in enumerate(cast("list[Any]", found))]
        elif isinstance(found, dict):
            members = cast("dict[str, Any]", found)
            if KEYWORD in members:
                yield steps, members, path
            for keyword, value in members.items():
                if keyword not in LITERAL and keyword != KEYWORD:
                    inner += _inside(steps, keyword, value, path)
        waiting += reversed(inner)


def _inside(
    steps: tuple[str, ...], keyword: str, value: Any, path: Path | None
) -> Iterator[tuple[tuple[str, ...], Any, Path | None]]:
    steps = (*steps, keyword)
    if keyword not in NAMED or not isinstance(value, dict):
        yield steps, value, None
        return
    for name, item in cast("dict[str, Any]", value).items():
        yield (*steps, name), item, (*path, name) if path is not None and keyword == "properties" else None


def _name_fault(name: Any) -> str | None:
    if not isinstance(name, str):
        return "is no text"
    if not name:
        return "is empty; it is the name of a header"
    if not _TOKEN.fullmatch(name):
        return f"is {name[:60]!r}, which is no name of a header: letters, digits and !#$%&'*+-.^_`|~ only"
    return None


def _place_fault(path: Path | None) -> str | None:
    # "MUST only be applied to properties that are statically reachable from the schema root"
    if path == ():
        return "stands at the arguments as a whole; it marks one parameter"
    if path is None:
        return (
            "stands where no client looks for it: only parameters and fields of objects may have it, "
            "nothing in a list, in alternatives or behind a $ref"
        )
    return None


def _type_fault(root: Any, schema: dict[str, Any]) -> str | None:
    # "MUST only be applied to parameters with primitive types (integer, string, boolean)"
    kinds = _kinds(root, schema, set()) - {"null"}
    if len(kinds) == 1 and kinds <= set(_KINDS):
        return None
    shown = " or ".join(sorted(kinds)) or "null alone"
    return f"marks a parameter of type {shown}; it may be one of {', '.join(_KINDS)}"


def _kinds(root: Any, schema: Any, seen: set[str]) -> set[str]:
    """The types of JSON that a schema says it takes; ``any`` where it does not say."""
    if not isinstance(schema, dict):
        return {"any"}
    found = cast("dict[str, Any]", schema)
    listed = [found["const"]] if "const" in found else _items(found.get("enum"))
    if "type" in found:
        unsafe = {_UNSAFE} if any(is_unsafe(value) for value in listed) else set[str]()
        return unsafe | {str(kind) for kind in _items(found["type"]) or [found["type"]]}
    if listed:
        return {_kind(value) for value in listed}
    reference = found.get("$ref")
    if isinstance(reference, str):
        if reference in seen:  # each is followed once: a schema may refer to itself, or fan out without end
            return set()
        seen.add(reference)
        return _kinds(root, _target(root, reference), seen)
    options = _items(found.get("anyOf")) or _items(found.get("oneOf")) or [True]
    return {kind for option in options for kind in _kinds(root, option, seen)}


def _items(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _kind(value: Any) -> str:
    if is_unsafe(value):
        return _UNSAFE
    names: dict[Any, str] = {bool: "boolean", int: "integer", str: "string", float: "number", type(None): "null"}
    return names.get(type(value), "any")


def _target(root: Any, reference: str) -> Any:
    """What a reference within the schema points to; None where that is nothing."""
    if not reference.startswith("#/"):
        return None
    found: Any = root
    for step in reference[2:].split("/"):
        step = unquote(step).replace("~1", "/").replace("~0", "~")
        found = cast("dict[str, Any]", found).get(step) if isinstance(found, dict) else None
    return found
