"""Why a type cannot become a schema, in one sentence that names the type; never a library's own wording.

The words only: `modelwire.server.converters` finds out what is not supported, and whoever registers the function adds
its name and what to write instead.
"""

from __future__ import annotations

import enum
import re
import types
import typing
from collections import abc
from dataclasses import is_dataclass
from typing import Any, get_args, get_origin

from modelwire.server.annotations import is_union, without_annotated
from modelwire.server.constraints import Unsupported

_MODULES = re.compile(r"\b(?:\w+\.)+(?=\w)")
_ITERATORS = (abc.Iterator, abc.AsyncIterator, abc.Generator, abc.AsyncGenerator, abc.AsyncIterable)
_INSTEAD: dict[str, str] = {
    "complex": "use a string, or a pair of numbers",
    "Callable": "use a Literal or an Enum of names to choose from",
    "type": "use a Literal or an Enum of names to choose from",
}


class NoForm(Unsupported):
    """A type whose values are nothing in JSON; what to use instead depends on where it stands."""


def no_form(annotation: Any) -> Unsupported:
    """Return why nothing converts values of a type."""
    cls = get_origin(annotation) or annotation
    if cls in (typing.Never, typing.NoReturn):
        return Unsupported(f"no value is of the type {shown(annotation)}; leave the parameter out")
    if getattr(cls, "_name", "") in ("ClassVar", "Self", "Required", "NotRequired", "ReadOnly"):
        return Unsupported(f"{shown(annotation)} belongs into a class; write the type alone")
    if isinstance(cls, types.FunctionType | types.BuiltinFunctionType):
        return Unsupported(f"{cls.__name__} is a function and no type")
    if not isinstance(cls, type):
        return Unsupported(f"{shown(annotation)} is no type; for a value that is always the same use Literal[...]")
    if issubclass(cls, enum.Flag):
        return Unsupported(
            f"{cls.__name__} is a Flag, whose combinations no schema lists; use an Enum and a set of its members"
        )
    if cls in _ITERATORS:
        return Unsupported(f"{shown(annotation)} is made while it is read, and JSON comes whole; use a list")
    if cls.__module__ in ("builtins", "collections.abc") and (instead := _INSTEAD.get(cls.__name__)):
        return Unsupported(f"{shown(annotation)} has no JSON form; {instead}")
    return NoForm(f"{shown(annotation)} has no JSON form")


def no_key(annotation: Any) -> Unsupported:
    """Return why nothing reads the names of an object as values of a type."""
    return Unsupported(
        f"{shown(annotation)} is no type for the keys of a dict, which are text in JSON; use str, or a list of pairs"
    )


def unhashable(annotation: Any) -> Any:
    """Return what in a type no set can hold, since it can change; None where there is nothing."""
    plain = without_annotated(annotation)
    if is_union(plain):
        found = [unhashable(option) for option in get_args(plain)]
        return None if None in found else found[0]
    if get_origin(plain) is tuple:
        return next((found for arg in get_args(plain) if (found := unhashable(arg)) is not None), None)
    cls = get_origin(plain) or plain
    return plain if isinstance(cls, type) and cls.__hash__ is None else None


def in_no_set(annotation: Any, inside: Any) -> Unsupported:
    """Return why there is no set of a type.

    Args:
        annotation: The type.
        inside: What `unhashable` found in it.
    """
    cls = get_origin(inside) or inside
    instead = " or make it frozen" if is_dataclass(cls) else ""
    return Unsupported(f"a set cannot hold {shown(annotation)}, since {shown(inside)} can change; use a list{instead}")


def no_limit(limit: str, annotation: Any) -> Unsupported:
    """Return why a limit cannot be kept: values of the type have no size, order or text."""
    return Unsupported(f"the limit {limit} does not apply to {shown(annotation)}")


def of_pydantic(annotation: Any, error: Exception) -> Unsupported:
    """Return why pydantic does not take a type, without its words.

    Args:
        annotation: The type.
        error: What pydantic raised.
    """
    name, text = shown(without_annotated(annotation)), str(error)
    if isinstance(error, NameError):
        return Unsupported(f"{name} names {getattr(error, 'name', None) or 'something'!r}, which is not defined")
    if (limit := re.search(r"constraint '(\w+)'", text)) is not None:
        return no_limit(limit[1], without_annotated(annotation))
    if (cls := re.search(r"<class '(?:[\w<>]+\.)*(\w+)'>", text)) is not None and "ema" in type(error).__name__:
        return NoForm(
            f"{name} holds {cls[1]}, which has no JSON form" if cls[1] != name else f"{name} has no JSON form"
        )
    return Unsupported(f"pydantic makes no schema of {name} ({type(error).__name__})")


def shown(annotation: Any) -> str:
    """Return a type as messages show it: without modules, and shortened."""
    if isinstance(annotation, type) and not get_args(annotation):
        return annotation.__name__
    if isinstance(annotation, types.ModuleType):
        return f"the module {annotation.__name__}"
    text = _MODULES.sub("", str(annotation))
    return text if len(text) <= 80 else f"{text[:80]}…"
