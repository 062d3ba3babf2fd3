"""Constraints are enforced and shown, whoever's they are."""

from __future__ import annotations

import datetime
import decimal
import json
import pathlib
from typing import Annotated, Any

import annotated_types as at
import msgspec
import pydantic
import pytest

from modelwire.errors import SignatureError, ToolError
from modelwire.server.constraints import Unsupported, read
from modelwire.server.results import ResultError
from modelwire.server.signature import compile_signature
from tests.server.kinds import Order, even, signature_of

ONE = decimal.Decimal(1)
NEW_YEAR = datetime.date(2026, 1, 1)


def bind(annotation: Any, value: Any) -> Any:
    args, _ = signature_of(annotation).bind(json.dumps({"v": value}).encode())
    return args[0]


@pytest.mark.parametrize(
    ("annotation", "good", "bad", "words"),
    [
        (Annotated[int, at.Gt(1)], 2, 1, "> 1"),
        (Annotated[int, at.Ge(1)], 1, 0, ">= 1"),
        (Annotated[float, at.Lt(1)], 0.5, 1, "< 1"),
        (Annotated[float, at.Le(1)], 1, 1.5, "<= 1"),
        (Annotated[int, at.MultipleOf(5)], 10, 11, "multiple of 5"),
        (Annotated[str, at.MinLen(2)], "ab", "a", "at least 2 characters"),
        (Annotated[list[int], at.MaxLen(1)], [1], [1, 2], "at most 1 items"),
        (Annotated[list[pathlib.Path], at.MaxLen(1)], ["a"], ["a", "b"], "at most 1 items"),
        (Annotated[dict[str, pathlib.Path], at.MinLen(1)], {"a": "a"}, {}, "at least 1 members"),
        (Annotated[str, at.Len(1, 2)], "a", "abc", "at most 2 characters"),
        (Annotated[int, at.Interval(ge=1, lt=3)], 2, 3, ">= 1 and < 3"),
        (Annotated[int, at.Predicate(even)], 2, 3, "that satisfies even"),
        (Annotated[int, at.Not(even)], 3, 2, "that satisfies not even"),
        (at.LowerCase[str], "a", "A", "that satisfies islower"),
        (Annotated[int, at.Gt(1), at.Gt(5)], 6, 5, "> 5"),
        (Annotated[int, msgspec.Meta(ge=1), at.Le(3)], 2, 4, "<= 3"),
        (Annotated[int | None, at.Ge(1)], 1, 0, ">= 1"),
        (Annotated[decimal.Decimal, at.Gt(ONE)], "1.5", "0.5", "> 1"),
        (Annotated[datetime.date, at.Ge(NEW_YEAR)], "2026-01-31", "2025-12-31", "not before 2026-01-01"),
        (Annotated[datetime.datetime, at.Timezone(...)], "2026-01-31T09:30:00Z", "2026-01-31T09:30:00", "time zone"),
        (Annotated[datetime.datetime, at.Timezone("UTC")], "2026-01-31T09:30:00Z", "2026-01-31T09:30:00+02:00", "UTC"),
        (Annotated[int, pydantic.Field(gt=1, multiple_of=2)], 4, 3, "multiple of 2"),
        (Annotated[str, pydantic.Field(pattern="^a", max_length=2)], "ab", "b", "matches ^a"),
        (Annotated[str, pydantic.StringConstraints(pattern="^a")], "ab", "b", "matches ^a"),
        (pydantic.PositiveInt, 1, 0, "> 0"),
        (list[Annotated[int, at.Gt(0)]], [1], [0], "v[0]: expected an integer > 0"),
        (dict[str, Annotated[str, at.MinLen(2)]], {"a": "bc"}, {"a": "b"}, "v.a: expected text of at least 2"),
        (Order, {"count": 1}, {"count": 0}, "v.count: expected an integer > 0"),
        (Order, {"count": 1, "tags": ["a"]}, {"count": 1, "tags": ["a", ""]}, "v.tags[1]: expected text of at least 1"),
    ],
)
def test_a_constraint_is_enforced_and_told(annotation: Any, good: Any, bad: Any, words: str) -> None:
    bind(annotation, good)
    with pytest.raises(ToolError) as refused:
        bind(annotation, bad)

    assert words in refused.value.message


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (Annotated[int, at.Gt(1)], {"type": "integer", "exclusiveMinimum": 1}),
        (Annotated[int, at.Predicate(even)], {"type": "integer", "description": "Must satisfy even."}),
        (Annotated[int, "Count.", msgspec.Meta(description="How many."), at.Predicate(even)],
         {"type": "integer", "description": "How many. Must satisfy even."}),
        (Annotated[dict[str, pathlib.Path], at.MinLen(1)],
         {"type": "object", "additionalProperties": {"type": "string", "format": "path"}, "minProperties": 1}),
        (Annotated[pathlib.Path, pydantic.Field(title="File", examples=["a"], json_schema_extra={"x-a": 1})],
         {"type": "string", "format": "path", "title": "File", "examples": ["a"], "x-a": 1}),
        (Annotated[int, at.Unit("m")], {"type": "integer", "description": "In m."}),
        (Annotated[datetime.date, at.Lt(NEW_YEAR)],
         {"type": "string", "format": "date", "description": "Before 2026-01-01."}),
    ],
)  # fmt: skip
def test_a_constraint_is_shown(annotation: Any, schema: dict[str, Any]) -> None:
    assert signature_of(annotation).input_schema["properties"]["v"] == schema


