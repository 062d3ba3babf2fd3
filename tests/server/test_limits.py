"""`Server(max_result=...)`: a result that is too large is an error that says how large it was."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from modelwire import ConfigError, Server, ToolError, types
from tests.wire import every_revision, session_talk

LIMIT = 2000


def generous(max_result: int | None = LIMIT) -> Server:
    server = Server("s", max_result=max_result)

    @server.tool
    def text(size: int) -> str:
        return "x" * size

    @server.tool
    def rows(size: int) -> list[str]:
        return ["x" * size]

    @server.tool
    def failing(size: int) -> str:
        raise ToolError("x" * size)

    @server.resource("big://{size}")
    def big(size: int) -> str:
        return "x" * size

    @server.resource("big://fixed")
    def fixed() -> bytes:
        return b"x" * LIMIT

    @server.prompt
    def long(size: int) -> str:
        return "x" * size

    return server


@pytest.mark.parametrize("tool", ["text", "rows", "failing"])
@every_revision
async def test_a_tools_large_result_is_an_error_that_says_how_large(
    revision: str, tool: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with session_talk(generous(), revision) as talk:
        result = await talk.result("tools/call", {"name": tool, "arguments": {"size": 5000}})
        assert result["isError"] is True
        assert "structuredContent" not in result
        (block,) = result["content"]
        assert block["text"].startswith(f"The result of the tool {tool!r} is too large: ")
        assert "at most 2000 bytes (2.0 KiB) are sent. Ask for less" in block["text"]
        small = await talk.result("tools/call", {"name": tool, "arguments": {"size": 5}})
        assert "too large" not in json.dumps(small)
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert "max_result" in record.getMessage()


@every_revision
async def test_large_resources_and_prompts_are_errors_with_the_same_words(revision: str) -> None:
    async with session_talk(generous(), revision) as talk:
        for method, params, what in [
            ("resources/read", {"uri": "big://5000"}, "resource 'big://5000'"),
            ("resources/read", {"uri": "big://fixed"}, "resource 'big://fixed'"),
            ("prompts/get", {"name": "long", "arguments": {"size": "5000"}}, "prompt 'long'"),
        ]:
            error = await talk.error(method, params)
            assert error["code"] == -32603
            assert error["message"].startswith(f"The result of the {what} is too large: {error['data']['size']} bytes")
            assert error["data"]["limit"] == LIMIT
        assert (await talk.result("resources/read", {"uri": "big://5"}))["contents"][0]["text"] == "xxxxx"
        assert (await talk.result("prompts/get", {"name": "long", "arguments": {"size": "5"}}))["messages"]


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_large_suggestions_are_an_error_with_the_same_words(revision: str) -> None:
    server = generous()
    server.add_prompt(lambda x: x, name="p")
    server.complete("p", "x")(lambda typed: ["a" * int(typed)])
    async with session_talk(server, revision) as talk:
        asked = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "x", "value": "1"}}
        assert (await talk.result("completion/complete", asked))["completion"] == {"values": ["a"]}
        asked["argument"]["value"] = str(2 * LIMIT)
        error = await talk.error("completion/complete", asked)
    assert error["code"] == -32603
    assert "The result of the completion of 'x' of 'p' is too large: " in error["message"]
    assert error["data"]["limit"] == LIMIT


@every_revision
async def test_the_limit_is_the_size_of_the_result_to_the_byte(revision: str) -> None:
    def size_of(result: Any) -> int:
        return len(json.dumps(result, separators=(",", ":"), ensure_ascii=False).encode())

    call = ("tools/call", {"name": "text", "arguments": {"size": 700}})
    read = ("resources/read", {"uri": "big://700"})
    for method, params in (call, read):
        async with session_talk(generous(None), revision) as talk:
            size = size_of(await talk.result(method, params))
        async with session_talk(generous(size), revision) as talk:
            assert size_of(await talk.result(method, params)) == size
        async with session_talk(generous(size - 1), revision) as talk:
            assert f"{size} bytes" in json.dumps(await talk.request(method, params))


async def test_handlers_of_the_low_level_and_results_put_together_by_hand_are_limited_too() -> None:
    server = Server("s", max_result=LIMIT)
    schema = {"type": "object"}
    server.add_tool(types.Tool("raw", schema), lambda arguments: "x" * 5000)
    server.add_tool(types.Tool("made", schema), lambda: types.CallToolResult([types.TextContent("x" * 5000)]))
    async with session_talk(server, "2025-11-25") as talk:
        for name in ("raw", "made"):
            result = await talk.result("tools/call", {"name": name})
            assert "too large" in result["content"][0]["text"]


async def test_without_a_limit_everything_is_sent() -> None:
    async with session_talk(generous(None), "2025-11-25") as talk:
        assert len(await talk.text("text", {"size": 100_000})) == 100_000


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_byte_is_refused(limit: int) -> None:
    with pytest.raises(ConfigError, match="max_result"):
        Server("s", max_result=limit)
