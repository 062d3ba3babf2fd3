"""The slow decoder: what to do with JSON that does not fit its type at first sight.

The fast decoder refuses a whole message for one odd part. This one goes through the type member by member, and
therefore can

- keep content blocks of an unknown kind as `UnknownContent`,
- skip the bad items of a list that is marked `singly`, with a warning that names them,
- presume what peers are known to leave out (`Presumed`), and leave out bad hints (`Hint`), each with a warning,
- say exactly what is wrong, where, in our own words.

It runs only after the fast decoder failed; on what that accepts, both agree.
"""

from __future__ import annotations

import types
import typing
from typing import Annotated, Any, Final, Literal, cast, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, Raw, Struct, UnsetType

from modelwire.log import log as _log
from modelwire.protocol import faults
from modelwire.protocol.faults import WireError
from modelwire.protocol.types.base import Choice, Hint, Presumed, Singly, UnknownContent, decode_hook, is_choice
from modelwire.protocol.types.content import ContentBlock, SamplingMessageContentBlock

_CONTENT: Final = frozenset(cast("tuple[type, ...]", (*get_args(ContentBlock), *get_args(SamplingMessageContentBlock))))


def read(data: bytes | Raw, kind: Any, path: str) -> Any:
    """Decode ``data`` as ``kind``.

    Args:
        data: JSON.
        kind: The type; anything that msgspec takes.
        path: What to call the place of ``data`` in messages.

    Raises:
        WireError: It does not fit; the message says where and why.
    """
    kind, marks = _bare(kind)
    origin = get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return _read_union(data, get_args(kind), kind, path)
    if origin is list:
        skip = any(isinstance(mark, Singly) for mark in marks)
        return _read_list(data, get_args(kind)[0], path, skip=skip)
    if origin is dict:
        member = get_args(kind)[1]
        return {key: read(raw, member, faults.join(path, key)) for key, raw in _object(data, path).items()}
    if isinstance(kind, type):
        known = cast("type[Any]", kind)
        if issubclass(known, Struct):
            return _read_struct(data, known, path)
        if is_choice(known):
            return _read_choice(data, known, path)
    return _read_leaf(data, kind, path)


def _bare(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    if get_origin(kind) is Annotated:
        inner, *marks = get_args(kind)
        return inner, tuple(marks)
    return kind, ()


def _read_struct(data: bytes | Raw, kind: type[Struct], path: str) -> Any:
    members = _object(data, path)
    tag_field = kind.__struct_config__.tag_field
    if tag_field is not None and tag_field in members:
        _check_tag(members[tag_field], kind, faults.join(path, tag_field))
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        raw = members.get(field.encode_name)
        if raw is not None:
            values[field.name] = _read_field(raw, field, faults.join(path, field.encode_name))
        elif field.default is NODEFAULT and field.default_factory is NODEFAULT:
            values[field.name] = _presume(field, path)
    return kind(**values)


def _read_field(raw: Raw, field: msgspec.structs.FieldInfo, path: str) -> Any:
    try:
        return read(raw, field.type, path)
    except WireError as error:
        if not any(isinstance(mark, Hint) for mark in _bare(field.type)[1]):
            raise
        _log.warning("%s; it is a mere hint and was left out", error)
        return field.default


def _check_tag(raw: Raw, kind: type[Struct], path: str) -> None:
    tag = kind.__struct_config__.tag
    found = _any(raw, path)
    if found != tag:
        raise WireError(f'{path} must be "{tag}", not {_shown(raw)}')


def _presume(field: msgspec.structs.FieldInfo, path: str) -> Any:
    for mark in _bare(field.type)[1]:
        if isinstance(mark, Presumed):
            _log.warning("%s; taken as %r", faults.missing(field.encode_name, path), mark.value)
            return mark.value
    raise WireError(faults.missing(field.encode_name, path))


def _read_choice(data: bytes | Raw, kind: type[Choice], path: str) -> Any:
    value = _any(data, path)
    try:
        member = kind.pick(value)
    except ValueError as error:
        raise WireError(f"{path}: {error}") from None
    return value if member is dict else read(data, member, path)


def _read_union(data: bytes | Raw, members: tuple[Any, ...], whole: Any, path: str) -> Any:
    text = bytes(data)
    first = text[:1]
    if first == b"n" and type(None) in members:
        return None
    members = tuple(member for member in members if member is not type(None) and member is not UnsetType)
    if len(members) == 1:
        return read(data, members[0], path)
    structs = [member for member in members if isinstance(member, type) and issubclass(member, Struct)]
    if structs and first == b"{":
        return _read_tagged(data, structs, path)
    lists = [member for member in members if get_origin(member) is list]
    if structs and lists and first == b"[":
        return read(data, lists[0], path)
    return _read_leaf(data, whole, path)


def _read_tagged(data: bytes | Raw, structs: list[type[Struct]], path: str) -> Any:
    tag_field = str(structs[0].__struct_config__.tag_field)
    members = _object(data, path)
    if tag_field not in members:
        raise WireError(faults.missing(tag_field, path))
    tag = _any(members[tag_field], path)
    for member in structs:
        if member.__struct_config__.tag == tag:
            return _read_struct(data, member, path)
    if isinstance(tag, str) and _CONTENT.issuperset(structs):
        return UnknownContent(_any(data, path))
    known = " or ".join(f'"{member.__struct_config__.tag}"' for member in structs)
    raise WireError(f"{faults.join(path, tag_field)} must be {known}, not {_shown(members[tag_field])}")


def _read_list(data: bytes | Raw, item: Any, path: str, *, skip: bool) -> list[Any]:
    raws: list[Raw] = _leaf(data, list[Raw], path)
    values: list[Any] = []
    for index, raw in enumerate(raws):
        where = faults.join(path, index)
        try:
            values.append(read(raw, item, where))
        except WireError as error:
            if not skip:
                raise
            warn_skipped(where, _name_of(raw), str(error))
    return values


def warn_skipped(where: str, name: str, why: str) -> None:
    """Tell the log that one item of a list was left out."""
    _log.warning("skipped %s (%s) of a list that was received: %s", where, name or "no name", why)


class _Named(Struct):
    name: Any = None
    uri: Any = None


def _name_of(raw: Raw) -> str:
    try:
        named = msgspec.json.decode(raw, type=_Named)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return ""
    return next((repr(text) for text in (named.name, named.uri) if isinstance(text, str)), "")


def _read_leaf(data: bytes | Raw, kind: Any, path: str) -> Any:
    if kind is Raw:
        return Raw(bytes(data))
    if get_origin(kind) is Literal:
        value = _any(data, path)
        if value not in get_args(kind):
            raise WireError(f"{path} must be {_options(get_args(kind))}, not {_shown(data)}")
        return value
    return _leaf(data, kind, path)


def _options(values: tuple[Any, ...]) -> str:
    return " or ".join(f'"{value}"' for value in values)


def _object(data: bytes | Raw, path: str) -> dict[str, Raw]:
    return _leaf(data, dict[str, Raw], path)


def _any(data: bytes | Raw, path: str) -> Any:
    return _leaf(data, Any, path)


def _leaf(data: bytes | Raw, kind: Any, path: str) -> Any:
    try:
        return msgspec.json.decode(data, type=kind, dec_hook=decode_hook)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise WireError(faults.read_fault(error, path)) from None


def _shown(data: bytes | Raw) -> str:
    text = bytes(data)
    return text.decode("utf-8", "replace") if len(text) <= 60 else faults.kind_of(text)
