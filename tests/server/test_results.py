"""Results are checked against the annotation before they leave."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import math
from typing import Any, NotRequired, TypedDict

import msgspec
import pytest

from modelwire.server.converters import converter
from modelwire.server.results import ResultCheck, ResultError


class Colour(enum.Enum):
    RED = "red"


class Person(TypedDict):
    name: str
    age: NotRequired[int]


@dataclasses.dataclass
class Point:
    x: float
    label: str | None = None


def check(annotation: Any) -> ResultCheck:
    return ResultCheck("f", converter(annotation))


@pytest.mark.parametrize(
    ("annotation", "value", "written"),
    [
        (int, 5, b"5"),
        (list[list[int]], [[1], [2, 3]], b"[[1],[2,3]]"),
        (list[int], [], b"[]"),
        (list[int], (1, 2), b"[1,2]"),
        (Person, {"name": "x"}, b'{"name":"x"}'),
        (Point, Point(1.5), b'{"x":1.5,"label":null}'),
        (Point, {"x": 1}, b'{"x":1}'),
        (float | None, None, b"null"),
        (Colour, Colour.RED, b'"red"'),
        (datetime.date, datetime.date(2026, 1, 31), b'"2026-01-31"'),
        (dict[int, str], {1: "a"}, b'{"1":"a"}'),
        (int, 2**70, b"1180591620717411303424"),
        (Any, {"a": [None, 1.5]}, b'{"a":[null,1.5]}'),
    ],
)
def test_a_result_that_keeps_its_promise_is_encoded(annotation: Any, value: Any, written: bytes) -> None:
    assert check(annotation).encode(value) == written


@pytest.mark.parametrize(
    ("annotation", "value", "words"),
    [
        (int, "notint", 'result: expected an integer, got "notint"'),
        (int, True, "result: expected an integer, got true"),
        (int, None, "result: expected an integer, got null"),
        (list[str], {"a": "b"}, "result: expected a list, got an object with 1 members"),
        (list[int], [1, "x", 3, "y"], 'result[1]: expected an integer, got "x"; result[3]'),
        (Person, {"age": 3}, "result.name: missing"),
        (Point, {"x": "far"}, 'result.x: expected a number, got "far"'),
        (list[Point], [Point("far")], "result[0].x"),  # pyright: ignore
    ],
)
def test_a_result_that_contradicts_its_annotation_is_refused(annotation: Any, value: Any, words: str) -> None:
    with pytest.raises(ResultError, match=r"^f returned what its annotation does not allow") as caught:
        check(annotation).encode(value)

    assert words in str(caught.value)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("annotation", [Any, float, float | None, list[float | None]])
def test_what_is_no_json_number_is_refused_even_where_null_is_allowed(annotation: Any, number: float) -> None:
    value = [1.0, number] if annotation == list[float | None] else number

    with pytest.raises(ResultError, match=f"returned {number} at result"):
        check(annotation).encode(value)


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"a": [None, {"b": math.nan}]}, "result.a[1].b"),
        ([Point(math.nan)], "result[0].x"),
        ((None, math.inf), "result[1]"),
        (Point(math.inf, None), "result.x"),
    ],
)
def test_the_place_of_the_number_is_told(value: Any, place: str) -> None:
    with pytest.raises(ResultError) as caught:
        check(Any).encode(value)

    assert f" at {place}," in str(caught.value)


def test_null_without_nan_is_fine() -> None:
    assert check(Any).encode([None, Point(1.0), "null"]) == b'[null,{"x":1.0,"label":null},"null"]'


@pytest.mark.parametrize("value", ["\ud800", ["\udfff"], {"\ud800": 1}])
def test_lone_surrogates_are_refused(value: Any) -> None:
    with pytest.raises(ResultError, match="lone surrogate"):
        check(Any).encode(value)


@pytest.mark.parametrize("value", [object(), {"a": object()}, lambda: None, {(1, 2): 3}, range(3)])
def test_values_without_a_json_form_are_refused(value: Any) -> None:
    with pytest.raises(ResultError, match="no JSON form"):
        check(Any).encode(value)


def test_a_value_that_contains_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)

    with pytest.raises(ResultError, match="nested too deeply or containing itself"):
        check(Any).encode(value)


def test_structs_are_results() -> None:
    class Pair(msgspec.Struct):
        a: int

    assert check(Pair).encode(Pair(1)) == b'{"a":1}'
    with pytest.raises(ResultError, match=r"result\.a"):
        check(Pair).encode(Pair("x"))  # pyright: ignore
