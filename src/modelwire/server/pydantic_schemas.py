"""pydantic's own generator of schemas, taught that an object takes only the members that it knows.

pydantic's classes pass over other members unless they are told otherwise (`extra=`), and their schemas say nothing of
it. Which classes must stay open is decided here, and for which one schema says both what is read and what is written.
pydantic is never imported by name: it is found where Python keeps what is loaded.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from modelwire.server.json_values import is_object, members_of

CLOSED = "closed by modelwire"
"""Stands for the ``false`` of ``additionalProperties``, so that a schema with it can be made open again."""


class _Methods(dict[str, Any]):
    """What makes the schema of each kind of core schema, found when it is asked for; there are some sixty kinds."""

    def __init__(self, owner: Any) -> None:
        super().__init__()
        self._owner = owner

    def __missing__(self, kind: str) -> Any:
        found = self[kind] = getattr(self._owner, _method(kind))
        return found


def _methods(owner: Any) -> _Methods:
    return _Methods(owner)


@functools.cache
def _method(kind: str) -> str:
    return f"{kind.replace('-', '_')}_schema"


def _encode_default(method: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Spare the most usual defaults the adapter that pydantic makes for each."""

    def encode_default(self: Any, default: Any) -> Any:
        if default is None or type(default) in (str, bool, int):
            return default
        return type(default)() if type(default) in (list, dict) and not default else method(self, default)

    return encode_default


@functools.cache
def generator() -> Any:
    """Return pydantic's ``GenerateJsonSchema``, sparing itself what it does not need."""
    base: Any = sys.modules["pydantic.json_schema"].GenerateJsonSchema
    quick: dict[str, Any] = {
        "build_schema_type_to_method": _methods,
        "encode_default": _encode_default(base.encode_default),
    }
    return type("Generator", (base,), quick)


@functools.cache
def closing(word: Any = False) -> Any:
    """Return a ``GenerateJsonSchema`` whose objects say ``additionalProperties: false`` unless their class is open.

    Args:
        word: What it says in place of ``false``.
    """
    base = generator()

    def closed(method: Callable[[Any, Any], dict[str, Any]]) -> Callable[[Any, Any], dict[str, Any]]:
        return lambda self, core: _closed(method(self, core), core, word)

    names = ("model_schema", "dataclass_schema", "typed_dict_schema")
    return type("Closing", (base,), {name: closed(getattr(base, name)) for name in names})


@functools.cache
def marking() -> Any:
    """Return `closing` for what is `written_as_read`: it says `CLOSED`, and asks for the mode no more."""
    base = closing(CLOSED)

    def generate_inner(self: Any, core: dict[str, Any]) -> dict[str, Any]:
        """Spare what nobody has a hand in, and nothing refers to, the handlers that would find that out."""
        if "ref" in core or core.get("metadata") or core["type"] == "definition-ref":
            return base.generate_inner(self, core)
        return getattr(self, _method(core["type"]))(core)

    return type("Marking", (base,), {"mode": "validation", "generate_inner": generate_inner})


def _closed(found: dict[str, Any], core: dict[str, Any], word: Any) -> dict[str, Any]:
    """Close the schema of a class.

    Args:
        found: The schema.
        core: What pydantic validates by.
        word: What ``additionalProperties`` says then.
    """
    if found.get("type") != "object" or "additionalProperties" in found or _is_open(core):
        return found
    return {**found, "additionalProperties": word}


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
