"""A modelwire client of servers written with the official Python library and with FastMCP, in both eras.

Both offer the same (`servers/offers.py`); where they differ, a test says how.
"""

from __future__ import annotations

import asyncio
import base64
import datetime
import enum
import json
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Optional

import pytest
import pytest_asyncio

from modelwire import (
    Client,
    InvalidParams,
    MethodNotFound,
    PeerError,
    ResourceNotFound,
    ResourceUpdated,
    ServerExited,
    ToolError,
    ToolsChanged,
)
from modelwire.protocol import types as t
from tests.interop.peers import LEGACY, MODERN, PATIENCE, connected, needs_python_peers, program, shared_loop

pytestmark = [needs_python_peers, shared_loop]
MCP, FASTMCP = "mcp", "fastmcp"


class Talk:
    """A conversation with one of the servers, and what was heard and asked meanwhile."""

    def __init__(self, library: str, revision: str | None) -> None:
        self.library = library
        self.modern = revision is None
        self.logs: list[t.LoggingMessageNotificationParams] = []
        self.asked: list[dict[str, Any]] = []
        self.connection = connected(
            program(f"servers/{library}_server.py"),
            revision=revision,
            on_log=self.logs.append,
            capabilities=t.ClientCapabilities(elicitation=t.ElicitationCapability(form={})),
            handlers={"elicitation/create": self.answer},
        )
        self.client: Client

    def answer(self, params: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(params)
        return {"action": "accept", "content": {"count": 3}}


@pytest_asyncio.fixture(
    scope="module",
    loop_scope="module",
    params=[(MCP, None), (MCP, LEGACY), (FASTMCP, None), (FASTMCP, LEGACY)],
    ids=lambda param: f"{param[0]} {param[1] or 'found out'}",
)
async def talk(request: pytest.FixtureRequest) -> AsyncIterator[Talk]:
    talk = Talk(*request.param)
    async with talk.connection as talk.client:
        yield talk


# ---------------------------------------------------------------------------------------------------------- values


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Place:
    name: str
    latitude: float
    visited: Optional[datetime.date] = None


@dataclass
class Tree:
    value: int
    children: list[Tree] = field(default_factory=list)


SPACE = uuid.NAMESPACE_DNS
VALUES: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "add": ({"a": 2**53 - 1, "b": -1}, int, 2**53 - 2),
    "shout": ({"text": "grüße 😀"}, str, "GRÜSSE 😀"),
    "words": ({"text": "one two"}, list[str], ["one", "two"]),
    "lengths": ({"text": "one three"}, dict[str, int], {"one": 3, "three": 5}),
    "north": (
        {"place": {"name": "Oslo", "latitude": 59.9, "visited": "2026-01-31"}, "degrees": 0.5},
        Place,
        Place("Oslo", 60.4, datetime.date(2026, 1, 31)),
    ),
    "mirrored": (
        {"tree": {"value": 1, "children": [{"value": 2}, {"value": 3}]}},
        Tree,
        Tree(1, [Tree(3), Tree(2)]),
    ),
    "next_day": ({"day": "2026-01-31"}, datetime.date, datetime.date(2026, 2, 1)),
    "named": ({"space": str(SPACE), "name": "oslo"}, uuid.UUID, uuid.uuid5(SPACE, "oslo")),
    "other": ({"colour": "red", "mode": "slow"}, Colour, Colour.BLUE),
    "maybe": ({}, Optional[int], None),
    "anything": ({"value": {"a": [None, True]}}, dict[str, Any], {"a": [None, True]}),
    "nothing": ({}, type(None), None),
}


async def test_the_server_is_known_by_name_version_and_revision(talk: Talk) -> None:
    assert talk.client.revision.name == (MODERN if talk.modern else LEGACY)
    assert talk.client.server_info is not None
    assert (talk.client.server_info.name, talk.client.server_info.version) == (f"made-with-{talk.library}", "1.2.3")
    assert talk.client.instructions == "Ask nicely."
    await talk.client.ping()


