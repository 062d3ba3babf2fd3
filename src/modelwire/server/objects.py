"""Classes with fields, converted member by member: dataclasses, attrs classes, TypedDict, NamedTuple, msgspec Struct.

All are objects in JSON. Values are made by calling the class, so that its own checks run. `fields_of` reads a class,
`Fields` converts; neither imports a user's library.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any, get_args, get_origin

import msgspec

from modelwire.rules.param_headers import KEYWORD
from modelwire.server import explain
from modelwire.server.annotations import (
    Header,
    Scope,
    is_named_tuple,
    is_typed_dict,
    is_union,
    without_markers,
)
from modelwire.server.constraints import MISSING, Unsupported, beside
from modelwire.server.definitions import Definitions
from modelwire.server.generics import class_hints
from modelwire.server.json_values import is_object
from modelwire.server.nodes import Misfit, Node, plain_form

_QUALIFIERS = {"Required": True, "NotRequired": False}
_OPEN = ("ReadOnly", "Final")


@dataclasses.dataclass(slots=True)
class Field:
    """One field.

    Args:
        name: What the class calls it.
        wire: What JSON calls it.
        hint: Its type, as values have it.
        given: Its type, as the class takes it.
        required: The class has no default for it.
        argument: What the class's constructor calls it; empty where it takes none.
        default: The default, if one is known.
        header: What header repeats the field, if one does.
        node: ``hint``, compiled.
        source: ``given``, compiled.
    """

    name: str
    wire: str
    hint: Any
    given: Any
    required: bool
    argument: str
    default: Any = MISSING
    header: Header | None = None
    node: Node = dataclasses.field(default_factory=Node)
    source: Node = dataclasses.field(default_factory=Node)


class Fields(Node):
    """A class with fields.

    Args:
        cls: The class.
        name: What ``$defs`` calls it.
        key: What tells it from another of the same name.
    """

    __slots__ = ("_key", "_name", "closed", "exact", "fields", "tag")

    def __init__(self, cls: Any, name: str, key: Any) -> None:
        self.exact = dict if is_typed_dict(cls) else cls
        self._name = name
        self._key = key
        self.fields: list[Field] = []
        self.tag: tuple[str, Any] | None = None
        self.closed = False

    @property
    def wanted(self) -> frozenset[str]:
        return frozenset({"object"})

    def load(self, value: Any, path: str, lax: bool = False) -> Any:
        if not is_object(value):
            self.misfit(value, path)
        given: dict[str, Any] = value
        found: dict[str, Any] = {}
        problems = self._outside(given, path)
        for field in self.fields:
            if not field.argument:
                continue
            try:
                if field.wire in given:
                    found[field.argument] = field.source.load(given[field.wire], f"{path}.{field.wire}", lax)
                elif field.required:
                    problems.append(self._missing(field, given, path))
            except Misfit as misfit:
                problems += misfit.problems
        if problems:
            raise Misfit(problems, inside=True, matched=self._matched(given))
        return self._new(found, given, path)

    def _matched(self, given: dict[str, Any]) -> int:
        """How near a value is: the tag says more than a member."""
        tagged = self.tag is not None and given.get(self.tag[0]) == self.tag[1]
        return sum(field.wire in given for field in self.fields) + 2 * tagged

    def _new(self, found: dict[str, Any], given: dict[str, Any], path: str) -> Any:
        try:
            return self.exact(**found)
        except (ValueError, TypeError, ArithmeticError, AssertionError) as error:
            raise Misfit([_said(error, given, path)], inside=True, matched=len(found)) from None

    def _outside(self, value: dict[str, Any], path: str) -> list[str]:
        """Faults that are no field's: the tag, and members that are not known where none may be added."""
        problems: list[str] = []
        if self.tag is not None and self.tag[0] in value and value[self.tag[0]] != self.tag[1]:
            wanted = msgspec.json.encode(self.tag[1]).decode()
            problems.append(f"{path}.{self.tag[0]}: expected {wanted}, got {explain.shown(value[self.tag[0]], path)}")
        if self.closed:
            known = [field.wire for field in self.fields] + ([self.tag[0]] if self.tag else [])
            problems += [explain.unknown_member(path, name, known) for name in value if name not in known]
        return problems

    def _missing(self, field: Field, value: dict[str, Any], path: str) -> str:
        known = [] if self.closed else [known.wire for known in self.fields]
        hint = explain.misspelt(field.wire, known, value) if known else ""
        return f"{path}.{field.wire}: missing; expected {field.source.expected()}{hint}"

    def dump(self, value: Any, path: str) -> Any:
        if isinstance(value, Mapping):
            return self._dump_mapping(dict(value), path)  # pyright: ignore[reportUnknownArgumentType]
        if self.exact is dict or not isinstance(value, self.exact):
            self.foreign(value, path)
        found: dict[str, Any] = dict([self.tag] if self.tag else [])
        problems: list[str] = []
        for field in self.fields:
            item = getattr(value, field.name, msgspec.UNSET)
            if item is msgspec.UNSET:
                continue
            try:
                found[field.wire] = field.node.dump(item, f"{path}.{field.wire}")
            except Misfit as misfit:
                problems += misfit.problems
        if problems:
            raise Misfit(problems, inside=True)
        return found

    def _dump_mapping(self, value: dict[str, Any], path: str) -> dict[str, Any]:
        """A dict may stand for an object of a class: on the wire they are the same."""
        known = {field.wire: field for field in self.fields}
        found: dict[str, Any] = {}
        problems = self._outside(value, path)
        for field in self.fields:
            if field.required and field.wire not in value:
                problems.append(self._missing(field, value, path))
        for name, item in value.items():
            try:
                found[name] = (
                    known[name].node.dump(item, f"{path}.{name}")
                    if name in known
                    else msgspec.to_builtins(item, str_keys=True, enc_hook=plain_form)
                )
            except Misfit as misfit:
                problems += misfit.problems
            except TypeError:
                problems.append(f"{path}.{str(name)[:60]}: a value of type {type(item).__name__} has no JSON form")
        if problems:
            raise Misfit(problems, inside=True)
        return found

    def schema(self, defs: Definitions) -> dict[str, Any]:
        return defs.recursive((self._key, defs.output), self._name, lambda: self._defined(defs))

    def _defined(self, defs: Definitions) -> dict[str, Any]:
        properties: dict[str, Any] = {}
        required: list[str] = []
        if self.tag:
            properties[self.tag[0]] = {"enum": [self.tag[1]]}
            required.append(self.tag[0])
        for field in self.fields:
            if not field.argument and not defs.output:
                continue
            schema = (field.node if defs.output else field.source).schema(defs)
            properties[field.wire] = _with_default(schema, field)
            if field.header is not None and not defs.output:
                properties[field.wire] = {**properties[field.wire], KEYWORD: field.header.name}
            required += [field.wire] if field.required else []
        found: dict[str, Any] = {"type": "object", "properties": properties}
        text = _documentation(self.exact) if self.exact is not dict else ""
        found.update({"description": text} if text else {})
        found.update({"required": required} if required else {})
        found.update({"additionalProperties": False} if self.closed else {})
        return found

    def expected(self) -> str:
        names = [field.wire for field in self.fields if field.required and field.argument]
        return f"an object with {', '.join(names[:5])}" if names else "an object"


