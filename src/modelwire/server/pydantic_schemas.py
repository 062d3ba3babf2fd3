"""pydantic's own generator of schemas, taught that an object takes only the members that it knows.

pydantic's classes pass over other members unless they are told otherwise (`extra=`), and their schemas say nothing of
it. Which classes must stay open is decided here. pydantic is never imported by name: it is found where Python keeps
what is loaded.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from modelwire.server.json_values import is_object, members_of


@functools.cache
def closing() -> Any:
    """Return a ``GenerateJsonSchema`` whose objects say ``additionalProperties: false`` unless their class is open."""
    generator: Any = sys.modules["pydantic.json_schema"].GenerateJsonSchema

    def closed(method: Callable[[Any, Any], dict[str, Any]]) -> Callable[[Any, Any], dict[str, Any]]:
        return lambda self, core: _closed(method(self, core), core)

    names = ("model_schema", "dataclass_schema", "typed_dict_schema")
    return type("Closing", (generator,), {name: closed(getattr(generator, name)) for name in names})


def _closed(found: dict[str, Any], core: dict[str, Any]) -> dict[str, Any]:
    """Close the schema of a class.

    Args:
        found: The schema.
        core: What pydantic validates by.
    """
    if found.get("type") != "object" or "additionalProperties" in found or _is_open(core):
        return found
    return {**found, "additionalProperties": False}


def _is_open(core: dict[str, Any]) -> bool:
    """Whether a class takes members by other names than the schema shows, or wants others to be passed over."""
    cls = core.get("cls")
    config: Any = getattr(cls, "model_config", None) or getattr(cls, "__pydantic_config__", None) or {}
    if "extra" in config or core.get("custom_init") or _looks_first(cls):
        return True
    inner = _with_fields(core)
    if inner.get("computed_fields"):  # what an object is written with may come back
        return True
    by_name = config.get("populate_by_name") or config.get("validate_by_name")
    aliases = [field.get("validation_alias") for field in _fields(inner)]
    return any(alias is not None and (by_name or not isinstance(alias, str)) for alias in aliases)


def _looks_first(cls: Any) -> bool:
    """Whether a validator of the class sees what came before its fields do, and may know more members than they."""
    decorators: Any = getattr(cls, "__pydantic_decorators__", None)
    if decorators is None:
        return False
    modes = [found.info.mode for found in decorators.model_validators.values()]
    modes += [found.info.mode for found in decorators.root_validators.values()]
    return any(mode != "after" for mode in modes)


def _with_fields(core: dict[str, Any]) -> dict[str, Any]:
    while ("fields" not in core or core["type"] == "dataclass") and isinstance(core.get("schema"), dict):
        core = core["schema"]
    return core


def _fields(core: dict[str, Any]) -> list[dict[str, Any]]:
    fields: Any = core.get("fields", ())
    return [field for field in (members_of(fields) if is_object(fields) else fields) if is_object(field)]
