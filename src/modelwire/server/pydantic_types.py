"""pydantic's types, converted by pydantic: models, its dataclasses, its annotations.

pydantic is never imported by name here: an annotation that is pydantic's has brought it, and it is found where Python
keeps what is loaded. It validates strictly; its JSON Schema says what may be coerced by our table, and its own
wording reaches nobody but through a user's validators.
"""

from __future__ import annotations

import re
import sys
import warnings
import weakref
from collections.abc import Mapping
from typing import Any

import msgspec

from modelwire.server import explain, schema_words
from modelwire.server.constraints import Unsupported
from modelwire.server.definitions import PREFIX, Definitions
from modelwire.server.json_values import copied, depth, is_list, is_object
from modelwire.server.nodes import Misfit, Node
from modelwire.server.pydantic_neutral import written_as_read
from modelwire.server.pydantic_schemas import CLOSED, closing, generator, marking
from modelwire.server.unknown_members import UnknownMembers
from modelwire.server.unsupported import of_pydantic

_EXPLAINED_DEPTH = 12
"""How deep a value may be for its faults to be listed, which may take twice as long with each level."""
_WANTED = frozenset({"boolean", "integer", "number", "array", "object"})


class Pydantic(Node):
    """A type that pydantic converts.

    Args:
        annotation: The type.
        names: Names that its forward references may use.
        closed: Refuse members that an object does not know, unless its class says otherwise.

    Raises:
        Unsupported: pydantic is not loaded, or refuses the type.
    """

    __slots__ = ("_adapter", "_closed", "_compiled", "_error", "_input", "_output", "_validators", "exact")

    def __init__(self, annotation: Any, names: Mapping[str, Any], *, closed: bool = False) -> None:
        pydantic: Any = sys.modules.get("pydantic")
        if pydantic is None:
            raise Unsupported(f"{annotation!r} is for pydantic, which is not installed")
        self.exact = annotation if isinstance(annotation, type) else None
        rebuild = getattr(annotation, "model_rebuild", None)
        try:
            with (
                warnings.catch_warnings()
            ):  # of an alias beside a type, say, which is the parameter's and not the type's
                warnings.simplefilter("ignore")
                if rebuild is not None and not _is_complete(annotation):
                    rebuild(raise_errors=True, _types_namespace=dict(names))
                self._compiled = _compiled(annotation)
                self._adapter, self._output = self._compiled.adapter, self._compiled.written
                self._input = self._compiled.taken(closed)
        except Exception as error:
            raise of_pydantic(annotation, error) from error
        self._closed = closed
        self._error: Any = pydantic.ValidationError
        self._validators: dict[bool, Any] = {}

    @property
    def wanted(self) -> frozenset[str]:
        return _kinds(self._input, self._input, 6) & _WANTED

    def read(self, raw: msgspec.Raw | bytes, path: str) -> Any:
        try:
            found = self._adapter.validate_json(bytes(raw), strict=True)
        except self._error:
            return self.load(msgspec.json.decode(raw), path)
        if self._closed:
            self._refuse_unknown(msgspec.json.decode(raw), path)
        return found

    def _refuse_unknown(self, value: Any, path: str) -> None:
        """Refuse members that pydantic passes over."""
        problems = UnknownMembers(self._input).clauses(value, path) if self._closed else []
        if problems:
            raise Misfit(problems, inside=True, matched=_known_members(self._input, value))

    def load(self, value: Any, path: str, lax: bool = False) -> Any:
        if lax:
            value = _integral(self._input, self._input, value)
        text = msgspec.json.encode(value)
        try:
            found = self._adapter.validate_json(text, strict=True)
        except self._error:
            pass
        else:
            self._refuse_unknown(value, path)
            return found
        problems = self._problems(value, path, output=False)
        if not problems:  # what the schema allows is taken: a field that is not strict about its text, say
            try:
                return self._adapter.validate_json(text)
            except self._error as error:
                problems = _told(error, value, path)
        raise Misfit(problems, inside=_fits_kind(self._input, value), matched=_known_members(self._input, value))

    def dump(self, value: Any, path: str) -> Any:
        try:
            plain = self._plain(value)
        except Exception:
            self.foreign(value, path)
        if problems := self._problems(plain, path, output=True):
            raise Misfit(problems)
        return plain

    def _plain(self, value: Any) -> Any:
        if self.exact is None or isinstance(value, self.exact):
            try:
                return self._adapter.dump_python(value, mode="json", by_alias=True, warnings="error")
            except Exception:
                if self.exact is not None:
                    raise
        checked = self.load(msgspec.to_builtins(value, str_keys=True), "")  # a dict may stand for a model
        return self._adapter.dump_python(checked, mode="json", by_alias=True, warnings="error")

    def _problems(self, value: Any, path: str, *, output: bool) -> list[str]:
        schema = self._output if output else self._input
        if output not in self._validators:
            import jsonschema_rs

            self._validators[output] = jsonschema_rs.Draft202012Validator(schema, offline=True, validate_formats=False)
        validator = self._validators[output]
        try:
            if validator.is_valid(value):
                return []
        except UnicodeEncodeError:
            return []  # a lone surrogate; said where the result is encoded
        if depth(value, _EXPLAINED_DEPTH) > _EXPLAINED_DEPTH:
            return [f"{path}: something inside it does not fit; it is nested too deeply to say what"]
        return schema_words.clauses(schema, validator.iter_errors(value), path)

    def schema(self, defs: Definitions) -> dict[str, Any]:
        whole = copied(self._output if defs.output else self._input)  # a schema is its tool's own
        components = whole.pop("$defs", {})
        return defs.merge(whole, components)

    def constants(self) -> dict[str, Any]:
        return schema_words.constants(self._input, self._input)

    def expected(self) -> str:
        return schema_words.noun(self._input, self._input)


