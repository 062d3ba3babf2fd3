"""What a JSON Schema validator found, in words that a model can act on.

Says where, what was expected and what came, as `modelwire.server.explain` does for types; never the validator's own
wording, and no value whose place has a name that smells of a secret.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import unquote

from modelwire.server import explain
from modelwire.server.json_values import is_list, is_object

Schema = Any

_NOUNS = {
    "string": "text",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
}
_FORMATS = {
    "date-time": 'a date and time such as "2026-01-31T09:30:00Z"',
    "date": 'a date such as "2026-01-31"',
    "time": 'a time such as "09:30:00"',
    "duration": 'a duration such as "PT1H30M"',
    "uuid": 'a UUID such as "3f2b8a52-6c1d-4e8e-9d2a-0c5b7f9e1a64"',
    "uri": 'a URL such as "https://example.com/"',
    "email": 'an e-mail address such as "name@example.com"',
    "ipv4": 'an IPv4 address such as "192.0.2.1"',
    "ipv6": 'an IPv6 address such as "2001:db8::1"',
}
_LIMITS = {
    "Minimum": ("minimum", "number"),
    "ExclusiveMinimum": ("exclusiveMinimum", "number"),
    "Maximum": ("maximum", "number"),
    "ExclusiveMaximum": ("exclusiveMaximum", "number"),
    "MultipleOf": ("multipleOf", "number"),
    "MinLength": ("minLength", "string"),
    "MaxLength": ("maxLength", "string"),
    "Pattern": ("pattern", "string"),
    "MinItems": ("minItems", "array"),
    "MaxItems": ("maxItems", "array"),
    "AdditionalItems": ("maxItems", "array"),
    "MinProperties": ("minProperties", "object"),
    "MaxProperties": ("maxProperties", "object"),
}
"""The validator's names for faults, the keyword that each breaks, and the kind of value that it is about."""
_NAMES = {
    "number": {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum",
               "multiple_of": "multipleOf"},
    "string": {"min_length": "minLength", "max_length": "maxLength", "pattern": "pattern"},
    "array": {"min_length": "minItems", "max_length": "maxItems"},
    "object": {"min_length": "minProperties", "max_length": "maxProperties"},
}  # fmt: skip
_UNITS = {"array": "items", "object": "members"}


def clauses(root: Schema, errors: Iterable[Any], path: str = "") -> list[str]:
    """Return one clause per fault.

    Args:
        root: The whole schema.
        errors: What the validator found.
        path: What to call the value; empty for arguments, whose members are called by their names alone.
    """
    return list(dict.fromkeys(clause for error in errors for clause in _clauses(root, error, path)))


def _clauses(root: Schema, error: Any, path: str) -> Iterator[str]:
    kind = type(error.kind).__name__
    place = _place(path, error.instance_path)
    if kind in _SPECIAL:
        yield from _SPECIAL[kind](root, error, place, path)
        return
    yield f"{place or 'arguments'}: expected {_wanted(root, error)}, got {explain.shown(error.instance, place)}"


def _wanted(root: Schema, error: Any) -> str:
    kind = type(error.kind).__name__
    if kind in _LIMITS:
        return _limited(root, error, *_LIMITS[kind])
    return _WANTED[kind](error.kind) if kind in _WANTED else "another value"


def _limited(root: Schema, error: Any, keyword: str, about: str) -> str:
    """All limits of the kind that the schema has, in the words that types have for them."""
    schema = _at(root, error.schema_path[:-1])
    found = dict(schema) if is_object(schema) else {}
    found.setdefault(keyword, getattr(error.kind, "value", getattr(error.kind, "limit", None)))
    kind = "integer" if about == "number" and found.get("type") == "integer" else about
    said = explain.limits(lambda name: found.get(_NAMES[about].get(name, "")), _UNITS.get(about, "characters"))
    return _NOUNS[kind] + said


def _null_last(kinds: Iterable[str]) -> list[str]:
    return sorted(kinds, key=lambda kind: kind == "null")


_WANTED: dict[str, Callable[[Any], str]] = {
    "Type": lambda kind: " or ".join(_NOUNS.get(str(name), str(name)) for name in _null_last(kind.types)),
    "Enum": lambda kind: explain.one_of(kind.options),
    "Constant": lambda kind: explain.one_of([kind.expected_value]),
    "Format": lambda kind: _FORMATS.get(kind.format, f"text in the format {kind.format}"),
    "UniqueItems": lambda kind: "a list without an item twice",
    "Contains": lambda kind: "a list with a fitting item in it",
    "OneOfMultipleValid": lambda kind: "a value that fits one of several forms, and not more of them",
    "FalseSchema": lambda kind: "nothing",
}


def _required(root: Schema, error: Any, place: str, path: str) -> Iterator[str]:
    del path
    name: str = error.kind.property
    properties = _at(root, error.schema_path[:-1]).get("properties", {})
    wanted = f"; expected {noun(root, properties[name])}" if name in properties else ""
    yield f"{_joined(place, name)}: missing{wanted}"


def _unexpected(root: Schema, error: Any, place: str, path: str) -> Iterator[str]:
    del path
    known = list(_at(root, error.schema_path[:-1]).get("properties", {}))
    for name in error.kind.unexpected:
        yield explain.unknown_member(place, name, known) if place else explain.unknown_argument(name, known)


