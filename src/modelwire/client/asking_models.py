"""Has a model behind an HTTP endpoint write a message: what the endpoint is sent, and what its answer means.

Two kinds of endpoint: the chat completions that many programs offer, and Anthropic's messages. The standard library
carries the request, in a worker thread; redirects are refused, since they would take the key elsewhere. The key is
never shown or logged.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast
from urllib.parse import urlsplit

import msgspec

from modelwire.client.questions import Reply, SampleQuestion
from modelwire.errors import ConfigError, Unanswered
from modelwire.protocol import types as t

Model: TypeAlias = str | Callable[[SampleQuestion], str]
Approve: TypeAlias = Callable[[SampleQuestion], Any]
MAX_ANSWER = 16 << 20
"""The longest answer of an endpoint that is read, in bytes."""
_STOPS = {
    "stop": "endTurn",
    "length": "maxTokens",
    "tool_calls": "toolUse",
    "end_turn": "endTurn",
    "max_tokens": "maxTokens",
    "stop_sequence": "stopSequence",
    "tool_use": "toolUse",
}


class Endpoint:
    """A model behind an endpoint, as ``on_sample=``.

    Args:
        url: Where requests go.
        model: The model, or a function that chooses it.
        key: The key, or None for an endpoint that wants none.
        approve: Asked before anything is sent; False or None reject the question.
        max_tokens: How long an answer may be, whatever the server asks for.
        timeout: Seconds that an answer may take.
        extra: Further members of each request.
    """

    kind = "endpoint"

    def __init__(
        self,
        url: str,
        model: Model,
        key: str | None,
        approve: Approve | None,
        max_tokens: int | None,
        timeout: float,
        extra: Mapping[str, Any] | None,
    ) -> None:
        if urlsplit(url).scheme not in ("https", "http"):
            raise ConfigError(f"base_url must begin with https:// or http://, not {url!r}")
        self._url = url
        self._model = model
        self._key = key
        self._approve = approve
        self._most = max_tokens
        self._timeout = timeout
        self._extra = dict(extra or {})

    def __repr__(self) -> str:
        return f"<{self.kind} {self._url}>"

    async def __call__(self, question: SampleQuestion) -> t.CreateMessageResult | None:
        """Return what the model writes; None if the person does not approve.

        Raises:
            Unanswered: The endpoint does not answer, or not in a way that can be read.
        """
        if self._approve is not None:
            approved = self._approve(question)
            approved = await approved if inspect.isawaitable(approved) else approved
            if approved is not True and approved not in (Reply.ACCEPT, Reply.DONE):
                return None
        model = self._model if isinstance(self._model, str) else self._model(question)
        tokens = question.max_tokens if self._most is None else min(question.max_tokens, self._most)
        body = {key: value for key, value in self.request(question, model, tokens).items() if value is not None}
        answer = await asyncio.to_thread(self._post, msgspec.json.encode({**body, **self._extra}))
        try:
            return self.result(answer, model)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            raise Unanswered(f"{self._url} answered what is no message ({type(error).__name__}: {error})") from None

    def request(self, question: SampleQuestion, model: str, tokens: int) -> dict[str, Any]:
        """Return what the endpoint is sent; members that are None are left out."""
        raise NotImplementedError

    def result(self, answer: Any, model: str) -> t.CreateMessageResult:
        """Return what an answer of the endpoint means."""
        raise NotImplementedError

    def headers(self, key: str) -> dict[str, str]:
        """Return the headers that carry the key."""
        raise NotImplementedError

    def _post(self, body: bytes) -> Any:
        headers = {"Content-Type": "application/json", **({} if self._key is None else self.headers(self._key))}
        request = urllib.request.Request(self._url, body, headers, method="POST")
        try:
            with urllib.request.build_opener(_NoRedirect).open(request, timeout=self._timeout) as answer:
                read = answer.read(MAX_ANSWER + 1)
        except urllib.error.HTTPError as error:
            said = error.read(2000).decode(errors="replace")
            raise Unanswered(f"{self._url} answered {error.code}: {self._masked(said)}") from None
        except (OSError, ValueError) as error:
            raise Unanswered(f"{self._url} did not answer: {self._masked(str(error))}") from None
        if len(read) > MAX_ANSWER:
            raise Unanswered(f"{self._url} answered with more than {MAX_ANSWER} bytes")
        try:
            return msgspec.json.decode(read)
        except msgspec.MsgspecError as error:
            raise Unanswered(f"{self._url} answered what is no JSON: {error}") from None

    def _masked(self, text: str) -> str:
        return text if not self._key else text.replace(self._key, "***")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> None:
        return None  # the answer is then an HTTPError of its own


def key_of(api_key: str | None, variable: str, *, needed: bool) -> str | None:
    """Return a key: the one given, or the environment's.

    Raises:
        ConfigError: There is none, and one is needed.
    """
    key = api_key or os.environ.get(variable)
    if not key and needed:
        raise ConfigError(f"no key: pass api_key=, or set {variable}")
    return key or None


# --------------------------------------------------------------------------------------------------- chat completions


class ChatCompletions(Endpoint):
    """An endpoint of chat completions."""

    kind = "answers.openai"

    def headers(self, key: str) -> dict[str, str]:
        """Return the headers that carry the key."""
        return {"Authorization": f"Bearer {key}"}

    def request(self, question: SampleQuestion, model: str, tokens: int) -> dict[str, Any]:
        """Return what the endpoint is sent."""
        system = [] if question.system_prompt is None else [{"role": "system", "content": question.system_prompt}]
        mode = None if question.tool_choice is None else question.tool_choice.mode
        # The name of the limit differs between models: who gives the other one as extra= does not want this one.
        limit = {} if "max_completion_tokens" in self._extra else {"max_tokens": tokens}
        return {
            "model": model,
            "messages": system + [said for message in question.messages for said in _chat(message)],
            **limit,
            "temperature": question.temperature,
            "stop": question.stop_sequences or None,
            "tools": [_function(tool) for tool in question.tools] or None,
            "tool_choice": mode if question.tools else None,
        }

    def result(self, answer: Any, model: str) -> t.CreateMessageResult:
        """Return what an answer of the endpoint means."""
        choice = answer["choices"][0]
        said = choice["message"]
        blocks: list[Any] = [t.TextContent(said["content"])] if said.get("content") else []
        for call in said.get("tool_calls") or ():
            given: Any = msgspec.json.decode(call["function"]["arguments"] or "{}")
            blocks.append(t.ToolUseContent(call["id"], call["function"]["name"], given))
        return _message(blocks, answer.get("model") or model, choice.get("finish_reason"))


def _chat(message: t.SamplingMessage) -> list[dict[str, Any]]:
    """Return a message as chat completions have it: each tool result is one by itself."""
    blocks = _blocks(message.content)
    results = [block for block in blocks if isinstance(block, t.ToolResultContent)]
    if results:
        return [{"role": "tool", "tool_call_id": one.tool_use_id, "content": _text(one)} for one in results]
    uses = [_call(block) for block in blocks if isinstance(block, t.ToolUseContent)]
    parts = [_part(block) for block in blocks if not isinstance(block, t.ToolUseContent)]
    plain = len(parts) == 1 and parts[0]["type"] == "text"
    said: dict[str, Any] = {"role": message.role, "content": parts[0]["text"] if plain else parts or None}
    return [{**said, "tool_calls": uses} if uses else said]


def _part(block: Any) -> dict[str, Any]:
    match block:
        case t.TextContent():
            return {"type": "text", "text": block.text}
        case t.ImageContent():
            return {"type": "image_url", "image_url": {"url": f"data:{block.mime_type};base64,{block.data}"}}
        case t.AudioContent():
            sound = block.mime_type.partition("/")[2].removeprefix("x-")
            return {"type": "input_audio", "input_audio": {"data": block.data, "format": _SOUNDS.get(sound, sound)}}
        case _:
            raise Unanswered(f"this endpoint takes no content of the type {block.type!r}")


_SOUNDS = {"mpeg": "mp3", "wave": "wav"}


def _call(use: t.ToolUseContent) -> dict[str, Any]:
    given = msgspec.json.encode(use.input).decode()
    return {"id": use.id, "type": "function", "function": {"name": use.name, "arguments": given}}


def _function(tool: t.Tool) -> dict[str, Any]:
    described = {} if tool.description is None else {"description": tool.description}
    return {"type": "function", "function": {"name": tool.name, **described, "parameters": tool.input_schema}}


# --------------------------------------------------------------------------------------------------- messages


class Messages(Endpoint):
    """An endpoint of Anthropic's messages."""

    kind = "answers.anthropic"

    def headers(self, key: str) -> dict[str, str]:
        """Return the headers that carry the key, and the version of the interface."""
        return {"x-api-key": key, "anthropic-version": "2023-06-01"}

    def request(self, question: SampleQuestion, model: str, tokens: int) -> dict[str, Any]:
        """Return what the endpoint is sent."""
        mode = None if question.tool_choice is None else question.tool_choice.mode
        return {
            "model": model,
            "max_tokens": tokens,
            "system": question.system_prompt,
            "messages": [
                {"role": message.role, "content": [_content(block) for block in _blocks(message.content)]}
                for message in question.messages
            ],
            "temperature": question.temperature,
            "stop_sequences": question.stop_sequences or None,
            "tools": [_tool(tool) for tool in question.tools] or None,
            "tool_choice": {"type": _MODES[mode]} if question.tools and mode is not None else None,
        }

    def result(self, answer: Any, model: str) -> t.CreateMessageResult:
        """Return what an answer of the endpoint means; what is neither text nor a tool's use is for the model only."""
        blocks: list[Any] = []
        for block in answer["content"]:
            if block["type"] == "text":
                blocks.append(t.TextContent(block["text"]))
            elif block["type"] == "tool_use":
                blocks.append(t.ToolUseContent(block["id"], block["name"], block["input"]))
        return _message(blocks, answer.get("model") or model, answer.get("stop_reason"))


