"""What attrs validators ask for stands in schemas and is told in our words."""

from __future__ import annotations

import json
import re
from typing import Any

import attrs
import jsonschema_rs
import pytest
from attrs import validators as v

from modelwire.server.arguments import ArgumentErrors
from modelwire.server.results import ResultError
from modelwire.server.signature import Signature, compile_signature


def signature_of(hint: Any, validator: Any, **more: Any) -> Signature:
    cls: Any = attrs.make_class("Held", {"x": attrs.field(type=hint, validator=validator, **more)})

    def function(p: Any) -> Any:
        return p

    function.__annotations__ = {"p": cls, "return": cls}
    return compile_signature(function, name="f")


def schema_of(signature: Signature) -> Any:
    return signature.input_schema["$defs"]["Held"]["properties"]["x"]


def bound(signature: Signature, value: Any) -> Any:
    return signature.bind(json.dumps({"p": {"x": value}}).encode())[0][0].x


@pytest.mark.parametrize(
    ("hint", "validator", "schema", "good", "bad", "words"),
    [
        (int, v.ge(1), {"type": "integer", "minimum": 1}, 1, 0, "an integer >= 1, got the number 0"),
        (int, v.gt(1), {"type": "integer", "exclusiveMinimum": 1}, 2, 1, "an integer > 1, got the number 1"),
        (float, v.le(1.5), {"type": "number", "maximum": 1.5}, 1.5, 2, "a number <= 1.5, got the number 2"),
        (float, v.lt(1), {"type": "number", "exclusiveMaximum": 1}, 0.5, 1, "a number < 1, got the number 1"),
        (str, v.max_len(2), {"type": "string", "maxLength": 2}, "ab", "abc", 'text of at most 2 characters, got "abc"'),
        (list[int], v.min_len(1), {"type": "array", "items": {"type": "integer"}, "minItems": 1}, [1], [],
         "a list of at least 1 items, got a list of 0 items"),
        (str, v.matches_re("a+"), {"type": "string", "pattern": "^(?:a+)$"}, "aa", "aab",
         'text that matches ^(?:a+)$, got "aab"'),
        (str, v.matches_re("a", func=re.search), {"type": "string", "pattern": "a"}, "bab", "b", "text that matches a"),
        (str, v.in_(["b", "a"]), {"enum": ["b", "a"]}, "a", "c", 'one of "b", "a", got "c"'),
        (int, v.in_({2, 1}), {"enum": [1, 2]}, 1, 3, "one of 1, 2, got the number 3"),
        (int, v.in_(range(1, 10**9)), {"type": "integer", "minimum": 1, "maximum": 999999999}, 3, 0,
         "an integer >= 1 and <= 999999999, got the number 0"),
        (int, v.and_(v.ge(1), v.le(3)), {"type": "integer", "minimum": 1, "maximum": 3}, 3, 4,
         "an integer >= 1 and <= 3, got the number 4"),
        (int | None, v.optional(v.ge(1)), {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]}, None, 0,
         "an integer >= 1 or null, got the number 0"),
        (int | None, v.optional([v.ge(1), v.le(3)]),
         {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 3}, {"type": "null"}]}, 1, 4, "<= 3 or null, got"),
        (str | None, v.optional(v.in_(["a"])), {"anyOf": [{"enum": ["a"]}, {"type": "null"}]}, "a", "b",
         '"a" or null, got "b"'),
        (Any, v.instance_of(int), {"type": "integer"}, 1, "a", 'an integer, got "a"'),
        (Any, v.instance_of((int, str)), {"anyOf": [{"type": "integer"}, {"type": "string"}]}, "a", [1],
         "an integer or text, got a list of 1 items"),
        (Any, v.optional(v.instance_of(int)), {"anyOf": [{"type": "integer"}, {"type": "null"}]}, None, "a",
         'an integer or null, got "a"'),
    ],
    ids=lambda value: repr(value)[:40],
)  # fmt: skip
def test_a_validator_is_a_limit_of_the_schema_and_told_in_our_words(
    hint: Any, validator: Any, schema: Any, good: Any, bad: Any, words: str
) -> None:
    signature = signature_of(hint, validator)
    assert schema_of(signature) == schema
    jsonschema_rs.Draft202012Validator(signature.input_schema).validate({"p": {"x": good}})
    assert bound(signature, good) == good
    with pytest.raises(ArgumentErrors) as caught:
        bound(signature, bad)
    (problem,) = caught.value.problems
    assert problem.startswith("p.x: expected ")
    assert words in problem


def test_results_are_held_to_them_too() -> None:
    signature = signature_of(int, v.ge(1))
    held = signature.bind(b'{"p":{"x":1}}')[0][0]
    object.__setattr__(held, "x", 0)
    with pytest.raises(ResultError, match=r"result\.x: expected an integer >= 1, got the number 0"):
        signature.check_result(held)


@pytest.mark.parametrize(
    ("hint", "validator", "good", "bad"),
    [
        (str, v.ge("b"), "c", "a"),
        (str, v.in_("abc"), "bc", "d"),
        (float, v.in_([1.0, 2.0]), 1.0, 3.0),
        (str, v.matches_re("A", re.IGNORECASE), "a", "b"),
        (list[int], v.deep_iterable(v.ge(1)), [1], [0]),
        (int, v.not_(v.in_([5])), 4, 5),
        (int, v.or_(v.ge(10), v.le(2)), 1, 5),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_no_schema_shows_is_left_to_the_class(hint: Any, validator: Any, good: Any, bad: Any) -> None:
    signature = signature_of(hint, validator)
    assert bound(signature, good) == good
    with pytest.raises(ArgumentErrors) as caught:
        bound(signature, bad)
    (problem,) = caught.value.problems
    assert problem.startswith("p.x: ")
    assert problem.endswith(" is not accepted here")


def test_limits_are_those_of_what_a_converter_makes() -> None:
    signature = signature_of(int, v.ge(1), converter=len_of)
    assert schema_of(signature) == {"type": "string"}
    assert bound(signature, "a") == 1
    with pytest.raises(ArgumentErrors):
        bound(signature, "")


def len_of(text: str) -> int:
    return len(text)
