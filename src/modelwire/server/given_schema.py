"""JSON Schemas given by hand: compiled once, checked for what could hurt, and used to validate arguments and results.

"Implementations MUST NOT automatically dereference `$ref` values that are not same-document" - nothing is fetched
here, from wherever. A schema that is deep, large, or grows without bound along its references is refused when it is
registered, since validating by it could take minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urljoin

import msgspec

from modelwire.errors import ConfigError
from modelwire.rules.param_headers import MAX_INTEGER, InvalidParamHeader, is_unsafe, param_headers, value_at
from modelwire.server import explain, schema_words
from modelwire.server.arguments import Argument, ArgumentErrors, binder, few, not_an_object
from modelwire.server.json_values import depth, is_list, is_object, members_of
from modelwire.server.results import ResultError

DIALECT = "https://json-schema.org/draft/2020-12/schema"
MAX_DEPTH = 64
"""Objects and lists within each other."""
MAX_SIZE = 1 << 20
"""Bytes of the schema as JSON."""
MAX_NODES = 20_000
"""Schemas that one value may have to be held against, each reference counted as what it refers to."""
MAX_CHAIN = 200
"""References and schemas that may lead from one to the next."""
EXPLAINED_DEPTH = 8
"""How deep a value may be for its faults to be looked for one by one, where the schema refers to itself: the validator
answers yes or no in no time, but lists faults in a time that may double with each level."""
BACKTRACK_LIMIT = 100_000
"""Steps back that matching one pattern may take."""

_IN_PLACE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas")
_DEEPER = (
    "properties", "patternProperties", "additionalProperties", "propertyNames", "unevaluatedProperties",
    "items", "prefixItems", "unevaluatedItems", "contains",
)  # fmt: skip
_MAPS = ("dependentSchemas", "properties", "patternProperties")


class GivenSchema:
    """A schema, compiled.

    Args:
        schema: The schema: a JSON object, or a boolean.
        what: What it is of, for messages.

    Raises:
        ConfigError: It is no JSON Schema 2020-12, refers to something outside itself, or is too large.
    """

    __slots__ = ("_recursive", "_validator", "schema")

    def __init__(self, schema: Any, what: str) -> None:
        import jsonschema_rs

        self._recursive = _refuse_costly(schema, what)
        try:
            self._validator = jsonschema_rs.Draft202012Validator(
                schema,
                offline=True,
                validate_formats=False,  # in 2020-12 a format only annotates, and clients differ
                pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACK_LIMIT),
            )
        except ValueError as error:
            raise ConfigError(f"{what} is no valid JSON Schema 2020-12{_told(schema, error)}") from None
        self.schema: Any = schema

    def problems(self, value: Any, path: str = "") -> list[str]:
        """Return one clause per fault of a value; none when it is valid.

        Args:
            value: Decoded JSON.
            path: What to call the value; empty for arguments.
        """
        if self._validator.is_valid(value):
            return []
        if self._recursive and depth(value, EXPLAINED_DEPTH) > EXPLAINED_DEPTH:
            return self._deep_problems(value, path)
        return schema_words.clauses(self.schema, self._validator.iter_errors(value), path)

    def _deep_problems(self, value: Any, path: str) -> list[str]:
        """Which members do not fit, without a word on where inside."""
        import jsonschema_rs

        found: list[str] = []
        properties: dict[str, Any] = self.schema.get("properties", {}) if is_object(self.schema) else {}
        for name in properties.keys() & value.keys() if is_object(value) else ():
            alone: dict[str, Any] = {**self.schema, "required": [], "properties": {name: properties[name]}}
            if not jsonschema_rs.Draft202012Validator(alone, offline=True).is_valid({name: value[name]}):
                place = f"{path}.{name}" if path else name
                found.append(f"{place}: something inside it does not fit; it is nested too deeply to say what")
        return sorted(found) or [f"{path or 'arguments'}: nested too deeply to say what does not fit"]


def argument_validator(name: str, schema: dict[str, Any]) -> Callable[[Mapping[str, Any]], None]:
    """Compile a schema given by hand into a check of arguments, which raises `ArgumentErrors`.

    Args:
        name: The tool.
        schema: Its ``inputSchema``.

    Raises:
        ConfigError: The schema is not JSON Schema 2020-12, not one of an object, or too large to be safe; or one of its
            ``x-mcp-header`` breaks a rule.
    """
    what = f"tool {name!r}: inputSchema"
    _refuse_kind(schema, what)
    if schema.get("type") != "object":
        raise ConfigError(f'{what} needs "type": "object"')
    _refuse_dialect(schema, what)
    if set(schema) <= {"type", "$schema"}:
        return lambda arguments: None
    given = GivenSchema(schema, what)
    try:
        mirrored = list(param_headers(schema).values())
    except InvalidParamHeader as error:
        raise ConfigError(f"{what}: {error}") from None

    def check(arguments: Mapping[str, Any]) -> None:
        problems = given.problems(arguments) or [
            f"{'.'.join(path)}: expected an integer from {-MAX_INTEGER} to {MAX_INTEGER}"
            for path in mirrored
            if is_unsafe(value_at(arguments, path))
        ]
        if problems:
            raise ArgumentErrors(name, problems)

    return check


def result_validator(name: str, schema: Any) -> Callable[[bytes | msgspec.Raw], None]:
    """Compile a schema given by hand into a check of results, as JSON, which raises `ResultError`.

    Args:
        name: The tool.
        schema: Its ``outputSchema``.

    Raises:
        ConfigError: The schema is no JSON Schema 2020-12 as an object, or too large to be safe.
    """
    what = f"tool {name!r}: outputSchema"
    _refuse_kind(schema, what)
    given = GivenSchema(schema, what)

    def check(encoded: bytes | msgspec.Raw) -> None:
        if problems := given.problems(msgspec.json.decode(encoded), "result"):
            raise ResultError(f"{name} returned what its outputSchema does not allow: {'; '.join(few(problems))}")

    return check


class GivenBinder:
    """Binds arguments whose schema was given by hand to a function's parameters.

    Args:
        name: The tool.
        arguments: The parameters that have names, the positional ones first.
        schema: The schema.
        rest: The name of ``**kwargs``, which take what no parameter does; empty without.
        rows: The name of ``*args``, which take the list of that name; empty without.

    Raises:
        ConfigError: The schema is not one that `argument_validator` takes.
    """

    def __init__(
        self, name: str, arguments: Sequence[Argument], schema: dict[str, Any], *, rest: str, rows: str
    ) -> None:
        self._name = name
        self._validate = argument_validator(name, schema)
        self._binder = binder(name, arguments)
        self._known = {argument.name for argument in arguments}
        self._rest = rest
        self._rows = rows

    def bind(
        self, raw: msgspec.Raw | bytes | None, positional: int, keywords: Sequence[str]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Return what to call the function with.

        Args:
            raw: The JSON object of the call; None is an empty one.
            positional: How many parameters are passed by position.
            keywords: What the function calls the others.

        Raises:
            ArgumentErrors: Something does not fit; all faults at once.
            RpcError: They are no object.
        """
        given = decoded(self._name, raw)
        self._validate(given)
        rows: Any = given.pop(self._rows, []) if self._rows and self._rows not in self._known else []
        if not is_list(rows):
            raise ArgumentErrors(self._name, [f"{self._rows}: expected a list"])
        rest = {name: given.pop(name) for name in list(given) if name not in self._known} if self._rest else {}
        values = self._binder.values(msgspec.json.encode(given))
        by_name = dict(zip(keywords, values[positional:], strict=True))
        return [*values[:positional], *rows], {**rest, **by_name}


