"""Sessions of 2025-03-26 to 2025-11-25: one client's conversation over many HTTP requests.

A session has streams: one for each POST that brought requests, and one that GET opens for what belongs to none of
them. "The server MUST send each of its JSON-RPC messages on only one of the connected streams." A client that goes
cancels nothing; it comes back with ``Last-Event-ID``.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING

from modelwire.errors import ConnectionLost
from modelwire.log import log as _log
from modelwire.protocol.jsonrpc import Batch, InvalidFrame, Message
from modelwire.rpc.call import Call
from modelwire.rpc.connection import BatchCall, Connection
from modelwire.rpc.observer import tell_frame
from modelwire.rpc.stream import CLEAN_UP
from modelwire.rules import sse
from modelwire.rules.event_log import EventLog, event_id
from modelwire.rules.session import Session
from modelwire.server.http.answers import Response
from modelwire.server.http.exchange import Incoming
from modelwire.server.lifespan import Running

if TYPE_CHECKING:
    from modelwire.server.server import Server

_OWN = 0
"""The number of the stream that GET opens."""
MOST_ENDED = 32
"""How many streams of a session that have ended are kept for clients that come back."""
MAX_ENDED_BYTES = 4 << 20
"""Of a session, together; the oldest go first. The last is kept however large it is."""


class Stream:
    """One stream of a session: what was said on it, and who hears it now.

    Args:
        number: Its number in the session.
        primed: Whether it begins with an event without data, so that a client can come back before anything is said.
        kept: Whether a client can come back to it at all.
    """

    __slots__ = ("_kept", "begun", "ended", "heard", "log", "number", "primed", "reply")

    def __init__(self, number: int, *, primed: bool, kept: bool = True) -> None:
        self.number = number
        self.log = EventLog(number)
        self.reply: Response | None = None
        self.ended = False
        self.primed = primed
        self._kept = kept
        self.begun = False
        self.heard = 0
        """The last place that was given to a response."""

    def attach(self, reply: Response) -> None:
        """Have a response hear what is said from now on; who heard it before hears no more."""
        if self.reply is not None:
            self.reply.end()
        self.reply = reply

    def detach(self, reply: Response) -> None:
        """Note that a response has ended."""
        if self.reply is reply:
            self.reply = None

    def prime(self, reply: Response) -> None:
        """Begin it, with an id to come back with."""
        # "The server SHOULD immediately send an SSE event consisting of an event ID and an empty data field"
        self.begun = True
        if self.primed:
            reply.post(sse.event(b"", id=event_id(self.number, 0)))

    def post(self, frame: bytes) -> None:
        """Say something."""
        id_ = self.log.add(frame) if self._kept else None
        if self.reply is not None and not self.reply.over:
            if not self.begun:
                self.prime(self.reply)
            self.reply.post(sse.event(frame, id=id_))
            self.heard = self.log.last

    def finish(self, frame: bytes) -> None:
        """Say the last thing: the answer."""
        self.ended = True
        if self.reply is None or self.reply.streaming or self.begun:
            self.post(frame)
            if self.reply is not None:
                self.reply.end()
        else:
            self.reply.finish(frame)

    def close(self, retry: int) -> None:
        """Let the client go, to come back in as many milliseconds; what is said meanwhile is kept."""
        if self.reply is not None:
            if not self.begun:
                self.prime(self.reply)
            # "the server SHOULD send an SSE event with a standard retry field before closing the connection"
            self.reply.post(sse.retry(retry))
            self.reply.end()
            self.reply = None


class HttpSession:
    """One session.

    Args:
        server: The server.
        running: Its lifespan.
        opening: The request that it begins with. Whoever sent it has it; nobody else may use it.
        kept: Whether the client can come back to it; otherwise it is for one POST.
    """

    __slots__ = (
        "_ended", "_ended_bytes", "_numbers", "_observers", "_server", "busy", "connection", "id", "kept", "last_used",
        "own", "principal", "streams",
    )  # fmt: skip

    def __init__(self, server: Server, running: Running, opening: Incoming, *, kept: bool = True) -> None:
        self.id = secrets.token_urlsafe(24)
        self.principal = opening.principal
        self.kept = kept
        self._server = server
        self.connection = Connection(server.dispatcher, self._said, session=Session(self.principal))
        self._observers = self.connection.observers = opening.watchers(server)
        server.features.attach(self.connection, server.announce_lists, running)
        self.connection.crowded = self._crowded
        self.connection.when_room = self._when_room
        self.own = Stream(_OWN, primed=False, kept=kept)
        self.streams: dict[int, Stream] = {}
        self._ended: dict[int, int] = {}
        """How many bytes are kept of those that have ended, the oldest first."""
        self._ended_bytes = 0
        self._numbers = _OWN
        self.last_used = self.connection.loop.time()
        self.busy = 0
        """How many HTTP requests it is answering."""

    def _crowded(self, mebibytes: int = 1) -> bool:
        replies = [stream.reply for stream in (self.own, *self.streams.values()) if stream.reply is not None]
        return any(reply.crowded(mebibytes) for reply in replies)

    def told(self, frame: bytes) -> None:
        """Tell whoever watches of a frame that goes to the client."""
        tell_frame(self._observers, "out", frame)

    def _when_room(self, callback: Callable[[], object]) -> None:
        # What waits for room belongs to no request.
        if self.own.reply is None:
            self.connection.loop.call_soon(callback)
        else:
            self.own.reply.when_room(callback)

    def _said(self, frame: bytes) -> None:
        self.told(frame)
        self.own.post(frame)

    def take(self, message: Message | Batch | InvalidFrame, frame: bytes) -> bytes | Call | BatchCall | None:
        """Take in what a POST brought, and was decoded already; see `modelwire.rpc.connection.Connection.receive`."""
        if isinstance(message, InvalidFrame):
            return self.connection.receive(frame)
        tell_frame(self._observers, "in", frame)
        return self.connection.take(message, frame)

    @property
    def idle(self) -> bool:
        """Whether nobody uses it at this moment."""
        return not self.busy and not self.connection.calls

    def left(self) -> None:
        """Note that one of the HTTP requests that it is answering is over."""
        self.busy -= 1
        self.last_used = self.connection.loop.time()

    def open_stream(self) -> Stream:
        """Return a new stream, for a POST."""
        self._numbers += 1
        revision = self.connection.session.revision
        primed = self.kept and revision is not None and revision.covers("2025-11-25", None)
        stream = Stream(self._numbers, primed=primed, kept=self.kept)
        self.streams[self._numbers] = stream
        return stream

    def stream(self, number: int) -> Stream | None:
        """Return a stream by its number."""
        return self.own if number == _OWN else self.streams.get(number)

    def start(self, found: Call | BatchCall, stream: Stream, http: object) -> None:
        """Begin to answer what a POST brought; the answer ends its stream."""
        calls = [found] if isinstance(found, Call) else found.calls
        left = len(calls)

        def send(frame: bytes) -> None:
            self.told(frame)
            stream.post(frame)

        def closed() -> None:
            nonlocal left
            left -= 1
            if not left:
                self._end_of(found, stream, answers)

        answers: list[bytes] = []
        for call in calls:
            if isinstance(found, Call):
                call.deliver = answers.append
            call.send = send
            call.http = http
            call.let_go = stream.close if stream.primed else None
            call.closed().add_done_callback(lambda _: closed())
            call.task = asyncio.ensure_future(self._server.dispatcher.answer(call))

    def answer_now(self, call: Call, now: Callable[[Call], bytes]) -> bytes:
        """Return the answer to a call that never waits; nobody can come back to what is over at once."""
        try:
            frame = self._server.dispatcher.frame_now(call, now)
        except BaseException:
            call.cancel("its answer failed")  # who calls again with the same id would be told that it is still open
            raise
        call.deliver = _to_nobody
        call.answered(frame)
        self.told(frame)
        return frame

    def _end_of(self, found: Call | BatchCall, stream: Stream, answers: list[bytes]) -> None:
        frame = found.frame if isinstance(found, BatchCall) else (answers[0] if answers else None)
        if frame is not None:
            self.told(frame)
            stream.finish(frame)
        else:
            # "a request cancelled before its first byte ends as an empty stream"
            stream.ended = True
            if stream.reply is not None:
                stream.reply.end()
        self._keep(stream)

    def _keep(self, stream: Stream) -> None:
        """Keep a stream that has ended, as long as there is room, if anybody was told an id of it."""
        if not stream.begun:
            del self.streams[stream.number]
            return
        self._ended[stream.number] = stream.log.size
        self._ended_bytes += stream.log.size
        while len(self._ended) > MOST_ENDED or (self._ended_bytes > MAX_ENDED_BYTES and len(self._ended) > 1):
            oldest = next(iter(self._ended))
            self._ended_bytes -= self._ended.pop(oldest)
            del self.streams[oldest]

    async def end(self, why: str) -> None:
        """End it: open requests are cancelled, open streams closed."""
        self._server.features.detach(self.connection)
        self.connection.end(ConnectionLost(why))
        for stream in (self.own, *self.streams.values()):
            if stream.reply is not None:
                stream.reply.end()
        await self.connection.settle_cancelled(CLEAN_UP)
        self.connection.let_go()


def _to_nobody(frame: bytes) -> None:
    """What is answered at once is handed to whoever asked."""


class Sessions:
    """The sessions of an application.

    Args:
        most: How many there may be.
        idle: Seconds that one is kept when nobody uses it.
    """

    def __init__(self, most: int, idle: float) -> None:
        self._most = most
        self._idle = idle
        self._found: dict[str, HttpSession] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._passing: dict[HttpSession, asyncio.Task[None]] = {}
        """Those that are for one POST, while it is answered, and what ends them then."""

    def __len__(self) -> int:
        return len(self._found)

    def find(self, id_: str, principal: str | None) -> HttpSession | None:
        """Return a session, if it is there and theirs."""
        session = self._found.get(id_)
        if session is None or session.principal != principal:
            return None
        session.last_used = session.connection.loop.time()
        return session

    def add(self, session: HttpSession) -> bool:
        """Keep a session; False where there are as many as may be."""
        if len(self._found) >= self._most:
            return False
        self._found[session.id] = session
        self._arm(session.connection.loop)
        return True

    def let_pass(self, session: HttpSession) -> None:
        """Keep a session until what it was asked is answered; its client may have gone, which cancels nothing."""
        over = [call.closed() for call in session.connection.calls.values()]

        async def pass_() -> None:
            try:
                await asyncio.wait(over)
            finally:
                del self._passing[session]
                await session.end("the request was answered")

        self._passing[session] = asyncio.ensure_future(pass_())

    def drop(self, session: HttpSession, why: str) -> None:
        """End a session."""
        if self._found.pop(session.id, None) is not None:
            task = asyncio.ensure_future(session.end(why))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    def _arm(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is None and self._found:
            self._timer = loop.call_later(max(1.0, self._idle / 10), self._sweep, loop)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        now = loop.time()
        for session in list(self._found.values()):
            if session.idle and now - session.last_used >= self._idle:
                _log.debug("session ended: nobody has used it for %g s", self._idle)
                self.drop(session, "the session was idle for too long")
        self._arm(loop)

    def hang_up(self) -> None:
        """End the streams of GET: nothing more comes on them."""
        for session in self._found.values():
            if session.own.reply is not None:
                session.own.reply.end()

    def calls(self) -> list[Call]:
        """Return every request that is not answered yet."""
        sessions = (*self._found.values(), *self._passing)
        return [call for session in sessions for call in session.connection.calls.values()]

    async def close(self, why: str) -> None:
        """End every session."""
        if self._timer is not None:
            self._timer.cancel()
        for session in list(self._found.values()):
            self.drop(session, why)
        passing = dict(self._passing)
        if passing:
            await asyncio.gather(*(session.end(why) for session in passing))
            await asyncio.wait(passing.values())
        if self._ending:
            await asyncio.wait(self._ending)
