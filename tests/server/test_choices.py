"""The values that schemas list."""

from __future__ import annotations

from typing import Any

import pytest

from modelwire.server.choices import choices, matching


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        ({"enum": ["a", "b"]}, ["a", "b"]),
        ({"const": "a"}, ["a"]),
        ({"enum": [1, 2.5, True, None]}, ["1", "2.5", "true"]),
        ({"$ref": "#/$defs/Colour", "description": "d"}, ["red"]),
        ({"anyOf": [{"$ref": "#/$defs/Colour"}, {"enum": ["x"]}, {"type": "null"}]}, ["red", "x"]),
        ({"anyOf": [{"enum": ["x", "y"]}, {"enum": ["y", "z"]}]}, ["x", "y", "z"]),
        ({"anyOf": [{"enum": ["x"]}, {"type": "integer"}]}, None),
        ({"$ref": "#/$defs/Day"}, None),
        ({"$ref": "#/$defs/Loop"}, None),
        ({"anyOf": [{"$ref": "#/$defs/Knot"}, {"enum": ["x"]}]}, None),
        ({"anyOf": [{"const": True}, {"const": 1}]}, ["true", "1"]),
        ({"type": "string"}, None),
        ({"type": "array", "items": {"enum": ["a"]}}, None),
        ({}, None),
        (True, None),
    ],
)
def test_only_a_schema_that_lists_every_value_has_choices(schema: Any, values: list[str] | None) -> None:
    defs: dict[str, Any] = {
        "Colour": {"enum": ["red"]},
        "Day": {"type": "object"},
        "Loop": {"$ref": "#/$defs/Loop"},
        "Knot": {"anyOf": [{"$ref": "#/$defs/Knot"}, {"enum": ["y"]}]},
    }
    found = choices({"properties": {"x": schema}, "$defs": defs}, ["x", "absent"])
    assert found == ({} if values is None else {"x": values})


def test_what_was_typed_matches_in_any_case() -> None:
    assert matching(["Straße", "strand", "Weg"], "STRASS") == ["Straße"]
    assert matching(["b", "a"], "") == ["b", "a"]
