"""Python values on their way to JSON, where no annotation announced them: their plain form, and what JSON cannot hold.

Nothing here knows types; `modelwire.server.nodes` does.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from modelwire.protocol.types.base import standard_form


def plain_form(value: Any) -> Any:
    """The JSON form of what msgspec does not know and no annotation announced."""
    dump = getattr(value, "model_dump", None) if hasattr(value, "__pydantic_serializer__") else None
    if dump is not None:
        return dump(mode="json", by_alias=True)
    found = standard_form(value)
    if found is not value:
        return found
    raise TypeError("JSON knows no such value")


def not_finite(value: Any, path: str) -> tuple[str, str] | None:
    """Return where a NaN or an infinity stands, which msgspec writes as ``null``, and which of them; None without.

    Args:
        value: Anything that msgspec can write.
        path: What to call it.
    """
    if isinstance(value, float):
        return None if math.isfinite(value) else (path, str(value))
    if isinstance(value, (str, bytes, int)) or value is None:
        return None
    if isinstance(value, dict):
        members: Any = [(f"{path}.{key}", item) for key, item in value.items()]  # pyright: ignore[reportUnknownVariableType]
    elif isinstance(value, (list, tuple, set, frozenset)):
        members = [(f"{path}[{index}]", item) for index, item in enumerate(value)]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    else:
        return _not_finite_inside(value, path)
    return next((found for place, item in members if (found := not_finite(item, place)) is not None), None)


def _not_finite_inside(value: Any, path: str) -> tuple[str, str] | None:
    """Look into a dataclass, struct or other object through its plain form, unless it has none of its own."""
    plain = msgspec.to_builtins(value, str_keys=True, enc_hook=plain_form)
    return None if type(plain) is type(value) else not_finite(plain, path)
