"""A client that sends exactly what a test says, right or wrong, to see what a server makes of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, cast

from modelwire.rpc.message_stream import MessageStream
from modelwire.server.server import Server
from modelwire.testing.patterns import shown
from modelwire.testing.scripted import Scripted, is_per_request, request_meta
from modelwire.testing.served import Served


def key_of(id: Any) -> str:
    """Return an id as a key: 1 and "1" are two."""
    return json.dumps(id)


def _is_answer(message: Any) -> bool:
    return isinstance(message, list) or "method" not in message


class Pending:
    """A request that was sent.

    Attributes:
        id: Its id.
    """

    def __init__(self, id: Any, method: str, answer: asyncio.Future[dict[str, Any]], patience: float) -> None:
        self.id = id
        self._method = method
        self._answer = answer
        self._patience = patience

    @property
    def done(self) -> bool:
        """Whether the answer has come."""
        return self._answer.done()

    async def answer(self) -> dict[str, Any]:
        """Wait for the response, and return it whole.

        Raises:
            AssertionError: None came in time, or the server has closed.
        """
        try:
            async with asyncio.timeout(self._patience):
                return await asyncio.shield(self._answer)
        except TimeoutError:
            raise AssertionError(f"{self._method} was not answered within {self._patience:g} s") from None

    async def result(self) -> dict[str, Any]:
        """Wait for the response, which must be a result, and return that."""
        return await self._member("result")

    async def error(self) -> dict[str, Any]:
        """Wait for the response, which must be an error, and return that."""
        return await self._member("error")

    async def _member(self, name: str) -> dict[str, Any]:
        answer = await self.answer()
        if name not in answer:
            raise AssertionError(f"{self._method} was answered with no {name}: {shown(answer)}")
        return answer[name]


class FakeClient(Scripted):
    """The client's end of a conversation, moved by a test; an ``async with`` block.

    Answers go to the requests that wait for them. What else comes is in the ``inbox``.

    Args:
        target: A `Server`, which is then served in memory, or a stream to one.
        revision: What is spoken.
        patience: Seconds after which a test that waits has failed.

    Example:
        ```
        async with FakeClient(server, "2025-11-25") as fake:
            await fake.open()
            request = await fake.begin_call("slow")
            await fake.cancel(request)
            assert await fake.quiet()
        ```
    """

    def __init__(self, target: Server | MessageStream, revision: str = "2025-11-25", *, patience: float = 10.0) -> None:
        stream = Served(target) if isinstance(target, Server) else target
        super().__init__(stream, "server", patience)
        self.revision = revision
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._last_id = 0

    # ------------------------------------------------------------------ sending

    async def open(self, **params: Any) -> dict[str, Any]:
        """Open as the revision has it; return the result of ``initialize``, or of ``server/discover``.

        Args:
            **params: Members of ``initialize`` other than the usual.
        """
        if is_per_request(self.revision):
            return await self.result("server/discover")
        usual = {"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        result = await self.result("initialize", {"protocolVersion": self.revision, **usual, **params})
        await self.notify("notifications/initialized")
        return result

    async def begin(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        id: int | str | None = None,
        revision: str | None = None,
        **meta: Any,
    ) -> Pending:
        """Send a request and go on.

        Args:
            method: The method.
            params: Its params, without what a per-request revision wants in each.
            id: Its id; by default the next number.
            revision: Another revision than the conversation's.
            **meta: More entries for ``_meta``.
        """
        if id is None:
            self._last_id += 1
            id = self._last_id
        whole = dict(params or {})
        added = request_meta(revision or self.revision, **meta)
        if added:
            whole["_meta"] = added
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": id, "method": method}
        if whole or params is not None:
            message["params"] = whole
        answer = self._waiting[key_of(id)] = asyncio.get_running_loop().create_future()
        await self.send(message)
        return Pending(id, method, answer, self.patience)

    async def request(self, method: str, params: Mapping[str, Any] | None = None, **options: Any) -> dict[str, Any]:
        """Send a request and return the whole response. Options are those of `begin`."""
        return await (await self.begin(method, params, **options)).answer()

    async def result(self, method: str, params: Mapping[str, Any] | None = None, **options: Any) -> dict[str, Any]:
        """Send a request and return its result. Options are those of `begin`."""
        return await (await self.begin(method, params, **options)).result()

    async def error(self, method: str, params: Mapping[str, Any] | None = None, **options: Any) -> dict[str, Any]:
        """Send a request and return its error. Options are those of `begin`."""
        return await (await self.begin(method, params, **options)).error()

    async def begin_call(self, tool: str, arguments: Mapping[str, Any] | None = None, **options: Any) -> Pending:
        """Call a tool and go on. Options are those of `begin`."""
        return await self.begin("tools/call", {"name": tool, "arguments": dict(arguments or {})}, **options)

    async def call(self, tool: str, arguments: Mapping[str, Any] | None = None, **options: Any) -> dict[str, Any]:
        """Call a tool and return its result. Options are those of `begin`."""
        return await (await self.begin_call(tool, arguments, **options)).result()

    async def text(self, tool: str, arguments: Mapping[str, Any] | None = None, **options: Any) -> str:
        """Call a tool that must succeed, and return its text. Options are those of `begin`."""
        result = await self.call(tool, arguments, **options)
        assert not result.get("isError"), result
        return result["content"][0]["text"]

    async def cancel(self, request: Pending, reason: str | None = None) -> None:
        """Cancel a request."""
        params = {"requestId": request.id} | ({} if reason is None else {"reason": reason})
        await self.notify("notifications/cancelled", params)

    async def answer_to(self, message: Any) -> Any:
        """Send a message or bytes as they are, and return the next thing that comes and is no notification."""
        await self.send(message)
        return await self.take(_is_answer)

    # ------------------------------------------------------------------ receiving

    def take_in(self, message: Any) -> None:
        """Give an answer to the request that waits for it; anything else goes to the inbox."""
        waiting = None
        if isinstance(message, dict) and "method" not in message and "id" in message:
            waiting = self._waiting.pop(key_of(cast("dict[str, Any]", message)["id"]), None)
        if waiting is not None and not waiting.done():
            waiting.set_result(cast("dict[str, Any]", message))
        else:
            super().take_in(message)

    async def settle(self) -> None:
        """Wait until all that the server had sent or was about to send has come: one more request is answered."""
        for _ in range(5):
            await asyncio.sleep(0)
        await self.request("server/discover" if is_per_request(self.revision) else "ping")
        for _ in range(5):
            await asyncio.sleep(0)

    async def quiet(self) -> bool:
        """Whether nothing at all comes that was not asked for, up to the answer to one more request."""
        await self.settle()
        return not self.inbox

    def over(self) -> None:
        """Note that nothing more will come; what still waits for an answer fails."""
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(AssertionError("the server has closed"))
                waiting.exception()
        super().over()
