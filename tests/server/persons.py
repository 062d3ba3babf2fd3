"""A client's user and model, for tests of what servers ask: one way to answer, on every revision."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from modelwire import Server
from tests.wire import MODERN, StreamTalk, Talk, session_talk, stream_talk

EVERYTHING: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}

Answer = Callable[[str, dict[str, Any]], Any]
"""Called with the method and parameters of a question; returns the answer's JSON, None to leave it out of a round."""


class Person:
    """Holds a conversation in which the server asks.

    Args:
        talk: The conversation.
        answer: Answers the questions.
        capabilities: What was declared.
    """

    def __init__(self, talk: Talk, answer: Answer, capabilities: Mapping[str, Any]) -> None:
        self.talk = talk
        self.answer = answer
        self.capabilities = dict(capabilities)
        self.rounds: list[list[str]] = []
        """The questions that came together: their methods, by round; one list for each request on older revisions."""

    async def begin(self, method: str, params: Mapping[str, Any]) -> Any:
        meta = {"clientCapabilities": self.capabilities} if self.talk.revision == MODERN else {}
        return await self.talk.begin(method, params, **meta)

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request, answer what the server asks, and return the response."""
        if self.talk.revision == MODERN:
            return await self._in_rounds(method, params)
        pending = await self.begin(method, params)
        answered = asyncio.ensure_future(pending.answer())
        while True:
            asked = asyncio.ensure_future(self.talk.take(lambda found: "method" in found and "id" in found))
            await asyncio.wait([answered, asked], return_when=asyncio.FIRST_COMPLETED)
            if not asked.done():
                asked.cancel()
                return await answered
            question = await asked
            self.rounds.append([question["method"]])
            result = self.answer(question["method"], question.get("params", {}))
            await self.talk.send({"jsonrpc": "2.0", "id": question["id"], "result": result})

    async def _in_rounds(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        given = dict(params)
        while True:
            response = await (await self.begin(method, given)).answer()
            result = response.get("result", {})
            if result.get("resultType") != "input_required":
                return response
            given = {**params, **self.answers(result)}

    def answers(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return what the next request brings: the answers of a round, and its state."""
        questions = result.get("inputRequests", {})
        self.rounds.append([question["method"] for question in questions.values()])
        found = {key: self.answer(asked["method"], asked.get("params", {})) for key, asked in questions.items()}
        return {
            "inputResponses": {key: answer for key, answer in found.items() if answer is not None},
            "requestState": result["requestState"],
        }

    async def call(self, tool: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Call a tool and return its result."""
        response = await self.ask("tools/call", {"name": tool, "arguments": dict(arguments or {})})
        assert "result" in response, response
        return response["result"]

    async def text(self, tool: str, arguments: Mapping[str, Any] | None = None) -> str:
        """Call a tool that must succeed, and return its text."""
        result = await self.call(tool, arguments)
        assert not result.get("isError"), result
        return result["content"][0]["text"]

    async def problem(self, tool: str, arguments: Mapping[str, Any] | None = None) -> str:
        """Call a tool that must fail, and return the text of its error."""
        result = await self.call(tool, arguments)
        assert result.get("isError"), result
        return result["content"][0]["text"]


def accepting(*contents: dict[str, Any]) -> Answer:
    """Return an answer that accepts every form with these contents in turn."""
    left = list(contents)
    return lambda method, params: {"action": "accept", "content": left.pop(0)}


@contextlib.asynccontextmanager
async def person(
    server: Server, revision: str, answer: Answer, capabilities: Mapping[str, Any] = EVERYTHING, over: Any = stream_talk
) -> AsyncIterator[Person]:
    """Hold a conversation with a server that asks; every frame must have been right."""
    async with over(server, revision, opened=False) as talk:
        await talk.open(**({} if revision == MODERN else {"capabilities": _known(capabilities, revision)}))
        yield Person(talk, answer, capabilities)


def _known(capabilities: Mapping[str, Any], revision: str) -> dict[str, Any]:
    """Return what a revision can declare."""
    found = dict(capabilities)
    if revision < "2025-06-18":
        found.pop("elicitation", None)
    elif revision < "2025-11-25":
        found = {name: {} if name in ("elicitation", "sampling") else value for name, value in found.items()}
    return found


__all__ = ["EVERYTHING", "MODERN", "Person", "StreamTalk", "accepting", "person", "session_talk", "stream_talk"]
