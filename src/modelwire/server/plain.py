"""Types that msgspec enforces by itself: it converts, and explains nothing.

msgspec is the fast way there. Why a value does not fit, what it stands for by the coercion table, and what the schema
says come from the same type taken apart into nodes. Only types without parts speak for themselves.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import inspect as mi

from modelwire.server import coercion, explain
from modelwire.server.definitions import Definitions
from modelwire.server.left_out import Completing, completing
from modelwire.server.nodes import Misfit, Node
from modelwire.server.plain_values import plain_form

_FAULTS = (msgspec.MsgspecError, ValueError, RecursionError)
_SAME = (str, int, bool)
"""Classes whose values are what JSON has for them."""


class Plain(Node):
    """A type that msgspec enforces by itself.

    Args:
        annotation: The type.
        parts: The same type, taken apart; None where it has no parts.
        closed: Refuse members that an object inside does not know, which msgspec passes over.
    """

    def __init__(self, annotation: Any, parts: Node | None = None, *, closed: bool = False) -> None:
        self.annotation = annotation
        self.parts = parts
        self.exact = annotation if isinstance(annotation, type) else None
        self.is_set = parts is not None and parts.is_set
        self.tag = None if parts is None else parts.tag
        self.closed = closed

    @functools.cached_property
    def kind(self) -> mi.Type:
        """Msgspec's description of the type."""
        return mi.type_info(self.annotation)

    @functools.cached_property
    def fence(self) -> Any:
        """A type that refuses what msgspec passes over in this one; None where it passes over nothing."""
        return self.parts.shape() if self.closed and self.parts is not None else None

    @functools.cached_property
    def complete(self) -> Completing | None:
        """Sets the defaults that msgspec leaves out of a value; None where it leaves out nothing."""
        return None if self.parts is None else completing(self.kind)

    @functools.cached_property
    def _decoders(self) -> list[Callable[[bytes | msgspec.Raw], Any]]:
        return [self.decode] if self.fence is None else [msgspec.json.Decoder(self.fence).decode, self.decode]

    @functools.cached_property
    def decode(self) -> Callable[[bytes | msgspec.Raw], Any]:
        """Reads JSON as a value, and passes over unknown members."""
        return msgspec.json.Decoder(self.annotation).decode

    @property
    def wanted(self) -> frozenset[str]:
        return coercion.wanted(self.kind) if self.parts is None else self.parts.wanted

    def read(self, raw: msgspec.Raw | bytes, path: str) -> Any:
        try:
            value = [decode(raw) for decode in self._decoders][-1]
        except _FAULTS:
            return self.load(msgspec.json.decode(raw), path)
        if self.complete is not None:
            self.complete(value)
        return value

    def load(self, value: Any, path: str, lax: bool = False) -> Any:
        if type(value) is self.annotation and self.annotation in _SAME:
            return value
        try:
            found = self._converted(value)
        except _FAULTS:
            return self._loaded_otherwise(value, path, lax)
        if self.complete is not None:
            self.complete(found)
        return found

    def _loaded_otherwise(self, value: Any, path: str, lax: bool) -> Any:
        if self.parts is not None:
            return self.parts.load(value, path, lax)
        whole = coercion.integral(self.kind, value) if lax else value
        if whole is value:
            self.misfit(value, path)
        return self.load(whole, path)

    def _converted(self, value: Any) -> Any:
        if self.fence is not None:
            msgspec.convert(value, self.fence, str_keys=True)
        return msgspec.convert(value, self.annotation, str_keys=True)

    def dump(self, value: Any, path: str) -> Any:
        try:
            plain = msgspec.to_builtins(value, str_keys=True, enc_hook=plain_form)
        except (msgspec.MsgspecError, TypeError, ValueError, OverflowError):
            self.foreign(value, path)
        try:
            self._converted(plain)
        except _FAULTS:
            raise self.refused(plain, path) from None
        return plain

    def refused(self, value: Any, path: str) -> Misfit:
        """Return why decoded JSON that msgspec refused does not fit."""
        try:
            if self.parts is not None:
                self.parts.load(value, path)
            self.misfit(value, path)
        except Misfit as misfit:
            return misfit

    def schema(self, defs: Definitions) -> dict[str, Any]:
        return defs.of(self.annotation) if self.parts is None else self.parts.schema(defs)

    def expected(self) -> str:
        return explain.expected(self.kind) if self.parts is None else self.parts.expected()

    def constants(self) -> dict[str, Any]:
        return {} if self.parts is None else self.parts.constants()

    def shape(self) -> Any:
        return None if self.parts is None else self.parts.shape()