def _is_complete(annotation: Any) -> bool:
    """Say whether it is a class that pydantic has made up its mind about: whoever names it, it is the same."""
    return isinstance(annotation, type) and getattr(annotation, "__pydantic_complete__", False) is True


class _Compiled:
    """What validates a type, and its schemas, which nobody changes."""

    __slots__ = ("__weakref__", "_marked", "_taken", "adapter", "written")

    def __init__(self, annotation: Any) -> None:
        self.adapter: Any = sys.modules["pydantic"].TypeAdapter(annotation)
        self._taken: dict[bool, dict[str, Any]] = {}
        self._marked: dict[str, Any] | None = None
        if written_as_read(self.adapter.core_schema):
            self._marked = _generated(self.adapter, "validation", marking())
            self.written = self.taken(False)
        else:
            self.written = _tidied(_generated(self.adapter, "serialization", generator()), closed=False)

    def taken(self, closed: bool) -> dict[str, Any]:
        if closed not in self._taken:
            found = self._marked
            if found is None:
                found = _generated(self.adapter, "validation", closing() if closed else generator())
            self._taken[closed] = _tidied(found, closed=closed)
        return self._taken[closed]


_COMPILED: weakref.WeakValueDictionary[int, _Compiled] = weakref.WeakValueDictionary()
"""What the tools of this moment have, by the class's id: each takes a good part of a millisecond to make, and a
program's tools take and return the same models again and again. It holds its class, and nothing else holds it but the
tools, so that an id never stands for another class."""


def _compiled(annotation: Any) -> _Compiled:
    if not _is_complete(annotation):
        return _Compiled(annotation)
    found = _COMPILED.get(id(annotation))
    if found is None:
        found = _COMPILED[id(annotation)] = _Compiled(annotation)
    return found


def _generated(adapter: Any, mode: str, kind: Any) -> dict[str, Any]:
    return adapter.json_schema(by_alias=True, mode=mode, ref_template=PREFIX + "{model}", schema_generator=kind)


def _tidied(found: dict[str, Any], *, closed: bool) -> dict[str, Any]:
    """The schema as it is shown, without its titles and with what stands for `CLOSED`."""
    components = {name: _without_titles(schema, name, closed) for name, schema in found.get("$defs", {}).items()}
    whole = {key: value for key, value in found.items() if key != "$defs"}
    root = _without_titles(whole, found.get("title", ""), closed)
    return {**root, "$defs": components} if components else root


def _without_titles(schema: Any, own: str, closed: bool) -> Any:
    """Drop the titles that pydantic makes of names; a title that was given by hand differs from them."""
    if is_list(schema):
        return [_without_titles(item, "", closed) for item in schema]
    if not is_object(schema):
        return schema
    found: dict[str, Any] = schema
    kept: dict[str, Any] = {}
    for key, value in found.items():
        if key == "title" and _made_of(value, own):
            continue
        if key in ("properties", "$defs", "patternProperties") and is_object(value):
            kept[key] = {name: _without_titles(item, name, closed) for name, item in value.items()}
        elif value is CLOSED:
            kept.update({key: False} if closed else {})
        elif key in ("default", "examples", "enum", "const"):
            kept[key] = value
        else:
            kept[key] = _without_titles(value, "", closed)
    return kept


def _made_of(title: Any, name: str) -> bool:
    if not isinstance(title, str) or not name:
        return False
    if title.replace(" ", "_").lower() == name:  # as pydantic makes most of them
        return True
    plain = "".join(character for character in name if character.isalnum()).lower()
    return "".join(character for character in title if character.isalnum()).lower() == plain


def _kinds(root: Any, schema: Any, levels: int) -> frozenset[str]:
    """The kinds of JSON value that a schema takes."""
    if not levels or not is_object(schema):
        return frozenset()
    found: dict[str, Any] = schema
    if "$ref" in found:
        return _kinds(root, schema_words.resolve(root, found["$ref"]), levels - 1)
    options: list[Any] = found.get("anyOf") or found.get("oneOf") or []
    kinds = found.get("type", [])
    here = frozenset([kinds] if isinstance(kinds, str) else kinds)
    return here.union(*(_kinds(root, option, levels - 1) for option in options))


def _fits_kind(schema: Any, value: Any) -> bool:
    kinds = _kinds(schema, schema, 6)
    return (is_object(value) and "object" in kinds) or (is_list(value) and "array" in kinds)


