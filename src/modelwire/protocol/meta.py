"""The reserved keys of ``_meta``, and what a request's ``_meta`` says, read in one pass.

Nothing here decides whether a request is admitted; `modelwire.rules.session` does.
"""

from __future__ import annotations

import re
from typing import Final, NoReturn

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from modelwire.errors import INVALID_PARAMS, RpcError
from modelwire.protocol import careful
from modelwire.protocol.faults import WireError
from modelwire.protocol.types.base import Implementation
from modelwire.protocol.types.lifecycle import ClientCapabilities
from modelwire.protocol.types.logging import LoggingLevel

PROTOCOL_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"
RELATED_TASK: Final = "io.modelcontextprotocol/related-task"
PROGRESS_TOKEN: Final = "progressToken"


class RequestMeta(Struct, frozen=True):
    """What a request's ``_meta`` says under reserved keys; None where it says nothing."""

    protocol_version: str | None = field(default=None, name=PROTOCOL_VERSION)
    client_capabilities: ClientCapabilities | None = field(default=None, name=CLIENT_CAPABILITIES)
    client_info: Implementation | None = field(default=None, name=CLIENT_INFO)
    log_level: LoggingLevel | None = field(default=None, name=LOG_LEVEL)
    _progress_token: Raw | UnsetType = field(default=UNSET, name=PROGRESS_TOKEN)
    _subscription_id: Raw | UnsetType = field(default=UNSET, name=SUBSCRIPTION_ID)

    @property
    def progress_token(self) -> bytes | None:
        """The token's JSON, to be echoed byte for byte."""
        return None if self._progress_token is UNSET else bytes(self._progress_token)

    @property
    def subscription_id(self) -> bytes | None:
        """The JSON of the id of the subscription that the message belongs to."""
        return None if self._subscription_id is UNSET else bytes(self._subscription_id)


NO_META: Final = RequestMeta()
"""What a request without ``_meta`` says."""

_decode = msgspec.json.Decoder(RequestMeta).decode
_ID = re.compile(rb'"|-?[0-9]+\Z')


def decode_request_meta(raw: bytes | Raw | UnsetType) -> RequestMeta:
    """Read a request's ``_meta``.

    Args:
        raw: Its JSON, or UNSET when the request has none.

    Raises:
        RpcError: -32602. A reserved key holds what it must not, or ``protocolVersion`` came without
            ``clientCapabilities``, which each such request must carry.
    """
    if raw is UNSET:
        return NO_META
    try:
        meta = _decode(raw)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        if bytes(raw) == b"null":
            return NO_META
        meta = _decode_carefully(raw)
    if meta.protocol_version is not None and meta.client_capabilities is None:
        _refuse(f'missing "{CLIENT_CAPABILITIES}" in params._meta; every request of 2026-07-28 carries it')
    _check_id(meta.progress_token, PROGRESS_TOKEN)
    _check_id(meta.subscription_id, SUBSCRIPTION_ID)
    return meta


def _decode_carefully(raw: bytes | Raw) -> RequestMeta:
    try:
        return careful.read(raw, RequestMeta, "params._meta")
    except WireError as error:
        _refuse(str(error))


def _check_id(raw: bytes | None, key: str) -> None:
    if raw is not None and _ID.match(raw) is None:
        _refuse(f"params._meta.{key} must be a string or an integer, not {raw[:60].decode('utf-8', 'replace')}")


def _refuse(message: str) -> NoReturn:
    raise RpcError(INVALID_PARAMS, message)


_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_KEY = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*/)?(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?)?", re.ASCII)


def valid_meta_key(key: str) -> bool:
    """Say whether ``key`` may be a key of ``_meta``: an optional prefix of dotted labels and ``/``, then a name.

    "Labels MUST start with a letter and end with a letter or digit"; "unless empty, [names] MUST begin and end with an
    alphanumeric character" (basic, ``_meta``).
    """
    return _KEY.fullmatch(key) is not None
