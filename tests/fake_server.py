"""A server that does exactly what a test says, right or wrong, to see what a client makes of it.

`FakeServer` is the other end of a stream in memory: frames in, frames out. `child` is the same as a process, for what
only processes do. Every frame that the client sends is held against the official schema of the revision.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Coroutine, Iterable
from typing import Any

from modelwire import Client
from modelwire.transports.memory import memory_pair
from tests.spec import ABSENT, validate_message

PATIENCE = 10.0
"""Seconds after which a test that waits has failed."""
MODERN = "2026-07-28"
HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
REVISIONS = (*HANDSHAKE, MODERN)
INFO = {"name": "fake", "version": "0"}
EVERYTHING: dict[str, Any] = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "logging": {},
}
TOLERATED = {"shutdown", "exit"}
"""What a client may send although no revision has it."""
PER_REQUEST = "io.modelcontextprotocol/"


class FakeServer:
    """One end of a conversation, scripted by a test.

    Args:
        own: Methods of the test's own, which no schema knows.
    """

    def __init__(self, own: Iterable[str] = ()) -> None:
        self.stream, self._stream = memory_pair()
        self.revision: str | None = None
        self.faults: list[str] = []
        self.unread: list[Any] = []
        """What the client has sent and nobody has looked at."""
        self.methods: list[str] = []
        """The methods of everything that the client has sent."""
        self._own = TOLERATED | set(own)
        self._asked: dict[Any, str] = {}
        self._arrival = asyncio.Event()
        self.gone = asyncio.Event()
        """Set once the client has closed."""
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        while (frame := await self._stream.receive()) is not None:
            message = json.loads(frame)
            self._check(message)
            self.unread.append(message)
            self._arrival.set()
        self.gone.set()
        self._arrival.set()

    def _check(self, message: Any) -> None:
        if ABSENT is not None:
            return
        for item in message if isinstance(message, list) else [message]:
            method = item.get("method")
            if method is not None:
                self.methods.append(method)
            if method in self._own:
                continue
            asked = self._asked.get(item.get("id")) if method is None else None
            self.faults += validate_message(self._revision_of(item), "client", item, asked)

    def _revision_of(self, message: Any) -> str:
        if message.get("method") == "server/discover":
            return MODERN
        if message.get("method") == "initialize":
            return message["params"]["protocolVersion"]
        return self.revision or "2025-11-25"

    # ------------------------------------------------------------------------------------------------- what comes

    async def next(self) -> Any:
        """Return the next message that the client sends."""
        async with asyncio.timeout(PATIENCE):
            while not self.unread:
                assert not self.gone.is_set(), "the client has closed"
                self._arrival.clear()
                await self._arrival.wait()
        return self.unread.pop(0)

    async def expect(self, method: str) -> Any:
        """Return the next message, which must be of that method."""
        message = await self.next()
        assert message.get("method") == method, message
        return message

    async def closed(self) -> None:
        """Wait until the client has closed."""
        async with asyncio.timeout(PATIENCE):
            await self.gone.wait()

    # ------------------------------------------------------------------------------------------------- what goes

    async def send(self, message: Any) -> None:
        """Send a message, or bytes as they are."""
        await self._stream.send(message if isinstance(message, bytes) else json.dumps(message).encode())

    async def result(self, request: Any, result: Any) -> None:
        """Answer a request."""
        if self.revision == MODERN and isinstance(result, dict):
            result = {"resultType": "complete", **result}
        await self.send({"jsonrpc": "2.0", "id": request["id"], "result": result})

    async def error(self, request: Any, code: int, message: str = "no", data: Any = None) -> None:
        """Answer a request with an error."""
        error = {"code": code, "message": message} | ({} if data is None else {"data": data})
        await self.send({"jsonrpc": "2.0", "id": request["id"], "error": error})

    async def notify(self, method: str, params: Any = None) -> None:
        """Send a notification."""
        await self.send({"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params}))

    async def ask(self, id_: Any, method: str, params: Any = None) -> Any:
        """Send a request and return the client's answer."""
        self._asked[id_] = method
        await self.send(
            {"jsonrpc": "2.0", "id": id_, "method": method} | ({} if params is None else {"params": params})
        )
        answer = await self.next()
        assert answer["id"] == id_, answer
        return answer

    async def progress(self, request: Any, progress: float, **more: Any) -> None:
        """Tell of progress."""
        token = request["params"]["_meta"]["progressToken"]
        await self.notify("notifications/progress", {"progressToken": token, "progress": progress, **more})

    async def hang_up(self) -> None:
        """Close."""
        await self._stream.aclose()

    async def aclose(self) -> None:
        """Close, and end the reading."""
        await self._stream.aclose()
        await self._reading

    # ------------------------------------------------------------------------------------------------- the opening

    async def open(self, revision: str, capabilities: Any = None, **more: Any) -> None:
        """Answer a client that opens: by handshake, or as a server of the per-request era.

        Args:
            revision: What to speak.
            capabilities: What to declare; by default everything.
            **more: More members of the result.
        """
        declared = EVERYTHING if capabilities is None else capabilities
        request = await self.next()
        if revision == MODERN:
            assert request["method"] == "server/discover", request
            await self.discovered(request, declared, **more)
            return
        if request["method"] == "server/discover":
            await self.error(request, -32601)
            request = await self.next()
        await self.initialized(request, revision, declared, **more)

    async def discovered(self, request: Any, capabilities: Any = None, **more: Any) -> None:
        """Answer ``server/discover``."""
        self.revision = MODERN
        result = {
            "supportedVersions": [MODERN],
            "capabilities": capabilities or {},
            "ttlMs": 0,
            "cacheScope": "private",
        }
        await self.result(request, {**result, "_meta": {f"{PER_REQUEST}serverInfo": INFO}, **more})

    async def initialized(self, request: Any, revision: str, capabilities: Any = None, **more: Any) -> None:
        """Answer ``initialize``, and see ``initialized`` come."""
        assert request["method"] == "initialize", request
        self.revision = revision
        result = {"protocolVersion": revision, "capabilities": capabilities or {}, "serverInfo": INFO}
        await self.result(request, {**result, **more})
        await self.expect("notifications/initialized")


@contextlib.asynccontextmanager
async def fake_server(own: Iterable[str] = ()) -> AsyncIterator[FakeServer]:
    """A fake server; at the end every frame that the client sent must have been right."""
    fake = FakeServer(own)
    try:
        yield fake
    finally:
        await fake.aclose()
    assert fake.faults == []


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
    async with fake_server(own) as fake:
        client = Client(fake.stream, **options)
        opening = asyncio.create_task(client.connect())
        await fake.open(revision, capabilities)
        await opening
        try:
            yield client, fake
        finally:
            await client.close()


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
        fake = FakeServer(self._own)
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


async def answered(client_call: Coroutine[Any, Any, Any], fake: FakeServer, method: str, result: Any) -> Any:
    """Run a call of the client that the server answers so; return what the call returns."""
    call = asyncio.create_task(client_call)
    await fake.result(await fake.expect(method), result)
    return await call


async def alive(client: Client, fake: FakeServer) -> None:
    """See that the conversation goes on."""
    assert await answered(client.call("x"), fake, "tools/call", text("still here")) == "still here"


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
