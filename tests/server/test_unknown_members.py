"""Members that a schema does not know, and nothing of other faults."""

from __future__ import annotations

from typing import Any

import pytest

from modelwire.server.unknown_members import UnknownMembers

POINT = {"type": "object", "properties": {"x": {"type": "integer"}}, "additionalProperties": False}
OPEN = {"type": "object", "properties": {"inner": {"$ref": "#/$defs/Point"}}}
CAT = {"type": "object", "properties": {"kind": {"const": "cat"}, "lives": {}}, "additionalProperties": False}
DOG = {"type": "object", "properties": {"kind": {"const": "dog"}}, "additionalProperties": False}


def clauses(schema: dict[str, Any], value: Any) -> list[str]:
    return UnknownMembers({**schema, "$defs": {"Point": POINT}}).clauses(value, "v")


@pytest.mark.parametrize(
    ("schema", "value", "told"),
    [
        (POINT, {"x": "of another type"}, []),
        (POINT, {"y": 1, "size": 2}, ["v.y: unknown member", "v.size: unknown member"]),
        (POINT, {"xs": 1}, ["v.xs: unknown member; did you mean x?"]),
        (POINT, [{"y": 1}], []),
        ({"$ref": "#/$defs/Point"}, {"y": 1}, ["v.y: unknown member"]),
        (OPEN, {"y": 1, "inner": {"z": 1}}, ["v.inner.z: unknown member"]),
        ({"type": "array", "items": POINT}, [{"x": 1}, {"y": 1}], ["v[1].y: unknown member"]),
        ({"type": "array", "prefixItems": [{}, POINT]}, [{"y": 1}, {"y": 1}, {"y": 1}], ["v[1].y: unknown member"]),
        ({"type": "object", "additionalProperties": POINT}, {"a": {"y": 1}}, ["v.a.y: unknown member"]),
        ({"anyOf": [POINT, {"type": "null"}]}, {"y": 1}, ["v.y: unknown member"]),
        ({"anyOf": [POINT, {"type": "object"}]}, {"y": 1}, []),
        ({"anyOf": [{"anyOf": [POINT]}, {"type": "string"}]}, {"y": 1}, ["v.y: unknown member"]),
        ({"oneOf": [CAT, DOG]}, {"kind": "dog", "lives": 9}, ["v.lives: unknown member"]),
        ({"oneOf": [CAT, DOG]}, {"kind": "cow", "lives": 9}, []),
    ],
)
def test_unknown_members_are_told_where_they_are(schema: dict[str, Any], value: Any, told: list[str]) -> None:
    assert clauses(schema, value) == told


def test_forms_within_forms_cost_no_more_with_each_level() -> None:
    form = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Form"}}, "additionalProperties": False}
    schema = {"$ref": "#/$defs/Form", "$defs": {"Form": {"anyOf": [form, {**form, "title": "Other"}]}}}
    value: dict[str, Any] = {"last": 1}
    for _ in range(60):
        value = {"next": value}

    assert len(UnknownMembers(schema).clauses(value, "v")) == 1
