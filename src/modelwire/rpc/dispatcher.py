"""Request -> response: admission, one decode, the handler, one encode. The only error boundary.

Whatever a handler does or raises becomes an answer to its own request, and nothing else. The dispatcher finds handlers
in a table of routes and knows no method by name but the two that open a connection.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from modelwire.errors import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, RpcError
from modelwire.log import log as _log
from modelwire.protocol import jsonrpc, wire
from modelwire.protocol.jsonrpc import ErrorResponse, Notification, Request
from modelwire.protocol.meta import RequestMeta, decode_request_meta
from modelwire.protocol.methods import Method
from modelwire.protocol.revisions import LATEST, REVISIONS, Revision
from modelwire.rpc.call import Call
from modelwire.rpc.connection import Connection
from modelwire.rules.codes import code_for

_OBJECT: Any = dict[str, Raw]


class Route:
    """How one method is answered.

    Args:
        method: The method's row.
        handle: Called with the `Call`. An async function, or with ``immediate`` a plain one.
        params: The type that the parameters are decoded into; None leaves them raw.
        immediate: Answer at once, in the order of arrival, without a task. For what never waits.
        lasts: Called with the `Call`, and with what takes the result at the end: begins what stays open until somebody
            ends it, without a task; ``handle`` does the same with one.
        now: Called with the `Call`, says whether its handler never waits: returns a plain function that takes the call
            and returns the JSON of its result, or None.
    """

    __slots__ = ("_decode", "allowed", "handle", "immediate", "lasts", "method", "now", "params")

    def __init__(
        self,
        method: Method,
        handle: Callable[[Call], Any],
        params: type[Any] | None,
        *,
        immediate: bool = False,
        lasts: Callable[[Call, Callable[[Any], None]], None] | None = None,
        now: Callable[[Call], Callable[[Call], bytes] | None] | None = None,
    ) -> None:
        self.method = method
        self.handle = handle
        self.params = params
        self._decode: Callable[[Raw], Any] = msgspec.json.Decoder(_OBJECT if params is None else params).decode
        self.immediate = immediate
        self.lasts = lasts
        self.now = now
        self.allowed = frozenset(r.name for r in REVISIONS if r.covers(method.since, method.until))

    def read(self, raw: Raw) -> Any:
        """Return the parameters, decoded; without a type, they stay raw once they have proved to be an object.

        Raises:
            WireError: They are not what the method takes.
        """
        params: Any
        try:
            params = self._decode(raw)
        except (msgspec.MsgspecError, RecursionError):
            kind: Any = _OBJECT if self.params is None else self.params
            params = wire.decode(raw, kind, "params")
        return raw if self.params is None else params


class _MetaOnly(Struct):
    raw_meta: Raw | UnsetType = field(default=UNSET, name="_meta")


_decode_meta_only = msgspec.json.Decoder(_MetaOnly).decode
_NO_PARAMS = Raw(b"{}")
_CACHED_METAS = 128


class Dispatcher:
    """Answers the requests of any number of connections.

    Args:
        routes: The methods that exist here.
        notice: Called with every notification that the connection does not handle itself.
        server_info: The JSON of our own identity, for results of revisions that are stamped with it.
        stray_error: Called with an error that the peer could not assign to a request.
        side: Whose log it is that says more than the peer is told.
    """

    def __init__(
        self,
        routes: dict[str, Route],
        notice: Callable[[Connection, Notification], None],
        server_info: bytes | None = None,
        stray_error: Callable[[Connection, ErrorResponse], None] | None = None,
        *,
        side: Literal["server", "client"] = "server",
    ) -> None:
        self.routes = routes
        self.notice = notice
        self.server_info = server_info
        self._stray_error = stray_error
        self._side = side
        self.contains_interrupts = False
        """Whether a handler's KeyboardInterrupt is a failure like any other, since Ctrl-C arrives in another way."""
        self._metas: dict[bytes, RequestMeta] = {}

    def admit(self, connection: Connection, request: Request) -> Call | bytes:
        """Decide whether a request is served, in the order of arrival.

        Returns:
            The call, to be answered with `answer`; or the frame that answers the request already.
        """
        route = self.routes.get(request.method)
        call: Call | None = None
        try:
            if route is None:
                raise RpcError(METHOD_NOT_FOUND, f"Method not found: {request.method}")
            call = self._call(connection, request, route)
            if route.now is not None:
                call.now = route.now(call)
            return self._encoded(call, route.handle(call)) if route.immediate else call
        except Exception as error:
            # Without a call it is our own refusal; -32022 is right for who asked for a revision in _meta.
            revision = None if call is None else call.peer.revision
            return error_frame(request.id, self._shown(error, request.method), revision)

    def _call(self, connection: Connection, request: Request, route: Route) -> Call:
        raw = _NO_PARAMS if request.params is UNSET else request.params
        problem: wire.WireError | None = None
        try:
            params = route.read(raw)
            raw_meta = _decode_meta_only(raw).raw_meta if route.params is None else params.raw_meta
        except wire.WireError as error:
            problem, params, raw_meta = error, None, _meta_of(raw)
        meta = None if raw_meta is UNSET else self.meta(raw_meta)
        peer = connection.session.admit(request.method, meta)
        if peer.revision.name not in route.allowed:
            raise RpcError(METHOD_NOT_FOUND, f"Method not found: {request.method} does not exist in {peer.revision}")
        if problem is not None:
            raise RpcError(INVALID_PARAMS, f"Invalid params for {request.method}: {problem}") from problem
        return Call(connection, request.id, request.key, route.method, route.handle, params, meta, peer)

    def meta(self, raw: Raw) -> RequestMeta:
        """Decode a request's ``_meta``. A client sends the same bytes again and again, so the last few are kept.

        Raises:
            RpcError: -32602; see `decode_request_meta`.
        """
        key = bytes(raw)
        known = self._metas.get(key)
        if known is None:
            try:
                known = decode_request_meta(key)
            except wire.WireError as error:
                raise RpcError(INVALID_PARAMS, str(error)) from None
            if len(self._metas) >= _CACHED_METAS:
                self._metas.clear()
            if len(key) <= 4096:
                self._metas[key] = known
        return known

    def stray_error(self, connection: Connection, error: ErrorResponse) -> None:
        """Take in an error that the peer could not assign to a request."""
        if self._stray_error is not None:
            self._stray_error(connection, error)

    async def answer(self, call: Call) -> None:
        """Run the handler and send its answer; nothing is sent once the peer has given the request up.

        Raises:
            asyncio.CancelledError: The call was cancelled.
        """
        call.context = contextvars.copy_context()
        begun = call
        try:
            result = await call.handle(call)
            if call.asking is not None:
                call = await call.asking.to_be_answered(call)
            # Nearly every result comes as JSON already.
            frame = jsonrpc.encode_result(call.id, result) if type(result) is bytes else self._encoded(call, result)
        except asyncio.CancelledError:
            if call.cancelled:
                raise
            # Not the peer and not the end of the connection: something inside was cancelled, and let it escape.
            error: BaseException = RpcError(INTERNAL_ERROR, f"{call.method.name} was cancelled from inside")
            call, frame = await self._failed(call, error)
        except BaseException as error:
            call, frame = await self._failed(call, error)
        call.answered(frame)
        # Both lead back to the call; without them it goes at once, and not when the collector comes by.
        begun.task = begun.context = None

    async def _failed(self, call: Call, error: BaseException) -> tuple[Call, bytes]:
        if call.asking is not None:
            call = await call.asking.to_be_answered(call)
        return call, self._failure(call, error)

    def answer_now(self, call: Call, now: Callable[[Call], bytes]) -> None:
        """Do as `answer` does with a call that has `Call.now`, at once."""
        call.answered(self.frame_now(call, now))

    def begin(self, call: Call) -> bool:
        """Begin to answer a call that lasts, without a task; return whether it is one that can be begun so."""
        lasts = self.routes[call.method.name].lasts
        if lasts is None:
            return False
        try:
            lasts(call, lambda result: call.answered(self._encoded(call, result)))
        except BaseException as error:
            call.answered(self._failure(call, error))
        return True

    def frame_now(self, call: Call, now: Callable[[Call], bytes]) -> bytes:
        """Return the answer to a call that has `Call.now`."""
        try:
            return jsonrpc.encode_result(call.id, now(call))
        except BaseException as error:
            return self._failure(call, error)

    def _failure(self, call: Call, error: BaseException) -> bytes:
        if isinstance(error, KeyboardInterrupt) and not self.contains_interrupts:
            raise error
        return error_frame(call.id, self._shown(error, call.method.name, _asked_for(call)), call.peer.revision)

    def _shown(self, error: BaseException, method: str, subject: str = "") -> RpcError:
        """Return what the peer is told of an error; what was not meant for it goes to the log."""
        if isinstance(error, RpcError):
            return error
        _log.error("%s%s failed", method, subject, exc_info=error)
        return RpcError(INTERNAL_ERROR, f"Internal error in {method}; the {self._side}'s log says more")

    def _encoded(self, call: Call, result: Any) -> bytes:
        if type(result) is not bytes:
            result = wire.encode_result(result, call.method, call.peer.revision, self.server_info)
        return jsonrpc.encode_result(call.id, result)


