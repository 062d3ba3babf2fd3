"""HTTP+SSE of 2024-11-05: a GET opens a stream of events, which says where messages are posted to.

The stream is the client's connection, with everything in it; its end ends what the client has asked for, and there is
no coming back.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from modelwire.errors import ConnectionLost
from modelwire.protocol import jsonrpc
from modelwire.protocol.jsonrpc import InvalidFrame
from modelwire.rules import sse
from modelwire.rules.http import Refusal
from modelwire.rules.lines import BOM
from modelwire.server.http.answers import SILENCE, STREAM_HEADERS
from modelwire.server.http.at_work import finish
from modelwire.server.http.exchange import Incoming
from modelwire.server.http.heads import EVENTS_PATH, MESSAGES_PATH
from modelwire.server.http.reply import Receive, Send, gone, refuse, respond
from modelwire.server.lifespan import Running
from modelwire.server.serve import serve_connection

if TYPE_CHECKING:
    from modelwire.server.server import Server

MAX_WAITING: Final = 256
"""Messages that may wait to be taken in, of one client that does not read its answers."""
MAX_WAITING_BYTES: Final = 8 << 20
"""The same in bytes; one message may always wait."""


class EventStream:
    """One client, as a `modelwire.rpc.message_stream.MessageStream`: posts come in, events go out.

    Args:
        send: ASGI's.
        principal: Whose it is.
        name: Who it is, for people.
    """

    def __init__(self, send: Send, principal: str | None, name: str) -> None:
        self.principal = principal
        self.name = name
        self._send = send
        self._sending = asyncio.Lock()
        self._inbox: deque[bytes] = deque()
        self._waiting = 0
        self._arrival = asyncio.Event()
        self._closed = False

    def put(self, frame: bytes) -> bool:
        """Take in a message; False where too many wait already."""
        if len(self._inbox) >= MAX_WAITING or (self._inbox and self._waiting + len(frame) > MAX_WAITING_BYTES):
            return False
        self._inbox.append(frame)
        self._waiting += len(frame)
        self._arrival.set()
        return True

    async def receive(self) -> bytes | None:
        """Return the next message; None once the client has gone or the stream was closed."""
        while not self._inbox and not self._closed:
            self._arrival.clear()
            await self._arrival.wait()
        if self._closed:
            return None
        frame = self._inbox.popleft()
        self._waiting -= len(frame)
        return frame

    async def send(self, frame: bytes) -> None:
        """Send a message, as soon as the client has room for it.

        Raises:
            ConnectionLost: The client has gone.
        """
        await self.say(sse.event(frame))

    async def begin(self, endpoint: str) -> None:
        """Begin, with the place that messages are posted to."""
        await self._send({"type": "http.response.start", "status": 200, "headers": [*STREAM_HEADERS]})
        await self.say(sse.event(endpoint.encode(), name="endpoint"))

    async def say(self, event: bytes, *, more: bool = True) -> None:
        """Send bytes of the stream.

        Raises:
            ConnectionLost: The client has gone.
        """
        try:
            async with self._sending:
                await self._send({"type": "http.response.body", "body": event, "more_body": more})
        except OSError as error:
            raise ConnectionLost(f"the client closed its stream of events: {error}") from None

    async def keep_alive(self) -> None:
        """Say now and then that it is still there."""
        while True:
            await asyncio.sleep(SILENCE)
            await self.say(sse.COMMENT)

    def end(self) -> None:
        """Take in nothing more."""
        self._closed = True
        self._arrival.set()

    async def aclose(self) -> None:
        self.end()


class OldSse:
    """The clients of this transport.

    Args:
        server: The server.
        most: How many there may be.
    """

    def __init__(self, server: Server, most: int) -> None:
        self._server = server
        self._most = most
        self._streams: dict[str, EventStream] = {}
        self._serving: set[asyncio.Future[None]] = set()

    async def answer(self, running: Running, incoming: Incoming, receive: Receive, send: Send) -> None:
        """Answer a request to one of `modelwire.server.http.heads.SSE_PATHS`."""
        if incoming.scope["method"] == "POST":
            await self._post(incoming, send)
        elif len(self._streams) >= self._most:
            await refuse(send, Refusal(503, "too many clients", headers={"retry-after": "60"}))
        else:
            await self._get(running, incoming, receive, send)

    async def _get(self, running: Running, incoming: Incoming, receive: Receive, send: Send) -> None:
        stream = EventStream(send, incoming.principal, incoming.peer)
        id_ = secrets.token_urlsafe(24)
        self._streams[id_] = stream
        prefix = incoming.scope.get("root_path", "").rstrip("/")
        endpoint = f"{prefix}{MESSAGES_PATH}?session_id={id_}"
        serving = asyncio.ensure_future(self._served(running, stream, incoming, endpoint))
        self._serving.add(serving)
        helpers = [asyncio.ensure_future(gone(receive)), asyncio.ensure_future(stream.keep_alive())]
        try:
            await asyncio.wait([serving, *helpers], return_when=asyncio.FIRST_COMPLETED)
        finally:
            del self._streams[id_]
            for task in (serving, *helpers):
                task.cancel()
            await asyncio.wait([serving, *helpers])
            self._serving.discard(serving)
            _heard(helpers[1])
        if not serving.cancelled():
            serving.result()

    async def _served(self, running: Running, stream: EventStream, incoming: Incoming, endpoint: str) -> None:
        try:
            await stream.begin(endpoint)
            await serve_connection(
                self._server, stream, running, principal=stream.principal, heartbeat=None, http=incoming
            )
            await stream.say(b"", more=False)
        except (ConnectionLost, OSError):
            return

    async def _post(self, incoming: Incoming, send: Send) -> None:
        query = parse_qs(incoming.scope.get("query_string", b"").decode("latin-1"))
        stream = self._streams.get(query.get("session_id", [""])[0])
        if stream is None or stream.principal != incoming.principal:
            await refuse(send, Refusal(404, f"no such stream; open one with GET {EVENTS_PATH}"))
            return
        body = incoming.body.removeprefix(BOM)
        try:
            jsonrpc.decode(body)
        except InvalidFrame as invalid:
            await respond(send, 400, jsonrpc.encode_error(invalid.id, invalid.code, invalid.reason))
            return
        if stream.put(body):
            await respond(send, 202)
        else:
            await refuse(send, Refusal(503, "the client does not read its answers"))

    async def close(self, grace: float) -> None:
        """End every stream, once what its client has asked for is answered.

        Args:
            grace: Seconds that this may take.
        """
        for stream in self._streams.values():
            stream.end()
        await finish(list(self._serving), grace)


def _heard(task: asyncio.Future[None]) -> None:
    if not task.cancelled():
        task.exception()  # the client has gone, which is no failure
