"""JSON-RPC 2.0 envelopes: bytes <-> Request | Notification | Response | ErrorResponse | Batch.

One frame is decoded once; ``params``, ``result`` and ``data`` stay raw JSON for whoever knows their type. Ids are kept
as the bytes that came, beside a key to look them up by, so that an answer always echoes the id byte for byte.

This module knows JSON-RPC and nothing of MCP: no method names, no revisions, no I/O.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import accumulate
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from modelwire.errors import INVALID_REQUEST, PARSE_ERROR, ModelwireError

MAX_DEPTH: Final = 256
"""How deep arrays and objects may nest in one frame. Deeper frames are refused before any parser sees them."""

MAX_ITEMS: Final = 4096
"""How many messages a batch may have. One with more is refused before its items are made anything of."""

IdKey: TypeAlias = int | str
"""What an id is looked up by: ``1`` and ``"1"`` differ, two spellings of one string do not."""


class Request(Struct, frozen=True):
    """A request: somebody waits for the answer to ``id``.

    Attributes:
        id: The id as JSON, exactly as it came.
        key: The id's value, to look it up by.
        method: The method's name.
        params: The parameters as raw JSON, or UNSET when there were none.
    """

    id: bytes
    key: IdKey
    method: str
    params: Raw | UnsetType = UNSET


class Notification(Struct, frozen=True):
    """A message that wants no answer."""

    method: str
    params: Raw | UnsetType = UNSET


class Response(Struct, frozen=True):
    """The successful answer to the request ``key``."""

    id: bytes
    key: IdKey
    result: Raw


class ErrorResponse(Struct, frozen=True):
    """The answer that a request failed; ``key`` is None when the peer could not tell which."""

    key: IdKey | None
    code: int
    message: str
    data: Any = None


class InvalidFrame(ModelwireError):
    """A frame that is no JSON-RPC message.

    Attributes:
        code: ``-32700`` when it is no JSON, ``-32600`` when it is no message.
        reason: What is wrong with it.
        id: The id as JSON, where one could be read.
        key: Its value.
        answerable: False for what looks like a response: answering an answer would start a loop.
        request: True for what looks like a request and nothing else: its id is the peer's, and never one of ours.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        *,
        id: bytes | None = None,
        key: IdKey | None = None,
        answerable: bool = True,
        request: bool = False,
    ) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.id = id
        self.key = key
        self.answerable = answerable
        self.request = request


Message: TypeAlias = Request | Notification | Response | ErrorResponse


class Batch(Struct, frozen=True):
    """A JSON array of messages; an item that is no message stands in it as its `InvalidFrame`."""

    items: list[Message | InvalidFrame]


class _Envelope(Struct):
    jsonrpc: Raw | UnsetType = UNSET
    id: Raw | UnsetType = UNSET
    method: Raw | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _Plain(Struct, forbid_unknown_fields=True):
    """The envelope of nearly every request and response; anything else takes the long way."""

    jsonrpc: Literal["2.0"]
    id: int
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET


class _ErrorObject(Struct):
    code: int
    message: str
    data: Raw | UnsetType = UNSET


_decode_plain = msgspec.json.Decoder(_Plain).decode
_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_decode_items = msgspec.json.Decoder(list[Raw]).decode
_decode_error = msgspec.json.Decoder(_ErrorObject).decode
_decode_text = msgspec.json.Decoder(str).decode
_decode_raw = msgspec.json.Decoder(Raw).decode
_decode_any = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode

_OPENING_BRACE = ord("{")
_BACKSLASH = ord("\\")
_BLANKS = b" \t\r\n"
_VERSION = b'"2.0"'
_INTEGER = re.compile(rb"-?(?:0|[1-9][0-9]*)\Z")
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
"""Possessive, and satisfied by the end: whatever the text, each byte is looked at once and nothing is remembered."""
_SURROGATES = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.", re.DOTALL
)
"""A pair of surrogates, a lone one (the group), or any other escape, so that an escaped backslash begins none."""
_REPLACEMENT = b"\\ufffd"
_NOT_BRACKETS = bytes(sorted(set(range(256)) - set(b"[]{}")))
_STEPS = bytes.maketrans(b"[{]}", bytes([1, 1, 255, 255]))
"""An opening bracket goes one deeper, a closing one back: 255 is -1 as a signed byte."""
_NOT_PUNCTUATION = bytes(sorted(set(_NOT_BRACKETS) - set(b",")))
_STEPS_AND_COMMAS = bytes.maketrans(b"[{]},", bytes([1, 1, 255, 255, 0]))
_STEPS_AT_ONCE: Final = 1 << 16


