"""The reverse of expansion: from a URI to the values of a template, in time linear in the URI's length.

A template is a row of elements: literal text, and holes that take characters of one class. The positions of the
URI that each element can end at are a set, kept as the bits of one integer, so an element costs a handful of
operations on integers as long as the URI, whatever the template: there is no backtracking. It decodes each
value once and judges none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from modelwire.rules.uri_grammar import Expression, Part, Variable

Value = str | list[str] | dict[str, str]

_TRIPLETS = re.compile(r"(?:%[0-9A-Fa-f]{2})+", re.ASCII)
_RESERVED = frozenset(b":/?#[]@!$&'()*+,;=%")
_MARK = 0xDC00
"""An encoded reserved character is one unit, told from the raw one: ``%2F`` is U+DC2F. No URI holds surrogates."""
_DECODED = {_MARK + byte: chr(byte) for byte in _RESERVED}
_SEGMENT = "/?#"
"""What ends a value outside reserved expansion."""


@dataclass(frozen=True, slots=True)
class _Element:
    """One step through the URI.

    Args:
        openings: Texts that it may begin with; ``("",)`` for a hole that is just there.
        stops: Characters that its hole may not hold; None for literal text, which has no hole.
        variables: What the hole's text is divided among.
        optional: Whether it may be missing altogether.
        symbol: The operator, which says how the hole's text is divided.
        chained: Whether it may be there only if the element before it is: ``/1`` gives ``{/a,b}`` its ``a``.
    """

    openings: tuple[str, ...]
    stops: str | None = None
    variables: tuple[Variable, ...] = ()
    optional: bool = False
    symbol: str = ""
    chained: bool = False


class Matcher:
    """Matches URIs against one template.

    Args:
        parts: The template, as parsed.
    """

    __slots__ = ("_elements", "_head")

    def __init__(self, parts: Sequence[Part]) -> None:
        self._elements = _elements(parts)
        first = self._elements[0] if self._elements else _Element(("",))
        self._head = first.openings[0] if first.stops is None else ""

    def match(self, uri: str) -> dict[str, Value] | None:
        """Return the values, or None when the URI is not of this form."""
        units = canonical(uri)
        if units is None or not units.startswith(self._head):
            return None
        spans = self._spans(units)
        if spans is None:
            return None
        found: dict[str, Value] = {}
        prefixes: list[tuple[Variable, str]] = []
        for element, text in spans:
            values = _divided(element, text)
            if values is None or not _take(values, found, prefixes):
                return None
        for variable, prefix in prefixes:
            whole = found.setdefault(variable.name, prefix)
            if not isinstance(whole, str) or not whole.startswith(prefix):
                return None
        return found

    def _spans(self, units: str) -> list[tuple[_Element, str]] | None:
        """Which text each element took, those with variables only; None when the URI does not fit."""
        masks = _Masks(units)
        sources: list[int] = []
        reached = taken = 1
        for element in self._elements:
            sources.append(taken if element.chained else reached)
            taken = _taken(element, sources[-1], units, masks)
            reached = taken | reached if element.optional else taken
            if not reached:
                return None
        end = len(units)
        if not reached >> end & 1:
            return None
        spans: list[tuple[_Element, str]] = []
        for element, source in zip(reversed(self._elements), reversed(sources), strict=True):
            start, opening = _start(element, source, end, units, masks)
            if element.variables and opening is not None:
                spans.append(
                    (element, units[start:end] if element.symbol in ("?", ";") else units[start + opening : end])
                )
            end = start
        spans.reverse()
        return spans


class _Masks:
    """Which positions of a URI hold a character that a hole takes, as bits."""

    def __init__(self, units: str) -> None:
        self._units = units
        self._known: dict[str, int] = {}

    def of(self, stops: str) -> int:
        if stops not in self._known:
            bits = self._units.translate(_bits(stops))
            self._known[stops] = int(bits[::-1], 2) if bits else 0
        return self._known[stops]


class _Bits(dict[int, str]):
    """``str.translate`` table: 0 for a stop, 1 for everything else."""

    def __missing__(self, key: int) -> str:
        return "1"


@lru_cache(maxsize=32)
def _bits(stops: str) -> _Bits:
    return _Bits({ord(character): "0" for character in stops})


def canonical(uri: str) -> str | None:
    """Return the URI with everything equivalent under RFC 3986 written alike, one unit per character.

    Triplets become the characters that they stand for; those of reserved characters become marks instead, since
    ``%2F`` and ``/`` are different. None when it has a stray ``%``, triplets that are no UTF-8, or surrogates.
    """
    try:
        uri.encode()
        units = _TRIPLETS.sub(_unit, uri) if "%" in uri else uri
    except ValueError:
        return None
    return None if "%" in units else units


def _unit(run: re.Match[str]) -> str:
    text = bytes.fromhex(run[0].replace("%", "")).decode()
    return "".join(chr(_MARK + ord(char)) if ord(char) < 128 and ord(char) in _RESERVED else char for char in text)


def _decoded(units: str) -> str:
    return units.translate(_DECODED)


def _elements(parts: Sequence[Part]) -> list[_Element]:
    found: list[_Element] = []
    for part in parts:
        if isinstance(part, str):
            found.append(_Element((canonical(part) or "",)))
        elif part.operator.symbol in ("?", "&") and found and found[-1].symbol == "?":
            found[-1] = _joined(found[-1], part)
        else:
            for hole in _holes(part):
                chained = hole.symbol in ("/", ".") and bool(found) and found[-1].symbol == hole.symbol
                found.append(replace(hole, chained=chained))
    return found


def _joined(query: _Element, part: Expression) -> _Element:
    """``{?a}{&b}`` is one query: without ``a`` it begins with ``&`` (RFC 6570 expands it so)."""
    openings = tuple(dict.fromkeys((*query.openings, part.operator.first)))
    return _Element(openings, query.stops, query.variables + part.variables, optional=True, symbol="?")


def _holes(part: Expression) -> list[_Element]:
    symbol, variables = part.operator.symbol, part.variables
    if symbol in ("?", "&"):
        return [_Element((part.operator.first,), "#", variables, optional=True, symbol="?")]
    if symbol in ("", "+"):
        return [_Element(("",), "" if symbol else _SEGMENT, variables, symbol=symbol)]
    if symbol == "#":
        return [_Element(("#",), "", variables, optional=True, symbol=symbol)]
    return [_introduced(part, variable) for variable in variables]


def _introduced(part: Expression, variable: Variable) -> _Element:
    """``{/x}``, ``{.x}``, ``{;x}``: each variable brings its own separator, and may be missing."""
    symbol = part.operator.symbol
    stops = _SEGMENT
    if variable.explode:
        stops = stops.replace(symbol, "")
        return _Element((symbol,), stops, (variable,), optional=True, symbol=symbol)
    if symbol == ";":
        name = canonical(variable.name) or ""
        return _Element((f";{name}=", f";{name}"), stops + ";", (variable,), optional=True, symbol=symbol)
    if len(part.variables) > 1 and symbol == ".":
        stops += "."
    return _Element((symbol,), stops, (variable,), optional=True, symbol=symbol)


def _taken(element: _Element, before: int, units: str, masks: _Masks) -> int:
    """The positions where an element that is there can end, from those where it can begin."""
    reached = 0
    for opening in element.openings:
        opened = _past(opening, before, units)
        if element.stops is None or _bare_name(element, opening):
            reached |= opened
            continue
        mask = masks.of(element.stops)
        if not opening:  # a hole that nothing introduces takes at least one character
            opened = (opened & mask) << 1
        # Adding lets each start carry through the run of ones above it, to the first position past the run.
        reached |= (((opened & mask) + mask) ^ mask) | opened
    return reached


def _bare_name(element: _Element, opening: str) -> bool:
    """``;name`` without a value."""
    return element.symbol == ";" and opening != ";" and not opening.endswith("=")


def _past(text: str, before: int, units: str) -> int:
    """The positions past ``text``, where it stands at one of the positions before."""
    if not text or not before:
        return before
    if not before & (before - 1):
        return before << len(text) if units.startswith(text, before.bit_length() - 1) else 0
    stands = bytearray(b"0" * len(units))
    at = units.find(text)
    while at >= 0:
        stands[-1 - at] = 49
        at = units.find(text, at + 1)
    return (before & int(stands.decode() or "0", 2)) << len(text)


def _start(element: _Element, before: int, end: int, units: str, masks: _Masks) -> tuple[int, int | None]:
    """Where an element that ends at ``end`` begins, and how long its opening is; None when it is missing.

    The latest beginning is taken, so that what stands to the left gets the most.
    """
    best: tuple[int, int | None] = (end, None)
    for opening in element.openings:
        start = _latest(element, opening, before, end, units, masks)
        if start is not None and (best[1] is None or start > best[0]):
            best = (start, len(opening))
    return best


def _latest(element: _Element, opening: str, before: int, end: int, units: str, masks: _Masks) -> int | None:
    size = len(opening)
    if element.stops is None or _bare_name(element, opening):
        start = end - size
        return start if start >= 0 and before >> start & 1 and units.startswith(opening, start) else None
    below = (1 << end) - 1
    run = (below & ~masks.of(element.stops)).bit_length()  # where the run of characters that ends here begins
    latest = end if opening else end - 1
    opened = _past(opening, before, units) if opening else before
    opened &= ((1 << latest + 1) - 1) if latest >= 0 else 0
    opened = opened >> run << run
    return opened.bit_length() - 1 - size if opened else None


def _divided(element: _Element, text: str) -> list[tuple[Variable, Value]] | None:
    """Divide what a hole took among its variables; None when it cannot be."""
    if element.symbol == "?":
        return _query(element.variables, text[1:])
    variable = element.variables[0]
    if element.symbol == ";":
        return _matrix(variable, text)
    if element.symbol in ("/", "."):
        return [(variable, _exploded(text.split(element.symbol)) if variable.explode else _decoded(text))]
    return _commas(element.variables, text)


def _commas(variables: tuple[Variable, ...], text: str) -> list[tuple[Variable, Value]]:
    if len(variables) == 1 and not variables[0].explode:
        return [(variables[0], _decoded(text))]
    pieces = text.split(",")
    found: list[tuple[Variable, Value]] = []
    for index, variable in enumerate(variables[: len(pieces)]):
        rest = pieces[index:] if index == len(variables) - 1 else [pieces[index]]
        found.append((variable, _exploded(rest) if variable.explode else _decoded(",".join(rest))))
    return found


def _exploded(pieces: list[str]) -> Value:
    if all("=" in piece for piece in pieces):
        return {_decoded(name): _decoded(value) for name, _, value in (piece.partition("=") for piece in pieces)}
    return [_decoded(piece) for piece in pieces]


def _matrix(variable: Variable, text: str) -> list[tuple[Variable, Value]] | None:
    pairs = [(name, value) for name, _, value in (piece.partition("=") for piece in text[1:].split(";"))]
    name = canonical(variable.name)
    if not variable.explode:
        return [(variable, _decoded(pairs[0][1]))]
    return [(variable, _members(name, pairs))]


def _members(name: str | None, pairs: list[tuple[str, str]]) -> Value:
    """``x=1;x=2`` is the list x; other names are those of an object."""
    if all(key == name for key, _ in pairs):
        return [_decoded(value) for _, value in pairs]
    return {_decoded(key): _decoded(value) for key, value in pairs}


def _query(variables: tuple[Variable, ...], text: str) -> list[tuple[Variable, Value]] | None:
    """Parameters in any order, each at most once unless exploded; one that the template lacks fits nothing."""
    known = {canonical(variable.name): variable for variable in variables}
    collected: dict[str, list[tuple[str, str]]] = {}
    spare = next((variable for variable in variables if variable.explode), None)
    for piece in text.split("&") if text else ():
        key, _, value = piece.partition("=")
        variable = known.get(key, spare)
        if variable is None:
            return None
        collected.setdefault(variable.name, []).append((key, value))
    found: list[tuple[Variable, Value]] = []
    for variable in known.values():
        pairs = collected.get(variable.name, [])
        if variable.explode and pairs:
            found.append((variable, _members(canonical(variable.name), pairs)))
        elif len(pairs) > 1:
            return None
        elif pairs:
            found.append((variable, _decoded(pairs[0][1])))
    return found


def _take(values: list[tuple[Variable, Value]], found: dict[str, Value], prefixes: list[tuple[Variable, str]]) -> bool:
    """Add values to those found; false when a variable would have two."""
    for variable, value in values:
        if variable.prefix is not None:
            if not isinstance(value, str) or len(value) > variable.prefix:
                return False
            prefixes.append((variable, value))
        elif found.setdefault(variable.name, value) != value:
            return False
    return True
