"""Patterns of messages: what fits, and what is said of what does not."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelwire.testing import Absent, Exactly, differences

JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(JSON)
def test_every_value_fits_itself_and_anything(value: Any) -> None:
    assert differences(value, value) == []
    assert differences(value, ...) == []


@pytest.mark.parametrize(
    ("value", "pattern"),
    [
        ({"a": 1, "b": 2}, {"a": 1}),
        ({"a": {"b": {"c": 1}, "d": 2}}, {"a": {"b": {"c": int}}}),
        ({}, {"a": Absent}),
        ({"a": 1}, Exactly({"a": ...})),
        ({"a": 1, "b": 2}, {"a": ..., "b": lambda value: value > 1}),
        ([1, 2, 3], [1, ...]),
        ([1], [1, ...]),
        ([], [...]),
        ([{"a": 1, "b": 2}], [{"a": 1}]),
        ("error at line 3", re.compile(r"line \d")),
        (1, 1.0),
        (True, True),
        (True, bool),
        (1.5, float),
        (None, None),
        (None, object),
        (True, object),
    ],
)
def test_what_fits(value: Any, pattern: Any) -> None:
    assert differences(value, pattern) == []


@pytest.mark.parametrize(
    ("value", "pattern", "said"),
    [
        (1, 2, ["value: expected 2, got 1"]),
        (1, True, ["value: expected true, got 1"]),
        (True, 1, ["value: expected 1, got true"]),
        (True, int, ["value: expected a int, got true"]),
        ("1", int, ['value: expected a int, got "1"']),
        (None, {"a": 1}, ["value: expected an object, got null"]),
        ([1], {"a": 1}, ["value: expected an object, got [1]"]),
        ({"a": 1}, [1], ['value: expected a list, got {"a": 1}']),
        ({}, {"a": {"b": 1}}, ["a: missing"]),
        ({"a": {}}, {"a": {"b": ...}}, ["a.b: missing"]),
        ({"a": {"b": "ü"}}, {"a": {"b": Absent}}, ['a.b: must not be there, got "ü"']),
        ({"a": 1, "b": 2, "c": 3}, Exactly({"a": 2}), [
            "a: expected 2, got 1", "b: not expected, got 2", "c: not expected, got 3",
        ]),
        ([1, 2], [1], ["value: expected 1 items, got 2: [1, 2]"]),
        ([], [1, ...], ["value: expected 1 or more items, got 0: []"]),
        ({"l": [{"a": 1}, {"a": 2}]}, {"l": [{"a": 1}, {"a": 3}]}, ["l[1].a: expected 3, got 2"]),
        ("abc", re.compile("x+"), ["value: expected a string with 'x+' in it, got \"abc\""]),
        (5, re.compile("5"), ["value: expected a string with '5' in it, got 5"]),
        ({"a": 5}, {"a": lambda value: value > 5}, ["a: expected what <lambda> takes, got 5"]),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told_where_what_and_instead_of_what(
    value: Any, pattern: Any, said: list[str] | None
) -> None:
    if said is None:  # a function that is given what it does not take raises what it raises
        with pytest.raises(TypeError):
            differences(value, pattern)
    else:
        assert differences(value, pattern) == said


def test_every_difference_is_told_at_once_and_long_values_are_cut() -> None:
    said = differences({"a": 1, "b": "x" * 1000}, {"a": 2, "b": "y", "c": 3})
    assert [line.partition(":")[0] for line in said] == ["a", "b", "c"]
    assert max(len(line) for line in said) < 300
    assert "(1002 characters)" in said[1]
