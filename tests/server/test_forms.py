"""Forms: what schema a class becomes, which fields are refused, and what an answer becomes."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import typing
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, NotRequired, Optional, TypedDict, TypeVar

import annotated_types
import attrs
import msgspec
import pydantic
import pytest

from modelwire import Name, ProtocolViolation, SignatureError
from modelwire.server.forms import form_schema, read_form
from tests import spec

T = TypeVar("T")
UTC = datetime.UTC


class Colour(enum.Enum):
    """A colour."""

    RED = "red"
    BLUE = "blue"


class Size(enum.StrEnum):
    SMALL = "S"
    LARGE = "L"


class Level(enum.IntEnum):
    LOW = 1


class Nothing(enum.Enum):
    pass


Guests = NewType("Guests", int)
Email = Annotated[str, msgspec.Meta(extra_json_schema={"format": "email"})]


def meta(**limits: Any) -> msgspec.Meta:
    return msgspec.Meta(**limits)


def one(annotation: Any, *default: Any) -> type[Any]:
    """A dataclass with one field."""
    return dataclasses.make_dataclass("Form", [("field", annotation, *default)])


def schema_of(annotation: Any, *default: Any) -> dict[str, Any]:
    return form_schema(one(annotation, *default))["properties"]["field"]


def faults(revision: str, schema: dict[str, Any]) -> list[str]:
    params = {"message": "?", "requestedSchema": schema, "mode": "form"}
    request = {"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params}
    if revision == "2026-07-28":
        request = {"method": "elicitation/create", "params": params}
    return spec.errors_of(revision, "ElicitRequest", request)


KINDS: list[tuple[Any, dict[str, Any], Any, Any]] = [
    (str, {"type": "string"}, "Ann", "Ann"),
    (
        Annotated[str, meta(min_length=2, max_length=5)],
        {"type": "string", "minLength": 2, "maxLength": 5},
        "Ann",
        "Ann",
    ),
    (Email, {"type": "string", "format": "email"}, "a@b.example", "a@b.example"),
    (Annotated[str, meta(extra_json_schema={"format": "uri"})], {"type": "string", "format": "uri"}, "a:b", "a:b"),
    (datetime.date, {"type": "string", "format": "date"}, "2026-01-31", datetime.date(2026, 1, 31)),
    (
        datetime.datetime,
        {"type": "string", "format": "date-time"},
        "2026-01-31T09:30:00Z",
        datetime.datetime(2026, 1, 31, 9, 30, tzinfo=UTC),
    ),
    (
        Annotated[datetime.datetime, meta(tz=True)],
        {"type": "string", "format": "date-time"},
        "2026-01-31T09:30:00Z",
        datetime.datetime(2026, 1, 31, 9, 30, tzinfo=UTC),
    ),
    (int, {"type": "integer"}, 3, 3),
    (int, {"type": "integer"}, 3.0, 3),
    (Guests, {"type": "integer"}, 3, 3),
    (Annotated[int, meta(ge=1, le=8)], {"type": "integer", "minimum": 1, "maximum": 8}, 8, 8),
    (Annotated[int, meta(gt=0, lt=9)], {"type": "integer", "minimum": 1, "maximum": 8}, 1, 1),
    (Annotated[int, annotated_types.Interval(gt=0, le=8)], {"type": "integer", "minimum": 1, "maximum": 8}, 1, 1),
    (Annotated[int, pydantic.Field(ge=1)], {"type": "integer", "minimum": 1}, 1, 1),
    (float, {"type": "number"}, 1.5, 1.5),
    (float, {"type": "number"}, 1, 1.0),
    (Annotated[float, meta(ge=0.5, le=2)], {"type": "number", "minimum": 0.5, "maximum": 2}, 2, 2.0),
    (bool, {"type": "boolean"}, True, True),
    (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}, "b", "b"),
    (Literal[Colour.RED], {"type": "string", "enum": ["red"]}, "red", Colour.RED),
    (Colour, {"type": "string", "enum": ["red", "blue"]}, "blue", Colour.BLUE),
    (Size, {"type": "string", "enum": ["S", "L"]}, "L", Size.LARGE),
    (list[Literal["a", "b"]], {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}, ["b"], ["b"]),
    (list[Colour], {"type": "array", "items": {"type": "string", "enum": ["red", "blue"]}}, ["red"], [Colour.RED]),
    (
        Annotated[list[Colour], meta(min_length=1, max_length=2)],
        {"type": "array", "items": {"type": "string", "enum": ["red", "blue"]}, "minItems": 1, "maxItems": 2},
        ["blue", "red"],
        [Colour.BLUE, Colour.RED],
    ),
    (Optional[str], {"type": "string"}, "x", "x"),
    (Colour | None, {"type": "string", "enum": ["red", "blue"]}, "red", Colour.RED),
    (Literal["a", None], {"type": "string", "enum": ["a"]}, "a", "a"),
    (Annotated[int | None, meta(ge=1)], {"type": "integer", "minimum": 1}, 1, 1),
    (Optional[Annotated[str, meta(max_length=3)]], {"type": "string", "maxLength": 3}, "abc", "abc"),
    (Optional[list[Colour]], {"type": "array", "items": {"type": "string", "enum": ["red", "blue"]}}, [], []),
]


@pytest.mark.parametrize(("annotation", "schema", "answer", "value"), KINDS, ids=lambda item: str(item)[:50])
def test_each_kind_of_field_has_its_schema_and_reads_its_answer(
    annotation: Any, schema: dict[str, Any], answer: Any, value: Any
) -> None:
    form = one(annotation)
    assert form_schema(form)["properties"] == {"field": schema}
    found = read_form(form, {"field": answer}).field
    assert (found, type(found)) == (value, type(value))


@spec.needs_spec
@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("annotation", [kind[0] for kind in KINDS], ids=str)
def test_each_schema_is_one_by_the_specification(revision: str, annotation: Any) -> None:
    schema = form_schema(one(annotation))
    with_list = schema["properties"]["field"]["type"] == "array" and revision == "2025-06-18"
    assert bool(faults(revision, schema)) is with_list  # which that revision does not know


# ------------------------------------------------------------------------------------ required, defaults, descriptions


@dataclasses.dataclass
class Booking:
    """A table.

    Attributes:
        name: Who comes.
        count: How many come.
    """

    name: str
    count: Annotated[int, msgspec.Meta(description="How many.", ge=1)]
    note: Annotated[Optional[str], "Anything else?"] = None
    when: datetime.date = datetime.date(2026, 1, 31)
    at: datetime.datetime = datetime.datetime(2026, 1, 31, 9, tzinfo=UTC)
    colour: Colour = Colour.RED
    tip: float = 1.5
    smoking: bool = False
    days: list[Colour] = dataclasses.field(default_factory=lambda: [Colour.BLUE])
    dishes: list[Literal["soup"]] = dataclasses.field(default_factory=list)
    table: str = dataclasses.field(default="", init=False)


def test_a_form_is_flat_and_says_what_must_be_filled_in_and_what_is_the_default() -> None:
    colours = ["red", "blue"]
    assert form_schema(Booking) == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Who comes."},
            "count": {"type": "integer", "minimum": 1, "description": "How many."},
            "note": {"type": "string", "description": "Anything else?"},
            "when": {"type": "string", "format": "date", "default": "2026-01-31"},
            "at": {"type": "string", "format": "date-time", "default": "2026-01-31T09:00:00Z"},
            "colour": {"type": "string", "enum": colours, "default": "red"},
            "tip": {"type": "number", "default": 1.5},
            "smoking": {"type": "boolean", "default": False},
            "days": {"type": "array", "items": {"type": "string", "enum": colours}, "default": ["blue"]},
            "dishes": {"type": "array", "items": {"type": "string", "enum": ["soup"]}, "default": []},
        },
        "required": ["name", "count"],
    }
    assert read_form(Booking, {"name": "Ann", "count": 2}) == Booking("Ann", 2)


@spec.needs_spec
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_a_form_with_defaults_and_descriptions_is_one_by_the_specification(revision: str) -> None:
    assert faults(revision, form_schema(Booking)) == []


def test_a_form_without_anything_that_must_be_filled_in_has_no_required() -> None:
    assert form_schema(one(bool, False)) == {
        "type": "object",
        "properties": {"field": {"type": "boolean", "default": False}},
    }
    assert form_schema(dataclasses.make_dataclass("Confirm", [])) == {"type": "object", "properties": {}}


def test_an_optional_field_without_default_need_not_be_filled_in_and_is_none_then() -> None:
    form = one(Optional[str])
    assert "required" not in form_schema(form)
    assert read_form(form, {}).field is None
    assert read_form(form, {"field": None}).field is None


def test_a_title_is_there_only_where_somebody_wrote_one() -> None:
    assert schema_of(Annotated[str, meta(title="Your name")]) == {"type": "string", "title": "Your name"}


class Struct(msgspec.Struct, forbid_unknown_fields=True, tag=True):
    """A form.

    Parameters
    ----------
    name : str
        Who comes.
    """

    name: str = msgspec.field(name="from")
    colour: Colour = Colour.BLUE
    days: list[Colour] = []


class Typed(TypedDict):
    name: Annotated[str, Name("from"), "Who comes."]
    colour: NotRequired[Colour]
    days: NotRequired[list[Colour]]


class Row(NamedTuple):
    name: Annotated[str, Name("from"), "Who comes."]
    colour: Colour = Colour.BLUE
    days: list[Colour] = []  # noqa: RUF012 - a NamedTuple has no other way to say it


@attrs.define
class Attrs:
    name: Annotated[str, Name("from"), "Who comes."] = attrs.field(validator=attrs.validators.max_len(5))
    colour: Colour = Colour.BLUE
    days: list[Colour] = attrs.Factory(list)


@dataclasses.dataclass
class Generic_(Generic[T]):
    name: Annotated[str, Name("from"), "Who comes."]
    colour: T
    days: list[T] = dataclasses.field(default_factory=list)


@pytest.mark.parametrize("form", [Struct, Typed, Row, Attrs, Generic_[Colour]], ids=str)
def test_each_kind_of_class_makes_a_form_and_reads_it(form: Any) -> None:
    schema = form_schema(form)
    plain = {name: {k: v for k, v in field.items() if k != "default"} for name, field in schema["properties"].items()}
    choice = {"type": "string", "enum": ["red", "blue"]}
    assert plain == {
        "from": {"type": "string", "description": "Who comes.", **({"maxLength": 5} if form is Attrs else {})},
        "colour": choice,
        "days": {"type": "array", "items": choice},
    }
    assert schema["required"][0] == "from"
    found = read_form(form, {"from": "Ann", "colour": "red", "days": ["blue"], "unknown": {"a": 1}})
    values = found if form is Typed else {name: getattr(found, name) for name in ("name", "colour", "days")}
    assert values == {"name": "Ann", "colour": Colour.RED, "days": [Colour.BLUE]}


def test_validators_of_attrs_are_limits_of_the_form_where_it_can_say_them() -> None:
    v = attrs.validators

    @attrs.define
    class Order:
        size: str = attrs.field(validator=v.in_(["S", "L"]))
        count: int = attrs.field(validator=[v.ge(1), v.lt(10)])
        code: str = attrs.field(validator=v.matches_re("[A-Z]+"))

    assert form_schema(Order)["properties"] == {
        "size": {"type": "string", "enum": ["S", "L"]},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "code": {"type": "string"},
    }
    with pytest.raises(ProtocolViolation, match='content.code: "a" is not accepted here'):
        read_form(Order, {"size": "S", "count": 1, "code": "a"})


def test_a_class_that_is_defined_where_the_question_is_asked_finds_its_names() -> None:
    class Taste(enum.Enum):
        SWEET = "sweet"

    @dataclasses.dataclass
    class Order:
        taste: Taste

    assert form_schema(Order)["properties"] == {"taste": {"type": "string", "enum": ["sweet"]}}
    assert read_form(Order, {"taste": "sweet"}) == Order(Taste.SWEET)


# --------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("annotation", "said"),
    [
        (
            list[str],
            "list[str] is a list of what is no choice; make its items a Literal or an Enum whose values are text",
        ),
        (list, "list is a list of what is no choice"),
        (list[Colour | None], "list[Colour | None] is a list of what is no choice"),
        (Optional[list[int]], "is a list of what is no choice"),
        (Booking, "a form cannot ask for Booking; a form takes str, int, float, bool, datetime.date"),
        (dict[str, str], "a form cannot ask for dict[str, str]; a form takes str"),
        (int | str, "a form cannot ask for int | str; a form takes str"),
        (typing.Union[int, str, None], "a form cannot ask for "),
        (set[Colour], "a form cannot ask for set[Colour]"),
        (Any, "a form cannot ask for Any"),
        (bytes, "a form cannot ask for bytes"),
        (datetime.time, "a form cannot ask for time"),
        (pydantic.AnyUrl, "a form cannot ask for AnyUrl"),
        (None, "a form cannot ask for NoneType"),
        (Level, "Level has the value 1, and the choices of a form are text"),
        (list[Level], "Level has the value 1, and the choices of a form are text"),
        (Nothing, "Nothing has no members, and the choices of a form are text"),
        (Literal[1, "a"], "Literal[1, 'a'] has the value 1, and the choices of a form are text"),
        (Annotated[str, meta(pattern="^a$")], "a form cannot say the constraint 'that matches ^a$' of a string"),
        (Annotated[float, meta(gt=0)], "a form cannot say the constraint '> 0' of a number; say it in the description"),
        (Annotated[int, meta(multiple_of=2)], "a form cannot say the constraint 'that is a multiple of 2'"),
        (Annotated[datetime.datetime, meta(tz=False)], "a form cannot say the constraint 'without a time zone'"),
        (Annotated[str, annotated_types.Predicate(str.isupper)], "a form cannot say a constraint that is a function"),
        (Annotated[Colour, annotated_types.MinLen(1)], "'of at least 1' of a choice"),
        (Annotated[str, meta(extra_json_schema={"format": "ipv4"})], "a form knows no 'ipv4' of this type"),
        (Annotated[int, meta(extra_json_schema={"format": "email"})], "a form knows no 'email' of this type"),
        (Annotated[str, meta(extra_json_schema={"minLength": 1})], "a form cannot say 'minLength'; leave it out"),
    ],
    ids=str,
)
def test_what_a_form_cannot_ask_is_refused_by_name(annotation: Any, said: str) -> None:
    with pytest.raises(SignatureError) as raised:
        form_schema(one(annotation))
    assert str(raised.value).startswith("Form.field: ")
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("annotation", "default", "said"),
    [
        (Literal["a"], "b", 'its default: expected "a"'),
        (Annotated[int, meta(ge=1)], 0, "its default: expected an integer >= 1"),
        (float, float("inf"), "its default, inf, is no number in JSON"),
        (datetime.datetime, datetime.datetime(2026, 1, 1), "its default has no time zone"),
    ],
    ids=str,
)
def test_a_default_that_its_own_field_would_not_take_is_refused(annotation: Any, default: Any, said: str) -> None:
    with pytest.raises(SignatureError, match="Form.field: ") as raised:
        form_schema(one(annotation, default))
    assert said in str(raised.value)


class Model(pydantic.BaseModel):
    name: str


@pydantic.dataclasses.dataclass
class Checked:
    name: str


@pytest.mark.parametrize(
    ("form", "said"),
    [
        (Model, "Model is a pydantic class, which cannot be a form; write a dataclass, a TypedDict,"),
        (Checked, "Checked is a pydantic class"),
        (str, "str is no class with fields; a form is made of a dataclass"),
        (list[str], "list is no class with fields"),
        (Colour, "Colour is no class with fields"),
        ({"name": str}, "{'name': <class 'str'>} is no class with fields"),
        (Booking("Ann", 1), "is no class with fields"),
    ],
)
def test_what_has_no_fields_to_ask_for_is_refused(form: Any, said: str) -> None:
    with pytest.raises(SignatureError) as raised:
        form_schema(form)
    assert said in str(raised.value)


def test_a_field_whose_type_is_nowhere_to_be_found_is_refused() -> None:
    form = dataclasses.make_dataclass("Form", [("field", "Absent")])
    with pytest.raises(SignatureError, match="a form of Form: the annotations of Form cannot be evaluated: .*'Absent'"):
        form_schema(form)


# ---------------------------------------------------------------------------------------------------------- answers


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"name": "Ann"}, "content.count: missing"),
        ({"name": 5, "count": 1}, "content.name: expected text, got the number 5"),
        ({"name": "Ann", "count": 0}, "content.count: expected an integer >= 1, got the number 0"),
        ({"name": "Ann", "count": "2"}, 'content.count: expected an integer >= 1, got "2"'),
        ({"name": "Ann", "count": 1, "colour": "green"}, 'content.colour: expected one of "red", "blue"'),
        ({"name": "Ann", "count": 1, "days": ["red", "x"]}, "content.days[1]: expected"),
        ({"name": "Ann", "count": 1, "when": "tomorrow"}, "content.when: expected"),
        (None, "content: expected an object with name, count, got null"),
    ],
    ids=str,
)
def test_an_answer_that_does_not_fit_is_refused_by_the_name_of_its_field(content: Any, said: str) -> None:
    with pytest.raises(ProtocolViolation) as raised:
        read_form(Booking, content)
    assert str(raised.value).startswith("the answer does not fit the form Booking: ")
    assert said in str(raised.value)


def test_every_fault_of_an_answer_is_told_at_once() -> None:
    with pytest.raises(ProtocolViolation, match=r"content\.name: .*; content\.count: "):
        read_form(Booking, {"name": 1, "count": None})


def test_what_the_class_itself_refuses_is_told() -> None:
    words = 'the answer does not fit the form Attrs: content.from: "much too long" is not accepted here'
    with pytest.raises(ProtocolViolation, match=words):
        read_form(Attrs, {"from": "much too long"})


def test_reading_an_answer_leaves_the_answer_as_it_was() -> None:
    content: dict[str, Any] = {}
    read_form(one(Optional[str]), content)
    assert content == {}
