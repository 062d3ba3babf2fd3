"""How deep decoded JSON is, whatever its depth."""

from __future__ import annotations

from typing import Any

import pytest

from modelwire.server.json_values import depth, is_list, is_object, members_of


@pytest.mark.parametrize(
    ("value", "found"), [(1, 0), ("ab", 0), ([], 0), ([1], 1), ({"a": [1]}, 2), ([[], {"a": {"b": 1}}], 3)]
)
def test_depth_counts_the_levels_that_have_members(value: Any, found: int) -> None:
    assert depth(value, 9) == found


def test_depth_stops_where_it_is_told_to() -> None:
    value: Any = 1
    for _ in range(100_000):
        value = [value]

    assert depth(value, 5) == 6
    while is_list(value):  # taken apart by hand, or freeing it would overflow the stack
        value = value.pop()


def test_members_are_those_of_objects_and_lists() -> None:
    assert list(members_of({"a": 1})) == list(members_of([1])) == [1]
    assert list(members_of("ab")) == []
    assert is_object({})
    assert not is_object([])
