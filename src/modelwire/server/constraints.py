"""Constraints and notes beside a type, read from ``Annotated``: which rules hold, what a schema says of them.

Knows msgspec's ``Meta``, annotated_types and pydantic's ``Field``, the latter two by their names: neither library is
imported, since an annotation that uses one has brought it. A rule that is none of these is never dropped: `read`
leaves it to pydantic, or refuses it.
"""

from __future__ import annotations

import datetime
import decimal
import inspect
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, get_args

import msgspec

from modelwire.server.annotations import Header, Name, is_union
from modelwire.server.json_values import is_object

_LIMITS = ("gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length", "pattern", "tz")
_NOTES = ("title", "description", "examples", "deprecated")
_LIBRARIES = ("annotated_types", "pydantic", "pydantic_core")
_NO_DEFAULT = ("PydanticUndefined", "PydanticUndefinedType", "ellipsis")

MISSING: Any = inspect.Parameter.empty


class Unsupported(Exception):
    """Why a type cannot be enforced; becomes a `SignatureError` that names the parameter."""


@dataclass(slots=True)
class Rules:
    """What stands beside a type.

    Args:
        limits: Bounds, sizes, pattern and time zone, by msgspec's names for them.
        more: Limits of a name that ``limits`` has already.
        predicates: Functions that must hold, and what to call each.
        options: The only values that there are; None for any.
        notes: Keywords of the schema that only annotate.
        name: The name on the wire, if it is another one.
        header: What header repeats the value, if one does.
        factory: Makes the default that stands in a ``Field``; None without one.
        foreign: Something is left that only pydantic can enforce.
    """

    limits: dict[str, Any] = field(default_factory=dict[str, Any])
    more: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    predicates: list[tuple[Callable[[Any], Any], str]] = field(default_factory=list[tuple[Callable[[Any], Any], str]])
    options: list[Any] | None = None
    notes: dict[str, Any] = field(default_factory=dict[str, Any])
    name: str | None = None
    header: Header | None = None
    factory: Callable[[], Any] | None = None
    foreign: bool = False

    def limit(self, name: str, value: Any) -> None:
        """Add a limit; a second one of the same name does not replace the first.

        Raises:
            Unsupported: It is no regular expression where it must be one.
        """
        if name == "pattern":
            try:
                re.compile(value)
            except re.error as error:
                raise Unsupported(f"the pattern {value!r} is no regular expression: {error}") from None
        if self.limits.setdefault(name, value) != value:
            self.more.append((name, value))

    def meta(self) -> msgspec.Meta | None:
        """Limits and notes as msgspec takes them; None when it cannot."""
        if self.more or self.predicates:
            return None
        notes = dict(self.notes)
        own = {key: notes.pop(key) for key in ("title", "description", "examples") if key in notes}
        try:
            return msgspec.Meta(**self.limits, **own, extra_json_schema=notes or None)
        except (TypeError, ValueError):
            return None

    def checks(self) -> Iterator[Check]:
        """Every limit and predicate as a check of Python values."""
        for name, value in (*self.limits.items(), *self.more):
            yield limit_check(name, value)
        for function, words in self.predicates:
            yield Check(_predicate(function), f"that satisfies {words}", {}, f"Must satisfy {words}.")


_NO_RULES = Rules()
"""What stands beside most types; nobody adds to what `beside` returned."""


@dataclass(frozen=True, slots=True)
class Check:
    """One rule, for values that are Python's already.

    Args:
        holds: Whether a value keeps it.
        words: What follows the noun in a message.
        schema: How JSON Schema says it.
        note: How a description says what JSON Schema cannot.
        kind: ``number``, ``size``, ``text``, or empty for whatever type.
    """

    holds: Callable[[Any], bool]
    words: str
    schema: dict[str, Any]
    note: str = ""
    kind: str = ""


def read(metadata: Iterable[Any]) -> Rules:
    """Return the rules that stand beside a type; what is no rule (text, markers) is passed over.

    Raises:
        Unsupported: A rule that nothing would enforce.
    """
    found = Rules()
    for item in metadata:
        _read(item, found)
    return found


