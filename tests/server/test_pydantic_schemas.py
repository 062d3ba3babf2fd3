"""Which of pydantic's classes take other members than those that their schema shows."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, Optional

import pydantic
import pytest
import typing_extensions as te

from modelwire.errors import ToolError
from tests.server.kinds import signature_of


class Plain(pydantic.BaseModel):
    size: Optional[int] = None


class Heir(Plain):
    name: str = ""


class Ignoring(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="ignore")

    size: int = 1


class Keeping(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")

    size: int = 1


class Forbidding(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    size: int = 1


class ByName(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(populate_by_name=True)

    size: int = pydantic.Field(1, alias="theSize")


class Choosing(pydantic.BaseModel):
    size: int = pydantic.Field(1, validation_alias=pydantic.AliasChoices("size", "length"))


class Upgrading(pydantic.BaseModel):
    size: int = 1

    @pydantic.model_validator(mode="before")
    @classmethod
    def upgrade(cls, data: Any) -> Any:
        return {"size": data["length"]} if "length" in data else data


class Computing(pydantic.BaseModel):
    size: int = 1

    @pydantic.computed_field
    @property
    def double(self) -> int:
        return self.size * 2


class Making(pydantic.BaseModel):
    size: int = 1

    def __init__(self, length: int | None = None, **more: Any) -> None:
        super().__init__(**(more if length is None else {"size": length}))


@pydantic.dataclasses.dataclass
class Checked:
    size: int = 1


@dataclasses.dataclass
class Standard:
    size: int = 1


class Keys(te.TypedDict, total=False):
    size: int


class Holder(pydantic.BaseModel):
    inner: Optional[Plain] = None
    row: list[Standard] = []
    keys: dict[str, Keys] = {}


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]
    name: str = ""


class Owner(pydantic.BaseModel):
    pet: Cat | Dog = pydantic.Field(discriminator="kind")


def bind(annotation: Any, value: Any) -> Any:
    import json

    args, _ = signature_of(annotation).bind(json.dumps({"v": value}).encode())
    return args[0]


def problems(annotation: Any, value: Any) -> list[str]:
    with pytest.raises(ToolError) as refused:
        bind(annotation, value)
    return refused.value.problems  # pyright: ignore


@pytest.mark.parametrize("annotation", [Plain, Heir, Forbidding, Checked, Optional[Plain], Plain | int])
def test_a_member_that_a_class_does_not_know_is_refused(annotation: Any) -> None:
    assert problems(annotation, {"sise": 3}) == ["v.sise: unknown member; did you mean size?"]


@pytest.mark.parametrize(
    ("annotation", "value", "told"),
    [
        (Holder, {"inner": {"sise": 1}}, ["v.inner.sise: unknown member; did you mean size?"]),
        (Holder, {"row": [{}, {"sise": 1}]}, ["v.row[1].sise: unknown member; did you mean size?"]),
        (Holder, {"keys": {"a": {"sise": 1}}}, ["v.keys.a.sise: unknown member; did you mean size?"]),
        (list[Plain], [{"sise": 1}], ["v[0].sise: unknown member; did you mean size?"]),
        (Owner, {"pet": {"kind": "dog", "lives": 1}}, ["v.pet.lives: unknown member"]),
    ],
)
def test_members_are_refused_at_every_level(annotation: Any, value: Any, told: list[str]) -> None:
    assert problems(annotation, value) == told


@pytest.mark.parametrize("annotation", [Plain, Heir, Forbidding, Checked])
def test_the_schema_of_a_parameter_says_so_and_that_of_a_result_only_where_the_class_does(annotation: Any) -> None:
    signature = signature_of(annotation)

    assert signature.input_schema["properties"]["v"]["additionalProperties"] is False
    assert ("additionalProperties" in (signature.output_schema or {})) == (annotation is Forbidding)


@pytest.mark.parametrize(
    ("annotation", "value", "size"),
    [
        (Ignoring, {"size": 2, "more": 1}, 2),
        (Keeping, {"size": 2, "more": 1}, 2),
        (ByName, {"size": 2}, 2),
        (ByName, {"theSize": 2}, 2),
        (Choosing, {"length": 2}, 2),
        (Upgrading, {"length": 2}, 2),
        (Computing, {"size": 2, "double": 4}, 2),
        (Making, {"length": 2}, 2),
    ],
)
def test_a_class_that_takes_other_members_takes_them_still(annotation: Any, value: Any, size: int) -> None:
    assert bind(annotation, value).size == size
    assert signature_of(annotation).input_schema["properties"]["v"].get("additionalProperties") is not False


def test_members_that_a_class_keeps_are_kept() -> None:
    assert bind(Keeping, {"more": [1]}).model_extra == {"more": [1]}
