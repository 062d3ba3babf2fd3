"""WebSockets for tests: to an application in this process, and to one behind uvicorn; each carries a `Talk`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.protocol import State

from modelwire import Server
from tests.wire import PATIENCE, Talk


class AsgiSocket:
    """A WebSocket to an application in this process, and a stream of messages.

    Attributes:
        accepted: What it was accepted with.
        refused: The status and body of its refusal, where the extension is there.
        closed: The code and reason that the application closed it with.
    """

    def __init__(self, app: Any, path: str = "/mcp", headers: Mapping[str, str] | None = None, **scope: Any) -> None:
        given = {"host": "127.0.0.1:8000", **(headers or {})}
        found = {
            "type": "websocket",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": "ws",
            "path": path,
            "query_string": b"",
            "root_path": "",
            "headers": [(key.lower().encode(), value.encode("latin-1")) for key, value in given.items()],
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", 8000),
            "subprotocols": ["mcp"],
            "extensions": {"websocket.http.response": {}},
            **scope,
        }
        self.accepted: Mapping[str, Any] | None = None
        self.refused: tuple[int, bytes] | None = None
        self.closed: tuple[int, str] | None = None
        self.reads = asyncio.Event()
        self.reads.set()
        self.received = 0
        self._in: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._out: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._status = 0
        self._left = False
        self._in.put_nowait({"type": "websocket.connect"})
        self.task = asyncio.create_task(app(found, self._receive, self._send))
        self.task.add_done_callback(lambda _: self._out.put_nowait(None))

    async def _receive(self) -> dict[str, Any]:
        event = await self._in.get()
        self.received += 1
        return event

    async def _send(self, message: Mapping[str, Any]) -> None:
        await self.reads.wait()
        if self._left:
            raise OSError("the client has gone")
        kind = message["type"]
        if kind == "websocket.accept":
            self.accepted = message
        elif kind == "websocket.send":
            assert self.accepted is not None
            assert message.get("bytes") is None
            self._out.put_nowait(message["text"].encode())
        elif kind == "websocket.close":
            assert self.closed is None
            self.closed = (message["code"], message["reason"])
        elif kind == "websocket.http.response.start":
            self._status = message["status"]
        else:
            self.refused = (self._status, message["body"])

    async def done(self) -> None:
        """Wait until the application has let go of it."""
        async with asyncio.timeout(PATIENCE):
            await self.task

    async def say(self, text: str | None = None, data: bytes | None = None) -> None:
        """Send a frame."""
        self._in.put_nowait({"type": "websocket.receive", "text": text, "bytes": data})

    async def leave(self, code: int = 1000, reason: str = "") -> None:
        """Close it, and wait until the application has let go of it."""
        self._left = True
        self.reads.set()
        self._in.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
        await self.done()

    async def send(self, frame: bytes) -> None:
        await self.say(frame.decode())

    async def receive(self) -> bytes | None:
        return await self._out.get()

    async def aclose(self) -> None:
        if not self.task.done():
            await self.leave()


class RawSocket:
    """A connection of `websockets` as a stream of messages; every frame that comes must be a text."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    async def send(self, frame: bytes) -> None:
        await self.connection.send(frame, text=True)

    async def receive(self) -> bytes | None:
        try:
            found = await self.connection.recv()
        except ConnectionClosed:
            return None
        assert isinstance(found, str)
        return found.encode()

    async def aclose(self) -> None:
        await self.connection.close()

    async def closed(self) -> tuple[int | None, str | None]:
        """Wait for the end; return the code and the reason that the server has closed it with."""
        async with asyncio.timeout(PATIENCE):
            while await self.receive() is not None:
                pass
            await self.connection.wait_closed()
        received = self.connection.protocol.close_rcvd
        return (None, None) if received is None else (received.code, received.reason)


@asynccontextmanager
async def raw_socket(url: str, **options: Any) -> AsyncIterator[RawSocket]:
    """Open a WebSocket to a server."""
    given: dict[str, Any] = {"subprotocols": ["mcp"], "proxy": None, "max_size": None, "close_timeout": 1, **options}
    connection = await connect(url, **given)
    try:
        yield RawSocket(connection)
    finally:
        if connection.state is not State.CLOSED:
            await connection.close()


class SocketTalk(Talk):
    """A conversation over a WebSocket."""

    stream: Any


@asynccontextmanager
async def talking(stream: Any, revision: str, *, opened: bool = True, **params: Any) -> AsyncIterator[SocketTalk]:
    """Hold a conversation over a stream; at the end every frame must have been right."""
    async with SocketTalk(stream, revision) as talk:
        if opened:
            await talk.open(**params)
        yield talk
    talk.check()


@asynccontextmanager
async def asgi_socket(server: Server, **options: Any) -> AsyncIterator[Any]:
    """Serve a server in this process; yields what opens WebSockets to it. At the end no task of it may be left."""
    before = asyncio.all_tasks()
    app = server.asgi(**options)
    opened: list[AsgiSocket] = []

    def open_(path: str = "/mcp", headers: Mapping[str, str] | None = None, **scope: Any) -> AsgiSocket:
        opened.append(AsgiSocket(app, path, headers, **scope))
        return opened[-1]

    open_.app = app  # type: ignore[attr-defined]
    try:
        yield open_
    finally:
        for one in opened:
            await one.aclose()
        async with asyncio.timeout(PATIENCE):
            await app.aclose()
    for _ in range(10):
        await asyncio.sleep(0)
    assert asyncio.all_tasks() - before == set()
