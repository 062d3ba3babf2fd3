"""One annotation of each kind that a function may have, with a value of it and the JSON of that value.

``python -m tests.server.kinds`` writes ``snapshots.json`` anew, to be read before it is committed.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import ipaddress
import json
import pathlib
import typing
import uuid
from collections import abc
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, Optional, Required, TypedDict, TypeVar

import annotated_types as at
import attrs
import msgspec
import pydantic
import typing_extensions as te

from modelwire.server.annotations import Name
from modelwire.server.signature import Signature, compile_signature

T = TypeVar("T")
SNAPSHOTS = pathlib.Path(__file__).with_name("snapshots.json")


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Mixed(enum.Enum):
    """Text or a number."""

    ONE = 1
    B = "b"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mode(enum.StrEnum):
    FAST = "fast"


class Bits(enum.Flag):
    A = 1


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


@dataclasses.dataclass
class Place:
    """Somewhere."""

    name: str


@dataclasses.dataclass
class Order:
    count: Annotated[int, at.Gt(0)]
    note: Annotated[str, pydantic.Field(max_length=3, description="A word.")] = ""
    tags: list[Annotated[str, at.Len(1, 8)]] = dataclasses.field(default_factory=list)
    sender: Annotated[str, Name("from")] = "me"


@dataclasses.dataclass
class Tree:
    value: uuid.UUID | str
    children: list[Tree] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Page(Generic[T]):
    items: list[T]
    offset: Annotated[int, at.Ge(0)] = 0


@dataclasses.dataclass
class Paths(Page[pathlib.Path]):
    total: int = 0


class Row(NamedTuple):
    a: int
    b: str = "x"


class Keys(te.TypedDict):
    a: int
    b: te.NotRequired[Annotated[int, at.Ge(1)]]


class Loose(TypedDict, total=False):
    path: Required[pathlib.Path]
    n: int


class TypedPage(TypedDict, Generic[T]):
    items: list[T]
    path: pathlib.Path


class Cat(msgspec.Struct, rename="camel", tag="cat"):
    cat_id: uuid.UUID | str


class Dog(msgspec.Struct, tag="dog", forbid_unknown_fields=True):
    dog_name: Annotated[str, at.Len(1, 8)]


class StructPage(msgspec.Struct, Generic[T]):
    items: list[T]


@attrs.define
class Account:
    balance: int = attrs.field(validator=attrs.validators.ge(0))
    _owner: str = attrs.field(default="me", converter=str)
    labels: list[str] = attrs.field(factory=list, alias="tags")


class Model(pydantic.BaseModel):
    sender: int = pydantic.Field(alias="from", ge=0)
    children: list[Model] = []
    note: int | None = None

    @pydantic.computed_field
    @property
    def double(self) -> int:
        return self.sender * 2

    @pydantic.field_validator("note")
    @classmethod
    def lucky(cls, note: int | None) -> int | None:
        if note == 13:
            raise ValueError("13 is unlucky")
        return note


class Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    name: str


class ModelPage(pydantic.BaseModel, Generic[T]):
    items: list[T]


class Numbers(pydantic.RootModel[list[int]]):
    pass


@pydantic.dataclasses.dataclass
class Checked:
    a: Annotated[int, pydantic.Field(ge=1)]


def even(value: int) -> bool:
    return value % 2 == 0


Json = te.TypeAliasType("Json", "list[Json] | dict[str, Json] | int | str | None")
Ids = te.TypeAliasType("Ids", "list[uuid.UUID | str]")
Positive = NewType("Positive", Annotated[int, at.Gt(0)])
UUID = uuid.UUID("3f2b8a52-6c1d-4e8e-9d2a-0c5b7f9e1a64")
MORNING = datetime.datetime(2026, 1, 31, 9, 30, tzinfo=datetime.UTC)

KINDS: dict[str, tuple[Any, Any, Any]] = {
    "integer": (int, 5, 5),
    "number": (float, 1.5, 1.5),
    "text": (str, "x", "x"),
    "boolean": (bool, True, True),
    "anything": (Any, {"a": [None]}, {"a": [None]}),
    "optional": (Optional[int], None, None),
    "literal": (Literal["a", 1], "a", "a"),
    "literal of everything": (Literal[True, None, "a", 2], True, True),
    "literal of members": (Literal[Colour.RED], Colour.RED, "red"),
    "enum": (Colour, Colour.RED, "red"),
    "enum of text and numbers": (Mixed, Mixed.ONE, 1),
    "integer enum": (Level, Level.HIGH, 2),
    "text enum": (Mode, Mode.FAST, "fast"),
    "uuid": (uuid.UUID, UUID, str(UUID)),
    "uuid or text": (uuid.UUID | str, UUID, str(UUID)),
    "enum or text": (Colour | str, "green", "green"),
    "instant or text": (datetime.datetime | str, MORNING, "2026-01-31T09:30:00Z"),
    "date": (datetime.date, MORNING.date(), "2026-01-31"),
    "time": (datetime.time, datetime.time(9, 30), "09:30:00"),
    "duration": (datetime.timedelta, datetime.timedelta(hours=1), "PT3600S"),
    "money": (decimal.Decimal, decimal.Decimal("1.50"), "1.50"),
    "bytes": (bytes, b"hi", "aGk="),
    "path": (pathlib.Path, pathlib.Path("/x"), "/x"),
    "address": (ipaddress.IPv4Address, ipaddress.IPv4Address("192.0.2.1"), "192.0.2.1"),
    "two dataclasses": (Point | Place, Place("a"), {"name": "a"}),
    "two dataclasses or nothing": (Point | Place | None, None, None),
    "map of unions": (dict[str, Point | Place], {"k": Point(1)}, {"k": {"x": 1, "y": 0}}),
    "two lists": (list[int] | list[str], ["a"], ["a"]),
    "list of unions": (list[uuid.UUID | int], [UUID, 5], [str(UUID), 5]),
    "dataclass": (Point, Point(1, 2), {"x": 1, "y": 2}),
    "constrained dataclass": (Order, Order(1, "a", ["b"]), {"count": 1, "note": "a", "tags": ["b"], "from": "me"}),
    "recursive dataclass": (
        Tree,
        Tree("a", [Tree(UUID)]),
        {"value": "a", "children": [{"value": str(UUID), "children": []}]},
    ),
    "generic dataclass": (Page[int], Page([1], 2), {"items": [1], "offset": 2}),
    "heir of a generic": (Paths, Paths([pathlib.Path("a")]), {"items": ["a"], "offset": 0, "total": 0}),
    "named tuple": (Row, Row(1), {"a": 1, "b": "x"}),
    "list of named tuples": (list[Row], [Row(1, "y")], [{"a": 1, "b": "y"}]),
    "typed dict": (Keys, {"a": 1}, {"a": 1}),
    "loose typed dict": (Loose, {"path": pathlib.Path("a")}, {"path": "a"}),
    "generic typed dict": (TypedPage[int], {"items": [1], "path": pathlib.Path("a")}, {"items": [1], "path": "a"}),
    "struct": (Cat, Cat("x"), {"type": "cat", "catId": "x"}),
    "tagged structs": (Cat | Dog, Dog("rex"), {"type": "dog", "dog_name": "rex"}),
    "generic struct": (StructPage[uuid.UUID | str], StructPage([UUID]), {"items": [str(UUID)]}),
    "attrs class": (Account, Account(1, "you", ["a"]), {"balance": 1, "owner": "you", "tags": ["a"]}),
    "model": (
        Model,
        Model.model_validate({"from": 1}),
        {"from": 1, "children": [], "note": None, "double": 2},
    ),
    "two models": (Model | Strict, Strict(name="x"), {"name": "x"}),
    "generic model": (ModelPage[int], ModelPage[int](items=[1]), {"items": [1]}),
    "root model": (Numbers, Numbers([1]), [1]),
    "pydantic dataclass": (Checked, Checked(1), {"a": 1}),
    "url": (pydantic.AnyUrl, pydantic.AnyUrl("http://a/"), "http://a/"),
    "stripped text": (Annotated[str, pydantic.StringConstraints(strip_whitespace=True, min_length=2)], "ab", "ab"),
    "new type": (Positive, 1, 1),
    "alias": (Ids, ["a"], ["a"]),
    "recursive alias": (Json, [1, {"a": [None]}], [1, {"a": [None]}]),
    "interval": (Annotated[int, at.Interval(ge=1, lt=8)], 1, 1),
    "field": (Annotated[int, pydantic.Field(ge=1, le=5, description="How many.", examples=[3])], 1, 1),
    "positive integer": (pydantic.PositiveInt, 1, 1),
    "predicate": (Annotated[int, at.Predicate(even)], 2, 2),
    "bounded or nothing": (Annotated[int | None, at.Ge(1)], 1, 1),
    "twice bounded": (Annotated[int, at.Gt(1), at.Gt(5)], 6, 6),
    "since a date": (Annotated[datetime.date, at.Ge(datetime.date(2026, 1, 1))], MORNING.date(), "2026-01-31"),
    "aware": (Annotated[datetime.datetime, at.Timezone(...)], MORNING, "2026-01-31T09:30:00Z"),
    "positive money": (Annotated[decimal.Decimal, at.Gt(0)], decimal.Decimal("1.5"), "1.5"),
    "short list": (Annotated[list[uuid.UUID | str], at.MaxLen(2)], ["a"], ["a"]),
    "full map": (Annotated[dict[str, pathlib.Path], at.MinLen(1)], {"a": pathlib.Path("b")}, {"a": "b"}),
    "sequence": (abc.Sequence[pathlib.Path], [pathlib.Path("a")], ["a"]),
    "iterable": (abc.Iterable[int], [1], [1]),
    "deque": (collections.deque[int], collections.deque([1]), [1]),
    "frozen set": (frozenset[pathlib.Path], frozenset({pathlib.Path("a")}), ["a"]),
    "row of paths": (tuple[pathlib.Path, ...], (pathlib.Path("a"),), ["a"]),
    "pair": (tuple[pathlib.Path, int], (pathlib.Path("a"), 1), ["a", 1]),
    "mapping": (abc.Mapping[str, pathlib.Path], {"a": pathlib.Path("b")}, {"a": "b"}),
    "default dict": (collections.defaultdict[str, list[int]], collections.defaultdict(list, a=[1]), {"a": [1]}),
    "map by number": (dict[int, pathlib.Path], {1: pathlib.Path("b")}, {"1": "b"}),
    "map by path": (dict[pathlib.Path, int], {pathlib.Path("a"): 1}, {"a": 1}),
}


def signature_of(annotation: Any, **options: Any) -> Signature:
    def function(v): ...

    function.__annotations__ = {"v": annotation, "return": annotation}
    return compile_signature(function, name="f", structured=None if annotation is Any else True, **options)


def schemas_of(annotation: Any) -> dict[str, Any]:
    signature = signature_of(annotation)
    given = {key: value for key, value in signature.input_schema.items() if key in ("$defs",)}
    return {"input": signature.input_schema["properties"]["v"], **given, "output": signature.output_schema}


if __name__ == "__main__":
    found = {name: schemas_of(annotation) for name, (annotation, *_) in KINDS.items()}
    lines = [f"{json.dumps(name)}: {json.dumps(schemas)}" for name, schemas in found.items()]
    SNAPSHOTS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    typing.cast(Any, print)(f"{len(found)} kinds")
