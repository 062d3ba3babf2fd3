"""The form of an elicitation: what its fields are, and whether an answer fits it.

A form is compiled once, when it is asked; one that could not be answered safely is refused then, before anybody sees
it. Nothing here asks, sends or waits.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast

import msgspec
from msgspec import UNSET

from modelwire.client.values import plain_json
from modelwire.errors import ConfigError
from modelwire.protocol import wire

FieldKind: TypeAlias = Literal["text", "number", "integer", "boolean", "choice", "choices", "other"]
FORMATS: Final = frozenset({"email", "uri", "date", "date-time"})
"""The formats that a form may ask for; others only annotate."""
MAX_FIELDS = 500
"""A form with more is refused: a person is to fill it in."""
_KINDS: Final[dict[Any, FieldKind]] = {
    "string": "text",
    "number": "number",
    "integer": "integer",
    "boolean": "boolean",
    "array": "choices",
}


class BadForm(ValueError):
    """The server's schema is none that an answer can be held against."""


class Misfit(ValueError):
    """An answer that the form does not take; the message has every fault."""


@dataclass(frozen=True, slots=True)
class FieldChoice:
    """One of the values that a field may have.

    Attributes:
        value: What is sent.
        title: What people see.
    """

    value: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """One field of a form.

    Attributes:
        name: What it is called in the answer.
        kind: What it takes; "choice" is one of `choices`, "choices" a list of them, "other" what no revision foresees.
        title: A name for people; the name itself where the server gives no other.
        description: What it is for.
        required: Whether it must be filled in.
        default: What it is when nobody fills it in; `msgspec.UNSET` where the server says nothing.
        format: "email", "uri", "date" or "date-time", where the server wants one.
        choices: What there is to choose from.
        schema: The field's schema as it came, for its limits.
    """

    name: str
    kind: FieldKind
    title: str
    description: str | None
    required: bool
    default: Any
    format: str | None
    choices: tuple[FieldChoice, ...]
    schema: dict[str, Any]


class Form:
    """A form, compiled.

    Args:
        schema: The ``requestedSchema`` as it came.

    Raises:
        BadForm: It is no schema of a form, or too large to be safe.
    """

    def __init__(self, schema: dict[str, Any]) -> None:
        # Loaded when the first form is asked: few clients ever see one.
        from modelwire.server.given_schema import GivenSchema

        self.schema = schema
        # Flat forms mean the same in every draft, and some libraries name an old one.
        plain = {name: value for name, value in schema.items() if name != "$schema"}
        try:
            self._given = GivenSchema(plain, "the form")
        except ConfigError as error:
            raise BadForm(str(error)) from None
        required = set(_strings(schema.get("required")))
        properties = cast("dict[str, Any]", schema.get("properties") or {})
        if len(properties) > MAX_FIELDS:
            raise BadForm(f"the form has {len(properties)} fields, and may have {MAX_FIELDS}")
        self.fields = {name: _field(name, found, name in required) for name, found in properties.items()}
        """The fields by name, in the server's order."""
        self._open = bool(schema.get("additionalProperties")) or "patternProperties" in schema

    def __repr__(self) -> str:
        fields = ", ".join(
            f"{field.name}: {field.kind}"
            + ("" if field.default is UNSET else f" = {field.default!r:.40}")
            + (" (required)" if field.required and field.default is UNSET else "")
            for field in self.fields.values()
        )
        return f"Form({fields})"

    @property
    def defaults(self) -> dict[str, Any]:
        """The defaults of the fields that have one which they take themselves."""
        return {
            name: field.default
            for name, field in self.fields.items()
            if field.default is not UNSET and not self.field_problems(field, field.default)
        }

    def problems(self, content: Mapping[str, Any]) -> list[str]:
        """Return what is wrong with an answer, one clause each; nothing when it fits."""
        found = [] if self._open else [self._unknown(name) for name in content if name not in self.fields]
        found += self._given.problems(dict(content), "")
        for name, field in self.fields.items():
            if isinstance(content.get(name), str):
                found += _format_problems(field, content[name])
        return found

    def field_problems(self, field: FormField, value: Any) -> list[str]:
        """Return what is wrong with the value of one field."""
        from modelwire.server.given_schema import GivenSchema

        refers = "$ref" in field.schema
        inner = {name: self.schema[name] for name in ("$defs", "definitions") if refers and name in self.schema}
        alone = GivenSchema({**inner, "type": "object", "properties": {field.name: field.schema}}, "the form")
        return alone.problems({field.name: value}, "") + _format_problems(field, value)

    def content(self, answer: Any) -> dict[str, Any]:
        """Return what is sent for an answer, checked, with defaults where a field is missing.

        Args:
            answer: A mapping, whose None stands for no value; or an instance of a dataclass, struct or model, of which
                the fields of the form are taken.

        Raises:
            Misfit: It does not fit the form.
        """
        filled = {**self.defaults, **self._plain(answer)}
        ordered = dict.fromkeys([*self.fields, *filled])  # as the form has them
        content = {name: filled[name] for name in ordered if filled.get(name) is not None}
        problems = self.problems(content)
        if problems:
            raise Misfit("; ".join(problems))
        return content

    def _plain(self, answer: Any) -> dict[str, Any]:
        try:
            plain: Any = msgspec.json.decode(plain_json(answer))
        except wire.WireError as error:
            raise Misfit(f"it cannot be written: {error}") from None
        if not isinstance(plain, dict):
            raise Misfit(f"a form is answered by a dict, or an object with its fields, not by {type(answer).__name__}")
        members = cast("dict[str, Any]", plain)
        if isinstance(answer, Mapping) or self._open:
            return members
        return {name: value for name, value in members.items() if name in self.fields}

    def _unknown(self, name: str) -> str:
        near = difflib.get_close_matches(name, list(self.fields), n=1)
        return f"{name}: the form has no such field" + (f"; did you mean {near[0]!r}?" if near else "")


