"""Classes with fields, converted member by member: dataclasses, attrs classes, TypedDict, NamedTuple, msgspec Struct.

All are objects in JSON, but for structs that ask for a list. Values are made by calling the class, so that its own
checks run. What the fields are is read by `modelwire.server.fields`; no user's library is imported.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import Any

import msgspec

from modelwire.rules.param_headers import KEYWORD
from modelwire.server import explain
from modelwire.server.annotations import is_typed_dict
from modelwire.server.attrs_validators import refused_field
from modelwire.server.constraints import MISSING
from modelwire.server.definitions import Definitions
from modelwire.server.fields import Field
from modelwire.server.json_values import is_list, is_object
from modelwire.server.nodes import Choice, Misfit, Node
from modelwire.server.plain_values import plain_form


class Fields(Node):
    """A class with fields.

    Args:
        cls: The class.
        name: What ``$defs`` calls it.
        key: What tells it from another of the same name.
        tag: The member that tells its objects from others, and its value.
        closed: Other members than the fields are refused.
    """

    def __init__(
        self, cls: Any, name: str, key: Any = None, *, tag: tuple[str, Any] | None = None, closed: bool = False
    ) -> None:
        self.exact = dict if is_typed_dict(cls) else cls
        self._name = name
        self._key = key
        self._documentation = _documentation(cls)
        self.fields: list[Field] = []
        self.others: Node | None = None
        """The type of further members, where they are kept."""
        self.tag = tag
        self.closed = closed
        self._shape: Any = None

    @property
    def wanted(self) -> frozenset[str]:
        return frozenset({"object"})

    @functools.cached_property
    def _taken(self) -> frozenset[str]:
        """The members that an object may have, by their names in JSON."""
        return frozenset(field.wire for field in self.fields if field.argument) | {tag for tag, _ in self._tags()}

    def _tags(self) -> list[tuple[str, Any]]:
        return [] if self.tag is None else [self.tag]

    def load(self, value: Any, path: str, lax: bool = False) -> Any:
        if not is_object(value):
            self.misfit(value, path)
        given: dict[str, Any] = value
        found: dict[str, Any] = {}
        problems = self._outside(given, path)
        for field in self.fields:
            if not field.argument:
                continue
            try:
                if field.wire in given:
                    found[field.argument] = field.source.load(given[field.wire], self._place(path, field), lax)
                elif field.required:
                    problems.append(self._missing(field, given, path))
            except Misfit as misfit:
                problems += misfit.problems
        found.update(self._loaded_others(given, path, lax, problems))
        if problems:
            raise Misfit(problems, inside=True, matched=self._matched(given))
        return self._new(found, given, path)

    def _loaded_others(self, given: dict[str, Any], path: str, lax: bool, problems: list[str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.others is None or given.keys() <= self._taken:
            return found
        for name in given.keys() - self._taken:
            try:
                found[name] = self.others.load(given[name], f"{path}.{explain.short(name)}", lax)
            except Misfit as misfit:
                problems += misfit.problems
        return {name: found[name] for name in given if name in found}

    def _place(self, path: str, field: Field) -> str:
        return f"{path}.{field.wire}"

    def _matched(self, given: dict[str, Any]) -> int:
        """How near a value is: the tag says more than a member."""
        tagged = self.tag is not None and given.get(self.tag[0]) == self.tag[1]
        return sum(field.wire in given for field in self.fields) + 2 * tagged

    def _new(self, found: dict[str, Any], given: dict[str, Any], path: str) -> Any:
        try:
            return self.exact(**found)
        except (ValueError, TypeError, ArithmeticError, AssertionError) as error:
            problem = self._refused_by_attrs(error, given, path) or _said(error, given, path)
            raise Misfit([problem], inside=True, matched=len(found)) from None

    def _refused_by_attrs(self, error: BaseException, given: dict[str, Any], path: str) -> str | None:
        """What a validator of attrs itself refused, in our words."""
        refused = refused_field(error)
        field = next((field for field in self.fields if refused and field.argument == refused), None)
        if field is None or field.wire not in given:
            return None
        place = self._place(path, field)
        return f"{place}: {explain.shown(given[field.wire], place)} is not accepted here"

    def _outside(self, value: dict[str, Any], path: str) -> list[str]:
        """Faults that are no field's: the tag, and members that are not known where none may be added."""
        problems = [
            f"{path}.{tag}: expected {explain.one_of([wanted])}, got {explain.shown(value[tag], path)}"
            for tag, wanted in self._tags()
            if tag in value and value[tag] != wanted
        ]
        if self.closed and not value.keys() <= self._taken:
            problems += [explain.unknown_member(path, name, self._taken) for name in value if name not in self._taken]
        return problems

    def _missing(self, field: Field, value: dict[str, Any], path: str) -> str:
        hint = "" if self.closed else explain.misspelt(field.wire, self._taken, value)
        return f"{self._place(path, field)}: missing; expected {field.source.expected()}{hint}"

    def dump(self, value: Any, path: str) -> Any:
        if isinstance(value, Mapping):
            return self._dump_mapping(dict(value), path)  # pyright: ignore[reportUnknownArgumentType]
        if self.exact is dict or not isinstance(value, self.exact):
            self.foreign(value, path)
        found: dict[str, Any] = dict(self._tags())
        problems: list[str] = []
        for field in self.fields:
            item = getattr(value, field.name, msgspec.UNSET)
            if item is msgspec.UNSET:
                continue
            try:
                found[field.wire] = field.node.dump(item, self._place(path, field))
            except Misfit as misfit:
                problems += misfit.problems
        if problems:
            raise Misfit(problems, inside=True)
        return found

    def _dump_mapping(self, value: dict[str, Any], path: str) -> dict[str, Any]:
        """A dict may stand for an object of a class: on the wire they are the same."""
        if self.exact is dict:  # its own members are called as the class calls them
            wires = {field.name: field.wire for field in self.fields}
            value = {wires.get(name, name): item for name, item in value.items()}
        known = {field.wire: field for field in self.fields}
        found: dict[str, Any] = {}
        problems = self._outside(value, path)
        for field in self.fields:
            if field.required and field.wire not in value:
                problems.append(self._missing(field, value, path))
        for name, item in value.items():
            try:
                node = known[name].node if name in known else self.others
                found[name] = (
                    msgspec.to_builtins(item, str_keys=True, enc_hook=plain_form)
                    if node is None
                    else node.dump(item, f"{path}.{name}")
                )
            except Misfit as misfit:
                problems += misfit.problems
            except TypeError:
                place = f"{path}.{explain.short(str(name))}"
                problems.append(f"{place}: a value of type {type(item).__name__} has no JSON form")
        if problems:
            raise Misfit(problems, inside=True)
        return found

    def schema(self, defs: Definitions) -> dict[str, Any]:
        return defs.recursive((self._key, defs.output), self._name, lambda: self._defined(defs))

    def _defined(self, defs: Definitions) -> dict[str, Any]:
        properties: dict[str, Any] = {tag: {"enum": [value]} for tag, value in self._tags()}
        required = list(properties)
        for field in self._shown(defs):
            schema = (field.node if defs.output else field.source).schema(defs)
            properties[field.wire] = _with_default(schema, field)
            if field.header is not None and not defs.output:
                properties[field.wire] = {**properties[field.wire], KEYWORD: field.header.name}
            required += [field.wire] if field.required else []
        found: dict[str, Any] = {"type": "object", "properties": properties}
        found.update({"description": self._documentation} if self._documentation else {})
        found.update({"required": required} if required else {})
        if self.others is not None:
            others = self.others.schema(defs)
            found.update({"additionalProperties": others} if others else {})
        elif self.closed:
            found["additionalProperties"] = False
        return found

    def _shown(self, defs: Definitions) -> list[Field]:
        return [field for field in self.fields if field.argument or defs.output]

    def expected(self) -> str:
        names = [field.wire for field in self.fields if field.required and field.argument]
        return f"an object with {', '.join(names[:5])}" if names else "an object"

    def constants(self) -> dict[str, Any]:
        nodes = {field.wire: getattr(field.source, "parts", None) or field.source for field in self.fields}
        choices = {wire: node.plain for wire, node in nodes.items() if isinstance(node, Choice)}
        return {wire: plain[0] for wire, plain in choices.items() if len(plain) == 1}

    def shape(self) -> Any:
        if self._shape is None:
            taken = [field for field in self.fields if field.argument]
            named = {f"f{index}": field for index, field in enumerate(taken)}
            self._shape = msgspec.defstruct(
                "Shape",
                [(name, Any, msgspec.UNSET) for name in named],
                rename={name: field.wire for name, field in named.items()},
                tag=None if self.tag is None else self.tag[1],
                tag_field=None if self.tag is None else self.tag[0],
                forbid_unknown_fields=self.closed,
                array_like=self._by_position,
                gc=False,
            )
            # Known before its fields are, since it may come up in them.
            shapes = {name: field.source.shape() for name, field in named.items()}
            self._shape.__annotations__ = {name: Any if kind is None else kind for name, kind in shapes.items()}
        return self._shape

    _by_position = False


