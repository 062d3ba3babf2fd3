"""Schemas are compact, valid 2020-12, and say what the binder does."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import pathlib
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, Optional, TypedDict, TypeVar

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelwire.server import schemas
from modelwire.server.arguments import Argument, ArgumentErrors, Binder, binder
from modelwire.server.converters import converter
from tests.server.kinds import signature_of

T = TypeVar("T")


class Colour(enum.Enum):
    """A colour."""

    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: int
    label: Optional[str] = None
    tags: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Tree:
    value: int
    children: list[Tree] = dataclasses.field(default_factory=list)


class Keys(TypedDict):
    name: str
    age: NotRequired[int]


class Row(NamedTuple):
    a: int
    b: str = "x"


class Cat(msgspec.Struct, tag=True):
    lives: int


class Dog(msgspec.Struct, tag=True):
    name: str


@dataclasses.dataclass
class Box(Generic[T]):
    item: T


TYPES: dict[str, Any] = {
    "integer": int,
    "number": float,
    "text": str,
    "boolean": bool,
    "null": None,
    "anything": Any,
    "optional": Optional[int],
    "literal": Literal["a", 1, None],
    "enum": Colour,
    "list": list[int],
    "nested list": list[list[float]],
    "pair": tuple[int, str],
    "row of integers": tuple[int, ...],
    "set": set[int],
    "map": dict[str, int],
    "map by number": dict[int, str],
    "map by fraction": dict[float, int],
    "union": int | str | list[bool],
    "bounded": Annotated[int, msgspec.Meta(ge=1, le=7)],
    "sized": Annotated[str, msgspec.Meta(min_length=2, max_length=4)],
    "matching": Annotated[str, msgspec.Meta(pattern="^a+$")],
    "short list": Annotated[list[int], msgspec.Meta(max_length=2)],
    "dataclass": Point,
    "recursive": Tree,
    "typed dict": Keys,
    "named tuple": Row,
    "tagged": Cat | Dog,
    "optional dataclass": Point | None,
    "dates": list[datetime.date],
    "instant": datetime.datetime,
    "money": decimal.Decimal,
    "generic": Box[int],
}


def input_schema(types: dict[str, Any], defaults: dict[str, Any], descriptions: dict[str, str]) -> dict[str, Any]:
    nodes = {name: converter(annotation, closed=True) for name, annotation in types.items()}
    return schemas.input_schema(nodes, defaults, descriptions)


def result_schema(annotation: Any) -> dict[str, Any]:
    return schemas.result_schema(converter(annotation))


def titles(schema: Any) -> list[Any]:
    if isinstance(schema, dict):
        return [schema["title"] for _ in range("title" in schema)] + [
            t for value in schema.values() for t in titles(value)
        ]
    return [t for item in schema for t in titles(item)] if isinstance(schema, list) else []


@pytest.mark.parametrize("name", TYPES)
def test_schemas_are_valid_2020_12_and_carry_no_noise(name: str) -> None:
    for schema in (input_schema({"v": TYPES[name]}, {}, {}), result_schema(TYPES[name])):
        jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})
        assert titles(schema) == []
        assert "discriminator" not in json.dumps(schema)


def test_nothing_is_still_an_object() -> None:
    assert input_schema({}, {}, {}) == {"type": "object", "properties": {}, "additionalProperties": False}


def test_parameters_with_their_descriptions_and_defaults() -> None:
    types = {"city": str, "days": Annotated[int, msgspec.Meta(ge=1, description="Days.")], "colour": Colour}

    schema = input_schema(types, {"days": 3, "colour": Colour.RED}, {"city": "City name.", "days": "not this one"})

    assert schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "City name."},
            "days": {"type": "integer", "minimum": 1, "description": "Days.", "default": 3},
            "colour": {"$ref": "#/$defs/Colour", "default": "red"},
        },
        "required": ["city"],
        "additionalProperties": False,
        "$defs": {"Colour": {"description": "A colour.", "enum": ["red", "blue"]}},
    }


@pytest.mark.parametrize(
    ("annotation", "default", "schema"),
    [
        (Optional[str], None, {"type": "string"}),
        (int | str | None, None, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (Optional[int], 5, {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": 5}),
        (Any, None, {}),
        (None, None, {"type": "null"}),
        (Optional[Annotated[int, msgspec.Meta(ge=1)]], None, {"type": "integer", "minimum": 1}),
        (list[int], [], {"type": "array", "items": {"type": "integer"}, "default": []}),
        (Point, Point(1), {"$ref": "#/$defs/Point", "default": {"x": 1, "label": None, "tags": []}}),
        (int, object(), {"type": "integer"}),
        (float, float("inf"), {"type": "number"}),
        (Any, float("nan"), {}),
        (int, "not a number", {"type": "integer"}),
        (Any, "\ud800", {}),
    ],
)
def test_defaults_are_shown_where_a_client_could_send_them(annotation: Any, default: Any, schema: Any) -> None:
    assert input_schema({"v": annotation}, {"v": default}, {})["properties"]["v"] == schema


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"
    HUGE = "huge"


class Unsorted(TypedDict):
    size: Literal["small", "medium", "large"]
    count: int
    another: str


@pytest.mark.parametrize(
    ("annotation", "choices"),
    [
        (Literal["b", "a", "c"], ["b", "a", "c"]),
        (Literal["b", 2, "a", 1, None], ["b", 2, "a", 1, None]),
        (Literal["b", True, "a"], ["b", True, "a"]),
    ],
)
def test_choices_stand_in_the_order_written(annotation: Any, choices: list[Any]) -> None:
    assert input_schema({"v": annotation}, {}, {})["properties"]["v"]["enum"] == choices
    assert input_schema({"v": list[annotation]}, {}, {})["properties"]["v"]["items"]["enum"] == choices
    assert result_schema(annotation)["enum"] == choices


def test_enums_and_members_stand_in_the_order_written() -> None:
    assert input_schema({"v": Size}, {}, {})["$defs"]["Size"]["enum"] == ["small", "large", "huge"]
    assert list(result_schema(Unsorted)["properties"]) == ["size", "count", "another"]
    assert result_schema(Unsorted)["properties"]["size"]["enum"] == ["small", "medium", "large"]
    assert result_schema(Unsorted)["required"] == ["size", "count", "another"]


def test_formats_are_given() -> None:
    schema = input_schema({"a": datetime.datetime, "b": list[datetime.time | None], "c": datetime.date}, {}, {})

    assert schema["properties"] == {
        "a": {"format": "date-time", "type": "string"},
        "b": {"type": "array", "items": {"anyOf": [{"format": "time", "type": "string"}, {"type": "null"}]}},
        "c": {"type": "string", "format": "date"},
    }


def test_a_title_that_the_user_gave_stays() -> None:
    titled = Annotated[int, msgspec.Meta(title="Days")]

    assert input_schema({"v": titled}, {}, {})["properties"]["v"] == {"title": "Days", "type": "integer"}


def test_a_property_called_title_or_discriminator_stays() -> None:
    class Odd(TypedDict):
        title: str
        discriminator: int

    assert set(result_schema(Odd)["properties"]) == {"title", "discriminator"}


def test_the_root_of_a_result_is_inlined() -> None:
    assert result_schema(Keys) == {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name"],
    }


def test_the_root_of_a_recursive_result_stays_under_defs_too() -> None:
    schema = result_schema(Tree)

    assert schema["type"] == "object"
    assert schema["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}
    assert jsonschema_rs.is_valid(schema, {"value": 1, "children": [{"value": 2, "children": []}]})
    assert not jsonschema_rs.is_valid(schema, {"value": 1, "children": [{"value": "x"}]})


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.sampled_from([1.0, 2.5, "", "a", "aa", "aaaaa", "red", "1", "x"])
)
KEYS = st.sampled_from(["x", "label", "tags", "value", "children", "name", "age", "lives", "type", "item", "1", "Cat"])
VALUES = st.recursive(
    SCALARS | st.sampled_from(["Cat", "Dog", "2026-01-31", "2026-01-31T09:30:00Z"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
UNALIKE = {"dates", "instant", "money"}
"""A format is only an annotation, and a Decimal may be a number."""


def binds(filled: Binder, value: Any) -> bool:
    try:
        filled.values(msgspec.json.encode({"v": value}))
    except ArgumentErrors:
        return False
    return True


@pytest.mark.parametrize("name", sorted(TYPES.keys() - UNALIKE))
@given(value=VALUES)
def test_what_the_schema_allows_is_bound_and_junk_is_refused_by_both(name: str, value: Any) -> None:
    validator = jsonschema_rs.validator_for(input_schema({"v": TYPES[name]}, {}, {}))
    filled = binder("f", [Argument("v", converter(TYPES[name], closed=True))])
    valid = validator.is_valid({"v": value})

    # Text may stand for another type; `test_coercion` says which.
    assert binds(filled, value) == valid or (isinstance(value, str) and not valid)


@pytest.mark.parametrize(("kind", "value"), [(tuple[int, str], [3, "4"]), (tuple[pathlib.Path, int], ["3", 4])])
def test_a_tuple_can_be_read_by_those_who_know_older_drafts_only(kind: Any, value: Any) -> None:
    """Draft 7 knows no ``prefixItems``; an ``items: false`` beside it would refuse every item there."""
    schema = signature_of(kind).output_schema

    assert jsonschema_rs.Draft7Validator(schema).is_valid(value)
    assert jsonschema_rs.Draft202012Validator(schema).is_valid(value)
    assert not jsonschema_rs.Draft202012Validator(schema).is_valid([*value, 5])
    assert not jsonschema_rs.Draft202012Validator(schema).is_valid(value[::-1])
