"""POST, GET and DELETE of the revisions with a handshake, 2025-03-26 to 2025-11-25, in sessions."""

from __future__ import annotations

import asyncio
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
from modelwire.server.http.exchange import Incoming
from modelwire.server.http.reply import Reply, refuse, respond
from modelwire.server.http.sessions import HttpSession, Sessions, Stream
from modelwire.server.lifespan import Running

if TYPE_CHECKING:
    from modelwire.server.server import Server

SESSION = "mcp-session-id"
_ASSUMED: Final = negotiate("2025-03-26")
SOON = 1.0
"""Seconds without a word until a stream begins: only what has an id can be taken up again."""


async def post(server: Server, running: Running, sessions: Sessions, incoming: Incoming, message: Any) -> None:
    """Answer a POST.

    Args:
        server: The server.
        running: Its lifespan.
        sessions: The sessions.
        incoming: The request.
        message: Its body, decoded.
    """
    found = _session(server, running, sessions, incoming, message)
    if isinstance(found, Refusal):
        await refuse(incoming.send, found, message.id if isinstance(message, Request) else None)
        return
    await _take(sessions, found, incoming, message, incoming.head.headers.one(SESSION) is None)


async def post_alone(server: Server, running: Running, sessions: Sessions, incoming: Incoming, message: Any) -> None:
    """Answer a POST of which nothing is kept; the arguments are those of `post`.

    The revision is the one that the header names; "the server SHOULD assume protocol version 2025-03-26" without it.
    """
    refusal = _wrong_version(incoming)
    if refusal is not None:
        await refuse(incoming.send, refusal, message.id if isinstance(message, Request) else None)
        return
    session = HttpSession(server, running, incoming, kept=False)
    if not (isinstance(message, Request) and message.method == "initialize"):
        named = incoming.head.revision
        session.connection.session.suppose(named if isinstance(named, Revision) else _ASSUMED)
    sessions.passing.add(session)
    try:
        await _take(sessions, session, incoming, message, False)
        # The client may have gone, which cancels nothing.
        over = [call.closed() for call in session.connection.calls.values()]
        if over:
            await asyncio.wait(over)
    finally:
        sessions.passing.discard(session)
        await session.end("the request was answered")


async def refuse_session(why: str, incoming: Incoming, message: Any) -> None:
    """Answer a POST that needs a session where none can be kept.

    Args:
        why: The beginning of a sentence.
        incoming: The request.
        message: Its body, decoded.
    """
    if isinstance(message, InvalidFrame):
        await refuse(incoming.send, Refusal(400, message.reason, message.code))
        return
    # "A server that supports only modern versions SHOULD name the protocol versions it supports in any error it returns
    # to an initialize request" (2026-07-28, basic/versioning)
    reason = f"{why}, and sessions are kept in one: use one worker, or stateless=True, or a client of {LATEST.name}"
    await refuse(incoming.send, Refusal(400, reason), message.id if isinstance(message, Request) else None)


def _session(
    server: Server, running: Running, sessions: Sessions, incoming: Incoming, message: Any
) -> HttpSession | Refusal:
    refusal = _wrong_version(incoming)
    if refusal is not None:
        return refusal
    given = incoming.head.headers.one(SESSION)
    if given is not None:
        return sessions.find(given, incoming.principal) or _gone()
    if isinstance(message, Request) and message.method == "initialize":
        return HttpSession(server, running, incoming)
    if isinstance(message, InvalidFrame):
        return Refusal(400, message.reason, message.code)
    return Refusal(400, "Mcp-Session-Id is missing; send initialize first, and the id from its answer with the rest")


def _wrong_version(incoming: Incoming) -> Refusal | None:
    named = incoming.head.revision
    if isinstance(named, str):
        return Refusal(400, f"MCP-Protocol-Version {named!r} is unknown; there are {known_revisions()}")
    return None


