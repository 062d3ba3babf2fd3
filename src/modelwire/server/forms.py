"""Forms for ``elicitation/create``: a class with fields becomes the flat schema, an answer becomes an instance.

The specification lets a form have fields of text, numbers, yes or no, and choices, "without nesting". `form_schema`
says exactly that much and refuses every other field by name, before anything is sent. This file asks nobody anything,
and adapts nothing to a revision.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import enum
import inspect
import math
import re
import sys
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_origin

import msgspec

from modelwire.errors import ProtocolViolation, SignatureError
from modelwire.server import docstrings
from modelwire.server.annotations import Scope, is_pydantic, is_union
from modelwire.server.constraints import MISSING, Rules, Unsupported, limit_check, read
from modelwire.server.converters import converter
from modelwire.server.fields import Field, has_fields, outline
from modelwire.server.json_values import is_object
from modelwire.server.nodes import Misfit
from modelwire.server.objects import Fields
from modelwire.server.titles import Titles, options

__all__ = ["form_schema", "read_form"]

T = TypeVar("T")

_CHOICES = "a Literal or an Enum whose values are text"
_ALLOWED = (
    f"a form takes str, int, float, bool, datetime.date, datetime.datetime, {_CHOICES}, a list of such a Literal or "
    "Enum, and Optional of each"
)
_CLASSES = "a dataclass, a TypedDict, a NamedTuple, a msgspec Struct or an attrs class"
_FORMATS = ("email", "uri", "date", "date-time")
_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    datetime.date: {"type": "string", "format": "date"},
    datetime.datetime: {"type": "string", "format": "date-time"},
}
_ALIAS_DEPTH = 64


def form_schema(fields: type[Any]) -> dict[str, Any]:
    """Return the ``requestedSchema`` of ``elicitation/create`` that asks for the fields of a class.

    A field with a default, or an ``Optional`` one, need not be filled in; its default is shown. Descriptions are taken
    from ``msgspec.Meta(description=...)``, from text in ``Annotated[str, "..."]``, or from the class's docstring. An
    address or a link is ``Annotated[str, msgspec.Meta(extra_json_schema={"format": "email"})]`` or ``"uri"``: a hint
    to the client that is not checked here. Choices have names for people where `Titles` gives them some.

    A list of choices and the default of anything but a ``bool`` came with revision 2025-11-25; this is not looked at
    here. For an older client `Context.request` leaves such defaults out, and refuses such a list.

    Args:
        fields: A dataclass, TypedDict, NamedTuple, msgspec Struct or attrs class of plain fields: ``str``, ``int``,
            ``float``, ``bool``, ``datetime.date``, ``datetime.datetime``, a ``Literal`` or ``Enum`` whose values are
            text, a list of one of these two, and ``Optional`` of each.

    Raises:
        SignatureError: A field is something that a form cannot ask for; the message names it.

    Example:
        ```
        @dataclass
        class Guests:
            count: Annotated[int, msgspec.Meta(ge=1, le=8)]
            smoking: bool = False


        @server.tool
        async def book(hotel: str, ctx: Context) -> str:
            question = {"message": "How many guests?", "requestedSchema": form_schema(Guests)}
            answer = await ctx.request("elicitation/create", question)
            return f"{hotel}: {answer.action} {answer.content}"
        ```
    """
    form = _Form(fields)
    found: dict[str, Any] = {"type": "object", "properties": form.properties}
    if form.required:
        found["required"] = form.required
    return found


def read_form(fields: type[T], content: dict[str, Any]) -> T:
    """Return an instance of a class, made of what a user filled in.

    What is missing gets its default, or None where it is ``Optional``; names that the class does not know are ignored.

    Args:
        fields: The class that `form_schema` made the form of.
        content: The ``content`` of an accepted ``ElicitResult``.

    Raises:
        SignatureError: As `form_schema`.
        ProtocolViolation: The content does not fit the form, or the class refused it; the message names the field.
    """
    return cast("T", _Form(fields).read(content))


class _Form:
    """A class, taken apart into what a form asks for.

    Args:
        fields: The class.
    """

    def __init__(self, fields: Any) -> None:
        cls: Any = get_origin(fields) or fields
        _refuse_others(cls)
        self._cls = cls
        # An answer has no tag, and what it says beside the form is no fault: forms may grow.
        self._node = Fields(cls, cls.__name__)
        self._scope = _scope(cls)
        self._nullable: list[str] = []
        self.properties: dict[str, Any] = {}
        self.required: list[str] = []
        try:
            found = outline(cls, get_args(fields), self._scope)
        except Unsupported as error:
            raise SignatureError(f"a form of {cls.__name__}: {error}") from error
        self._node.fields = [field for field in found.fields if field.argument]
        self._texts = _described(cls)
        for field in self._node.fields:
            try:
                self._add(field)
            except Unsupported as error:
                raise SignatureError(f"{cls.__name__}.{field.name}: {error}") from error

    def _add(self, field: Field) -> None:
        base, metadata, optional = _peeled(field.given)
        rules = read(metadata)
        schema = _limited(_kind(base, metadata, field.given), rules)
        for own in field.limits if field.given is field.hint else ():
            with contextlib.suppress(Unsupported):  # what a form cannot say the class checks all the same
                schema = _limited(schema, own) if own.options is None else _among(schema, own.options)
        schema.update(_notes(base, rules, metadata, self._texts.get(field.name)))
        field.node = converter(field.hint, self._scope)
        field.source = field.node if field.given is field.hint else converter(field.given, self._scope)
        default = _default(self._cls, field, schema)
        if default is not None:
            schema["default"] = default
        self.properties[field.wire] = schema
        if field.required and optional:
            self._nullable.append(field.wire)
        elif field.required:
            self.required.append(field.wire)

    def read(self, content: Any) -> Any:
        if is_object(content):
            content = {**dict.fromkeys(self._nullable), **content}
        try:
            return self._node.load(content, "content", lax=True)
        except Misfit as misfit:
            raise ProtocolViolation(f"the answer does not fit the form {self._cls.__name__}: {misfit}") from None


def _refuse_others(cls: Any) -> None:
    name = getattr(cls, "__name__", repr(cls))
    if isinstance(cls, type) and is_pydantic(cls):
        raise SignatureError(f"{name} is a pydantic class, which cannot be a form; write {_CLASSES} of the same fields")
    if not isinstance(cls, type) or not has_fields(cls):
        raise SignatureError(f"{name} is no class with fields; a form is made of {_CLASSES}")


def _scope(cls: type) -> Scope:
    """The names that annotations of a class may use, also where it is defined in a function that still runs."""
    names = vars(sys.modules[cls.__module__]) if cls.__module__ in sys.modules else {}
    return Scope(type(cls.__name__, (), {"__qualname__": cls.__qualname__, "__globals__": names}))


def _described(cls: type) -> dict[str, str]:
    """What the docstrings of a class and of its bases say of each field; classes also head the section Attributes."""
    found: dict[str, str] = {}
    for owner in reversed(cls.__mro__):
        if owner.__module__.partition(".")[0] in ("builtins", "msgspec", "typing"):
            continue
        text = inspect.cleandoc(owner.__dict__.get("__doc__") or "")
        found.update(docstrings.parse(re.sub(r"(?m)^Attributes(?=:?$)", "Parameters", text)).parameters)
    return found


def _peeled(annotation: Any) -> tuple[Any, tuple[Any, ...], bool]:
    """Return a type without names and notes around it, the notes (the outermost last), and whether it may be None."""
    metadata: tuple[Any, ...] = ()
    optional = False
    for _ in range(_ALIAS_DEPTH):  # an alias may contain itself
        args = get_args(annotation)
        if get_origin(annotation) is Annotated:
            annotation, metadata = args[0], (*args[1:], *metadata)
        elif len(others := _without_none(annotation, args)) < len(args):
            annotation, optional = others[0] if is_union(annotation) else Literal[others], True
        elif hasattr(annotation, "__supertype__") or hasattr(annotation, "__value__"):
            annotation = getattr(annotation, "__supertype__", None) or annotation.__value__
        else:
            break
    return annotation, metadata, optional


def _without_none(annotation: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The members of ``Optional[X]`` or ``Literal["a", None]`` but None; all members of other types."""
    others = tuple(arg for arg in args if arg is not None and arg is not type(None))
    if get_origin(annotation) is Literal:
        return others or args
    return others if is_union(annotation) and len(others) == 1 else args


