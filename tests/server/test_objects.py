"""Classes with fields: made by their own constructors, written under their names on the wire."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from typing import Annotated, Any, Generic, NamedTuple, NotRequired, Self, TypedDict, TypeVar

import annotated_types as at
import attrs
import msgspec
import pytest
import typing_extensions as te

from modelwire.errors import SignatureError, ToolError
from modelwire.server.annotations import Name
from modelwire.server.results import ResultError
from tests.server.kinds import Account, Cat, Keys, Loose, Order, Point, Row, signature_of

T = TypeVar("T")
U = TypeVar("U")
Counted = Annotated[int, at.Ge(0)]


@dataclasses.dataclass
class Made:
    path: pathlib.Path
    size: int = dataclasses.field(init=False, default=7)
    note: str = dataclasses.field(default="x", kw_only=True)

    def __post_init__(self) -> None:
        if not self.path.name:
            raise ValueError("the path needs a name")


@attrs.frozen
class Login:
    user: str
    password: str = attrs.field(validator=attrs.validators.max_len(3))


def split(value: str) -> list[str]:
    return value.split()


def lower(value):
    return value.lower()


@attrs.define
class Tagged:
    tags: list[str] = attrs.field(converter=split)
    word: str = attrs.field(converter=lower, default="a")


@dataclasses.dataclass
class Pair(Generic[T, U]):
    first: T
    second: Annotated[U, at.MinLen(1)]


@dataclasses.dataclass
class Swapped(Pair[U, T], Generic[T, U]):
    pass


class Base(TypedDict):
    path: pathlib.Path


class Derived(Base, total=False):
    count: Counted


class Open(msgspec.Struct, omit_defaults=True):
    path: pathlib.Path
    count: Counted | msgspec.UnsetType = msgspec.UNSET


class Plain(NamedTuple):
    sender: Annotated[str, Name("from")]


def bind(annotation: Any, value: Any) -> Any:
    args, _ = signature_of(annotation).bind(json.dumps({"v": value}).encode())
    return args[0]


def problems(annotation: Any, value: Any) -> list[str]:
    with pytest.raises(ToolError) as refused:
        bind(annotation, value)
    return refused.value.problems  # pyright: ignore


def schema(annotation: Any, name: str, where: str = "input") -> Any:
    signature = signature_of(annotation)
    return signature.input_schema["$defs"][name] if where == "input" else signature.output_schema


def test_a_class_checks_itself() -> None:
    assert bind(Made, {"path": "a", "note": "y"}) == Made(pathlib.Path("a"), note="y")
    assert problems(Made, {"path": ""}) == ["v: the path needs a name"]
    assert problems(Account, {"balance": -1}) == ["v.balance: expected an integer >= 0, got the number -1"]


@dataclasses.dataclass
class Doubled:
    size: int
    note: str = "from here"

    def __init__(self, size: int) -> None:
        if size < 0:
            raise ValueError("no size is below 0")
        self.size = 2 * size


class Heir(Point):
    def __init__(self, **members: int) -> None:
        super().__init__(**{name: -value for name, value in members.items()})


@dataclasses.dataclass
class Renamed:
    size: int

    def __init__(self, width: int) -> None:
        self.size = width


@dataclasses.dataclass
class Linked:
    name: str
    next: Self | None = None
    others: list[te.Annotated[te.Self, "more"]] = dataclasses.field(default_factory=list)


class LinkedHeir(Linked):
    pass


class LinkedStruct(msgspec.Struct):
    next: Self | None = None


@pytest.mark.parametrize("cls", [Linked, LinkedHeir])
def test_a_class_may_hold_its_own(cls: type[Linked]) -> None:
    value = bind(cls, {"name": "a", "next": {"name": "b"}, "others": [{"name": "c"}]})
    assert value == cls("a", cls("b"), [cls("c")])
    assert type(value.next) is cls
    assert problems(cls, {"name": "a", "next": {}}) == ["v.next.name: missing; expected text"]
    assert bind(LinkedStruct, {"next": {}}) == LinkedStruct(LinkedStruct())


def test_a_dataclass_is_made_by_the_init_that_was_written_for_it() -> None:
    assert bind(Doubled, {"size": 2}).size == 4
    assert problems(Doubled, {"size": -1}) == ["v: no size is below 0"]
    assert bind(Doubled, {"size": 1, "note": "what a caller may not set"}).note == "from here"
    assert bind(Heir, {"x": 1, "y": 2}) == Heir(x=1, y=2)


def test_a_dataclass_whose_init_takes_what_is_no_field_is_refused() -> None:
    with pytest.raises(SignatureError, match="parameter 'v': Renamed is made with 'width', which is no field"):
        signature_of(Renamed)


def test_fields_that_a_constructor_does_not_take_are_in_results_only() -> None:
    assert list(schema(Made, "Made")["properties"]) == ["path", "note"]
    assert list(schema(Made, "Made", "output")["properties"]) == ["path", "size", "note"]
    assert json.loads(signature_of(Made).check_result(Made(pathlib.Path("a")))) == {"path": "a", "size": 7, "note": "x"}


def test_attrs_aliases_and_converters_are_used() -> None:
    assert bind(Account, {"balance": 1, "owner": "a", "tags": ["x"]}) == Account(1, "a", ["x"])
    assert bind(Tagged, {"tags": "a b", "word": "ABC"}) == Tagged("a b", "abc")
    assert schema(Tagged, "Tagged")["properties"]["tags"] == {"type": "string"}
    assert schema(Tagged, "Tagged")["properties"]["word"] == {"type": "string", "default": "a"}
    assert schema(Tagged, "Tagged", "output")["properties"]["tags"] == {"type": "array", "items": {"type": "string"}}


@dataclasses.dataclass
class Vault:
    login: Login
    path: pathlib.Path

    def __post_init__(self) -> None:
        raise ValueError(f"no such login: {self.login}")


def test_what_a_class_says_of_a_secret_is_not_repeated() -> None:
    assert problems(Vault, {"login": {"user": "u", "password": "pin"}, "path": "a"}) == [
        "v: its members do not go together"
    ]
    assert problems(Login, {"user": "u", "password": "hunter2"}) == [
        "v.password: expected text of at most 3 characters, got text (not shown)"
    ]
    assert problems(Login, {"user": "u", "password": 7777}) == [
        "v.password: expected text of at most 3 characters, got a number (not shown)"
    ]


@pytest.mark.parametrize(
    ("annotation", "value", "told"),
    [
        (Order, {}, ["v.count: missing; expected an integer > 0"]),
        (Order, {"cuont": 1}, ["v.cuont: unknown member; did you mean count?",
                               "v.count: missing; expected an integer > 0"]),
        (Order, {"count": 0, "note": "long"},
         ["v.count: expected an integer > 0, got the number 0",
          'v.note: expected text of at most 3 characters, got "long"']),
        (Row, ["a"], ["v: expected an object with a, got a list of 1 items"]),
        (Row, {"b": "x"}, ["v.a: missing; expected an integer"]),
        (Keys, {"a": 1, "b": 0}, ["v.b: expected an integer >= 1, got the number 0"]),
        (Loose, {}, ["v.path: missing; expected a path as text"]),
        (Loose, {"path": "a", "n": "b"}, ['v.n: expected an integer, got "b"']),
        (Cat, {"type": "dog", "catId": "a"}, ['v.type: expected "cat", got "dog"']),
        (Pair[int, str], {"first": "a", "second": ""},
         ['v.first: expected an integer, got "a"', 'v.second: expected text of at least 1 characters, got ""']),
        (Swapped[str, int], {"first": "a", "second": ""},
         ['v.first: expected an integer, got "a"', 'v.second: expected text of at least 1 characters, got ""']),
    ],
)  # fmt: skip
def test_all_faults_are_told_where_they_are(annotation: Any, value: Any, told: list[str]) -> None:
    assert problems(annotation, value) == told


def test_json_in_text_and_whole_floats_are_coerced() -> None:
    assert bind(Order, '{"count": 2.0}') == Order(2)
    assert bind(list[Row], '[{"a": 2.0}]') == [Row(2)]


def test_inherited_typed_dicts_keep_what_is_required() -> None:
    assert bind(Derived, {"path": "a"}) == {"path": pathlib.Path("a")}
    assert schema(Derived, "Derived")["required"] == ["path"]
    assert problems(Derived, {"path": "a", "count": -1}) == ["v.count: expected an integer >= 0, got the number -1"]


def test_qualifiers_of_typing_extensions_are_understood() -> None:
    keys: Any = te.TypedDict("keys", {"a": te.ReadOnly[pathlib.Path], "b": te.NotRequired[int], "in": NotRequired[int]})

    assert schema(keys, "keys")["required"] == ["a"]
    assert bind(keys, {"a": "x", "in": 1}) == {"a": pathlib.Path("x"), "in": 1}


def test_unset_fields_of_a_struct_are_left_out() -> None:
    assert signature_of(Open).check_result(Open(pathlib.Path("a"))) == b'{"path":"a"}'
    assert bind(Open, {"path": "a", "count": 1}) == Open(pathlib.Path("a"), 1)
    assert schema(Open, "Open")["properties"]["count"] == {"type": "integer", "minimum": 0}


class Array(msgspec.Struct, array_like=True):
    path: pathlib.Path
    count: int = 0


class Labelled(msgspec.Struct, array_like=True, tag="labelled"):
    path: pathlib.Path


def test_an_array_like_struct_is_a_list_of_its_fields() -> None:
    assert bind(Array, ["a", 1]) == Array(pathlib.Path("a"), 1)
    assert bind(Array, ["a"]) == Array(pathlib.Path("a"))
    assert bind(Labelled, ["labelled", "a"]) == Labelled(pathlib.Path("a"))
    assert signature_of(Labelled).check_result(Labelled(pathlib.Path("a"))) == b'["labelled","a"]'
    assert schema(Array, "Array") == {
        "type": "array",
        "prefixItems": [{"type": "string", "format": "path"}, {"type": "integer", "default": 0}],
        "minItems": 1,
        "items": False,
    }


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({}, ["v: expected a list, got an object with 0 members"]),
        ([], ["v[0]: missing; expected a path as text (path)"]),
        ([1, "x"], ["v[0]: expected a path as text, got the number 1", 'v[1]: expected an integer, got "x"']),
        (["a", 1, 2], ["v: expected at most 2 items, got 3"]),
    ],
)
def test_the_faults_of_an_array_like_struct_are_told_by_position(value: Any, told: list[str]) -> None:
    assert problems(Array, value) == told


def test_a_name_of_its_own_works_in_every_class() -> None:
    assert bind(Plain, {"from": "a"}) == Plain("a")
    assert signature_of(Plain).check_result(Plain("a")) == b'{"from":"a"}'


def test_a_dict_may_stand_for_an_object_in_results() -> None:
    signature = signature_of(list[Row])

    assert signature.check_result([{"a": 1, "more": [2]}]) == b'[{"a":1,"more":[2]}]'
    with pytest.raises(ResultError, match=r"result\[0\]\.a: missing"):
        signature.check_result([{"b": "x"}])
    with pytest.raises(ResultError, match=r"result\[0\]\.more: a value of type object"):
        signature.check_result([{"a": 1, "more": object()}])


def test_results_of_another_class_are_refused() -> None:
    with pytest.raises(ResultError, match="expected an object with count, got a value of type Point"):
        signature_of(Order).check_result(Point(1))
    with pytest.raises(ResultError, match=r"result\.count"):
        signature_of(Order).check_result(Order("x"))  # pyright: ignore


def test_nan_is_found_inside_objects() -> None:
    @dataclasses.dataclass
    class Measure:
        path: pathlib.Path
        value: float | None

    with pytest.raises(ResultError, match=r"nan at result\.value"):
        signature_of(Measure).check_result(Measure(pathlib.Path("a"), float("nan")))


class Closed(te.TypedDict, closed=True):
    path: pathlib.Path


class Described(te.TypedDict, extra_items=Counted):
    path: NotRequired[pathlib.Path]


class Sized(te.TypedDict, extra_items=int):
    name: str


@pytest.mark.parametrize(
    ("annotation", "value", "told"),
    [
        (Made, {"path": "a", "nope": 1}, None),  # it writes a size that it does not take
        (Account, {"balance": 1, "tag": []}, ["v.tag: unknown member; did you mean tags?"]),
        (Order, {"count": 1, "form": "a"}, ["v.form: unknown member; did you mean from?"]),
        (Keys, {"a": 1, "c": 2}, ["v.c: unknown member"]),
        (Row, {"a": 1, "c": 2}, ["v.c: unknown member"]),
        (Cat, {"type": "cat", "catId": "a", "cat_id": "b"}, ["v.cat_id: unknown member; did you mean catId?"]),
        (Point, {"x": 1, "why": 2}, ["v.why: unknown member"]),
        (list[Row], [{"a": 1}, {"a": 1, "c": 2}], ["v[1].c: unknown member"]),
        (Pair[int, str], {"first": 1, "second": "a", "third": 3}, ["v.third: unknown member"]),
        (Point | pathlib.Path, {"x": 1, "z": 2}, ["v.z: unknown member"]),
    ],
)  # fmt: skip
def test_a_parameter_takes_no_members_that_its_class_does_not_know(
    annotation: Any, value: Any, told: list[str] | None
) -> None:
    if told is None:
        bind(annotation, value)
    else:
        assert problems(annotation, value) == told


@pytest.mark.parametrize("annotation", [Account, Order, Keys, Row, Cat, Point, Pair[int, str]])
def test_what_is_refused_is_closed_in_the_schema_of_parameters_and_not_of_results(annotation: Any) -> None:
    signature = signature_of(annotation)
    (defined,) = signature.input_schema["$defs"].values()

    assert defined["additionalProperties"] is False
    assert "additionalProperties" not in (signature.output_schema or {})


def test_what_a_class_writes_it_takes() -> None:
    made = Made(pathlib.Path("a"))
    written = json.loads(signature_of(Made).check_result(made))

    assert written == {"path": "a", "size": 7, "note": "x"}
    assert bind(Made, written) == made
    assert bind(Made, {"path": "a", "size": 8}).size == 7
    assert "additionalProperties" not in schema(Made, "Made")


def test_fields_that_a_class_sets_by_itself_are_never_the_callers() -> None:
    @dataclasses.dataclass
    class Counter:
        name: str
        hits: int = dataclasses.field(init=False, default=0)

    assert bind(Counter, {"name": "a", "hits": 99}) == Counter("a")


def test_a_typed_dict_says_whether_it_takes_others() -> None:
    assert problems(Closed, {"path": "a", "b": 1}) == ["v.b: unknown member"]
    assert schema(Closed, "Closed", "output")["additionalProperties"] is False
    with pytest.raises(ResultError, match=r"result\.b: unknown member"):
        signature_of(Closed).check_result({"path": "a", "b": 1})

    assert bind(Described, {"path": "a", "b": 1}) == {"path": pathlib.Path("a"), "b": 1}
    assert problems(Described, {"b": -1}) == ["v.b: expected an integer >= 0, got the number -1"]
    assert schema(Described, "Described")["additionalProperties"] == {"type": "integer", "minimum": 0}
    with pytest.raises(ResultError, match=r"result\.b: expected an integer"):
        signature_of(Described).check_result({"b": "x"})

    assert bind(Sized, {"name": "a", "b": 1}) == {"name": "a", "b": 1}
    assert problems(Sized, {"name": "a", "b": "x"}) == ['v.b: expected an integer, got "x"']


def test_a_typed_dict_with_names_of_its_own_goes_there_and_back() -> None:
    named: Any = TypedDict("named", {"sender": Annotated[str, Name("from")]})

    assert bind(named, {"from": "a"}) == {"sender": "a"}
    assert signature_of(named).check_result({"sender": "a"}) == b'{"from":"a"}'
