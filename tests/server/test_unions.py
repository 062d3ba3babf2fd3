"""Which member of a union a value is taken for: a strict fit before a coercion, the nearest before the first."""

from __future__ import annotations

import dataclasses
import datetime
import json
import uuid
from typing import Annotated, Any, Literal

import annotated_types as at
import msgspec
import pydantic
import pytest

from modelwire.errors import ToolError
from modelwire.server.results import ResultError
from tests.server.kinds import UUID, Cat, Colour, Dog, Model, Place, Point, Strict, signature_of


@dataclasses.dataclass
class Small:
    x: int


@dataclasses.dataclass
class Large:
    x: int
    y: int


@dataclasses.dataclass
class Event:
    kind: Literal["event"]
    size: int


@dataclasses.dataclass
class Alarm:
    kind: Literal["alarm"]
    size: int


@dataclasses.dataclass
class Quiet:
    kind: Literal["quiet"]


class CatModel(pydantic.BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class DogModel(pydantic.BaseModel):
    kind: Literal["dog"]
    name: str


def bind(annotation: Any, value: Any) -> Any:
    args, _ = signature_of(annotation).bind(json.dumps({"v": value}).encode())
    return args[0]


def problems(annotation: Any, value: Any) -> list[str]:
    with pytest.raises(ToolError) as refused:
        bind(annotation, value)
    return refused.value.problems  # pyright: ignore


@pytest.mark.parametrize(
    ("annotation", "value", "found"),
    [
        (uuid.UUID | str, str(UUID), UUID),
        (uuid.UUID | str, "x", "x"),
        (str | uuid.UUID, str(UUID), str(UUID)),
        (Colour | str, "red", Colour.RED),
        (datetime.date | datetime.datetime, "2026-01-31", datetime.date(2026, 1, 31)),
        (list[Point] | list[Place], [{"name": "a"}], [Place("a")]),
        (list[int] | list[float], [1, 2], [1, 2]),
        (list[float] | list[int], [1, 2], [1, 2]),
        (Point | int, 5, 5),
        (Point | uuid.UUID | bool, True, True),
        (Small | Large, {"x": 1}, Small(1)),
        (Large | Small, {"x": 1}, Small(1)),
        (Small | Large, {"x": 1, "y": 2}, Large(1, 2)),
        (Event | Alarm, {"kind": "alarm", "size": 1}, Alarm("alarm", 1)),
        (Cat | Dog, {"type": "dog", "dog_name": "a"}, Dog("a")),
        (Strict | Model, {"from": 1}, Model.model_validate({"from": 1})),
        (Annotated[int, at.Gt(10)] | uuid.UUID, 11, 11),
    ],
)
def test_the_nearest_member_takes_a_value(annotation: Any, value: Any, found: Any) -> None:
    taken = bind(annotation, value)

    assert taken == found
    assert type(taken) is type(found)


def test_the_items_of_equal_lists_keep_their_kind() -> None:
    assert [type(item) for item in bind(list[float] | list[int], [1, 2])] == [int, int]


@pytest.mark.parametrize(
    ("annotation", "value", "found"),
    [
        (Point | Place, '{"name": "a"}', Place("a")),
        (Point | Place, {"x": 1.0}, Point(1)),
        (list[int] | list[Point], [1.0], [1]),
        (Point | int, "5", 5),
        (uuid.UUID | int | bool, "true", True),
        (dict[str, Point | int], '{"a": 1.0}', {"a": 1}),
    ],
)
def test_what_fits_no_member_is_coerced_by_the_table(annotation: Any, value: Any, found: Any) -> None:
    assert bind(annotation, value) == found


@pytest.mark.parametrize("value", ["5", "[1]", "null", "true", "{}"])
def test_text_stays_text_where_a_member_takes_text(value: str) -> None:
    assert bind(uuid.UUID | int | str, value) == value


@pytest.mark.parametrize(
    ("annotation", "value", "told"),
    [
        (Point | Place, {"x": "q"}, ['v.x: expected an integer, got "q"']),
        (Point | Place, {"z": 1},
         ["v: expected an object with x or an object with name, got an object with 1 members"]),
        (Point | Place, 5, ["v: expected an object with x or an object with name, got the number 5"]),
        (Event | Alarm, {"kind": "alarm", "size": "big"}, ['v.size: expected an integer, got "big"']),
        (Cat | Dog, {"type": "dog", "dog_nam": "a"},
         ["v.dog_nam: unknown member; did you mean dog_name?",
          "v.dog_name: missing; expected text of at least 1 characters and at most 8 characters"]),
        (list[Point | Place], [{"x": 1}, {"x": "q"}, 3],
         ['v[1].x: expected an integer, got "q"',
          "v[2]: expected an object with x or an object with name, got the number 3"]),
        (Model | None, {"from": -1, "note": "x"},
         ["v.from: expected an integer >= 0, got the number -1", 'v.note: expected an integer or null, got "x"']),
    ],
)  # fmt: skip
def test_the_faults_are_those_of_the_nearest_member(annotation: Any, value: Any, told: list[str]) -> None:
    assert problems(annotation, value) == told


@pytest.mark.parametrize(
    "annotation",
    [
        CatModel | DogModel,
        Annotated[CatModel | DogModel, pydantic.Field(discriminator="kind")],
        CatModel | DogModel | None,
        dataclasses.make_dataclass("C", [("kind", Literal["cat"]), ("lives", int, 9)])
        | dataclasses.make_dataclass("D", [("kind", Literal["dog"]), ("name", str)]),
    ],
)
@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"kind": "dog"}, "v.name: missing; expected text"),
        ({"kind": "cow"}, 'v.kind: expected one of "cat", "dog", got "cow"'),
        ({"kind": 5, "name": "x"}, 'v.kind: expected one of "cat", "dog", got the number 5'),
        ({"name": "x"}, 'v.kind: missing; expected one of "cat", "dog"'),
        ({"kind": "cat", "lives": "x"}, 'v.lives: expected an integer, got "x"'),
    ],
)
def test_an_object_that_says_what_it_is_hears_what_that_lacks(annotation: Any, value: Any, told: str) -> None:
    assert problems(annotation, value) == [told]


def test_where_one_class_does_not_say_what_it_is_the_nearest_is_told() -> None:
    told = problems(Quiet | Event | Large, {"x": 1, "z": 2})
    assert told == ["v.z: unknown member", "v.y: missing; expected an integer"]


def test_results_are_held_to_a_member() -> None:
    signature = signature_of(list[Point] | list[Place])

    assert signature.check_result([Place("a")]) == b'[{"name":"a"}]'
    with pytest.raises(ResultError, match="result: expected a list"):
        signature.check_result([Place("a"), Point(1)])
    with pytest.raises(ResultError, match="result"):
        signature_of(uuid.UUID | int).check_result(1.5)


def test_a_value_of_a_member_that_is_wrong_inside_is_refused() -> None:
    with pytest.raises(ResultError, match=r'result\.x: expected an integer, got "x"'):
        signature_of(Point | Place | None).check_result(Point("x"))  # pyright: ignore


def test_members_of_members_are_members() -> None:
    class Box(msgspec.Struct):
        item: uuid.UUID | str | Point

    assert bind(Box | None, {"item": {"x": 1}}) == Box(Point(1))
