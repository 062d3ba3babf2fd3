"""Conversion member by member, for types that msgspec alone would refuse or not enforce: the parts without members.

A node takes decoded JSON and gives the Python value (`load`), takes the Python value and gives what JSON can hold
(`dump`), and says what it takes (`schema`). Loading is strict; with ``lax`` a number without a fraction may be an
integer, and nothing else changes. Nodes are built by `modelwire.server.converters` and never import a user's library.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import msgspec

from modelwire.server import explain
from modelwire.server.constraints import Check
from modelwire.server.definitions import Definitions

_STANDS_FOR: dict[Any, str] = {bool: "boolean", int: "integer", float: "number"}
_NONE: frozenset[str] = frozenset()


class Misfit(Exception):
    """A value does not fit a node.

    Args:
        problems: One clause per fault, each naming its place.
        inside: The value itself is of the right kind, and its members are not.
        matched: How many of its members are known.
    """

    def __init__(self, problems: list[str], *, inside: bool = False, matched: int = 0) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems
        self.inside = inside
        self.matched = matched


class Node:
    """One type, compiled; nothing changes it once it is complete, since several tools may have it."""

    __slots__ = ("__weakref__", "known_as")

    known_as: dict[Any, Any]
    """What `modelwire.server.known` knows it by; not there while nobody does."""

    exact: Any = None
    """The class whose instances are this node's and no other's; None where there is no such class."""

    tag: tuple[str, Any] | None = None
    """The member that tells its objects from those of other classes, and its value."""

    is_set: bool = False
    """It holds each item once, however often that comes."""

    @property
    def wanted(self) -> frozenset[str]:
        """The kinds of JSON value that text may stand for here."""
        return _NONE

    def load(self, value: Any, path: str, lax: bool = False) -> Any:
        """Return the Python value of decoded JSON.

        Raises:
            Misfit: It does not fit.
        """
        raise NotImplementedError

    def read(self, raw: msgspec.Raw | bytes, path: str) -> Any:
        """Return the Python value of JSON text."""
        return self.load(msgspec.json.decode(raw), path)

    def dump(self, value: Any, path: str) -> Any:
        """Return a Python value as decoded JSON.

        Raises:
            Misfit: It is not of this type.
        """
        raise NotImplementedError

    def schema(self, defs: Definitions) -> dict[str, Any]:
        """Return the schema, its definitions added to ``defs``."""
        raise NotImplementedError

    def expected(self) -> str:
        """Say what values are, as a noun phrase."""
        raise NotImplementedError

    def constants(self) -> dict[str, Any]:
        """Return the members of its objects that have one value only, with that."""
        return {}

    def shape(self) -> Any:
        """Return a type by which msgspec refuses the members that objects inside do not know; None without objects."""
        return None

    def misfit(self, value: Any, path: str) -> NoReturn:
        """Refuse decoded JSON as a whole."""
        raise Misfit([f"{path}: expected {self.expected()}, got {explain.shown(value, path)}"])

    def foreign(self, value: Any, path: str) -> NoReturn:
        """Refuse a Python value that is of another type."""
        got = "None" if value is None else f"a value of type {type(value).__name__}"
        raise Misfit([f"{path}: expected {self.expected()}, got {got}"])


class Choice(Node):
    """A ``Literal`` or an ``Enum``: some JSON scalars, each for one Python value.

    Args:
        pairs: JSON and Python value of each choice.
        cls: The class of all Python values, if they have one.
        description: What the schema says of the choices.
    """

    __slots__ = ("_pairs", "description", "exact")

    def __init__(self, pairs: Sequence[tuple[Any, Any]], cls: type | None = None, description: str = "") -> None:
        self._pairs = list(pairs)
        self.exact = cls
        self.description = description

    @property
    def plain(self) -> list[Any]:
        """The choices, as JSON has them."""
        return [plain for plain, _ in self._pairs]

    @property
    def wanted(self) -> frozenset[str]:
        kinds: set[str] = {_STANDS_FOR.get(type(plain), "") for plain, _ in self._pairs}
        return frozenset(kinds - {""})

    def load(self, value: Any, path: str, lax: bool = False) -> Any:
        for plain, python in self._pairs:
            if type(plain) is type(value) and plain == value:
                return python
        if lax and type(value) is float and value.is_integer():
            return self.load(int(value), path)
        self.misfit(value, path)

    def dump(self, value: Any, path: str) -> Any:
        for plain, python in self._pairs:
            if value is python or (type(value) is type(python) and value == python):
                return plain
        # What JSON would hold is as good: the text of an Enum's member, say.
        if any(type(value) is type(p) and value == p for p, _ in self._pairs):
            return value
        self.foreign(value, path)

    def schema(self, defs: Definitions) -> dict[str, Any]:
        found: dict[str, Any] = {"enum": self.plain}
        if self.description:
            found["description"] = self.description
        if self.exact is None:
            return found
        return defs.put(self.exact, self.exact.__name__, found)

    def expected(self) -> str:
        return explain.one_of(self.plain)


class Text(Node):
    """A class whose values are written as text.

    Args:
        cls: The class.
        form: The ``format`` of the schema.
        noun: What messages call a value.
        parse: Makes a value of text; a ``ValueError`` refuses.
    """

    __slots__ = ("_form", "_noun", "_parse", "exact")

    def __init__(self, cls: type, form: str, noun: str, parse: Callable[[str], Any]) -> None:
        self.exact = cls
        self._form = form
        self._noun = noun
        self._parse = parse

    def load(self, value: Any, path: str, lax: bool = False) -> Any:
        if not isinstance(value, str):
            self.misfit(value, path)
        try:
            return self._parse(value)
        except ValueError:
            self.misfit(value, path)

    def dump(self, value: Any, path: str) -> Any:
        if isinstance(value, str):
            self.load(value, path)
        elif not isinstance(value, self.exact):
            self.foreign(value, path)
        return str(value)

    def schema(self, defs: Definitions) -> dict[str, Any]:
        return {"type": "string", "format": self._form}

    def expected(self) -> str:
        return self._noun


class Checked(Node):
    """A node whose values must keep rules of their own.

    Args:
        inner: The node.
        checks: The rules.
        notes: Keywords of the schema that only annotate.
    """

    __slots__ = ("_checks", "_inner", "_notes", "exact", "tag")

    def __init__(self, inner: Node, checks: Sequence[Check], notes: dict[str, Any]) -> None:
        self._inner = inner
        self._checks = list(checks)
        self._notes = notes
        self.exact, self.tag = inner.exact, inner.tag

    @property
    def wanted(self) -> frozenset[str]:
        return self._inner.wanted

    def read(self, raw: msgspec.Raw | bytes, path: str) -> Any:
        found = self._inner.read(raw, path)  # from the text: a decimal keeps all of its digits
        if not self._hold(found):
            self.misfit(msgspec.json.decode(raw), path)
        return found

    def load(self, value: Any, path: str, lax: bool = False) -> Any:
        found = self._inner.load(value, path, lax)
        if not self._hold(found):
            self.misfit(value, path)
        return found

    def dump(self, value: Any, path: str) -> Any:
        plain = self._inner.dump(value, path)
        if not self._hold(self._inner.load(plain, path)):
            self.misfit(plain, path)
        return plain

    def _hold(self, value: Any) -> bool:
        try:
            return all(check.holds(value) for check in self._checks)
        except (TypeError, ArithmeticError):
            return False

    def schema(self, defs: Definitions) -> dict[str, Any]:
        found = dict(self._inner.schema(defs))
        text = self._notes.get("description") or found.get("description")
        told = [str(text)] if text else []
        for check in self._checks:
            # Decimals and dates are text in JSON, of which "minimum" says nothing.
            if not check.schema or (check.kind == "number" and found.get("type") == "string"):
                told.append(check.note)
            else:
                _constrain(found, check)
        return {**found, **self._notes, **({"description": " ".join(told)} if told else {})}

    def expected(self) -> str:
        unit = "items" if "array" in self.wanted else "members" if "object" in self.wanted else "characters"
        unit = f"different {unit}" if self._inner.is_set else unit
        sizes = [f"{check.words.removeprefix('of ')} {unit}" for check in self._checks if check.kind == "size"]
        bounds = [check.words for check in self._checks if check.kind == "number"]
        others = [check.words for check in self._checks if check.kind not in ("number", "size")]
        words = [" and ".join(bounds), *([f"of {' and '.join(sizes)}"] if sizes else []), " and ".join(others)]
        return " ".join([self._inner.expected(), *filter(None, words)])

    def shape(self) -> Any:
        return self._inner.shape()


def _constrain(schema: dict[str, Any], check: Check) -> None:
    for keyword, value in check.schema.items():
        keyword = _sized(keyword, schema)
        if schema.get(keyword, value) != value:
            schema.setdefault("allOf", []).append({keyword: value})
        schema.setdefault(keyword, value)


_SIZES = {"array": ("minItems", "maxItems"), "object": ("minProperties", "maxProperties")}


def _sized(keyword: str, schema: dict[str, Any]) -> str:
    if keyword not in ("min_length", "max_length"):
        return keyword
    names = _SIZES.get(schema.get("type", ""), ("minLength", "maxLength"))
    return names[keyword == "max_length"]


class Alias(Node):
    """A type that has a name and may contain itself; what it stands for is known once that is built.

    Args:
        name: The name.
        key: What tells it from another of the same name.
    """

    __slots__ = ("_expected", "_key", "_name", "_wanted", "target")

    def __init__(self, name: str, key: Any) -> None:
        self._name = name
        self._key = key
        self._wanted = _NONE
        self._expected = "another value"
        self.target: Node = self

    def stands_for(self, target: Node) -> None:
        """Say what it is."""
        self.target = target
        self._wanted, self._expected = target.wanted, target.expected()

    @property
    def wanted(self) -> frozenset[str]:
        return self._wanted

    def load(self, value: Any, path: str, lax: bool = False) -> Any:
        return self.target.load(value, path, lax)

    def dump(self, value: Any, path: str) -> Any:
        return self.target.dump(value, path)

    def schema(self, defs: Definitions) -> dict[str, Any]:
        return defs.recursive(self._key, self._name, lambda: self.target.schema(defs))

    def expected(self) -> str:
        return self._expected
