"""Whatever the types: a value goes through schema, JSON, function and result unchanged, and other JSON is refused.

Types are drawn at random and put together from all kinds; each brings a way to draw its values. Where a union could
take a value for more than one member, the one written first is the one that is drawn for it.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import json
import pathlib
import typing
import uuid
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import annotated_types as at
import attrs
import jsonschema_rs
import msgspec
import pydantic
import pytest
import typing_extensions as te
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from modelwire.errors import RpcError
from modelwire.server.arguments import ArgumentErrors
from modelwire.server.signature import Signature, compile_signature
from tests.server.kinds import Colour, Level, Mixed, Mode

Kind = tuple[Any, st.SearchStrategy[Any]]

words = st.text("abcdefgh ÜÖ✓{}[]\"'\\", max_size=6)
plain_words = st.text("abcdefgh", min_size=1, max_size=6)
numbers = st.floats(allow_nan=False, allow_infinity=False, width=32)
zoned = st.datetimes(datetime.datetime(1900, 1, 1), timezones=st.just(datetime.UTC))
money = st.decimals(-1000, 1000, places=2)

SCALARS: list[Kind] = [
    (int, st.integers()),
    (float, numbers),
    (str, words),
    (bool, st.booleans()),
    (None, st.none()),
    (Colour, st.sampled_from(Colour)),
    (Mixed, st.sampled_from(Mixed)),
    (Level, st.sampled_from(Level)),
    (Mode, st.sampled_from(Mode)),
    (Literal["a", 1, True, None], st.sampled_from(["a", 1, True, None])),
    (uuid.UUID, st.uuids()),
    (datetime.datetime, zoned),
    (datetime.date, st.dates()),
    (datetime.timedelta, st.timedeltas(datetime.timedelta(-99), datetime.timedelta(99))),
    (decimal.Decimal, money),
    (bytes, st.binary(max_size=6)),
    (pathlib.PurePosixPath, plain_words.map(pathlib.PurePosixPath)),
    (Annotated[int, at.Interval(ge=0, lt=10)], st.integers(0, 9)),
    (Annotated[int, at.Predicate(lambda value: value % 2 == 0)], st.integers().map(lambda value: value * 2)),
    (Annotated[str, pydantic.Field(max_length=3)], st.text("abc", max_size=3)),
    (Annotated[decimal.Decimal, at.Ge(0)], st.decimals(0, 99, places=1)),
]


def fields(draw: Any, kinds: st.SearchStrategy[Kind]) -> list[tuple[str, Kind]]:
    names = draw(st.lists(st.sampled_from(["a", "b", "c", "copy", "json"]), min_size=1, max_size=3, unique=True))
    return [(name, draw(kinds)) for name in names]


def instances(cls: Any, members: list[tuple[str, Kind]]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({name: values for name, (_, values) in members}).map(lambda given: cls(**given))


@st.composite
def classes(draw: Any, kinds: st.SearchStrategy[Kind]) -> Kind:
    members = fields(draw, kinds)
    hints = {name: hint for name, (hint, _) in members}
    make = draw(st.sampled_from(["dataclass", "tuple", "struct", "attrs", "dict", "partial", "model"]))
    if make == "dict":
        cls: Any = TypedDict("Dict", hints)  # pyright: ignore
    elif make == "partial":
        cls = te.TypedDict("Partial", hints, total=False)  # pyright: ignore
        chosen = st.fixed_dictionaries({}, optional={name: values for name, (_, values) in members})
        return cls, chosen
    elif make == "tuple":
        cls = NamedTuple("Tuple", list(hints.items()))  # pyright: ignore
    elif make == "struct":
        cls = msgspec.defstruct("Struct", list(hints.items()))
    elif make == "attrs":
        cls = attrs.make_class("Attrs", {name: attrs.field(type=hint) for name, hint in hints.items()})
    elif make == "model":
        assume(not {"copy", "json"} & set(hints) and all(pydantic_takes(hint) for hint in hints.values()))
        cls = pydantic.create_model("Model", **{name: (hint, ...) for name, hint in hints.items()})
    else:
        cls = dataclasses.make_dataclass("Data", list(hints.items()))
    return cls, instances(cls, members)


def pydantic_takes(hint: Any) -> bool:
    return hint in (int, float, str, bool, uuid.UUID, Colour, datetime.date, decimal.Decimal)


CONTAINERS: list[Callable[[Any, st.SearchStrategy[Any]], Kind]] = [
    lambda hint, values: (list[hint], st.lists(values, max_size=3)),
    lambda hint, values: (collections.deque[hint], st.lists(values, max_size=3).map(collections.deque)),
    lambda hint, values: (tuple[hint, ...], st.lists(values, max_size=3).map(tuple)),
    lambda hint, values: (dict[str, hint], st.dictionaries(words, values, max_size=3)),
    lambda hint, values: (dict[int, hint], st.dictionaries(st.integers(), values, max_size=3)),
    lambda hint, values: (Annotated[list[hint], at.MaxLen(2)], st.lists(values, max_size=2)),
    lambda hint, values: (typing.Optional[hint], st.none() | values),
]


def containers(kinds: st.SearchStrategy[Kind]) -> st.SearchStrategy[Kind]:
    pairs = st.builds(lambda one, other: (tuple[one[0], other[0]], st.tuples(one[1], other[1])), kinds, kinds)
    return st.builds(lambda make, kind: make(*kind), st.sampled_from(CONTAINERS), kinds) | pairs


@dataclasses.dataclass
class DataTree:
    label: str
    children: list[DataTree] = dataclasses.field(default_factory=list["DataTree"])


@attrs.define
class AttrsTree:
    label: str = attrs.field(validator=attrs.validators.max_len(6))
    children: list[AttrsTree] = attrs.field(factory=list)


class ModelTree(pydantic.BaseModel):
    label: str = pydantic.Field(alias="from", max_length=6)
    children: list[ModelTree] = []
    model_config = pydantic.ConfigDict(populate_by_name=True)


class TupleTree(NamedTuple):
    label: str
    children: list[TupleTree] = []  # noqa: RUF012


class DictTree(TypedDict):
    label: str
    children: te.NotRequired[list[DictTree]]


class StructTree(msgspec.Struct):
    label: str
    children: list[StructTree] = []


class Chain(NamedTuple):
    value: int
    rest: Chain | None = None


Nested = te.TypeAliasType("Nested", "list[Nested] | dict[str, Nested] | int")


def trees(cls: Any) -> Kind:
    values = st.recursive(
        plain_words.map(lambda label: cls(label=label)),
        lambda inner: st.builds(lambda label, found: cls(label=label, children=found), plain_words, st.lists(inner)),
        max_leaves=4,
    )
    return cls, values


RECURSIVE: list[Kind] = [
    *map(trees, (DataTree, AttrsTree, ModelTree, TupleTree, DictTree, StructTree)),
    (Chain, st.recursive(st.builds(Chain, st.integers()), lambda inner: st.builds(Chain, st.integers(), inner))),
    (Nested, st.recursive(st.integers(), lambda inner: st.lists(inner) | st.dictionaries(words, inner), max_leaves=4)),
]

UNIONS: list[Kind] = [
    (uuid.UUID | str, st.uuids() | plain_words),
    (Colour | str, st.sampled_from(Colour) | plain_words.filter(lambda word: word not in ("red", "blue"))),
    (datetime.datetime | str, zoned | plain_words),
    (list[int] | list[str], st.lists(st.integers(), min_size=1) | st.lists(words, min_size=1)),
    (list[uuid.UUID] | dict[str, pathlib.PurePosixPath] | int,
     st.lists(st.uuids()) | st.dictionaries(words, plain_words.map(pathlib.PurePosixPath)) | st.integers()),
    (int | float | pathlib.PurePosixPath | None,
     st.integers() | numbers | plain_words.map(pathlib.PurePosixPath) | st.none()),
]  # fmt: skip


def put_together(leaves: list[Kind]) -> st.SearchStrategy[Kind]:
    return st.recursive(st.sampled_from(leaves), lambda inner: containers(inner) | classes(inner), max_leaves=4)


kinds = put_together(SCALARS + UNIONS + RECURSIVE)


def compiled(hints: dict[str, Any]) -> tuple[Signature, Any]:
    scope: dict[str, Any] = {}
    exec(f"def function({', '.join(hints)}): return [{', '.join(hints)}]", scope)
    function = scope["function"]
    function.__annotations__ = {**hints, "return": tuple[tuple(hints.values())]}
    return compile_signature(function, name="f"), function


QUIET = settings(
    deadline=None, max_examples=120, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


@QUIET
@given(st.data())
def test_values_go_all_the_way_and_come_back_unchanged(data: st.DataObject) -> None:
    members = data.draw(st.lists(kinds, min_size=1, max_size=2))
    signature, function = compiled({f"p{index}": hint for index, (hint, _) in enumerate(members)})
    values = [data.draw(drawn) for _, drawn in members]

    written = signature.check_result(tuple(values))
    arguments = {f"p{index}": plain for index, plain in enumerate(json.loads(written))}
    validator = jsonschema_rs.Draft202012Validator(signature.input_schema)
    validator.validate(json.loads(json.dumps(arguments)))
    jsonschema_rs.Draft202012Validator(signature.output_schema).validate(json.loads(written))
    args, kwargs = signature.bind(json.dumps(arguments).encode())
    returned = function(*args, **kwargs)

    assert returned == values
    assert [type(value) for value in returned] == [type(value) for value in values]
    assert json.loads(signature.check_result(tuple(returned))) == json.loads(written)


@pytest.mark.parametrize(("hint", "drawn"), RECURSIVE, ids=lambda value: getattr(value, "__name__", "values"))
def test_every_recursive_type_goes_all_the_way(hint: Any, drawn: st.SearchStrategy[Any]) -> None:
    signature, function = compiled({"p0": hint})

    @settings(QUIET, max_examples=15)
    @given(drawn)
    def go(value: Any) -> None:
        written = json.loads(signature.check_result((value,)))
        jsonschema_rs.Draft202012Validator(signature.output_schema).validate(written)
        args, _ = signature.bind(json.dumps({"p0": written[0]}).encode())
        assert function(*args) == [value]

    go()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c", "p0"]), inner),
    max_leaves=6,
)


@QUIET
@given(st.data())
def test_any_json_is_bound_or_refused_in_words(data: st.DataObject) -> None:
    hint, _ = data.draw(kinds)
    signature, _ = compiled({"p0": hint})
    value = data.draw(JSON)
    arguments = json.dumps(value if data.draw(st.booleans()) else {"p0": value}).encode()
    refused: Exception | None = None
    try:
        args, _ = signature.bind(arguments)
        signature.check_result((args[0],))  # what was taken is a value of the type
    except (ArgumentErrors, RpcError) as error:
        refused = error

    assert isinstance(refused, RpcError) == (not isinstance(json.loads(arguments), dict | type(None)))
    for word in ("`", "msgspec", "pydantic", "Input should", "object at 0x"):
        assert word not in str(refused)


# A number may be a decimal, whose schema asks for text; nothing is lost by that.
exact_kinds = put_together([kind for kind in SCALARS + UNIONS + RECURSIVE if "Decimal" not in str(kind[0])])


@st.composite
def altered(draw: Any, value: Any) -> Any:
    """A value with something in it replaced, left out or added."""
    if draw(st.integers(0, 2)) == 0 or not isinstance(value, dict | list):
        return draw(JSON)
    if isinstance(value, list):
        index = draw(st.integers(0, len(value)))
        changed = draw(altered(value[index])) if index < len(value) else draw(JSON)
        return [*value[:index], changed, *value[index + 1 :]]
    name = draw(st.sampled_from([*value, "more"]))
    rest = {key: item for key, item in value.items() if key != name}
    return rest if draw(st.booleans()) else {**rest, name: draw(altered(value.get(name)))}


@QUIET
@given(st.data())
def test_json_outside_the_schema_is_refused_and_every_fault_has_its_place(data: st.DataObject) -> None:
    hint, drawn = data.draw(exact_kinds)
    signature, _ = compiled({"p0": hint})
    plain = json.loads(signature.check_result((data.draw(drawn),)))[0]
    value = data.draw(altered(plain))
    assume(not isinstance(value, str))  # an argument may be text that holds a number
    assume(not jsonschema_rs.Draft202012Validator(signature.input_schema).is_valid({"p0": value}))

    with pytest.raises(ArgumentErrors) as caught:
        signature.bind(json.dumps({"p0": value}).encode())

    assert caught.value.problems
    for problem in caught.value.problems:
        assert problem.startswith(("p0", "a member name of p0"))
        assert len(problem) < 1000
