"""Arguments of a call: from JSON to Python values in one typed decode, or every fault at once in plain words.

The fast path is one decode by msgspec. Only when that fails is each argument looked at by itself, tried with the
coercion table below, and explained. This file knows types and values, not functions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import inspect as mi

from modelwire.errors import INVALID_PARAMS, RpcError, ToolError
from modelwire.server import explain
from modelwire.server.coercion import inside_text, meant
from modelwire.server.nodes import Misfit, Node

_DECODE_FAULTS = (msgspec.MsgspecError, ValueError, RecursionError)
MISSING: Any = inspect.Parameter.empty


class ArgumentErrors(ToolError):
    """The arguments of a call do not fit; the message says all that is wrong, for a model to put right.

    Args:
        name: The tool, prompt or resource that was called.
        problems: One clause per fault, each naming the argument.
    """

    def __init__(self, name: str, problems: Sequence[str]) -> None:
        self.problems = list(problems)
        super().__init__(f"The arguments of {name} are wrong:\n" + "\n".join(f"- {problem}" for problem in problems))


def not_an_object(raw: msgspec.Raw | bytes) -> RpcError:
    """Return the refusal of arguments that are no object at all.

    "Malformed requests (requests that fail to satisfy CallToolRequest schema)" are protocol errors, and no results
    (2026-07-28, server/tools).
    """
    return RpcError(INVALID_PARAMS, f"params.arguments must be an object, not {_outline(raw)}")


@dataclass(frozen=True, slots=True)
class Argument:
    """One parameter as the binder sees it.

    Args:
        name: Its name on the wire.
        type: The annotation, evaluated; ``Any`` when there was none; a node where msgspec alone would not do.
        default: The default itself, or ``MISSING``.
        factory: Makes the default anew for each call, or None.
    """

    name: str
    type: Any
    default: Any = MISSING
    factory: Callable[[], Any] | None = None


class Binder:
    """Turns the JSON of a call's arguments into values, in the order of the arguments given.

    Args:
        name: What is called, for messages.
        arguments: The parameters to fill.

    Raises:
        TypeError: msgspec cannot decode one of the types.
    """

    __slots__ = ("_arguments", "_decode", "_decoders", "_kinds", "_name")

    def __init__(self, name: str, arguments: Sequence[Argument]) -> None:
        self._name = name
        self._arguments = {argument.name: argument for argument in arguments}
        # Field names of our own, since `_x`, `self` or a keyword may be no field name of a struct.
        struct = msgspec.defstruct(
            "Arguments",
            [_field(f"p{index}", argument) for index, argument in enumerate(arguments)],
            rename={f"p{index}": argument.name for index, argument in enumerate(arguments)},
            kw_only=True,
            forbid_unknown_fields=True,
            gc=False,
        )
        self._decode = msgspec.json.Decoder(struct).decode
        self._decoders: dict[str, Callable[[Any], Any]] = {}
        self._kinds: dict[str, mi.Type] = {}

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
                raise _Faults([f"{argument.name}: missing; expected {self._expected(argument)}"])
            return argument.default if argument.factory is None else argument.factory()
        if isinstance(argument.type, Node):
            return _loaded(argument.type, _loose(piece, argument.name), argument.name)
        decode = self._decoder(argument)
        try:
            return decode(piece)
        except _DECODE_FAULTS as error:
            fault = error
        kind = self._kind(argument)
        value = meant(kind, _loose(piece, argument.name))
        try:
            return decode(msgspec.json.encode(value))
        except _DECODE_FAULTS as error:
            fault = error
        raise _Faults(explain.faults(kind, value, argument.name, fault))

    def _decoder(self, argument: Argument) -> Callable[[Any], Any]:
        if argument.name not in self._decoders:
            self._decoders[argument.name] = msgspec.json.Decoder(argument.type).decode
        return self._decoders[argument.name]

    def _expected(self, argument: Argument) -> str:
        return argument.type.expected() if isinstance(argument.type, Node) else explain.expected(self._kind(argument))

    def _kind(self, argument: Argument) -> mi.Type:
        if argument.name not in self._kinds:
            self._kinds[argument.name] = mi.type_info(argument.type)
        return self._kinds[argument.name]

    def _unknown(self, name: str) -> str:
        return explain.unknown_argument(name, self._arguments)


class NodeBinder(Binder):
    """A binder some of whose arguments are converted by nodes, which msgspec leaves to them as they came."""

    __slots__ = ("_nodes",)

    def __init__(self, name: str, arguments: Sequence[Argument]) -> None:
        super().__init__(name, arguments)
        self._nodes = [(index, argument) for index, argument in enumerate(arguments) if isinstance(argument.type, Node)]

    def values(self, raw: msgspec.Raw | bytes | None) -> tuple[Any, ...]:
        text = b"{}" if raw is None else raw
        try:
            values = list(msgspec.structs.astuple(self._decode(text)))
            for index, argument in self._nodes:
                if type(values[index]) is msgspec.Raw:
                    values[index] = argument.type.read(values[index], argument.name)
        except (*_DECODE_FAULTS, Misfit):
            return self._one_by_one(text)
        return tuple(values)


def binder(name: str, arguments: Sequence[Argument]) -> Binder:
    """Return what fills these parameters.

    Args:
        name: What is called, for messages.
        arguments: The parameters to fill.
    """
    mixed = any(isinstance(argument.type, Node) for argument in arguments)
    return NodeBinder(name, arguments) if mixed else Binder(name, arguments)


class _Faults(Exception):
    """Carries clauses to `Binder._one_by_one`; never leaves this file."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__()
        self.problems = problems


def _field(name: str, argument: Argument) -> tuple[str, Any] | tuple[str, Any, Any]:
    default = argument.default
    kind = msgspec.Raw if isinstance(argument.type, Node) else argument.type
    if argument.factory is not None:
        return (name, kind, msgspec.field(default_factory=argument.factory))
    if default is MISSING:
        return (name, kind)
    if default is None or type(default) in (bool, int, float, str):
        return (name, kind, default)
    return (name, kind, msgspec.field(default_factory=lambda: default))  # msgspec would copy a list


def _loose(piece: msgspec.Raw, name: str) -> Any:
    try:
        return msgspec.json.decode(piece)
    except _DECODE_FAULTS as error:
        too_big = "out of range" in str(error)
        reason = "a number too large to represent" if too_big else "JSON that cannot be read"
        raise _Faults([f"{name}: {reason}"]) from None


def _loaded(node: Node, value: Any, name: str) -> Any:
    """Convert strictly, then by the coercion table."""
    try:
        try:
            return node.load(value, name)
        except Misfit:
            meant = inside_text(value, node.wanted) if type(value) is str else value
            return node.load(meant, name, True)
    except Misfit as misfit:
        raise _Faults(misfit.problems) from None
    except RecursionError:
        raise _Faults([f"{name}: nested too deeply"]) from None


def _outline(raw: msgspec.Raw | bytes) -> str:
    try:
        return explain.shown(msgspec.json.decode(raw), "secret")
    except _DECODE_FAULTS:
        return "something that is not JSON"