class Positions(Fields):
    """A struct whose values are lists in JSON, the fields by position."""

    _by_position = True

    @property
    def wanted(self) -> frozenset[str]:
        return frozenset({"array"})

    @functools.cached_property
    def _order(self) -> list[str]:
        return [*(tag for tag, _ in self._tags()), *(field.wire for field in self.fields)]

    def load(self, value: Any, path: str, lax: bool = False) -> Any:
        if not is_list(value):
            self.misfit(value, path)
        items: list[Any] = value
        if self.closed and len(items) > len(self._order):
            raise Misfit([f"{path}: expected at most {len(self._order)} items, got {len(items)}"], inside=True)
        return super().load(dict(zip(self._order, items, strict=False)), path, lax)

    def dump(self, value: Any, path: str) -> Any:
        if isinstance(value, Mapping):
            self.foreign(value, path)
        return list(super().dump(value, path).values())

    def _place(self, path: str, field: Field) -> str:
        return f"{path}[{self._order.index(field.wire)}]"

    def _missing(self, field: Field, value: dict[str, Any], path: str) -> str:
        return f"{self._place(path, field)}: missing; expected {field.source.expected()} ({field.name})"

    def _defined(self, defs: Definitions) -> dict[str, Any]:
        found = super()._defined(defs)
        places = list(found.pop("properties").values())
        required = len(found.pop("required", ()))
        closed = found.pop("additionalProperties", None) is False
        limits = {"items": False} if closed else {}
        return {**found, "type": "array", "prefixItems": places, "minItems": required, **limits}

    def expected(self) -> str:
        return "a list"


def _with_default(schema: dict[str, Any], field: Field) -> dict[str, Any]:
    if field.default is MISSING or field.default is msgspec.UNSET:
        return schema
    try:
        plain = field.node.dump(field.default, "")
        msgspec.json.encode(plain)
    except (Misfit, TypeError, ValueError):
        return schema
    return {**schema, "default": plain}


def _documentation(cls: Any) -> str:
    """The docstring of a class, unless Python or a library wrote it."""
    text = cls.__dict__.get("__doc__") or ""
    return "" if text.startswith((f"{cls.__name__}(", "Method generated by attrs")) else inspect.cleandoc(text)


def _said(error: BaseException, value: dict[str, Any], path: str) -> str:
    """What a class said of its values, unless that might repeat a secret."""
    text = str(error.args[0]) if error.args else ""
    if not text or explain.repeats_secret(text, value, path):
        return f"{path}: its members do not go together"
    return f"{path}: {text}"
