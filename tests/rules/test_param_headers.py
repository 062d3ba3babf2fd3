"""Which parameters are mirrored into headers, and every way in which a schema may break a rule of it."""

from __future__ import annotations

from typing import Any

import pytest

from modelwire.rules.param_headers import MAX_INTEGER, InvalidParamHeader, is_unsafe, param_headers, value_at


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def marked(name: Any = "Region", **more: Any) -> dict[str, Any]:
    return {"type": "string", "x-mcp-header": name, **more}


def refused(found: Any) -> InvalidParamHeader:
    with pytest.raises(InvalidParamHeader) as caught:
        param_headers(found)
    return caught.value


def test_the_example_of_the_specification() -> None:
    found = {
        "type": "object",
        "properties": {
            "region": {"type": "string", "description": "The region to execute the query in", "x-mcp-header": "Region"},
            "query": {"type": "string", "description": "The SQL query to execute"},
        },
        "required": ["region", "query"],
    }
    assert param_headers(found) == {"Region": ("region",)}
    assert value_at({"region": "us-west1", "query": "SELECT 1"}, ("region",)) == "us-west1"


@pytest.mark.parametrize("found", [{}, {"type": "object"}, schema(a={"type": "string"}), True, None, 5, [], "x"])
def test_a_schema_without_marks_has_none(found: Any) -> None:
    assert param_headers(found) == {}


@pytest.mark.parametrize(
    "kind",
    [
        {"type": "string"},
        {"type": "integer"},
        {"type": "boolean"},
        {"type": ["string", "null"]},
        {"type": "string", "enum": ["a", "b"]},
        {"enum": ["a", "b"]},
        {"enum": [1, 2, None]},
        {"const": True},
        {"const": MAX_INTEGER},
        {"$ref": "#/$defs/Text"},
        {"$ref": "#/$defs/a~1b"},
        {"$ref": "#/$defs/%54ext"},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {"oneOf": [{"const": "a"}, {"const": "b"}]},
        {"anyOf": [{"$ref": "#/$defs/Text"}, {"enum": ["c"]}]},
    ],
    ids=str,
)
def test_text_integers_and_truth_values_may_be_mirrored_however_the_type_is_said(kind: dict[str, Any]) -> None:
    found = {**schema(p={**kind, "x-mcp-header": "P"}), "$defs": {"Text": {"type": "string"}, "a/b": {"enum": [1]}}}
    assert param_headers(found) == {"P": ("p",)}


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ({"type": "number"}, "number"),
        ({"type": "number", "enum": [1, 2]}, "number"),
        ({"type": "object"}, "object"),
        ({"type": "array"}, "array"),
        ({"type": "null"}, "null"),
        ({"type": ["string", "integer"]}, "integer or string"),
        ({"type": ["integer", "number"]}, "integer or number"),
        ({"anyOf": [{"type": "string"}, {"type": "boolean"}]}, "boolean or string"),
        ({"enum": ["a", 1]}, "integer or string"),
        ({"enum": [1.5]}, "number"),
        ({"enum": [None]}, "null"),
        ({"const": {"a": 1}}, "any"),
        ({"const": MAX_INTEGER + 1}, "beyond"),
        ({"type": "integer", "enum": [1, -MAX_INTEGER - 1]}, "beyond"),
        ({}, "any"),
        ({"anyOf": [{"type": "string"}, {}]}, "any"),
        ({"$ref": "#/$defs/Absent"}, "any"),
        ({"$ref": "https://example.com/schema"}, "any"),
        ({"$ref": "#/$defs/Loop"}, "null"),
        ({"type": 5}, "5"),
        ({"enum": "a", "anyOf": 7}, "any"),
    ],
    ids=str,
)
def test_no_other_type_may_be(kind: dict[str, Any], shown: str) -> None:
    found = {**schema(p={**kind, "x-mcp-header": "P"}), "$defs": {"Loop": {"$ref": "#/$defs/Loop"}}}
    error = refused(found)
    assert error.steps == ("properties", "p")
    assert shown in str(error)


@pytest.mark.parametrize("name", ["Region", "X-Y_z", "a", "0", "!#$%&'*+-.^_`|~", "N" * 200])
def test_a_name_is_a_token_of_http(name: str) -> None:
    assert param_headers(schema(p=marked(name))) == {name: ("p",)}


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            " ",
            "Re gion",
            "Region ",
            "a:b",
            "a/b",
            "a(b)",
            "a\r\nb",
            "a\n",
            "\r",
            "a\0b",
            "a\x7fb",
            "Région",
            '"a"',
        ),
        *("区域", None, 5, True, ["Region"], {"name": "Region"}),
    ],
)
def test_no_other_name_is(name: Any) -> None:
    assert refused(schema(ok=marked("Ok"), p=marked(name))).steps == ("properties", "p")


