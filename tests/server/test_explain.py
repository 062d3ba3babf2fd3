"""Words for values that do not fit a type."""

from __future__ import annotations

import decimal
import enum
import uuid
from typing import Annotated, Any, Literal

import msgspec
import pytest

from modelwire.server import explain
from modelwire.server.converters import converter
from modelwire.server.nodes import Misfit


class Point(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    x: int
    y: int = 0


class Cat(msgspec.Struct, tag="cat"):
    lives: int


class Dog(msgspec.Struct, tag="dog", forbid_unknown_fields=True):
    name: str


class Level(enum.IntEnum):
    LOW = 1


def clauses(annotation: Any, value: Any) -> list[str]:
    try:
        converter(annotation).load(value, "v")
    except Misfit as misfit:
        return misfit.problems
    return []


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (Annotated[int, msgspec.Meta(ge=1, lt=8)], 9, "v: expected an integer >= 1 and < 8, got the number 9"),
        (Annotated[int, msgspec.Meta(multiple_of=5)], 7,
         "v: expected an integer that is a multiple of 5, got the number 7"),
        (Annotated[str, msgspec.Meta(min_length=3)], "ab", 'v: expected text of at least 3 characters, got "ab"'),
        (Annotated[str, msgspec.Meta(pattern="^a")], "b", 'v: expected text that matches ^a, got "b"'),
        (Annotated[list[int], msgspec.Meta(max_length=1)], [1, 2],
         "v: expected a list of at most 1 items, got a list of 2 items"),
        (tuple[int, str], [1], "v: expected a list of exactly 2 items, got a list of 1 items"),
        (tuple[int, str], [1, 2], "v[1]: expected text, got the number 2"),
        (int | list[str] | None, [1], "v[0]: expected text, got the number 1"),
        (int | None, "x", 'v: expected an integer or null, got "x"'),
        (Literal["a"], "b", 'v: expected "a", got "b"'),
        (Level, 2, "v: expected 1, got the number 2"),
        (dict[int, str], {"x": "y"}, 'a member name of v: expected an integer, got "x"'),
        (dict[str, int], {"k": "y"}, 'v.k: expected an integer, got "y"'),
        (Point, ["a"], 'v[0]: expected an integer, got "a"'),
        (Point, [], "v[0]: missing; expected an integer (x)"),
        (Point, [1, 2, 3], "v: expected at most 2 items, got 3"),
        (Cat | Dog, {"type": "dog"}, "v.name: missing; expected text"),
        (Cat | Dog, {"type": "cow"}, 'v.type: expected one of "cat", "dog", got "cow"'),
        (Cat | Dog, {"name": "x"}, 'v.type: missing; expected one of "cat", "dog"'),
        (Dog, {"type": "dog", "name": "x", "age": 1}, "v.age: unknown member"),
        (Dog, {"type": "cow", "name": "x"}, 'v.type: expected "dog", got "cow"'),
        (bytes, "###", 'v: expected base64 text, got "###"'),
        (uuid.UUID, "1", 'v: expected a UUID such as "3f2b8a52-6c1d-4e8e-9d2a-0c5b7f9e1a64", got "1"'),
        (decimal.Decimal, "x", 'v: expected a decimal number such as "12.50", got "x"'),
    ],
)  # fmt: skip
def test_a_clause_says_where_what_and_instead_of_what(annotation: Any, value: Any, expected: str) -> None:
    assert clauses(annotation, value) == [expected]


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, 1),
        (float, 1),
        (Point, [1]),
        (Cat | Dog, {"type": "cat", "lives": 9}),
        (dict[int, str], {"1": "x"}),
        (Any, {}),
    ],
)
def test_a_value_that_fits_has_no_clauses(annotation: Any, value: Any) -> None:
    assert clauses(annotation, value) == []


@pytest.mark.parametrize("name", ["password", "user_password", "API_KEY", "token", "a.secret[0]", "credentials"])
def test_names_that_smell_of_secrets(name: str) -> None:
    assert explain.is_secret(name)
    assert "x" not in explain.shown("xxx", name).replace("text", "")


@pytest.mark.parametrize("name", ["city", "author", "spin", "option"])
def test_names_that_do_not(name: str) -> None:
    assert not explain.is_secret(name)


def test_a_message_of_others_is_not_passed_on_when_it_might_repeat_a_secret() -> None:
    value = {"login": [{"password": "hunter2"}], "n": 5}

    assert explain.repeats_secret("bad: hunter2", value, "v")
    assert not explain.repeats_secret("bad: 5", value, "v")
    assert explain.repeats_secret("bad: 5", 5, "token")
