"""Annotations of a function: evaluate them, and say why msgspec alone would not keep one.

msgspec silently ignores what it does not know inside a type: attrs validators, pydantic's and annotated_types'
constraints, classes without a JSON form. `refusal` finds these before a schema could promise what nobody checks;
`modelwire.server.converters` then takes care of most of them. This file builds no schema and decodes nothing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import decimal
import enum
import functools
import inspect
import sys
import types
import typing
import uuid
from collections import abc
from collections.abc import Callable, Iterator
from typing import Annotated, Any, ForwardRef, Literal, Union, get_args, get_origin

import msgspec
from msgspec import inspect as mi

from modelwire.rules.param_headers import KEYWORD, MAX_INTEGER

_ASSERTIONS = frozenset(
    ("type enum const multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern "
     "maxItems minItems uniqueItems maxContains minContains maxProperties minProperties required dependentRequired "
     "allOf anyOf oneOf not if then else dependentSchemas prefixItems items contains properties patternProperties "
     "additionalProperties propertyNames unevaluatedItems unevaluatedProperties $ref $dynamicRef").split()
)  # fmt: skip
"""JSON Schema keywords that constrain; in ``extra_json_schema`` one would promise a rule that nobody checks."""

_SETS = (set, frozenset, abc.Set, abc.MutableSet)
_CONSTRAINT_LIBRARIES = frozenset({"annotated_types", "pydantic", "pydantic_core"})


class Name:
    """What a parameter, or a field of a class, is called in JSON, where Python cannot call it so.

    ``Annotated[str, Name("from")]``; pydantic's ``Field(alias="from")`` means the same.

    Args:
        name: The name on the wire.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"Name({self.name!r})"


class Header:
    """Has clients repeat an argument as an HTTP header, so that a proxy can route by it: ``Mcp-Param-{name}``.

    ``region: Annotated[str, Header("Region")]`` becomes ``"x-mcp-header": "Region"`` in the tool's ``inputSchema``,
    also on a field of a class that is a parameter itself. Clients on other transports than HTTP, and of revisions
    before 2026-07-28, send the argument alone. Never mark what is secret: whoever carries the request reads headers.

    The parameter is text, an integer or a truth value: one of these types, one that is written so (``Literal``,
    ``Enum``, dates, ...), or an ``Optional`` one, whose ``null`` is accepted but not advertised. Integers are limited
    to what every peer can hold exactly, -(2**53 - 1) to 2**53 - 1.

    Args:
        name: The end of the header's name: letters, digits and ``!#$%&'*+-.^_`|~``. Upper and lower case are one.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"Header({self.name!r})"

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        """Limit the integers of a pydantic model's field."""
        schema = handler(source)
        inner = schema["schema"] if schema["type"] == "nullable" else schema
        if inner["type"] == "int":
            inner["ge"] = max(inner.get("ge", -MAX_INTEGER), -MAX_INTEGER)
            inner["le"] = min(inner.get("le", MAX_INTEGER), MAX_INTEGER)
        return schema

    def __get_pydantic_json_schema__(self, core: Any, handler: Callable[[Any], Any]) -> Any:
        """Mark a pydantic model's field."""
        return {**handler(core), KEYWORD: self.name}


_NO_KEYS = (mi.BoolType, mi.NoneType, mi.CollectionType, mi.TupleType, mi.DictType, mi.NamedTupleType, mi.StructType)


_ORDINARY = frozenset({
    Any, None, type(None), str, int, float, bool, bytes, datetime.date, datetime.datetime, datetime.time,
    datetime.timedelta, uuid.UUID, decimal.Decimal, list, set, frozenset, tuple, Union, types.UnionType, Literal,
})  # fmt: skip
"""What msgspec decodes, describes and checks in every combination."""


def unwrap(function: Callable[..., Any]) -> Any:
    """Return the plain function inside partials, bound methods, callable objects and ``functools.wraps``."""
    if isinstance(function, types.FunctionType) and not function.__dict__:
        return function
    inner: Any = function
    while True:
        if isinstance(inner, functools.partial):
            inner = inner.func
        elif inspect.ismethod(inner):
            inner = inner.__func__
        elif hasattr(inner, "__wrapped__"):
            inner = inner.__wrapped__
        elif not inspect.isroutine(inner) and not isinstance(inner, type):
            call = type(inner).__call__
            if not inspect.isfunction(call):
                return inner
            inner = call
        else:
            return inner


