"""Results that are content and nothing else, by their annotation: which are, and which values they may be.

No schema describes content blocks, so that such results have none; a value that is not what was promised is found all
the same. Nothing here makes content of a value: `modelwire.server.contents` does.
"""

from __future__ import annotations

import collections
from collections import abc
from collections.abc import Iterator
from typing import Any, get_args, get_origin

from modelwire.server.annotations import Scope, is_union, without_annotated
from modelwire.server.containers import Items, Row
from modelwire.server.converters import Unsupported, converter
from modelwire.server.nodes import Node
from modelwire.server.unions import Union

_LISTS = (
    list, tuple, collections.deque,
    abc.Sequence, abc.MutableSequence, abc.Collection, abc.Reversible, abc.Iterable,
)  # fmt: skip
_NOUNS: dict[Any, str] = {str: "text", type(None): "None"}


class Instance(Node):
    """Values that stand for themselves: those of a class.

    Args:
        cls: The class.
        noun: What messages call a value.
    """

    __slots__ = ("exact", "noun")

    def __init__(self, cls: Any, noun: str) -> None:
        self.exact = cls
        self.noun = noun

    def dump(self, value: Any, path: str) -> Any:
        if not isinstance(value, self.exact):
            self.foreign(value, path)
        return value

    def expected(self) -> str:
        return self.noun


def only_content(annotation: Any, content_types: tuple[type, ...]) -> bool:
    """Whether results of this type are content for the model, with nothing to put in ``structuredContent``.

    Args:
        annotation: The type.
        content_types: The classes of blocks, and of whole results.
    """
    plain = without_annotated(annotation)
    return plain in (str, None, type(None), Any) or _never(plain) or _is_content(plain, content_types)


def unsaid_list(annotation: Any) -> bool:
    """Whether results are lists of which nothing more is said: with blocks in it such a list is content."""
    plain = without_annotated(annotation)
    if is_union(plain):
        options = [option for option in get_args(plain) if option is not type(None)]
        return len(options) == 1 and unsaid_list(options[0])
    origin, items = get_origin(plain), [item for item in get_args(plain) if item is not Ellipsis]
    return (origin or plain) in _LISTS and items in ([], [Any], [object])


def content_node(annotation: Any, content_types: tuple[type, ...], scope: Scope) -> Node | None:
    """Return what knows which values a result may be that is only content; None where everything may.

    Args:
        annotation: Its type.
        content_types: The classes of blocks, and of whole results.
        scope: Names that the annotations of classes may use.
    """
    plain = without_annotated(annotation)
    return None if plain is Any else _node(annotation, content_types, scope)


def mentioned_inside(annotation: Any, content_types: tuple[type, ...]) -> bool:
    """Whether an annotation has blocks inside something else, where there is no content."""
    return any(
        (isinstance(item, type) and issubclass(item, content_types)) or mentioned_inside(item, content_types)
        for item in get_args(annotation)
    )


def takes_any_text(node: Node) -> bool:
    """Whether whatever text may be such a result."""
    members: list[Node] = node.members if isinstance(node, Union) else [node]
    return any(isinstance(member, Instance) and issubclass(str, member.exact) for member in members)


def _node(annotation: Any, content_types: tuple[type, ...], scope: Scope) -> Node:
    plain = without_annotated(annotation)
    if annotation in (str, None, type(None)) or (plain is str and not _rules_beside(annotation)):
        cls = type(None) if annotation is None else plain
        return Instance(cls, _NOUNS[cls])
    if _never(plain):
        return Instance((), "that it never returns")
    if not _is_content(plain, content_types):
        return _other(annotation, plain, scope)
    if is_union(plain):
        return Union([_node(option, content_types, scope) for option in get_args(plain)])
    origin, args = get_origin(plain), get_args(plain)
    if origin is tuple and args[-1:] != (Ellipsis,):
        return Row([_node(arg, content_types, scope) for arg in args])
    if origin is not None:
        return Items(list, (list, tuple, collections.deque), _node(args[0], content_types, scope))
    return Instance(plain, plain.__name__)


def _other(annotation: Any, plain: Any, scope: Scope) -> Node:
    """What is no content, beside content or as text: checked as far as anything can."""
    try:
        return converter(annotation, scope)
    except Unsupported:
        is_class = isinstance(plain, type) and get_origin(plain) is None
        return Instance(plain, plain.__name__) if is_class else Instance(object, "anything")


def _rules_beside(annotation: Any) -> bool:
    metadata: tuple[Any, ...] = getattr(annotation, "__metadata__", ())
    return any(not isinstance(item, str) for item in metadata)


def _never(plain: Any) -> bool:
    return getattr(plain, "__name__", "") in ("NoReturn", "Never")


def _is_content(annotation: Any, content_types: tuple[type, ...]) -> bool:
    plain = without_annotated(annotation)
    if isinstance(plain, type) and get_origin(plain) is None:
        return issubclass(plain, content_types)
    # What may be content beside something else is content as well: no schema describes blocks.
    return any(_is_content(member, content_types) for member in _members(plain))


def _members(plain: Any) -> Iterator[Any]:
    if is_union(plain) or get_origin(plain) in _LISTS:
        yield from get_args(plain)
