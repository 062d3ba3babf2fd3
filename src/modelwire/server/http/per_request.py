"""POST of 2026-07-28: each request stands alone, and closing its stream cancels it.

"Every JSON-RPC message sent from the client MUST be a new HTTP POST request"; nothing is kept from one to the next but
what `modelwire.server.parking` parks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from modelwire.errors import HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, UNSUPPORTED_REVISION
from modelwire.protocol import jsonrpc
from modelwire.protocol.jsonrpc import Batch, InvalidFrame, Notification, Request
from modelwire.protocol.meta import PROTOCOL_VERSION
from modelwire.protocol.methods import METHODS
from modelwire.protocol.revisions import LATEST, Revision
from modelwire.rpc.call import Call
from modelwire.rpc.connection import Connection
from modelwire.rpc.observer import Observer, tell_frame
from modelwire.rules import sse
from modelwire.rules.http import mirrored, mismatch, status_of
from modelwire.rules.session import Session, per_request_revisions
from modelwire.server.http.answers import Begin, Response, Whole
from modelwire.server.http.at_work import AtWork
from modelwire.server.http.exchange import Incoming
from modelwire.server.lifespan import Running

if TYPE_CHECKING:
    from modelwire.server.server import Server


class _Meta(Struct):
    version: str | UnsetType = field(default=UNSET, name=PROTOCOL_VERSION)


class _Named(Struct):
    meta: Raw | UnsetType = field(default=UNSET, name="_meta")
    name: Raw | UnsetType = UNSET
    uri: Raw | UnsetType = UNSET


_OPENING = ("initialize", "ping")
"""What is answered before a connection is open, without saying who asks; here nothing is ever opened."""
_decode_named = msgspec.json.Decoder(_Named).decode
_decode_meta = msgspec.json.Decoder(_Meta).decode


def body_version(message: Any) -> str | None:
    """Return the revision that a message names in its ``_meta``; None for none that can be read."""
    params = getattr(message, "params", UNSET)
    if params is UNSET:
        return None
    try:
        return _version(_decode_named(params))
    except (msgspec.MsgspecError, RecursionError):
        return None


def _version(params: _Named) -> str | None:
    try:
        found = UNSET if params.meta is UNSET else _decode_meta(params.meta).version
    except (msgspec.MsgspecError, RecursionError):
        return None
    return None if found is UNSET else found


def answer(
    server: Server, running: Running, at_work: AtWork, incoming: Incoming, message: Any, begin: Begin
) -> Whole | Single:
    """Answer a POST of 2026-07-28, or one that says it is of a revision that nobody knows.

    Args:
        server: The server.
        running: Its lifespan.
        at_work: Where requests that take their time are noted.
        incoming: The request.
        message: Its body, decoded: a JSON-RPC message, or the `InvalidFrame` that it is instead.
        begin: Begins a response.
    """
    observers = incoming.watchers(server)
    tell_frame(observers, "in", incoming.body)
    refused = _refused(incoming, message)
    if refused is not None:
        tell_frame(observers, "out", refused.body)
        return refused
    if not isinstance(message, Request):
        # "This revision of the core protocol defines no client-to-server notifications over Streamable HTTP."
        return Whole(202)
    single = Single(at_work, observers, message, begin())
    single.begin(server, running, incoming, message)
    return single


def _refused(incoming: Incoming, message: Any) -> Whole | None:
    if isinstance(message, InvalidFrame):
        return _error(message.id, message.code, message.reason)
    if isinstance(message, Batch):
        return _error(None, INVALID_REQUEST, "the body must be a single request or notification")
    if not isinstance(message, Notification | Request):
        return _error(None, INVALID_REQUEST, "the client must not send responses")
    id_ = message.id if isinstance(message, Request) else None
    named = incoming.head.revision
    if isinstance(named, str) and _agrees(incoming, body_version(message)):
        data = msgspec.json.encode({"supported": per_request_revisions(), "requested": named})
        return _error(id_, UNSUPPORTED_REVISION, f"Unsupported protocol version: {named!r}", data)
    problem = _mismatch(incoming, message) if isinstance(message, Request) or isinstance(named, str) else None
    if problem is not None:
        return _error(id_, HEADER_MISMATCH, problem)
    if message.method in _OPENING and isinstance(message, Request) and body_version(message) is None:
        return _error(id_, INVALID_PARAMS, _Alone.how_to_open)
    return None


def _error(id_: bytes | None, code: int, message: str, data: bytes | None = None) -> Whole:
    return Whole(400, jsonrpc.encode_error(id_, code, message, data))


def _agrees(incoming: Incoming, version: str | None) -> bool:
    """Whether one header names the revision, and the body none or the same."""
    named = incoming.head.headers.all("mcp-protocol-version")
    return len(named) == 1 and version in (None, named[0])


def _mismatch(incoming: Incoming, message: Request | Notification) -> str | None:
    row, routed = METHODS.get(message.method), incoming.head.routed
    name: Any = None
    try:
        params = _Named() if message.params is UNSET else _decode_named(message.params)
        if row is not None and row.name_field is not None:
            given = getattr(params, row.name_field)
            name = None if given is UNSET else msgspec.json.decode(given)
    except (msgspec.MsgspecError, RecursionError):
        return None  # what is wrong with the parameters is told as that
    name, version = name if isinstance(name, str) else None, _version(params)
    if routed is not None and routed == (version, message.method, name):
        return None  # as nearly always
    return mismatch(incoming.head.headers, version, message.method, name, {})


def _argument_mismatch(server: Server, incoming: Incoming, call: Call) -> str | None:
    """The same of the headers that repeat arguments; they must not tell of a tool that is not there for the client."""
    if call.method.name != "tools/call":
        return None
    tools = server.features.tools.registry
    name = call.params.name
    entry = tools.get(name)
    if entry is None or not entry.headers or tools.find(name, call) is None:
        return None
    arguments = call.params.arguments
    try:
        found = None if arguments is UNSET else msgspec.json.decode(arguments)
    except (msgspec.MsgspecError, RecursionError):
        return None
    version = call.peer.revision.name
    return mismatch(incoming.head.headers, version, call.method.name, name, mirrored(entry.headers, found))


class _Alone(Session):
    """The session of one request, which nothing can open but the request itself."""

    how_to_open = f'missing "{PROTOCOL_VERSION}" in params._meta; every request of {LATEST.name} carries it'
    __slots__ = ()


class Single:
    """One request, from its first look to the end of its response.

    Args:
        at_work: Where requests that take their time are noted.
        observers: Who watches.
        message: The request.
        response: The response.
    """

    __slots__ = ("_at_work", "_call", "_id", "_observers", "response")

    def __init__(self, at_work: AtWork, observers: Sequence[Observer], message: Request, response: Response) -> None:
        self._at_work = at_work
        self._observers = observers
        self._id = message.id
        self._call: Call | None = None
        self.response = response

    def begin(self, server: Server, running: Running, incoming: Incoming, message: Request) -> None:
        """Begin to answer it."""
        response = self.response
        connection = Connection(
            server.dispatcher, self._say, session=_Alone(incoming.principal), observers=self._observers
        )
        connection.shared = running
        connection.crowded = response.crowded
        connection.when_room = response.when_room
        found = connection.take(message, incoming.body)
        if isinstance(found, Call):
            self._call = found
            found.deliver = self._finish
            found.http = incoming.kept()
            if not (_answered_now(server, incoming, found) or server.dispatcher.begin(found)):
                found.task = asyncio.ensure_future(server.dispatcher.answer(found))
            if found.open:
                self._at_work.begin(found, response)
        elif isinstance(found, bytes):
            self._finish(found)

    def _say(self, frame: bytes) -> None:
        self.response.post(sse.event(frame))

    def _finish(self, frame: bytes) -> None:
        tell_frame(self._observers, "out", frame)
        self.response.finish(frame, status_of(frame, self._id))

    def over(self, stayed: bool) -> None:
        """See `modelwire.server.http.answers.Begun`."""
        call, self._call = self._call, None
        if call is not None:
            if not stayed:
                # "Closing the SSE response stream MUST be treated by the server as cancellation of that request."
                call.cancel("the client closed the stream")
            self._at_work.end(call)
            call.connection.let_go()


def _answered_now(server: Server, incoming: Incoming, call: Call) -> bool:
    """Answer without a task what contradicts its headers and what never waits; False for anything else."""
    problem = _argument_mismatch(server, incoming, call)
    if problem is not None:
        call.answered(jsonrpc.encode_error(call.id, HEADER_MISMATCH, problem))
    elif call.now is not None and call.connection.loop.get_task_factory() is None:
        server.dispatcher.answer_now(call, call.now)
    else:
        return False
    return True


def names_per_request(named: Revision | str | None, message: Any) -> bool:
    """Whether a POST is one of 2026-07-28, by its header or its body; an unknown revision counts as a newer one.

    A header of an older revision over a body that names another is one too, so that it is refused as a mismatch.

    Args:
        named: What `revision_named` found.
        message: The body, decoded.
    """
    if isinstance(named, Revision):
        return not named.handshake or body_version(message) not in (None, named.name)
    return named is not None or body_version(message) is not None
