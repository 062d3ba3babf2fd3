"""``name=value`` by a tool's schema, and ``name:=json``."""

from __future__ import annotations

from typing import Any

import pytest

from modelwire.cli.arguments import parse_word, text_arguments, typed_arguments
from modelwire.cli.failures import Failure

NUMBER_LIST = {"type": "array", "items": {"type": "number"}}


def read(schema: Any, *texts: str, root: dict[str, Any] | None = None) -> Any:
    whole = {"type": "object", "properties": {"x": schema}, **(root or {})}
    return typed_arguments([parse_word(text) for text in texts], whole)["x"]


@pytest.mark.parametrize(
    ("schema", "word", "value"),
    [
        ({"type": "string"}, "x=007", "007"),
        ({"type": "string"}, "x=", ""),
        ({"type": "string"}, "x=a=b:=c", "a=b:=c"),
        ({"type": "string"}, "x=true", "true"),
        ({"type": "integer"}, "x=007", 7),
        ({"type": "integer"}, "x=-5", -5),
        ({"type": "integer"}, "x=123456789012345678901234567890", 123456789012345678901234567890),
        ({"type": "number"}, "x=1.50", 1.5),
        ({"type": "number"}, "x=1e3", 1000.0),
        ({"type": "number"}, "x=3", 3),
        ({"type": "boolean"}, "x=true", True),
        ({"type": "boolean"}, "x=False", False),
        ({"type": ["integer", "null"]}, "x=null", None),
        ({"type": ["string", "null"]}, "x=null", "null"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "x=4", 4),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "x=4", "4"),
        ({"enum": [1, 2]}, "x=2", 2),
        ({"enum": ["1", "2"]}, "x=2", "2"),
        ({"const": True}, "x=true", True),
        ({"$ref": "#/$defs/count"}, "x=9", 9),
        ({"allOf": [{"$ref": "#/$defs/count"}]}, "x=9", 9),
        ({"type": "object"}, 'x={"a": 1}', {"a": 1}),
        (NUMBER_LIST, "x=[1, 2]", [1, 2]),
        (NUMBER_LIST, "x=1.5", [1.5]),
        ({"anyOf": [NUMBER_LIST, {"type": "null"}]}, "x=1", [1]),
        ({}, "x=5", "5"),
        (True, "x=5", "5"),
        ({"$ref": "#/$defs/loop"}, "x=5", "5"),
        ({"$ref": "https://elsewhere/schema"}, "x=5", "5"),
        ({"type": "string"}, "x:=5", 5),
        ({"type": "integer"}, 'x:="5"', "5"),
        ({}, "x:=null", None),
    ],
)
def test_a_value_is_read_as_the_schema_has_it(schema: Any, word: str, value: Any) -> None:
    found = read(schema, word, root={"$defs": {"count": {"type": "integer"}, "loop": {"$ref": "#/$defs/loop"}}})
    assert (found, type(found)) == (value, type(value))


def test_a_list_is_gathered_from_several_words() -> None:
    assert read(NUMBER_LIST, "x=1", "x:=2.5", "x=3") == [1, 2.5, 3]


def test_a_name_that_the_schema_does_not_know_stays_text() -> None:
    assert typed_arguments([parse_word("y=1")], {"type": "object"}) == {"y": "1"}


@pytest.mark.parametrize(
    ("schema", "word", "wanted"),
    [
        ({"type": "integer"}, "x=1.5", "an integer"),
        ({"type": "integer"}, "x=", "an integer"),
        ({"type": "integer"}, "x=١", "an integer"),
        ({"type": "number"}, "x=1e999", "a number"),
        ({"type": "number"}, "x=nan", "a number"),
        ({"type": "boolean"}, "x=yes", "a boolean"),
        ({"type": "object"}, "x=[1]", "an object"),
        ({"type": ["integer", "null"]}, "x=no", "an integer or null"),
    ],
)
def test_a_value_that_cannot_be_what_is_wanted_is_refused(schema: Any, word: str, wanted: str) -> None:
    with pytest.raises(Failure, match=f"to be {wanted}; or write x:=JSON"):
        read(schema, word)


@pytest.mark.parametrize("word", ["x", "=1", ":=1", "", "x:=", "x:=NaN", "x:=nope", "x:={"])
def test_a_word_that_is_no_argument_is_refused(word: str) -> None:
    with pytest.raises(Failure):
        parse_word(word)


def test_a_name_given_twice_is_refused() -> None:
    with pytest.raises(Failure, match="'x' is given 2 times"):
        read({"type": "string"}, "x=1", "x=2")


def test_prompt_arguments_stay_text_unless_they_are_json() -> None:
    assert text_arguments([parse_word("a=1"), parse_word("b:=[1]")]) == {"a": "1", "b": [1]}
