"""Strategies: parameters made from the official schemas, and what bad programs make of them.

`params_of` draws parameters that fit a method's schema and then breaks them in a few places. Whether a value is right
is for the tests to find out; this file only sees to it that values lie near the border.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st

from tests.robustness.rich_server import OWN_METHOD, PROMPTS, TEMPLATES, TOOLS, URIS
from tests.spec import REVISION_NAMES, definitions, messages

Draw = Callable[[st.SearchStrategy[Any]], Any]

PER_REQUEST = "2026-07-28"
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
INFO_KEY = "io.modelcontextprotocol/clientInfo"
LEVEL_KEY = "io.modelcontextprotocol/logLevel"
GOOD_META = {VERSION_KEY: PER_REQUEST, CAPABILITIES_KEY: {}, INFO_KEY: {"name": "tester", "version": "1"}}

TEXT = st.text(st.characters(), max_size=6)
"""Lone surrogates included: JSON can spell them, and JavaScript does."""
NUMBERS = st.one_of(
    st.integers(),
    st.sampled_from([0, -1, 2**53, 2**63, 2**64, -(2**63) - 1, 10**400]),
    st.floats(allow_nan=False, allow_infinity=False),
)


def _nested(depth: int) -> Any:
    value: Any = 1
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


ODDITIES = st.sampled_from(
    ["x" * 70_000, "é" * 40_000, "\0", "\ud800", "\udc00\ud800", _nested(60), _nested(240), _nested(300), [[]] * 500]
)
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    NUMBERS,
    TEXT,
    st.lists(TEXT, max_size=2),
    st.dictionaries(TEXT, st.none() | st.integers() | TEXT, max_size=2),
    ODDITIES,
)

_WORDS: dict[str, list[Any]] = {
    "name": [*TOOLS, *PROMPTS, "focus", "number"],
    "uri": [*URIS, *TEMPLATES],
    "protocolVersion": [*REVISION_NAMES, "1999-01-01", ""],
    "cursor": ["dG9vbDox", "dG9vbDo", "", "cHJvbXB0OjE"],
    "method": [OWN_METHOD],
    VERSION_KEY: [*REVISION_NAMES, "x"],
}
"""Strings that mean something to the server, by the name of the member."""

ARGUMENTS = st.sampled_from(
    [
        {"a": 1, "b": 2}, {"text": "x"}, {"values": [2, 1]}, {"points": [{"x": 1}]}, {"n": 1}, {"value": {}},
        {"number": "1"}, {"name": "x"}, {},
    ]
)  # fmt: skip


def params_schema(method: str, revision: str) -> tuple[str, dict[str, Any]]:
    """Return a revision that has the method, best ``revision`` itself, and the schema of the parameters there."""
    for name in (revision, *reversed(REVISION_NAMES)):
        if method in messages(name):
            return name, definitions(name)[messages(name)[method]]["properties"].get("params", {"type": "object"})
    return revision, {"type": "object"}


@st.composite
def params_of(draw: Draw, method: str, revision: str, *, meta: bool) -> Any:
    """Draw parameters for a method: fitting ones, with up to three things wrong.

    Args:
        draw: Hypothesis's.
        method: The method.
        revision: The revision whose schema is taken, where it has the method.
        meta: Whether they carry the ``_meta`` of a per-request revision (until something breaks it).
    """
    named, schema = params_schema(method, revision)
    params = fitting(draw, schema, definitions(named), "params")
    if not isinstance(params, dict):
        params = {}
    if meta:
        params["_meta"] = {**params["_meta"], **GOOD_META} if isinstance(params.get("_meta"), dict) else dict(GOOD_META)
    elif isinstance(params.get("_meta"), dict) and not draw(st.booleans()):
        del params["_meta"]
    for _ in range(draw(st.integers(0, 3))):
        params = broken(draw, params)
    return params


def fitting(draw: Draw, schema: Any, types: dict[str, Any], name: str, depth: int = 0) -> Any:
    """Draw a value that fits a schema, but for bounds and formats."""
    if not isinstance(schema, dict):
        return draw(JUNK)
    if "$ref" in schema:
        return fitting(draw, types[schema["$ref"].rsplit("/", 1)[1]], types, name, depth + 1)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return fitting(draw, draw(st.sampled_from(schema[key])), types, name, depth + 1)
    if "allOf" in schema:
        parts = [fitting(draw, part, types, name, depth + 1) for part in schema["allOf"]]
        return {key: value for part in parts for key, value in part.items()}
    return _of_type(draw, schema, types, name, depth)


def _of_type(draw: Draw, schema: dict[str, Any], types: dict[str, Any], name: str, depth: int) -> Any:
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        kind = draw(st.sampled_from(kind))
    if kind == "object":
        return _object(draw, schema, types, name, depth)
    if kind == "array":
        size = draw(st.integers(0, 2 if depth < 8 else 0))
        return [fitting(draw, schema.get("items", {}), types, name, depth + 1) for _ in range(size)]
    if kind == "string":
        return draw(st.sampled_from(_WORDS[name]) if name in _WORDS else TEXT)
    simple = {"integer": st.integers(-5, 100), "number": st.integers(-5, 100) | st.just(0.5), "boolean": st.booleans()}
    return draw(simple.get(kind, st.none() if kind == "null" else JUNK))


def _object(draw: Draw, schema: dict[str, Any], types: dict[str, Any], name: str, depth: int) -> Any:
    if name == "arguments":
        return copy.deepcopy(draw(ARGUMENTS))
    required = schema.get("required", [])
    found: dict[str, Any] = {}
    for key, member in schema.get("properties", {}).items():
        if key in required or (depth < 6 and draw(st.integers(0, 2)) == 0):
            found[key] = fitting(draw, member, types, key, depth + 1)
    return found


# ------------------------------------------------------------------------------------------------- what goes wrong

Path = tuple[Any, ...]


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the path of every value inside ``value``, itself first; not into what is very deep or long."""
    yield path
    if len(path) > 6:
        return
    if isinstance(value, dict):
        for key, member in list(value.items())[:20]:
            yield from places(member, (*path, key))
    elif isinstance(value, list):
        for index, member in enumerate(value[:5]):
            yield from places(member, (*path, index))


