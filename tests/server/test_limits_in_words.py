"""Every limit is told with its place, what is allowed and what came, in the same words whichever library wrote it."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import json
from typing import Annotated, Any

import annotated_types as at
import attrs
import msgspec
import pydantic
import pytest

from modelwire.server.arguments import ArgumentErrors
from modelwire.server.signature import compile_signature

LONG = "abcdef" * 20


def told(hint: Any, value: Any) -> str:
    def function(v: Any) -> None: ...

    function.__annotations__ = {"v": hint, "return": None}
    with pytest.raises(ArgumentErrors) as caught:
        compile_signature(function, name="f").bind(json.dumps({"v": value}).encode())
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize(
    ("base", "limit", "value", "words"),
    [
        (int, {"ge": 1}, 0, "expected an integer >= 1, got the number 0"),
        (int, {"le": 1}, 2, "expected an integer <= 1, got the number 2"),
        (float, {"gt": 1}, 0.5, "expected a number > 1, got the number 0.5"),
        (float, {"lt": 1}, 1.5, "expected a number < 1, got the number 1.5"),
        (int, {"ge": 1, "le": 9}, 10, "expected an integer >= 1 and <= 9, got the number 10"),
        (int, {"multiple_of": 5}, 3, "expected an integer that is a multiple of 5, got the number 3"),
        (str, {"min_length": 3}, "a", 'expected text of at least 3 characters, got "a"'),
        (str, {"max_length": 3}, LONG, f'expected text of at most 3 characters, got "{LONG[:60]}…"'),
        (str, {"min_length": 2, "max_length": 2}, "a", 'expected text of exactly 2 characters, got "a"'),
        (list[int], {"min_length": 2}, [1], "expected a list of at least 2 items, got a list of 1 items"),
        (list[int], {"max_length": 1}, [1, 2], "expected a list of at most 1 items, got a list of 2 items"),
        (
            dict[str, int],
            {"min_length": 1},
            {},
            "expected an object of at least 1 members, got an object with 0 members",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_limit_is_told_in_the_same_words_whoever_wrote_it(
    base: Any, limit: dict[str, Any], value: Any, words: str
) -> None:
    names = {"ge": at.Ge, "gt": at.Gt, "le": at.Le, "lt": at.Lt, "multiple_of": at.MultipleOf,
             "min_length": at.MinLen, "max_length": at.MaxLen}  # fmt: skip
    written = [msgspec.Meta(**limit)], [names[name](bound) for name, bound in limit.items()], [pydantic.Field(**limit)]
    for metadata in written:
        hint = Annotated[(base, *metadata)]
        data: Any = dataclasses.make_dataclass("Data", [("x", hint)])
        model: Any = pydantic.create_model("Model", x=(hint, ...)) if metadata is not written[0] else data
        own: Any = attrs.make_class("Own", {"x": attrs.field(type=hint)})
        assert told(hint, value) == f"v: {words}"
        for cls in (data, model, own):
            assert told(cls, {"x": value}) == f"v.x: {words}"
            assert told(list[cls], [{"x": value}]) == f"v[0].x: {words}"


@pytest.mark.parametrize(
    ("base", "bound", "value", "words"),
    [
        (decimal.Decimal, 1, "0.5", 'expected a decimal number such as "12.50" >= 1, got "0.5"'),
        (datetime.date, datetime.date(2026, 1, 1), "2025-01-01", 'expected a date such as "2026-01-31" '),
        (datetime.timedelta, datetime.timedelta(hours=1), "PT1M", 'expected a duration such as "PT1H30M" '),
    ],
    ids=str,
)
def test_what_is_text_in_json_is_called_what_it_is(base: Any, bound: Any, value: Any, words: str) -> None:
    model: Any = pydantic.create_model("Model", x=(Annotated[base, pydantic.Field(ge=bound)], ...))
    assert told(Annotated[base, at.Ge(bound)], value).startswith(f"v: {words}")
    assert told(model, {"x": value}).startswith(f"v.x: {words}")


def test_no_secret_is_repeated() -> None:
    hint = Annotated[str, pydantic.Field(min_length=9)]
    model: Any = pydantic.create_model("Model", password=(hint, ...))
    own: Any = attrs.make_class("Own", {"password": attrs.field(type=str, validator=attrs.validators.min_len(9))})
    for cls in (model, own, dataclasses.make_dataclass("Data", [("password", hint)])):
        words = "v.password: expected text of at least 9 characters, got text (not shown)"
        assert told(cls, {"password": "hunter2"}) == words


@pytest.mark.parametrize("meta", [msgspec.Meta(min_length=2), at.MinLen(2), pydantic.Field(min_length=2)], ids=str)
@pytest.mark.parametrize("base", [set[int], frozenset[str], set])
def test_the_size_of_a_set_is_that_of_what_it_holds(base: Any, meta: Any) -> None:
    value = ["1", "1"] if base == frozenset[str] else [1, 1]
    words = "v: expected a list of at least 2 different items, got a list of 2 items"
    assert told(Annotated[base, meta], value) == words
