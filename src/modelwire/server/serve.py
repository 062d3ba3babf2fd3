"""Serving one client: over a message stream, or frame by frame for people who bring their own transport.

The end of input and the order of the end are decided here. Where clients come from is `modelwire.server.endpoints`'
business; what is served is not decided here either.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from modelwire.errors import ConnectionLost
from modelwire.log import log as _log
from modelwire.rpc.batch import BatchCall
from modelwire.rpc.call import Call
from modelwire.rpc.connection import Connection
from modelwire.rpc.early import Early
from modelwire.rpc.heartbeat import Watched, keep_watch
from modelwire.rpc.message_stream import MessageStream
from modelwire.rpc.observer import Observer, watchers
from modelwire.rpc.stream import CLEAN_UP, Link
from modelwire.rules.session import Session
from modelwire.server.lifespan import Running

if TYPE_CHECKING:
    from modelwire.server.server import Server

DRAIN = 5.0
"""Seconds that accepted requests may take to finish once the client has closed its side."""
START = 30.0
"""Seconds that a lifespan may take to start once the client has closed its side, if it has asked something before."""
STOP = 0.25
"""The same when the serving is cancelled, as a signal does; and for a lifespan's start when nothing was asked."""


async def serve_stream(server: Server, stream: MessageStream, started: asyncio.Future[None]) -> None:
    """Serve one message stream until its other end closes; the stream is closed afterwards.

    Args:
        server: The server.
        stream: The stream.
        started: Told when the lifespan has started, so that from now on the client is answered.

    Raises:
        BaseException: What the server's lifespan has failed with.
    """
    closing = stream.aclose
    loop = asyncio.get_running_loop()
    starting = asyncio.timeout(None)

    def gone(asked: bool) -> None:
        starting.reschedule(loop.time() + (START if asked else STOP))

    early = Early(stream, gone)
    try:
        async with contextlib.AsyncExitStack() as stack:
            try:
                async with starting:
                    running = await stack.enter_async_context(server.features.lifespan.held())
            except TimeoutError:
                if not starting.expired():
                    raise
                _log.info("the client left before the server had started")
                return
            early.enough()
            link = _attached(server, stream, running)
            closing = link.aclose
            if not started.done():
                started.set_result(None)
            await _serve_link(server, link, running, early=early)
    finally:
        await early.aclose()
        # Only now, so that what the end of a lifespan prints does not go onto the wire.
        await closing()


async def serve_connection(
    server: Server,
    stream: MessageStream,
    running: Running,
    *,
    principal: str | None,
    heartbeat: float | None,
    http: Any = None,
) -> None:
    """Serve one of many clients until it leaves; its stream is closed afterwards.

    Args:
        server: The server.
        stream: The stream.
        running: The lifespan, which whoever accepts clients keeps alive.
        principal: Who the client is, where the transport knows.
        heartbeat: Seconds of silence after which the client is asked for a sign of life; for a `Watched` stream.
        http: The HTTP request that the connection began with, where one did.
    """
    link = _attached(server, stream, running, principal)
    link.connection.http = http
    try:
        await _serve_link(server, link, running, heartbeat)
    finally:
        await link.aclose()


def _attached(server: Server, stream: MessageStream, running: Running, principal: str | None = None) -> Link:
    link = Link(stream, server.dispatcher, session=Session(principal), observers=watching(server, _name(stream)))
    server.features.attach(link.connection, server.announce_lists, running)
    return link


def watching(server: Server, peer: str) -> Sequence[Observer]:
    """Return who watches a conversation that begins.

    Args:
        server: The server.
        peer: Who is at the other end, for people.
    """
    return watchers(server.observers, next(server.numbers), peer) if server.observers else ()


def _name(stream: MessageStream) -> str:
    return getattr(stream, "name", "the client")


async def _serve_link(
    server: Server, link: Link, running: Running, heartbeat: float | None = None, early: Early | None = None
) -> None:
    reading = asyncio.create_task(link.run(early))
    watching = None if heartbeat is None else asyncio.create_task(_watch(link, heartbeat))

    def stop() -> None:
        link.stopping = True
        reading.cancel()

    link.connection.on_stop = stop
    grace = DRAIN
    try:
        await asyncio.wait([reading, running.over], return_when=asyncio.FIRST_COMPLETED)
        if reading.done():
            _say_why(reading)
            link.connection.hears_no_more(ConnectionLost("the client has closed its side"))
        else:
            grace = STOP
    except asyncio.CancelledError:
        grace = STOP
        raise
    finally:
        reading.cancel()
        if watching is not None:
            watching.cancel()
        await _end(server, link, grace)