def _edited(value: Any, path: Path, edit: Callable[[Any], Any]) -> Any:
    if not path:
        return edit(value)
    changed = copy.copy(value)
    changed[path[0]] = _edited(value[path[0]], path[1:], edit)
    return changed


def _without(value: Any, path: Path) -> Any:
    def drop(holder: Any) -> Any:
        holder = copy.copy(holder)
        del holder[path[-1]]
        return holder

    return _edited(value, path[:-1], drop)


def broken(draw: Draw, value: Any) -> Any:
    """Draw a value that differs from ``value`` in one place."""
    path = draw(st.sampled_from(list(places(value))))
    how = draw(st.sampled_from(["replace", "drop", "add", "wrap", "unwrap", "respell"]))
    if how == "drop" and path:
        return _without(value, path)
    if how == "add":
        added = draw(st.sampled_from(["_meta", "name", "", "__class__", "params", "task"])), draw(JUNK)
        return _edited(value, path, lambda old: {**old, added[0]: added[1]} if isinstance(old, dict) else [old])
    if how == "wrap":
        return _edited(value, path, lambda old: [old])
    if how == "unwrap":
        return _edited(value, path, lambda old: next(iter(old.values()), None) if isinstance(old, dict) else {"v": old})
    if how == "respell":
        return _edited(value, path, lambda old: str(old) if not isinstance(old, str) else old + "\ud83d")
    junk = draw(JUNK)
    return _edited(value, path, lambda old: junk)


def depth_of(value: Any) -> int:
    """Return how deep a value nests."""
    deepest, layer = 0, [value]
    while layer := [item for item in layer if isinstance(item, dict | list)]:
        deepest += 1
        layer = [member for item in layer for member in (item.values() if isinstance(item, dict) else item)]
    return deepest
