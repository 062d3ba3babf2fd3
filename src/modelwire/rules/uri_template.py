"""URI templates (RFC 6570, all four levels): expansion, and its reverse for reading resources.

Pure text: it opens nothing and resolves no path. A decoded value may hold ``/`` or ``..``; what that means is for
the caller to decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from modelwire.errors import ConfigError
from modelwire.rules.uri_grammar import Expression, Operator, Variable, parse
from modelwire.rules.uri_match import Matcher, Value

__all__ = ["UriTemplate", "Value"]

_RESERVED = ":/?#[]@!$&'()*+,;="
_UNITS = re.compile(r"%[0-9A-Fa-f]{2}|.", re.ASCII | re.DOTALL)


class UriTemplate:
    """A template such as ``weather://{city}/now{?units}``.

    Args:
        template: The text; at most 4096 characters and 64 expressions.

    Attributes:
        template: The text as given.
        variables: The names in it, each once, in order of appearance.
        exploded: Those of them that give a list, or an object, and no text: ``{name*}``.

    Raises:
        ConfigError: The template is malformed; the message says where and why.
    """

    __slots__ = ("_matcher", "_parts", "exploded", "template", "variables")

    def __init__(self, template: str) -> None:
        self.template = template
        self._parts = parse(template)
        self._matcher = Matcher(self._parts)
        expressions = [part for part in self._parts if isinstance(part, Expression)]
        variables = [variable for expression in expressions for variable in expression.variables]
        self.variables: tuple[str, ...] = tuple(dict.fromkeys(variable.name for variable in variables))
        self.exploded = tuple(dict.fromkeys(variable.name for variable in variables if variable.explode))

    def __repr__(self) -> str:
        return f"UriTemplate({self.template!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UriTemplate) and other.template == self.template

    def __hash__(self) -> int:
        return hash(self.template)

    def expand(self, values: Mapping[str, Any] | None = None, /, **more: Any) -> str:
        """Return the URI for these values.

        Args:
            values: Text, numbers, booleans, lists or objects by name. A missing name, None, an empty list and an
                empty object are "undefined" and leave nothing.
            **more: The same, as keywords; they go before ``values``.

        Raises:
            ConfigError: A value cannot be written, or a prefix is asked of a list or an object.
        """
        known = {**(values or {}), **more}
        return "".join(
            _encoded(part, reserved=True) if isinstance(part, str) else _expanded(part, known) for part in self._parts
        )

    def match(self, uri: str) -> dict[str, Value] | None:
        """Return the values for which this template gives ``uri``, or None when it is not of this form.

        Every value is percent-decoded exactly once. ``{name}`` takes no raw ``/``, ``?`` or ``#`` and at least one
        character; ``{+name}`` takes anything; what an operator introduces (``{/x}``, ``{?x}``, ...) may be missing.
        Where several readings are possible the leftmost variable takes the most. An exploded variable is a list,
        or an object where its members have names; every other one is text. Takes time linear in the URI's length.
        """
        return self._matcher.match(uri)


def _expanded(expression: Expression, values: Mapping[str, Any]) -> str:
    operator = expression.operator
    pieces: list[str] = []
    for variable in expression.variables:
        pieces += _pieces(operator, variable, values.get(variable.name))
    return operator.first + operator.separator.join(pieces) if pieces else ""


def _pieces(operator: Operator, variable: Variable, value: Any) -> list[str]:
    """What one variable gives, to be joined by the operator's separator; nothing when it is undefined."""
    if value is None:
        return []
    if isinstance(value, Mapping):
        pairs = [(_text(key, variable), _text(item, variable)) for key, item in value.items() if item is not None]  # pyright: ignore[reportUnknownVariableType]
        return _composite(operator, variable, pairs)
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        members = [(None, _text(item, variable)) for item in value if item is not None]  # pyright: ignore[reportUnknownVariableType]
        return _composite(operator, variable, members)
    text = _shortened(_text(value, variable), variable, operator)
    return [_named(operator, variable.name, _encoded(text, reserved=operator.reserved))]


def _composite(operator: Operator, variable: Variable, members: Sequence[tuple[str | None, str]]) -> list[str]:
    if variable.prefix is not None:
        raise ConfigError(f"{{{variable.name}:{variable.prefix}}} takes the beginning of text, not of a list or object")
    if not members:
        return []
    encoded = [
        (None if key is None else _encoded(key, reserved=operator.reserved), _encoded(item, reserved=operator.reserved))
        for key, item in members
    ]
    if variable.explode:
        return [_member(operator, variable, key, item) for key, item in encoded]
    flat = (text for pair in encoded for text in pair if text is not None)
    return [_named(operator, variable.name, ",".join(flat))]


def _member(operator: Operator, variable: Variable, key: str | None, item: str) -> str:
    if operator.named:
        return _named(operator, variable.name if key is None else key, item)
    return item if key is None else f"{key}={item}"


def _named(operator: Operator, name: str, text: str) -> str:
    if not operator.named:
        return text
    return f"{name}={text}" if text else name + operator.if_empty


def _text(value: Any, variable: Variable) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise ConfigError(
        f"the value of {{{variable.name}}} is a {type(value).__name__}; give text, numbers, lists or objects"
    )


def _shortened(text: str, variable: Variable, operator: Operator) -> str:
    if variable.prefix is None:
        return text
    if not operator.reserved:
        return text[: variable.prefix]
    # A triplet is passed on as it is, so it counts as the one character that it stands for.
    return "".join(_UNITS.findall(text)[: variable.prefix])


def _encoded(text: str, *, reserved: bool) -> str:
    """Percent-encode; with ``reserved`` keep reserved characters and triplets that are there already."""
    try:
        if not reserved:
            return quote(text, safe="")
        pieces = re.split(r"(%[0-9A-Fa-f]{2})", text)
        return "".join(piece if index % 2 else quote(piece, safe=_RESERVED) for index, piece in enumerate(pieces))
    except UnicodeEncodeError:
        raise ConfigError(f"{text[:60]!r} holds a lone surrogate, which no URI can hold") from None