def decode(frame: bytes) -> Message | Batch:
    """Return the message in a frame.

    Args:
        frame: One JSON text in UTF-8.

    Raises:
        InvalidFrame: The frame is no JSON or no JSON-RPC 2.0 message; it names the id where that could be read.
    """
    frame = checked(frame)
    try:
        plain = _decode_plain(frame)
    except (msgspec.MsgspecError, RecursionError):
        pass
    else:
        key, method, params, result = plain.id, plain.method, plain.params, plain.result
        # An id in this range has one spelling, so it need not be kept as it came.
        if 0 < key < 1 << 53:
            if method is UNSET:
                if params is UNSET and result is not UNSET:
                    return Response(b"%d" % key, key, result)
            elif result is UNSET and (params is UNSET or memoryview(params)[0] == _OPENING_BRACE):
                return Request(b"%d" % key, key, method, params)
    try:
        envelope = _decode_envelope(frame)
    except (msgspec.MsgspecError, RecursionError) as error:
        return _odd(frame, error)
    return _message(envelope)


def checked(frame: bytes) -> bytes:
    """Return a frame that a parser may see: in UTF-8, not too deep, with lone surrogates mended.

    Raises:
        InvalidFrame: It is not in UTF-8, or nested too deep.
    """
    if not frame.isascii():
        try:
            frame.decode()
        except UnicodeDecodeError as bad:
            # "JSON-RPC messages MUST be UTF-8 encoded." (basic/transports)
            reason = f"not UTF-8: byte 0x{frame[bad.start]:02x} at position {bad.start}"
            raise InvalidFrame(PARSE_ERROR, reason, **_recover(frame)) from None
    if len(frame) > MAX_DEPTH and frame.count(b"[") + frame.count(b"{") > MAX_DEPTH and _too_deep(frame):
        raise InvalidFrame(PARSE_ERROR, f"nested more than {MAX_DEPTH} deep", **_recover(frame))
    # Looking for one byte is much faster than looking for two, and few frames have a backslash.
    if _BACKSLASH in frame and (b"\\ud" in frame or b"\\uD" in frame):
        return _mended(frame)
    return frame


def _message(envelope: _Envelope) -> Message:
    id_, method = envelope.id, envelope.method
    key = None if id_ is UNSET else id_key(bytes(id_))
    if envelope.jsonrpc is UNSET or bytes(envelope.jsonrpc) != _VERSION:
        raise _invalid(envelope, key, 'the member "jsonrpc" must be "2.0"')
    if method is not UNSET:
        if envelope.result is not UNSET or envelope.error is not UNSET:
            raise _invalid(envelope, key, 'a message with "method" must not have "result" or "error"')
        return _call(envelope, id_, key, method)
    if envelope.result is not UNSET and envelope.error is not UNSET:
        raise _invalid(envelope, key, 'a response has "result" or "error", never both')
    if envelope.result is not UNSET:
        if key is None or id_ is UNSET:
            raise _invalid(envelope, key, "a response must have the id of its request, a string or an integer")
        return Response(bytes(id_), key, envelope.result)
    if envelope.error is not UNSET:
        return _error(envelope, key, envelope.error)
    raise _invalid(envelope, key, 'a message needs "method", "result" or "error"')


def _call(envelope: _Envelope, id_: Raw | UnsetType, key: IdKey | None, method: Raw) -> Request | Notification:
    try:
        name = _decode_text(method)
    except msgspec.MsgspecError:
        raise _invalid(envelope, key, 'the member "method" must be a string') from None
    params = envelope.params
    if params is not UNSET:
        first = bytes(memoryview(params)[:1])
        if first == b"n":  # null, which some peers write for "none"
            params = UNSET
        elif first not in (b"{", b"["):
            raise _invalid(envelope, key, 'the member "params" must be an object')
    if id_ is UNSET:
        return Notification(name, params)
    if key is None:
        # "Unlike base JSON-RPC, the ID MUST NOT be null", and a message with an id is no notification.
        raise _invalid(envelope, None, "the id must be a string or an integer")
    return Request(bytes(id_), key, name, params)


def _error(envelope: _Envelope, key: IdKey | None, error: Raw) -> ErrorResponse:
    if key is None and envelope.id is not UNSET and bytes(envelope.id) != b"null":
        raise _invalid(envelope, key, "a response must have the id of its request, a string or an integer")
    try:
        detail = _decode_error(error)
        data: Any = None if detail.data is UNSET else _decode_any(detail.data)
    except (msgspec.MsgspecError, RecursionError):
        raise _invalid(
            envelope, key, 'the member "error" must be an object with an integer "code" and a string "message"'
        ) from None
    return ErrorResponse(key, detail.code, detail.message, data)


