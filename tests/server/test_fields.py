"""What is read off classes with fields."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, NamedTuple, TypedDict

import attrs
import msgspec
import pytest
import typing_extensions as te

from modelwire.server.annotations import Name
from modelwire.server.constraints import MISSING, Unsupported
from modelwire.server.fields import has_fields, outline


@dataclasses.dataclass
class Data:
    a: int
    b: Annotated[str, Name("from")] = "x"
    c: list[int] = dataclasses.field(default_factory=list)
    d: int = dataclasses.field(init=False, default=3)


@attrs.define
class Attrs:
    a: int
    _b: str = attrs.field(default="x", alias="sender")
    c: list[int] = attrs.field(factory=list)
    d: int = attrs.field(init=False, default=3)


class Tuple(NamedTuple):
    a: int
    b: str = "x"


class Struct(msgspec.Struct, rename="camel", tag="s", forbid_unknown_fields=True):
    a_b: int
    c: list[int] = []


class Row(msgspec.Struct, array_like=True):
    a: int


class Keys(TypedDict):
    a: te.Required[te.ReadOnly[int]]
    b: te.NotRequired[Annotated[str, Name("from")]]


class Closed(te.TypedDict, closed=True):
    a: int


class Open(te.TypedDict, closed=False):
    a: int


class Extra(te.TypedDict, extra_items=te.ReadOnly[int]):
    a: str


class ExtraHeir(Extra):
    b: str


class NoExtra(te.TypedDict, extra_items=te.Never):
    a: int


def fields(cls: Any) -> list[tuple[Any, ...]]:
    found = outline(cls, (), None).fields
    return [(field.name, field.wire, field.required, field.argument, field.default) for field in found]


@pytest.mark.parametrize(
    ("cls", "found"),
    [
        (Data, [("a", "a", True, "a", MISSING), ("b", "from", False, "b", "x"), ("c", "c", False, "c", []),
                ("d", "d", False, "", 3)]),
        (Attrs, [("a", "a", True, "a", MISSING), ("_b", "sender", False, "sender", "x"), ("c", "c", False, "c", []),
                 ("d", "d", False, "", 3)]),
        (Tuple, [("a", "a", True, "a", MISSING), ("b", "b", False, "b", "x")]),
        (Struct, [("a_b", "aB", True, "a_b", MISSING), ("c", "c", False, "c", [])]),
        (Keys, [("a", "a", True, "a", MISSING), ("b", "from", False, "b", MISSING)]),
    ],
)  # fmt: skip
def test_fields_are_read_in_the_order_written(cls: Any, found: list[tuple[Any, ...]]) -> None:
    assert fields(cls) == found
    assert has_fields(cls)


def test_qualifiers_and_names_are_taken_off_the_types() -> None:
    assert [field.hint for field in outline(Keys, (), None).fields] == [int, str]


@pytest.mark.parametrize(
    ("cls", "closed", "others"),
    [
        (Data, None, MISSING),
        (Struct, True, MISSING),
        (Row, None, MISSING),
        (Keys, None, MISSING),
        (Closed, True, MISSING),
        (Open, False, Any),
        (Extra, False, int),
        (ExtraHeir, False, int),
        (NoExtra, True, MISSING),
    ],
)
def test_whether_a_class_says_that_it_is_closed(cls: Any, closed: bool | None, others: Any) -> None:
    found = outline(cls, (), None)

    assert (found.closed, found.others) == (closed, others)


def test_a_struct_says_its_tag_and_whether_it_is_a_list() -> None:
    assert (outline(Struct, (), None).tag, outline(Struct, (), None).by_position) == (("type", "s"), False)
    assert (outline(Row, (), None).tag, outline(Row, (), None).by_position) == (None, True)


def test_a_class_without_fields_cannot_be_read() -> None:
    assert not has_fields(int)
    with pytest.raises(Unsupported, match="int has no fields"):
        outline(int, (), None)
