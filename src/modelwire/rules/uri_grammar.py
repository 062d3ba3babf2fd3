"""The grammar of URI templates (RFC 6570, section 2): text to literals and expressions.

Says where and why a template is malformed. It expands nothing and matches nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from modelwire.errors import ConfigError

MAX_TEMPLATE = 4096
"""Characters in a template."""
MAX_EXPRESSIONS = 64
MAX_VARIABLES = 128

_NAME = re.compile(r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})(?:\.?(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2}))*", re.ASCII)
_LENGTH = re.compile(r"[1-9][0-9]{0,3}", re.ASCII)
_BAD_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Operator:
    """One row of the table in RFC 6570, appendix A."""

    symbol: str
    first: str
    separator: str
    named: bool
    if_empty: str
    reserved: bool


OPERATORS = {
    row.symbol: row
    for row in (
        Operator("", "", ",", named=False, if_empty="", reserved=False),
        Operator("+", "", ",", named=False, if_empty="", reserved=True),
        Operator("#", "#", ",", named=False, if_empty="", reserved=True),
        Operator(".", ".", ".", named=False, if_empty="", reserved=False),
        Operator("/", "/", "/", named=False, if_empty="", reserved=False),
        Operator(";", ";", ";", named=True, if_empty="", reserved=False),
        Operator("?", "?", "&", named=True, if_empty="=", reserved=False),
        Operator("&", "&", "&", named=True, if_empty="=", reserved=False),
    )
}


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable inside an expression, with its modifier.

    Args:
        name: As written, percent-encoding included.
        prefix: The most characters that the expansion takes of the value, or None for all.
        explode: Whether each member of a list or an object stands by itself.
    """

    name: str
    prefix: int | None = None
    explode: bool = False


@dataclass(frozen=True, slots=True)
class Expression:
    """What stands between braces."""

    operator: Operator
    variables: tuple[Variable, ...]


Part = str | Expression


def parse(template: str) -> tuple[Part, ...]:
    """Take a template apart into literal text and expressions.

    Raises:
        ConfigError: The template is malformed or too large.
    """
    if len(template) > MAX_TEMPLATE:
        raise ConfigError(f"a URI template has at most {MAX_TEMPLATE} characters; this one has {len(template)}")
    parts: list[Part] = []
    position = 0
    while position < len(template):
        opening = template.find("{", position)
        end = len(template) if opening < 0 else opening
        if end > position:
            parts.append(_literal(template, position, end))
        if opening < 0:
            break
        closing = template.find("}", opening)
        if closing < 0:
            raise _fault(template, opening, "this brace is never closed")
        parts.append(_expression(template, opening + 1, closing))
        position = closing + 1
    _check_size(template, parts)
    return tuple(parts)


def _check_size(template: str, parts: list[Part]) -> None:
    expressions = [part for part in parts if isinstance(part, Expression)]
    if len(expressions) > MAX_EXPRESSIONS:
        raise ConfigError(f"the URI template {_shown(template)} has more than {MAX_EXPRESSIONS} expressions")
    if sum(len(expression.variables) for expression in expressions) > MAX_VARIABLES:
        raise ConfigError(f"the URI template {_shown(template)} has more than {MAX_VARIABLES} variables")


def _literal(template: str, start: int, end: int) -> str:
    text = template[start:end]
    if "}" in text:
        raise _fault(template, start + text.index("}"), "this brace was never opened")
    if bad := _BAD_PERCENT.search(text):
        raise _fault(
            template, start + bad.start(), "% must be followed by two hexadecimal digits; write %25 for itself"
        )
    if bad := _CONTROL.search(text):
        raise _fault(template, start + bad.start(), "control characters and lone surrogates cannot stand in a URI")
    return text


def _expression(template: str, start: int, end: int) -> Expression:
    if start == end:
        raise _fault(template, start, "an expression needs a variable")
    symbol = template[start]
    if symbol in "=,!@|":
        raise _fault(template, start, f"the operator {symbol!r} is reserved by RFC 6570 and has no meaning yet")
    if symbol not in OPERATORS:
        symbol = ""
    variables: list[Variable] = []
    at = start + len(symbol)
    for written in template[at:end].split(","):
        variables.append(_variable(template, at, written))
        at += len(written) + 1
    return Expression(OPERATORS[symbol], tuple(variables))


def _variable(template: str, at: int, written: str) -> Variable:
    name = _NAME.match(written)
    if name is None:
        raise _fault(template, at, "a variable's name is made of letters, digits, '_', '%XX' and single dots inside it")
    rest = written[name.end() :]
    if not rest:
        return Variable(name[0])
    if rest == "*":
        return Variable(name[0], explode=True)
    if rest[0] == ":" and _LENGTH.fullmatch(rest, 1):
        return Variable(name[0], prefix=int(rest[1:]))
    reason = (
        "after ':' comes a length from 1 to 9999" if rest[0] == ":" else f"{rest!r} is no modifier; '*' and ':n' are"
    )
    raise _fault(template, at + name.end(), reason)


def _fault(template: str, at: int, reason: str) -> ConfigError:
    return ConfigError(f"the URI template {_shown(template)} is malformed at character {at + 1}: {reason}")


def _shown(template: str) -> str:
    return repr(template if len(template) <= 120 else template[:120] + "…")