def _with_default(schema: dict[str, Any], field: Field) -> dict[str, Any]:
    if field.default is MISSING or field.default is msgspec.UNSET:
        return schema
    try:
        plain = field.node.dump(field.default, "")
        msgspec.json.encode(plain)
    except (Misfit, TypeError, ValueError):
        return schema
    return {**schema, "default": plain}


def _documentation(cls: Any) -> str:
    """The docstring of a class, unless Python or a library wrote it."""
    text = cls.__dict__.get("__doc__") or ""
    return "" if text.startswith((f"{cls.__name__}(", "Method generated by attrs")) else inspect.cleandoc(text)


def _said(error: BaseException, value: dict[str, Any], path: str) -> str:
    """What a class said of its values, unless that might repeat a secret."""
    text = str(error.args[0]) if error.args else ""
    if not text or explain.repeats_secret(text, value, path):
        return f"{path}: its members do not go together"
    return f"{path}: {text}"


# ------------------------------------------------------------------ reading classes


def fields_of(cls: Any, args: tuple[Any, ...], scope: Scope | None, node: Fields) -> list[Field]:
    """Return the fields of a class, not yet compiled; sets what is particular about ``node``.

    Raises:
        Unsupported: Its annotations cannot be evaluated, or it is written in another way than as an object.
    """
    try:
        hints = class_hints(cls, args, scope)
    except Exception as error:
        raise Unsupported(f"the annotations of {cls.__name__} cannot be evaluated: {error}") from error
    for known, reader in _READERS:
        if known(cls):
            return [_named(field) for field in reader(cls, hints, node)]
    raise Unsupported(f"{cls.__name__} has no fields that are known here")


def _named(field: Field) -> Field:
    """Take qualifiers and markers of ours off a field's annotation."""
    field.hint, required = unqualified(field.hint)
    field.required = field.required if required is None else required
    rules = beside(field.hint)
    field.wire = rules.name or field.wire
    field.header = rules.header
    field.hint = _without_unset(without_markers(field.hint))
    field.given = field.hint if field.given is None else field.given
    return field


