"""`modelwire.testing.FakeServer` with every frame of the client held against the official schema of the revision.

`child` is the same as a process, for what only processes do.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Iterable
from typing import Any

from modelwire import Client, testing
from modelwire.testing.fake_server import INFO
from tests.spec import ABSENT, validate_message

__all__ = ["INFO"]

PATIENCE = 10.0
"""Seconds after which a test that waits has failed."""
REVISIONS = testing.REVISIONS
HANDSHAKE = REVISIONS[:-1]
MODERN = REVISIONS[-1]
TOLERATED = {"shutdown", "exit"}
"""What a client may send although no revision has it."""


class FakeServer(testing.FakeServer):
    """One end of a conversation, scripted by a test.

    Args:
        own: Methods of the test's own, which no schema knows.
    """

    def __init__(self, own: Iterable[str] = ()) -> None:
        super().__init__(patience=PATIENCE)
        self._own = TOLERATED | set(own)
        self._asked: dict[Any, str] = {}

    def arrived(self, frame: bytes) -> None:
        decoded = json.loads(frame)
        for message in decoded if isinstance(decoded, list) else [decoded]:
            self._check(message)
        super().arrived(frame)

    def _check(self, message: dict[str, Any]) -> None:
        method = message.get("method")
        if ABSENT is None and method not in self._own:
            asked = self._asked.get(message.get("id")) if method is None else None
            self.faults += validate_message(self._revision_of(message), "client", message, asked)

    def _revision_of(self, message: dict[str, Any]) -> str:
        if message.get("method") == "server/discover":
            return MODERN
        if message.get("method") == "initialize":
            return message["params"]["protocolVersion"]
        return self.revision or "2025-11-25"

    async def ask(self, id: int | str, method: str, params: Any = None) -> Any:
        self._asked[id] = method
        return await super().ask(id, method, params)


@contextlib.asynccontextmanager
async def fake_server(own: Iterable[str] = ()) -> AsyncIterator[FakeServer]:
    """A fake server; at the end every frame that the client sent must have been right."""
    async with FakeServer(own) as fake:
        yield fake


@contextlib.asynccontextmanager
async def talking(
    revision: str = "2025-11-25", capabilities: Any = None, /, *, own: Iterable[str] = (), **options: Any
) -> AsyncIterator[tuple[Client, FakeServer]]:
    """A client that is connected to a fake server of a revision.

    Args:
        revision: What the server speaks; the client finds out.
        capabilities: What it declares; by default everything.
        own: Methods of the test's own.
        **options: For the client.
    """
    async with FakeServer(own) as fake, fake.connected(revision, capabilities, **options) as client:
        yield client, fake


class Comings:
    """A target for a client that may lose its connection: whenever the client connects, there is another fake server.

    Args:
        own: Methods of the test's own.
    """

    def __init__(self, own: Iterable[str] = ()) -> None:
        self._own = own
        self._arrivals: asyncio.Queue[FakeServer] = asyncio.Queue()
        self.fakes: list[FakeServer] = []
        self.absent = False
        """While set, there is nobody to connect to."""
        self.tried = 0
        """How often the client has tried to connect."""

    async def __call__(self) -> Any:
        self.tried += 1
        if self.absent:
            raise ConnectionRefusedError("nobody is there")
        fake = await FakeServer(self._own).__aenter__()
        self.fakes.append(fake)
        self._arrivals.put_nowait(fake)
        return fake.stream

    async def next(self) -> FakeServer:
        """Return the server that the client has connected to."""
        async with asyncio.timeout(PATIENCE):
            return await self._arrivals.get()

    async def opened(self, revision: str, capabilities: Any = None) -> FakeServer:
        """Return the server that the client has connected to, once it has answered the opening."""
        fake = await self.next()
        await fake.open(revision, capabilities)
        return fake


@contextlib.asynccontextmanager
async def coming_back(
    revision: str = "2025-11-25", capabilities: Any = None, /, *, own: Iterable[str] = (), **options: Any
) -> AsyncIterator[tuple[Client, FakeServer, Comings]]:
    """A client that is connected to a fake server, and will find another one when it loses it.

    Args:
        revision: What the server speaks.
        capabilities: What it declares; by default everything.
        own: Methods of the test's own.
        **options: For the client.
    """
    comings = Comings(own)
    client = Client(comings, **options)
    opening = asyncio.create_task(client.connect())
    fake = await comings.opened(revision, capabilities)
    await opening
    try:
        yield client, fake, comings
    finally:
        await client.close()
        for each in comings.fakes:
            await each.aclose()
    assert [fault for each in comings.fakes for fault in each.faults] == []


def text(words: str) -> dict[str, Any]:
    """Return a tool's result of one text."""
    return {"content": [{"type": "text", "text": words}]}


async def alive(client: Client, fake: FakeServer) -> None:
    """See that the conversation goes on."""
    assert await fake.answer(client.call("x"), "tools/call", text("still here")) == "still here"


# --------------------------------------------------------------------------------------------------- as a process

_PRELUDE = """
import json, os, signal, sys, time
def read():
    line = sys.stdin.buffer.readline()
    return json.loads(line) if line else None
def write(data):
    while data:
        data = data[os.write(1, data):]
def say(message):
    write(json.dumps(message).encode() + b"\\n")
def result(request, **members):
    say({"jsonrpc": "2.0", "id": request["id"], "result": members})
def error(request, code=-32601):
    say({"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": "no"}})
def complain(text):
    sys.stderr.write(text + "\\n")
    sys.stderr.flush()
def wait():
    while True:
        signal.pause()
def opened(request=None):
    request = request or read()
    if request["method"] == "server/discover":
        error(request)
        request = read()
    result(request, protocolVersion="2025-11-25", capabilities={"tools": {}},
           serverInfo={"name": "child", "version": "0"})
    read()
def text(request, words):
    result(request, content=[{"type": "text", "text": words}])
def serve():
    while (request := read()) is not None:
        if "id" in request:
            text(request, "done")
"""


def child(script: str, *arguments: str) -> list[str]:
    """Return the command of a server that runs a script.

    The script has ``read``, ``write``, ``say``, ``result``, ``error``, ``complain``, ``wait``, ``opened``, ``text`` and
    ``serve``.
    """
    return [sys.executable, "-I", "-S", "-c", f"{_PRELUDE}\n{script}", *arguments]
