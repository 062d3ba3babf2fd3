"""What msgspec alone would not enforce is found when a function is registered, and never left to it."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import pathlib
import uuid
from typing import Annotated, Any, Literal, NamedTuple, NewType, Optional, TypedDict

import msgspec
import pytest
import typing_extensions

from modelwire.server.annotations import Name, Scope, refusal, unwrap


@dataclasses.dataclass
class Plain:
    x: int


@dataclasses.dataclass
class Other:
    y: int


@dataclasses.dataclass
class Tree:
    children: list[Tree] = dataclasses.field(default_factory=list)


class Constraint:
    """Stands for a constraint of a library that msgspec does not know."""


Constraint.__module__ = "annotated_types"


@dataclasses.dataclass
class Constrained:
    x: Annotated[int, Constraint()]


class ConstrainedKeys(typing_extensions.TypedDict):
    x: Annotated[int, Constraint()]


class Row(NamedTuple):
    a: int


class Keys(TypedDict):
    a: int


class Colour(enum.Enum):
    RED = "red"


class Mixed(enum.Enum):
    A = 1
    B = "b"


class Bits(enum.Flag):
    A = 1


class Attrs:
    __attrs_attrs__ = ()


class Pydantic:
    __pydantic_core_schema__ = None


UserId = NewType("UserId", int)


@pytest.mark.parametrize(
    "annotation",
    [
        int, str, float, bool, None, Any, list, dict, list[int], dict[str, int], tuple[int, str], tuple[int, ...],
        set[int], frozenset[str], Literal["a", 1, None], Colour, Optional[int], int | str | None, list[int] | int,
        Annotated[int, msgspec.Meta(ge=1)], Annotated[str, "what it is"], Plain, Tree, Keys, UserId, bytes,
        datetime.datetime, datetime.date, datetime.time, datetime.timedelta, uuid.UUID, list[Plain | None],
    ],
)  # fmt: skip
def test_types_that_msgspec_enforces_are_taken(annotation: Any) -> None:
    assert refusal(annotation) is None


@pytest.mark.parametrize(
    ("annotation", "word"),
    [
        (pathlib.Path, "Path"),
        (complex, "complex"),
        (list[object], "object"),
        (Plain | Other, "dataclass"),
        (uuid.UUID | str, "str"),
        (Attrs, "attrs"),
        (dict[str, list[Pydantic]], "pydantic"),
        (Annotated[int, Constraint()], "annotated_types"),
        (Constrained, "Constrained.x"),
        (list[Constrained | None], "Constrained.x"),
        (Annotated[str, msgspec.Meta(ge=1)], "numeric"),
        (Annotated[int, msgspec.Meta(extra_json_schema={"minimum": 3})], "minimum"),
        (Literal[True], "True"),
        (Mixed, "Enum"),
        (Bits, "Flag"),
        (dict[bool, int], "keys"),
        (list[dict[tuple[int, int], int]], "keys"),
        (Row, "NamedTuple"),
        (list[Row], "NamedTuple"),
        (ConstrainedKeys, "ConstrainedKeys.x"),
        (Annotated[int, Name("from")], "names a field"),
        (Literal[10**20], "integer"),
    ],
)
def test_types_that_msgspec_would_not_enforce_are_told(annotation: Any, word: str) -> None:
    reason = refusal(annotation)

    assert reason is not None
    assert word.lower() in reason.lower()


def test_names_of_enclosing_functions_are_found_while_they_run() -> None:
    class Local(TypedDict):
        a: int

    def function(x: Local) -> None: ...

    assert Scope(function).evaluate("Local") is Local
    assert Scope(function).evaluate("list[Local] | None") == list[Local] | None


def test_names_that_a_function_closes_over_are_found() -> None:
    def make() -> Any:
        class Local(TypedDict):
            a: int

        def function(x: Local) -> Any:
            return Local

        return function

    function = make()

    assert Scope(function).evaluate("Local") is function(None)


def test_a_name_that_is_nowhere_is_an_error() -> None:
    def function() -> None: ...

    with pytest.raises(NameError):
        Scope(function).evaluate("Nowhere")


def test_unwrap_reaches_the_plain_function() -> None:
    class Callable:
        def __call__(self, x: int) -> int:
            return x

    assert unwrap(Callable()) is Callable.__call__
    assert unwrap(Callable().__call__) is Callable.__call__
