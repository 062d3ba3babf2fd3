"""Typed values to the wire form of one revision, and back.

This is the only place that does so. Outwards it leaves out what the revision lacks and adds what it demands
(`encode`, `encode_params`, `encode_result`, `with_meta`); inwards it chooses the type and is as tolerant as the
specification allows (`decode`, `decode_result`). Everything that can go wrong is a `WireError` that names the place.
The values that are handed in are never changed.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final, TypeVar, cast, overload

import msgspec
from msgspec import UNSET, Raw, Struct

from modelwire.protocol import careful, faults
from modelwire.protocol import types as t
from modelwire.protocol.faults import WireError as WireError
from modelwire.protocol.meta import SERVER_INFO
from modelwire.protocol.methods import Method
from modelwire.protocol.pruning import prune
from modelwire.protocol.revisions import Revision
from modelwire.protocol.structured import WRAPPED
from modelwire.protocol.types.base import decode_hook, encode_hook, keep_received

COMPLETE: Final = "complete"
INPUT_REQUIRED: Final = "input_required"

_T = TypeVar("_T")
_dump = msgspec.json.Encoder(enc_hook=encode_hook).encode


def _write(value: Any) -> bytes:
    """Encode ``value``; say in our own words what cannot be written."""
    try:
        data = _dump(value)
    except Exception as error:
        raise WireError(faults.write_fault(value) or f"cannot be written as JSON: {error}") from error
    # msgspec writes NaN and infinity as null, which would change what was said.
    if b"null" in data and not _reads_back(data, value) and (fault := faults.write_fault(value)) is not None:
        raise WireError(fault)
    return data


def _reads_back(data: bytes, value: Any) -> bool:
    """Whether JSON says what ``value`` does, so that each null in it was None; False also where that is not known."""
    try:
        return msgspec.json.decode(data) == msgspec.to_builtins(value, str_keys=True, enc_hook=encode_hook)
    except Exception:
        return False


def encode(value: Any, revision: Revision) -> bytes:
    """Write ``value`` as JSON, without what ``revision`` lacks.

    Args:
        value: A type of the protocol, or anything that can be written as JSON.
        revision: The peer's revision.

    Raises:
        WireError: Something in it cannot be written as JSON, or not in this revision.
    """
    try:
        pruned = prune(value, revision)
    except RecursionError:
        pruned = value
    return _write(pruned)


def encode_params(params: Any, revision: Revision) -> bytes:
    """Write the parameters of a request or notification; None is ``{}``.

    The ``_meta`` that each request of a per-request revision carries is the caller's to add, by `with_meta`.

    Raises:
        WireError: As `encode`.
    """
    return b"{}" if params is None else encode(params, revision)


def with_meta(params: bytes, meta: dict[str, Any]) -> bytes:
    """Return ``params`` with the entries of ``meta`` added to its ``_meta``, replacing entries of the same key.

    Args:
        params: A JSON object, as `encode_params` returns it.
        meta: What to add. A value may be `msgspec.Raw`: ready-made JSON, such as a progress token or an encoded
            struct.

    Raises:
        WireError: ``meta`` cannot be written as JSON, or ``params`` is no object.
    """
    if b'"_meta"' not in params:
        return _with_member(params, b'"_meta":' + _write(meta))
    members = decode(params, dict[str, Raw], "params")
    old = members.get("_meta")
    if old is None or bytes(old) == b"null":
        return _write({**members, "_meta": meta})
    return _write({**members, "_meta": {**decode(old, dict[str, Raw], "params._meta"), **meta}})


def _with_member(body: bytes, member: bytes) -> bytes:
    return b"{" + member + b"}" if body == b"{}" else body[:-1] + b"," + member + b"}"


def encode_result(result: Any, method: Method | None, revision: Revision, server_info: bytes | None) -> bytes:
    """Write a result, with what the revision stamps on results.

    2026-07-28: ``resultType``, the server's name in ``_meta``, and ``ttlMs`` and ``cacheScope`` of results that may
    be cached (0 and ``private`` unless the result says otherwise; not on `InputRequiredResult`).

    Args:
        result: A `Result`, a dict, any struct that makes an object, or None for ``{}``.
        method: The row of the request's method; None for a method that no revision defines.
        revision: The peer's revision.
        server_info: The `Implementation` of the server as JSON, or None to leave it out.

    Raises:
        WireError: As `encode`.
    """
    body: Any = {} if result is None else result
    if not revision.stamped_results:
        encoded = encode(body, revision)
        if encoded[:1] != b"{":
            raise WireError(f"a result must be an object, not {faults.kind_of(encoded)}")
        return encoded
    if not isinstance(body, t.Result):
        return _stamp_json(encode(body, revision), method, server_info)
    cached = method is not None and method.cacheable and not isinstance(body, t.InputRequiredResult)
    if body.meta is None and body.result_type is None and not (cached and _says_caching(body)):
        return _stamp_bytes(encode(body, revision), body, server_info, cached=cached)
    return encode(_stamp_struct(body, server_info, cached=cached), revision)


def encode_tool_result(
    text: str | None, value: bytes | None, revision: Revision, server_info: bytes | None, *, wrap: bool = False
) -> bytes:
    """Write a successful ``CallToolResult`` of one text, a value that is JSON already, or both.

    The result of nearly every call has this form, so it is put together here without a `CallToolResult` in between.

    Args:
        text: The text block, or None for no content.
        value: The structured content as JSON, or None for none.
        revision: The peer's revision.
        server_info: As for `encode_result`.
        wrap: The tool's schema is one that `structured.needs_wrapping`.

    Raises:
        WireError: The text has a lone surrogate.
    """
    # Joined once: adding up a large text piece by piece copies it again and again.
    parts = [b'{"resultType":"complete","content":[' if revision.stamped_results else b'{"content":[']
    if text is not None:
        parts += (b'{"type":"text","text":', _write_text(text), b"}")
    if value is None or not revision.structured:
        parts.append(b"]")
    elif wrap and not revision.any_structured:
        parts += (b'],"structuredContent":{"result":', value, _MARK)
        return b"".join(parts)
    else:
        parts += (b'],"structuredContent":', value)
    if revision.stamped_results and server_info is not None:
        parts += (_INFO, server_info, b"}}")
    else:
        parts.append(b"}")
    return b"".join(parts)


def encode_input_required(
    questions: Mapping[str, tuple[str, bytes]], state: str | None, server_info: bytes | None
) -> bytes:
    """Write an ``InputRequiredResult`` whose questions have their parameters as JSON already.

    Args:
        questions: Method and parameters of each question, by key; empty parameters are left out.
        state: The ``requestState``.
        server_info: As for `encode_result`.
    """
    requests = {
        key: {"method": method} if params == b"{}" else {"method": method, "params": Raw(params)}
        for key, (method, params) in questions.items()
    }
    body: dict[str, Any] = {"resultType": INPUT_REQUIRED}
    if requests:
        body["inputRequests"] = requests
    if state is not None:
        body["requestState"] = state
    if server_info is not None:
        body["_meta"] = {SERVER_INFO: Raw(server_info)}
    return _write(body)


def _write_text(text: str) -> bytes:
    try:
        return _dump(text)
    except UnicodeError as error:
        raise WireError(faults.write_fault(text) or "the text cannot be written as JSON") from error


def _says_caching(result: t.Result) -> bool:
    return isinstance(result, t.CacheableResult) and not (result.ttl_ms is None and result.cache_scope is None)


_STAMP: Final = {
    (False, False): b'{"resultType":"complete"',
    (True, False): b'{"resultType":"complete","ttlMs":0,"cacheScope":"private"',
    (False, True): b'{"resultType":"input_required"',
}
_INFO: Final = b',"_meta":{"' + SERVER_INFO.encode() + b'":'
_MARK: Final = b'},"_meta":{"' + WRAPPED.encode() + b'":true}}'


def _stamp_bytes(body: bytes, result: t.Result, server_info: bytes | None, *, cached: bool) -> bytes:
    """Put the stamps around an encoded result that has none of them."""
    head = _STAMP[cached, isinstance(result, t.InputRequiredResult)]
    if body != b"{}":
        head += b"," + body[1:-1]
    return head + b"}" if server_info is None else b"".join((head, _INFO, server_info, b"}}"))


def _stamp_struct(result: t.Result, server_info: bytes | None, *, cached: bool) -> t.Result:
    """Return a copy of a result with the stamps that it lacks."""
    stamped = copy.copy(result)
    asks = isinstance(result, t.InputRequiredResult)
    stamped.result_type = result.result_type or (INPUT_REQUIRED if asks else COMPLETE)
    if server_info is not None:
        stamped.meta = {SERVER_INFO: Raw(server_info), **(result.meta or {})}
    if cached and isinstance(stamped, t.CacheableResult):
        stamped.ttl_ms = 0 if stamped.ttl_ms is None else stamped.ttl_ms
        stamped.cache_scope = stamped.cache_scope or "private"
    return stamped


def _stamp_json(body: bytes, method: Method | None, server_info: bytes | None) -> bytes:
    """Add the stamps to any encoded object."""
    members = decode(body, dict[str, Raw], "result")
    asks = bytes(members.get("resultType", b"")) == b'"input_required"'
    stamps: dict[str, Any] = {"resultType": COMPLETE}
    if method is not None and method.cacheable and not asks:
        stamps |= {"ttlMs": 0, "cacheScope": "private"}
    encoded = _write({**stamps, **members})
    if server_info is None:
        return encoded
    given = decode(members["_meta"], dict[str, Raw], "result._meta") if "_meta" in members else {}
    return with_meta(encoded, {SERVER_INFO: Raw(server_info), **given})


_DECODERS: Final[dict[Any, msgspec.json.Decoder[Any]]] = {}


def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    decoder = _DECODERS.get(kind)
    if decoder is None:
        decoder = _DECODERS[kind] = msgspec.json.Decoder(kind, dec_hook=decode_hook)
    return decoder


@overload
def decode(data: bytes | Raw, kind: type[_T], what: str | None = None) -> _T: ...
@overload
def decode(data: bytes | Raw, kind: Any, what: str | None = None) -> Any: ...
def decode(data: bytes | Raw, kind: Any, what: str | None = None) -> Any:
    """Read JSON as a type of the protocol. Content blocks of unknown kinds become `UnknownContent`.

    Args:
        data: JSON.
        kind: The type.
        what: What to call it in messages; by default ``params``, ``result``, or the type's name.

    Raises:
        WireError: It does not fit; the message says which field, what was expected and what came.
    """
    try:
        return _decoder(kind).decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return careful.read(data, kind, what or _called(kind))


def _called(kind: Any) -> str:
    for base, name in _NAMES.items():
        if isinstance(kind, type) and issubclass(kind, base):
            return name
    return str(getattr(kind, "__name__", "message"))


_NAMES: Final[dict[type, str]] = {
    t.Received: "result",
    t.RequestParams: "params",
    t.NotificationParams: "params",
    t.ElicitRequestParams: "params",
    t.TaskStatusNotificationParams: "params",
}


class _ResultType(Struct):
    result_type: Any = msgspec.field(default=None, name="resultType")


def decode_result(data: bytes | Raw, method: Method | None, revision: Revision) -> t.Received:
    """Read a result. ``resultType`` is read before the type is chosen; absent means complete.

    Args:
        data: The ``result`` member of a response.
        method: The row of the method that was called; None for one that no revision defines: its result is a
            `Result`, with everything that came in `Received.raw`.
        revision: The revision that both sides speak.

    Returns:
        The method's result, or an `InputRequiredResult` where the method may ask.

    Raises:
        WireError: It is not such a result, or its ``resultType`` is unknown.
    """
    result = _read_result(data, t.Result if method is None else method.result or t.Result, method, revision)
    keep_received(result, data)
    if isinstance(result, t.ListToolsResult):
        _drop_bad_tools(result)
    elif isinstance(result, t.CallToolResult) and result.structured_content is None and not revision.any_structured:
        result.structured_content = UNSET
    return result


def _read_result(data: bytes | Raw, kind: type[t.Received], method: Method | None, revision: Revision) -> t.Received:
    if not revision.stamped_results:
        return decode(data, kind, "result")
    try:
        result = _decoder(kind).decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return decode(data, _choose(data, kind, method), "result")
    said = getattr(result, "result_type", None)
    if said is None or said == COMPLETE:
        return result
    return decode(data, _choose(data, kind, method), "result")


def _choose(data: bytes | Raw, kind: type[t.Received], method: Method | None) -> type[t.Received]:
    found = decode(data, _ResultType, "result").result_type
    if found is None or found == COMPLETE:
        return kind
    if found == INPUT_REQUIRED and method is not None and method.asks:
        return t.InputRequiredResult
    name = "this method" if method is None else method.name
    raise WireError(f'"resultType" of {name} is {found!r}; modelwire knows no such result there')


def _drop_bad_tools(result: t.ListToolsResult) -> None:
    """Keep the tools whose ``inputSchema`` is the schema of an object, as every revision demands."""
    if all(tool.input_schema.get("type") == "object" for tool in result.tools):
        return
    good: list[t.Tool] = []
    for index, tool in enumerate(result.tools):
        if tool.input_schema.get("type") == "object":
            good.append(tool)
        else:
            careful.warn_skipped(f"result.tools[{index}]", repr(tool.name), 'inputSchema has no "type": "object"')
    result.tools = good


def decode_answer(data: bytes | Raw, method: Method) -> t.Received:
    """Read one entry of ``inputResponses``: the answer to a question that was asked as ``method``.

    Raises:
        WireError: It is no answer to such a question.
    """
    answer = decode(data, cast("type[t.Received]", method.result), "the answer")
    keep_received(answer, data)
    return answer
