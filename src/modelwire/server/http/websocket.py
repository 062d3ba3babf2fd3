"""WebSocket: one text frame is one JSON-RPC message, both ways, in every revision. `docs/websocket.md` is for clients.

A connection is served like any other duplex stream; only what ASGI says of it is known here. The opening of the
connection, pings and the limits of what is read are the HTTP server's, see `modelwire.server.http.guarded_websocket`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any, Final

from modelwire.errors import ConnectionLost
from modelwire.rules.http import Refusal
from modelwire.server.http.at_work import finish
from modelwire.server.http.exchange import Incoming
from modelwire.server.http.reply import Receive, Send, refuse
from modelwire.server.lifespan import Running
from modelwire.server.serve import serve_connection

if TYPE_CHECKING:
    from modelwire.server.server import Server

SUBPROTOCOL: Final = "mcp"
ROOM: Final = 1 << 20
"""Bytes that may wait to be taken in before nothing more is received."""
MAX_WAITING: Final = 256
"""Messages that may wait likewise."""
CLOSE_SECONDS = 1.0
"""Seconds that a client may take to make room for the word that the connection is over."""

ORDERLY: Final = frozenset({1000, 1001, 1005})
"""What a client that has nothing to complain of closes with; 1005 is no code at all."""
DONE: Final = 1000
GOING_AWAY: Final = 1001
UNSUPPORTED_DATA: Final = 1003
TOO_LARGE: Final = 1009
FAILED: Final = 1011


async def refuse_socket(scope: MutableMapping[str, Any], send: Send, refusal: Refusal) -> None:
    """Refuse a WebSocket before it is one; with the reason where ASGI's server can send it, and with 403 elsewhere."""
    if "websocket.http.response" in (scope.get("extensions") or ()):

        async def before_it_is_one(message: MutableMapping[str, Any]) -> None:
            await send({**message, "type": f"websocket.{message['type']}"})

        await refuse(before_it_is_one, refusal)
        return
    with contextlib.suppress(OSError):  # it has gone
        await send({"type": "websocket.close", "code": 1008, "reason": _reason(refusal.reason)})