async def _watch(link: Link, heartbeat: float) -> None:
    connection = link.connection

    def ping() -> Awaitable[object] | None:
        # "Servers do not initiate JSON-RPC requests" (2026-07-28, basic/transports), and before the handshake nobody
        # has said which revision it is.
        revision = connection.session.revision
        if revision is None or not revision.server_requests:
            return None
        return connection.request("ping", None, timeout=heartbeat)

    await keep_watch(connection, cast(Watched, link.stream), heartbeat, ping)


async def _end(server: Server, link: Link, grace: float) -> None:
    """The order of the end: subscriptions, accepted requests, what is queued; then the lifespan, then the stream."""
    server.features.detach(link.connection)
    await server.features.listeners.end(link.connection)
    await link.finish(grace)


def _say_why(reading: asyncio.Task[None]) -> None:
    error = None if reading.cancelled() else reading.exception()
    if isinstance(error, ConnectionLost):
        _log.warning("the connection broke: %s", error)
    elif error is not None:
        raise error


class ServerSession:
    """One client's conversation, frame by frame, for people who bring their own transport.

    Args:
        server: The server.
        send: Called with each frame that is no answer.

    Raises:
        SignatureError: Something that was registered cannot work. Also raised by `handle`, for what came since.
        ConfigError: The same.

    Example:
        ```
        session = server.session()
        answer = await session.handle(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
        ```
    """

    def __init__(self, server: Server, send: Callable[[bytes], None] | None = None) -> None:
        server.settle()
        self._server = server
        self._send = send
        self._connection: Connection | None = None
        self._running: Running | None = None
        self._opening = asyncio.Lock()
        self._closed = False

    async def handle(self, frame: bytes) -> bytes | None:
        """Take in one frame and return the frame that answers it, or None when nothing does.

        May be called for several frames at once; answers come as they are ready.

        Args:
            frame: One JSON-RPC message, or a batch where 2025-03-26 was negotiated.

        Raises:
            BaseException: What the server's lifespan has failed with.
        """
        connection = self._connection or await self._open()
        answer = connection.receive(frame)
        if type(answer) is Call:
            frames: list[bytes] = []
            answer.deliver = frames.append
            await self._answer([answer])
            return frames[0] if frames else None
        if type(answer) is BatchCall:
            await self._answer(answer.calls)
            return answer.frame
        return cast("bytes | None", answer)

    async def _open(self) -> Connection:
        """Begin with the first frame: the lifespan first of all."""
        async with self._opening:
            if self._running is not None and self._running.failure is not None:
                raise self._running.failure
            if self._connection is None:
                running = await self._server.features.lifespan.enter()
                if self._closed:
                    await self._server.features.lifespan.leave(running)
                    raise ConnectionLost("the session was closed while the server started")
                self._running = running
                self._connection = Connection(
                    self._server.dispatcher, self._hand_on, observers=watching(self._server, "the client")
                )
                self._server.features.attach(self._connection, self._server.announce_lists, running)
                running.over.add_done_callback(self._lost)
            return self._connection

    def _lost(self, over: asyncio.Future[None]) -> None:
        if self._connection is not None and not self._closed:
            self._connection.end(ConnectionLost("the server's lifespan has failed"))
            self._connection = None

    def _hand_on(self, frame: bytes) -> None:
        if self._send is not None:
            try:
                self._send(frame)
            except Exception:
                _log.exception("the send function of a session failed; a frame was lost")

    async def _answer(self, calls: list[Call]) -> None:
        # Tasks of their own: the peer may cancel a request without cancelling whoever called `handle`.
        # A later item of a batch may have cancelled an earlier one before it began.
        calls = [call for call in calls if not call.cancelled]
        over = [call.closed() for call in calls]
        for call, closed in zip(calls, over, strict=True):
            call.task = asyncio.create_task(self._server.dispatcher.answer(call))
            call.task.add_done_callback(functools.partial(_note_end, closed))
        if not over:
            return
        try:
            # Not the tasks: one whose handler asks for input goes on after its request was answered.
            await asyncio.wait(over)
        except asyncio.CancelledError:
            for call in calls:
                call.cancel("whoever handles the frame was cancelled")
            raise
        if self._running is not None and self._running.failure is not None:
            raise self._running.failure

    async def aclose(self) -> None:
        """End the conversation: open subscriptions end, what still runs is cancelled.

        Raises:
            BaseException: What the server's lifespan has failed with.
        """
        self._closed = True
        running, self._running = self._running, None
        try:
            if self._connection is not None:
                self._server.features.detach(self._connection)
                await self._server.features.listeners.end(self._connection)
                self._connection.end(ConnectionLost("the session was closed"))
                await self._connection.settle_cancelled(CLEAN_UP)
        finally:
            if running is not None:
                await self._server.features.lifespan.leave(running)


def _note_end(closed: asyncio.Future[None], task: asyncio.Task[None]) -> None:
    if not closed.done():
        closed.set_result(None)
