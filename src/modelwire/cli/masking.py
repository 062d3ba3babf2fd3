"""Frames with their secrets masked, for showing only.

A value is masked for the name that it stands under. Everything else stays byte for byte as it was: numbers are not
rewritten, and a frame without such a name is returned as it is. What cannot be read as JSON is masked by a cruder rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec
from msgspec import Raw

_WORDS = rb"passw|pwd|passphrase|cookie|passcode|token|secret|authoriz|api[-_ ]?key|private[-_ ]?key|credential|bearer"
_MAYBE = re.compile(_WORDS + rb"|\\u00", re.IGNORECASE)
_NAME = re.compile(_WORDS.decode(), re.IGNORECASE)
_HARMLESS = frozenset({"progresstoken", "tokenendpoint", "authorizationendpoint", "authorizationservers"})
"""Names that hold one of the words and no secret. ``progressToken`` ties progress to its request."""
_COUNT = re.compile(r"tokens|token_?(count|limit|budget)", re.IGNORECASE)
"""Names of amounts of text, such as ``maxTokens``: a number there is no secret."""
_NUMBER = frozenset(b"-0123456789")
_BEARER = re.compile(rb"(bearer\s+)[\w.~+/=-]+", re.IGNORECASE)
_PAIR = re.compile(rb'"((?:[^"\\]|\\.){0,128}+)"\s*+:\s*+(?:"(?:[^"\\]|\\.)*+"?|[^\s,}\]]++)', re.DOTALL)
"""A name and its value in what may be no JSON. Possessive and bounded, so that no frame makes it slow."""
_SCHEMA_VALUES = frozenset({"default", "const", "enum", "examples", "example"})
_MASKED = Raw(b'"***"')

_members = msgspec.json.Decoder(dict[str, Raw]).decode
_items = msgspec.json.Decoder(list[Raw]).decode
_text = msgspec.json.Decoder(str).decode
_write = msgspec.json.Encoder().encode


def masked(frame: bytes) -> bytes:
    """Return a frame as it may be shown: ``***`` in place of values whose name looks like that of a secret.

    Also in JSON that stands inside a string, as in the text beside a structured result.

    Args:
        frame: One JSON-RPC message, or any other bytes.
    """
    if _MAYBE.search(frame) is None:
        return frame
    try:
        return bytes(_walk(Raw(frame)))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return _BEARER.sub(rb"\1***", _PAIR.sub(_crudely, frame))


def _crudely(pair: re.Match[bytes]) -> bytes:
    name = pair[1]
    return b'"%b":"***"' % name if is_secret_name(name.decode("utf-8", "replace")) else pair[0]


def is_secret_name(name: str) -> bool:
    """Whether a value of this name should not be shown."""
    return _NAME.search(name) is not None and name.replace("_", "").replace("-", "").lower() not in _HARMLESS


def _walk(raw: Raw) -> Raw:
    data = bytes(raw).strip()
    if _MAYBE.search(data) is None:
        return raw
    if data[:1] == b"{":
        return _object(_members(data), _member)
    if data[:1] == b"[":
        return Raw(_write([_walk(item) for item in _items(data)]))
    return _string(raw, data) if data[:1] == b'"' else raw


def _object(members: dict[str, Raw], show: Callable[[str, Raw], Raw]) -> Raw:
    names_a_secret = "value" in members and _names_a_secret(members.get("name"))
    return Raw(
        _write(
            {
                name: _MASKED if names_a_secret and name == "value" else show(name, value)
                for name, value in members.items()
            }
        )
    )


def _names_a_secret(name: Raw | None) -> bool:
    """A header or an argument may be written as ``{"name": "Authorization", "value": ...}``."""
    data = b"" if name is None else bytes(name)
    return data[:1] == b'"' and is_secret_name(_text(data))


def _member(name: str, value: Raw) -> Raw:
    if name == "properties" and bytes(value)[:1] == b"{":
        # The properties of a JSON Schema: what stands under a name there describes the value, and is none.
        return _object(_members(value), _property)
    return _secret(name, value) if is_secret_name(name) else _walk(value)


def _secret(name: str, value: Raw) -> Raw:
    data = bytes(value)
    is_harmless = data in (b"null", b"true", b"false") or (_COUNT.search(name) and data[0] in _NUMBER)
    return value if is_harmless else _MASKED


def _property(name: str, schema: Raw) -> Raw:
    if not is_secret_name(name):
        return _walk(schema)
    if bytes(schema)[:1] != b"{" or not _members(schema).keys() & {"type", "anyOf", "oneOf", "allOf", "$ref"}:
        return _secret(name, schema)
    return _object(_members(schema), _of_secret_schema)


def _of_secret_schema(key: str, value: Raw) -> Raw:
    return _MASKED if key in _SCHEMA_VALUES else _member(key, value)


def _string(raw: Raw, data: bytes) -> Raw:
    text = _text(data)
    if text.lstrip()[:1] in ("{", "[") and len(text) > 1:
        inner = masked(text.encode())
        return raw if inner == text.encode() else Raw(_write(inner.decode()))
    return Raw(_BEARER.sub(rb"\1***", data)) if _BEARER.search(data) else raw
