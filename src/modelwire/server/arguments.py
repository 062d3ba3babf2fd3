"""Arguments of a call: from JSON to Python values in one typed decode, or every fault at once in plain words.

The fast path is one decode by msgspec; a second one refuses the members that objects inside do not know, where there
are such objects. Only when that fails is each argument looked at by itself, tried with the coercion table, and
explained. This file knows types and values, not functions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from modelwire.errors import INVALID_PARAMS, RpcError, ToolError
from modelwire.server import explain
from modelwire.server.coercion import inside_text
from modelwire.server.nodes import Misfit, Node
from modelwire.server.plain import Plain

_DECODE_FAULTS = (msgspec.MsgspecError, ValueError, RecursionError)
MISSING: Any = inspect.Parameter.empty


_TOLD = 50
"""Faults that are told one by one; who sees so many knows what to put right."""


def few(problems: Sequence[str]) -> list[str]:
    """Return clauses on faults, the last of them a number where there are too many to tell."""
    more = len(problems) - _TOLD
    return list(problems) if more <= 0 else [*problems[:_TOLD], f"and {more} more like these"]


class ArgumentErrors(ToolError):
    """The arguments of a call do not fit; the message says all that is wrong, for a model to put right.

    Args:
        name: The tool, prompt or resource that was called.
        problems: One clause per fault, each naming the argument.

    Attributes:
        problems: The first of them; of a long list of values, each may have a fault.
    """

    def __init__(self, name: str, problems: Sequence[str]) -> None:
        self.problems = few(problems)
        super().__init__(f"The arguments of {name} are wrong:\n" + "\n".join(f"- {text}" for text in self.problems))


def not_an_object(raw: msgspec.Raw | bytes) -> RpcError:
    """Return the refusal of arguments that are no object at all.

    "Malformed requests (requests that fail to satisfy CallToolRequest schema)" are protocol errors, and no results
    (2026-07-28, server/tools).
    """
    return RpcError(INVALID_PARAMS, f"params.arguments must be an object, not {_outline(raw)}")


@dataclass(slots=True)
class Argument:
    """One parameter as the binder sees it.

    Args:
        name: Its name on the wire.
        type: Its type, compiled.
        default: The default itself, or ``MISSING``.
        factory: Makes the default anew for each call, or None.
    """

    name: str
    type: Node
    default: Any = MISSING
    factory: Callable[[], Any] | None = None


class Binder:
    """Turns the JSON of a call's arguments into values, in the order of the arguments given.

    Args:
        name: What is called, for messages.
        arguments: The parameters to fill, of types that msgspec can decode.
    """

    __slots__ = ("_arguments", "_decode", "_name")

    def __init__(self, name: str, arguments: Sequence[Argument]) -> None:
        self._name = name
        self._arguments = {argument.name: argument for argument in arguments}

    def __getattr__(self, name: str) -> Any:
        """Make what decodes once it is needed: most tools of a large server are never called, and a class for each
        costs time and memory. Asked only for what is not there, so that a call pays nothing.
        """
        if name != "_decode":
            raise AttributeError(name)
        fields = {argument.name: _field(argument) for argument in self._arguments.values()}
        self._decode = _decoder(fields, forbid_unknown_fields=True)
        return self._decode

    def values(self, raw: msgspec.Raw | bytes | None) -> tuple[Any, ...]:
        """Return one value per argument; absent ones have their default, which is never copied.

        Raises:
            ArgumentErrors: Something does not fit.
            RpcError: They are no object.
        """
        try:
            return msgspec.structs.astuple(self._decode(b"{}" if raw is None else raw))
        except _DECODE_FAULTS:
            return self._one_by_one(b"{}" if raw is None else raw)

    def _one_by_one(self, raw: msgspec.Raw | bytes) -> tuple[Any, ...]:
        try:
            pieces = msgspec.json.decode(raw, type=dict[str, msgspec.Raw] | None) or {}
        except msgspec.ValidationError:
            raise not_an_object(raw) from None
        except _DECODE_FAULTS:
            raise ArgumentErrors(self._name, [f"expected a JSON object, got {_outline(raw)}"]) from None
        found: list[Any] = []
        problems: list[str] = []
        for argument in self._arguments.values():
            try:
                found.append(self._value(argument, pieces.get(argument.name)))
            except _Faults as faults:
                problems += faults.problems
        problems += [self._unknown(name) for name in pieces if name not in self._arguments]
        if problems:
            raise ArgumentErrors(self._name, problems)
        return tuple(found)

    def _value(self, argument: Argument, piece: msgspec.Raw | None) -> Any:
        if piece is None:
            if argument.default is MISSING and argument.factory is None:
                raise _Faults([f"{argument.name}: missing; expected {argument.type.expected()}"])
            return argument.default if argument.factory is None else argument.factory()
        return _loaded(argument.type, piece, argument.name)

    def _unknown(self, name: str) -> str:
        return explain.unknown_argument(name, self._arguments)


class CarefulBinder(Binder):
    """A binder some of whose arguments msgspec alone would not convert, or would take too much for."""

    __slots__ = ("_completing", "_fence", "_nodes")

    def __init__(self, name: str, arguments: Sequence[Argument]) -> None:
        super().__init__(name, arguments)
        self._nodes = [
            (index, argument.name, argument.type)
            for index, argument in enumerate(arguments)
            if not isinstance(argument.type, Plain)
        ]

    def __getattr__(self, name: str) -> Any:
        if name == "_completing":
            plain = [(index, item.type) for index, item in enumerate(self._arguments.values())]
            whole = [(index, node.complete) for index, node in plain if isinstance(node, Plain)]
            self._completing = [(index, complete) for index, complete in whole if complete is not None]
            return self._completing
        if name != "_fence":
            return super().__getattr__(name)
        fences = {name: fence for name, item in self._arguments.items() if (fence := _fence(item)) is not None}
        fields = {name: (fence, msgspec.UNSET) for name, fence in fences.items()}
        self._fence = _decoder(fields, forbid_unknown_fields=False) if fields else None
        return self._fence

    def values(self, raw: msgspec.Raw | bytes | None) -> tuple[Any, ...]:
        text = b"{}" if raw is None else raw
        try:
            if self._fence is not None:
                self._fence(text)
            values = list(msgspec.structs.astuple(self._decode(text)))
            for index, name, node in self._nodes:
                if type(values[index]) is msgspec.Raw:
                    values[index] = node.read(values[index], name)
            for index, complete in self._completing:
                complete(values[index])
        except (*_DECODE_FAULTS, Misfit):
            return self._one_by_one(text)
        return tuple(values)


def binder(name: str, arguments: Sequence[Argument]) -> Binder:
    """Return what fills these parameters.

    Args:
        name: What is called, for messages.
        arguments: The parameters to fill.
    """
    careful = any(_needs_care(item.type) for item in arguments)
    return CarefulBinder(name, arguments) if careful else Binder(name, arguments)


def _needs_care(node: Node) -> bool:
    if not isinstance(node, Plain) or node.fence is not None:
        return True
    return not node.closed and node.complete is not None  # closed, a class has a fence


def _fence(argument: Argument) -> Any:
    return argument.type.fence if isinstance(argument.type, Plain) else None


def _decoder(fields: dict[str, tuple[Any, ...]], *, forbid_unknown_fields: bool) -> Callable[[Any], Any]:
    """Return what decodes an object of these fields, given by type and default."""
    # Field names of our own, since `_x`, `self` or a keyword may be no field name of a struct.
    names = {name: f"p{index}" for index, name in enumerate(fields)}
    struct = msgspec.defstruct(
        "Arguments",
        [(names[name], *rest) for name, rest in fields.items()],
        rename={own: name for name, own in names.items()},
        kw_only=True,
        forbid_unknown_fields=forbid_unknown_fields,
        gc=False,
    )
    return msgspec.json.Decoder(struct).decode


class _Faults(Exception):
    """Carries clauses to `Binder._one_by_one`; never leaves this file."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__()
        self.problems = problems