def unqualified(hint: Any) -> tuple[Any, bool | None]:
    """Return a field's type without ``Required`` and the like, and what they say: whether it must be there."""
    required: bool | None = None
    while (origin := get_origin(hint)) is not None:
        word = getattr(origin, "_name", None) or getattr(origin, "__name__", "")
        if word not in _QUALIFIERS and word not in _OPEN:
            break
        if word in _QUALIFIERS:
            required = _QUALIFIERS[word]
        hint = get_args(hint)[0]
    return hint, required


def _without_unset(hint: Any) -> Any:
    if not is_union(hint) or msgspec.UnsetType not in get_args(hint):
        return hint
    return typing.Union[tuple(option for option in get_args(hint) if option is not msgspec.UnsetType)]  # noqa: UP007


def _dataclass_fields(cls: Any, hints: dict[str, Any], node: Fields) -> list[Field]:
    del node
    if any(str(getattr(field, "_field_type", "")) == "_FIELD_INITVAR" for field in cls.__dataclass_fields__.values()):
        raise Unsupported(f"{cls.__name__} has an InitVar, which its results could not show; make it a field")
    found: list[Field] = []
    for field in dataclasses.fields(cls):
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        default = MISSING if field.default is dataclasses.MISSING else field.default
        shown = _made(default, field.default_factory)
        argument = field.name if field.init else ""
        found.append(
            Field(field.name, field.name, hints[field.name], None, required, argument, shown)
        )  # fmt: skip
    return found


def _made(default: Any, factory: Any) -> Any:
    """The default that a schema may show: an empty list or object is worth saying."""
    if factory is list or factory is dict:
        return [] if factory is list else {}
    return default


def _attrs_fields(cls: Any, hints: dict[str, Any], node: Fields) -> list[Field]:
    del node
    found: list[Field] = []
    for field in cls.__attrs_attrs__:
        required = type(field.default).__name__ == "_Nothing" or repr(field.default) == "NOTHING"
        plain = not required and type(field.default).__name__ != "Factory"
        hint = hints.get(field.name, Any)
        source = None if field.converter is None else _taken_by(field.converter)
        wire = field.alias
        found.append(Field(field.name, wire, hint, source, required and field.init, field.alias if field.init else "",
                           field.default if plain else MISSING))  # fmt: skip
    return found


def _taken_by(converter: Any) -> Any:
    """The type that a converter says it takes; None where it says nothing, and the field's own is as good a guess."""
    function = getattr(converter, "converter", converter)  # attrs.Converter holds one
    try:
        first = next(iter(inspect.signature(function).parameters))
        return None if isinstance(function, type) else typing.get_type_hints(function).get(first)
    except Exception:
        return None


def _typed_dict_fields(cls: Any, hints: dict[str, Any], node: Fields) -> list[Field]:
    node.closed = getattr(cls, "__closed__", None) is True
    return [Field(name, name, hint, None, name in cls.__required_keys__, name) for name, hint in hints.items()]


def _named_tuple_fields(cls: Any, hints: dict[str, Any], node: Fields) -> list[Field]:
    del node
    defaults = cls._field_defaults
    return [
        Field(name, name, hints.get(name, Any), None, name not in defaults, name, defaults.get(name, MISSING))
        for name in cls._fields
    ]


def _struct_fields(cls: Any, hints: dict[str, Any], node: Fields) -> list[Field]:
    config = cls.__struct_config__
    if config.array_like:
        raise Unsupported(f"{cls.__name__} is array_like, and msgspec cannot enforce all of its fields")
    node.closed = config.forbid_unknown_fields
    node.tag = (config.tag_field, config.tag) if config.tag_field is not None else None
    found: list[Field] = []
    for field in msgspec.structs.fields(cls):
        default = field.default if field.default is not msgspec.NODEFAULT else MISSING
        found.append(Field(field.name, field.encode_name, hints[field.name], None, field.required, field.name,
                           _made(default, field.default_factory)))  # fmt: skip
    return found


_Reader = Callable[[Any, dict[str, Any], Fields], list[Field]]
_READERS: tuple[tuple[Callable[[Any], bool], _Reader], ...] = (
    (lambda cls: hasattr(cls, "__attrs_attrs__"), _attrs_fields),
    (dataclasses.is_dataclass, _dataclass_fields),
    (is_typed_dict, _typed_dict_fields),
    (is_named_tuple, _named_tuple_fields),
    (lambda cls: issubclass(cls, msgspec.Struct), _struct_fields),
)


def has_fields(cls: Any) -> bool:
    """Whether `fields_of` can read a class."""
    return any(known(cls) for known, _ in _READERS)
