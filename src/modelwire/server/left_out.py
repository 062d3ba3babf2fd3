"""Defaults that msgspec leaves out: of a dataclass's instances, those that stand on the class already.

An instance answers for them all the same, but does not have them, so that neither `vars` nor JSON shows them. They are
set where values are read, so that what comes in is as Python would have made it. Nothing is converted here.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast, get_origin

import msgspec
from msgspec import inspect as mi

_LEAVES = frozenset({str, int, float, bool, type(None), bytes})
_ROWS = frozenset({list, tuple, set, frozenset})
Completing = Callable[[Any], None]


def completing(kind: mi.Type) -> Completing | None:
    """Return what sets the defaults that msgspec leaves out of values of a type; None where there are none.

    Args:
        kind: Msgspec's description of the type.
    """
    lacking = {cls: found for cls in _dataclasses(kind, set()) if (found := _on_the_class(cls))}
    if not lacking:
        return None

    def complete(value: Any) -> None:
        for name, default in lacking.get(type(value), ()):
            if name not in value.__dict__:
                value.__dict__[name] = default
        for member in _members(value):
            if type(member) not in _LEAVES:
                complete(member)

    return complete


def _members(value: Any) -> Iterable[Any]:
    cls = cast(Any, type(value))
    if cls in _ROWS:
        return value
    if cls is dict:
        return value.values()
    if isinstance(value, msgspec.Struct):
        return [getattr(value, name) for name in value.__struct_fields__]
    if dataclasses.is_dataclass(cls):
        return [getattr(value, field.name, None) for field in dataclasses.fields(cls)]
    return ()


def _on_the_class(cls: Any) -> list[tuple[str, Any]]:
    """The fields whose default is an attribute of the class, with their defaults; slots leave no room for one."""
    return [
        (field.name, field.default)
        for field in dataclasses.fields(cls)
        if field.default is not dataclasses.MISSING
        and inspect.getattr_static(cls, field.name, dataclasses.MISSING) is field.default
    ]


def _dataclasses(node: Any, seen: set[int]) -> Iterator[Any]:
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, mi.DataclassType):
        cls = get_origin(node.cls) or node.cls
        if dataclasses.is_dataclass(cls):  # an attrs class is described the same way
            yield cls
    if isinstance(node, tuple | list):
        members: Any = node  # pyright: ignore[reportUnknownVariableType]
    elif isinstance(node, mi.Type | mi.Field):
        members = [getattr(node, name) for name in node.__struct_fields__]
    else:
        members = ()
    for member in members:
        yield from _dataclasses(member, seen)