async def test_every_tool_is_listed_with_schemas_that_are_objects(talk: Talk) -> None:
    tools = {tool.name: tool for tool in await talk.client.list_tools()}
    assert VALUES.keys() < tools.keys()
    assert tools["add"].description == "Add two numbers."
    assert {tool.input_schema["type"] for tool in tools.values()} == {"object"}
    assert tools["north"].input_schema["required"] == ["place"]


@pytest.mark.parametrize("tool", VALUES)
async def test_typed_values_come_back(talk: Talk, tool: str) -> None:
    arguments, returns, value = VALUES[tool]
    found = await talk.client.call(tool, arguments, returns=returns)
    assert found == value
    assert type(found) is type(value)


async def test_pictures_and_sounds_come_back(talk: Talk) -> None:
    text, image, audio = (await talk.client.call_tool("show")).content
    assert text.text == "a picture and a sound"
    assert isinstance(image, t.ImageContent)
    assert image.mime_type == "image/png"
    assert base64.b64decode(image.data).startswith(b"\x89PNG")
    assert isinstance(audio, t.AudioContent)
    assert base64.b64decode(audio.data) == b"RIFF"


# ---------------------------------------------------------------------------------------------------------- refusals


async def test_what_a_tool_refuses_is_told_from_a_crash(talk: Talk) -> None:
    with pytest.raises(ToolError, match="the kettle is empty"):
        await talk.client.call("refuse", {"why": "the kettle is empty"})
    with pytest.raises(ToolError) as crashed:
        await talk.client.call("crash")
    # FastMCP shows what the exception says, unless it is told to mask it.
    assert ("hunter2" in str(crashed.value)) is (talk.library == FASTMCP)


async def test_wrong_arguments_and_unknown_tools_are_errors_in_the_result(talk: Talk) -> None:
    """2026-07-28 asks for -32602 for an unknown tool; both libraries answer with a result instead."""
    with pytest.raises(ToolError, match=r"(?s)a\n.*valid integer.*b\n"):
        await talk.client.call("add", {"a": "x"})
    with pytest.raises(ToolError, match="Unknown tool: '?dance"):
        await talk.client.call("dance")


async def test_a_process_that_dies_in_a_tool_is_reported_with_its_exit_code() -> None:
    async with Client(program("servers/mcp_server.py")) as client:
        with pytest.raises(ServerExited) as caught:
            await client.call("die")
        assert caught.value.exit_code == 7


# ---------------------------------------------------------------------------------------------------------- resources


async def test_resources_and_templates_are_listed_and_read(talk: Talk) -> None:
    resources = {resource.uri: resource.mime_type for resource in await talk.client.list_resources()}
    assert resources == {"notes://all": "application/json", "notes://pixel": "image/png"}
    assert [one.uri_template for one in await talk.client.list_resource_templates()] == ["notes://{person}"]

    [notes] = (await talk.client.read_resource("notes://all")).contents
    assert json.loads(notes.text) == {"people": ["Ada", "Alan", "Grace"]}
    [pixel] = (await talk.client.read_resource("notes://pixel")).contents
    assert base64.b64decode(pixel.blob).startswith(b"\x89PNG")
    [note] = (await talk.client.read_resource("notes://ada")).contents
    assert note.text == "a note on ada"


async def test_a_resource_that_is_not_there_is_told_from_one_that_fails(talk: Talk) -> None:
    with pytest.raises(ResourceNotFound):
        await talk.client.read_resource("elsewhere://x")
    with pytest.raises(PeerError, match="does not want to be read"):
        await talk.client.read_resource("notes://shy")
    # What a template's function does not find is an internal error in FastMCP, in spite of its NotFoundError.
    with pytest.raises(ResourceNotFound if talk.library == MCP else PeerError, match="nobody is nobody"):
        await talk.client.read_resource("notes://nobody")


# ---------------------------------------------------------------------------------------------------------- prompts


async def test_prompts_are_listed_and_written_out(talk: Talk) -> None:
    [prompt] = await talk.client.list_prompts()
    assert (prompt.name, prompt.title, prompt.description) == ("greet", "Greeting", "Have somebody greeted.")
    assert [(one.name, one.required) for one in prompt.arguments or ()] == [("person", True), ("tone", False)]
    [message] = (await talk.client.get_prompt("greet", {"person": "Ada", "tone": "formal"})).messages
    assert (message.role, message.content.text) == ("user", "Write a formal greeting for Ada.")


