"""The coercion table, and that there is nothing beside it."""

from __future__ import annotations

import dataclasses
import datetime
import enum
from typing import Any, Literal, Optional, TypedDict

import msgspec
import pytest

from modelwire.server.arguments import Argument, ArgumentErrors, binder
from modelwire.server.converters import converter


class Number(enum.Enum):
    ONE = 1


class Keys(TypedDict):
    x: int


@dataclasses.dataclass
class Data:
    x: int
    y: list[int]


class Row(msgspec.Struct, array_like=True):
    x: int


def coerce(annotation: Any, value: Any) -> Any:
    filled = binder("f", [Argument("v", converter(annotation, closed=True))])
    return filled.values(msgspec.json.encode({"v": value}))[0]


@pytest.mark.parametrize(
    ("annotation", "value", "result"),
    [
        (int, "5", 5),
        (int, "-12", -12),
        (Optional[int], "5", 5),
        (Literal[1, 2], "2", 2),
        (Number, "1", Number.ONE),
        (float, "1.5", 1.5),
        (float, "-2e3", -2000.0),
        (float, "7", 7.0),
        (bool, "true", True),
        (bool, "false", False),
        (int, 3.0, 3),
        (int | None, -0.0, 0),
        (list[int], "[1, 2]", [1, 2]),
        (list[int], " [1]\n", [1]),
        (set[int], "[1]", {1}),
        (Row, "[1.0]", Row(1)),
        (dict[str, int], '{"a": 1.0}', {"a": 1}),
        (Keys, '{"x": 1}', {"x": 1}),
        (Data, '{"x": 1.0, "y": [2.0]}', Data(1, [2])),
        (dict[str, Any], '{"x": 1.0}', {"x": 1.0}),
        (tuple[int, float], [1.0, 2.0], (1, 2.0)),
        (list[int] | bool, [1.0], [1]),
    ],
)
def test_the_table_says_what_a_value_stands_for(annotation: Any, value: Any, result: Any) -> None:
    found = coerce(annotation, value)

    assert found == result
    assert type(found) is type(result)
    assert msgspec.json.encode(found) == msgspec.json.encode(result)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, "5.0"), (int, "1e3"), (int, "0x10"), (int, "1_000"), (int, "007"), (int, "+5"), (int, " 5"), (int, ""),
        (int, "٣"), (int, "true"), (int, True), (int, 1.5), (int, 1e300), (int, None), (int, "5\n"),
        (float, "NaN"), (float, "inf"), (float, "Infinity"), (float, "1e999"), (float, "1."), (float, ".5"),
        (bool, "True"), (bool, "yes"), (bool, "1"), (bool, 1), (bool, "null"),
        (str, 5), (str, True), (None, "null"), (Optional[int], "null"), (Optional[int], ""),
        (list[int], '{"a":1}'), (list[int], "1,2"), (list[int], "5"), (list[int], "[1"), (list[int], {"a": 1}),
        (dict[str, int], "[1]"), (datetime.datetime, 5), (datetime.date, "5"), (Number, "ONE"), (Literal["1"], 1),
        (list[int], "[" * 100_000),
    ],
)  # fmt: skip
def test_nothing_else_is_coerced(annotation: Any, value: Any) -> None:
    with pytest.raises(ArgumentErrors):
        coerce(annotation, value)


def test_text_stays_text_where_text_is_wanted() -> None:
    assert coerce(str, '{"a":1}') == '{"a":1}'