def decoded(name: str, raw: msgspec.Raw | bytes | None) -> dict[str, Any]:
    """Return the arguments of a call as they came.

    Raises:
        ArgumentErrors: They are no JSON.
        RpcError: They are no object.
    """
    try:
        found: Any = msgspec.json.decode(b"{}" if raw is None else raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise ArgumentErrors(name, ["the arguments are JSON that cannot be read"]) from None
    if found is None:
        return {}
    if not is_object(found):
        raise not_an_object(b"" if raw is None else raw)
    return found


def _told(schema: Any, error: ValueError) -> str:
    """Where the fault is, in words for people who wrote the schema."""
    if type(getattr(error, "kind", None)).__name__ == "Referencing":
        outside = [reference for reference in _references(schema) if not reference.startswith("#")]
        which = f" {outside[0]!r}" if outside else ""
        return f": its `$ref`{which} points to nothing within the schema, and nothing is fetched from elsewhere"
    place = "/".join(str(step) for step in getattr(error, "instance_path", ()))
    return f": {explain.shown(getattr(error, 'instance', None), '')} may not stand at #/{place}"


def _references(schema: Any) -> Iterator[str]:
    for item in members_of(schema):
        yield from _references(item)
    if is_object(schema):
        yield from (schema[word] for word in ("$ref", "$dynamicRef") if isinstance(schema.get(word), str))


def _refuse_kind(schema: Any, what: str) -> None:
    if not is_object(schema):
        raise ConfigError(f"{what} must be a JSON Schema as a dict, not a {type(schema).__name__}")
    if not isinstance(schema.get("$schema", ""), str):
        raise ConfigError(f"{what} has a $schema that is no text, but {explain.shown(schema['$schema'], '')}")


def _refuse_dialect(schema: Any, what: str) -> None:
    dialect = schema.get("$schema") if is_object(schema) else None
    if isinstance(dialect, str) and dialect.rstrip("#") != DIALECT:
        raise ConfigError(f"{what} is written in {dialect}, but only JSON Schema 2020-12 ({DIALECT}) is supported")


def _refuse_names(schema: Any, what: str) -> None:
    """Refuse what would become text on the wire, and is no name here."""
    if is_object(schema):
        for name in schema:
            if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance] - a dict of any keys came
                raise ConfigError(f"{what} has a member called {name!r}; names are text")
    for item in members_of(schema):
        _refuse_names(item, what)


