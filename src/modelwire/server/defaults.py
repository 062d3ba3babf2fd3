"""Defaults of parameters, held against the types beside them.

Python lets a default be anything, and much of it is sensible: a sentinel, an object that JSON does not know, None for
an argument that may be left out. A default that JSON could hold is one that a client could send, and must fit.
"""

from __future__ import annotations

import enum
from typing import Any

import msgspec

from modelwire.rules.param_headers import MAX_INTEGER
from modelwire.server.nodes import Misfit, Node
from modelwire.server.plain import Plain
from modelwire.server.plain_values import not_finite, plain_form

_NOTHING: Any = object()


def problems(node: Node, default: Any, name: str) -> list[str]:
    """Return what is wrong with a default, one clause per place; nothing where it fits, or is nothing for JSON.

    Args:
        node: The type of the parameter.
        default: Its default. A member of an enum that does not fit is taken for a sentinel.
        name: What clients call the parameter.
    """
    if is_plain(node, default):
        return []
    plain = _NOTHING if default is None or isinstance(default, enum.Enum) else _json(default)
    if plain is _NOTHING:
        return []
    try:
        node.dump(default, name)
    except Misfit as misfit:
        # What is wrong inside a value of the right class is told by the class's own names.
        found = _told(node, plain, name)
        return misfit.problems if found and misfit.inside else found
    return []


def is_plain(node: Node, default: Any) -> bool:
    """Whether a default is of the very type beside it, and is in JSON what it is in Python: most are."""
    if not isinstance(node, Plain) or node.annotation is not type(default):
        return False
    if isinstance(default, str):
        return default.isascii()
    return isinstance(default, int) and abs(default) <= MAX_INTEGER


def _json(value: Any) -> Any:
    """The JSON form of a value, decoded, if it has one."""
    try:
        written = msgspec.json.encode(value, enc_hook=plain_form)
        return _NOTHING if not_finite(value, "") is not None else msgspec.json.decode(written)
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError):
        return _NOTHING


def _told(node: Node, plain: Any, name: str) -> list[str]:
    """The faults as a client would hear of them: what it may send, a default may be as well."""
    try:
        node.load(plain, name, True)
    except Misfit as misfit:
        return misfit.problems
    return []
