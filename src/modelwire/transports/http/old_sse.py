"""HTTP+SSE of 2024-11-05: everything comes on one stream, which also says where messages are posted to.

"When a client connects, the server MUST send an endpoint event containing a URI for the client to use for sending
messages." The stream is the connection: its end is the connection's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from modelwire.errors import ConnectionLost, FrameTooLarge, HttpFailed
from modelwire.log import log as _log
from modelwire.rules.http import EVENTS
from modelwire.rules.http_request import joined, media_type, same_origin
from modelwire.rules.sse_reader import Event, EventReader
from modelwire.transports.http.endpoint import Endpoint, sendable, shown_url
from modelwire.transports.http.engine import Reply
from modelwire.transports.http.exchange import Sender, closing
from modelwire.transports.http.streams import read

FIRST_SECONDS = 10.0
"""How long the stream may take to say where messages go to."""


class OldSse:
    """One such connection.

    Args:
        sender: Sends requests.
        endpoint: The server.
        deliver: Takes each message.
        oversized: Takes note of each that is too long.
        lost: Told why the connection has ended.
    """

    def __init__(
        self,
        sender: Sender,
        endpoint: Endpoint,
        deliver: Callable[[bytes], None],
        oversized: Callable[[FrameTooLarge], None],
        lost: Callable[[ConnectionLost], None],
    ) -> None:
        self._sender = sender
        self._endpoint = endpoint
        self._deliver = deliver
        self._oversized = oversized
        self._lost = lost
        self._place: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._reading: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Open the stream.

        Raises:
            HttpFailed: The server does not speak this transport.
        """
        try:
            await self._where()
        except BaseException:
            await self.aclose()
            raise

    async def post(self, frame: bytes, what: str) -> None:
        """Deliver a message; the answer to a request comes on the stream.

        Raises:
            HttpFailed: It was not taken.
        """
        place = await self._where()
        reply = await self._sender.send("POST", place, [], frame, what)
        async with closing(reply):
            body = await self._sender.excerpt(reply, what)
            if reply.status >= 300:
                raise self._sender.refusal(reply, what, body)

    async def _where(self) -> str:
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
        await asyncio.wait([self._place], timeout=FIRST_SECONDS)
        if not self._place.done():
            shown = self._endpoint.shown
            raise HttpFailed(
                f"{shown} did not say within {FIRST_SECONDS:g} s where messages go to; "
                "a proxy in between may hold its stream back (nginx: proxy_buffering off)",
                url=shown,
            )
        return self._place.result()

    async def _read(self) -> None:
        shown = self._endpoint.shown
        why: ConnectionLost = ConnectionLost(f"{shown} closed the stream of events")
        try:
            reply = await self._opened()
            try:
                await read(self._sender, reply, EventReader(self._endpoint.max_message), self._take, "the stream broke")
            finally:
                reply.close()
        except HttpFailed as error:
            why = error
        except Exception as error:
            _log.exception("reading the stream of %s failed", shown)
            why = ConnectionLost(f"reading the stream failed: {error!r}")
        if self._place.done():
            self._lost(why)
        else:
            self._place.set_exception(_as_failure(why, shown))
            self._place.exception()

    async def _opened(self) -> Reply:
        what = "the stream was not opened"
        reply = await self._sender.send("GET", self._endpoint.url, [], None, what)
        if reply.status == 200 and media_type(reply.header("content-type")) == EVENTS:
            return reply
        body = await self._sender.excerpt(reply, what)
        reply.close()
        raise self._sender.refusal(reply, what, body)

    def _take(self, event: Event | FrameTooLarge) -> bool:
        if isinstance(event, FrameTooLarge):
            self._oversized(event)
        elif not self._place.done():
            self._begin(event)
        elif event.name == "message" and event.data:
            self._deliver(event.data)
        return False

    def _begin(self, event: Event) -> None:
        """Take the first event, which says where messages go to; another server would get what is not meant for it."""
        shown = self._endpoint.shown
        place = joined(self._endpoint.url, event.data.decode("utf-8", "replace").strip())
        if event.name != "endpoint":
            self._refuse(f"{shown} did not begin its stream with the place where messages go to")
            return
        if same_origin(place, self._endpoint.url):
            self._place.set_result(sendable(place))
        else:
            self._refuse(f"{shown} wants messages sent to {shown_url(place)}, which is another server; that is refused")

    def _refuse(self, why: str) -> None:
        self._place.set_exception(HttpFailed(why, url=self._endpoint.shown))
        self._place.exception()

    async def aclose(self) -> None:
        """Close the stream. May be called twice."""
        reading = self._reading
        if reading is not None:
            reading.cancel()
            await asyncio.wait([reading])


def _as_failure(why: ConnectionLost, shown: str) -> HttpFailed:
    return why if isinstance(why, HttpFailed) else HttpFailed(str(why), url=shown)
