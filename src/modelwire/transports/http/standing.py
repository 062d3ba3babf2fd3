"""The GET of the handshake revisions: a stream for what belongs to no request, and the way to take streams up again.

A server may have no such stream; then nothing comes unasked, and nobody is told. One that breaks is opened again for as
long as the connection lasts; a server that has had it, and then says that there is no such session, has ended that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from modelwire.errors import FrameTooLarge, HttpFailed, LocalError
from modelwire.log import log as _log
from modelwire.rules.http import EVENTS
from modelwire.rules.http_answer import error_in, session_is_gone
from modelwire.rules.http_request import media_type
from modelwire.rules.sse_reader import Event, EventReader
from modelwire.transports.http.endpoint import Endpoint
from modelwire.transports.http.engine import Reply
from modelwire.transports.http.exchange import Sender
from modelwire.transports.http.streams import read

PAUSES = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds before the stream is opened again, longer each time until something comes on it; then the last of them."""
SETTLED = 1.0
"""Seconds after which a stream on which something came counts as one that worked."""
BEGIN_SECONDS = 5.0
"""How long somebody who wants to hear news waits for the stream."""


class Standing:
    """The stream of one session.

    Args:
        sender: Sends requests.
        endpoint: The server.
        headers: Gives the headers of the session.
        deliver: Takes each message.
        oversized: Takes note of each that is too long.
        on_gap: Called when something may have been said while nobody listened.
        on_gone: Called when the server says that there is no such session any more.
    """

    def __init__(
        self,
        sender: Sender,
        endpoint: Endpoint,
        headers: Callable[[], list[tuple[str, str]]],
        deliver: Callable[[bytes], None],
        oversized: Callable[[FrameTooLarge], None],
        on_gap: Callable[[], None],
        on_gone: Callable[[HttpFailed], None],
    ) -> None:
        self._sender = sender
        self._endpoint = endpoint
        self._headers = headers
        self._deliver = deliver
        self._oversized = oversized
        self._on_gap = on_gap
        self._on_gone = on_gone
        self._reader = EventReader(endpoint.max_message)
        self._begun: asyncio.Future[None] | None = None
        self._heard = False
        """Whether anything has come on the connection that there is."""
        self._was_open = False
        self._gone = False
        """Whether the last refusal says that the session is gone."""

    async def begun(self) -> None:
        """Wait until the server has opened the stream, or has refused to."""
        if self._begun is not None:
            await asyncio.wait([self._begun], timeout=BEGIN_SECONDS)

    def expect(self) -> None:
        """Have `begun` wait; to be called before `listen`."""
        self._begun = asyncio.get_running_loop().create_future()

    async def listen(self) -> None:
        """Listen until the server refuses, or the task is cancelled."""
        failures = 0
        try:
            while True:
                try:
                    reply = await self._opened()
                except HttpFailed as error:
                    if not error.broken:
                        self._refused(error)
                        return
                else:
                    failures = await self._listened(reply, failures)
                pause = PAUSES[min(failures, len(PAUSES) - 1)]
                failures += 1
                if self._reader.retry is not None:
                    pause = max(pause, self._reader.retry / 1000)
                await asyncio.sleep(pause)
        except LocalError as error:
            _log.warning("nothing that belongs to no request will be heard any more: %s", error)
        finally:
            self._say_begun()

    def _refused(self, error: HttpFailed) -> None:
        # A server that has never had the stream may say 404, too, where it should say 405.
        if self._was_open and self._gone:
            self._on_gone(error)
        else:
            _log.debug("the server has no stream for what belongs to no request: %s", error)

    async def _opened(self) -> Reply:
        last_id = self._reader.last_id
        try:
            reply = await self.resumed(last_id, "the stream was not opened")
        except HttpFailed as error:
            if not last_id or error.status is None or error.status >= 500:
                raise
            # It cannot be taken up again; a new one is better than none.
            self._reader = EventReader(self._endpoint.max_message)
            last_id = ""
            reply = await self.resumed(last_id, "the stream was not opened")
        if self._begun is not None and self._begun.done() and not last_id:
            self._on_gap()
        self._was_open = True
        self._reader.restart()
        self._say_begun()
        return reply

    async def _listened(self, reply: Reply, failures: int) -> int:
        """Take in what comes; return how many failures are to be counted before this one."""
        self._heard = False
        loop = asyncio.get_running_loop()
        since = loop.time()
        try:
            await read(self._sender, reply, self._reader, self._take, "the stream")
        except HttpFailed as error:
            _log.debug("the stream for what belongs to no request broke: %s", error)
        finally:
            reply.close()
        if not self._heard:
            return failures
        # A server that says a word each time and hangs up is not to be asked as fast as the network goes, unless it
        # has said when to come back.
        return 0 if self._reader.retry is not None or loop.time() - since >= SETTLED else min(failures, 1)

    def _take(self, event: Event | FrameTooLarge) -> bool:
        self._heard = True
        if isinstance(event, FrameTooLarge):
            self._oversized(event)
        elif event.data and event.name == "message":
            self._deliver(event.data)
        return False

    async def resumed(self, last_id: str, what: str) -> Reply:
        """Open the stream, or take up another one after an id.

        Raises:
            HttpFailed: The server does not go on with it.
        """
        headers = [*self._headers(), *([("Last-Event-ID", last_id)] if last_id else [])]
        reply = await self._sender.send("GET", self._endpoint.url, headers, None, what)
        if reply.status == 200 and media_type(reply.header("content-type")) == EVENTS:
            return reply
        body = await self._sender.excerpt(reply, what)
        reply.close()
        self._gone = session_is_gone(reply.status, error_in(body))
        if reply.status == 200:
            raise HttpFailed(
                f"{what}: a GET is answered with no stream of events", status=200, url=self._endpoint.shown
            )
        raise self._sender.refusal(reply, what, body)

    def _say_begun(self) -> None:
        if self._begun is not None and not self._begun.done():
            self._begun.set_result(None)
