"""Servers for tests of the client's side of WebSockets: one that plays a script, one that says bytes, and a proxy."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode

Script = Callable[[ServerConnection], Awaitable[None]]


@asynccontextmanager
async def playing(script: Script, **options: Any) -> AsyncIterator[str]:
    """A server that plays a script to each client; yields its address."""

    playing: set[asyncio.Task[Any]] = set()

    async def handler(connection: ServerConnection) -> None:
        task = asyncio.ensure_future(script(connection))
        playing.add(task)
        try:
            with contextlib.suppress(ConnectionClosed, asyncio.CancelledError):
                await task
        finally:
            if task.cancelled():
                connection.transport.abort()
            playing.discard(task)

    given: dict[str, Any] = {"subprotocols": ["mcp"], "compression": None, "close_timeout": 0.5, **options}
    async with serve(handler, "127.0.0.1", 0, **given) as server:
        scheme = "ws" if "ssl" not in options else "wss"
        yield f"{scheme}://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}/mcp"
        server.close(close_connections=False)
        _, late = await asyncio.wait(playing, timeout=0.2) if playing else (None, ())
        for task in late:
            task.cancel()


@asynccontextmanager
async def saying(answer: bytes, *, close: bool = True) -> AsyncIterator[str]:
    """A server that reads the head of a request and says bytes; yields its address."""
    writers: list[asyncio.StreamWriter] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            if close:
                writer.close()

    server = await asyncio.start_server(handler, "127.0.0.1", 0)
    try:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    finally:
        server.close()
        for writer in writers:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


def say(connection: ServerConnection, opcode: Opcode, data: bytes, *, fin: bool = True) -> None:
    """Send a frame as it is."""
    connection.transport.write(Frame(opcode, data, fin).serialize(mask=False))


@asynccontextmanager
async def proxy() -> AsyncIterator[tuple[str, list[bytes]]]:
    """A proxy that lets everything through; yields its address, and what it was asked for."""
    asked: list[bytes] = []
    tasks: set[asyncio.Task[None]] = set()

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
        writer.close()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        asked.append(head.partition(b"\r\n")[0])
        port = int(head.split()[1].rpartition(b":")[2])
        up, down = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        for one in (pass_on(reader, down), pass_on(up, writer)):
            task = asyncio.create_task(one)
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(handler, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked
    finally:
        server.close()
        await asyncio.gather(*tasks)
