"""An HTTP server for tests that does what a script says, byte by byte, right or wrong."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
PATIENCE = 10.0
MODERN = "2026-07-28"
HANDSHAKE = "2025-11-25"


@dataclass
class Request:
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def message(self) -> Json:
        return json.loads(self.body) if self.body else {}

    @property
    def rpc(self) -> str:
        """The method of the message in it, or the HTTP method where there is none."""
        return self.message.get("method", self.method)


class Out:
    """Where the reply to one request is written to."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.keep = True

    async def raw(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def send(self, status: int, body: bytes = b"", type: str | None = None, **headers: str) -> None:
        """Reply with a whole body."""
        head = f"HTTP/1.1 {status} x\r\ncontent-length: {len(body)}\r\n"
        head += "" if type is None else f"content-type: {type}\r\n"
        head += "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        await self.raw(head.encode() + b"\r\n" + body)

    async def json(self, message: Any, status: int = 200, **headers: str) -> None:
        await self.send(status, json.dumps(message).encode(), "application/json", **headers)

    async def result(self, request: Request, result: Json, **headers: str) -> None:
        await self.json({"jsonrpc": "2.0", "id": request.message["id"], "result": result}, **headers)

    async def error(self, request: Request | None, code: int, message: str, status: int, **more: Any) -> None:
        id_ = {} if request is None else {"id": request.message["id"]}
        await self.json({"jsonrpc": "2.0", **id_, "error": {"code": code, "message": message, **more}}, status)

    async def events(self, type: str = "text/event-stream", **headers: str) -> None:
        """Begin a stream of events, which the end of the connection ends."""
        self.keep = False
        more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        await self.raw(f"HTTP/1.1 200 OK\r\ncontent-type: {type}\r\n{more}connection: close\r\n\r\n".encode())

    async def event(self, message: Any, id: str | None = None, name: str | None = None) -> None:
        data = message if isinstance(message, str) else json.dumps(message)
        lines = [*([] if id is None else [f"id: {id}"]), *([] if name is None else [f"event: {name}"]), f"data: {data}"]
        await self.raw("".join(f"{line}\n" for line in lines).encode() + b"\n")

    def reset(self) -> None:
        """Break the connection off without a word."""
        self.keep = False
        self._writer.transport.abort()

    async def gone(self) -> None:
        """Wait until the client has hung up."""
        await self._writer.wait_closed()


Play = Callable[[Request, Out], Coroutine[Any, Any, None]]


@dataclass
class Web:
    """A server and what was asked of it."""

    url: str = ""
    requests: list[Request] = field(default_factory=list[Request])
    connections: int = 0
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a client has closed a connection while its request was being answered."""
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def asked(self, rpc: str) -> list[Request]:
        return [request for request in self.requests if request.rpc == rpc]

    async def wait_for(self, rpc: str, count: int = 1) -> Request:
        async with asyncio.timeout(PATIENCE):
            while len(self.asked(rpc)) < count:
                self._news.clear()
                await self._news.wait()
        return self.asked(rpc)[count - 1]

    def note(self, request: Request) -> None:
        self.requests.append(request)
        self._news.set()


async def _serve(found: Web, play: Play, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    found.connections += 1
    gone = asyncio.Event()
    ended = reader.feed_eof

    def feed_eof() -> None:
        ended()
        gone.set()

    reader.feed_eof = feed_eof  # type: ignore[method-assign]
    try:
        while (request := await _read(reader)) is not None:
            found.note(request)
            out = Out(writer)
            if not await _played(play(request, out), gone):
                found.hung_up.set()
            if not out.keep:
                return
    except (ConnectionError, asyncio.IncompleteReadError):
        return
    finally:
        writer.close()


async def _played(playing: Coroutine[Any, Any, None], gone: asyncio.Event) -> bool:
    """Play to the end, or until the client has hung up; say which."""
    tasks = [asyncio.ensure_future(playing), asyncio.ensure_future(gone.wait())]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    played = tasks[0].done()
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    if played:
        tasks[0].result()
    return played


@asynccontextmanager
async def web(play: Play, path: str = "/mcp", tls: ssl.SSLContext | None = None) -> AsyncIterator[Web]:
    """Serve by a script; yields the server."""
    found = Web()
    serving: list[asyncio.Task[None]] = []

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.append(asyncio.ensure_future(_serve(found, play, reader, writer)))

    server = await asyncio.start_server(begin, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    found.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{port}{path}"
    try:
        yield found
    finally:
        server.close()
        for task in serving:
            task.cancel()
        if serving:
            await asyncio.wait(serving)
        for task in serving:
            if not task.cancelled() and task.exception() is not None:
                raise AssertionError("the script failed") from task.exception()


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")[:-2]
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, path, headers, body)


# ------------------------------------------------------------------ what servers usually say

STAMP = {"ttlMs": 0, "cacheScope": "private", "resultType": "complete"}
TOOL: Json = {"name": "t", "inputSchema": {"type": "object"}}
SAID: Json = {"content": [{"type": "text", "text": "done"}], "resultType": "complete"}


def modern(on_call: Play, tools: Callable[[], list[Json]] = lambda: [TOOL]) -> Play:
    """A server of 2026-07-28; ``on_call`` answers tools/call and whatever else is asked."""

    async def play(request: Request, out: Out) -> None:
        if request.rpc == "server/discover":
            await out.result(
                request,
                {"supportedVersions": [MODERN], "capabilities": {"tools": {}, "resources": {}}, **STAMP},
            )
        elif request.rpc == "tools/list":
            await out.result(request, {"tools": tools(), **STAMP})
        else:
            await on_call(request, out)

    return play


def legacy(on_call: Play, *, session: str | None = "s1", revision: str = HANDSHAKE, get: Play | None = None) -> Play:
    """A server of a handshake revision, which answers server/discover with HTTP 400."""

    async def play(request: Request, out: Out) -> None:
        if request.rpc == "server/discover":
            await out.send(400, b"what?", "text/plain")
        elif request.rpc == "initialize":
            result = {
                "protocolVersion": revision,
                "capabilities": {"tools": {"listChanged": True}, "resources": {}},
                "serverInfo": {"name": "old", "version": "1"},
            }
            await out.result(request, result, **({} if session is None else {"mcp_session_id": session}))
        elif request.rpc == "notifications/initialized":
            await out.send(202)
        elif request.method == "GET":
            await (get(request, out) if get is not None else out.send(405))
        elif request.method == "DELETE":
            await out.send(200)
        else:
            await on_call(request, out)

    return play


async def done(request: Request, out: Out) -> None:
    """Answer with a result that says so."""
    await out.result(request, SAID)