def _kind(base: Any, metadata: tuple[Any, ...], annotation: Any) -> dict[str, Any]:
    """Return the schema of a type without its notes, but for the titles of choices."""
    if isinstance(base, type) and base in _PLAIN:
        if any(isinstance(item, Titles) for item in metadata):
            raise Unsupported(f"Titles are for choices, which {_shown(base)} has none of; use {_CHOICES}")
        return dict(_PLAIN[base])
    if (values := _choices(base)) is not None:
        found = options(values, metadata)
        return {"type": "string", "enum": values} if found is None else {"type": "string", "oneOf": found}
    if get_origin(base) is list:
        item, notes, optional = _peeled(get_args(base)[0])
        if not optional and (values := _choices(item)) is not None:
            items = _limited({"type": "string", "enum": values}, read(notes))
            found = options(values, (*notes, *metadata))
            return {"type": "array", "items": items if found is None else {"anyOf": found}}
    if base is list or get_origin(base) is list:
        raise Unsupported(f"{_shown(annotation)} is a list of what is no choice; make its items {_CHOICES}")
    raise Unsupported(f"a form cannot ask for {_shown(annotation)}; {_ALLOWED}")


def _choices(base: Any) -> list[str] | None:
    """Return the values of a ``Literal`` or an ``Enum``; None for other types."""
    values: Iterable[Any]
    if get_origin(base) is Literal:
        values = [value.value if isinstance(value, enum.Enum) else value for value in get_args(base)]
    elif isinstance(base, type) and issubclass(base, enum.Enum):
        values = [member.value for member in base]
    else:
        return None
    found = [value for value in values if type(value) is str]
    if len(found) != len(list(values)) or not found:
        wrong = next((value for value in values if type(value) is not str), None)
        what = f"has the value {wrong!r}" if values else "has no members"
        raise Unsupported(f"{_shown(base)} {what}, and the choices of a form are text; use {_CHOICES}")
    return found


