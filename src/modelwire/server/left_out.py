"""Defaults that msgspec leaves out: of a dataclass's instances, those that stand on the class already.

An instance answers for them all the same, but does not have them, so that neither `vars` nor JSON shows them. They are
set where values are read, so that what comes in is as Python would have made it. Nothing is converted here.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, get_origin

import msgspec
from msgspec import inspect as mi

_ROWS = frozenset({list, tuple, set, frozenset})
Completing = Callable[[Any], None]


class _Plan(NamedTuple):
    """What to do with the instances of one class.

    Args:
        defaults: The fields that may not be there, and what they are then.
        holding: The fields that may hold more such instances.
    """

    defaults: dict[str, Any]
    holding: set[str]


def completing(kind: mi.Type) -> Completing | None:
    """Return what sets the defaults that msgspec leaves out of values of a type; None where there are none.

    Args:
        kind: Msgspec's description of the type.
    """
    plans = _plans(kind)
    return _completing(plans) if any(plan.defaults for plan in plans.values()) else None


def _completing(plans: dict[Any, _Plan]) -> Completing:
    def complete(value: Any) -> None:
        cls: Any = value.__class__
        plan = plans.get(cls)
        if plan is None:
            for item in value if cls in _ROWS else value.values() if cls is dict else ():
                complete(item)
            return
        for name, default in plan.defaults.items():
            value.__dict__.setdefault(name, default)
        for name in plan.holding:
            complete(getattr(value, name))

    return complete


def _plans(kind: mi.Type) -> dict[Any, _Plan]:
    classes = list(_classes(kind, set()))
    plans = {cls: _Plan(_on_the_class(cls), set()) for cls, _ in classes}
    for cls, fields in classes:
        holding = (
            field.name for field in fields if any(plans[inner].defaults for inner, _ in _classes(field.type, set()))
        )
        plans[cls].holding.update(holding)
    return plans


def _on_the_class(cls: Any) -> dict[str, Any]:
    """The fields whose default is an attribute of the class, with their defaults; slots leave no room for one."""
    if issubclass(cls, msgspec.Struct):
        return {}
    return {
        field.name: field.default
        for field in dataclasses.fields(cls)
        if field.default is not dataclasses.MISSING
        and inspect.getattr_static(cls, field.name, dataclasses.MISSING) is field.default
    }


def _classes(node: Any, seen: set[int]) -> Iterator[tuple[Any, Any]]:
    """Every dataclass and struct in a type, with its fields."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, mi.DataclassType | mi.StructType):
        cls = get_origin(node.cls) or node.cls
        if dataclasses.is_dataclass(cls) or issubclass(cls, msgspec.Struct):  # and no attrs class
            yield cls, node.fields
    members: Any = ()
    if isinstance(node, tuple | list):
        members = node  # pyright: ignore[reportUnknownVariableType]
    elif isinstance(node, mi.Type | mi.Field):
        members = [getattr(node, name) for name in node.__struct_fields__]
    for member in members:
        yield from _classes(member, seen)
