"""Docstrings in Google, NumPy and Sphinx style: what the function does, and a line per parameter.

Reads text only; it imports nothing of modelwire and never looks at a function.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from inspect import cleandoc

_PARAMETERS = frozenset({"args", "arguments", "parameters", "params", "keyword args", "keyword arguments",
                         "other parameters", "other args"})  # fmt: skip
_DROPPED = frozenset({"returns", "return", "yields", "yield", "raises", "raise", "except", "exceptions", "warns",
                      "receives"})  # fmt: skip
_GOOGLE_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\([^:]*\))?\s*:\s*(.*)")
_NUMPY_ENTRY = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")
_SPHINX_PARAMETER = re.compile(r":(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)")
_SPHINX_DROPPED = re.compile(r":(?:type|rtype|returns?|yields?|ytype|raises?|except|exception|var|vartype)\b[^:]*:")


@dataclass(slots=True)
class Docstring:
    """A docstring taken apart.

    Args:
        description: The text without its sections on parameters, results and exceptions.
        parameters: What the docstring says of each parameter, on one line.
    """

    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict[str, str])


def parse(text: str | None) -> Docstring:
    """Take a docstring apart; text in no known style is all description."""
    if not text:
        return Docstring()
    if "\n" not in text and not text.lstrip().startswith(":"):
        return Docstring(cleandoc(text).strip())
    known = _taken_apart(text)
    return Docstring(known.description, dict(known.parameters))


@lru_cache(maxsize=2)
def _taken_apart(text: str) -> Docstring:
    """Kept for a moment: a function is asked for its description, and then for what it says of its parameters."""
    found = Docstring()
    lines = cleandoc(text).splitlines()
    kept: list[str] = []
    position = 0
    while position < len(lines):
        position = _block(lines, position, found.parameters, kept)
    found.description = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
    return found


def _block(lines: list[str], start: int, parameters: dict[str, str], kept: list[str]) -> int:
    """Handle the section or the line that begins at ``start``; return where the next one begins."""
    line = lines[start]
    if line.startswith(":"):
        return _sphinx(lines, start, parameters, kept)
    heading = line.strip().rstrip(":").lower()
    if heading not in _PARAMETERS and heading not in _DROPPED:
        kept.append(line)
        return start + 1
    if _underlined(lines, start):
        end = _numpy_end(lines, start + 2)
        entries, body = _numpy_entries, lines[start + 2 : end]
    elif line == line.strip() and line.endswith(":") and _indented_below(lines, start):
        end = _indented_end(lines, start + 1)
        entries, body = _google_entries, lines[start + 1 : end]
    else:
        kept.append(line)
        return start + 1
    if heading in _PARAMETERS:
        parameters.update(entries(body))
    return end


def _sphinx(lines: list[str], start: int, parameters: dict[str, str], kept: list[str]) -> int:
    end = _indented_end(lines, start + 1)
    while end > start + 1 and not lines[end - 1].strip():
        end -= 1
    if entry := _SPHINX_PARAMETER.match(lines[start]):
        parameters[entry[1]] = _joined([entry[2], *lines[start + 1 : end]])
    elif not _SPHINX_DROPPED.match(lines[start]):
        kept.append(lines[start])
        return start + 1
    return end


def _google_entries(body: list[str]) -> dict[str, str]:
    """``name (type): text``, continued on lines that are indented further."""
    margin = min((_indent(line) for line in body if line.strip()), default=0)
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in body:
        entry = _GOOGLE_ENTRY.match(line.strip()) if line.strip() and _indent(line) == margin else None
        if entry:
            current = found.setdefault(entry[1], [])
            current.append(entry[2])
        else:
            current.append(line)
    return {name: _joined(text) for name, text in found.items()}


def _numpy_entries(body: list[str]) -> dict[str, str]:
    """``name : type`` or ``a, b : type``, the text indented below."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in body:
        entry = _NUMPY_ENTRY.match(line) if line.strip() and not _indent(line) else None
        if entry:
            current = []
            for name in entry[1].split(","):
                found[name.strip().lstrip("*")] = current
        else:
            current.append(line)
    return {name: _joined(text) for name, text in found.items()}


def _underlined(lines: list[str], at: int) -> bool:
    return at + 1 < len(lines) and re.fullmatch(r"-{3,}", lines[at + 1].strip()) is not None


def _numpy_end(lines: list[str], start: int) -> int:
    """A NumPy section runs to the next underlined heading."""
    return next((at for at in range(start, len(lines)) if lines[at].strip() and _underlined(lines, at)), len(lines))


def _indented_below(lines: list[str], at: int) -> bool:
    below = next((line for line in lines[at + 1 :] if line.strip()), "")
    return _indent(below) > 0


def _indented_end(lines: list[str], start: int) -> int:
    return next((at for at in range(start, len(lines)) if lines[at].strip() and not _indent(lines[at])), len(lines))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _joined(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())