class Scope:
    """The names that a function's annotations may use.

    Its module's globals, the variables it closes over and, as long as they still run, the functions around it:
    a class defined inside a function is found where ``from __future__ import annotations`` left only its name.

    Args:
        function: The function whose annotations are to be evaluated.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._plain = unwrap(function)
        self._globals: dict[str, Any] = getattr(self._plain, "__globals__", {})
        self._frame = _enclosing_frame(self._plain, self._globals)
        self.refresh()

    def refresh(self) -> None:
        """Look again: more names may have been defined since."""
        self._locals: dict[str, Any] = {} if self._frame is None else dict(self._frame.f_locals)
        if isinstance(self._plain, types.FunctionType) and self._plain.__closure__:
            self._locals.update(_closed_over(self._plain))

    @property
    def local_names(self) -> dict[str, Any]:
        """The names that are no module's."""
        return self._locals

    @property
    def names(self) -> dict[str, Any]:
        """Every name, with what it stands for."""
        return {**self._globals, **self._locals} if self._locals else self._globals

    def evaluate(self, annotation: Any) -> Any:
        """Return the annotation with every name in it resolved.

        Raises:
            Exception: What Python raises for a name or an expression that does not work.
        """
        if not names_something(annotation):
            return type(None) if annotation is None else annotation
        holder = types.SimpleNamespace(__annotations__={"value": annotation})
        names = self.names
        return typing.get_type_hints(holder, globalns=names, localns=names, include_extras=True)["value"]


def _enclosing_frame(plain: Any, module_globals: dict[str, Any]) -> types.FrameType | None:
    """The innermost running function that encloses ``plain``; its names outlive it as long as the frame is kept."""
    outer, found, _ = str(getattr(plain, "__qualname__", "")).rpartition(".<locals>.")
    frame = sys._getframe() if found else None  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if frame.f_globals is module_globals and frame.f_code.co_qualname == outer:
            return frame
        frame = frame.f_back
    return None


