"""Which values an argument may have at all, as its schema says: what completion suggests by itself.

Reads schemas only, of the functions' own signatures.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import msgspec

_REF = "#/$defs/"


def choices(schema: dict[str, Any], names: Iterable[str]) -> dict[str, list[str]]:
    """Return the values that arguments of ``Literal`` and ``Enum`` types may have, as the text that stands for them.

    Args:
        schema: The schema of the arguments object.
        names: The arguments to look at; those that take other values as well are left out.
    """
    defs = schema.get("$defs", {})
    found = {name: _values(schema["properties"].get(name), defs) for name in names}
    return {name: _texts(values) for name, values in found.items() if values}


def matching(values: list[str], typed: str) -> list[str]:
    """Return the values that begin with what has been typed, in whatever case."""
    start = typed.casefold()
    return [value for value in values if value.casefold().startswith(start)]


def _values(schema: Any, defs: dict[str, Any]) -> list[Any] | None:
    """The values that a schema lists; None where it takes others as well."""
    found = _resolved(schema, defs)
    if "const" in found:
        return [found["const"]]
    if "enum" in found:
        return list(found["enum"])
    if found.get("type") == "null":
        return [None]
    # A definition is followed once: one that refers to itself lists nothing.
    others = defs if found is schema else {key: value for key, value in defs.items() if value is not found}
    options = [_values(option, others) for option in found.get("anyOf", ())]
    if not options or any(option is None for option in options):
        return None
    return [value for option in options for value in option or ()]


def _resolved(schema: Any, defs: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(schema, dict):
        return {}
    found = cast("dict[str, Any]", schema)
    ref = str(found.get("$ref", ""))
    return defs.get(ref.removeprefix(_REF), {}) if ref.startswith(_REF) else found


def _texts(values: list[Any]) -> list[str]:
    present = (value for value in values if value is not None)
    texts = (value if isinstance(value, str) else msgspec.json.encode(value).decode() for value in present)
    return list(dict.fromkeys(texts))
