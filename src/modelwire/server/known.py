"""Nodes that were made already: a program's tools take and return the same types again and again.

A node is known for as long as something uses it, and no longer: its classes may go with the last tool that names them.
A class whose annotations are text is looked at anew each time, since their names may have come to mean something else.
This file makes no node.
"""

from __future__ import annotations

import enum
import inspect
import weakref
from collections.abc import Hashable, Sequence
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

from modelwire.server.annotations import Scope, names_something
from modelwire.server.generics import class_hints
from modelwire.server.nodes import Node

_LITERALS = (str, int, float, type(None), enum.Enum)


class Reading(NamedTuple):
    """What the annotations of a class came to, where they are text.

    Args:
        cls: The class.
        args: What stands in the brackets behind it.
        hints: The annotation of each field, evaluated.
    """

    cls: Any
    args: tuple[Any, ...]
    hints: dict[str, Any]

    def holds(self, scope: Scope | None) -> bool:
        """Whether they come to the same where these names are known."""
        try:
            return class_hints(self.cls, self.args, scope) == self.hints
        except Exception:
            return False


class Known:
    """Nodes by their types. Safe to use from several threads: at worst a node is made twice.

    All that it holds of a class is held by the class's node, so that both go at once.
    """

    def __init__(self) -> None:
        self._nodes: weakref.WeakValueDictionary[Hashable, Node] = weakref.WeakValueDictionary()

    def find(self, key: Hashable, scope: Scope | None) -> tuple[Node, Sequence[Reading]] | None:
        """Return the node of a type, and what it depends on; None where it is not known.

        Args:
            key: What `key_of` returned.
            scope: Names that annotations of classes may use.
        """
        node = self._nodes.get(key)
        known = None if node is None else node.known_as.get(key)
        if node is None or known is None or not all(reading.holds(scope) for reading in known[1]):
            return None
        return node, known[1]

    def keep(self, key: Hashable, annotation: Any, node: Node, readings: Sequence[Reading]) -> None:
        """Know a node, for as long as somebody else holds it.

        Args:
            key: What `key_of` returned.
            annotation: Its type, which is kept as long as the node: no other class gets the id of one of its.
            node: The node, complete.
            readings: What it depends on.
        """
        # Replaced, never changed: another thread may be looking.
        node.known_as = {**getattr(node, "known_as", {}), key: (annotation, tuple(readings))}
        self._nodes[key] = node


def key_of(annotation: Any, closed: bool) -> Hashable | None:
    """Return what tells a type from others, the order of options and the types of literals included.

    Args:
        annotation: The type, evaluated.
        closed: Whether objects inside refuse what they do not know.

    Returns:
        The key, which is good for as long as the annotation is there; None for what has none.
    """
    found = _key(annotation)
    return None if found is None else (closed, found)


def _key(annotation: Any) -> Hashable | None:
    if isinstance(annotation, type) or annotation is None or annotation is Any:
        return id(annotation)
    origin = get_origin(annotation)
    if origin is None or origin is Annotated:
        return None
    args = get_args(annotation)
    if origin is Literal:
        typed: list[tuple[type, Any]] = [(type(value), value) for value in args if isinstance(value, _LITERALS)]
        return (id(Literal), *typed) if len(typed) == len(args) else None
    parts = tuple(_key(arg) if arg is not Ellipsis else id(arg) for arg in args)
    return None if None in parts else (id(origin), *parts)


def is_written_as_text(cls: Any) -> bool:
    """Whether annotations of a class mean what their names mean at the moment."""
    return any(
        names_something(annotation)
        for base in cls.__mro__
        if base is not object
        for annotation in inspect.get_annotations(base).values()
    )
