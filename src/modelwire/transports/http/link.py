"""One connection to a server behind HTTP, which is many requests: what `modelwire.rpc.stream.Link` is for a stream.

Each message that is posted is a POST of its own, and what comes back on it goes to the `Connection`:

    era                      a request's POST             besides
    -----------------------  ---------------------------  ----------------------------------------------------
    2026-07-28               stands alone; its end is     nothing
                             its cancellation
    handshake revisions      carries the session; its     a GET for what belongs to no request; DELETE at the end;
                             stream can be resumed        404 ends the session, and with it the connection
    HTTP+SSE                 is acknowledged              a GET, on which everything comes; its end is the end

A POST that fails fails its request only. Which era it is, is read off the messages; only that a server speaks HTTP+SSE
is found out here, when it refuses ``initialize``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from msgspec import Struct

from modelwire.errors import (
    ConnectionLost,
    FrameTooLarge,
    HttpFailed,
    LocalError,
    ModelwireError,
    ProtocolViolation,
    peer_error,
)
from modelwire.log import log as _log
from modelwire.protocol.methods import METHODS
from modelwire.protocol.revisions import Revision, by_name
from modelwire.rpc.batch import BatchCall
from modelwire.rpc.call import Call
from modelwire.rpc.connection import Connection
from modelwire.rpc.dispatcher import Dispatcher
from modelwire.rpc.observer import Observer, tell_frame
from modelwire.rules.http import EVENTS, JSON
from modelwire.rules.http_answer import agreed, error_in, is_modern, session_is_gone
from modelwire.rules.http_request import Said, argument_headers, media_type, routing_headers, said, session_id
from modelwire.rules.pending import Outgoing
from modelwire.rules.session import Session
from modelwire.rules.sse_reader import Event, EventReader
from modelwire.transports.http.endpoint import Endpoint
from modelwire.transports.http.engine import Engine, Reply
from modelwire.transports.http.exchange import Sender, closing
from modelwire.transports.http.old_sse import OldSse
from modelwire.transports.http.standing import Standing
from modelwire.transports.http.streams import ended, read, read_on
from modelwire.transports.http.trouble import no_answer

TELL_SECONDS = 30.0
"""How long a message that nobody waits for may take to be delivered."""
GOODBYE_SECONDS = 2.0
"""How long the end of the session may take to be told."""
LAST_SECONDS = 1.0
"""How long what is still under way may take to be answered once the session is gone."""
SESSION = "mcp-session-id"
_OPENING = frozenset({"server/discover", "initialize"})
"""What no conversation sends again, since there is none yet."""


class _Open(Struct):
    """A request whose POST is under way."""

    task: asyncio.Task[None]
    alone: bool
    """Whether the end of the POST cancels it."""


class HttpLink:
    """Runs a `Connection` over HTTP.

    Args:
        endpoint: The server.
        engine: What HTTP is spoken with; the link closes it.
        dispatcher: Answers the server.
        session: What was agreed with the server.
        observers: Who watches the frames.
    """

    stream = None
    """There is no stream behind it."""

    def __init__(
        self,
        endpoint: Endpoint,
        engine: Engine,
        dispatcher: Dispatcher,
        *,
        session: Session | None = None,
        observers: Sequence[Observer] = (),
    ) -> None:
        self.connection = connection = Connection(
            dispatcher, self._post, session=session, observers=observers, answers_invalid=False
        )
        connection.withdraw = self._withdraw
        self.on_gap: Callable[[], None] | None = None
        """Called when the server may have told something that was not heard."""
        self._endpoint = endpoint
        self._engine = engine
        self._sender = Sender(endpoint, engine)
        self._dispatcher = dispatcher
        self._open: dict[int, _Open] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._telling: set[asyncio.Task[None]] = set()
        self._unsent: set[int] = set()
        self._session: str | None = None
        self._gone = False
        """Whether the server does not know the session any more."""
        self._headers: list[tuple[str, str]] = []
        """What every request of a session carries."""
        self._version = ""
        """The revision that requests name themselves."""
        self._greeting: asyncio.Future[None] | None = None
        """Done once the server has taken notice of ``notifications/initialized``; nothing goes out before."""
        self._old = self._old_sse() if endpoint.known.old else None
        self._standing = Standing(
            self._sender,
            endpoint,
            self._session_headers,
            self._deliver,
            self._oversized,
            self._gap,
            self._session_gone,
        )
        self._over: asyncio.Future[None] = connection.loop.create_future()
        self._closed: asyncio.Task[None] | None = None

    # ------------------------------------------------------------------ what whoever opens it wants to know

    @property
    def reached(self) -> bool:
        """Whether the server has answered anything."""
        return self._sender.reached

    async def run(self) -> None:
        """Wait until it ends.

        Raises:
            ConnectionLost: The server has ended the session, or the stream that was the connection broke.
        """
        await asyncio.shield(self._over)

    def was_sent(self, entry: Outgoing) -> bool:
        """Whether the server may have got a request."""
        return entry.key not in self._unsent

    async def hears(self) -> None:
        """Wait until what belongs to no request can be heard, as far as the server lets it be heard."""
        if self._greeting is not None:
            await asyncio.wait([self._greeting])
        await self._standing.begun()

    async def flushed(self) -> None:
        """Wait until everything that nobody waits for was delivered."""
        while self._telling:
            await asyncio.wait(self._telling)

    # ------------------------------------------------------------------ posting

    def _post(self, frame: bytes) -> None:
        if self._closed is not None or self.connection.ended is not None:
            return
        about = said(frame)
        if about.method is None or about.id is None:
            self._tell(about, frame)
        elif isinstance(about.id, int):
            task = self._run(self._request(about, about.id, frame))
            self._open[about.id] = _Open(task, about.version is not None)

    def _run(self, job: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self.connection.loop.create_task(job)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _withdraw(self, entry: Outgoing) -> bool:
        """End the POST of a request that is given up; say whether that cancels the request."""
        under_way = self._open.pop(entry.key, None)
        if under_way is None:
            return False
        under_way.task.cancel()
        return under_way.alone

    def _session_headers(self) -> list[tuple[str, str]]:
        return self._headers

    # ------------------------------------------------------------------ requests

    async def _request(self, about: Said, id_: int, frame: bytes) -> None:
        try:
            if self._greeting is not None and not self._greeting.done():
                await asyncio.shield(self._greeting)
            if self._gone:
                self._unsent.add(id_)
                return
            if self._old is not None and about.version is None:
                await self._old.post(frame, f"{about.method} was not delivered")
                return
            await _twice(about.method in _OPENING, lambda: self._exchange(about, id_, frame))
        except LocalError as error:
            self._failed(id_, error)
        except Exception as error:
            _log.exception("a request over HTTP failed")
            self._failed(id_, HttpFailed(f"{about.method} failed: {error!r}", url=self._endpoint.shown))
        finally:
            self._open.pop(id_, None)

    def _failed(self, id_: int, error: LocalError) -> None:
        if isinstance(error, HttpFailed) and error.unsent:
            self._unsent.add(id_)
        entry = self.connection.pending.take(id_)
        if entry is not None:
            entry.settle(error)

    async def _exchange(self, about: Said, id_: int, frame: bytes) -> None:
        method = about.method or ""
        what = f"{method} was not answered"
        in_session = self._session is not None and about.version is None and method != "initialize"
        reply = await self._sender.send(
            "POST",
            self._endpoint.url,
            self._own_headers(about, frame),
            frame,
            what,
            urgent=method == "subscriptions/listen",
            patience=lambda status: self._patience(method, id_, status),
        )
        async with closing(reply):
            if 200 <= reply.status < 300:
                await self._answered(about, id_, reply, what)
                return
            body = await self._sender.excerpt(reply, what)
        await self._refused(about, id_, frame, reply, body, what, in_session)

    def _own_headers(self, about: Said, frame: bytes) -> list[tuple[str, str]]:
        if about.version is None:
            return [] if about.method == "initialize" else self._headers
        self._version = about.version
        headers = routing_headers(about, about.version)
        if about.method == "tools/call":
            paths = self._endpoint.tools.get(about.name or "")
            if paths:
                headers += argument_headers(frame, paths)
        return headers

    def _patience(self, method: str, id_: int, status: int) -> float:
        """Return the seconds that a request may wait before it is sent again.

        One that is refused for there being too many was not looked at; of any other, a part may have been done.
        """
        entry = self.connection.pending.get(id_)
        row = METHODS.get(method)
        if entry is None or (status != 429 and (row is None or row.effects)):
            return 0.0
        return TELL_SECONDS if entry.deadline is None else entry.deadline - self.connection.loop.time()

    async def _answered(self, about: Said, id_: int, reply: Reply, what: str) -> None:
        kind = media_type(reply.header("content-type"))
        if kind == EVENTS:
            await self._events(about, id_, reply, what)
            return
        if kind not in (JSON, ""):
            body = await self._sender.excerpt(reply, what)
            raise no_answer(self._endpoint, what, reply.status, reply.header("content-type"), body)
        try:
            body = await self._sender.body(reply, what, self._endpoint.max_message)
        except FrameTooLarge as error:
            self._failed(id_, error)
            return
        if not body.strip():
            raise no_answer(self._endpoint, what, reply.status, reply.header("content-type"), b"")
        self._frame(about, reply, body)
        if self._waits(id_):
            raise ProtocolViolation(f"the answer to the POST of {about.method} is no answer to it", body)

    def _waits(self, id_: int) -> bool:
        return self.connection.pending.get(id_) is not None

    def _frame(self, about: Said, reply: Reply, frame: bytes) -> None:
        """Take in a message that came on a POST."""
        if about.method == "initialize":
            self._note_session(reply, frame)
        self._deliver(frame)

    async def _events(self, about: Said, id_: int, reply: Reply, what: str) -> None:
        reader = EventReader(self._endpoint.max_message)

        def take(event: Event | FrameTooLarge) -> bool:
            if isinstance(event, FrameTooLarge):
                self._oversized(event)
            elif event.data and event.name == "message":
                self._frame(about, reply, event.data)
            return not self._waits(id_)

        if about.version is not None:  # "Resumable SSE streams via Last-Event-ID are not supported" in 2026-07-28
            if not await read(self._sender, reply, reader, take, what):
                raise ended(self._sender, what)
            return

        async def resume(last_id: str) -> Reply:
            return await self._standing.resumed(last_id, what)

        await read_on(self._sender, reply, reader, take, what, resume)

    # ------------------------------------------------------------------ refusals

    async def _refused(
        self, about: Said, id_: int, frame: bytes, reply: Reply, body: bytes, what: str, in_session: bool
    ) -> None:
        """Fail a request, unless there is another way to have it answered."""
        error = error_in(body)
        refusal = self._sender.refusal(reply, what, body)
        if in_session and session_is_gone(reply.status, error):
            self._unsent.add(id_)
            self._session_gone(refusal)  # with which it fails, to be sent again in the next session
            return
        may_be_old = about.method == "initialize" and reply.status in (400, 404, 405) and not is_modern(error)
        if may_be_old:
            why_not = await self._as_old(frame, what)
            if why_not is None:
                return
            if why_not.status is None:
                refusal = refusal.besides(f"HTTP+SSE was tried as well: {why_not}")
        if error is None or reply.status in (401, 403, 407):
            raise refusal
        if error.key == id_:
            self._deliver(body)
        else:  # "a JSON-RPC error response that has no id", or somebody's own: it came on this request's POST
            tell_frame(self.connection.observers, "in", body)
            entry = self.connection.pending.take(id_)
            if entry is not None:
                told = peer_error(error.code, error.message, error.data)
                told.__cause__ = refusal
                entry.settle(told)

    def _old_sse(self) -> OldSse:
        return OldSse(self._sender, self._endpoint, self._deliver, self._oversized, self._lost)

    async def _as_old(self, frame: bytes, what: str) -> HttpFailed | None:
        """Try HTTP+SSE, with a message that was refused; return why the server does not speak it, if it does not."""
        old = self._old_sse()
        try:
            await old.open()
        except HttpFailed as error:
            _log.debug("%s does not speak HTTP+SSE either: %s", self._endpoint.shown, error)
            return error
        self._old = old
        self._endpoint.known.old = True
        await old.post(frame, what)
        return None

    # ------------------------------------------------------------------ what nobody waits for

    def _tell(self, about: Said, frame: bytes) -> None:
        if about.method == "notifications/initialized":
            self._greeting = self.connection.loop.create_future()
        task = self._run(self._told(about, frame))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def _told(self, about: Said, frame: bytes) -> None:
        what = about.method or "an answer"
        greets = about.method == "notifications/initialized"
        try:
            if self._greeting is not None and not greets and not self._greeting.done():
                await asyncio.shield(self._greeting)
            async with asyncio.timeout(TELL_SECONDS):
                # An answer that comes twice is one to nobody; a notification of the protocol's says the same again.
                harmless = about.method is None or about.method in METHODS
                await _twice(harmless, lambda: self._delivered(about, frame, f"{what} was not delivered"))
        except (ModelwireError, TimeoutError) as error:
            # What the server makes of it is its own business; a request will tell whether it is still there.
            _log.debug("%s was not delivered: %s", what, error or f"nothing came within {TELL_SECONDS:g} s")
        finally:
            if greets:
                self._greeted()

    def _greeted(self) -> None:
        """The server has taken notice of ``notifications/initialized``, or will not."""
        if self._greeting is not None and not self._greeting.done():
            self._greeting.set_result(None)
            if self._old is None and self.connection.ended is None:
                self._standing.expect()
                self._run(self._standing.listen())

    async def _delivered(self, about: Said, frame: bytes, what: str) -> None:
        if self._old is not None:
            await self._old.post(frame, what)
            return
        handshake = self._greeting is not None
        headers = self._headers if handshake else routing_headers(about, self._version)
        reply = await self._sender.send("POST", self._endpoint.url, headers, frame, what)
        async with closing(reply):
            if about.method == "notifications/initialized":
                self._greeted()  # whatever comes as a body, and however long that takes
            if reply.status >= 400:
                raise self._sender.refusal(reply, what, await self._sender.excerpt(reply, what))
            if media_type(reply.header("content-type")) == EVENTS:
                # Nobody answers a notification; what a server says instead may be said to us all the same.
                await read(self._sender, reply, EventReader(self._endpoint.max_message), self._heard, what)
            elif reply.status == 200:
                await self._sender.excerpt(reply, what)  # to its end, so that the connection can be used again

    def _heard(self, event: Event | FrameTooLarge) -> bool:
        if isinstance(event, Event) and event.data and event.name == "message":
            self._deliver(event.data)
        return False

    # ------------------------------------------------------------------ what comes

    def _deliver(self, frame: bytes) -> None:
        answer = self.connection.receive(frame)
        if type(answer) is bytes:
            self.connection.post(answer)
        elif type(answer) is Call:
            self._start(answer)
        elif type(answer) is BatchCall:
            self._run(self._answer_batch(answer))

    def _start(self, call: Call) -> None:
        call.task = self.connection.loop.create_task(self._dispatcher.answer(call))

    async def _answer_batch(self, batch: BatchCall) -> None:
        frame = await batch.answered(self._start)
        if frame is not None:
            self.connection.post(frame)

    def _oversized(self, error: FrameTooLarge) -> None:
        refusal = self.connection.oversized(error)
        if refusal is not None:
            self.connection.post(refusal)

    def _note_session(self, reply: Reply, frame: bytes) -> None:
        """Keep what the answer to ``initialize`` says about the requests that come after it."""
        version = agreed(frame)
        if version is None:
            return
        self._session = session_id(reply.header(SESSION))
        revision: Revision | None = by_name(version)
        self._headers = [] if self._session is None else [("Mcp-Session-Id", self._session)]
        if revision is not None and revision.version_header:
            self._headers.append(("MCP-Protocol-Version", revision.name))

    def _gap(self) -> None:
        if self.on_gap is not None:
            self.on_gap()

    # ------------------------------------------------------------------ the end

    def _session_gone(self, refusal: HttpFailed) -> None:
        """The server does not know the session any more, which ends the connection without a goodbye."""
        if self._gone or self._session is None:
            return
        self._gone = True
        self._session, self._headers = None, []
        why = f"{refusal.url} does not know the session any more (HTTP {refusal.status})"
        ended = HttpFailed(why, status=refusal.status, body=refusal.body, url=refusal.url)
        under_way = [each.task for each in self._open.values() if each.task is not asyncio.current_task()]
        self._run(self._end_with_the_session(ended, under_way))

    async def _end_with_the_session(self, ended: HttpFailed, under_way: list[asyncio.Task[None]]) -> None:
        """End once what else was asked in the session was answered, or refused as well and so not looked at."""
        if under_way:
            await asyncio.wait(under_way, timeout=LAST_SECONDS)
        self._lost(ended)

    def _lost(self, why: ConnectionLost) -> None:
        """The connection has ended by itself."""
        if not self._over.done():
            self._over.set_exception(why)
            self._over.exception()  # told by `run`, if anybody still waits there

    async def aclose(self, why: Exception | None = None) -> None:
        """End it: what is open is given up, the session is ended. May be called twice and from any task."""
        if self._closed is None:
            self._closed = asyncio.create_task(self._close(why or ConnectionLost("the connection was closed")))
        await asyncio.shield(self._closed)

    async def _close(self, why: Exception) -> None:
        self.connection.end(why)
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if self._old is not None:
            await self._old.aclose()
        if self._session is not None:
            await self._say_goodbye()
        await self._engine.aclose()
        if not self._over.done():
            self._over.set_result(None)

    async def _say_goodbye(self) -> None:
        """End the session: "clients that no longer need a particular session SHOULD send an HTTP DELETE"."""
        try:
            async with asyncio.timeout(GOODBYE_SECONDS):
                reply = await self._sender.send(
                    "DELETE", self._endpoint.url, self._headers, None, "the end of the session"
                )
                reply.close()
        except (ModelwireError, TimeoutError) as error:
            _log.debug("the server was not told that the session is over: %s", error or "it did not answer")

    def release(self) -> None:
        """Let go of everything from outside the event loop, which has ended."""
        self._engine.release()


async def _twice(harmless: bool, send: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Send something, and once more where its connection breaks, if it is harmless that the server may get it twice."""
    try:
        await send()
    except HttpFailed as error:
        if not harmless or error.unsent or not error.broken or error.status is not None:
            raise
        _log.debug("it is sent again: %s", error)
        await send()