class WebSocketStream:
    """One client, as a `modelwire.rpc.message_stream.MessageStream`.

    Args:
        incoming: The request that was upgraded.
        receive: ASGI's.
        send: ASGI's.
        max_message: The longest message in bytes.
        running: The server's lifespan.
    """

    def __init__(self, incoming: Incoming, receive: Receive, send: Send, max_message: int, running: Running) -> None:
        self.name = incoming.peer
        self._receive = receive
        self._send = send
        self._max_message = max_message
        self._running = running
        self._sending = asyncio.Lock()
        self._inbox: deque[bytes] = deque()
        self._waiting = 0
        self._stirred = asyncio.Event()
        """Set when something arrives or the end comes."""
        self._room = asyncio.Event()
        self._over = False
        """Whether nothing more is taken in."""
        self._shut = False
        """Whether one side has closed, so that nothing can be sent any more."""
        self._problem: str | None = None
        self._ending = False
        """Whether that is because the serving ends."""
        self.heard_out: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done once everything that arrived was handed out, and no more comes."""

    # ------------------------------------------------------------------ in

    async def pump(self) -> None:
        """Take in what comes, until the client goes or is sent away."""
        try:
            while await self._take(await self._receive()):
                while not self._over and (self._waiting > ROOM or len(self._inbox) >= MAX_WAITING):
                    self._room.clear()
                    await self._room.wait()
        finally:
            self._end()

    async def _take(self, event: MutableMapping[str, Any]) -> bool:
        if event["type"] == "websocket.disconnect":
            self._shut = True
            code = event.get("code") or 1005
            if code not in ORDERLY and self._problem is None:
                reason = event.get("reason")
                self._problem = f"the WebSocket was closed with {code}{f': {reason}' if reason else ''}"
            return False
        if event["type"] != "websocket.receive" or self._over:
            return True
        text: str | None = event.get("text")
        if text is None:
            return await self._send_away(UNSUPPORTED_DATA, "messages are text frames, and this one is binary")
        frame = text.encode()
        if len(frame) > self._max_message:
            return await self._send_away(TOO_LARGE, f"a message is larger than max_message={self._max_message} bytes")
        self._inbox.append(frame)
        self._waiting += len(frame)
        self._stirred.set()
        return True

    async def _send_away(self, code: int, why: str) -> bool:
        self._problem = why
        await self._close(code, why)
        return False

    async def receive(self) -> bytes | None:
        """Return the next message; None once the client has gone, or `end` was called.

        Raises:
            ConnectionLost: The client was sent away, or went without a good word.
        """
        while not self._inbox:
            if self._over:
                if not self.heard_out.done():
                    self.heard_out.set_result(None)
                if self._problem is not None:
                    raise ConnectionLost(self._problem)
                return None
            self._stirred.clear()
            await self._stirred.wait()
        frame = self._inbox.popleft()
        self._waiting -= len(frame)
        self._room.set()
        return frame

    def _end(self) -> None:
        self._over = True
        self._stirred.set()
        self._room.set()

    def end(self) -> None:
        """Take in nothing more, since the serving ends."""
        self._ending = True
        self._inbox.clear()
        self._end()

    # ------------------------------------------------------------------ out

    async def send(self, frame: bytes) -> None:
        """Send a message, as soon as the client has room for it.

        Raises:
            ConnectionLost: The client has gone.
        """
        async with self._sending:
            if self._shut:
                raise ConnectionLost("the WebSocket is closed")
            try:
                await self._send({"type": "websocket.send", "text": frame.decode()})
            except OSError as error:
                self._shut = True
                raise ConnectionLost(f"the client has gone: {error or type(error).__name__}") from None

    async def aclose(self) -> None:
        """Say goodbye, unless the client has gone. May be called twice."""
        self._end()
        if self._ending:
            await self._close(GOING_AWAY, "the server is ending")
        elif self._running.over.done():
            await self._close(FAILED, "the server has failed")
        else:
            await self._close(DONE, "")

    async def _close(self, code: int, reason: str) -> None:
        if self._shut:
            return
        self._shut = True
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._send({"type": "websocket.close", "code": code, "reason": _reason(reason)})
        except (OSError, TimeoutError):
            return  # it has gone, or does not read


class WebSockets:
    """The clients of this transport.

    Args:
        server: The server.
        most: How many there may be.
    """

    def __init__(self, server: Server, most: int) -> None:
        self._server = server
        self._most = most
        self._serving: dict[asyncio.Task[None], WebSocketStream] = {}

    def unfit(self, scope: MutableMapping[str, Any]) -> Refusal | None:
        """Return why a client is refused whom nothing else refuses."""
        offered = scope.get("subprotocols") or ()
        if offered and SUBPROTOCOL not in offered:
            return Refusal(400, f"the subprotocol is {SUBPROTOCOL!r}; offer it, or none, and not {', '.join(offered)}")
        if len(self._serving) >= self._most:
            return Refusal(503, "there are too many WebSockets", headers={"retry-after": "60"})
        return None

    async def serve(self, running: Running, incoming: Incoming, receive: Receive, send: Send) -> None:
        """Accept a client and serve it until it leaves."""
        chosen = SUBPROTOCOL if incoming.scope.get("subprotocols") else None
        stream = WebSocketStream(incoming, receive, send, self._server.max_message, running)
        try:
            await send({"type": "websocket.accept", "subprotocol": chosen, "headers": []})
        except OSError:
            return
        serving = asyncio.create_task(
            serve_connection(self._server, stream, running, principal=incoming.principal, heartbeat=None, http=incoming)
        )
        self._serving[serving] = stream
        pumping = asyncio.create_task(stream.pump())
        try:
            await asyncio.wait([serving, pumping], return_when=asyncio.FIRST_COMPLETED)
            # Once the client has gone, both ways, what it has asked for is of no use to anybody; what it told still is.
            await asyncio.wait([serving, stream.heard_out], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (serving, pumping):
                task.cancel()
            await asyncio.wait([serving, pumping])
            del self._serving[serving]
        for task in (pumping, serving):
            if not task.cancelled():
                task.result()

    async def close(self, grace: float) -> None:
        """End every connection, once what its client has asked for is answered.

        Args:
            grace: Seconds that this may take.
        """
        for stream in self._serving.values():
            stream.end()
        await finish(list(self._serving), grace)


def _reason(text: str) -> str:
    """Return as much of a reason as a close frame has room for: "123 bytes" (RFC 6455, 5.5 and 7.1.6)."""
    return text.encode()[:120].decode(errors="ignore")
