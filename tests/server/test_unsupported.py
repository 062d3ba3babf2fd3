"""A function that cannot become a tool is refused in one sentence: function, parameter, what to write instead."""

from __future__ import annotations

import dataclasses
import enum
import json
import typing
from collections.abc import Callable, Iterator
from typing import Annotated, Any, ClassVar, Never, Required

import attrs
import pydantic
import pytest

from modelwire.errors import SignatureError
from modelwire.server.signature import compile_signature


class Odd:
    def __init__(self, a: int) -> None: ...


@dataclasses.dataclass
class Inner:
    a: Odd


@dataclasses.dataclass
class Outer:
    b: list[Inner]


@dataclasses.dataclass
class Open:
    a: int


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    x: Odd


class Good(pydantic.BaseModel):
    x: int


class Modes(enum.Flag):
    A = 1


INSTEAD = "; use a dataclass, a TypedDict or a model, or Depends(...) for what the server makes"


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (Odd, f"Odd has no JSON form{INSTEAD}"),
        (list[Odd], f"Odd has no JSON form{INSTEAD}"),
        (Outer, f"Outer.b: Inner.a: Odd has no JSON form{INSTEAD}"),
        (attrs.make_class("Made", {"a": attrs.field(type=Odd)}), f"Made.a: Odd has no JSON form{INSTEAD}"),
        (Model, f"Model holds Odd, which has no JSON form{INSTEAD}"),
        (complex, "complex has no JSON form; use a string, or a pair of numbers"),
        (Callable[[int], int], "Callable[[int], int] has no JSON form; use a Literal or an Enum of names to "),
        (type[int], "type[int] has no JSON form; use a Literal or an Enum of names to choose from"),
        (Iterator[int], "Iterator[int] is made while it is read, and JSON comes whole; use a list"),
        (Modes, "Modes is a Flag, whose combinations no schema lists; use an Enum and a set of its members"),
        (Never, "no value is of the type Never; leave the parameter out"),
        (ClassVar[int], "ClassVar[int] belongs into a class; write the type alone"),
        (typing.Self, "Self belongs into a class; write the type alone"),
        (Required[int], "Required[int] belongs into a class; write the type alone"),
        (tuple[int, *tuple[str, ...]], "tuple[int, *tuple[str, ...]] has a part of any length; use a list, or a tup"),
        (enum.Enum("Nothing", []), "Nothing has no members to choose from"),
        (set[list[int]], "a set cannot hold list[int], since list[int] can change; use a list"),
        (frozenset[tuple[int, Open]], "a set cannot hold tuple[int, Open], since Open can change; use a list or make "),
        (json, "the module json is no type; for a value that is always the same use Literal[...]"),
        (5, "5 is no type; for a value that is always the same use Literal[...]"),
        (json.loads, "loads is a function and no type"),
        (dict[tuple[int, int], int],
         "tuple[int, int] is no type for the keys of a dict, which are text in JSON; use str, or a list of pairs"),
        (Annotated[str, pydantic.Field(pattern="(")], "the pattern '(' is no regular expression: missing ), "
         "unterminated subpattern at position 0"),
        (Annotated[Good, pydantic.Field(max_length=3)], "the limit max_length does not apply to Good"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",  # some of the types have an address as their name
)  # fmt: skip
def test_a_type_that_cannot_be_an_argument_is_refused_in_one_sentence(annotation: Any, words: str) -> None:
    def function(v: Any) -> None: ...

    function.__annotations__["v"] = annotation
    with pytest.raises(SignatureError) as caught:
        compile_signature(function, name="f")

    assert str(caught.value).startswith(f"f: parameter 'v': {words}")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (Odd, "Odd has no JSON form; return a dataclass, a TypedDict or a model, or "),
        (list[complex], "complex has no JSON form; use a string, or a pair of numbers; "),
    ],
)
def test_a_result_that_cannot_be_checked_is_refused_in_one_sentence(annotation: Any, words: str) -> None:
    def function() -> Any: ...

    function.__annotations__["return"] = annotation
    with pytest.raises(SignatureError) as caught:
        compile_signature(function, name="f")

    assert str(caught.value) == f"f: its result cannot be checked: {words}pass structured=False to send it as text"


def test_an_annotation_that_is_no_expression_is_shown() -> None:
    def function(v: Any) -> None: ...

    function.__annotations__["v"] = "list["
    with pytest.raises(
        SignatureError, match=r"^f: the annotation of parameter 'v' cannot be evaluated: 'list\[' is no expression$"
    ):
        compile_signature(function, name="f")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (5, "^f: its parameters cannot be read: 5 is no function$"),
        (max, "^f: its parameters cannot be read: Python does not say which they are; register a function that calls "),
    ],
)
def test_what_is_no_function_is_refused(given: Any, words: str) -> None:
    with pytest.raises(SignatureError, match=words):
        compile_signature(given, name="f")
