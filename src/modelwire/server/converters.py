"""One converter for each annotation: msgspec where it enforces everything that the annotation says, nodes elsewhere.

`converter` goes through an annotation once, when a function is registered. What msgspec enforces by itself stays
msgspec's, also inside what it does not; constraints that it knows under another name are handed to it; pydantic's
types go to pydantic; classes with fields, unions and containers are taken apart. What is left is refused.
"""

from __future__ import annotations

import collections
import contextlib
import enum
import functools
import inspect
import ipaddress
import pathlib
import re
import sys
import typing
from collections import abc
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Annotated, Any, ForwardRef, Literal, TypeVar, cast, get_args, get_origin

import msgspec

from modelwire.server import explain
from modelwire.server.annotations import (
    Header,
    Name,
    Scope,
    is_pydantic,
    is_simple,
    is_union,
    misplaced,
    refusal,
    without_annotated,
)
from modelwire.server.constraints import MISSING, Check, Rules, Unsupported, is_field, limit_check, read
from modelwire.server.containers import Items, Members, PlainKey, Row
from modelwire.server.fields import has_fields, outline
from modelwire.server.generics import bound, is_unpacked, substitute
from modelwire.server.headers import safe_limits
from modelwire.server.known import Known, Reading, is_written_as_text, key_of
from modelwire.server.nodes import Alias, Checked, Choice, Node, Text
from modelwire.server.objects import Fields, Positions
from modelwire.server.plain import Plain
from modelwire.server.pydantic_types import Pydantic
from modelwire.server.unions import Union
from modelwire.server.unsupported import in_no_set, no_form, no_key, no_limit, shown, unhashable

__all__ = ["Unsupported", "converter", "mirrored"]

_LISTS: dict[Any, tuple[Callable[[list[Any]], Any], tuple[type, ...]]] = {
    list: (list, (list, tuple)),
    abc.Sequence: (list, (list, tuple)),
    abc.MutableSequence: (list, (list, tuple, collections.deque)),
    abc.Collection: (list, (list, tuple, set, frozenset, collections.deque)),
    abc.Iterable: (list, (list, tuple, set, frozenset, collections.deque)),
    abc.Reversible: (list, (list, tuple, collections.deque)),
    abc.Container: (list, (list, tuple, set, frozenset, collections.deque)),
    collections.deque: (collections.deque, (collections.deque, list, tuple)),
    set: (set, (set, frozenset)),
    abc.MutableSet: (set, (set, frozenset)),
    abc.Set: (set, (set, frozenset)),
    frozenset: (frozenset, (set, frozenset)),
}
_MAPPINGS: dict[Any, Callable[[dict[Any, Any]], Any]] = {
    dict: dict,
    abc.Mapping: dict,
    abc.MutableMapping: dict,
    collections.OrderedDict: collections.OrderedDict,
    collections.defaultdict: dict,
}
_TEXTS: tuple[tuple[type, str, str], ...] = (
    (pathlib.PurePath, "path", "a path as text"),
    (ipaddress.IPv4Address, "ipv4", 'an IPv4 address such as "192.0.2.1"'),
    (ipaddress.IPv6Address, "ipv6", 'an IPv6 address such as "2001:db8::1"'),
)
_SCALARS = (str, int, float, bool, type(None))
_PLAIN: dict[Any, Node] = {kind: Plain(kind) for kind in (Any, str, int, float, bool, None)}
_KNOWN = Known()


def converter(annotation: Any, scope: Scope | None = None, *, closed: bool = False) -> Node:
    """Return what converts values of a type; a `Plain` one when msgspec does all of it.

    Args:
        annotation: The type, evaluated.
        scope: Names that annotations of classes may use beside those of their modules.
        closed: Refuse members that an object does not know, unless its class says otherwise.

    Raises:
        Unsupported: Nothing could enforce the type.
    """
    return _PLAIN[annotation] if is_simple(annotation) else _Builder(scope, closed).whole(annotation)


def mirrored(annotation: Any, scope: Scope | None = None, *, closed: bool = False) -> Node:
    """Return what converts values of a type that a header repeats: integers only as far as every peer can hold them.

    Args:
        annotation: The type, evaluated.
        scope: As for `converter`.
        closed: As for `converter`.

    Raises:
        Unsupported: Nothing could enforce the type.
    """
    builder = _Builder(scope, closed)
    return builder.limited(builder.whole(annotation), safe_limits(annotation))