def _known_members(schema: Any, value: Any) -> int:
    target = schema_words.resolve(schema, schema["$ref"]) if "$ref" in schema else schema
    return sum(name in value for name in target.get("properties", ())) if is_object(value) else 0


def _integral(root: Any, schema: Any, value: Any, levels: int = 64) -> Any:
    """Replace floats without a fraction by integers, where the schema wants integers."""
    if not is_object(schema) or not levels:
        return value
    found: dict[str, Any] = schema
    if "$ref" in found:
        return _integral(root, schema_words.resolve(root, found["$ref"]), value, levels - 1)
    options: list[Any] = found.get("anyOf") or found.get("oneOf") or []
    for option in options:
        value = _integral(root, option, value, levels - 1)
    if type(value) is float:
        return int(value) if found.get("type") == "integer" and value.is_integer() else value
    if is_list(value):
        return [_integral(root, found.get("items"), item, levels - 1) for item in value]
    if is_object(value):
        properties, other = found.get("properties", {}), found.get("additionalProperties")
        return {key: _integral(root, properties.get(key, other), item, levels - 1) for key, item in value.items()}
    return value


def _told(error: Any, value: Any, path: str) -> list[str]:
    """What a user's validators said, and where; pydantic's own words are replaced."""
    problems: list[str] = []
    for fault in error.errors(include_url=False):
        place, item = _located(path, value, fault["loc"])
        context = fault.get("ctx", {})
        wanted = next((words for start, words in _WANTED_BY.items() if fault["type"].startswith(start)), "")
        said = str(context.get("error", "")) if fault["type"] in _BY_USER else ""
        if said and not explain.repeats_secret(said, value, place):
            problems.append(f"{place}: {said}")
        elif wanted:
            wanted = wanted.replace("a value", _noun(item), 1)
            problems.append(f"{place}: expected {wanted.format(**context)}, got {explain.shown(item, place)}")
        else:
            problems.append(f"{place}: {explain.shown(item, place)} is not accepted here")
    return list(dict.fromkeys(problems))


def _noun(value: Any) -> str:
    """What to call values that are compared, by one that was of their type."""
    if isinstance(value, str):
        return next((noun for pattern, noun in _NOUNS if pattern.match(value)), "a value")
    return "an integer" if isinstance(value, int) else "a number" if isinstance(value, float) else "a value"


_NOUNS = tuple(
    (re.compile(pattern), noun)
    for pattern, noun in (
        (r"[-+]?[\d.]+(?:[eE][-+]?\d+)?$", 'a decimal number such as "12.50"'),
        (r"\d{4}-\d\d-\d\d$", 'a date such as "2026-01-31"'),
        (r"\d{4}-\d\d-\d\d[T ]", 'a date and time such as "2026-01-31T09:30:00Z"'),
        (r"\d\d:\d\d", 'a time such as "09:30:00"'),
        (r"[-+]?P", 'a duration such as "PT1H30M"'),
    )
)
_BY_USER = ("value_error", "assertion_error")
_WANTED_BY = {
    "string_too_short": "text of at least {min_length} characters",
    "string_too_long": "text of at most {max_length} characters",
    "string_pattern_mismatch": "text that matches {pattern}",
    "url_scheme": "a URL that begins with {expected_schemes}",
    "url_": 'a URL such as "https://example.com/"',
    "uuid_": 'a UUID such as "3f2b8a52-6c1d-4e8e-9d2a-0c5b7f9e1a64"',
    "datetime_past": "a date and time in the past",
    "datetime_future": "a date and time in the future",
    "datetime_": 'a date and time such as "2026-01-31T09:30:00Z"',
    "date_past": "a date in the past",
    "date_future": "a date in the future",
    "date_": 'a date such as "2026-01-31"',
    "timezone_naive": "a date and time without a time zone",
    "timezone_": "a date and time with a time zone",
    "time_delta_": 'a duration such as "PT1H30M"',
    "time_": 'a time such as "09:30:00"',
    "decimal_": 'a decimal number such as "12.50"',
    "greater_than_equal": "a value >= {ge}",
    "greater_than": "a value > {gt}",
    "less_than_equal": "a value <= {le}",
    "less_than": "a value < {lt}",
    "multiple_of": "a value that is a multiple of {multiple_of}",
    "predicate_failed": "a value that satisfies a condition of its own",
    "too_short": "at least {min_length} items",
    "too_long": "at most {max_length} items",
    "path_not_file": "the path of a file",
    "path_not_directory": "the path of a directory",
    "json_": "JSON as text",
    "bytes_": "text of bytes in UTF-8",
}
"""By the beginning of pydantic's name for an error, the more particular first."""


def _located(path: str, value: Any, steps: tuple[Any, ...]) -> tuple[str, Any]:
    """Follow pydantic's location, whose steps also name the members of unions."""
    for step in steps:
        if is_object(value) and step in value:
            path, value = f"{path}.{str(step)[:60]}", value[step]
        elif is_list(value) and isinstance(step, int) and step < len(value):
            path, value = f"{path}[{step}]", value[step]
    return path, value
