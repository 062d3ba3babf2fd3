"""Functions with schemas given by hand: sent as they are, and kept, on the way in and on the way out."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Annotated, Any

import pytest

from modelwire import Client, ConfigError, Context, Depends, Image, Server, ToolError
from modelwire import types as t
from modelwire.protocol.structured import WRAPPED
from tests.wire import HANDSHAKE, MODERN, every_revision, session_talk

GIVEN: dict[str, Any] = {
    "type": "object",
    "title": "kept",
    "properties": {"city": {"type": "string", "minLength": 2}, "rows": {"type": "array", "items": {"type": "integer"}}},
    "required": ["city"],
    "additionalProperties": {"type": "number"},
    "$comment": "sent verbatim",
}
POINT = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": False}
NUMBERS = {"type": "array", "items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "integer", "maximum": 9}}}


def everything(city: str, *rows: int, **rest: float) -> str:
    """Takes whatever the schema lets through."""
    return f"{city} {rows} {rest}"


def sender() -> str:
    return "sent by a dependency"


async def asynchronous(city: str, sent: Annotated[str, Depends(sender)], ctx: Context, **rest: Any) -> str:
    return f"{city} {sent} {ctx.method} {rest}"


@every_revision
async def test_a_schema_given_by_hand_is_sent_and_kept(revision: str) -> None:
    server = Server("s")
    server.tool(input_schema=GIVEN)(everything)
    server.add_tool(asynchronous, input_schema=GIVEN, title="A")
    async with session_talk(server, revision) as talk:
        tools = (await talk.result("tools/list"))["tools"]
        assert [tool["inputSchema"] for tool in tools] == [GIVEN, GIVEN]
        assert await talk.text("everything", {"city": "Oslo", "rows": [1, 2], "a": 1.5}) == "Oslo (1, 2) {'a': 1.5}"
        assert await talk.text("everything", {"city": "Oslo"}) == "Oslo () {}"
        assert await talk.text("asynchronous", {"city": "Oslo", "b": 2}) == (
            "Oslo sent by a dependency tools/call {'b': 2}"
        )
        result = await talk.call("everything", {"city": "O", "rows": ["x"], "a": "b"})
        assert result["isError"]
        for said in ("city: expected text of at least 2 characters", "rows[0]: expected an integer", "a: expected"):
            assert said in result["content"][0]["text"]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "array"}, 'needs "type": "object"'),
        ({}, 'needs "type": "object"'),
        ({"type": "object", "properties": {"a": {"type": "nothing"}}}, "no valid JSON Schema"),
        ({"type": "object", "$ref": "https://example.com/x"}, "points to nothing within the schema"),
    ],
)
def test_an_input_schema_that_is_none_is_refused(schema: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Server("s").add_tool(everything, input_schema=schema)


async def forecast(x: Any = 1) -> Any:
    return {"x": x}


async def numbers(x: Any = 1) -> list[int]:
    return [x]


async def items(x: int = 1) -> AsyncIterator[int]:
    yield x
    yield x + 1


@every_revision
async def test_an_output_schema_given_by_hand_is_sent_and_kept(revision: str, caplog: pytest.LogCaptureFixture) -> None:
    server = Server("s")
    server.tool(output_schema=POINT)(forecast)
    async with session_talk(server, revision) as talk:
        tool = (await talk.result("tools/list"))["tools"][0]
        result = await talk.call("forecast")
        assert result["content"] == [{"type": "text", "text": '{"x":1}'}]
        if revision in ("2024-11-05", "2025-03-26"):
            assert "outputSchema" not in tool
        else:
            assert tool["outputSchema"] == POINT
            assert result["structuredContent"] == {"x": 1}
        with caplog.at_level(logging.ERROR):
            result = await talk.call("forecast", {"x": "secret"})
        assert result["isError"]
        assert "secret" not in str(result)
        assert "forecast returned what its outputSchema does not allow: result.x: expected an integer" in caplog.text


@every_revision
async def test_what_is_no_object_is_wrapped_where_it_has_to_be(revision: str) -> None:
    server = Server("s")
    server.add_tool(numbers, output_schema=NUMBERS)
    server.add_tool(items, output_schema=NUMBERS)
    async with session_talk(server, revision) as talk:
        tools = (await talk.result("tools/list"))["tools"]
        for tool in tools:
            result = await talk.call(tool["name"], {"x": 3})
            expected = [3] if tool["name"] == "numbers" else [3, 4]
            assert result["content"][0]["text"] == str(expected).replace(" ", "")
            if revision == MODERN:
                assert tool["outputSchema"] == NUMBERS
                assert result["structuredContent"] == expected
            elif revision in ("2025-06-18", "2025-11-25"):
                assert tool["outputSchema"]["properties"]["result"] == {"type": "array", "items": {"$ref": "#/$defs/n"}}
                assert tool["_meta"][WRAPPED] is True
                assert result["structuredContent"] == {"result": expected}
            assert (await talk.call(tool["name"], {"x": 9}))["content"]
            assert (await talk.call(tool["name"], {"x": 10})).get("isError")


@pytest.mark.parametrize("revision", [HANDSHAKE[-1], MODERN])
async def test_a_client_gets_the_value_back(revision: str) -> None:
    server = Server("s")
    server.add_tool(numbers, output_schema=NUMBERS)
    async with Client(server, revision=revision) as client:
        assert (await client.list_tools())[0].output_schema == NUMBERS
        assert await client.call("numbers", {"x": 2}) == [2]
        with pytest.raises(ToolError, match="returned something it should not have"):
            await client.call("numbers", {"x": 10})


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        (t.CallToolResult([t.TextContent("a")], structured_content={"x": 1}), True),
        (t.CallToolResult([], structured_content={"x": "1"}), False),
        (t.CallToolResult([t.TextContent("no")], is_error=True), True),
        ({"x": 1, "y": 2}, False),
        ("text", False),
        (None, False),
        (Image(b"\x89PNG\r\n\x1a\n"), False),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_nothing_leaves_that_the_schema_does_not_allow(value: Any, fits: bool) -> None:
    server = Server("s")
    server.add_tool(lambda: value, name="give", output_schema=POINT)
    async with session_talk(server, MODERN) as talk:
        result = await talk.call("give")
        refused = "returned something it should not have" in str(result["content"])
        assert refused is not fits


def test_the_annotation_still_says_how_a_result_is_written() -> None:
    server = Server("s")

    def point() -> dict[str, int]:
        return {"x": 1}

    server.add_tool(point, output_schema=POINT)
    entry = server.features.tools.registry.get("point")
    assert entry is not None
    assert entry.tool.output_schema is POINT


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"output_schema": POINT, "structured": False}, "structured=False sends text only"),
        ({"output_schema": {"type": "nothing"}}, "tool 'forecast': outputSchema is no valid JSON Schema"),
        ({"output_schema": {"$schema": "http://json-schema.org/draft-07/schema#"}}, "2020-12"),
    ],
)
def test_an_output_schema_that_cannot_be_kept_is_refused(options: Any, said: str) -> None:
    server = Server("s")
    with pytest.raises(ConfigError, match=said):
        server.add_tool(forecast, **options)
    assert not len(server.features.tools.registry)
