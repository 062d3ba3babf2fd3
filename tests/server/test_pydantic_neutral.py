"""What pydantic reads and writes alike has one schema, and it is the one that pydantic would have made of each."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import uuid
from collections.abc import Callable
from typing import Annotated, Any, Literal, Optional, Union

import pydantic
import pytest

from modelwire.server import pydantic_types
from modelwire.server.pydantic_neutral import written_as_read


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Place:
    """Where."""

    street: str
    number: int = 1


class Base(pydantic.BaseModel):
    """What all have."""

    id: uuid.UUID
    type: Literal["a", "b"] = "a"


class Rich(Base):
    model_config = pydantic.ConfigDict(frozen=True, title="Of many parts")

    place: Place
    name: Annotated[str, pydantic.Field(min_length=1, description="As it is called.", examples=["x"])]
    alias: int = pydantic.Field(3, alias="from", ge=0)
    colour: Colour = Colour.RED
    since: Optional[datetime.date] = None
    tags: list[str] = []
    more: dict[str, Union[int, list[float]]] = pydantic.Field(default_factory=dict)
    unique: set[int] = {2, 1}
    bytes_left: bool = True
    children: list[Rich] = []

    @pydantic.model_validator(mode="after")
    def checked(self) -> Rich:
        return self


@pydantic.dataclasses.dataclass
class Pair:
    left: Base
    right: Base


class Computed(pydantic.BaseModel):
    size: int

    @pydantic.computed_field
    def double(self) -> int:
        return 2 * self.size


class Written(pydantic.BaseModel):
    size: Annotated[int, pydantic.PlainSerializer(str)]


class Renamed(pydantic.BaseModel):
    size: int = pydantic.Field(1, serialization_alias="length")


class Excluded(pydantic.BaseModel):
    size: int
    secret: str = pydantic.Field("", exclude=True)


class Required(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(json_schema_serialization_defaults_required=True)

    size: int = 1


class Handmade(pydantic.BaseModel):
    size: int

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: Callable[[Any], Any]) -> Any:
        return {**handler(core), "description": handler.mode}  # pyright: ignore


class Extended(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(json_schema_extra=lambda schema: schema.update(title="x"))

    size: int


class Inside(pydantic.BaseModel):
    parts: list[Optional[Written]] = []


class Cleaned(pydantic.BaseModel):
    size: Annotated[int, pydantic.BeforeValidator(int, json_schema_input_type=str)]


def generated(annotation: Any, mode: str) -> dict[str, Any]:
    """The schema as pydantic makes it, without the titles."""
    found = pydantic.TypeAdapter[Any](annotation).json_schema(mode=mode, ref_template="#/$defs/{model}")  # pyright: ignore
    return pydantic_types._tidied(found, closed=False)  # pyright: ignore[reportPrivateUsage]


def core(annotation: Any) -> Any:
    return pydantic.TypeAdapter[Any](annotation).core_schema


@pytest.mark.parametrize("annotation", [Base, Rich, Pair, list[Rich], dict[str, Base], Optional[Base]])
def test_what_is_read_and_written_alike_has_pydantics_schema(annotation: Any) -> None:
    assert written_as_read(core(annotation))

    compiled = pydantic_types._Compiled(annotation)  # pyright: ignore[reportPrivateUsage]

    assert compiled.written == generated(annotation, "serialization")
    assert compiled.taken(False) == generated(annotation, "validation")
    assert list(compiled.written) == list(generated(annotation, "serialization"))


@pytest.mark.parametrize(
    "annotation",
    [Computed, Written, Renamed, Excluded, Required, Handmade, Extended, Inside, Cleaned, bytes, datetime.timedelta],
)
def test_what_may_differ_has_a_schema_for_each(annotation: Any) -> None:
    assert not written_as_read(core(annotation))

    compiled = pydantic_types._Compiled(annotation)  # pyright: ignore[reportPrivateUsage]

    assert compiled.written == generated(annotation, "serialization")
    assert compiled.taken(False) == generated(annotation, "validation")


def test_what_is_taken_is_closed_and_what_is_written_is_not() -> None:
    compiled = pydantic_types._Compiled(Rich)  # pyright: ignore[reportPrivateUsage]
    taken, written = compiled.taken(True), compiled.written

    assert [schema["additionalProperties"] for schema in (*taken["$defs"].values(),) if "properties" in schema] == [
        False,
        False,
    ]
    assert all("additionalProperties" not in schema for schema in written["$defs"].values())