def _refuse_costly(schema: Any, what: str) -> bool:
    """Refuse what would cost too much; return whether the schema refers to itself."""
    if depth(schema, MAX_DEPTH) > MAX_DEPTH:
        raise ConfigError(f"{what} is nested deeper than {MAX_DEPTH}")
    try:
        size = len(msgspec.json.encode(schema))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise ConfigError(f"{what} is no JSON: {error}") from None
    _refuse_names(schema, what)
    if size > MAX_SIZE:
        raise ConfigError(f"{what} has {size} bytes, and may have {MAX_SIZE}")
    return _Cost(schema, what).check()


class _Cost:
    """How many schemas a value may have to be held against."""

    def __init__(self, root: Any, what: str) -> None:
        self._root = root
        self._what = what
        self._known: dict[int, int] = {}
        self._open: dict[int, int] = {}
        self._anchors: dict[str, Any] = {}
        self._documents: dict[str, Any] = {"": root}
        """What has an ``$id``, by that."""
        self._bases: dict[int, str] = {}
        """The ``$id`` that the references of each schema are relative to; none is kept of those without."""
        self._recursive = False
        self._collect(root, "")

    def check(self) -> bool:
        """Refuse a schema that costs too much; return whether it refers to itself."""
        try:
            count = self._count(self._root, 0)
        except RecursionError:
            raise self._chained() from None
        if count > MAX_NODES:
            raise ConfigError(
                f"{self._what} comes to more than {MAX_NODES} schemas once its references are followed; "
                "validating by it could take minutes"
            )
        return self._recursive

    def _collect(self, schema: Any, base: str) -> None:
        if is_list(schema):
            for item in schema:
                self._collect(item, base)
        elif is_object(schema):
            found: dict[str, Any] = schema
            _refuse_dialect(found, self._what)
            base = self._note_names(found, base)
            for item in found.values():
                self._collect(item, base)

    def _note_names(self, schema: dict[str, Any], base: str) -> str:
        """Note what a schema can be referred to by; return what the references in it are relative to."""
        if isinstance(schema.get("$id"), str):
            base = _absolute(base, schema["$id"]).removesuffix("#")
            self._documents[base] = schema
        if base:
            self._bases[id(schema)] = base
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(schema.get(keyword), str):
                self._anchors[f"{base}#{schema[keyword]}"] = schema
        return base

    def _count(self, schema: Any, level: int) -> int:
        """Count a schema; ``level`` is how far into the value it looks."""
        if not is_object(schema):
            return 1
        found: dict[str, Any] = schema
        key = id(found)
        if key in self._open:
            if self._open[key] == level:
                raise ConfigError(f"{self._what} refers to itself without looking deeper into the value: it has no end")
            self._recursive = True
            return 1
        if len(self._open) > MAX_CHAIN:
            raise self._chained()
        if key not in self._known:
            self._open[key] = level
            total = 1 + sum(self._count(item, level) for item in self._in_place(found))
            total += sum(self._count(item, level + 1) for item in _members(found, _DEEPER))
            del self._open[key]
            self._known[key] = total
        return self._known[key]

    def _chained(self) -> ConfigError:
        return ConfigError(f"{self._what} has more than {MAX_CHAIN} schemas that lead from one to the next")

    def _in_place(self, schema: dict[str, Any]) -> list[Any]:
        found = _members(schema, _IN_PLACE)
        for keyword in ("$ref", "$dynamicRef"):
            reference = schema.get(keyword)
            if isinstance(reference, str):
                found.append(self._target(self._bases.get(id(schema), ""), reference))
        return found

    def _target(self, base: str, reference: str) -> Any:
        absolute = _absolute(base, reference)
        if absolute in self._anchors:
            return self._anchors[absolute]
        document, _, pointer = absolute.partition("#")
        return schema_words.resolve(self._documents.get(document, {}), f"#{pointer}")


def _absolute(base: str, reference: str) -> str:
    # urljoin knows the schemes of the web only, and forgets the base of a `urn:`.
    return base + reference if reference.startswith("#") else urljoin(base, reference)


def _members(schema: dict[str, Any], keywords: tuple[str, ...]) -> list[Any]:
    found: list[Any] = []
    for keyword in keywords:
        value = schema.get(keyword)
        if keyword in _MAPS and is_object(value):
            found += value.values()
        elif is_list(value):
            found += value
        elif value is not None:
            found.append(value)
    return found