async def test_a_prompt_that_cannot_be_written_is_an_error_of_the_request(talk: Talk) -> None:
    # `mcp` has -32603 and no reason for both in 2026-07-28, and 0, which is no code of JSON-RPC, before it.
    refused = InvalidParams if talk.library == FASTMCP else PeerError
    with pytest.raises(refused):
        await talk.client.get_prompt("greet")
    with pytest.raises(refused):
        await talk.client.get_prompt("dance")


async def test_arguments_are_completed_by_what_is_typed_and_known(talk: Talk) -> None:
    assert (await talk.client.complete("greet", "person", "A")).values == ["Ada", "Alan"]
    rude = await talk.client.complete("notes://{person}", "person", "A", arguments={"tone": "rude"})
    assert rude.values == []


# ---------------------------------------------------------------------------------------------------------- meanwhile


async def test_progress_and_logs_are_heard_before_the_result(talk: Talk) -> None:
    talk.logs.clear()
    steps: list[Any] = []
    done = await talk.client.call("steps", {"count": 3}, returns=str, on_progress=lambda *step: steps.append(step))
    assert done == "done"
    assert steps == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]
    told = [log for log in talk.logs if log.level == "info"]
    assert [log.logger for log in told] == ["steps"] * 3
    # Where requests carry the level, ours is "info". Older servers choose until they are told; these send everything.
    assert any(log.level == "debug" for log in talk.logs) is not talk.modern


async def test_a_log_level_is_chosen_where_the_server_takes_one(talk: Talk) -> None:
    if talk.library == MCP and not talk.modern:
        with pytest.raises(MethodNotFound):  # it sends log messages all the same
            await talk.client.set_log_level("error")
        return
    try:
        await talk.client.set_log_level("error")
        talk.logs.clear()
        await talk.client.call("steps", {"count": 1})
        assert [log.level for log in talk.logs] == []
    finally:
        await talk.client.set_log_level("debug" if not talk.modern else "info")


async def test_a_question_is_answered_by_a_handler_or_by_hand(talk: Talk) -> None:
    """`mcp` asks in both eras; FastMCP's `ctx.elicit` refuses in 2026-07-28."""
    call = {"name": "book", "arguments": {"hotel": "Ritz"}}
    talk.asked.clear()
    if not talk.modern:
        assert await talk.client.call(call["name"], call["arguments"], returns=str) == "Ritz for 3"
        [asked] = talk.asked
        assert asked["requestedSchema"]["properties"]["count"]["maximum"] == 9
    elif talk.library == FASTMCP:
        with pytest.raises(ToolError, match="unavailable on 2026-07-28"):
            await talk.client.call(call["name"], call["arguments"])
    else:
        assert await talk.client.call(call["name"], call["arguments"], returns=str) == "Ritz for 3"
        first = await talk.client.call_tool(**call, rounds=False)
        assert isinstance(first, t.InputRequiredResult)
        answers = {key: talk.answer({}) for key in first.input_requests or {}}
        result = await talk.client.call_tool(**call, input_responses=answers, request_state=first.request_state)
        assert result.structured_content == {"result": "Ritz for 3"}


async def test_changes_are_heard(talk: Talk) -> None:
    if talk.library == FASTMCP and talk.modern:
        with pytest.raises(MethodNotFound):  # FastMCP does not serve subscriptions/listen by itself
            async with talk.client.listen(tools=True):
                pass
        return
    # In handshake revisions neither declares subscriptions of resources, nor waits for one; `mcp` declares no changes
    # of lists either. What they tell is heard all the same.
    async with talk.client.listen(tools=True, uris=["notes://ada"]) as events, asyncio.timeout(PATIENCE):
        assert events.honoured.tools_list_changed is (None if talk.library == MCP and not talk.modern else True)
        await talk.client.call("change")
        assert {await anext(events), await anext(events)} == {ToolsChanged(), ResourceUpdated("notes://ada")}
