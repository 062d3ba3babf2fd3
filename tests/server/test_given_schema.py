"""Schemas given by hand: checked before they are used, never fetched, bounded in every direction."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from modelwire import Server, types
from modelwire.errors import ConfigError, RpcError, ToolError
from modelwire.server.arguments import ArgumentErrors
from modelwire.server.given_schema import MAX_DEPTH, MAX_SIZE, GivenSchema, argument_validator
from modelwire.server.signature import compile_signature
from tests.server.kinds import Point

OBJECT = {"type": "object"}


def nested(levels: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(levels):
        found = {"properties": {"a": found}}
    return found


def pairs(levels: int, reference: str = "#/$defs/d{}") -> dict[str, Any]:
    definitions = {f"d{i}": {"anyOf": [{"$ref": reference.format(i + 1)}] * 2} for i in range(levels)}
    return {
        "properties": {"a": {"$ref": reference.format(0)}},
        "$defs": {**definitions, f"d{levels}": {"type": "integer"}},
    }


def chain(levels: int) -> dict[str, Any]:
    definitions: dict[str, Any] = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(levels)}
    return {"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": {**definitions, f"d{levels}": {}}}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "array"}, '"type": "object"'),
        ({}, '"type": "object"'),
        ([{"type": "object"}], "inputSchema must be a JSON Schema as a dict, not a list"),
        ("object", "inputSchema must be a JSON Schema as a dict, not a str"),
        (True, "inputSchema must be a JSON Schema as a dict, not a bool"),
        ({**OBJECT, "$schema": "http://json-schema.org/draft-07/schema#"}, "draft-07"),
        ({**OBJECT, "$schema": 5}, "has a $schema that is no text, but the number 5"),
        ({**OBJECT, "properties": {5: {}}}, "has a member called 5; names are text"),
        ({**OBJECT, "properties": {"a": {"$schema": "http://json-schema.org/draft-04/schema#"}}}, "draft-04"),
        ({**OBJECT, "properties": {"a": {"$ref": "http://localhost:9/schema"}}}, "nothing is fetched"),
        ({**OBJECT, "properties": {"a": {"$ref": "file:///etc/passwd"}}}, "'file:///etc/passwd'"),
        ({**OBJECT, "properties": {"a": {"$ref": "other.json"}}}, "nothing is fetched"),
        ({**OBJECT, "properties": {"a": {"$ref": "#/$defs/Missing"}}}, "points to nothing"),
        ({**OBJECT, "properties": {"a": {"type": "nope"}}}, '"nope" may not stand at #/properties/a/type'),
        ({**OBJECT, "properties": {"a": {"pattern": "("}}}, "#/properties/a/pattern"),
        ({**OBJECT, "properties": {"a": float("nan")}}, "no valid JSON Schema"),
        ({**OBJECT, "properties": {"a": {"const": object()}}}, "no JSON"),
        ({**OBJECT, "anyOf": [{"$ref": "#"}]}, "has no end"),
        ({**OBJECT, "properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"$ref": "#/$defs/x"}}}, "has no end"),
        ({**OBJECT, "properties": {"a": {"$ref": "#/%70roperties/a"}}}, "has no end"),
        ({**OBJECT, "$id": "https://example.com/x", "properties": {"a": {"$ref": "x#/properties/a"}}}, "has no end"),
        ({**OBJECT, "$id": "https://example.com/d/x", "allOf": [{"$ref": "/d/x"}]}, "has no end"),
        ({**OBJECT, "$id": "urn:example:x", "allOf": [{"$ref": "#"}]}, "has no end"),
        ({**OBJECT, "properties": {"a": {"$id": "u", "$anchor": "q", "allOf": [{"$ref": "u#q"}]}}}, "has no end"),
        ({**OBJECT, "properties": {"a": {"$id": "https://example.com/y", "anyOf": [{"$ref": "#"}]}}}, "has no end"),
        ({**OBJECT, **nested(MAX_DEPTH)}, "nested deeper"),
        ({**OBJECT, **nested(100_000)}, "nested deeper"),
        ({**OBJECT, "description": "x" * MAX_SIZE}, "bytes"),
        ({**OBJECT, **pairs(30)}, "once its references are followed"),
        ({**OBJECT, **pairs(30, "#/$defs/%64{}")}, "once its references are followed"),
        ({**OBJECT, **pairs(30, "x#/$defs/d{}"), "$id": "https://example.com/x"}, "once its references are followed"),
        ({**OBJECT, **chain(5000)}, "lead from one to the next"),
    ],
)
def test_a_schema_that_could_hurt_is_refused_at_once(schema: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match="^tool 'book': inputSchema ") as refused:
        argument_validator("book", schema)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    "schema",
    [
        OBJECT,
        {**OBJECT, "$schema": "https://json-schema.org/draft/2020-12/schema#"},
        {**OBJECT, "properties": {"a": True, "$schema": {"type": "string"}, "$ref": {"type": "string"}}},
        {**OBJECT, **pairs(8)},
        {**OBJECT, **chain(100)},
        {**OBJECT, "properties": {"a": {"$ref": "#"}}},
        {**OBJECT, "$id": "https://example.com/x", "properties": {"a": {"$ref": "https://example.com/x#/$defs/q"}},
         "$defs": {"q": {"type": "integer"}}},
        {**OBJECT, "properties": {"a": {"$ref": "#here"}}, "$defs": {"q": {"$anchor": "here", "type": "integer"}}},
        {**OBJECT, "properties": {"a": {"$dynamicRef": "#t"}}, "$defs": {"q": {"$dynamicAnchor": "t"}}},
    ],
)  # fmt: skip
def test_other_schemas_are_taken(schema: dict[str, Any]) -> None:
    argument_validator("book", schema)({})


@pytest.mark.parametrize(
    ("properties", "value", "told"),
    [
        ({"type": "integer"}, "x", ['a: expected an integer, got "x"']),
        ({"type": ["integer", "null"]}, "x", ['a: expected an integer or null, got "x"']),
        ({"enum": ["a", "b"]}, "c", ['a: expected one of "a", "b", got "c"']),
        ({"const": 1}, 2, ["a: expected 1, got the number 2"]),
        ({"minimum": 3}, 2, ["a: expected a number >= 3, got the number 2"]),
        ({"exclusiveMaximum": 3}, 3, ["a: expected a number < 3, got the number 3"]),
        ({"multipleOf": 5}, 3, ["a: expected a number that is a multiple of 5, got the number 3"]),
        ({"minLength": 3}, "ab", ['a: expected text of at least 3 characters, got "ab"']),
        ({"pattern": "^a"}, "b", ['a: expected text that matches ^a, got "b"']),
        ({"maxItems": 1}, [1, 2], ["a: expected a list of at most 1 items, got a list of 2 items"]),
        ({"uniqueItems": True}, [1, 1], ["a: expected a list without an item twice, got a list of 2 items"]),
        ({"contains": {"type": "string"}}, [1], ["a: expected a list with a fitting item in it, "
                                                 "got a list of 1 items"]),
        ({"items": {"type": "integer"}}, [1, "x"], ['a[1]: expected an integer, got "x"']),
        ({"prefixItems": [{}], "items": False}, [1, 2], ["a[1]: expected nothing, got the number 2"]),
        ({"properties": {"b": {"type": "integer"}}, "required": ["b"]}, {}, ["a.b: missing; expected an integer"]),
        ({"properties": {"city": {}}, "additionalProperties": False}, {"citty": 1},
         ["a.citty: unknown member; did you mean city?"]),
        ({"propertyNames": {"maxLength": 1}}, {"bc": 1},
         ['a member name of a: expected text of at most 1 characters, got "bc"']),
        ({"anyOf": [{"type": "integer"}, {"type": "object", "required": ["b"]}]}, {}, ["a.b: missing"]),
        ({"oneOf": [{"properties": {"k": {"const": 1}}, "required": ["k", "b"]}, {"properties": {"k": {"const": 2}}}]},
         {"k": 1}, ["a.b: missing"]),
        ({"oneOf": [{"properties": {"k": {"const": 1}}}, {"properties": {"k": {"const": 2}}}]},
         {"k": 3}, ["a.k: expected one of 1, 2, got the number 3"]),
        ({"anyOf": [{"type": "integer"}, {"type": "boolean"}]}, "x",
         ['a: expected an integer or true or false, got "x"']),
        ({"oneOf": [{"type": "integer"}, {"minimum": 0}]}, 1,
         ["a: expected a value that fits one of several forms, and not more of them, got the number 1"]),
        ({"not": {"type": "string"}}, "x", ['a: expected another value, got "x"']),
        ({"minProperties": 1}, {}, ["a: expected an object of at least 1 members, got an object with 0 members"]),
    ],
)  # fmt: skip
def test_faults_are_told_in_our_words(properties: dict[str, Any], value: Any, told: list[str]) -> None:
    check = argument_validator("book", {**OBJECT, "properties": {"a": properties}})

    with pytest.raises(ArgumentErrors) as refused:
        check({"a": value})

    assert refused.value.problems == told


def test_all_faults_are_told_at_once_and_no_secret_among_them() -> None:
    check = argument_validator(
        "book",
        {
            **OBJECT,
            "properties": {"city": {"type": "string"}, "login": {"properties": {"password": {"type": "integer"}}}},
            "required": ["city"],
            "additionalProperties": False,
        },
    )

    with pytest.raises(ToolError) as refused:
        check({"citty": 1, "login": {"password": "hunter2"}})

    assert sorted(refused.value.problems) == [  # pyright: ignore
        "citty: unknown argument; did you mean city?",
        "city: missing; expected text",
        "login.password: expected an integer, got text (not shown)",
    ]


def test_a_pattern_that_backtracks_without_end_gives_up() -> None:
    given = GivenSchema({"pattern": "^(a+)+(?=b)$"}, "a schema")
    started = time.monotonic()

    assert given.problems("a" * 60, "v")
    assert time.monotonic() - started < 20  # without a limit it would not end in this life


def test_a_deep_value_of_a_recursive_schema_is_refused_without_listing_its_faults() -> None:
    node = {"properties": {"a": {"anyOf": [{"$ref": "#/$defs/n"}] * 2}, "x": {"type": "integer"}}}
    check = argument_validator("book", {**OBJECT, "properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": node}})
    value: Any = {"x": "bad"}
    for _ in range(40):
        value = {"a": value}

    with pytest.raises(ArgumentErrors) as refused:
        check(value)

    assert refused.value.problems == ["a: something inside it does not fit; it is nested too deeply to say what"]


SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "rows": {"type": "array"}, "q": {"type": "string", "minLength": 2}},
    "required": ["n"],
}


def free(n: int, *rows: Any, **rest: Any) -> Any:
    return [n, rows, rest]


def call(function: Any, arguments: Any, schema: dict[str, Any] = SCHEMA) -> Any:
    signature = compile_signature(function, name="f", input_schema=schema)
    args, kwargs = signature.bind(json.dumps(arguments).encode())
    return function(*args, **kwargs)


def test_star_parameters_take_what_a_given_schema_allows() -> None:
    assert call(free, {"n": 1, "rows": [1, 2], "z": 5, "q": "ab"}) == [1, (1, 2), {"z": 5, "q": "ab"}]
    assert call(free, {"n": 1}) == [1, (), {}]
    assert compile_signature(free, name="f", input_schema=SCHEMA).input_schema is SCHEMA


def test_arguments_are_held_to_a_given_schema_first() -> None:
    with pytest.raises(ToolError, match="q: expected text of at least 2 characters"):
        call(free, {"n": 1, "q": "a"})
    with pytest.raises(ToolError, match="n: missing"):
        call(free, {})
    with pytest.raises(RpcError):
        call(free, [])
    with pytest.raises(ToolError, match="cannot be read"):
        compile_signature(free, name="f", input_schema=SCHEMA).bind(b"{")


def test_parameters_still_have_their_types() -> None:
    def typed(n: int, *, when: str = "now", **rest: Any) -> Any:
        return [n, when, rest]

    assert call(typed, {"n": 3, "z": 1}) == [3, "now", {"z": 1}]
    with pytest.raises(ToolError, match="when: expected text, got the number 1"):
        call(typed, {"n": 3, "when": 1})


def test_a_member_that_no_parameter_takes_is_refused() -> None:
    def only(n: int) -> Any:
        return n

    with pytest.raises(ToolError, match="z: unknown argument"):
        call(only, {"n": 1, "z": 1})


def test_what_an_object_may_have_is_said_by_the_given_schema_alone() -> None:
    def placed(at: Point) -> Any:
        return at

    schema = {"type": "object", "properties": {"at": {"type": "object"}}}

    assert call(placed, {"at": {"x": 1, "more": 2}}, schema) == Point(1)


def test_the_context_is_no_argument_of_a_given_schema() -> None:
    class Context: ...

    def function(ctx: Context, **rest: Any) -> Any: ...

    signature = compile_signature(function, name="f", context_type=Context, input_schema=SCHEMA)

    assert signature.context_parameter == "ctx"
    assert signature.bind(b'{"n":1}') == ([], {"n": 1})


@pytest.mark.parametrize("schema", [[{"type": "integer"}], "x", True, 5], ids=repr)
def test_an_output_schema_that_is_no_object_is_refused(schema: Any) -> None:
    server = Server("s")
    words = "^tool 't': outputSchema must be a JSON Schema as a dict, not a "
    with pytest.raises(ConfigError, match=words):
        server.add_tool(lambda: 1, name="t", output_schema=schema)
    with pytest.raises(ConfigError, match=words):
        server.add_tool(types.Tool("t", {"type": "object"}, output_schema=schema), lambda arguments: 1)
