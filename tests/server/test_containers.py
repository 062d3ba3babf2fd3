"""Lists, tuples and maps, converted member by member."""

from __future__ import annotations

import collections
import json
import pathlib
import uuid
from collections import abc
from typing import Annotated, Any, Literal

import msgspec
import pytest
import typing_extensions as te

from modelwire.errors import ToolError
from modelwire.server.results import ResultError
from tests.server.kinds import Colour, Level, Mixed, Point, signature_of

Path = pathlib.PurePosixPath
Nested = te.TypeAliasType("Nested", "list[Nested | Path]")


def bind(annotation: Any, value: Any) -> Any:
    args, _ = signature_of(annotation).bind(json.dumps({"v": value}).encode())
    return args[0]


@pytest.mark.parametrize(
    ("annotation", "value", "told"),
    [
        (list[Path], ["a", 1, None], ["v[1]: expected a path as text, got the number 1",
                                      "v[2]: expected a path as text, got null"]),
        (list[Path], {}, ["v: expected a list, got an object with 0 members"]),
        (tuple[Path, int], ["a"], ["v: expected a list of exactly 2 items, got a list of 1 items"]),
        (tuple[Path, int], [1, "a"], ["v[0]: expected a path as text, got the number 1",
                                      'v[1]: expected an integer, got "a"']),
        (dict[str, Path], {"a": 1, "token": 2}, ["v.a: expected a path as text, got the number 1",
                                                 "v.token: expected a path as text, got a number (not shown)"]),
        (dict[int, Path], {"x": "a"}, ['a member name of v: expected an integer, got "x"']),
        (dict[float, int], {"1.5": 1, "nan": 2, "Infinity": 3},
         ['a member name of v: expected a number, got "nan"', 'a member name of v: expected a number, got "Infinity"']),
        (dict[uuid.UUID, Path], {"x": "a"},
         ['a member name of v: expected a UUID such as "3f2b8a52-6c1d-4e8e-9d2a-0c5b7f9e1a64", got "x"']),
        (set[Point | uuid.UUID], [{"x": 1}],
         ["v: expected items that are no lists and no objects, which a set cannot hold"]),
    ],
)  # fmt: skip
def test_all_faults_are_told_where_they_are(annotation: Any, value: Any, told: list[str]) -> None:
    with pytest.raises(ToolError) as refused:
        bind(annotation, value)

    assert refused.value.problems == told  # pyright: ignore


@pytest.mark.parametrize(
    ("annotation", "value", "found"),
    [
        (dict[Colour, Path], {"red": "a"}, {Colour.RED: Path("a")}),
        (dict[uuid.UUID | str, int], {"x": 1}, {"x": 1}),
        (collections.OrderedDict[str, Path], {"a": "b"}, collections.OrderedDict(a=Path("b"))),
        (abc.Set[Path], ["a"], {Path("a")}),
        (collections.deque, [1], collections.deque([1])),
        (list[Mixed], [1.0, "b"], [Mixed.ONE, Mixed.B]),
        (list[Path], '["a"]', [Path("a")]),
        (dict[str, Mixed], '{"a": 1.0}', {"a": Mixed.ONE}),
        (tuple[Mixed, Path], '[1, "a"]', (Mixed.ONE, Path("a"))),
    ],
)
def test_values_become_what_the_type_says(annotation: Any, value: Any, found: Any) -> None:
    taken = bind(annotation, value)

    assert taken == found
    assert type(taken) is type(found)


@pytest.mark.parametrize(
    ("annotation", "names"),
    [
        (dict[Colour, int], {"$ref": "#/$defs/Colour"}),
        (dict[Colour, Path], {"$ref": "#/$defs/Colour"}),
        (dict[Literal["b", "a"], int], {"enum": ["b", "a"]}),
        (dict[Level, int], {"enum": ["1", "2"]}),
        (dict[int, Path], {"pattern": "^-?(0|[1-9][0-9]*)$"}),
        (dict[Annotated[str, msgspec.Meta(min_length=2)], int], {"minLength": 2}),
        (dict[uuid.UUID, int], None),
        (dict[str, int], None),
    ],
)
def test_the_names_of_a_map_are_shown(annotation: Any, names: Any) -> None:
    assert signature_of(annotation).input_schema["properties"]["v"].get("propertyNames") == names


@pytest.mark.parametrize(
    ("annotation", "value", "words"),
    [
        (list[Path], "ab", "result: expected a list, got a value of type str"),
        (list[Path], [Path("a"), 5], "result[1]: expected a path as text, got a value of type int"),
        (tuple[Path, int], (Path("a"),), "result: expected a list of exactly 2 items, got a value of type tuple"),
        (dict[str, Path], {1: Path("a")}, "a member name of result: expected text, got a value of type int"),
        (dict[int, Path], {"x": Path("a")}, "a member name of result: expected an integer"),
    ],
)
def test_results_of_another_kind_are_refused(annotation: Any, value: Any, words: str) -> None:
    with pytest.raises(ResultError) as refused:
        signature_of(annotation).check_result(value)

    assert words in str(refused.value)


@pytest.mark.parametrize("annotation", [set[int], frozenset[int], abc.Set[int], set[Path], set[Point | Path] | None])
def test_a_set_takes_an_item_twice_and_its_result_has_it_once(annotation: Any) -> None:
    item = 1 if "[int]" in str(annotation) else "a"
    signature = signature_of(annotation)

    assert len(bind(annotation, [item, item])) == 1
    assert "uniqueItems" not in json.dumps(signature.input_schema)
    assert '"uniqueItems": true' in json.dumps(signature.output_schema)


def test_a_list_that_contains_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)

    with pytest.raises(ResultError, match="containing itself|contains itself"):
        signature_of(Nested).check_result(value)