class _Builder:
    def __init__(self, scope: Scope | None, closed: bool) -> None:
        self._scope = scope
        self._closed = closed
        self._made: dict[Any, Node] = {}
        self._sure = False
        """Inside a type that msgspec enforces, whose parts it enforces then, too."""
        self._new: dict[Hashable, tuple[Any, Node, Sequence[Reading]]] = {}
        """What may be known from now on, once all of it is complete: type, node, what it depends on."""
        self._read: list[Reading] = []
        self._tied = self._circular = False
        """Names were looked up that no `Reading` tells of; a class came up inside itself."""

    @property
    def _names(self) -> Mapping[str, Any]:
        return {} if self._scope is None else self._scope.names

    def whole(self, annotation: Any) -> Node:
        """Build a node and, if that works, have its parts known for the next one."""
        node = self.build(annotation)
        if not self._tied:
            for key, (part, made, readings) in self._new.items():
                _KNOWN.keep(key, part, made, self._read if self._circular else readings)
        return node

    def build(self, annotation: Any) -> Node:
        if isinstance(annotation, str | ForwardRef):
            self._tied = True
            annotation = self._resolved(annotation)
        if annotation is object:
            annotation = Any
        if is_simple(annotation):
            return _PLAIN[annotation]
        key = key_of(annotation, self._closed)
        if key is None:
            return self._built(annotation, _is_refused)
        known = self._new[key][1:] if key in self._new else _KNOWN.find(key, self._scope)
        if known is not None:
            self._read += known[1]
            return known[0]
        before = len(self._read)
        node = self._built(annotation, self._is_refused)
        self._new[key] = (annotation, node, self._read[before:])
        return node

    def _is_refused(self, annotation: Any) -> bool:
        """Whether msgspec alone is not enough; what the other side of the same class found out is not asked again."""
        known = _KNOWN.find(key_of(annotation, not self._closed), self._scope)
        if known is None:
            return refusal(annotation) is not None
        if not isinstance(known[0], Plain):
            return True
        return known[0].annotation is not annotation and refusal(annotation) is not None

    def _built(self, annotation: Any, is_refused: Callable[[Any], bool]) -> Node:
        if not self._sure and is_refused(annotation):
            return self._taken_apart(annotation)
        outer, self._sure = self._sure, True
        try:
            parts = self._taken_apart(annotation)
        finally:
            self._sure = outer
        return parts if isinstance(parts, Plain) else self._plain(annotation, parts)

    def _plain(self, annotation: Any, parts: Node | None = None) -> Plain:
        return Plain(annotation, parts, closed=self._closed)

    def limited(self, node: Node, limits: dict[str, int]) -> Node:
        """Add limits to a node."""
        return self._with_rules(node, Rules(limits=dict(limits)))

    def _taken_apart(self, annotation: Any) -> Node:
        origin, args = get_origin(annotation), get_args(annotation)
        if origin is Annotated:
            return self._annotated(annotation, args[0], args[1:])
        if is_union(annotation):
            return self._union(args)
        if origin is Literal:
            return Choice([(_literal(value), value) for value in args])
        if isinstance(annotation, TypeVar):
            return self.build(bound(annotation))
        cls = origin or annotation
        for name in () if isinstance(cls, type) else ("__supertype__", "__value__"):
            if hasattr(cls, name):
                return self._named(annotation, cls, args, name)
        return self._class(annotation, cls, args)

    def _resolved(self, name: str | ForwardRef, module: Mapping[str, Any] | None = None) -> Any:
        text = name if isinstance(name, str) else name.__forward_arg__
        try:
            return eval(text, {**self._names, **(module or {})})
        except Exception as error:
            why = "it is no expression" if isinstance(error, SyntaxError) else error
            raise Unsupported(f"{text!r} cannot be evaluated: {why}") from error

    def _annotated(self, annotation: Any, base: Any, metadata: tuple[Any, ...]) -> Node:
        for item in metadata:
            if isinstance(item, Name | Header):
                raise Unsupported(misplaced(item))
        rules = read(metadata)
        if rules.foreign or is_pydantic(base):
            if hasattr(base, "model_fields") and not hasattr(base, "__len__"):  # pydantic would fail at each call
                for name in rules.limits:
                    raise no_limit(name, base)
            return self._pydantic(annotation)
        return self._with_rules(self.build(base), rules)

    def _with_rules(self, node: Node, rules: Rules) -> Node:
        if not (rules.limits or rules.predicates or rules.notes):
            return node
        if isinstance(node, Plain):
            return self._plain_with_rules(node, rules)
        if isinstance(node, Union) and rules.limits:
            node, rules = self._spread(node, rules), Rules(predicates=rules.predicates, notes=rules.notes)
            return self._with_rules(node, rules)
        return _checked(node, node, rules)

    def _plain_with_rules(self, node: Plain, rules: Rules) -> Node:
        """What msgspec enforces, with rules beside it that it may enforce as well."""
        if isinstance(node.parts, Union) and rules.limits:
            return self._with_rules(node.parts, rules)
        meta = rules.meta()
        annotation = None if meta is None else Annotated[node.annotation, meta]
        if annotation is None or (not self._sure and refusal(annotation) is not None):
            return _checked(node, node, rules)
        return self._plain(annotation, None if node.parts is None else _checked(node.parts, node, rules))

    def _spread(self, union: Union, rules: Rules) -> Node:
        """Limits beside a union are limits of those members that they can apply to: ``int | None`` at least 1."""
        members: list[Node] = []
        used: set[str] = set()
        for member in union.members:
            applying = {name for name in rules.limits if _applies(limit_check(name, rules.limits[name]), member)}
            used |= applying
            own = Rules(
                limits={name: value for name, value in rules.limits.items() if name in applying},
                more=[(name, value) for name, value in rules.more if name in applying],
            )
            members.append(self._with_rules(member, own))
        for name in rules.limits.keys() - used:
            words = limit_check(name, rules.limits[name]).words
            raise Unsupported(f"a constraint ({words}) does not apply to {union.expected()}")
        return self._joined(members)

    def _union(self, options: tuple[Any, ...]) -> Node:
        members: list[Node] = []
        for option in options:
            if option is not msgspec.UnsetType:
                member = self.build(option)
                inner = member.parts if isinstance(member, Plain) else member
                members += inner.members if isinstance(inner, Union) else [member]
        return members[0] if len(members) == 1 else self._joined(members)

    def _joined(self, members: list[Node]) -> Node:
        return self._folded(Union(members), members, lambda types: typing.Union[types])  # noqa: UP007

    def _folded(self, node: Node, parts: list[Node], make: Callable[[tuple[Any, ...]], Any]) -> Node:
        """The node, as what msgspec can do after all where its parts came down to what it knows."""
        types = tuple(part.annotation for part in parts if isinstance(part, Plain))
        if self._sure or len(types) != len(parts):
            return node
        annotation = make(types)
        return self._plain(annotation, node) if refusal(annotation) is None else node

    def _named(self, annotation: Any, named: Any, args: tuple[Any, ...], attribute: str) -> Node:
        """A ``NewType``, or a ``type`` alias, which may contain itself."""
        if annotation in self._made:
            self._circular = True
            return self._made[annotation]
        alias = self._made[annotation] = Alias(named.__name__, annotation)
        bindings = dict(zip(getattr(named, "__type_params__", ()) or getattr(named, "__parameters__", ()), args))
        value = getattr(named, attribute)
        if isinstance(value, str):
            value = self._resolved(value, vars(sys.modules[named.__module__]))
        target = self.build(substitute(value, bindings) if bindings else value)
        if not _contains(target, alias):
            self._made[annotation] = target
            return target
        alias.stands_for(target)
        return alias

    def _class(self, annotation: Any, cls: Any, args: tuple[Any, ...]) -> Node:
        found = self._found(annotation, cls, args)
        if found is not None:
            return found
        if self._sure:
            return Plain(annotation)
        raise no_form(annotation)

    def _found(self, annotation: Any, cls: Any, args: tuple[Any, ...]) -> Node | None:
        if cls in _LISTS:
            return self._list(cls, args)
        if cls is tuple:
            return self._tuple(annotation, args)
        if cls in _MAPPINGS:
            return self._mapping(cls, args)
        if is_pydantic(cls):
            return self._pydantic(annotation)
        return self._of_class(cls, args) if isinstance(cls, type) else None

    def _of_class(self, cls: Any, args: tuple[Any, ...]) -> Node | None:
        if issubclass(cls, enum.Enum) and not issubclass(cls, enum.Flag):
            return _enum(cls)
        if has_fields(cls):
            return self._fields(cls, args)
        return next((Text(cls, form, noun, cls) for kind, form, noun in _TEXTS if issubclass(cls, kind)), None)

    def _pydantic(self, annotation: Any) -> Node:
        complete = getattr(annotation, "__pydantic_complete__", True) is True
        self._tied |= not complete
        return Pydantic(annotation, {} if complete else self._names, closed=self._closed)

    def _list(self, cls: Any, args: tuple[Any, ...]) -> Node:
        make, classes = _LISTS[cls]
        if args and make in (set, frozenset) and (unfit := unhashable(args[0])) is not None:
            raise in_no_set(args[0], unfit)
        item = self.build(args[0] if args else Any)
        node, made = Items(make, classes, item), cast(Any, make)
        if make is collections.deque or cls is abc.Iterable:
            return node
        return self._folded(node, [item], lambda types: made[types[0]])

    def _tuple(self, annotation: Any, args: tuple[Any, ...]) -> Node:
        if annotation in (tuple, typing.Tuple) or args[-1:] == (Ellipsis,):  # noqa: UP006 - as users may write it
            item = self.build(args[0] if args else Any)
            return self._folded(Items(tuple, (tuple, list), item), [item], lambda types: tuple[types[0], ...])
        if any(is_unpacked(arg) for arg in args):
            raise Unsupported(f"{shown(annotation)} has a part of any length; use a list, or a tuple of so many types")
        items = [self.build(arg) for arg in args]
        return self._folded(Row(items), items, lambda types: tuple[types])

    def _mapping(self, cls: Any, args: tuple[Any, ...]) -> Node:
        key, value = args if args else (str, Any)
        node, names = self.build(value), self._key(key)
        make = _MAPPINGS[cls]
        if cls is collections.defaultdict:
            make = functools.partial(collections.defaultdict[Any, Any], _factory(value))
        members = Members(make, (abc.Mapping,), names, node)
        if make is not dict or (names is not None and not isinstance(names, PlainKey)):
            return members
        return self._folded(members, [node], lambda types: dict[key, types[0]])

    def _key(self, key: Any) -> Node | None:
        """What reads the names of an object; None where any name will do."""
        if key in (str, Any):
            return None
        if self._sure or without_annotated(key) is float or refusal(dict[key, Any]) is None:
            return PlainKey(key, self.build(key))
        own = self.build(key)
        if isinstance(own, Plain) or own.wanted:
            raise no_key(key)
        return own

    def _fields(self, cls: Any, args: tuple[Any, ...]) -> Node:
        key = (cls, args)
        if key in self._made:
            self._circular = True
            return self._made[key]
        name = "_".join([cls.__name__, *(word for arg in args for word in _words(arg))])
        found = outline(cls, args, self._scope)
        if is_written_as_text(cls):
            self._read.append(Reading(cls, args, found.hints))
        closed = self._closed and found.all_taken if found.closed is None else found.closed
        make = Positions if found.by_position else Fields
        node = self._made[key] = make(cls, name, key, tag=found.tag, closed=closed)
        for field in found.fields:
            try:
                field.node = self._limited_by_class(self.build(field.hint), field.limits)
                if field.given is field.hint:
                    field.source = field.node
                else:  # what a converter's own annotation came to
                    field.source, self._tied = self.build(field.given), True
                if field.header:
                    field.source = self.limited(field.source, safe_limits(field.given))
            except Unsupported as error:
                raise type(error)(f"{cls.__name__}.{field.name}: {error}") from error
        if found.others is not MISSING:
            node.others = self.build(found.others)
        node.fields = found.fields
        return node

    def _limited_by_class(self, node: Node, limits: list[Rules]) -> Node:
        """Add what can be shown of limits that a class enforces by itself."""
        for rules in limits:
            with contextlib.suppress(Unsupported):
                node = self._with_rules(node, rules) if rules.options is None else self._among(node, rules.options)
        return node

    def _among(self, node: Node, options: list[Any]) -> Node:
        if isinstance(node, Union):
            return self._joined(
                [member if _is_none(member) else self._among(member, options) for member in node.members]
            )
        if isinstance(node, Plain) and node.parts is not None:
            return self._among(node.parts, options)
        kind = node.annotation if isinstance(node, Plain) else None
        if kind not in (str, int) or not options or any(type(option) is not kind for option in options):
            raise Unsupported(f"{options!r} are no choices of {node.expected()}")
        return Choice([(option, option) for option in options])