def _invalid(envelope: _Envelope, key: IdKey | None, reason: str) -> InvalidFrame:
    called = envelope.method is not UNSET
    answered = not (envelope.result is UNSET and envelope.error is UNSET)
    id_ = None if key is None or envelope.id is UNSET else bytes(envelope.id)
    return InvalidFrame(
        INVALID_REQUEST,
        reason,
        id=id_,
        key=key,
        answerable=called or not answered,
        request=called and not answered and id_ is not None,
    )


def id_key(raw: bytes) -> IdKey | None:
    """Return an id's value, or None when it is neither a string nor an integer (``1.0`` is neither)."""
    if raw[:1] == b'"':
        return _decode_text(raw)
    if _INTEGER.match(raw) is None:
        return None
    try:
        return int(raw)
    except ValueError:
        # More digits than Python converts from base 10. Base 16 has no such limit, and as each number has one spelling
        # the value tells ids apart just as well: it is larger than any that base 10 could have given.
        return int(raw, 16)


def _odd(frame: bytes, error: Exception) -> Batch:
    """Return the batch in the frame, or say what the frame is instead."""
    first = frame.lstrip(_BLANKS)[:1]
    if isinstance(error, msgspec.ValidationError):
        if first == b"[" and _too_many(frame):
            raise InvalidFrame(INVALID_REQUEST, f"a batch of more than {MAX_ITEMS} messages") from None
        # msgspec looks no further than the first byte here, so whether the rest is JSON is still to be seen.
        try:
            items = _decode_items(frame) if first == b"[" else _decode_raw(frame)
        except (msgspec.MsgspecError, RecursionError) as broken:
            error = broken
        else:
            if first == b"[":
                return Batch([_item(bytes(item)) for item in items])
            raise InvalidFrame(INVALID_REQUEST, "a message must be a JSON object") from None
    raise InvalidFrame(PARSE_ERROR, f"not JSON: {_syntax(frame, error)}", **_recover(frame)) from None


def _too_many(frame: bytes) -> bool:
    """Whether an array has more than `MAX_ITEMS` items, by the commas that are inside one bracket only."""
    if frame.count(b",") < MAX_ITEMS:
        return False
    steps = _STRING.sub(b"", frame).translate(_STEPS_AND_COMMAS, _NOT_PUNCTUATION)
    depth = commas = 0
    for start in range(0, len(steps), _STEPS_AT_ONCE):
        part = memoryview(steps)[start : start + _STEPS_AT_ONCE].cast("b")
        depths = list(accumulate(part, initial=depth))
        commas += list(zip(depths[1:], part, strict=True)).count((1, 0))
        if commas >= MAX_ITEMS:
            return True
        depth = depths[-1]
    return False


def _item(raw: bytes) -> Message | InvalidFrame:
    try:
        message = decode(raw)
    except InvalidFrame as invalid:
        return invalid
    if isinstance(message, Batch):
        return InvalidFrame(INVALID_REQUEST, "a batch must not contain another batch")
    return message


def _syntax(frame: bytes, error: Exception) -> str:
    """Say where the JSON breaks off, in words of our own, unless it takes too long to see."""
    if len(frame) > _RECOVER_LIMIT:
        return str(error)
    try:
        json.loads(frame, parse_constant=_constant)
    except json.JSONDecodeError as where:
        return f"{where.msg} at character {where.pos}"
    except (ValueError, RecursionError) as other:
        return str(other)
    return str(error)


def _constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _too_deep(frame: bytes) -> bool:
    """Whether more than `MAX_DEPTH` brackets are open at once anywhere; brackets in strings do not count."""
    steps = _STRING.sub(b"", frame).translate(_STEPS, _NOT_BRACKETS)
    depth = 0
    for start in range(0, len(steps), _STEPS_AT_ONCE):
        part = memoryview(steps)[start : start + _STEPS_AT_ONCE].cast("b")
        depths = list(accumulate(part, initial=depth))
        if max(depths) > MAX_DEPTH:
            return True
        depth = depths[-1]
    return False


def _mended(frame: bytes) -> bytes:
    r"""Return the frame with each lone surrogate escape (``"\ud83d"``) replaced by U+FFFD.

    Such an escape is JSON by its grammar but stands for no character; JavaScript writes it when a string was cut
    inside an emoji. One of them must not cost the whole message.
    """
    return _SURROGATES.sub(_mend, frame)


