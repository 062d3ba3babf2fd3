"""Variables of a template that give a list, ``{path*}``: refused at registration where a parameter takes none.

Judged by the parameter's schema, and only where that leaves no doubt.
"""

from __future__ import annotations

from typing import Any, cast

from modelwire.errors import SignatureError
from modelwire.rules.uri_template import UriTemplate

_SCALARS = {"string", "integer", "number", "boolean", "null"}
_MAX_DEPTH = 32


def refuse_scalars(template: UriTemplate, schema: dict[str, Any]) -> None:
    """Refuse a function whose parameters cannot take what the template gives.

    Args:
        template: The template.
        schema: The schema of the function's parameters.

    Raises:
        SignatureError: A parameter takes no list, and its variable is one.
    """
    for name in template.exploded:
        kinds = _kinds(schema["properties"][name], schema)
        if kinds and kinds <= _SCALARS:
            raise SignatureError(
                f"resource {template.template!r}: {{{name}*}} gives a list, which parameter {name!r} cannot take; "
                f"annotate it as list[str], or write {{+{name}}} for one text that may hold slashes"
            )


def _kinds(schema: Any, root: dict[str, Any], depth: int = 0) -> set[str]:
    """Return the JSON types that a schema takes; nothing where it does not say."""
    if depth > _MAX_DEPTH or not isinstance(schema, dict):
        return set()
    found = cast("dict[str, Any]", schema)
    if "$ref" in found:
        name = str(found["$ref"]).rpartition("/")[2]
        return _kinds(root.get("$defs", {}).get(name), root, depth + 1)
    if "type" in found:
        types = found["type"]
        return set(cast("list[str]", types)) if isinstance(types, list) else {types}
    for word in ("anyOf", "oneOf"):
        if word in found:
            parts = [_kinds(part, root, depth + 1) for part in found[word]]
            return set[str]().union(*parts) if all(parts) else set()
    values = [found["const"]] if "const" in found else found.get("enum", [])
    return {"array" if isinstance(value, list | dict) else "string" for value in values}