def _is_none(node: Node) -> bool:
    return isinstance(node, Plain) and node.annotation in (None, type(None))


def _is_refused(annotation: Any) -> bool:
    """Whether msgspec alone is not enough; pydantic's ``Field`` is read here, and takes long to put into words."""
    if any(is_field(item) for item in getattr(annotation, "__metadata__", ())):
        return True
    return refusal(annotation) is not None


def _checked(node: Node, whole: Node, rules: Rules) -> Node:
    """A node that keeps rules; ``whole`` is what they must apply to."""
    _refuse_keywords(rules.notes)
    checks = list(rules.checks())
    for check in checks:
        if not _applies(check, whole):
            raise Unsupported(f"a constraint ({check.words}) does not apply to {whole.expected()}")
    return Checked(node, checks, rules.notes)


def _words(annotation: Any) -> list[str]:
    """The names in an annotation, without their modules."""
    text = annotation.__name__ if isinstance(annotation, type) and not get_args(annotation) else str(annotation)
    return re.findall(r"\w+", re.sub(r"\b\w+\.", "", text))


def _literal(value: Any) -> Any:
    plain = value.value if isinstance(value, enum.Enum) else value
    if type(plain) not in _SCALARS:
        raise Unsupported(f"Literal may hold text, numbers, true, false and None, not {value!r}")
    return plain


