"""A modelwire client of `mcp-server-time`, a server on the official Python library that speaks both eras."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

import pytest

from modelwire import Client, InvalidParams, ToolError
from tests.interop.peers import (
    LEGACY,
    MODERN,
    OLD,
    clients_of,
    connected,
    needs_python_peers,
    python_server,
    shared_loop,
)

pytestmark = [needs_python_peers, shared_loop]
SERVER = python_server("time", "--local-timezone", "Europe/Oslo")
client = clients_of(SERVER, None, LEGACY, OLD)


@dataclass
class Time:
    timezone: str
    datetime: datetime.datetime
    day_of_week: str
    is_dst: bool


@dataclass
class Conversion:
    source: Time
    target: Time
    time_difference: str


async def test_the_server_says_who_it_is(client: Client) -> None:
    assert client.server_info is not None
    assert client.server_info.name == "mcp-time"
    assert await client.list_resources() == await client.list_prompts() == []
    await client.ping()


async def test_tools_are_listed_with_what_they_take(client: Client) -> None:
    tools = {tool.name: tool for tool in await client.list_tools()}
    assert list(tools) == ["get_current_time", "convert_time"]
    assert tools["convert_time"].input_schema["required"] == ["source_timezone", "time", "target_timezone"]
    assert "Europe/Oslo" in tools["get_current_time"].input_schema["properties"]["timezone"]["description"]


async def test_results_become_objects_on_every_revision(client: Client) -> None:
    """In 2025-03-26 there is no structured content: then the value is read from the text."""
    arguments = {"source_timezone": "Asia/Kathmandu", "time": "14:30", "target_timezone": "UTC"}
    conversion = await client.call("convert_time", arguments, returns=Conversion)
    assert conversion.time_difference == "-5.75h"
    assert conversion.source.datetime == conversion.target.datetime
    assert conversion.source.datetime.utcoffset() == datetime.timedelta(hours=5, minutes=45)
    now = await client.call("get_current_time", {"timezone": "UTC"}, returns=Time)
    assert now.datetime.utcoffset() == datetime.timedelta(0)


async def test_refusals_are_told_apart(client: Client) -> None:
    with pytest.raises(ToolError, match="Invalid timezone: .*Middle/Earth"):
        await client.call("get_current_time", {"timezone": "Middle/Earth"})
    with pytest.raises(ToolError, match="timezone"):
        await client.call("get_current_time", {})
    with pytest.raises(InvalidParams, match="Unknown tool: tell_fortune"):
        await client.call("tell_fortune", {})


async def test_the_newest_revision_is_found_out() -> None:
    async with connected(SERVER) as client:
        assert client.revision.name == MODERN
        assert [tool.output_schema is not None for tool in await client.list_tools()] == [True, True]
