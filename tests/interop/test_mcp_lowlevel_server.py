"""A modelwire client of a server on the low-level `Server` of the official Python library: pages, contents, codes."""

from __future__ import annotations

import asyncio

import pytest

from modelwire import Client, InvalidParams, PeerError, RequestTimeout, ResourceUpdated, ToolError
from modelwire.protocol import types as t
from tests.interop.peers import LEGACY, PATIENCE, clients_of, needs_python_peers, program, shared_loop

pytestmark = [needs_python_peers, shared_loop]
client = clients_of(program("servers/mcp_lowlevel_server.py"), None, LEGACY)


async def test_lists_are_followed_page_by_page(client: Client) -> None:
    tools = await client.list_tools()
    assert [tool.name for tool in tools] == ["kinds", "number", "nothing", "fail", "deny", "stall", "level"]
    assert [tool.meta for tool in tools[::3]] == [{"example.org/page": page} for page in range(3)]
    assert tools[0].title == "Kinds"


async def test_every_kind_of_content_is_read(client: Client) -> None:
    result = await client.call_tool("kinds")
    assert [type(block) for block in result.content] == [
        t.TextContent,
        t.ImageContent,
        t.AudioContent,
        t.ResourceLink,
        t.EmbeddedResource,
        t.EmbeddedResource,
    ]
    text, _, _, link, embedded, blob = result.content
    assert text.meta == {"example.org/n": 1}
    assert (link.uri, link.size) == ("file:///a", 3)
    assert (embedded.resource.text, blob.resource.blob) == ("abc", "AAAA")
    assert result.structured_content == {"a": [1, None]}
    assert (result.meta or {})["example.org/whole"] is True
    parts = (await client.read_resource("file:///c")).contents
    assert [type(part) for part in parts] == [t.TextResourceContents, t.BlobResourceContents]


async def test_structured_content_may_be_anything_in_2026_07_28(client: Client) -> None:
    if client.revision.any_structured:
        assert await client.call("number", returns=int) == 5
    else:
        # The library refuses to send it to a client of an older revision.
        with pytest.raises(PeerError):
            await client.call("number", returns=int)


async def test_an_empty_result_is_nothing(client: Client) -> None:
    assert await client.call("nothing") is None


async def test_errors_keep_what_they_carry(client: Client) -> None:
    with pytest.raises(ToolError) as failed:
        await client.call("fail")
    assert [block.text for block in failed.value.content or ()] == ["half", "done"]
    with pytest.raises(PeerError, match="not you") as denied:
        await client.call("deny")
    assert (denied.value.code, denied.value.data) == (-31999, {"who": "me"})
    with pytest.raises(InvalidParams, match="there is no dance"):
        await client.call("dance")


async def test_a_call_that_takes_too_long_is_cancelled_on_the_server(client: Client) -> None:
    with pytest.raises(RequestTimeout):
        await client.call("stall", timeout=0.2)
    async with asyncio.timeout(PATIENCE):
        while "cancelled" not in [resource.uri for resource in await client.list_resources()]:
            pass


async def test_a_subscription_is_told_of_and_taken_back(client: Client) -> None:
    if client.revision.listen:
        assert client.capabilities.resources is not None
        assert not client.capabilities.resources.subscribe
        return
    async with client.listen(uris=["file:///d"]) as events, asyncio.timeout(PATIENCE):
        assert await anext(events) == ResourceUpdated("file:///d")
        assert "file:///d" in [resource.uri for resource in await client.list_resources()]
    assert "file:///d" not in [resource.uri for resource in await client.list_resources()]


async def test_the_log_level_goes_out_as_a_request_or_with_each_request(client: Client) -> None:
    await client.set_log_level("alert")
    assert await client.call("level") == ("none" if client.revision.log_level_per_request else "alert")
