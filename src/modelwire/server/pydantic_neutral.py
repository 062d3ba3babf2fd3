"""Which of pydantic's types have one schema for both: what is read and what is written.

pydantic makes a schema for each of the two, anew and slowly, and for most models they are the same. `written_as_read`
goes through what pydantic validates by, and says so only where it knows all of it: no serializers, no computed fields,
no name that differs, no schema with a hand in it. It makes no schema.
"""

from __future__ import annotations

import sys
from typing import Any

from modelwire.server.json_values import is_list, is_object, members_of

_PARTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("any", "none", "bool", "int", "float", "str", "date", "time", "datetime", "uuid"), ()),
    **dict.fromkeys(("literal", "enum", "definition-ref"), ()),
    **dict.fromkeys(("nullable", "default", "function-after", "model", "dataclass"), ("schema",)),
    **dict.fromkeys(("model-field", "dataclass-field"), ("schema",)),
    **dict.fromkeys(("list", "set", "frozenset"), ("items_schema",)),
    **dict.fromkeys(("model-fields", "dataclass-args"), ("fields",)),
    "dict": ("keys_schema", "values_schema"),
    "union": ("choices",),
    "definitions": ("schema", "definitions"),
}
"""The kinds that are read and written alike, and what of them must be so, too."""
_LEAVES = frozenset(kind for kind, parts in _PARTS.items() if not parts)
_OWN_WORDS = frozenset("type min_length max_length pattern gt ge lt le multiple_of expected strict".split())
"""What most types without parts say of themselves, and no more."""
_DIFFERENT = frozenset(
    ("serialization computed_fields serialization_exclude serialization_exclude_if init_only extras_schema").split()
)
_CONFIG = frozenset(
    ("title extra frozen strict from_attributes validate_assignment arbitrary_types_allowed validate_default "
     "str_strip_whitespace str_min_length str_max_length str_to_lower str_to_upper hide_input_in_errors "
     "use_attribute_docstrings protected_namespaces revalidate_instances").split()
)  # fmt: skip
"""What a class may be told without its two schemas becoming different."""
_METADATA = frozenset({"pydantic_js_updates", "pydantic_js_functions"})


def written_as_read(core: Any) -> bool:
    """Whether one schema says what a type is read from and what it is written as.

    Args:
        core: What pydantic validates by, a core schema.
    """
    if isinstance(core, tuple):  # an option of a union, with its name
        return written_as_read(core[0])
    if is_list(core):
        return all(written_as_read(part) for part in core)
    if not is_object(core) or "type" not in core:
        return False
    found: dict[str, Any] = core
    kind = found["type"]
    if kind in _LEAVES and found.keys() <= _OWN_WORDS:
        return True
    if kind not in _PARTS or any(found[name] for name in _DIFFERENT & found.keys()) or not _is_named_alike(found):
        return False
    if not _is_known(found.get("metadata")) or ("cls" in found and not _is_configured(found["cls"])):
        return False
    return all(_parts_are(found[name]) for name in _PARTS[kind] if name in found)


def _parts_are(part: Any) -> bool:
    by_name = (is_object(part) and "type" not in part) or _is_fields(part)
    return all(written_as_read(field) for field in members_of(part)) if by_name else written_as_read(part)


def _is_fields(part: Any) -> bool:
    """Whether these are fields by name, one of which is called "type"."""
    return is_object(part) and is_object(part.get("type"))


def _is_named_alike(found: dict[str, Any]) -> bool:
    if not found["type"].endswith("-field"):
        return True
    read = found.get("validation_alias")
    return (
        read == found.get("serialization_alias") and (read is None or isinstance(read, str)) and found.get("init", True)
    )


def _is_known(metadata: Any) -> bool:
    """Whether nobody but pydantic has a hand in the schema."""
    if not metadata:
        return True
    functions: list[Any] = metadata.get("pydantic_js_functions", ())
    return metadata.keys() <= _METADATA and all(_is_own(function) for function in functions)


def _is_own(function: Any) -> bool:
    inner = getattr(function, "__func__", function)
    own = sys.modules["pydantic"].BaseModel.__get_pydantic_json_schema__.__func__
    return inner is own or getattr(inner, "__module__", "") == "pydantic._internal._generate_schema"


def _is_configured(cls: Any) -> bool:
    config: Any = getattr(cls, "model_config", None) or getattr(cls, "__pydantic_config__", None) or {}
    return is_object(config) and config.keys() <= _CONFIG
