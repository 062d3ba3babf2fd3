"""Forms: their fields in every way in which revisions write them, and what fits them."""

from __future__ import annotations

import datetime
import enum
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from msgspec import UNSET
from pydantic import BaseModel

from modelwire import FormQuestion
from modelwire.client.forms import BadForm, FieldChoice, Form, Misfit

RED, BLUE = FieldChoice("r", "Red"), FieldChoice("b", "Blue")
OPTIONS = [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]


def form(required: list[str] | None = None, **properties: Any) -> Form:
    return Form({"type": "object", "properties": properties, "required": required or []})


def test_a_field_has_what_the_server_says_of_it() -> None:
    asked = form(["who"], who={"type": "string", "title": "Name", "description": "Yours", "format": "email"}, n={})
    who, n = asked.fields.values()
    assert (who.name, who.kind, who.title, who.description) == ("who", "text", "Name", "Yours")
    assert (who.required, who.format, who.default) == (True, "email", UNSET)
    assert (n.kind, n.title, n.required) == ("other", "n", False)


@pytest.mark.parametrize(
    ("schema", "kind", "choices"),
    [
        ({"type": "string", "enum": ["r", "b"]}, "choice", (FieldChoice("r", "r"), FieldChoice("b", "b"))),
        ({"type": "string", "enum": ["r", "b"], "enumNames": ["Red", "Blue"]}, "choice", (RED, BLUE)),
        ({"type": "string", "enum": ["r"], "enumNames": ["Red", "Blue"]}, "choice", (FieldChoice("r", "r"),)),
        ({"type": "string", "oneOf": OPTIONS}, "choice", (RED, BLUE)),
        ({"type": "array", "items": {"type": "string", "enum": ["r"]}}, "choices", (FieldChoice("r", "r"),)),
        ({"type": "array", "items": {"anyOf": OPTIONS}}, "choices", (RED, BLUE)),
        ({"type": "array", "items": {"type": "string"}}, "other", ()),
        ({"type": "integer"}, "integer", ()),
    ],
)
def test_choices_are_found_however_the_revision_writes_them(schema: Any, kind: str, choices: Any) -> None:
    field = form(c=schema).fields["c"]
    assert (field.kind, field.choices) == (kind, choices)


def test_defaults_stand_where_a_field_is_missing() -> None:
    asked = form(["n"], n={"type": "integer", "default": 2}, ok={"type": "boolean", "default": False}, x={})
    assert asked.content({}) == {"n": 2, "ok": False}
    filled = asked.content({"x": 1, "n": 3})
    assert list(filled.items()) == [("n", 3), ("ok", False), ("x", 1)]


def test_none_stands_for_no_value_even_where_there_is_a_default() -> None:
    asked = form(n={"type": "integer", "default": 2}, x={"type": "string"})
    assert asked.content({"n": None, "x": None}) == {}


def test_a_default_that_its_own_field_does_not_take_is_none() -> None:
    asked = form(
        n={"type": "integer", "maximum": 1, "default": 2}, d={"type": "string", "format": "date", "default": "x"}
    )
    assert asked.content({}) == {}


class Colour(enum.Enum):
    RED = "r"


@dataclass
class Guests:
    count: int
    day: datetime.date
    colour: Colour = Colour.RED
    phone: str = "private"


class Named(msgspec.Struct, rename="camel"):
    first_name: str


class Model(BaseModel):
    count: int


def test_an_instance_gives_the_fields_of_the_form_and_nothing_else() -> None:
    asked = form(count={"type": "integer"}, day={"type": "string", "format": "date"}, colour={"enum": ["r"]})
    assert asked.content(Guests(2, datetime.date(2026, 1, 31))) == {"count": 2, "day": "2026-01-31", "colour": "r"}
    assert form(firstName={"type": "string"}).content(Named("Ada")) == {"firstName": "Ada"}
    assert form(count={"type": "integer"}).content(Model(count=3)) == {"count": 3}


FITS: list[tuple[Any, Any, str]] = [
    ({"type": "integer", "minimum": 1}, 0, "n: .*>= 1"),
    ({"type": "integer"}, "2", "n: .*integer"),
    ({"type": "string", "maxLength": 2}, "abc", "n: .*at most 2"),
    ({"type": "string", "format": "email"}, "me", "n: .*e-mail"),
    ({"type": "string", "format": "uri"}, "a b", "n: .*URL"),
    ({"type": "string", "format": "date"}, "31.1.2026", "n: .*date"),
    ({"type": "string", "format": "date-time"}, "2026-01-31", "n: .*date and time"),
    ({"type": "string", "enum": ["r"]}, "g", "n: .*r"),
    ({"type": "string", "oneOf": OPTIONS}, "g", "n: "),
    ({"type": "array", "items": {"anyOf": OPTIONS}, "minItems": 1}, [], "n: .*at least 1"),
    ({"type": "array", "items": {"type": "string", "enum": ["r"]}}, ["g"], "n"),
]


@pytest.mark.parametrize(("schema", "value", "words"), FITS)
def test_what_does_not_fit_is_said(schema: Any, value: Any, words: str) -> None:
    with pytest.raises(Misfit, match=words):
        form(n=schema).content({"n": value})


def test_a_missing_and_an_unknown_field_are_named_together() -> None:
    with pytest.raises(Misfit, match=r"cuont: the form has no such field; did you mean 'count'\?.*count"):
        form(["count"], count={"type": "integer"}).content({"cuont": 1})


def test_a_form_that_takes_more_fields_gets_them() -> None:
    schema = {"type": "object", "properties": {}, "additionalProperties": {"type": "integer"}}
    assert Form(schema).content({"n": 1}) == {"n": 1}


@pytest.mark.parametrize("answer", [7, "text", [1], object()])
def test_what_is_no_object_is_no_answer(answer: Any) -> None:
    with pytest.raises(Misfit):
        form().content(answer)


def test_the_draft_that_a_schema_names_does_not_matter() -> None:
    draft = "http://json-schema.org/draft-07/schema#"
    assert Form({"$schema": draft, "type": "object", "properties": {"n": {"type": "integer"}}}).content({"n": 1})


def test_a_schema_that_is_none_or_costs_too_much_is_refused() -> None:
    with pytest.raises(BadForm):
        form(n={"type": "strange"})
    deep: Any = {}
    for _ in range(100):
        deep = {"not": deep}
    with pytest.raises(BadForm, match="deep"):
        form(n=deep)
    with pytest.raises(BadForm, match="has 501 fields"):
        form(**{f"f{n}": {} for n in range(501)})


def test_a_field_may_refer_to_a_definition() -> None:
    schema = {"$defs": {"n": {"type": "integer"}}, "type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}}
    asked = Form({**schema, "properties": {"n": {"$ref": "#/$defs/n", "default": 2}}})
    assert asked.content({}) == {"n": 2}
    assert asked.field_problems(asked.fields["n"], "x")


def test_a_question_can_be_read_in_a_debugger() -> None:
    schema = {
        "type": "object",
        "properties": {
            "count": {"type": "integer"},
            "tea": {"type": "boolean", "default": True},
            "wish": {"type": "string"},
        },
        "required": ["count"],
    }
    question = FormQuestion("How many?", "hotel", Form(schema))
    assert repr(question) == (
        "FormQuestion(message='How many?', server='hotel', "
        "form=Form(count: integer (required), tea: boolean = True, wish: text), key=None)"
    )