def _field(name: str, found: Any, required: bool) -> FormField:
    schema = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    choices = _choices(schema)
    kind: FieldKind = _KINDS.get(schema.get("type"), "other")
    if kind == "text" and choices:
        kind = "choice"
    elif kind == "choices" and not choices:
        kind = "other"
    title, description, format_ = schema.get("title"), schema.get("description"), schema.get("format")
    return FormField(
        name=name,
        kind=kind,
        title=title if isinstance(title, str) and title else name,
        description=description if isinstance(description, str) else None,
        required=required,
        default=schema.get("default", UNSET),
        format=format_ if format_ in FORMATS else None,
        choices=choices,
        schema=schema,
    )


def _choices(schema: dict[str, Any]) -> tuple[FieldChoice, ...]:
    """What there is to choose from, in each of the ways in which the revisions write it."""
    source = schema.get("items") if schema.get("type") == "array" else schema
    if not isinstance(source, dict):
        return ()
    found = cast("dict[str, Any]", source)
    titled = found.get("oneOf") or found.get("anyOf")
    if isinstance(titled, list):
        options = [cast("dict[str, Any]", option) for option in cast("list[Any]", titled) if isinstance(option, dict)]
        return tuple(
            FieldChoice(option["const"], str(option.get("title") or option["const"]))
            for option in options
            if isinstance(option.get("const"), str)
        )
    values = _strings(found.get("enum"))
    names = _strings(found.get("enumNames"))  # 2025-06-18, and deprecated since
    titles = names if len(names) == len(values) else values
    return tuple(FieldChoice(value, title) for value, title in zip(values, titles))


def _strings(found: Any) -> list[str]:
    values = cast("list[Any]", found) if isinstance(found, list) else []
    return [value for value in values if isinstance(value, str)]


def _format_problems(field: FormField, value: Any) -> list[str]:
    if field.format is None or not isinstance(value, str):
        return []
    import jsonschema_rs

    from modelwire.server import schema_words

    schema = {"type": "string", "format": field.format}
    validator = jsonschema_rs.Draft202012Validator(schema, validate_formats=True, offline=True)
    return schema_words.clauses(schema, validator.iter_errors(value), field.name)
