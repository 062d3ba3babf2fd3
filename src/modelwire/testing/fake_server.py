"""A server that does exactly what a test says, right or wrong, to see what a client makes of it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable
from typing import Any, TypeVar, cast

from modelwire.client.client import Client
from modelwire.errors import RpcError
from modelwire.protocol.revisions import LATEST
from modelwire.rpc.message_stream import MessageStream
from modelwire.testing.patterns import Absent
from modelwire.testing.scripted import PER_REQUEST, Scripted, is_per_request
from modelwire.transports.memory import memory_pair

T = TypeVar("T")

INFO = {"name": "fake", "version": "0"}
EVERYTHING: dict[str, Any] = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "logging": {},
}
"""What a fake server declares unless it is told otherwise."""


class FakeServer(Scripted):
    """The server's end of a conversation, moved by a test; an ``async with`` block.

    Args:
        patience: Seconds after which a test that waits has failed.

    Attributes:
        stream: What to give to a client.
        revision: What was opened with `open`.

    Example:
        ```
        async with FakeServer() as fake, fake.connected("2025-11-25") as client:
            call = asyncio.create_task(client.call("add", {"a": 1}, returns=int))
            request = await fake.expect({"method": "tools/call", "params": {"name": "add", "arguments": {"a": 1}}})
            await fake.result(request, {"content": [{"type": "text", "text": "2"}]})
            assert await call == 2
        ```
    """

    def __init__(self, *, patience: float = 10.0) -> None:
        ours, theirs = memory_pair()
        super().__init__(ours, "client", patience)
        self.stream: MessageStream = theirs
        self.revision: str | None = None

    @property
    def methods(self) -> list[str]:
        """The methods of everything that the client has sent."""
        return [message["method"] for message in self.frames.received({"method": str})]

    # ------------------------------------------------------------------ answers

    async def result(self, request: Any, result: Any) -> None:
        """Answer a request; where results say so, as a complete one.

        Args:
            request: The request.
            result: The result.
        """
        if self.revision is not None and is_per_request(self.revision) and isinstance(result, dict):
            result = {"resultType": "complete", **cast("dict[str, Any]", result)}
        await self.send({"jsonrpc": "2.0", "id": request["id"], "result": result})

    async def error(self, request: Any, code: int, message: str = "no", data: Any = None) -> None:
        """Answer a request with an error."""
        error = {"code": code, "message": message} | ({} if data is None else {"data": data})
        await self.send({"jsonrpc": "2.0", "id": request["id"], "error": error})

    async def answer(self, call: Awaitable[T], pattern: Any, result: Any) -> T:
        """Run a call of the client, answer its request, and return what the call returns.

        Args:
            call: The call.
            pattern: What the request must be like; the name of a method, or a pattern.
            result: The result that it is answered with.
        """
        running = asyncio.ensure_future(call)
        try:
            await self.result(await self.expect(pattern), result)
        except BaseException:
            running.cancel()
            await asyncio.wait([running])
            raise
        return await running

    async def play(self, *steps: tuple[Any, Any]) -> None:
        """Expect requests and notifications one after the other, and answer each.

        Args:
            *steps: What must come, a pattern or the name of a method; and what it is answered with: a result, an
                `RpcError`, or None for no answer.

        Example:
            ```
            await fake.play(
                ("tools/list", {"tools": []}),
                ({"method": "tools/call", "params": {"name": "add"}}, RpcError(-32603, "out of order")),
                ("notifications/cancelled", None),
            )
            ```
        """
        for pattern, answer in steps:
            message = await self.expect(pattern)
            if isinstance(answer, RpcError):
                await self.error(message, answer.code, answer.message, answer.data)
            elif answer is not None:
                await self.result(message, answer)

    async def ask(self, id: int | str, method: str, params: Any = None) -> Any:
        """Send a request, and return the client's answer, whole, which must be the next thing to come."""
        await self.send({"jsonrpc": "2.0", "id": id, "method": method} | ({} if params is None else {"params": params}))
        return await self.expect({"id": id, "method": Absent})

    async def progress(self, request: Any, progress: float, **more: Any) -> None:
        """Tell of a request's progress; the request must have asked for it."""
        token = request["params"]["_meta"]["progressToken"]
        await self.notify("notifications/progress", {"progressToken": token, "progress": progress, **more})

    # ------------------------------------------------------------------ the opening

    async def open(self, revision: str, capabilities: Any = None, **more: Any) -> None:
        """Answer a client that opens, as a server that speaks this revision does.

        Args:
            revision: The revision.
            capabilities: What to declare; by default everything.
            **more: More members of the result.
        """
        declared = EVERYTHING if capabilities is None else capabilities
        request = await self.next()
        if is_per_request(revision):
            await self.discovered(request, declared, revision=revision, **more)
            return
        if request.get("method") == "server/discover":
            await self.error(request, -32601)
            request = await self.next()
        await self.initialized(request, revision, declared, **more)

    async def discovered(
        self, request: Any, capabilities: Any = None, *, revision: str = LATEST.name, **more: Any
    ) -> None:
        """Answer ``server/discover``."""
        assert request.get("method") == "server/discover", f"expected server/discover, got {request}"
        self.revision = revision
        result: dict[str, Any] = {
            "supportedVersions": [revision],
            "capabilities": capabilities or {},
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {f"{PER_REQUEST}serverInfo": INFO},
        }
        await self.result(request, {**result, **more})

    async def initialized(self, request: Any, revision: str, capabilities: Any = None, **more: Any) -> None:
        """Answer ``initialize``, and see ``notifications/initialized`` come."""
        assert request.get("method") == "initialize", f"expected initialize, got {request}"
        self.revision = revision
        result = {"protocolVersion": revision, "capabilities": capabilities or {}, "serverInfo": INFO}
        await self.result(request, {**result, **more})
        await self.expect("notifications/initialized")

    @contextlib.asynccontextmanager
    async def connected(
        self, revision: str = "2025-11-25", capabilities: Any = None, /, **options: Any
    ) -> AsyncGenerator[Client]:
        """Return an ``async with`` block with a client that is connected to this server.

        Args:
            revision: What the server speaks; the client finds out.
            capabilities: What it declares; by default everything.
            **options: For the `Client`.
        """
        client = Client(self.stream, **options)
        opening = asyncio.create_task(client.connect())
        try:
            await self.open(revision, capabilities)
            await opening
            yield client
        finally:
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)
            await client.close()