def _enum(cls: Any) -> Node:
    pairs = [(member.value, member) for member in cls]
    if not pairs:
        raise Unsupported(f"{cls.__name__} has no members to choose from")
    for plain, member in pairs:
        if type(plain) not in _SCALARS:
            raise Unsupported(f"the value of {cls.__name__}.{member.name} has no JSON form of its own: {plain!r}")
    text = cls.__dict__.get("__doc__") or ""
    # Python gives an enum without a docstring one of its own in some releases.
    return Choice(pairs, cls, "" if text == "An enumeration." else inspect.cleandoc(text))


def _factory(value: Any) -> Callable[[], Any] | None:
    cls = get_origin(value) or value
    return cls if cls in (list, dict, set, int, float, str, bool, collections.deque) else None


def _contains(node: Node, alias: Alias, seen: set[int] | None = None) -> bool:
    """Whether an alias came up again while what it stands for was built."""
    seen = set() if seen is None else seen
    if node is alias:
        return True
    if id(node) in seen:
        return False
    seen.add(id(node))
    slots = [slot for cls in type(node).__mro__ for slot in getattr(cls, "__slots__", ())]
    held = [*getattr(node, "__dict__", {}).values(), *(getattr(node, slot, None) for slot in slots)]
    inner = [item for value in held for item in (cast("list[Any]", value) if isinstance(value, list) else [value])]
    inner += [part for field in inner for part in (getattr(field, "node", None), getattr(field, "source", None))]
    return any(_contains(item, alias, seen) for item in inner if isinstance(item, Node))


_APPLY = {
    "number": ("Int", "Float", "Decimal", "DateTime", "Date", "Time", "TimeDelta", "Any"),
    "size": ("Str", "Bytes", "ByteArray", "MemoryView", "List", "Set", "FrozenSet", "VarTuple", "Dict", "Any"),
    "text": ("Str", "Any"),
}


def _applies(check: Check, node: Node) -> bool:
    """Whether a rule can be asked of values of a node at all."""
    if not check.kind:
        return True
    if isinstance(node, Plain):
        return type(explain.bare(node.kind)).__name__.removesuffix("Type") in _APPLY[check.kind]
    if isinstance(node, Items | Members):
        return check.kind == "size"
    return isinstance(node, Checked | Alias | Pydantic)


def _refuse_keywords(notes: dict[str, Any]) -> None:
    """A keyword that would constrain must not be shown, since nobody would check it."""
    try:
        reason = refusal(Annotated[Any, msgspec.Meta(extra_json_schema=notes)]) if notes else None
    except TypeError:
        reason = None
    if reason is not None and "extra_json_schema" in reason:
        raise Unsupported(reason)
