"""Values as servers read them: what a client is given arrives as what it was."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import ipaddress
import json
import pathlib
from typing import Annotated, Any, NamedTuple

import attrs
import msgspec
import pydantic
import pytest

from modelwire import Client, ConfigError, Name, Server, types
from modelwire.client.values import arguments_json, prompt_arguments
from modelwire.client.written import as_read
from tests.server.kinds import KINDS, signature_of


class Colour(enum.Enum):
    RED = "red"


class Point(NamedTuple):
    x: int
    y: int = 0


@dataclasses.dataclass
class Mail:
    sender: Annotated[str, Name("from")]
    at: Point
    read: bool = dataclasses.field(init=False, default=False)


@attrs.define
class Account:
    _owner: str
    points: tuple[Point, ...] = ()


class Struct(msgspec.Struct, rename="camel", tag="s"):
    the_point: Point
    more: int | msgspec.UnsetType = msgspec.UNSET


class Plain(msgspec.Struct, omit_defaults=True):
    a: int = 1
    items: list[Any] = []
    b: int | None = None


class Listed(msgspec.Struct, array_like=True):
    point: Point
    n: int = 1


class Part(pydantic.BaseModel):
    size: int = pydantic.Field(validation_alias="in", serialization_alias="out")


class Model(pydantic.BaseModel):
    sender: str = pydantic.Field(alias="from")
    when: datetime.date
    parts: list[Part] = []
    by_name: dict[str, Part] = {}
    either: int = pydantic.Field(0, validation_alias=pydantic.AliasChoices("first", "second"))

    @pydantic.computed_field
    @property
    def double(self) -> str:
        return self.sender * 2


class Points(pydantic.RootModel[list[Part]]):
    pass


@pydantic.dataclasses.dataclass
class Checked:
    a: int = pydantic.Field(alias="theA")


DAY = datetime.date(2026, 1, 31)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (Point(1), {"x": 1, "y": 0}),
        ([Point(1, 2)], [{"x": 1, "y": 2}]),
        ({"a": {"b": (Point(1),)}}, {"a": {"b": [{"x": 1, "y": 0}]}}),
        (Mail("me", Point(1)), {"from": "me", "at": {"x": 1, "y": 0}}),
        (Account("me", (Point(1),)), {"owner": "me", "points": [{"x": 1, "y": 0}]}),
        (Struct(Point(1)), {"type": "s", "thePoint": {"x": 1, "y": 0}}),
        (Plain(), {}),
        (Plain(b=2), {"b": 2}),
        (Plain(items=[Point(1)]), {"items": [{"x": 1, "y": 0}]}),
        (Listed(Point(1)), [{"x": 1, "y": 0}, 1]),
        (Model.model_validate({"from": "a", "when": DAY, "parts": [{"in": 1}], "by_name": {"k": {"in": 2}}}),
         {"from": "a", "when": "2026-01-31", "parts": [{"in": 1}], "by_name": {"k": {"in": 2}}, "first": 0}),
        (Points([Part.model_validate({"in": 1})]), [{"in": 1}]),
        (Checked(theA=1), {"theA": 1}),
        (pydantic.AnyUrl("http://a/"), "http://a/"),
        ({Colour.RED: 1, pathlib.PurePosixPath("/x"): 2, 3: 4}, {"red": 1, "/x": 2, "3": 4}),
        ({DAY: 1}, {"2026-01-31": 1}),
        (Colour.RED, "red"),
        ({1}, [1]),
        (frozenset({Colour.RED}), ["red"]),
        (collections.deque([Point(1)]), [{"x": 1, "y": 0}]),
        (collections.OrderedDict(a=Point(1)), {"a": {"x": 1, "y": 0}}),
        (pathlib.PurePosixPath("/x"), "/x"),
        (ipaddress.ip_address("192.0.2.1"), "192.0.2.1"),
        (ipaddress.ip_address("::1"), "::1"),
        (decimal.Decimal("1.50"), "1.50"),
        (datetime.timedelta(hours=1), "PT3600S"),
        (b"hi", "aGk="),
        (types.TextContent("a"), {"type": "text", "text": "a"}),
        (types.TextContent("a", meta={"k": Point(1)}), {"type": "text", "text": "a", "_meta": {"k": {"x": 1, "y": 0}}}),
        (msgspec.Raw(b"[1]"), [1]),
    ],
)  # fmt: skip
def test_a_value_is_written_as_its_type_is_read(value: Any, written: Any) -> None:
    assert json.loads(arguments_json({"v": value}) or b"") == {"v": written}


@pytest.mark.parametrize("value", [{"a": [1, "b", None, {"c": 1.5}]}, [], "x", 5, DAY, Plain(items=[1])])
def test_what_msgspec_writes_as_servers_read_it_is_left_alone(value: Any) -> None:
    assert as_read(value) is value


def test_the_values_that_are_given_are_never_changed() -> None:
    struct, items = Plain(items=[Point(1)]), {"a": [Point(1)]}
    arguments_json({"v": struct, "w": items})

    assert struct == Plain(items=[Point(1)])
    assert items == {"a": [Point(1)]}


def test_a_class_whose_annotations_mean_nothing_is_written_by_its_attributes() -> None:
    @dataclasses.dataclass
    class Odd:
        a: Nowhere  # noqa: F821 # pyright: ignore

    assert arguments_json({"v": Odd(1)}) == b'{"v":{"a":1}}'


def test_arguments_of_prompts_are_the_same_as_text() -> None:
    assert prompt_arguments({"a": Colour.RED, "b": Point(1), "c": pathlib.PurePosixPath("/x"), "d": DAY}) == {
        "a": "red",
        "b": '{"x":1,"y":0}',
        "c": "/x",
        "d": "2026-01-31",
    }


def test_what_cannot_be_written_is_an_error_of_the_caller() -> None:
    class Foreign(pydantic.BaseModel, arbitrary_types_allowed=True):
        a: Any

    endless: list[Any] = []
    endless.append(endless)

    for value in (object(), [object()], Foreign(a=object()), endless, {"a": {(1, 2): 3}}):
        with pytest.raises(ConfigError, match="the arguments cannot be sent"):
            arguments_json({"v": value})


@pytest.mark.parametrize("name", KINDS)
def test_any_value_that_a_call_is_given_is_read_by_its_type(name: str) -> None:
    annotation, value, _ = KINDS[name]
    args, _ = signature_of(annotation).bind(arguments_json({"v": value}))

    assert args == [value]
    assert type(args[0]) is type(value)


def taking(annotation: Any, name: str, found: dict[str, Any]) -> Any:
    def take(v: Any) -> None:
        found[name] = v

    take.__annotations__["v"] = annotation
    return take


@pytest.mark.parametrize(
    ("wrap", "shape"),
    [
        (lambda value: [value], lambda kind: list[kind]),
        (lambda value: {"k": [value]}, lambda kind: dict[str, list[kind]]),
        (lambda value: (None, value), lambda kind: tuple[None, kind]),
    ],
)
async def test_it_arrives_through_a_client_wherever_it_stands(wrap: Any, shape: Any) -> None:
    server, found = Server("kinds", version="1"), dict[str, Any]()
    for name, (annotation, *_) in KINDS.items():
        server.tool(name=name.replace(" ", "_"), inline=True)(taking(shape(annotation), name, found))

    async with Client(server) as client:
        for name, (_, value, _) in KINDS.items():
            await client.call(name.replace(" ", "_"), {"v": wrap(value)})

            assert found[name] == wrap(value), name
