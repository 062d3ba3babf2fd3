"""One server in two ways: as `server.run` serves it, without ASGI where that can be, and mounted under plain uvicorn.

What is heard of either, and what is left in it, is brought into a form in which the two can be compared.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import re
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any

import uvicorn
import uvloop

from modelwire import Context, Server
from modelwire.rpc.observer import Observer
from modelwire.server.http.app import App
from modelwire.server.http.direct import Direct
from tests.server.http.events import Reader
from tests.server.http.raw import connected
from tests.server.http.servers import Bench, make
from tests.wire import PATIENCE

WAYS = ("direct", "mounted")
LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}
MAX_MESSAGE = 200_000
_SESSION = re.compile(rb"(mcp-session-id: )\S+", re.IGNORECASE)
_UNLIKE = {"date", "server", "mcp-session-id"}


class Heard(Observer):
    """What an observer was told of."""

    def __init__(self) -> None:
        self.frames: list[tuple[str, Any]] = []

    def frame(self, direction: Any, frame: bytes) -> None:
        if b"list_changed" not in frame:  # those of one turn are told of together, and turns are not the same
            self.frames.append((direction, frame))


@dataclass
class Way:
    """A server that is served in one of the two ways.

    Attributes:
        app: The application.
    """

    bench: Bench
    url: str
    heard: Heard
    app: App = field(init=False)

    def connections(self) -> list[Any]:
        """What is open of connections, where they are served without ASGI."""
        return [
            each
            for each in gc.get_objects()
            if isinstance(each, Direct) and each.app is self.app and each in each.connections
        ]

    def state(self) -> Any:
        """What is kept of sessions and of requests."""
        sessions = [
            (
                found.busy,
                found.own.log.last > 0,  # changes of one turn are told of together, and turns are not the same
                found.own.heard,
                found.own.reply is not None,
                [(each.number, each.begun, each.ended, each.log.last, each.heard) for each in found.streams.values()],
                len(found.connection.calls),
            )
            for found in self.app._sessions._found.values()
        ]
        return sessions, len(self.app._at_work._responses), len(self.app._silences._streams), self.bench.events


def bench(heard: Iterable[Observer] = ()) -> Bench:
    """The tools of `tests.server.http.servers`, and some more."""
    found = make(max_message=MAX_MESSAGE, observers=list(heard))
    server = found.server

    @server.tool
    async def quick(text: str = "quick") -> int:
        return len(text)

    @server.tool
    async def short() -> str:
        await asyncio.sleep(0)
        return "short"

    @server.tool
    async def tells(ctx: Context, count: int = 3) -> str:
        for number in range(count):
            ctx.progress(number + 1)
        return "told"

    @server.tool
    async def polls(ctx: Context) -> str:
        ctx.progress(1)
        ctx.close_stream(retry=5)
        ctx.progress(2)
        await asyncio.sleep(0)
        return "polled"

    @server.tool
    async def restless(name: str) -> str:
        server.add_tool(lambda: name, name=name)
        server.changed("tools")
        server.remove_tool(name)
        return name

    return found


@contextlib.asynccontextmanager
async def served(way: str, *, observed: bool = False) -> AsyncIterator[Way]:
    """Serve it."""
    heard = Heard()
    found = bench([heard] if observed else [])
    serving = found.server.serving("http://127.0.0.1:0/mcp") if way == "direct" else _mounted(found.server)
    async with serving as here:
        result = Way(found, str(here.url), heard)
        (result.app,) = (each for each in gc.get_objects() if isinstance(each, App) and each._server is found.server)
        yield result
        found.go.set()


@dataclass
class _Mounted:
    url: str


@contextlib.asynccontextmanager
async def _mounted(server: Server) -> AsyncIterator[_Mounted]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = uvicorn.Config(
            server.asgi("/mcp"), http="httptools", ws="none", lifespan="on", loop="none", log_config=None,
            access_log=False, server_header=False, timeout_keep_alive=75, timeout_graceful_shutdown=1,
        )  # fmt: skip
        uvicorn_ = uvicorn.Server(config)
        task = asyncio.create_task(uvicorn_._serve([listening]))
        while not uvicorn_.started:
            await asyncio.sleep(0.001)
        try:
            yield _Mounted(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp")
        finally:
            uvicorn_.should_exit = True
            await task


def both(loop: str, what: Callable[[Way], Coroutine[Any, Any, Any]], *, observed: bool = False) -> list[Any]:
    """Do the same to a server in each of the ways; return what it returned, and what was left."""

    async def one(way: str) -> Any:
        async with asyncio.timeout(6 * PATIENCE), served(way, observed=observed) as here:
            told = await what(here)
            await settled(here)
            return told, here.state(), sorted(here.heard.frames)  # those of several requests may cross

    found: list[Any] = []
    for way in WAYS:
        with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
            found.append(runner.run(one(way)))
    return found


async def settled(way: Way) -> None:
    """Wait until nothing changes any more."""
    before: Any = None
    while (now := repr(way.state())) != before:
        before = now
        await asyncio.sleep(0.03)  # more than `modelwire.server.http.reply.SOON_GONE`


async def exchanged(url: str, pieces: Iterable[bytes], methods: Iterable[str]) -> list[Any]:
    """Send pieces over one connection and return the responses, which end with it."""
    async with connected(url) as http:

        async def send() -> None:
            with contextlib.suppress(ConnectionError):
                for piece in pieces:
                    http.writer.write(piece)
                    await http.writer.drain()
                    await asyncio.sleep(0.0005)

        sending = asyncio.create_task(send())
        data = b""
        try:
            async with asyncio.timeout(PATIENCE):
                while chunk := await http.reader.read(1 << 16):
                    data += chunk
        except (TimeoutError, ConnectionError) as error:
            return [*responses(data, methods), repr(error)]
        finally:
            sending.cancel()
        return responses(data, methods)


def responses(data: bytes, methods: Iterable[str]) -> list[Any]:
    """Responses as they came one after another: status, headers, and what was said."""
    found: list[Any] = []
    left = iter(methods)
    while data:
        head, end, data = data.partition(b"\r\n\r\n")
        if not end:
            return [*found, ("half a head", head)]
        first, *lines = head.decode("latin-1").split("\r\n")
        status = int(first.split()[1])
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if status == 100:
            found.append((status,))
            continue
        body, data = _body(headers, data, next(left, "?"))
        shown = sorted((name, value) for name, value in headers.items() if name not in _UNLIKE)
        found.append((first, shown, "mcp-session-id" in headers, body))
    return found


def _body(headers: dict[str, str], data: bytes, method: str) -> tuple[Any, bytes]:
    if method == "HEAD":
        return None, data
    if "transfer-encoding" not in headers:
        size = int(headers.get("content-length", len(data)))
        return said(headers, data[:size]), data[size:]
    body = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        count = int(size, 16)
        body += data[:count]
        data = data[count + 2 :]
        if not count:
            return said(headers, body), data
    return ("cut off", said(headers, body)), b""


def said(headers: dict[str, str], body: bytes) -> Any:
    """What a body says: JSON, or events."""
    kind = headers.get("content-type", "")
    if kind == "text/event-stream":
        reader = Reader()
        events = [(event.id, json.loads(event.data)) for event in reader.feed(body)]
        return events, reader.last_id, reader.retry, reader.comments
    return json.loads(body) if kind == "application/json" and body else body