def beside(annotation: Any) -> Rules:
    """Return what stands beside the type of a parameter or field, also beside the only option but None.

    Of several options' rules only those are returned that are the field's and not the option's: name, header, default.

    Raises:
        Unsupported: A rule that nothing would enforce.
    """
    if isinstance(annotation, type):
        return _NO_RULES
    options = get_args(annotation) if is_union(annotation) else (annotation,)
    found = [read(metadata) for option in options if (metadata := getattr(option, "__metadata__", ()))]
    if len(found) == 1:
        return found[0]
    if not found:
        return _NO_RULES
    return Rules(
        name=next((rules.name for rules in found if rules.name is not None), None),
        header=next((rules.header for rules in found if rules.header is not None), None),
        factory=next((rules.factory for rules in found if rules.factory is not None), None),
    )


def is_field(value: Any) -> bool:
    """Whether this is what pydantic's ``Field()`` returns."""
    return type(value).__name__ == "FieldInfo" and _library(value) == "pydantic"


def _read(item: Any, found: Rules) -> None:
    if isinstance(item, msgspec.Meta):
        _read_meta(item, found)
    elif isinstance(item, Name):
        found.name = item.name
    elif isinstance(item, Header):
        found.header = item
    elif (reader := _BY_CLASS.get(type(item).__name__)) is not None and _library(item):
        reader(item, found)
    elif _library(item) == "annotated_types" or hasattr(item, "__is_annotated_types_grouped_metadata__"):
        _read_annotated_type(item, found)
    elif _library(item) or hasattr(item, "__get_pydantic_core_schema__"):
        found.foreign = True


def _library(item: Any) -> str:
    own = type(item).__module__.partition(".")[0]
    if own in _LIBRARIES:
        return own
    roots = [base.__module__.partition(".")[0] for base in type(item).__mro__]
    return next((root for root in roots if root in _LIBRARIES), "")


def _read_meta(item: msgspec.Meta, found: Rules) -> None:
    for name in _LIMITS:
        if (value := getattr(item, name)) is not None:
            found.limit(name, value)
    for name in ("title", "description", "examples"):
        if (value := getattr(item, name)) is not None:
            found.notes[name] = value
    found.notes.update(item.extra_json_schema or {})


def _read_field(item: Any, found: Rules) -> None:
    for part in item.metadata:
        _read(part, found)
    for name in _NOTES:
        if (value := getattr(item, name, None)) is not None:
            found.notes[name] = value if name != "deprecated" else bool(value)
    extra: Any = item.json_schema_extra
    if is_object(extra):
        found.notes.update(extra)
    found.foreign |= callable(extra) or item.discriminator is not None
    alias = item.validation_alias if item.validation_alias is not None else item.alias
    if alias is not None and not isinstance(alias, str):
        raise Unsupported(f"an alias of several names or a path ({alias!r}) is no name of one parameter")
    found.name = alias or found.name
    if item.default_factory is not None:
        found.factory = item.default_factory
    elif type(item.default).__name__ not in _NO_DEFAULT:
        default = item.default
        found.factory = lambda: default


def _read_string(item: Any, found: Rules) -> None:
    rewriting = ("strip_whitespace", "to_upper", "to_lower", "strict", "ascii_only")
    if any(getattr(item, name, None) for name in rewriting):
        found.foreign = True
        return
    for name in ("min_length", "max_length", "pattern"):
        if (value := getattr(item, name)) is not None:
            found.limit(name, getattr(value, "pattern", value))


def _read_general(item: Any, found: Rules) -> None:
    for name, value in dict[str, Any](item.__dict__).items():
        if name == "pattern":
            found.limit("pattern", getattr(value, "pattern", value))
        elif value is not None:
            found.foreign = True


_BY_CLASS: dict[str, Callable[[Any, Rules], None]] = {
    "FieldInfo": _read_field,
    "StringConstraints": _read_string,
    "_PydanticGeneralMetadata": _read_general,
}
"""pydantic's own."""


def _read_annotated_type(item: Any, found: Rules) -> None:
    kind = next((base.__name__ for base in type(item).__mro__ if base.__name__ in _READERS), "")
    if kind:
        _READERS[kind](item, found)
    elif hasattr(item, "__is_annotated_types_grouped_metadata__"):
        for part in item:
            _read(part, found)
    else:
        raise Unsupported(f"the constraint {item!r} of annotated_types is not known here")


def _read_timezone(item: Any, found: Rules) -> None:
    if item.tz is None or item.tz is ...:
        found.limit("tz", item.tz is ...)
        return
    wanted = item.tz
    found.predicates.append((lambda value: _same_zone(value, wanted), f"time zone {wanted}"))


def _same_zone(value: datetime.datetime, wanted: Any) -> bool:
    if isinstance(wanted, str):
        return str(value.tzinfo) == wanted or getattr(value.tzinfo, "key", None) == wanted
    return value.utcoffset() == wanted.utcoffset(value)


