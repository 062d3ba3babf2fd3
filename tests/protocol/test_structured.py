"""`modelwire.protocol.structured`: wrapping what handshake revisions cannot carry, and unwrapping only that."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from modelwire.protocol import structured, wire
from modelwire.protocol.revisions import REVISIONS
from modelwire.protocol.structured import (
    needs_wrapping,
    unwrap_result,
    unwrap_schema,
    unwrap_tool,
    wrap_result,
    wrap_schema,
    wrap_tool,
)
from modelwire.protocol.types import CallToolResult, TextContent, Tool, ToolResultContent

OBJECT: dict[str, Any] = {"type": "object"}
TREE: dict[str, Any] = {"type": "array", "items": {"$ref": "#"}}

SCHEMAS: list[tuple[dict[str, Any], list[Any], list[Any]]] = [
    ({"type": "integer"}, [1], ["x", {}]),
    ({}, [1, {}, None], []),
    (TREE, [[], [[], [[]]]], [1, [1]]),
    (
        {
            "$ref": "#/$defs/node",
            "$defs": {"node": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/pair"}]}, "pair": TREE},
        },
        [None],
        [1],
    ),
    (
        {"definitions": {"n": {"type": "number"}}, "items": {"$ref": "#/definitions/n"}, "type": "array"},
        [[1.5]],
        [["x"]],
    ),
    ({"type": "array", "prefixItems": [{"type": "string"}, {"$ref": "#/prefixItems/0"}]}, [["a", "b"]], [["a", 1]]),
    ({"anyOf": [{"type": "object", "properties": {"$ref": {"type": "string"}}}, {"type": "null"}]}, [{}, None], [1]),
    ({"enum": [{"$ref": "#"}]}, [{"$ref": "#"}], [{"$ref": "#/properties/result"}]),
    ({"$id": "https://example.com/s", "type": "array", "items": {"$ref": "https://example.com/s#"}}, [[[]]], [[1]]),
    (
        {"type": "array", "items": {"$id": "https://example.com/i", "type": ["array", "null"], "items": {"$ref": "#"}}},
        [[None], [[None]]],
        [[1]],
    ),
]


@pytest.mark.parametrize(("schema", "good", "bad"), SCHEMAS)
def test_a_wrapped_schema_accepts_what_it_accepted_before(
    schema: dict[str, Any], good: list[Any], bad: list[Any]
) -> None:
    wrapped = wrap_schema(schema)
    assert wrapped["type"] == "object"
    before, after = (jsonschema_rs.validator_for(item, offline=True) for item in (schema, wrapped))
    for value in good:
        assert before.is_valid(value)
        assert after.is_valid({"result": value})
    for value in bad:
        assert not before.is_valid(value)
        assert not after.is_valid({"result": value})
    assert not after.is_valid({})


@pytest.mark.parametrize("schema", [schema for schema, _, _ in SCHEMAS])
def test_an_unwrapped_schema_is_what_it_was(schema: dict[str, Any]) -> None:
    before = json.dumps(schema)
    assert unwrap_schema(wrap_schema(schema)) == schema
    assert json.dumps(schema) == before


@pytest.mark.parametrize("schema", [True, False])
def test_a_boolean_schema_is_wrapped_too(schema: bool) -> None:
    assert unwrap_schema(wrap_schema(schema)) is schema


_KEYS = st.sampled_from(["type", "items", "anyOf", "$defs", "properties", "$ref", "const", "not", "title", "x"])
_VALUES = st.recursive(
    st.one_of(
        st.sampled_from(["#", "#/$defs/a", "#/properties/result", "#/items", "#anchor", "other#/x", "array"]),
        st.booleans(),
        st.integers(),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
)


@given(st.dictionaries(_KEYS, _VALUES, max_size=5))
def test_wrapping_and_unwrapping_any_object_gives_it_back(schema: dict[str, Any]) -> None:
    assert unwrap_schema(wrap_schema(schema)) == schema


@pytest.mark.parametrize("schema", [{"type": "array"}, {}, {"anyOf": [OBJECT]}, {"type": ["object", "null"]}, True])
def test_anything_but_the_schema_of_an_object_needs_wrapping(schema: Any) -> None:
    assert needs_wrapping(schema)


def test_the_schema_of_an_object_needs_none() -> None:
    assert not needs_wrapping({"type": "object", "$ref": "#/$defs/x"})


def test_a_tool_is_marked_and_unwrapped_by_its_mark() -> None:
    tool = Tool("t", OBJECT, output_schema=TREE, meta={"a": 1})
    wrapped = wrap_tool(tool)
    assert wrapped.meta == {"a": 1, "dev.modelwire/wrapped": True}
    assert wrapped.output_schema == {
        "type": "object",
        "properties": {"result": {"type": "array", "items": {"$ref": "#/properties/result"}}},
        "required": ["result"],
    }
    assert unwrap_tool(wrapped) == tool
    assert tool.output_schema is TREE


@pytest.mark.parametrize("schema", [None, OBJECT])
def test_a_tool_that_needs_no_wrapping_stays_the_same_object(schema: dict[str, Any] | None) -> None:
    tool = Tool("t", OBJECT, output_schema=schema)
    assert wrap_tool(tool) is tool


def test_a_schema_that_looks_wrapped_but_is_not_marked_is_left_alone() -> None:
    tool = Tool("t", OBJECT, output_schema=wrap_schema({"type": "integer"}))
    result = CallToolResult([], structured_content={"result": 1})
    assert unwrap_tool(tool) is tool
    assert unwrap_result(result) is result


@pytest.mark.parametrize("meta", [{structured.WRAPPED: True}, {structured.WRAPPED: 1}])
def test_a_mark_on_something_that_is_not_wrapped_does_no_harm(meta: dict[str, Any]) -> None:
    tool = Tool("t", OBJECT, output_schema=OBJECT, meta=meta)
    result = CallToolResult([], structured_content=[1], meta=meta)
    assert unwrap_tool(tool) is tool
    assert unwrap_result(result) is result


@pytest.mark.parametrize("value", [[1], None, "x", 0, {"a": 1}, {"result": 1}])
def test_a_result_is_marked_and_unwrapped_by_its_mark(value: Any) -> None:
    result = CallToolResult([TextContent("x")], structured_content=value)
    wrapped = wrap_result(result)
    assert wrapped.structured_content == {"result": value}
    assert wrap_result(wrapped) is wrapped
    assert unwrap_result(wrapped) == result
    assert result.structured_content is value
    assert result.meta is None


def test_a_result_without_structured_content_is_never_wrapped() -> None:
    result = CallToolResult([])
    assert wrap_result(result) is result
    assert result.structured_content is UNSET


@pytest.mark.parametrize("revision", REVISIONS, ids=str)
def test_encoding_wraps_tools_and_results_just_where_the_revision_needs_it(revision: Any) -> None:
    tool = json.loads(wire.encode(Tool("t", OBJECT, output_schema=TREE), revision))
    result = json.loads(wire.encode(CallToolResult([], structured_content=[1]), revision))
    if revision.any_structured:
        assert (tool["outputSchema"], result["structuredContent"]) == (TREE, [1])
    elif revision.structured:
        assert tool["outputSchema"]["properties"]["result"]["items"] == {"$ref": "#/properties/result"}
        assert result == {"content": [], "structuredContent": {"result": [1]}, "_meta": {structured.WRAPPED: True}}
    else:
        assert tool == {"name": "t", "inputSchema": OBJECT}
        assert result == {"content": []}


def test_a_tool_result_in_a_sampling_message_is_wrapped_as_well() -> None:
    block = ToolResultContent("id", [], structured_content=3)
    assert json.loads(wire.encode(block, REVISIONS[3])) == {
        "type": "tool_result",
        "toolUseId": "id",
        "content": [],
        "structuredContent": {"result": 3},
        "_meta": {structured.WRAPPED: True},
    }


def test_boolean_property_schemas_become_objects_where_only_objects_are_allowed() -> None:
    tool = Tool("t", {"type": "object", "properties": {"a": True, "b": False, "c": {"type": "string"}}})
    old = json.loads(wire.encode(tool, REVISIONS[3]))["inputSchema"]["properties"]
    assert old == {"a": {}, "b": {"not": {}}, "c": {"type": "string"}}
    assert json.loads(wire.encode(tool, REVISIONS[4]))["inputSchema"] == tool.input_schema
