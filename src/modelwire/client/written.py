"""Python values as the server's own types read them: by the names and in the forms that their classes have in JSON.

msgspec writes a NamedTuple as a list, attributes under their names in Python, and knows no paths or addresses; servers
read the names on the wire. Nothing is checked here: what a value must be is for the server to say. pydantic is never
imported: a value that is pydantic's has brought it.
"""

from __future__ import annotations

import collections
import enum
import functools
import ipaddress
import pathlib
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

import msgspec

if TYPE_CHECKING:
    from modelwire.server.fields import Outline

_SCALARS = frozenset({str, int, float, bool, type(None)})
_TEXTS = (pathlib.PurePath, ipaddress.IPv4Address, ipaddress.IPv6Address)
_LISTS = (list, tuple, set, frozenset, collections.deque)

Write = Callable[[Any], Any]


def as_read(value: Any) -> Any:
    """Return what msgspec is to write in place of a value; the value itself where it writes it as servers read it.

    Args:
        value: Anything.

    Raises:
        Exception: What a class raises that writes itself.
        RecursionError: It contains itself.
    """
    return value if _is_json(value) else _writer(cast("type[Any]", type(value)))(value)


def _is_json(value: Any) -> bool:
    """Whether a value is what JSON has, all through, as most are."""
    kind = cast("type[Any]", type(value))
    if kind is dict:
        for key, item in value.items():
            if type(key) is not str or not (type(item) in _SCALARS or _is_json(item)):
                return False
        return True
    if kind is list:
        return all(type(item) in _SCALARS or _is_json(item) for item in value)
    return kind in _SCALARS


@functools.lru_cache(maxsize=512)
def _writer(kind: type[Any]) -> Write:
    for known, make in _MAKERS:
        if known(kind):
            return make(kind)
    return _itself


def _itself(value: Any) -> Any:
    return value


def _written_mapping(value: Mapping[Any, Any]) -> Mapping[Any, Any]:
    return {as_read(key): as_read(item) for key, item in value.items()}


def _written_list(value: Any) -> Any:
    written = [as_read(item) for item in value]
    same = all(one is other for one, other in zip(written, value, strict=True))
    return value if same and not isinstance(value, collections.deque) else written


def _enum(kind: type[Any]) -> Write:
    del kind
    return lambda value: as_read(value.value)


def _fields(kind: type[Any]) -> Write:
    """Classes with fields, but for those that msgspec reads just as it writes them."""
    from modelwire.server.constraints import Unsupported
    from modelwire.server.fields import outline

    try:
        found = outline(kind, (), None)
    except Unsupported:
        return _itself
    names = [(field.name, field.wire) for field in found.fields if field.argument]
    if issubclass(kind, msgspec.Struct):
        return functools.partial(_written_struct, found)

    def write(value: Any) -> dict[str, Any]:
        return {wire: as_read(getattr(value, name)) for name, wire in names}

    return write


def _written_struct(found: Outline, value: Any) -> Any:
    """A struct is written by msgspec, unless a member of it has to be written otherwise."""
    members = [(field, getattr(value, field.name)) for field in found.fields]
    written = [as_read(item) for _, item in members]
    if all(plain is item for plain, (_, item) in zip(written, members, strict=True)):
        return value
    whole: dict[str, Any] = dict([] if found.tag is None else [found.tag])
    omits = value.__struct_config__.omit_defaults
    for plain, (field, item) in zip(written, members, strict=True):
        if item is not msgspec.UNSET and not (omits and item == field.default):
            whole[field.wire] = plain
    return list(whole.values()) if found.by_position else whole


def _pydantic(kind: type[Any]) -> Write:
    """Models, and every other class that pydantic writes; computed fields are left out, since nobody reads them."""
    adapter = None if hasattr(kind, "model_dump") else sys.modules["pydantic"].TypeAdapter(kind)

    def write(value: Any) -> Any:
        dump = value.model_dump if adapter is None else functools.partial(adapter.dump_python, value)
        return _renamed(value, dump(mode="json", by_alias=True, round_trip=True))

    return write


def _renamed(value: Any, written: Any) -> Any:
    """Call members as they are read, where an alias for reading differs from the one for writing."""
    if getattr(value, "__pydantic_root_model__", False):
        return _renamed(value.root, written)
    if isinstance(written, list):
        items = list(cast("list[Any]", value if isinstance(value, _LISTS) else written))
        return [_renamed(item, plain) for item, plain in zip(items, cast("list[Any]", written), strict=False)]
    if not isinstance(written, dict):
        return written
    found: dict[str, Any] = dict(cast("dict[str, Any]", written))
    if isinstance(value, Mapping):
        items = list(cast("Mapping[Any, Any]", value).values())
        return {name: _renamed(item, found[name]) for item, name in zip(items, found, strict=False)}
    fields: Any = getattr(cast(Any, type(value)), "__pydantic_fields__", {})
    for name, field in fields.items():
        shown = field.serialization_alias or name
        if shown in found:
            found[_alias(field) or name] = _renamed(getattr(value, name), found.pop(shown))
    return found


def _alias(field: Any) -> str | None:
    alias = field.validation_alias
    choices = getattr(alias, "choices", None)
    alias = choices[0] if choices else alias
    return alias if isinstance(alias, str) else None


def _has_fields(kind: Any) -> bool:
    marks = ("__attrs_attrs__", "__dataclass_fields__", "__struct_fields__")
    return any(hasattr(kind, mark) for mark in marks) or (hasattr(kind, "_fields") and issubclass(kind, tuple))


def _is_pydantic(kind: type[Any]) -> bool:
    return hasattr(kind, "__pydantic_serializer__") or hasattr(kind, "__get_pydantic_core_schema__")


_MAKERS: tuple[tuple[Callable[[type[Any]], bool], Callable[[type[Any]], Write]], ...] = (
    (lambda kind: issubclass(kind, enum.Enum), _enum),
    (_is_pydantic, _pydantic),
    (_has_fields, _fields),
    (lambda kind: issubclass(kind, Mapping), lambda kind: _written_mapping),
    (lambda kind: issubclass(kind, _LISTS), lambda kind: _written_list),
    (lambda kind: issubclass(kind, _TEXTS), lambda kind: str),
)
