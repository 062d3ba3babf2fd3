"""One connection to a server, from its opening to its end: the stream, who reads it, what the opening came to.

It is opened once. A `modelwire.client.conversation.Conversation` opens another one when this one is lost; nothing that
this one still hears can reach that.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, cast

from modelwire.client.connect import Opened, Opener
from modelwire.client.endings import at_start, how_it_ended, refused_at, still_waiting
from modelwire.client.targets import Target, Wire
from modelwire.errors import ConnectionFailed, ConnectionLost, RequestTimeout, ServerExited
from modelwire.log import log as _log
from modelwire.rpc.connection import Connection
from modelwire.rpc.dispatcher import Dispatcher
from modelwire.rpc.heartbeat import Pings, Watched, keep_watch
from modelwire.rpc.observer import Observer
from modelwire.rules.pending import Outgoing
from modelwire.rules.session import Peer, Session
from modelwire.transports.process import ProcessStream

FLUSH_SECONDS = 1.0
"""How long closing lets the stream take what was sent before."""
CLOSE_SECONDS = 10.0
"""How long closing waits for a stream; one to a process takes at most half of it."""
CALLBACK_SECONDS = 1.0
"""How long closing waits for async callbacks that still run."""


class Contact:
    """One connection.

    Args:
        target: What to open.
        dispatcher: Answers the server's requests.
        observers: Who watches the frames.
        on_end: Called once, when an open connection has ended; also when it was released, but not when its event loop
            ends.
    """

    connection: Connection
    """What requests are sent over. There is none before the stream is open (`reached`)."""

    def __init__(
        self,
        target: Target,
        dispatcher: Dispatcher,
        observers: Sequence[Observer],
        on_end: Callable[[Contact], None],
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.opened: Opened | None = None
        """What the opening came to, once it has succeeded."""
        self._target = target
        self._dispatcher = dispatcher
        self._observers = observers
        self._on_end = on_end
        self.on_gap: Callable[[], None] | None = None
        """Called when the server may have told something that was not heard, although the connection goes on."""
        self._link: Wire | None = None
        self._reading: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._dialling: asyncio.Timeout | None = None
        self._released = False

    async def open(self, opener: Opener, timeout: float | None) -> Opened:
        """Open it. If that fails, it must be released all the same.

        Args:
            opener: How to open a conversation on it.
            timeout: Seconds that it may take; None for no limit.

        Raises:
            ConnectionFailed: It could not be opened.
            ConnectionLost: It ended meanwhile; `ServerExited` when the server's process did.
            RequestTimeout: The server did not answer in time.
        """
        until = None if timeout is None else self.loop.time() + timeout
        session = Session()
        self._link = link = await self._dial(session, timeout)
        self.connection = link.connection
        link.on_gap = self.on_gap
        self._reading = asyncio.create_task(self._read(link))
        try:
            opened = await opener.open(link.connection, timeout, until)
        except ConnectionLost as error:
            failed = await self._target.failure()
            if failed is not None:
                raise ConnectionFailed(failed[0]) from failed[1]
            raise at_start(error, link.connection, opener.strays) from None
        except RequestTimeout as late:
            raise still_waiting(late, link.stream, self._target.place) from None
        except ConnectionFailed as error:
            raise refused_at(error, self._target.place) from error.__cause__
        session.peer = Peer(opened.revision, opened.info)
        link.connection.batching = opened.revision.batching
        link.connection.answers_requests = opened.revision.server_requests
        self.opened = opened
        heartbeat = self._target.heartbeat
        if heartbeat is not None:
            stream = link.stream

            def ping() -> Awaitable[object]:
                if isinstance(stream, Pings):
                    return stream.ping()
                return opener.ping(link.connection, opened.revision, heartbeat)

            watch = keep_watch(link.connection, cast(Watched, stream), heartbeat, ping)
            self._watching = asyncio.create_task(watch)
        return opened

    async def _dial(self, session: Session, timeout: float | None) -> Wire:
        given_up = ConnectionLost("the client was closed while the conversation was being opened")
        self._dialling = asyncio.timeout(timeout)
        try:
            async with self._dialling:
                link = await self._target.link(self._dispatcher, session, self._observers)
        except TimeoutError:
            if self._released:
                raise given_up from None
            raise ConnectionFailed(
                f"{self._target.name} could not be reached within {timeout:g} s; pass connect_timeout= to wait longer"
            ) from None
        finally:
            self._dialling = None
        if self._released:
            await link.aclose()
            raise given_up
        return link

    async def _read(self, link: Wire) -> None:
        why: Exception = ConnectionLost("reading was cancelled")
        goes_on = True
        try:
            await link.run()
            why = await self._how_it_ended(link)
        except ConnectionLost as error:
            why = error
        except Exception as error:
            _log.exception("reading from %s failed", self._target.name)
            why = ConnectionLost(f"reading failed: {error!r}")
        except BaseException:
            goes_on = self._released  # else the event loop ends, and nothing is to be begun there
            raise
        finally:  # whatever ended the reading, what waits for an answer must hear of it
            link.connection.end(why)
            if goes_on:
                self._on_end(self)

    async def _how_it_ended(self, link: Wire) -> ConnectionLost:
        failed = None if self._released else await self._target.failure()
        if failed is None:
            return how_it_ended(link.stream)
        ended = ConnectionLost(failed[0])
        ended.__cause__ = failed[1]
        return ended

    # ------------------------------------------------------------------ while it lasts

    @property
    def reached(self) -> bool:
        """Whether there was somebody to open it with."""
        return self._link is not None and self._link.reached

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent."""
        return self.opened is not None and self.connection.ended is None

    @property
    def ended(self) -> ConnectionLost:
        """Why it ended, once it has."""
        why = None if self._link is None else self._link.connection.ended
        return why if isinstance(why, ConnectionLost) else ConnectionLost("the connection is closed")

    def ended_for(self, entry: Outgoing) -> ConnectionLost:
        """Return why it ended, for a request that was open; of a process's stderr, what came since counts."""
        ended, process = self.ended, self.process
        if process is None or not isinstance(ended, ServerExited):
            return ended
        return ended.since(process.stderr_before(entry.started))

    @property
    def process(self) -> ProcessStream | None:
        """The server's process, where it is one."""
        stream = None if self._link is None else self._link.stream
        return stream if isinstance(stream, ProcessStream) else None

    async def hears(self) -> None:
        """Wait until what the server tells unasked can be heard."""
        if self._link is not None:
            await self._link.hears()

    def was_sent(self, entry: Outgoing) -> bool:
        """Whether the server may have got a request; ask once it has failed."""
        return self._link is None or self._link.was_sent(entry)

    def late(self, late: RequestTimeout) -> RequestTimeout:
        """Return the error for an answer that did not come, with what there is to say of the server."""
        return late if self._link is None else still_waiting(late, self._link.stream)

    # ------------------------------------------------------------------ the end

    async def release(
        self, spared: Collection[asyncio.Future[Any] | None] = (), why: ConnectionLost | None = None
    ) -> None:
        """End it, and let go of everything. May be called twice.

        Args:
            spared: Callbacks that are not waited for: those that wait for this.
            why: What to tell whoever still waits for an answer.
        """
        self._released = True
        if self._dialling is not None:
            self._dialling.reschedule(self.loop.time())
        link, reading = self._link, self._reading
        if link is None or reading is None:
            return
        if self._watching is not None:
            self._watching.cancel()
        if link.connection.ended is None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(link.flushed(), FLUSH_SECONDS)
        try:
            await asyncio.wait_for(link.aclose(why), CLOSE_SECONDS)
        except TimeoutError:
            _log.warning("%s did not let itself be closed within %g s; it was left", self._target.name, CLOSE_SECONDS)
        except Exception:
            _log.exception("closing the stream to %s failed", self._target.name)
        reading.cancel()
        await asyncio.wait([reading])
        await link.connection.callbacks.settle(CALLBACK_SECONDS, spared)
        await self._target.closed()

    def abandon(self) -> None:
        """Let go of it from outside its event loop, which has ended: nothing there can run any more."""
        self._released = True
        if self._link is not None:
            self._link.release()