def _field(argument: Argument) -> tuple[Any] | tuple[Any, Any]:
    default = argument.default
    kind = argument.type.annotation if isinstance(argument.type, Plain) else msgspec.Raw
    if argument.factory is not None:
        return (kind, msgspec.field(default_factory=argument.factory))
    if default is MISSING:
        return (kind,)
    if default is None or type(default) in (bool, int, float, str):
        return (kind, default)
    return (kind, msgspec.field(default_factory=lambda: default))  # msgspec would copy a list


def _loaded(node: Node, piece: msgspec.Raw, name: str) -> Any:
    """Convert strictly, then by the coercion table."""
    try:
        return node.read(piece, name)
    except (*_DECODE_FAULTS, Misfit):
        value = _loose(piece, name)
    try:
        return node.load(inside_text(value, node.wanted) if type(value) is str else value, name, True)
    except Misfit as misfit:
        raise _Faults(misfit.problems) from None
    except RecursionError:
        raise _Faults([f"{name}: nested too deeply"]) from None


def _loose(piece: msgspec.Raw, name: str) -> Any:
    try:
        return msgspec.json.decode(piece)
    except _DECODE_FAULTS as error:
        too_big = "out of range" in str(error)
        reason = "a number too large to represent" if too_big else "JSON that cannot be read"
        raise _Faults([f"{name}: {reason}"]) from None


def _outline(raw: msgspec.Raw | bytes) -> str:
    try:
        return explain.shown(msgspec.json.decode(raw), "secret")
    except _DECODE_FAULTS:
        return "something that is not JSON"
