"""HTTP/1.1 over a connection, byte by byte as a test has it: what is sent is seen, and what comes is read in pieces."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from tests.server.http.asgi import BOTH, Modern
from tests.server.http.events import Event, Reader
from tests.wire import PATIENCE, dumps, modern_meta, opening


def request(method: str, headers: Mapping[str, str], body: bytes = b"", path: str = "/mcp") -> bytes:
    """A request as it crosses the wire."""
    given = {"Host": "localhost", "Content-Length": str(len(body)), **headers}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items()), "", ""]
    return "\r\n".join(lines).encode() + body


class Connection:
    """One connection, over which bytes go as they are."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def ask(self, method: str, headers: Mapping[str, str], body: bytes = b"", path: str = "/mcp") -> None:
        """Send a request."""
        self.writer.write(request(method, headers, body, path))
        await self.writer.drain()

    async def head(self) -> tuple[int, dict[str, str]]:
        """Read the head of a response."""
        async with asyncio.timeout(PATIENCE):
            first, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        pairs = (line.partition(":") for line in lines)
        return int(first.split()[1]), {name.lower(): value.strip() for name, _, value in pairs}

    async def whole(self) -> tuple[int, dict[str, str], bytes]:
        """Read a response that has a length."""
        status, headers = await self.head()
        async with asyncio.timeout(PATIENCE):
            return status, headers, await self.reader.readexactly(int(headers["content-length"]))

    async def chunk(self) -> bytes:
        """Read one chunk of a stream; nothing at its end."""
        async with asyncio.timeout(PATIENCE):
            size = int(await self.reader.readuntil(b"\r\n"), 16)
            return (await self.reader.readexactly(size + 2))[:-2]

    async def messages(self) -> list[Any]:
        """Read a stream to its end."""
        events = Reader()
        found: list[Any] = []
        while chunk := await self.chunk():
            found += [json.loads(event.data) for event in events.feed(chunk)]
        return found


@contextlib.asynccontextmanager
async def connected(url: str) -> AsyncIterator[Connection]:
    found = urlsplit(url)
    reader, writer = await asyncio.open_connection(found.hostname, found.port)
    try:
        yield Connection(reader, writer)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def call(tool: str, arguments: Mapping[str, Any] | None = None, **meta: Any) -> tuple[dict[str, str], bytes]:
    """A call of 2026-07-28: its headers and its body."""
    params = {"name": tool, "arguments": arguments or {}, "_meta": {**modern_meta(), **meta}}
    return posted({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})


def posted(message: Any) -> tuple[dict[str, str], bytes]:
    return {"Content-Type": "application/json", "Accept": BOTH, **Modern.headers(message)}, dumps(message)


async def opened(http: Connection, revision: str = "2025-11-25", path: str = "/mcp", **params: Any) -> dict[str, str]:
    """Shake hands; return the headers of the session."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening(revision, **params)}
    await http.ask("POST", {"Content-Type": "application/json", "Accept": BOTH}, dumps(message), path)
    _, headers, _ = await http.whole()
    session = {
        "Content-Type": "application/json",
        "Accept": BOTH,
        "Mcp-Session-Id": headers["mcp-session-id"],
        "MCP-Protocol-Version": revision,
    }
    await http.ask("POST", session, dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}), path)
    assert (await http.head())[0] == 202
    return session


def heard(response: bytes) -> list[Event]:
    """The events in the beginning of a streamed response, as far as it came."""
    _, _, rest = response.partition(b"\r\n\r\n")
    reader = Reader()
    found: list[Event] = []
    while b"\r\n" in rest:
        size, _, rest = rest.partition(b"\r\n")
        data, rest = rest[: int(size, 16)], rest[int(size, 16) + 2 :]
        found += reader.feed(data)
    return found


async def closed(http: Connection) -> bytes:
    """What comes until the connection is closed, however it is."""
    found = b""
    async with asyncio.timeout(PATIENCE):
        with contextlib.suppress(ConnectionError):
            while chunk := await http.reader.read(65536):
                found += chunk
    return found
