"""The fields of classes, read: dataclasses, attrs classes, TypedDict, NamedTuple, msgspec Struct.

Which members a value of such a class has in JSON, what the class calls them, and whether it takes others. Converts
nothing (`modelwire.server.objects` does) and imports no user's library.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable
from typing import Annotated, Any, cast, get_args, get_origin

import msgspec

from modelwire.server.annotations import (
    Header,
    Scope,
    has_own_init,
    is_named_tuple,
    is_typed_dict,
    is_union,
    open_items,
    without_markers,
)
from modelwire.server.attrs_validators import limits, narrowed
from modelwire.server.constraints import MISSING, Rules, Unsupported, beside
from modelwire.server.generics import class_hints
from modelwire.server.nodes import Node

_QUALIFIERS = {"Required": True, "NotRequired": False}
_OPEN = ("ReadOnly", "Final")
_FACTORIES = (list, dict, set, frozenset)
"""What makes defaults that are worth showing: an empty list or object."""


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
        limits: What the class asks of values beside their type, and checks by itself.
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
    limits: list[Rules] = dataclasses.field(default_factory=list[Rules])


@dataclasses.dataclass(slots=True)
class Outline:
    """What a class says of its members.

    Args:
        fields: Its fields, not yet compiled.
        closed: Whether it refuses other members; None where it does not say.
        others: The type of other members, where it takes and keeps them.
        tag: The member that tells it from other classes, and its value.
        by_position: Its values are lists in JSON.
        hints: The annotations of its fields, as they are written.
    """

    fields: list[Field]
    closed: bool | None = None
    others: Any = MISSING
    tag: tuple[str, Any] | None = None
    by_position: bool = False
    hints: dict[str, Any] = dataclasses.field(default_factory=dict[str, Any])

    @property
    def all_taken(self) -> bool:
        """Whether the class takes every member that its values are written with."""
        return all(field.argument for field in self.fields)


def outline(cls: Any, args: tuple[Any, ...], scope: Scope | None) -> Outline:
    """Read a class.

    Args:
        cls: The class.
        args: What stands in the brackets behind it.
        scope: Names that its annotations may use beside those of its module.

    Raises:
        Unsupported: Its annotations cannot be evaluated, or JSON could not show all of it.
    """
    try:
        hints = class_hints(cls, args, scope)
    except Exception as error:
        raise Unsupported(f"the annotations of {cls.__name__} cannot be evaluated: {error}") from error
    for known, reader in _READERS:
        if known(cls):
            found = reader(cls, hints)
            found.fields, found.hints = [_named(field) for field in found.fields], hints
            return found
    raise Unsupported(f"{cls.__name__} has no fields that are known here")


def has_fields(cls: Any) -> bool:
    """Whether `outline` can read a class."""
    return any(known(cls) for known, _ in _READERS)


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
    if isinstance(hint, type):
        return hint, None
    while (origin := get_origin(hint)) is not None:
        if origin is Annotated:  # `Annotated[NotRequired[int], ...]` is written, too
            base, *metadata = get_args(hint)
            inner, inside = unqualified(base)
            return (hint if inner is base else Annotated[(inner, *metadata)]), inside if required is None else required
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


def _dataclass(cls: Any, hints: dict[str, Any]) -> Outline:
    if any(str(getattr(field, "_field_type", "")) == "_FIELD_INITVAR" for field in cls.__dataclass_fields__.values()):
        raise Unsupported(f"{cls.__name__} has an InitVar, which its results could not show; make it a field")
    found: list[Field] = []
    for field in dataclasses.fields(cls):
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        default = MISSING if field.default is dataclasses.MISSING else field.default
        argument = field.name if field.init else ""
        shown = _shown(default, field.default_factory)
        found.append(Field(field.name, field.name, hints[field.name], None, required, argument, shown))
    if has_own_init(cls):
        _as_its_init_has_it(cls, found)
    return Outline(found)


def _as_its_init_has_it(cls: Any, found: list[Field]) -> None:
    """A dataclass whose ``__init__`` was written by hand takes what that takes."""
    parameters = list(inspect.signature(cls).parameters.values())
    known = {parameter.name: parameter for parameter in parameters}
    anything = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    for field in found:
        parameter = known.pop(field.name, None)
        field.argument = field.name if parameter or anything else ""
        field.required = parameter is not None and parameter.default is parameter.empty
    for name, parameter in known.items():
        named = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        if parameter.default is parameter.empty and (named or parameter.kind is parameter.POSITIONAL_ONLY):
            raise Unsupported(
                f"{cls.__name__} is made with {name!r}, which is no field; name it as the field that it is"
            )


def _shown(default: Any, factory: Any) -> Any:
    """The default that a schema may show."""
    return cast(Any, factory()) if factory in _FACTORIES else default


def _attrs(cls: Any, hints: dict[str, Any]) -> Outline:
    found: list[Field] = []
    for field in cls.__attrs_attrs__:
        required = type(field.default).__name__ == "_Nothing" or repr(field.default) == "NOTHING"
        factory = getattr(field.default, "factory", None) if type(field.default).__name__ == "Factory" else None
        default = MISSING if required or factory is not None else field.default
        hint = narrowed(hints.get(field.name, Any), field.validator)
        source = None if field.converter is None else _taken_by(field.converter)
        argument = field.alias if field.init else ""
        found.append(Field(field.name, field.alias, hint, source, required and field.init, argument,
                           _shown(default, factory), limits=limits(field.validator)))  # fmt: skip
    return Outline(found)


def _taken_by(converter: Any) -> Any:
    """The type that a converter says it takes; None where it says nothing, and the field's own is as good a guess."""
    function = getattr(converter, "converter", converter)  # attrs.Converter holds one
    try:
        first = next(iter(inspect.signature(function).parameters))
        return None if isinstance(function, type) else typing.get_type_hints(function).get(first)
    except Exception:
        return None


def _typed_dict(cls: Any, hints: dict[str, Any]) -> Outline:
    closed, others = open_items(cls)
    fields = [Field(name, name, hint, None, name in cls.__required_keys__, name) for name, hint in hints.items()]
    return Outline(fields, closed, unqualified(others)[0])


def _named_tuple(cls: Any, hints: dict[str, Any]) -> Outline:
    defaults = cls._field_defaults
    return Outline([
        Field(name, name, hints.get(name, Any), None, name not in defaults, name, defaults.get(name, MISSING))
        for name in cls._fields
    ])  # fmt: skip


def _struct(cls: Any, hints: dict[str, Any]) -> Outline:
    config = cls.__struct_config__
    found: list[Field] = []
    for field in msgspec.structs.fields(cls):
        default = field.default if field.default is not msgspec.NODEFAULT else MISSING
        found.append(Field(field.name, field.encode_name, hints[field.name], None, field.required, field.name,
                           _shown(default, field.default_factory)))  # fmt: skip
    tag = (config.tag_field, config.tag) if config.tag_field is not None else None
    return Outline(found, config.forbid_unknown_fields or None, tag=tag, by_position=config.array_like)


_READERS: tuple[tuple[Callable[[Any], bool], Callable[[Any, dict[str, Any]], Outline]], ...] = (
    (lambda cls: hasattr(cls, "__attrs_attrs__"), _attrs),
    (dataclasses.is_dataclass, _dataclass),
    (is_typed_dict, _typed_dict),
    (is_named_tuple, _named_tuple),
    (lambda cls: issubclass(cls, msgspec.Struct), _struct),
)
