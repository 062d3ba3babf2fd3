"""Python values on their way to JSON."""

from __future__ import annotations

import collections
import dataclasses
import math
import pathlib
from typing import Any

import pydantic
import pytest

from modelwire.server.plain_values import not_finite, plain_form


@dataclasses.dataclass
class Measure:
    size: float


class Model(pydantic.BaseModel):
    size: float = pydantic.Field(alias="theSize")


def test_some_classes_have_a_plain_form_of_their_own() -> None:
    assert plain_form(pathlib.PurePosixPath("a")) == "a"
    assert plain_form(collections.deque([1])) == [1]
    assert plain_form(Model(theSize=1.5)) == {"theSize": 1.5}
    with pytest.raises(TypeError):
        plain_form(object())


@pytest.mark.parametrize(("kind", "value"), [(str, "a"), (int, 5), (float, 1.5)])
def test_what_inherits_from_a_value_of_json_is_that_value(kind: Any, value: Any) -> None:
    class Own(kind):
        def __repr__(self) -> str:
            return "its own"

        __str__ = __repr__

    assert plain_form(Own(value)) == value
    assert type(plain_form(Own(value))) is kind


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (math.nan, ("v", "nan")),
        ({"a": [1, math.inf]}, ("v.a[1]", "inf")),
        ([Measure(-math.inf)], ("v[0].size", "-inf")),
        ([1.5, None, "nan", Measure(0)], None),
    ],
)
def test_what_is_no_number_in_json_is_found(value: Any, place: Any) -> None:
    assert not_finite(value, "v") == place