def _alternatives(root: Schema, error: Any, place: str, path: str) -> Iterator[str]:
    """The faults of the form that the value says it has, or is nearest to: those that lie inside it, and the fewest."""
    keyword = error.schema_path[-1]
    options: list[Any] = _at(root, error.schema_path[:-1]).get(keyword, [])
    objects = [index for index, option in enumerate(options) if _may_be_object(root, option)]
    name, tags = telling({index: constants(root, options[index]) for index in objects})
    if name and is_object(error.instance):
        own = said_to_be(error.instance, name, tags)
        if own is not None:
            yield from clauses(root, error.kind.context[own], path)
        else:
            yield untold(error.instance, name, tags, place)
        return
    depth = len(error.instance_path)
    inside = [branch for branch in error.kind.context if all(_is_inside(fault, depth) for fault in branch)]
    inside.sort(key=len)
    if inside and (len(inside) == 1 or len(inside[0]) < len(inside[1])):
        yield from clauses(root, inside[0], path)
        return
    wanted = " or ".join(dict.fromkeys(noun(root, option) for option in options)) or "another value"
    yield f"{place or 'arguments'}: expected {wanted}, got {explain.shown(error.instance, place)}"


_NOTHING: Any = object()


def constants(root: Schema, schema: Schema) -> dict[str, Any]:
    """Return the members of an object that may have one value only, with that; none where it is no object."""
    form = resolve(root, schema["$ref"]) if is_object(schema) and "$ref" in schema else schema
    properties: dict[str, Any] = form.get("properties", {}) if is_object(form) else {}
    found: dict[str, Any] = {}
    for name, member in properties.items():
        values: Any = [member["const"]] if "const" in member else member.get("enum", ()) if is_object(member) else ()
        if is_list(values) and len(values) == 1:
            found[name] = values[0]
    return found


def _may_be_object(root: Schema, schema: Schema) -> bool:
    form = resolve(root, schema["$ref"]) if is_object(schema) and "$ref" in schema else schema
    return not is_object(form) or "object" in form.get("type", "object")


def telling(found: dict[int, dict[str, Any]]) -> tuple[str, dict[int, Any]]:
    """Return the member that tells several forms of an object from each other, and its value in each; "" without one.

    Args:
        found: What `constants` returned for each form that is an object.
    """
    for name in next(iter(found.values()), ()) if len(found) > 1 else ():
        tags = {index: members.get(name, _NOTHING) for index, members in found.items()}
        different = {f"{type(tag).__name__} {tag}" for tag in tags.values()}
        if len(different) == len(tags) and _NOTHING not in tags.values():
            return name, tags
    return "", {}


def said_to_be(value: dict[str, Any], name: str, tags: dict[int, Any]) -> int | None:
    """Return which form an object says that it has; None where it says another one, or nothing."""
    said = value.get(name, _NOTHING)
    return next((index for index, tag in tags.items() if type(tag) is type(said) and tag == said), None)


def untold(value: dict[str, Any], name: str, tags: dict[int, Any], place: str) -> str:
    """Say of an object that it does not say which form it has."""
    where, wanted = _joined(place, name), f"expected {explain.one_of(list(tags.values()))}"
    return (
        f"{where}: {wanted}, got {explain.shown(value[name], where)}"
        if name in value
        else f"{where}: missing; {wanted}"
    )


def _is_inside(error: Any, depth: int) -> bool:
    return len(error.instance_path) > depth or type(error.kind).__name__ in ("Required", "AdditionalProperties")


def _names(root: Schema, error: Any, place: str, path: str) -> Iterator[str]:
    del root, path
    inner = error.kind.error
    shown = explain.shown(inner.instance, place)
    yield f"a member name of {place or 'arguments'}: expected {_wanted({}, inner)}, got {shown}"


_SPECIAL: dict[str, Callable[[Schema, Any, str, str], Iterator[str]]] = {
    "Required": _required,
    "AdditionalProperties": _unexpected,
    "UnevaluatedProperties": _unexpected,
    "AnyOf": _alternatives,
    "OneOfNotValid": _alternatives,
    "PropertyNames": _names,
}


def noun(root: Schema, schema: Schema, depth: int = 4) -> str:
    """Say what values of a schema are, as a noun phrase."""
    if not is_object(schema):
        return "any JSON value"
    found: dict[str, Any] = schema
    if "$ref" in found and depth:
        return noun(root, resolve(root, found["$ref"]), depth - 1)
    for keyword in ("enum", "const"):
        if keyword in found:
            return explain.one_of(found["enum"] if keyword == "enum" else [found["const"]])
    options = found.get("anyOf") or found.get("oneOf")
    if options and depth:
        return " or ".join(dict.fromkeys(noun(root, option, depth - 1) for option in options))
    if found.get("format") in _FORMATS:
        return _FORMATS[found["format"]]
    kinds = found.get("type", "any JSON value")
    text = " or ".join(_NOUNS.get(kind, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds))
    names: list[str] = found.get("required", []) if kinds == "object" else []
    return f"{text} with {', '.join(names[:5])}" if names else text


def resolve(root: Schema, reference: str) -> Schema:
    """Return what a reference within the schema points to; an empty schema when that is nothing."""
    if not reference.startswith("#/"):
        return root if reference == "#" else {}
    steps = [unquote(step).replace("~1", "/").replace("~0", "~") for step in reference[2:].split("/")]
    return _at(root, steps)


def _at(root: Schema, steps: Iterable[str | int]) -> Any:
    """What stands somewhere in a schema; an empty schema when nothing does."""
    found: Any = root
    for step in steps:
        if is_list(found) and str(step).isdigit() and int(step) < len(found):
            found = found[int(step)]
        elif is_object(found) and step in found:
            found = found[step]
        else:
            return {}
    return found if is_object(found) or is_list(found) else {}


def _place(path: str, steps: Iterable[str | int]) -> str:
    for step in steps:
        path = f"{path}[{step}]" if isinstance(step, int) else _joined(path, step)
    return path


def _joined(path: str, name: str) -> str:
    return f"{path}.{name[:60]}" if path else name[:60]