_MODES = {"auto": "auto", "required": "any", "none": "none"}


def _content(block: Any) -> dict[str, Any]:
    match block:
        case t.TextContent():
            return {"type": "text", "text": block.text}
        case t.ImageContent():
            source = {"type": "base64", "media_type": block.mime_type, "data": block.data}
            return {"type": "image", "source": source}
        case t.ToolUseContent():
            return {"type": "tool_use", "id": block.id, "name": block.name, "input": block.input}
        case t.ToolResultContent():
            failed = {"is_error": True} if block.is_error else {}
            content = [{"type": "text", "text": _text(block)}]
            return {"type": "tool_result", "tool_use_id": block.tool_use_id, "content": content, **failed}
        case _:
            raise Unanswered(f"this endpoint takes no content of the type {block.type!r}")


def _tool(tool: t.Tool) -> dict[str, Any]:
    described = {} if tool.description is None else {"description": tool.description}
    return {"name": tool.name, **described, "input_schema": tool.input_schema}


# --------------------------------------------------------------------------------------------------- both


def _blocks(content: Any) -> list[Any]:
    return cast("list[Any]", content) if isinstance(content, list) else [content]


def _text(result: t.ToolResultContent) -> str:
    """Return what a tool said, as text; what is no text is said to have been there."""
    said = [one.text if isinstance(one, t.TextContent) else f"[{one.type}]" for one in result.content]
    return "\n".join(said) or "(nothing)"


def _message(blocks: list[Any], model: str, stop: str | None) -> t.CreateMessageResult:
    content: Any = blocks[0] if len(blocks) == 1 else blocks or t.TextContent("")
    return t.CreateMessageResult(
        "assistant", content, model, stop_reason=None if stop is None else _STOPS.get(stop, stop)
    )
