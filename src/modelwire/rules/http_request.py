"""What a client says in the headers of a request over HTTP, and how it reads those of an answer.

"The Streamable HTTP transport mirrors selected JSON-RPC body fields into HTTP headers" (2026-07-28), so the body is
looked at once more, and nothing in it is taken for granted. Nothing is sent here.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from modelwire.protocol.meta import PROTOCOL_VERSION
from modelwire.protocol.methods import METHODS
from modelwire.rules.param_headers import Path, value_at

_SAFE = re.compile(r"(?:[!-~](?:[\t -~]*[!-~])?)?\Z")
"""What a header carries as it is: visible ASCII, with blanks inside only."""
_SENTINEL = re.compile(r"=\?base64\?.*\?=\Z", re.DOTALL)
_SESSION = re.compile(r"[!-~]+\Z")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class _Meta(Struct):
    version: str | UnsetType = field(default=UNSET, name=PROTOCOL_VERSION)


class _Params(Struct):
    name: str | UnsetType = UNSET
    uri: str | UnsetType = UNSET
    meta: _Meta | UnsetType = field(default=UNSET, name="_meta")


class Said(Struct):
    """What of a frame of ours is for its headers.

    Attributes:
        method: The method; None where the frame is an answer.
        id: The id; None where there is none.
    """

    method: str | None = None
    id: int | str | None = None
    params: _Params | UnsetType = UNSET

    @property
    def version(self) -> str | None:
        """The revision that it names; None for one of a handshake revision."""
        if self.params is UNSET or self.params.meta is UNSET or self.params.meta.version is UNSET:
            return None
        return self.params.meta.version

    @property
    def name(self) -> str | None:
        """What it is for, where its method is one whose ``Mcp-Name`` says so."""
        row = METHODS.get(self.method or "")
        if row is None or row.name_field is None or self.params is UNSET:
            return None
        found = getattr(self.params, row.name_field, UNSET)
        return None if found is UNSET else found


class _Bare(Struct):
    method: str | None = None
    id: int | str | None = None


class _Arguments(Struct):
    arguments: Any = None


class _Call(Struct):
    params: _Arguments


_decode = msgspec.json.Decoder(Said).decode
_decode_bare = msgspec.json.Decoder(_Bare).decode
_decode_call = msgspec.json.Decoder(_Call).decode


def said(frame: bytes) -> Said:
    """Look at a frame of ours; one whose params are odd, as users may send them, is told by its method alone."""
    try:
        return _decode(frame)
    except (msgspec.MsgspecError, RecursionError):
        try:
            bare = _decode_bare(frame)
        except (msgspec.MsgspecError, RecursionError):
            return Said()  # a batch of answers
        return Said(bare.method, bare.id)


def routing_headers(about: Said, version: str) -> list[tuple[str, str]]:
    """Return the headers of 2026-07-28 that repeat method, name and revision."""
    headers = [("MCP-Protocol-Version", header_value(version)), ("Mcp-Method", header_value(about.method or ""))]
    name = about.name
    if name is not None:
        headers.append(("Mcp-Name", header_value(name)))
    return headers


def argument_headers(frame: bytes, paths: Mapping[str, Path]) -> list[tuple[str, str]]:
    """Return the ``Mcp-Param-*`` headers of a call.

    Args:
        frame: The request.
        paths: As `modelwire.rules.param_headers.param_headers` gives them for the tool.
    """
    try:
        arguments = _decode_call(frame).params.arguments
    except (msgspec.MsgspecError, RecursionError):
        return []
    found: list[tuple[str, str]] = []
    for name, path in paths.items():
        written = _written(value_at(arguments, path))
        if written is not None:
            found.append((f"Mcp-Param-{name}", header_value(written)))
    return found


def _written(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value) if isinstance(value, str | int) else None


def header_value(value: str) -> str:
    """Return a value as a header carries it, in the base64 form where it cannot stand as it is."""
    if _SAFE.match(value) and not _SENTINEL.match(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'replace')).decode()}?="


def media_type(content_type: str | None) -> str:
    """Return the media type of a ``Content-Type``, in lower case and without parameters (RFC 9110, 8.3.1)."""
    return "" if content_type is None else content_type.partition(";")[0].strip().lower()


def session_id(given: str | None) -> str | None:
    """Return the id of a session; None for none and for what none may be."""
    return given if given is not None and _SESSION.match(given) else None


def retry_after(given: str | None, now: float) -> float | None:
    """Return the seconds that ``Retry-After`` asks to wait; None for nothing that can be read.

    Args:
        given: The header: seconds, or a date.
        now: The time, in seconds since 1970.
    """
    if given is None:
        return None
    given = given.strip()
    if given.isascii() and given.isdigit():
        return float(given[:9])
    from email.utils import parsedate_to_datetime  # whose import is the dearest here, for a form that is rare

    try:
        date: datetime = parsedate_to_datetime(given)
    except (ValueError, OverflowError):
        return None
    return max(0.0, date.replace(tzinfo=date.tzinfo or UTC).timestamp() - now)


def origin(url: str) -> tuple[str, str | None, int | None]:
    """Return scheme, host and port of a URL, which together are its origin (RFC 6454).

    Raises:
        ValueError: It has a port that is none.
    """
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _DEFAULT_PORTS.get(parts.scheme)


def joined(base: str, place: str) -> str:
    """Return where a reference leads to from a URL; the reference itself where that is no place at all."""
    try:
        return urljoin(base, place)
    except ValueError:
        return place


def same_origin(one: str, other: str) -> bool:
    """Whether two URLs have one origin; one that is none has it with nothing."""
    try:
        return origin(one) == origin(other)
    except ValueError:
        return False
