"""The ``$defs`` of one schema: who has which name, and what pydantic and our own nodes put there.

Two classes of one name get different names; what is equal is shared. This file knows schemas, and no types but the
ones that it asks msgspec for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from modelwire.server.json_values import is_list, is_object

_UNSAFE = re.compile(r"[^a-zA-Z0-9.\-_]")
PREFIX = "#/$defs/"


class Definitions:
    """Collects definitions while a schema is built.

    Args:
        plain: Returns the schema of a type without parts, which needs no definitions.
        output: The schema is of what a function returns, not of what it takes.
    """

    def __init__(self, plain: Callable[[Any], dict[str, Any]], *, output: bool = False) -> None:
        self.found: dict[str, Any] = {}
        self.output = output
        self._plain = plain
        self._names: dict[Any, str] = {}

    def of(self, annotation: Any) -> dict[str, Any]:
        """Return the schema of a type without parts."""
        return self._plain(annotation)

    def put(self, key: Any, name: str, schema: dict[str, Any]) -> dict[str, Any]:
        """Define ``name`` and return a reference to it."""
        return self.recursive(key, name, lambda: schema)

    def recursive(self, key: Any, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return a reference to what ``make`` returns, which may refer to it, too; made once per ``key``."""
        if key not in self._names:
            own = self._names[key] = self._free(_UNSAFE.sub("_", name).strip("_") or "Type")
            self.found[own] = {}
            self.found[own] = make()
        return {"$ref": PREFIX + self._names[key]}

    def merge(self, schema: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
        """Take over definitions made elsewhere; return the schema, its references adapted."""
        renamed = {
            PREFIX + name: PREFIX + self._free(name)
            for name, component in components.items()
            if name in self.found and self.found[name] != component
        }
        for name, component in components.items():
            self.found[renamed.get(PREFIX + name, PREFIX + name).removeprefix(PREFIX)] = _redirected(component, renamed)
        return _redirected(schema, renamed)

    def _free(self, name: str) -> str:
        count, free = 1, name
        while free in self.found:
            count += 1
            free = f"{name}_{count}"
        return free


def _redirected(schema: Any, renamed: dict[str, str]) -> Any:
    if not renamed:
        return schema
    if is_object(schema):
        members: dict[str, Any] = schema
        return {
            key: renamed.get(value, value) if key == "$ref" and isinstance(value, str) else _redirected(value, renamed)
            for key, value in members.items()
        }
    return [_redirected(item, renamed) for item in schema] if is_list(schema) else schema