def _closed_over(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """The variables that a function closes over, but for those that have no value yet."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):
            yield name, cell.cell_contents


def refusal(annotation: Any) -> str | None:
    """Return why msgspec alone cannot check values of this type as the annotation says, or None when it can."""
    if is_simple(annotation):
        return None
    seen: dict[int, Any] = {}
    for reason in _refusals(annotation, seen):
        return reason
    try:
        msgspec.json.Decoder(annotation)
        if all(_is_ordinary(item) for item in seen.values()):
            return None
        reason = _unusable(mi.type_info(annotation), set())
        if reason is None:
            msgspec.json.schema(annotation)
    except (TypeError, NameError, ValueError, NotImplementedError, RecursionError) as error:
        return " ".join(str(error).split())
    return reason


def _is_ordinary(annotation: Any) -> bool:
    """Whether msgspec's decoder is all that there is to ask about a part of a type."""
    origin = get_origin(annotation)
    if origin is None:
        return annotation in _ORDINARY if not isinstance(annotation, type) else _is_ordinary_class(annotation)
    return origin in _ORDINARY or origin is Annotated or (origin is dict and get_args(annotation)[0] is str)


def _is_ordinary_class(cls: type) -> bool:
    return cls in _ORDINARY or cls is dict or issubclass(cls, enum.Enum) or _has_fields(cls)


def _refusals(annotation: Any, seen: dict[int, Any]) -> Iterator[str]:
    if id(annotation) in seen:
        return
    seen[id(annotation)] = annotation  # kept, so that no other object gets the same id meanwhile
    origin = get_origin(annotation)
    if origin is Annotated:
        base, *metadata = get_args(annotation)
        yield from (reason for item in metadata if (reason := _metadata_refusal(item)))
        if (get_origin(base) or base) in _SETS and any(getattr(item, "min_length", None) for item in metadata):
            yield "msgspec counts the items that come, of which a set may hold fewer"
        yield from _refusals(base, seen)
    elif origin is Literal:
        yield from _literal_refusals(get_args(annotation))
    elif isinstance(annotation, type) and origin is None:
        yield from _class_refusals(annotation, seen)
    elif hasattr(annotation, "__value__") and _mentions(getattr(annotation, "__value__", None), annotation, set()):
        yield f"{annotation.__name__} contains itself, which msgspec cannot follow"
    else:
        alias = getattr(annotation, "__value__", None) or getattr(annotation, "__supertype__", None)
        inner = [origin, *get_args(annotation), alias]
        for item in inner:
            yield from _refusals(item, seen)


def _mentions(annotation: Any, alias: Any, seen: set[int]) -> bool:
    """Whether an alias comes up in what it stands for."""
    if annotation is alias or id(annotation) in seen:
        return annotation is alias
    seen.add(id(annotation))
    inner = (*get_args(annotation), getattr(annotation, "__value__", None))
    return any(_mentions(item, alias, seen) for item in inner if item is not None)


def _metadata_refusal(item: Any) -> str | None:
    if isinstance(item, Name | Header):
        return misplaced(item)
    for library in {base.__module__.partition(".")[0] for base in type(item).__mro__}:
        if library in _CONSTRAINT_LIBRARIES or hasattr(item, "__get_pydantic_core_schema__"):
            return f"the constraint {item!r} of {library} cannot be enforced; use msgspec.Meta"
    if isinstance(item, msgspec.Meta) and item.extra_json_schema:
        for keyword in item.extra_json_schema:
            if keyword in _ASSERTIONS:
                return (
                    f"extra_json_schema has {keyword!r}, which nothing would enforce; use msgspec.Meta's own arguments"
                )
    return None


def misplaced(marker: Name | Header) -> str:
    """Say that a marker stands where there is nothing for it to mark."""
    verb = "names" if isinstance(marker, Name) else "marks"
    return f"{marker!r} {verb} a field, which only classes and parameters have, and stands around its whole type"


def _literal_refusals(values: tuple[Any, ...]) -> Iterator[str]:
    for value in values:
        if value is not None and type(value) not in (int, str):
            yield f"Literal may hold text, integers and None, not {value!r}"


def _class_refusals(cls: Any, seen: dict[int, Any]) -> Iterator[str]:
    if is_pydantic(cls):
        yield f"{cls.__name__} is a pydantic class, which msgspec cannot build"
    elif hasattr(cls, "__attrs_attrs__"):
        yield f"{cls.__name__} is an attrs class, whose validators msgspec would not run"
    elif is_named_tuple(cls):
        yield f"{cls.__name__} is a NamedTuple, which msgspec would write as a list"
    elif issubclass(cls, enum.Flag):
        yield f"{cls.__name__} is a Flag, whose combinations no schema lists; use an Enum and a set of its members"
    elif _has_fields(cls):
        yield from _field_refusals(cls, seen)


def _field_refusals(cls: Any, seen: dict[int, Any]) -> Iterator[str]:
    if is_typed_dict(cls) and open_items(cls) != (None, inspect.Parameter.empty):
        yield f"{cls.__name__} says which other members it takes, which msgspec would not look at"
    if any(not field.init for field in getattr(cls, "__dataclass_fields__", {}).values()):
        yield f"{cls.__name__} sets fields by itself, which msgspec would let a caller set"
    if has_own_init(cls):
        yield f"{cls.__name__} has an __init__ of its own, which msgspec would not call"
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except Exception as error:
        yield f"the annotations of {cls.__name__} cannot be evaluated: {error}"
        return
    for field, hint in hints.items():
        yield from (f"{cls.__name__}.{field}: {reason}" for reason in _refusals(hint, seen))


def has_own_init(cls: Any) -> bool:
    """Whether the ``__init__`` of a dataclass was written by hand."""
    code = getattr(cls.__init__, "__code__", None)
    return dataclasses.is_dataclass(cls) and getattr(code, "co_filename", "") != "<string>"  # where dataclasses' is


def _has_fields(cls: Any) -> bool:
    return dataclasses.is_dataclass(cls) or issubclass(cls, msgspec.Struct) or is_typed_dict(cls)


def is_typed_dict(cls: Any) -> bool:
    """Whether this is a ``TypedDict``, of ``typing`` or of ``typing_extensions``."""
    return isinstance(cls, type) and hasattr(cls, "__total__") and issubclass(cls, dict)


def open_items(cls: Any) -> tuple[bool | None, Any]:
    """Return whether a ``TypedDict`` is closed, None where it does not say; and the type of its other members.

    ``class Options(TypedDict, closed=True)``, ``class Options(TypedDict, extra_items=int)`` (PEP 728). Without
    ``extra_items`` the type is ``inspect.Parameter.empty``, or ``Any`` where it is said to be open.
    """
    own = getattr(cls, "__closed__", None)
    items = getattr(cls, "__extra_items__", None)
    if own is not None:
        return (True, inspect.Parameter.empty) if own else (False, Any)
    if items is not None and type(items).__name__ != "NoExtraItemsType":
        never = getattr(items, "__name__", "") in ("Never", "NoReturn")
        return (True, inspect.Parameter.empty) if never else (False, items)
    for base in getattr(cls, "__orig_bases__", ()):  # what a base says holds for its heirs
        found = open_items(get_origin(base) or base)
        if found[0] is not None:
            return found
    return None, inspect.Parameter.empty


def is_named_tuple(cls: Any) -> bool:
    """Whether this is a ``NamedTuple`` class."""
    return isinstance(cls, type) and hasattr(cls, "_fields") and issubclass(cls, tuple)


def is_pydantic(cls: Any) -> bool:
    """Whether pydantic says how values of this class are made."""
    return hasattr(cls, "__pydantic_validator__") or hasattr(cls, "__get_pydantic_core_schema__")


def _unusable(node: Any, seen: set[int]) -> str | None:
    """What msgspec takes inside the inspected type, but would pass on unchecked or never accept."""
    if isinstance(node, mi.CustomType | mi.ExtType):
        return f"the type {getattr(node, 'cls', node)!r} has no JSON form here"
    if isinstance(node, mi.DictType | mi.FrozenDictType) and isinstance(node.key_type, _NO_KEYS):
        return "the names of an object are text, which cannot stand for the type of these keys"
    if isinstance(node, mi.DictType | mi.FrozenDictType) and isinstance(node.key_type, mi.FloatType):
        return "msgspec takes the name nan for a number"
    if id(node) in seen:
        return None
    seen.add(id(node))
    members: Any = ()
    if isinstance(node, tuple | list):
        members = node  # pyright: ignore[reportUnknownVariableType]
    elif isinstance(node, mi.Type | mi.Field):
        members = [getattr(node, name) for name in node.__struct_fields__]
    return next((found for item in members if (found := _unusable(item, seen)) is not None), None)


def names_something(annotation: Any) -> bool:
    """Whether an annotation is text, or there is text inside it, so that it means what its names mean."""
    if isinstance(annotation, type):
        return False
    if isinstance(annotation, str | ForwardRef):
        return True
    origin = get_origin(annotation)
    if origin is None or origin is Literal:
        return False
    if origin is Annotated:
        return names_something(annotation.__origin__)
    return any(names_something(arg) for arg in get_args(annotation))


def is_simple(annotation: Any) -> bool:
    """Whether this is one of the types that most parameters have, about which there is nothing to find out."""
    return (
        annotation is str or annotation is int or annotation is bool or annotation is float
        or annotation is Any or annotation is None
    )  # fmt: skip


def is_union(annotation: Any) -> bool:
    """Whether this is ``A | B`` or ``Union[A, B]``."""
    if isinstance(annotation, type):  # most are, and a library's class may take long to say what it has not
        return False
    return isinstance(annotation, types.UnionType) or getattr(annotation, "__origin__", None) is Union


def without_annotated(annotation: Any) -> Any:
    """Strip the outermost ``Annotated``."""
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def without_markers(annotation: Any) -> Any:
    """Take our own markers off, which were read before: off the outermost ``Annotated``, and off a union's options."""
    if is_union(annotation):
        options = get_args(annotation)
        bare = tuple(without_markers(option) for option in options)
        return annotation if bare == options else Union[bare]  # noqa: UP007 - known at run time only
    if isinstance(annotation, type):
        return annotation
    metadata: tuple[Any, ...] = getattr(annotation, "__metadata__", ())
    kept = tuple(item for item in metadata if not isinstance(item, Name | Header))
    if len(kept) == len(metadata):
        return annotation
    base = get_args(annotation)[0]
    return Annotated[(base, *kept)] if kept else base