def error_frame(id_: bytes | None, error: RpcError, revision: Revision | None) -> bytes:
    """Return the frame of an error answer, whatever the error holds.

    An error that belongs to no id carries ``id: null`` where the revision's schema demands the member, else no id.
    """
    if id_ is None and revision is not None and revision.null_error_id:
        id_ = b"null"
    try:
        return jsonrpc.encode_error(id_, _code(error, revision), str(error.message), _data(error, revision))
    except Exception:
        _log.exception("an error could not be sent as it was raised")
        return jsonrpc.encode_error(id_, INTERNAL_ERROR, "Internal error; the log of who answers says more")


def _code(error: RpcError, revision: Revision | None) -> int:
    code: Any = error.code
    if type(code) is not int or not -(1 << 53) < code < 1 << 53:
        _log.warning("an error code must be an integer, not %.80r; %d was sent instead", code, INTERNAL_ERROR)
        return INTERNAL_ERROR
    sent = code if revision is None else code_for(error, revision)
    if sent != code and sent == INTERNAL_ERROR:
        _log.warning("error code %d is reserved by the specification; %d was sent instead", code, sent)
    return sent


def _data(error: RpcError, revision: Revision | None) -> bytes | None:
    if error.data is None:
        return None
    try:
        return wire.encode(error.data, revision or LATEST)
    except wire.WireError as problem:
        _log.warning("the data of an error could not be written and was left out: %s", problem)
        return None


def _asked_for(call: Call) -> str:
    """What a request is about, as the log has it: which prompt, which resource."""
    name = getattr(call.params, call.method.name_field, None) if call.method.name_field else None
    return f" of {name!r:.200}" if name else ""


def _meta_of(raw: Raw) -> Raw | UnsetType:
    try:
        return _decode_meta_only(raw).raw_meta
    except (msgspec.MsgspecError, RecursionError):
        return UNSET
