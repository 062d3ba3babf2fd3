"""What a function returned, checked against what its annotation promised.

``Servers MUST provide structured results that conform to this schema`` (server/tools, Output Schema): a result that
does not is this side's error and never reaches the client as a result.
"""

from __future__ import annotations

from typing import Any

import msgspec

from modelwire.errors import ModelwireError
from modelwire.server.arguments import few
from modelwire.server.content_nodes import takes_any_text
from modelwire.server.contents import block_inside, misplaced, unawaited
from modelwire.server.nodes import Misfit, Node
from modelwire.server.plain import Plain
from modelwire.server.plain_values import not_finite, plain_form

_write = msgspec.json.Encoder(enc_hook=plain_form).encode


class ResultError(ModelwireError):
    """A function returned something that its annotation does not allow, or that JSON cannot hold."""


class ResultCheck:
    """Encodes results of one type, and refuses those that are not of it.

    Args:
        name: The function, for messages.
        node: What it says it returns, compiled.
        blocks: Content blocks may be in it, since the schema says so.
    """

    __slots__ = ("_blocks", "_decode", "_exact", "_name", "_node")

    def __init__(self, name: str, node: Node, *, blocks: bool = False) -> None:
        annotation = node.annotation if isinstance(node, Plain) else Any
        self._name = name
        self._node = node
        self._blocks = blocks
        self._exact = annotation if annotation in (int, bool, str) else None
        self._decode = node.decode if isinstance(node, Plain) and annotation is not Any else None

    def encode(self, value: Any) -> bytes:
        """Return ``value`` as JSON.

        Raises:
            ResultError: It contradicts the annotation, or holds NaN, an infinity, a lone surrogate or an object
                that has no JSON form.
        """
        if type(value) is self._exact:
            return self._written(value)
        returned = value
        if not isinstance(self._node, Plain):
            value = self._dumped(self._node, value)
        written = self._written(value)
        if not self._blocks and (place := block_inside(returned, written)) is not None:
            raise ResultError(f"{self._name} returned {misplaced(place)}")
        if b"null" in written and (place := not_finite(value, "result")) is not None:
            raise ResultError(f"{self._name} returned {place[1]} at {place[0]}, which JSON cannot hold")
        if self._decode is not None:
            try:
                self._decode(written)
            except (msgspec.MsgspecError, ValueError, RecursionError):
                raise self._contradiction(msgspec.json.decode(written)) from None
        return written

    def _dumped(self, node: Node, value: Any) -> Any:
        try:
            return node.dump(value, "result")
        except Misfit as misfit:
            problems = "; ".join(few(misfit.problems))
            # Of a block some libraries say no more than that they cannot write it.
            if not self._blocks and (place := block_inside(value)) is not None and "." in place:
                raise ResultError(f"{self._name} returned {misplaced(place)}") from None
        except RecursionError:
            problems = "it is nested too deeply or contains itself"
        raise ResultError(f"{self._name} returned what its annotation does not allow: {problems}")

    def _written(self, value: Any) -> bytes:
        try:
            return _write(value)
        except UnicodeEncodeError:
            raise ResultError(
                f"{self._name} returned text with a lone surrogate, which is no Unicode; "
                'clean it with text.encode("utf-8", "replace").decode()'
            ) from None
        except RecursionError:
            raise ResultError(f"{self._name} returned a value nested too deeply or containing itself") from None
        except (TypeError, ValueError, OverflowError, msgspec.MsgspecError) as error:
            if (waiting := unawaited(value)) is not None:
                raise ResultError(f"{self._name} returned {waiting}; did you forget to await it?") from None
            raise ResultError(
                f"{self._name} returned a {type(value).__name__} that has no JSON form: {error}"
            ) from error

    def _contradiction(self, value: Any) -> ResultError:
        assert isinstance(self._node, Plain)
        problems = self._node.refused(value, "result").problems
        return ResultError(f"{self._name} returned what its annotation does not allow: {'; '.join(few(problems))}")


class ContentCheck:
    """Refuses results that are only content, and not what their annotation says.

    Args:
        name: The function, for messages.
        node: The annotation, compiled; None where it allows everything.
    """

    __slots__ = ("_name", "_node", "takes_any_text")

    def __init__(self, name: str, node: Node | None) -> None:
        self._name = name
        self._node = node
        self.takes_any_text = node is None or takes_any_text(node)
        """Whether text needs no check."""

    def check(self, value: Any) -> None:
        """Pass over a value that the annotation allows.

        Raises:
            ResultError: It does not.
        """
        if self._node is None:
            return
        if (waiting := unawaited(value)) is not None:
            raise ResultError(f"{self._name} returned {waiting}; did you forget to await it?")
        try:
            self._node.dump(value, "result")
        except Misfit as misfit:
            hint = "; does every way through it return something?" if value is None else ""
            problems = "; ".join(few(misfit.problems))
            raise ResultError(f"{self._name} returned what its annotation does not allow: {problems}{hint}") from None
        except RecursionError:
            raise ResultError(f"{self._name} returned a value nested too deeply or containing itself") from None
