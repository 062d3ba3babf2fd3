"""Defaults that msgspec leaves out: of a dataclass's instances, those that stand on the class already.

An instance answers for them all the same, but does not have them, so that neither `vars` nor JSON shows them. They are
set where values are read, so that what comes in is as Python would have made it. Nothing is converted here.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from typing import Any, get_origin

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
        cls = type(value)
        if cls in _ROWS:
            members = value
        elif cls is dict:
            members = value.values()
        elif dataclasses.is_dataclass(cls) or isinstance(value, msgspec.Struct):
            for name, default in lacking.get(cls, ()):
                vars(value).setdefault(name, default)
            members = [getattr(value, name, None) for name in _names(cls)]
        else:
            return
        for member in members:
            if type(member) not in _LEAVES:
                complete(member)

    return complete


def _names(cls: Any) -> tuple[str, ...]:
    return cls.__struct_fields__ if issubclass(cls, msgspec.Struct) else tuple(cls.__dataclass_fields__)


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