def _mend(escape: re.Match[bytes]) -> bytes:
    return escape[0] if escape[1] is None else _REPLACEMENT


_RECOVER_LIMIT: Final = 1 << 20
_ANSWER: Final = b'{"jsonrpc":"2.0","id":'
_ERROR: Final = b',"error":{"code":'
"""How the answers begin that are written here."""


def _recover(frame: bytes) -> dict[str, Any]:
    """Look a second time, with a forgiving parser, for the id of a frame that could not be read.

    The right call can then be answered, or fail, at once. A frame that is cut off has no trustworthy id.
    """
    if len(frame) > _RECOVER_LIMIT:
        return peek(frame)
    try:
        found: Any = json.loads(frame.decode("utf-8", "replace"))
    except RecursionError:
        return peek(frame)
    except ValueError:
        return {}
    if not isinstance(found, dict) or "id" not in found:
        return {}
    key: Any = found["id"]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(key, bool) or not isinstance(key, int | str):
        return {}
    try:
        id_ = _encode(key)
    except (msgspec.MsgspecError, ValueError, OverflowError):
        return {}
    called = "method" in found
    answered = "result" in found or "error" in found
    return {"id": id_, "key": key, "answerable": called, "request": called and not answered}


_TOKEN = re.compile(rb'[\s,:]*(?:([\[{])|([\]}])|("(?:[^"\\]|\\.)*")|([^\s,:\[\]{}"]+))', re.DOTALL)


def peek(head: bytes) -> dict[str, Any]:
    """Look for the id in the beginning of a frame that is too large, or too deep, to be read.

    Returns:
        Arguments for `InvalidFrame`: ``id``, ``key`` and ``answerable``; empty when there is no id to be seen.
    """
    depth = 0
    member = b""
    found: dict[str, Any] = {}
    for match in _TOKEN.finditer(head[:4096]):
        opening, closing, text, other = match.groups()
        if opening:
            depth += 1
            member = b"" if depth == 1 else member
        elif closing:
            depth -= 1
            member = b""
        elif depth == 1 and not member and text:
            member = text
            if member in (b'"result"', b'"error"'):
                found["answerable"] = False
        elif depth == 1:
            key = id_key(text or other) if member == b'"id"' else None
            if key is not None:
                found |= {"id": text or other, "key": key}
            member = b""
    return found if "key" in found else {}


def encode_id(key: IdKey) -> bytes:
    """Return an id of ours as JSON."""
    return _encode(key)


def encode_request(id_: bytes, method: str, params: bytes | None) -> bytes:
    """Return the frame of a request; ``params`` is a JSON object, or None for no such member."""
    if params is None:
        return b'{"jsonrpc":"2.0","id":' + id_ + b',"method":' + _encode(method) + b"}"
    return b"".join((b'{"jsonrpc":"2.0","id":', id_, b',"method":', _encode(method), b',"params":', params, b"}"))


def encode_notification(method: str, params: bytes | None = None) -> bytes:
    """Return the frame of a notification."""
    if params is None:
        return b'{"jsonrpc":"2.0","method":' + _encode(method) + b"}"
    return b'{"jsonrpc":"2.0","method":' + _encode(method) + b',"params":' + params + b"}"


def encode_result(id_: bytes, result: bytes) -> bytes:
    """Return the frame of a successful answer."""
    return b"".join((b'{"jsonrpc":"2.0","id":', id_, b',"result":', result, b"}"))


def encode_error(id_: bytes | None, code: int, message: str, data: bytes | None = None) -> bytes:
    """Return the frame of an error; ``id_`` None leaves the member out, ``b"null"`` writes null."""
    head = b'{"jsonrpc":"2.0",' + (b"" if id_ is None else b'"id":' + id_ + b",")
    tail = b"}}" if data is None else b',"data":' + data + b"}}"
    text = message.encode("utf-8", "replace").decode()  # a lone surrogate in a message costs only itself
    return head + b'"error":{"code":' + str(code).encode() + b',"message":' + _encode(text) + tail


def code_of(frame: bytes, id_: bytes) -> int | None:
    """Return the code of an error that `encode_error` wrote as the answer to a request; None where it is a result."""
    start = len(_ANSWER) + len(id_)
    if not frame.startswith(_ERROR, start):
        return None
    start += len(_ERROR)
    return int(frame[start : frame.index(b",", start)])


def encode_batch(frames: Iterable[bytes]) -> bytes:
    """Return the frame of a batch."""
    return b"[" + b",".join(frames) + b"]"
