"""Members that objects may not have by a schema, where nothing else is asked of a value.

For types that convert more than their schema shows, but pass over members that they do not know: pydantic's. Whether
a value is accepted otherwise is not decided here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from modelwire.server import explain
from modelwire.server.json_values import is_list, is_object
from modelwire.server.schema_words import resolve


class UnknownMembers:
    """Finds them in one value.

    Args:
        schema: The schema, its references to be found in it.
    """

    __slots__ = ("_found", "_root")

    def __init__(self, schema: dict[str, Any]) -> None:
        self._root = schema
        self._found: dict[tuple[int, int], list[str]] = {}
        """By schema and value: two forms of one value may hold its members against the same schemas."""

    def clauses(self, value: Any, path: str) -> list[str]:
        """Return one clause per member.

        Args:
            value: Decoded JSON.
            path: What to call it.
        """
        return self._clauses(self._root, value, path)

    def _clauses(self, schema: Any, value: Any, path: str) -> list[str]:
        if not is_object(schema) or not (is_object(value) or is_list(value)):
            return []
        found = self._resolved(schema)
        key = (id(found), id(value))
        if key not in self._found:
            self._found[key] = self._looked_for(found, value, path)
        return self._found[key]

    def _resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        return resolve(self._root, schema["$ref"]) if "$ref" in schema else schema

    def _looked_for(self, schema: dict[str, Any], value: Any, path: str) -> list[str]:
        options: list[Any] = schema.get("anyOf") or schema.get("oneOf") or []
        if options:
            possible = [self._clauses(one, value, path) for one in options if self._is_possible(one, value)]
            return min(possible, key=len) if possible else []
        here = _unknown(schema, value, path)
        return here + [clause for inner, item, place in _inside(schema, value, path)
                       for clause in self._clauses(inner, item, place)]  # fmt: skip

    def _is_possible(self, schema: Any, value: Any) -> bool:
        """Whether a value could be meant for one of several forms: it is of that kind, and not marked as another."""
        found = self._resolved(schema)
        if found.get("type") != ("object" if is_object(value) else "array"):
            return "anyOf" in found or "oneOf" in found
        marks = {name: item["const"] for name, item in found.get("properties", {}).items() if "const" in item}
        return all(name not in value or value[name] == mark for name, mark in marks.items())


def _unknown(schema: dict[str, Any], value: Any, path: str) -> list[str]:
    if not is_object(value) or schema.get("additionalProperties") is not False:
        return []
    known: dict[str, Any] = schema.get("properties", {})
    return [explain.unknown_member(path, name, known) for name in value if name not in known]


def _inside(schema: dict[str, Any], value: Any, path: str) -> Iterator[tuple[Any, Any, str]]:
    """What is in a value: the schema of each item, the item, and what to call it."""
    if is_object(value):
        known, others = schema.get("properties", {}), schema.get("additionalProperties")
        for name, item in value.items():
            yield known.get(name, others), item, f"{path}.{explain.short(name)}"
    else:
        places: list[Any] = schema.get("prefixItems", [])
        for index, item in enumerate(value):
            yield places[index] if index < len(places) else schema.get("items"), item, f"{path}[{index}]"