@pytest.mark.parametrize("other", ["Region", "region", "REGION"])
def test_two_of_one_name_in_whatever_case_are_one_too_many(other: str) -> None:
    nested = schema(b=marked(other))
    error = refused(schema(a=marked("Region"), nested=nested))
    assert error.steps == ("properties", "nested", "properties", "b")
    assert "'a'" in str(error)


def test_nested_objects_may_have_them() -> None:
    found = schema(
        where={"type": "object", "properties": {"zone": schema(id=marked("Zone", type="integer"))}}, name=marked("Name")
    )
    assert param_headers(found) == {"Zone": ("where", "zone", "id"), "Name": ("name",)}
    assert value_at({"where": {"zone": {"id": 7}}}, ("where", "zone", "id")) == 7


@pytest.mark.parametrize(
    "wrapped",
    [
        {"items": {"mark": 1}},
        {"prefixItems": [{"mark": 1}]},
        {"contains": {"mark": 1}},
        {"anyOf": [{"type": "null"}, {"mark": 1}]},
        {"oneOf": [{"mark": 1}]},
        {"allOf": [{"mark": 1}]},
        {"not": {"mark": 1}},
        {"if": {"mark": 1}},
        {"then": {"properties": {"x": {"mark": 1}}}},
        {"else": {"mark": 1}},
        {"additionalProperties": {"mark": 1}},
        {"patternProperties": {"^x": {"mark": 1}}},
        {"propertyNames": {"mark": 1}},
        {"dependentSchemas": {"x": {"properties": {"y": {"mark": 1}}}}},
        {"unevaluatedProperties": {"mark": 1}},
        {"$defs": {"properties": {"properties": {"y": {"mark": 1}}}}},
        {"definitions": {"y": {"mark": 1}}},
    ],
    ids=str,
)
@pytest.mark.parametrize("deep", [False, True])
def test_nothing_but_properties_may_lead_there(wrapped: Any, deep: bool) -> None:
    def filled(value: Any) -> Any:
        if value == {"mark": 1}:
            return marked()
        if isinstance(value, dict):
            return {key: filled(item) for key, item in value.items()}
        return [filled(item) for item in value] if isinstance(value, list) else value

    inner = filled(wrapped)
    found = schema(a={"type": "object", **inner}) if deep else {"type": "object", **inner}
    assert "no client looks" in str(refused(found))


def test_the_arguments_as_a_whole_are_no_parameter() -> None:
    assert "one parameter" in str(refused({**schema(), "x-mcp-header": "All"}))


@pytest.mark.parametrize("keyword", ["const", "enum", "default", "examples"])
def test_values_are_no_schemas(keyword: str) -> None:
    value: Any = {"x-mcp-header": "not a header"}
    assert param_headers(schema(p={keyword: [value] if keyword in ("enum", "examples") else value})) == {}


def test_a_property_may_be_called_like_the_keyword() -> None:
    assert param_headers(schema(**{"x-mcp-header": {"type": "string"}, "properties": marked()})) == {
        "Region": ("properties",)
    }


def test_references_that_fan_out_or_nest_without_end_cost_nothing() -> None:
    fan = {f"A{index}": {"anyOf": [{"$ref": f"#/$defs/A{index + 1}"}] * 2} for index in range(200)}
    fan["A200"] = {"type": "string"}
    assert param_headers({**schema(p={"$ref": "#/$defs/A0", "x-mcp-header": "P"}), "$defs": fan}) == {"P": ("p",)}
    deep: Any = marked()
    for _ in range(5000):
        deep = schema(p=deep)
    assert len(param_headers(deep)["Region"]) == 5000


@pytest.mark.parametrize(
    "arguments", [{}, {"a": None}, {"a": {}}, {"a": {"b": None}}, {"a": 5}, {"a": [1]}, None, [], "a", {"a": "b"}]
)
def test_what_is_absent_or_null_has_no_value(arguments: Any) -> None:
    assert value_at(arguments, ("a", "b")) is None


@pytest.mark.parametrize(
    ("value", "unsafe"),
    [
        *((MAX_INTEGER, False), (-MAX_INTEGER, False), (2**53, True), (-(2**53), True), (10**30, True)),
        *((0, False), (True, False), ("9" * 30, False), (1e300, True), (1.5, False), (None, False)),
    ],
)
def test_integers_that_not_everybody_can_hold_are_unsafe(value: Any, unsafe: bool) -> None:
    assert is_unsafe(value) is unsafe
