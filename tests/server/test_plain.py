"""Types that msgspec enforces: what it passes over is refused, and why it refuses is told by the type's parts."""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated, Any, Literal, Optional, TypedDict

import msgspec
import pytest

from modelwire.server.converters import converter
from modelwire.server.nodes import Misfit
from modelwire.server.plain import Plain


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


@dataclasses.dataclass
class Tree:
    point: Point
    children: list[Tree] = dataclasses.field(default_factory=list)


class Keys(TypedDict, total=False):
    point: Point


class Struct(msgspec.Struct):
    x: int = 0


class Cat(msgspec.Struct, tag="cat"):
    lives: int = 9


class Dog(msgspec.Struct, tag="dog"):
    name: str = ""


class Row(msgspec.Struct, array_like=True):
    point: Point


OBJECTS: list[tuple[Any, Any, Any]] = [
    (Point, {"x": 1}, {"x": 1, "z": 1}),
    (Struct, {"x": 1}, {"z": 1}),
    (Keys, {"point": {"x": 1}}, {"z": 1}),
    (Keys, {"point": {"x": 1}}, {"point": {"x": 1, "z": 1}}),
    (Tree, {"point": {"x": 1}, "children": [{"point": {"x": 1}}]}, {"point": {"x": 1, "z": 1}}),
    (Tree, {"point": {"x": 1}}, {"point": {"x": 1}, "children": [{"point": {"x": 1}, "z": 1}]}),
    (Row, [{"x": 1}], [{"x": 1, "z": 1}]),
    (Row, [{"x": 1}], [{"x": 1}, 1]),
    (Optional[Point], None, {"x": 1, "z": 1}),
    (Cat | Dog | None, {"type": "dog"}, {"type": "dog", "lives": 1}),
    (Point | int | list[int], [1], {"x": 1, "z": 1}),
    (list[Point], [{"x": 1}], [{"x": 1}, {"x": 1, "z": 1}]),
    (tuple[int, Point], [1, {"x": 1}], [1, {"x": 1, "z": 1}]),
    (dict[str, Point], {"a": {"x": 1}}, {"a": {"x": 1, "z": 1}}),
    (dict[int, Point], {"1": {"x": 1}}, {"1": {"x": 1, "z": 1}}),
    (Annotated[list[Point], msgspec.Meta(max_length=2)], [], [{"x": 1, "z": 1}]),
]


def read(annotation: Any, value: Any, *, closed: bool) -> Any:
    node = converter(annotation, closed=closed)
    assert isinstance(node, Plain)
    found = node.read(json.dumps(value).encode(), "v")
    assert node.load(value, "v") == found
    return found


@pytest.mark.parametrize(("annotation", "known", "more"), OBJECTS)
def test_a_closed_type_takes_no_more_than_it_knows(annotation: Any, known: Any, more: Any) -> None:
    read(annotation, known, closed=True)
    for value in (more, json.loads(json.dumps(more))):
        with pytest.raises(Misfit):
            read(annotation, value, closed=True)
        with pytest.raises(Misfit):
            converter(annotation, closed=True).load(value, "v")


@pytest.mark.parametrize(("annotation", "known", "more"), OBJECTS)
def test_an_open_type_passes_over_what_it_does_not_know(annotation: Any, known: Any, more: Any) -> None:
    read(annotation, known, closed=False)
    read(annotation, more, closed=False)


@pytest.mark.parametrize("annotation", [int, list[int], Literal["a"], dict[str, Any], Optional[str], tuple[int, ...]])
def test_a_type_without_objects_needs_no_second_look(annotation: Any) -> None:
    node = converter(annotation, closed=True)

    assert isinstance(node, Plain)
    assert node.fence is None


def test_the_faults_are_those_of_the_parts() -> None:
    with pytest.raises(Misfit) as refused:
        converter(Tree, closed=True).load({"point": {"x": "a"}, "children": [{}], "z": 1}, "v")

    assert refused.value.problems == [
        "v.z: unknown member",
        'v.point.x: expected an integer, got "a"',
        "v.children[0].point: missing; expected an object with x",
    ]