def _gone() -> Refusal:
    # "after which it MUST respond to requests containing that session ID with HTTP 404 Not Found"
    return Refusal(404, "this session does not exist, or has ended; send initialize, without Mcp-Session-Id")


async def _take(sessions: Sessions, session: HttpSession, incoming: Incoming, message: Any, fresh: bool) -> None:
    connection = session.connection
    session.busy += 1
    try:
        found = session.take(message, incoming.body)
        if isinstance(found, Call) and found.now is not None and connection.loop.get_task_factory() is None:
            await respond(incoming.send, 200, session.answer_now(found, found.now))
        elif isinstance(found, Call | BatchCall):
            await _stream(session, incoming, found)
        elif found is None:
            problem = _problem(message, connection.session.revision)
            await respond(incoming.send, 202 if problem is None else 400, problem or b"")
        elif fresh:
            await _opened(sessions, session, incoming, found)
        else:
            session.told(found)
            await respond(incoming.send, 400 if _is_refusal(found, message) else 200, found)
    finally:
        session.busy -= 1
        session.last_used = connection.loop.time()


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


async def _opened(sessions: Sessions, session: HttpSession, incoming: Incoming, answer: bytes) -> None:
    """Answer ``initialize``; only where it went well there is a session."""
    if session.connection.session.peer is None:
        await session.end("initialize was refused")
        session.told(answer)
        await respond(incoming.send, 200, answer)
        return
    if not sessions.add(session):
        await session.end("there are too many sessions")
        await refuse(incoming.send, Refusal(503, "too many sessions; try again later", headers={"retry-after": "60"}))
        return
    session.told(answer)
    await respond(incoming.send, 200, answer, [(SESSION.encode(), session.id.encode())])


async def _stream(session: HttpSession, incoming: Incoming, found: Call | BatchCall) -> None:
    stream = session.open_stream()
    reply = Reply(incoming.send, incoming.silences, silence=SOON, opening=stream.prime)
    stream.attach(reply)
    session.start(found, stream, incoming)
    try:
        await reply.run(incoming.receive)
    finally:
        # "Disconnection SHOULD NOT be interpreted as the client cancelling its request."
        stream.detach(reply)


async def get(sessions: Sessions, incoming: Incoming) -> None:
    """Answer a GET: a stream for what belongs to no request, or one that is taken up again."""
    found = _listener(sessions, incoming)
    if isinstance(found, Refusal):
        await refuse(incoming.send, found)
        return
    session, stream, after = found
    reply = Reply(incoming.send, incoming.silences)
    stream.attach(reply)
    if stream.number:
        stream.begun = True
    reply.post(sse.COMMENT)  # so that the client has the headers at once
    for id_, data in stream.log.after(after):
        reply.post(sse.event(data, id=id_))
    stream.heard = stream.log.last
    if stream.ended:
        reply.end()
    session.busy += 1
    try:
        await reply.run(incoming.receive)
    finally:
        stream.detach(reply)
        session.busy -= 1


def _listener(sessions: Sessions, incoming: Incoming) -> tuple[HttpSession, Stream, int] | Refusal:
    refusal = _wrong_version(incoming)
    if refusal is not None:
        return refusal
    if not accepts(incoming.head.headers, EVENTS):
        return Refusal(406, f"a GET is answered with {EVENTS}; list it in Accept")
    given = incoming.head.headers.one(SESSION)
    if given is None:
        return Refusal(400, "Mcp-Session-Id is missing")
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


async def delete(sessions: Sessions, incoming: Incoming) -> None:
    """Answer a DELETE: the client needs its session no more."""
    refusal = _wrong_version(incoming)
    if refusal is not None:
        await refuse(incoming.send, refusal)
        return
    given = incoming.head.headers.one(SESSION)
    session = None if given is None else sessions.find(given, incoming.principal)
    if session is None:
        await refuse(incoming.send, _gone() if given is not None else Refusal(400, "Mcp-Session-Id is missing"))
        return
    sessions.drop(session, "the client ended the session")
    await respond(incoming.send, 204)
