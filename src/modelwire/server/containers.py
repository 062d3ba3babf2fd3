"""Lists, tuples and objects with free names, converted member by member."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from modelwire.server import explain
from modelwire.server.definitions import Definitions
from modelwire.server.json_values import is_list, is_object
from modelwire.server.nodes import Choice, Misfit, Node


class Items(Node):
    """A list, set, deque or whatever else is made of items of one type.

    Args:
        make: Makes the collection of a list.
        classes: What a result may be.
        item: The type of each.
    """

    __slots__ = ("_classes", "_make", "is_set", "item")

    def __init__(self, make: Callable[[list[Any]], Any], classes: tuple[type, ...], item: Node) -> None:
        self._make = make
        self._classes = classes
        self.is_set = make in (set, frozenset)
        self.item = item

    @property
    def wanted(self) -> frozenset[str]:
        return frozenset({"array"})

    def load(self, value: Any, path: str, lax: bool = False) -> Any:
        if not is_list(value):
            self.misfit(value, path)
        load = self.item.load
        items: list[Any] = value
        try:
            return self._make([load(item, f"{path}[{index}]", lax) for index, item in enumerate(items)])
        except Misfit:
            raise _collected(
                lambda item, place: load(item, place, lax), ((f"{path}[{i}]", item) for i, item in enumerate(items))
            ) from None
        except TypeError:
            problem = f"{path}: expected items that are no lists and no objects, which a set cannot hold"
            raise Misfit([problem]) from None

    def dump(self, value: Any, path: str) -> Any:
        if not isinstance(value, self._classes):
            self.foreign(value, path)
        items: Iterable[Any] = value
        return [self.item.dump(item, f"{path}[{index}]") for index, item in enumerate(items)]

    def schema(self, defs: Definitions) -> dict[str, Any]:
        # What comes for a set may have an item twice: JSON has lists only, and a set takes each once.
        unique = {"uniqueItems": True} if defs.output and self.is_set else {}
        items = self.item.schema(defs)
        return {"type": "array", **({"items": items} if items else {}), **unique}

    def expected(self) -> str:
        return "a list"

    def shape(self) -> Any:
        item = self.item.shape()
        return None if item is None else list[item]


class Row(Node):
    """A tuple of so many types.

    Args:
        items: The type of each place.
    """

    __slots__ = ("_items",)

    exact = tuple

    def __init__(self, items: Sequence[Node]) -> None:
        self._items = list(items)

    @property
    def wanted(self) -> frozenset[str]:
        return frozenset({"array"})

    def load(self, value: Any, path: str, lax: bool = False) -> Any:
        if not is_list(value) or len(value) != len(self._items):
            self.misfit(value, path)
        return tuple(_each(self._items, value, path, lambda node, item, place: node.load(item, place, lax)))

    def dump(self, value: Any, path: str) -> Any:
        items = list(value) if isinstance(value, tuple) else value  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        if not is_list(items) or len(items) != len(self._items):
            self.foreign(value, path)
        return _each(self._items, items, path, lambda node, item, place: node.dump(item, place))

    def schema(self, defs: Definitions) -> dict[str, Any]:
        size = len(self._items)
        items = [item.schema(defs) for item in self._items]
        # "items": false would say no more here, but to readers of older drafts (no prefixItems) that there is no item.
        places = {"prefixItems": items} if items else {}
        return {"type": "array", "minItems": size, "maxItems": size, **places}

    def expected(self) -> str:
        return f"a list of exactly {len(self._items)} items"

    def shape(self) -> Any:
        shapes = [item.shape() for item in self._items]
        if all(shape is None for shape in shapes):
            return None
        return tuple[tuple(Any if shape is None else shape for shape in shapes)]


class Members(Node):
    """An object with members of one type under free names.

    Args:
        make: Makes the mapping of a dict.
        classes: What a result may be.
        key: The type of each name; None where any will do.
        value: The type of each member.
    """

    __slots__ = ("_classes", "_key", "_make", "_value")

    def __init__(
        self,
        make: Callable[[dict[Any, Any]], Any],
        classes: tuple[type, ...],
        key: Node | None,
        value: Node,
    ) -> None:
        self._make = make
        self._classes = classes
        self._key = key
        self._value = value

    @property
    def wanted(self) -> frozenset[str]:
        return frozenset({"object"})

    def load(self, value: Any, path: str, lax: bool = False) -> Any:
        if not is_object(value):
            self.misfit(value, path)
        found: dict[Any, Any] = {}
        problems: list[str] = []
        matched = 0
        for name, item in value.items():
            try:
                key = name if self._key is None else self._key.load(name, f"a member name of {path}")
                found[key] = self._value.load(item, _place(path, name), lax)
                matched += 1
            except Misfit as misfit:
                problems += misfit.problems
                matched += misfit.matched
        if problems:
            raise Misfit(problems, inside=True, matched=matched)
        return self._make(found)

    def dump(self, value: Any, path: str) -> Any:
        if not isinstance(value, self._classes):
            self.foreign(value, path)
        items: Mapping[Any, Any] = value
        found: dict[str, Any] = {}
        for key, item in items.items():
            name = key if self._key is None else self._key.dump(key, f"a member name of {path}")
            if not isinstance(name, str):
                raise Misfit([f"a member name of {path}: expected text, got a value of type {type(key).__name__}"])
            found[name] = self._value.dump(item, _place(path, name))
        return found

    def schema(self, defs: Definitions) -> dict[str, Any]:
        names, values = {} if self._key is None else self._key.schema(defs), self._value.schema(defs)
        return {
            "type": "object",
            **({"propertyNames": names} if names else {}),
            **({"additionalProperties": values} if values else {}),
        }

    def expected(self) -> str:
        return "an object"

    def shape(self) -> Any:
        value = self._value.shape()
        return None if value is None else dict[str, value]


class PlainKey(Node):
    """A name that msgspec takes for a number, a date or another type.

    Args:
        annotation: The type of the names.
        node: The same, compiled.
    """

    __slots__ = ("_node", "_type")

    def __init__(self, annotation: Any, node: Node) -> None:
        self._type = dict[annotation, Any]
        self._node = node

    def load(self, value: Any, path: str, lax: bool = False) -> Any:
        try:
            name = next(iter(msgspec.convert({value: None}, self._type, str_keys=True)))
        except msgspec.MsgspecError:
            self.misfit(value, path)
        if isinstance(name, float) and not math.isfinite(name):
            self.misfit(value, path)
        return name

    def dump(self, value: Any, path: str) -> Any:
        try:
            name = next(iter(msgspec.to_builtins({value: None}, str_keys=True)))
        except (msgspec.MsgspecError, TypeError, ValueError):
            self.foreign(value, path)
        self.load(name, path)
        return name

    def schema(self, defs: Definitions) -> dict[str, Any]:
        choice = getattr(self._node, "parts", None)
        if not isinstance(choice, Choice):
            return defs.of(self._type).get("propertyNames", {})
        if all(type(plain) is str for plain in choice.plain):
            return self._node.schema(defs)
        return {"enum": [next(iter(msgspec.to_builtins({plain: None}, str_keys=True))) for plain in choice.plain]}

    def expected(self) -> str:
        return self._node.expected()


def _place(path: str, name: str) -> str:
    return f"{path}[…]" if explain.is_secret(path) else f"{path}.{explain.short(name)}"


def _each(nodes: list[Node], values: Any, path: str, convert: Callable[[Node, Any, str], Any]) -> list[Any]:
    found: list[Any] = []
    problems: list[str] = []
    for index, (node, item) in enumerate(zip(nodes, values, strict=True)):
        try:
            found.append(convert(node, item, f"{path}[{index}]"))
        except Misfit as misfit:
            problems += misfit.problems
    if problems:
        raise Misfit(problems, inside=True, matched=len(found))
    return found


def _collected(load: Callable[[Any, str], Any], items: Iterable[tuple[str, Any]]) -> Misfit:
    """All faults of a list, once there is one."""
    problems: list[str] = []
    matched = 0
    for place, item in items:
        try:
            load(item, place)
            matched += 1
        except Misfit as misfit:
            problems += misfit.problems
            matched += misfit.matched
    return Misfit(problems, inside=True, matched=matched)