def _read_not(item: Any, found: Rules) -> None:
    inner = item.func
    found.predicates.append((lambda value: not inner(value), f"not {_function_name(inner)}"))


def _describe(found: Rules, text: str) -> None:
    found.notes.setdefault("description", text)


_READERS: dict[str, Callable[[Any, Rules], None]] = {
    "Gt": lambda item, found: found.limit("gt", item.gt),
    "Ge": lambda item, found: found.limit("ge", item.ge),
    "Lt": lambda item, found: found.limit("lt", item.lt),
    "Le": lambda item, found: found.limit("le", item.le),
    "MultipleOf": lambda item, found: found.limit("multiple_of", item.multiple_of),
    "MinLen": lambda item, found: found.limit("min_length", item.min_length),
    "MaxLen": lambda item, found: found.limit("max_length", item.max_length),
    "Timezone": _read_timezone,
    "Predicate": lambda item, found: found.predicates.append((item.func, _function_name(item.func))),
    "Not": _read_not,
    "Unit": lambda item, found: _describe(found, f"In {item.unit}."),
    "DocInfo": lambda item, found: _describe(found, item.documentation),
}


def _function_name(function: Any) -> str:
    name = getattr(function, "__name__", type(function).__name__)
    return "a condition of its own" if name == "<lambda>" else name


def _predicate(function: Callable[[Any], Any]) -> Callable[[Any], bool]:
    def holds(value: Any) -> bool:
        try:
            return bool(function(value))
        except Exception:
            return False

    return holds


_COMPARED: dict[str, tuple[Callable[[Any, Any], bool], str, str, str]] = {
    "gt": (lambda value, bound: value > bound, "> {}", "exclusiveMinimum", "Greater than {}."),
    "ge": (lambda value, bound: value >= bound, ">= {}", "minimum", "At least {}."),
    "lt": (lambda value, bound: value < bound, "< {}", "exclusiveMaximum", "Less than {}."),
    "le": (lambda value, bound: value <= bound, "<= {}", "maximum", "At most {}."),
    "multiple_of": (
        lambda value, bound: _divides(value, bound),
        "that is a multiple of {}",
        "multipleOf",
        "A multiple of {}.",
    ),
}
_IN_TIME = {"gt": "after {}", "ge": "not before {}", "lt": "before {}", "le": "not after {}"}
_SIZED: dict[str, tuple[str, Callable[[int, int], bool]]] = {
    "min_length": ("at least", lambda size, bound: size >= bound),
    "max_length": ("at most", lambda size, bound: size <= bound),
}


def limit_check(name: str, bound: Any) -> Check:
    """Return the check for one of msgspec's limits."""
    if name in _COMPARED:
        return _comparison(name, bound)
    if name in _SIZED:
        words, compare = _SIZED[name]
        return Check(lambda value: compare(len(value), bound), f"of {words} {bound}", {name: bound}, "", "size")
    if name == "pattern":
        found = re.compile(bound)
        words = f"that matches {bound}"
        return Check(lambda value: found.search(value) is not None, words, {"pattern": bound}, "", "text")
    words = "with a time zone" if bound else "without a time zone"
    return Check(lambda value: (value.tzinfo is not None) == bound, words, {}, words.capitalize() + ".")


def _comparison(name: str, bound: Any) -> Check:
    compare, words, keyword, note = _COMPARED[name]
    if isinstance(bound, int | float | decimal.Decimal) and not isinstance(bound, bool):
        schema = {keyword: _json_number(bound)}
        return Check(
            lambda value: compare(value, bound), words.format(bound), schema, note.format(bound), "number"
        )  # fmt: skip
    shown = bound.isoformat() if isinstance(bound, datetime.date | datetime.time) else str(bound)
    words = _IN_TIME.get(name, words).format(shown)
    return Check(lambda value: compare(value, bound), words, {}, words.capitalize() + ".", "number")


def _json_number(bound: Any) -> Any:
    if not isinstance(bound, decimal.Decimal):
        return bound
    return int(bound) if bound == bound.to_integral_value() else float(bound)


def _divides(value: Any, bound: Any) -> bool:
    if isinstance(value, float) or isinstance(bound, float):
        quotient = float(value) / float(bound)
        return math.isclose(quotient, round(quotient), rel_tol=1e-12, abs_tol=1e-12)
    return value % bound == 0
