"""Request -> response: admission, one decode, the handler, one encode. The only error boundary.

Whatever a handler does or raises becomes an answer to its own request, and nothing else. The dispatcher finds handlers
in a table of routes and knows no method by name but the two that open a connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from modelwire.errors import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, RpcError
from modelwire.protocol import jsonrpc, wire
from modelwire.protocol.jsonrpc import ErrorResponse, Notification, Request
from modelwire.protocol.meta import RequestMeta, decode_request_meta
from modelwire.protocol.methods import Method
from modelwire.protocol.revisions import LATEST, REVISIONS, Revision
from modelwire.rpc.call import Call
from modelwire.rpc.connection import Connection
from modelwire.rules.codes import code_for

_log = logging.getLogger("modelwire")


class Route:
    """How one method is answered.

    Args:
        method: The method's row.
        handle: Called with the `Call`. An async function, or with ``immediate`` a plain one.
        params: The type that the parameters are decoded into; None leaves them raw.
        immediate: Answer at once, in the order of arrival, without a task. For what never waits.
    """

    __slots__ = ("_decode", "allowed", "handle", "immediate", "method", "params")

    def __init__(
        self, method: Method, handle: Callable[[Call], Any], params: type | None, *, immediate: bool = False
    ) -> None:
        self.method = method
        self.handle = handle
        self.params = params
        self._decode = msgspec.json.Decoder(dict[str, Raw] if params is None else params).decode
        self.immediate = immediate
        self.allowed = frozenset(r.name for r in REVISIONS if r.covers(method.since, method.until))

    def read(self, raw: Raw) -> Any:
        """Return the parameters, decoded; without a type, they stay raw once they have proved to be an object.

        Raises:
            WireError: They are not what the method takes.
        """
        try:
            params = self._decode(raw)
        except (msgspec.MsgspecError, RecursionError):
            params = wire.decode(raw, dict[str, Raw] if self.params is None else self.params, "params")
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
    """

    def __init__(
        self,
        routes: dict[str, Route],
        notice: Callable[[Connection, Notification], None],
        server_info: bytes | None = None,
        stray_error: Callable[[Connection, ErrorResponse], None] | None = None,
    ) -> None:
        self.routes = routes
        self.notice = notice
        self.server_info = server_info
        self._stray_error = stray_error
        self._metas: dict[bytes, RequestMeta] = {}

    def admit(self, connection: Connection, request: Request) -> Call | bytes:
        """Decide whether a request is served, in the order of arrival.

        Returns:
            The call, to be answered with `respond`; or the frame that answers the request already.
        """
        route = self.routes.get(request.method)
        revision = connection.session.revision
        try:
            if route is None:
                raise RpcError(METHOD_NOT_FOUND, f"Method not found: {request.method}")
            call = self._call(connection, request, route)
            if not route.immediate:
                return call
            revision = call.peer.revision
            return self._encoded(call, route.handle(call))
        except RpcError as error:
            return error_frame(request.id, error, revision)
        except Exception:
            _log.exception("%s failed", request.method)
            return error_frame(request.id, _crash(request.method), revision)

    def _call(self, connection: Connection, request: Request, route: Route) -> Call:
        raw = _NO_PARAMS if request.params is UNSET else request.params
        problem: wire.WireError | None = None
        try:
            params = route.read(raw)
            raw_meta = _decode_meta_only(raw).raw_meta if route.params is None else params.raw_meta
        except wire.WireError as error:
            problem, params, raw_meta = error, None, _meta_of(raw)
        meta = None if raw_meta is UNSET else self._meta(raw_meta)
        peer = connection.session.admit(request.method, meta)
        if peer.revision.name not in route.allowed:
            raise RpcError(METHOD_NOT_FOUND, f"Method not found: {request.method} does not exist in {peer.revision}")
        if problem is not None:
            raise RpcError(INVALID_PARAMS, f"Invalid params for {request.method}: {problem}") from problem
        return Call(connection, request.id, request.key, route.method, params, meta, peer)

    def _meta(self, raw: Raw) -> RequestMeta:
        """Decode a request's ``_meta``; a client sends the same bytes with nearly every request, so keep the last few."""
        key = bytes(raw)
        known = self._metas.get(key)
        if known is None:
            try:
                known = decode_request_meta(key)
            except RpcError:
                raise
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

    async def respond(self, call: Call) -> bytes | None:
        """Run the handler and return the frame of its answer; None when the request was cancelled meanwhile."""
        try:
            result = await self.routes[call.method.name].handle(call)
            return self._encoded(call, result) if call.open else None
        except asyncio.CancelledError:
            if call.cancelled:
                raise
            # Not the peer's cancellation and not ours: something inside the handler was cancelled, and let it escape.
            return error_frame(
                call.id, RpcError(INTERNAL_ERROR, f"{call.method.name} was cancelled from inside"), call.peer.revision
            )
        except RpcError as error:
            return error_frame(call.id, error, call.peer.revision)
        except KeyboardInterrupt:
            raise
        except BaseException:
            _log.exception("%s failed", call.method.name)
            return error_frame(call.id, _crash(call.method.name), call.peer.revision)

    def _encoded(self, call: Call, result: Any) -> bytes:
        if type(result) is not bytes:
            result = wire.encode_result(result, call.method, call.peer.revision, self.server_info)
        return jsonrpc.encode_result(call.id, result)


def error_frame(id_: bytes | None, error: RpcError, revision: Revision | None) -> bytes:
    """Return the frame of an error answer.

    An error that belongs to no id carries ``id: null`` where the revision's schema demands the member, and none elsewhere.
    """
    if id_ is None and revision is not None and revision.null_error_id:
        id_ = b"null"
    code = error.code if revision is None else code_for(error, revision)
    if code != error.code and code == INTERNAL_ERROR:
        _log.warning("error code %d is reserved by the specification; %d was sent instead", error.code, code)
    data = None
    if error.data is not None:
        try:
            data = wire.encode(error.data, LATEST)
        except wire.WireError as problem:
            _log.warning("the data of an error could not be written and was left out: %s", problem)
    return jsonrpc.encode_error(id_, code, error.message, data)


def _crash(method: str) -> RpcError:
    return RpcError(INTERNAL_ERROR, f"Internal error in {method}; the server's log says more")


def _meta_of(raw: Raw) -> Raw | UnsetType:
    try:
        return _decode_meta_only(raw).raw_meta
    except (msgspec.MsgspecError, RecursionError):
        return UNSET
