"""The fields of generic classes: which type a type variable stands for, in a class and in those that it inherits from.

Evaluates annotations; builds nothing.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Iterator
from typing import Annotated, Any, ForwardRef, Literal, Self, TypeVar, get_args, get_origin

from modelwire.server.annotations import Scope, is_typed_dict, is_union

Bindings = dict[Any, Any]


def substitute(annotation: Any, bindings: Bindings) -> Any:
    """Return an annotation with its type variables replaced; one that stands for nothing becomes its bound."""
    if isinstance(annotation, TypeVar):
        return bindings[annotation] if annotation in bindings else bound(annotation)
    parameters = getattr(annotation, "__parameters__", ())
    if not parameters or _is_bare(annotation):
        return annotation
    return annotation[tuple(substitute(parameter, bindings) for parameter in parameters)]


def _is_bare(annotation: Any) -> bool:
    """Whether this is a generic class without brackets."""
    return isinstance(annotation, type) and get_origin(annotation) is None


def bound(variable: Any) -> Any:
    """Return what a type variable may stand for."""
    constraints: tuple[Any, ...] = getattr(variable, "__constraints__", ())
    if constraints:
        return typing.Union[constraints]  # noqa: UP007 - known at run time only
    upper = getattr(variable, "__bound__", None)
    return Any if upper is None or isinstance(upper, ForwardRef) else upper


def is_unpacked(annotation: Any) -> bool:
    """Whether this is ``*tuple[int, ...]``, or ``Unpack[...]`` of one."""
    origin = get_origin(annotation)
    name = getattr(origin, "_name", None) or getattr(origin, "__name__", "")
    return name == "Unpack" or getattr(annotation, "__unpacked__", False) is True


def _without_self(annotation: Any, cls: Any) -> Any:
    """Return an annotation with ``Self`` replaced by the class that it stands in."""
    if isinstance(annotation, type) or annotation is Self:
        return cls if annotation is Self else annotation
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is None or origin is Literal or not args or _is_bare(annotation):
        return annotation
    made = tuple(_without_self(arg, cls) for arg in args)
    if made == args:
        return annotation
    if origin is Annotated:
        return Annotated[(made[0], *args[1:])]
    return typing.Union[made] if is_union(annotation) else origin[made]  # noqa: UP007 - known at run time only


def class_hints(cls: Any, args: tuple[Any, ...], scope: Scope | None) -> dict[str, Any]:
    """Return the annotation of each field, evaluated, its type variables replaced.

    Args:
        cls: The class.
        args: What stands in the brackets behind it.
        scope: Names that annotations may use where the class's module does not have them.

    Raises:
        Exception: What Python raises for a name or an expression that does not work.
    """
    hints = _hints(cls, scope)
    bound_in = list(_owners(cls, dict(zip(getattr(cls, "__parameters__", ()), args, strict=False))))
    owners = [(inspect.get_annotations(owner), owned) for owner, owned in bound_in]
    if is_typed_dict(cls):  # each has the annotations of its bases, too
        owners.reverse()
    found: dict[str, Any] = {}
    own = cls[args] if args else cls
    for name, hint in hints.items():
        bindings = next((owned for owner, owned in owners if name in owner), Bindings())
        found[name] = _without_self(substitute(hint, bindings), own)
    return found


def _hints(cls: Any, scope: Scope | None) -> dict[str, Any]:
    if scope is None:
        return typing.get_type_hints(cls, include_extras=True)
    # The names of a function are those of the classes inside it; another module's class means its own by the same name.
    inside = scope.local_names if "<locals>" in cls.__qualname__ else None
    try:
        return typing.get_type_hints(cls, localns=inside, include_extras=True)
    except NameError:
        return typing.get_type_hints(cls, localns=scope.names, include_extras=True)


def _owners(cls: Any, bindings: Bindings) -> Iterator[tuple[Any, Bindings]]:
    yield cls, bindings
    for base in getattr(cls, "__orig_bases__", ()) if "__orig_bases__" in cls.__dict__ else cls.__bases__:
        origin = get_origin(base) or base
        if origin is typing.Generic or not isinstance(origin, type):
            continue
        args = [substitute(arg, bindings) for arg in get_args(base)]
        yield from _owners(origin, dict(zip(getattr(origin, "__parameters__", ()), args, strict=False)))
