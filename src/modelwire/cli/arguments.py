"""``name=value`` and ``name:=json`` from a command line, read by a tool's schema.

Reading only: whether the arguments are good is the server's decision.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, NoReturn, cast

from modelwire.cli.failures import usage

Schema = dict[str, Any]

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_MAX_REFS = 32
_ANY: frozenset[str] = frozenset({"string"})
"""What a parameter takes for which the schema names no type: text stays text, and ``:=`` is there for the rest."""


@dataclass(frozen=True)
class Word:
    """One argument as it was typed.

    Attributes:
        name: The parameter.
        text: What followed ``=`` or ``:=``.
        is_json: Whether it was ``:=``.
        value: For ``:=``, the value.
    """

    name: str
    text: str
    is_json: bool
    value: Any = None


def parse_word(word: str) -> Word:
    """Read one word.

    Raises:
        Failure: It is neither ``name=value`` nor ``name:=json``.
    """
    name, equals, text = word.partition("=")
    if not equals or not name or name == ":":
        raise usage(f"{word!r} is no argument; write name=value, or name:=json for a value that is no text")
    if not name.endswith(":"):
        return Word(name, text, is_json=False)
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise usage(f"{word!r}: what follows := is no JSON ({error}); for text write {name[:-1]}={text}") from None
    return Word(name[:-1], text, is_json=True, value=value)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number in JSON")


def text_arguments(words: list[Word]) -> dict[str, Any]:
    """Return arguments that are all text, as prompts have them; ``:=`` gives other values.

    Raises:
        Failure: A name comes twice.
    """
    return _collected(words, {})


def typed_arguments(words: list[Word], schema: Schema) -> dict[str, Any]:
    """Return a tool's arguments, each read as its ``inputSchema`` has it.

    Args:
        words: What was typed. A name may come several times where the parameter is an array.
        schema: The tool's ``inputSchema``.

    Raises:
        Failure: A value cannot be what the schema wants, or a name comes twice.
    """
    return _collected(words, schema)


def _collected(words: list[Word], schema: Schema) -> dict[str, Any]:
    values: dict[str, Any] = {}
    properties: Any = schema.get("properties")
    for name in dict.fromkeys(word.name for word in words):
        given = [word for word in words if word.name == name]
        parameter = properties.get(name) if isinstance(properties, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        values[name] = _value(name, given, _Reader(schema), parameter)
    return values


def _value(name: str, given: list[Word], reader: _Reader, parameter: Any) -> Any:
    if len(given) == 1 and given[0].is_json:
        return given[0].value
    kinds = reader.kinds(parameter)
    takes_list = "array" in kinds and "string" not in kinds
    if len(given) > 1 and not takes_list:
        raise usage(f"the argument {name!r} is given {len(given)} times")
    if takes_list and not _is_json_of(given[0].text, list):
        item = reader.items(parameter)
        return [word.value if word.is_json else reader.read(name, word.text, item) for word in given]
    return reader.read(name, given[0].text, parameter)


def _is_json_of(text: str, kind: type) -> bool:
    try:
        return isinstance(json.loads(text), kind)
    except (ValueError, RecursionError):
        return False


class _Reader:
    """Reads text as a schema has it, following references inside the tool's schema."""

    def __init__(self, root: Schema) -> None:
        self._root = root

    def kinds(self, schema: Any, depth: int = 0) -> frozenset[str]:
        """The JSON types that a schema takes, as far as it says so plainly."""
        found = self._resolve(schema)
        if depth > _MAX_REFS or not found:
            return _ANY
        if "type" in found:
            types = found["type"]
            return frozenset(cast("list[str]", types if isinstance(types, list) else [types]))
        values = [found["const"]] if "const" in found else found.get("enum")
        if isinstance(values, list):
            return frozenset(_kind(value) for value in cast("list[Any]", values))
        for word in ("anyOf", "oneOf", "allOf"):
            parts = found.get(word)
            if isinstance(parts, list) and parts:
                return frozenset[str]().union(*(self.kinds(part, depth + 1) for part in cast("list[Any]", parts)))
        return _ANY

    def items(self, schema: Any) -> Any:
        """The schema of the items of an array."""
        found = self._resolve(schema)
        if "items" in found:
            return found["items"]
        parts: list[Any] = found.get("anyOf") or found.get("oneOf") or []
        return next((self.items(part) for part in parts if "array" in self.kinds(part)), None)

    def read(self, name: str, text: str, schema: Any) -> Any:
        """Return the value that a text stands for."""
        kinds = self.kinds(schema)
        if "string" in kinds:
            return text
        for kind in ("null", "boolean", "integer", "number", "array", "object"):
            if kind in kinds:
                found, value = _READERS[kind](text)
                if found:
                    return value
        wanted = " or ".join(sorted(kinds))
        raise usage(f"{name}={text}: the tool wants {name!r} to be {_article(wanted)}; or write {name}:=JSON")

    def _resolve(self, schema: Any) -> Schema:
        found = schema
        for _ in range(_MAX_REFS):
            if not isinstance(found, dict) or "$ref" not in found:
                break
            found = self._follow(cast(Schema, found)["$ref"])
        return cast(Schema, found) if isinstance(found, dict) else {}

    def _follow(self, ref: Any) -> Any:
        if not isinstance(ref, str) or not ref.startswith("#"):
            return None
        found: Any = self._root
        for part in ref.removeprefix("#").split("/")[1:]:
            found = (
                cast(Schema, found).get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
            )
        return found


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    names = {str: "string", int: "integer", float: "number", list: "array", dict: "object"}
    return names.get(type(value), "null")  # pyright: ignore[reportUnknownArgumentType]


def _article(kinds: str) -> str:
    return f"an {kinds}" if kinds[0] in "aio" else f"a {kinds}"


def _read_null(text: str) -> tuple[bool, Any]:
    return text == "null", None


def _read_boolean(text: str) -> tuple[bool, Any]:
    return text.lower() in ("true", "false"), text.lower() == "true"


def _read_integer(text: str) -> tuple[bool, Any]:
    return (True, int(text)) if _INTEGER.fullmatch(text) and len(text) < 4000 else (False, None)


def _read_number(text: str) -> tuple[bool, Any]:
    found, value = _read_integer(text)
    if found or not _NUMBER.fullmatch(text):
        return found, value
    number = float(text)
    return number - number == 0, number  # what is too large for a number is infinite


def _read_json(kind: type) -> Any:
    def read(text: str) -> tuple[bool, Any]:
        return (True, json.loads(text)) if _is_json_of(text, kind) else (False, None)

    return read


_READERS = {
    "null": _read_null,
    "boolean": _read_boolean,
    "integer": _read_integer,
    "number": _read_number,
    "array": _read_json(list),
    "object": _read_json(dict),
}
