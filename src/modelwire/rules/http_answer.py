"""What the answer to a POST says besides its message: the session that was opened, and what kind of a refusal it is.

Looks only; what follows from it is done elsewhere.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from modelwire.errors import HEADER_MISMATCH, METHOD_NOT_FOUND, MISSING_CAPABILITY, UNSUPPORTED_REVISION
from modelwire.protocol import jsonrpc
from modelwire.protocol.jsonrpc import ErrorResponse, InvalidFrame

_MODERN: Final = frozenset({HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_REVISION, METHOD_NOT_FOUND})
_SESSION_LOST: Final = -32000


class _Initialized(Struct):
    protocolVersion: str


class _Answer(Struct):
    result: _Initialized


_decode = msgspec.json.Decoder(_Answer).decode


def agreed(frame: bytes) -> str | None:
    """Return the revision that an answer to ``initialize`` names; None where it is none that could be understood."""
    try:
        return _decode(frame).result.protocolVersion
    except (msgspec.MsgspecError, RecursionError):
        return None


def error_in(body: bytes) -> ErrorResponse | None:
    """Return the JSON-RPC error that the body of a refusal is; None when it is none."""
    try:
        message = jsonrpc.decode(body)
    except InvalidFrame:
        return None
    return message if isinstance(message, ErrorResponse) else None


def is_modern(error: ErrorResponse | None) -> bool:
    """Whether ``initialize`` was refused as servers of 2026-07-28 refuse it, and no older transport is to be tried.

    "the response body is not a recognized modern JSON-RPC error (a modern server returns one for unsupported version,
    unknown method, or header-validation failure)" (basic/transports/streamable-http, Backward Compatibility).
    """
    return error is not None and error.code in _MODERN


def session_is_gone(status: int, error: ErrorResponse | None) -> bool:
    """Whether a request was refused because its session does not exist any more; it was then not looked at.

    "MUST respond to requests containing that session ID with HTTP 404 Not Found" (2025-11-25); examples that many have
    copied say 400, and that it is about the session.
    """
    if status == 404:
        # Servers of 2026-07-28 say with this status what they do not know; some that speak both eras do so in both.
        return error is None or error.code != METHOD_NOT_FOUND
    return status == 400 and error is not None and error.code == _SESSION_LOST and "session" in error.message.lower()