def _shown(annotation: Any) -> str:
    """An annotation as its author wrote it, without the names of modules."""
    if isinstance(annotation, type) and not get_args(annotation):
        return annotation.__name__
    return re.sub(r"""('[^']*'|"[^"]*")|(?:(?:\w+|<locals>)\.)+""", lambda found: found[1] or "", str(annotation))


# ------------------------------------------------------------------ what stands beside a type


_Bound = Callable[[float], float]
_LIMITS: dict[str, dict[str, tuple[str, _Bound]]] = {
    "string": {"min_length": ("minLength", int), "max_length": ("maxLength", int)},
    "array": {"min_length": ("minItems", int), "max_length": ("maxItems", int)},
    "number": {"ge": ("minimum", lambda bound: bound), "le": ("maximum", lambda bound: bound)},
    "integer": {
        "ge": ("minimum", math.ceil),
        "gt": ("minimum", lambda bound: math.floor(bound) + 1),
        "le": ("maximum", math.floor),
        "lt": ("maximum", lambda bound: math.ceil(bound) - 1),
    },
}
"""How a form says a limit, by its ``type``. It knows no exclusive limits, which whole numbers can do without."""


def _limited(schema: dict[str, Any], rules: Rules) -> dict[str, Any]:
    """Add the limits; one that a form cannot say is refused, since the user would run into it unwarned."""
    known = _LIMITS.get(schema["type"], {}) if not {"enum", "oneOf", "format"} & schema.keys() else {}
    for name, bound in (*rules.limits.items(), *rules.more):
        if name == "tz" and bound and schema.get("format") == "date-time":
            continue  # the format asks for a time zone anyway
        if name not in known or not isinstance(bound, int | float):
            raise _unsaid(f"the constraint {limit_check(name, bound).words!r} of a {_called(schema)}")
        keyword, exact = known[name]
        stricter = max if keyword.startswith("min") else min
        schema[keyword] = stricter(exact(bound), schema.get(keyword, exact(bound)))
    if rules.predicates or rules.foreign:
        raise _unsaid("a constraint that is a function or pydantic's own")
    return schema


def _among(schema: dict[str, Any], options: list[Any]) -> dict[str, Any]:
    """The choices that a class leaves of text."""
    if schema != {"type": "string"} or not options or any(type(option) is not str for option in options):
        raise _unsaid("such choices")
    return {**schema, "enum": options}


def _called(schema: dict[str, Any]) -> str:
    return "choice" if {"enum", "oneOf"} & schema.keys() else str(schema.get("format", schema["type"]))


def _unsaid(what: str) -> Unsupported:
    return Unsupported(
        f"a form cannot say {what}; say it in the description, and check it where the class is made, "
        "such as in __post_init__"
    )


def _notes(base: Any, rules: Rules, metadata: tuple[Any, ...], documented: str | None) -> dict[str, Any]:
    """Description, title and format, each only where somebody wrote it."""
    beside = [item if isinstance(item, str) else getattr(item, "documentation", None) for item in metadata]
    written = [text for text in beside if isinstance(text, str)]
    found: dict[str, Any] = {}
    for keyword, value in rules.notes.items():
        if keyword == "format" and (value not in _FORMATS or base is not str):
            raise Unsupported(f"a form knows no {value!r} of this type; formats are for str: {', '.join(_FORMATS)}")
        if keyword not in ("title", "description", "format", "examples", "deprecated"):
            raise Unsupported(f"a form cannot say {keyword!r}; leave it out")
        if keyword not in ("examples", "deprecated"):
            found[keyword] = value
    text = found.get("description") or (written[-1] if written else documented)
    return {**found, "description": text} if text else found


def _default(cls: type, field: Field, schema: dict[str, Any]) -> Any:
    """Return the default that the form shows, as JSON; None for none."""
    default = field.default
    if default is MISSING and schema["type"] == "array":
        default = _made(cls, field)
    if any(default is nothing for nothing in (MISSING, msgspec.UNSET, None)):
        return None
    try:
        plain = field.node.dump(default, "its default")
    except Misfit as misfit:
        raise Unsupported(str(misfit)) from misfit
    if isinstance(plain, float) and not math.isfinite(plain):
        raise Unsupported(f"its default, {plain}, is no number in JSON")
    if isinstance(default, datetime.datetime) and default.tzinfo is None:
        raise Unsupported("its default has no time zone, which a date-time needs; pass tzinfo=")
    return plain


def _made(cls: Any, field: Field) -> Any:
    """The list that a dataclass makes anew for each instance, since Python has no other way to give one a default."""
    found = getattr(cls, "__dataclass_fields__", {}).get(field.name)
    factory = getattr(found, "default_factory", dataclasses.MISSING)
    return MISSING if factory is dataclasses.MISSING else factory()
