"""Defaults that their own types refuse are refused at registration; what is nothing for JSON is left alone."""

from __future__ import annotations

import datetime
import decimal
import enum
import pathlib
import uuid
from typing import Annotated, Any, Literal, Optional

import annotated_types as at
import attrs
import msgspec
import pydantic
import pytest

from modelwire import Server
from modelwire.errors import SignatureError
from modelwire.server.converters import converter
from modelwire.server.defaults import problems
from modelwire.server.signature import compile_signature
from tests.server.kinds import KINDS, Colour, Model, Order, Place, Point, Row


class Missing(enum.Enum):
    TOKEN = 0


class Unwritable:
    pass


NEW_YEAR = datetime.date(2026, 1, 1)


def told(annotation: Any, default: Any, name: str = "v") -> list[str]:
    return problems(converter(annotation, closed=True), default, name)


@pytest.mark.parametrize(
    ("annotation", "default", "found"),
    [
        (int, "x", ['v: expected an integer, got "x"']),
        (int, True, ["v: expected an integer, got true"]),
        (bool, 0, ["v: expected true or false, got the number 0"]),
        (str, 5, ["v: expected text, got the number 5"]),
        (Annotated[int, msgspec.Meta(ge=1)], 0, ["v: expected an integer >= 1, got the number 0"]),
        (Annotated[str, at.MaxLen(2)], "abc", ['v: expected text of at most 2 characters, got "abc"']),
        (Optional[Annotated[int, at.Ge(1)]], 0, ["v: expected an integer >= 1 or null, got the number 0"]),
        (Literal["a", "b"], "c", ['v: expected one of "a", "b", got "c"']),
        (Colour, "green", ['v: expected one of "red", "blue", got "green"']),
        (list[int], ["a"], ['v[0]: expected an integer, got "a"']),
        (list[int], {"a": 1}, ["v: expected a list, got an object with 1 members"]),
        (dict[str, int], {"a": "b"}, ['v.a: expected an integer, got "b"']),
        (set[pathlib.Path], {5}, ["v[0]: expected a path as text, got the number 5"]),
        (Point, {"x": 1, "z": 2}, ["v.z: unknown member"]),
        (Point, Point("a"), ['v.x: expected an integer, got "a"']),  # pyright: ignore
        (Point, Place("a"), ["v.name: unknown member", "v.x: missing; expected an integer"]),
        (Order, Order(0), ["v.count: expected an integer > 0, got the number 0"]),
        (datetime.date, "tomorrow", ['v: expected a date such as "2026-01-31", got "tomorrow"']),
        (Model, {"from": "x"}, ['v.from: expected an integer, got "x"']),
    ],
)
def test_a_default_that_a_client_could_send_must_fit(annotation: Any, default: Any, found: list[str]) -> None:
    assert told(annotation, default) == found


@pytest.mark.parametrize(
    ("annotation", "default"),
    [
        (int, None),
        (int, ...),
        (int, object()),
        (int, Unwritable()),
        (list[int], Unwritable),
        (int, lambda: 3),
        (int, Missing.TOKEN),
        (str, Missing.TOKEN),
        (int, msgspec.UNSET),
        (int, attrs.NOTHING),
        (int, float("nan")),
        (str, "\ud800"),
        (list[float], [float("inf")]),
        (float, float("inf")),
        (Colour, "red"),
        (pathlib.Path, "."),
        (datetime.date, NEW_YEAR),
        (datetime.date, "2026-01-01"),
        (uuid.UUID | str, "x"),
        (decimal.Decimal, 1),
        (float, 1),
        (int, 3.0),
        (tuple[int, ...], []),
        (set[pathlib.Path], ["a"]),
        (Row, Row(1)),
        (Point, {"x": 1}),
        (Any, Unwritable()),
    ],
)
def test_sentinels_and_what_stands_for_a_value_are_left_alone(annotation: Any, default: Any) -> None:
    assert told(annotation, default) == []


@pytest.mark.parametrize("name", KINDS)
def test_a_value_of_the_type_is_a_default_in_python_and_in_json(name: str) -> None:
    annotation, value, plain = KINDS[name]

    assert told(annotation, value) == []
    assert told(annotation, plain) == []


def test_a_default_beside_a_secret_name_is_not_shown() -> None:
    assert told(int, "hunter2", "api_key") == ["api_key: expected an integer, got text (not shown)"]


def test_the_refusal_names_function_and_parameter() -> None:
    def function(a: int, n: Annotated[int, msgspec.Meta(ge=1)] = 0) -> None: ...

    with pytest.raises(SignatureError) as refused:
        compile_signature(function, name="f")

    assert str(refused.value) == (
        "f: the default of parameter 'n' does not fit: n: expected an integer >= 1, got the number 0"
    )


def test_a_default_inside_a_field_is_looked_at_as_well() -> None:
    def function(n: int = pydantic.Field(0, ge=1)) -> None: ...
    def made(n: list[int] = pydantic.Field(default_factory=lambda: ["a"])) -> None: ...  # noqa: B008

    for one in (function, made):
        with pytest.raises(SignatureError, match="the default of parameter 'n' does not fit"):
            compile_signature(one, name="f")


def test_tools_resources_and_prompts_refuse_it_alike() -> None:
    server = Server("s")

    def function(city: str, days: int = "three") -> str:  # pyright: ignore
        return city

    for register in (server.tool, server.prompt, server.resource("weather://{city}")):
        with pytest.raises(SignatureError, match="the default of parameter 'days' does not fit"):
            register(function)