@pytest.mark.parametrize("annotation", [decimal.Decimal, Annotated[decimal.Decimal, at.Ge(ONE)]])
def test_a_decimal_that_came_as_a_number_keeps_all_of_its_digits(annotation: Any) -> None:
    (args, _) = signature_of(annotation).bind(b'{"v":12345678901234567890.10}')
    assert str(args[0]) == "12345678901234567890.10"


def test_results_are_held_to_constraints() -> None:
    with pytest.raises(ResultError, match=r"result\.count: expected an integer > 0"):
        signature_of(Order).check_result(Order(0))
    with pytest.raises(ResultError, match="satisfies even"):
        signature_of(Annotated[int, at.Predicate(even)]).check_result(3)


def test_a_predicate_that_fails_does_not_hold() -> None:
    def broken(value: int) -> bool:
        raise RuntimeError("no")

    with pytest.raises(ToolError, match="satisfies broken"):
        bind(Annotated[int, at.Predicate(broken)], 1)


def test_an_unknown_constraint_is_refused() -> None:
    class Odd(at.BaseMetadata):
        pass

    with pytest.raises(Unsupported, match="not known"):
        read([Odd()])
    with pytest.raises(SignatureError, match="parameter 'v'"):
        signature_of(Annotated[int, Odd()])


def test_a_field_may_stand_where_the_default_does() -> None:
    def function(
        a: int = pydantic.Field(3, ge=1, description="A."),
        b: list[int] = pydantic.Field(default_factory=list),  # noqa: B008
        c: str = pydantic.Field(alias="from"),
    ) -> Any:
        return [a, b, c]

    signature = compile_signature(function, name="f")

    assert signature.input_schema == {
        "type": "object",
        "properties": {
            "a": {"description": "A.", "type": "integer", "minimum": 1, "default": 3},
            "b": {"type": "array", "items": {"type": "integer"}, "default": []},
            "from": {"type": "string"},
        },
        "required": ["from"],
        "additionalProperties": False,
    }
    (a, b, c), _ = signature.bind(b'{"from":"x"}')
    assert (a, b, c) == (3, [], "x")
    assert signature.bind(b'{"from":"x"}')[0][1] is not b


def test_an_alias_of_several_names_is_refused() -> None:
    with pytest.raises(SignatureError, match="several names"):
        signature_of(Annotated[int, pydantic.Field(validation_alias=pydantic.AliasChoices("a", "b"))])
