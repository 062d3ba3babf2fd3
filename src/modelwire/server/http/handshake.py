"""POST, GET and DELETE of the revisions with a handshake, 2025-03-26 to 2025-11-25, in sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from modelwire.errors import INVALID_REQUEST
from modelwire.protocol import jsonrpc
from modelwire.protocol.jsonrpc import Batch, InvalidFrame, Request
from modelwire.protocol.revisions import LATEST, Revision, negotiate
from modelwire.rpc.call import Call
from modelwire.rpc.connection import BatchCall
from modelwire.rules import sse
from modelwire.rules.event_log import place_of
from modelwire.rules.http import EVENTS, Refusal, accepts, known_revisions
from modelwire.server.http.answers import Begin, Response, Whole, refused
from modelwire.server.http.exchange import Incoming
from modelwire.server.http.sessions import HttpSession, Sessions, Stream
from modelwire.server.lifespan import Running

if TYPE_CHECKING:
    from modelwire.server.server import Server

SESSION = "mcp-session-id"
_ASSUMED: Final = negotiate("2025-03-26")
SOON = 1.0
"""Seconds without a word until a stream begins: only what has an id can be taken up again."""


async def post(
    server: Server, running: Running, sessions: Sessions, incoming: Incoming, message: Any, begin: Begin
) -> Whole | Heard:
    """Answer a POST.

    Args:
        server: The server.
        running: Its lifespan.
        sessions: The sessions.
        incoming: The request.
        message: Its body, decoded.
        begin: Begins a response.
    """
    found = _session(server, running, sessions, incoming, message)
    if isinstance(found, Whole):
        return found
    if incoming.head.headers.one(SESSION) is None:
        return await _opened(sessions, found, incoming, message)
    return _taken(found, incoming, message, begin)


def post_to_session(sessions: Sessions, incoming: Incoming, message: Any, begin: Begin) -> Whole | Heard | None:
    """Answer a POST that belongs to a session, without waiting; None where it is none."""
    given = incoming.head.headers.one(SESSION)
    if given is None or isinstance(incoming.head.revision, str):
        return None
    session = sessions.find(given, incoming.principal)
    return None if session is None else _taken(session, incoming, message, begin)


async def post_alone(
    server: Server, running: Running, sessions: Sessions, incoming: Incoming, message: Any, begin: Begin
) -> Whole | Heard:
    """Answer a POST of which nothing is kept; the arguments are those of `post`.

    The revision is the one that the header names; "the server SHOULD assume protocol version 2025-03-26" without it.
    """
    refusal = _wrong_version(incoming)
    if refusal is not None:
        return refused(refusal, message.id if isinstance(message, Request) else None)
    session = HttpSession(server, running, incoming, kept=False)
    if not (isinstance(message, Request) and message.method == "initialize"):
        named = incoming.head.revision
        session.connection.session.suppose(named if isinstance(named, Revision) else _ASSUMED)
    found = _taken(session, incoming, message, begin)
    if session.connection.calls:
        sessions.let_pass(session)
    else:
        await session.end("the request was answered")
    return found


def refuse_session(why: str, incoming: Incoming, message: Any) -> Whole:
    """Answer a POST that needs a session where none can be kept.

    Args:
        why: The beginning of a sentence.
        incoming: The request.
        message: Its body, decoded.
    """
    if isinstance(message, InvalidFrame):
        return refused(Refusal(400, message.reason, message.code))
    # "A server that supports only modern versions SHOULD name the protocol versions it supports in any error it returns
    # to an initialize request" (2026-07-28, basic/versioning)
    reason = f"{why}, and sessions are kept in one: use one worker, or stateless=True, or a client of {LATEST.name}"
    return refused(Refusal(400, reason), message.id if isinstance(message, Request) else None)


def _session(
    server: Server, running: Running, sessions: Sessions, incoming: Incoming, message: Any
) -> HttpSession | Whole:
    id_ = message.id if isinstance(message, Request) else None
    refusal = _wrong_version(incoming)
    if refusal is not None:
        return refused(refusal, id_)
    given = incoming.head.headers.one(SESSION)
    if given is not None:
        return sessions.find(given, incoming.principal) or refused(_gone(), id_)
    if isinstance(message, Request) and message.method == "initialize":
        return HttpSession(server, running, incoming)
    if isinstance(message, InvalidFrame):
        return refused(Refusal(400, message.reason, message.code))
    missing = "Mcp-Session-Id is missing; send initialize first, and the id from its answer with the rest"
    return refused(Refusal(400, f"{missing}, or name {LATEST.name} in MCP-Protocol-Version, which needs none"), id_)


def _wrong_version(incoming: Incoming) -> Refusal | None:
    named = incoming.head.revision
    if isinstance(named, str):
        return Refusal(400, f"MCP-Protocol-Version {named!r} is unknown; there are {known_revisions()}")
    return None


_MISSING: Final = Refusal(
    400,
    "Mcp-Session-Id is missing: this address is for MCP clients, which POST initialize first, and send the id from its "
    "answer with the rest",
)


def _gone() -> Refusal:
    # "after which it MUST respond to requests containing that session ID with HTTP 404 Not Found"
    return Refusal(404, "this session does not exist, or has ended; send initialize, without Mcp-Session-Id")


class Heard:
    """A stream of a session while somebody hears it.

    Args:
        session: The session.
        stream: The stream.
        response: Where it is heard.
    """

    __slots__ = ("_session", "_stream", "response")

    def __init__(self, session: HttpSession, stream: Stream, response: Response) -> None:
        self._session = session
        self._stream = stream
        self.response = response
        session.busy += 1
        stream.attach(response)

    def over(self, stayed: bool) -> None:
        """See `modelwire.server.http.answers.Begun`."""
        # "Disconnection SHOULD NOT be interpreted as the client cancelling its request."
        self._stream.detach(self.response)
        self._session.left()


def _taken(session: HttpSession, incoming: Incoming, message: Any, begin: Begin) -> Whole | Heard:
    connection = session.connection
    session.busy += 1
    try:
        found = session.take(message, incoming.body)
        if isinstance(found, Call) and found.now is not None and connection.loop.get_task_factory() is None:
            return Whole(200, session.answer_now(found, found.now))
        if isinstance(found, Call | BatchCall):
            stream = session.open_stream()
            heard = Heard(session, stream, begin(SOON, stream.prime))
            session.start(found, stream, incoming.kept())
            return heard
        if found is None:
            problem = _problem(message, connection.session.revision)
            return Whole(202 if problem is None else 400, problem or b"")
        session.told(found)
        return Whole(400 if _is_refusal(found, message) else 200, found)
    finally:
        session.left()


def _problem(message: Any, revision: Revision | None) -> bytes | None:
    """Return the error for what has no answer and cannot be accepted; None for what was accepted."""
    # "If the server cannot accept the input, it MUST return an HTTP error status code"
    if isinstance(message, InvalidFrame):
        code, reason = message.code, message.reason
    elif isinstance(message, Batch) and not (revision is not None and revision.batching):
        code, reason = INVALID_REQUEST, "batches exist only in revision 2025-03-26"
    else:
        return None
    return jsonrpc.encode_error(b"null" if revision is not None and revision.null_error_id else None, code, reason)


def _is_refusal(found: bytes, message: Any) -> bool:
    """Whether an answer says that a POST is no request that could be answered, or repeats an id that is in use."""
    if isinstance(message, Request):
        return jsonrpc.code_of(found, message.id) == INVALID_REQUEST
    return found.startswith(b"{")  # a batch has an answer for each of its items


async def _opened(sessions: Sessions, session: HttpSession, incoming: Incoming, message: Any) -> Whole:
    """Answer ``initialize``; only where it went well there is a session."""
    found = session.take(message, incoming.body)
    assert isinstance(found, bytes), "initialize is answered at once"
    opened = session.connection.session.peer is not None
    if opened and not sessions.add(session):
        await session.end("there are too many sessions")
        return refused(Refusal(503, "too many sessions; try again later", headers={"retry-after": "60"}))
    session.told(found)
    if opened:
        return Whole(200, found, ((SESSION.encode(), session.id.encode()),))
    await session.end("initialize was refused")
    return Whole(200, found)


def get(sessions: Sessions, incoming: Incoming, begin: Begin) -> Whole | Heard:
    """Answer a GET: a stream for what belongs to no request, or one that is taken up again."""
    found = _listener(sessions, incoming)
    if isinstance(found, Refusal):
        return refused(found)
    session, stream, after = found
    response = begin()
    heard = Heard(session, stream, response)
    if stream.number:
        stream.begun = True
    response.post(sse.COMMENT)  # so that the client has the headers at once
    for id_, data in stream.log.after(after):
        response.post(sse.event(data, id=id_))
    stream.heard = stream.log.last
    if stream.ended:
        response.end()
    return heard


def _listener(sessions: Sessions, incoming: Incoming) -> tuple[HttpSession, Stream, int] | Refusal:
    refusal = _wrong_version(incoming)
    if refusal is not None:
        return refusal
    if not accepts(incoming.head.headers, EVENTS):
        return Refusal(406, f"a GET is answered with {EVENTS}; list it in Accept")
    given = incoming.head.headers.one(SESSION)
    if given is None:
        return _MISSING
    session = sessions.find(given, incoming.principal)
    if session is None:
        return _gone()
    last = incoming.head.headers.one("last-event-id")
    if last is None:
        # The old one, if there is one, gives way: a client that lost it without our knowing must get a new one.
        return session, session.own, session.own.heard
    place = place_of(last)
    stream = None if place is None else session.stream(place[0])
    if place is None or stream is None or not stream.log.says(place[1]):
        return Refusal(400, "Last-Event-ID names nothing that can be taken up again; send the request anew")
    return session, stream, place[1]


def delete(sessions: Sessions, incoming: Incoming) -> Whole:
    """Answer a DELETE: the client needs its session no more."""
    refusal = _wrong_version(incoming)
    if refusal is not None:
        return refused(refusal)
    given = incoming.head.headers.one(SESSION)
    session = None if given is None else sessions.find(given, incoming.principal)
    if session is None:
        return refused(_MISSING if given is None else _gone())
    sessions.drop(session, "the client ended the session")
    return Whole(204)
