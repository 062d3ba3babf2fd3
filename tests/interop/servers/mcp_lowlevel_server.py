"""A server on the low-level `Server` of the official Python library: pages, all kinds of content, odd codes."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    EmptyResult,
    ImageContent,
    ListResourcesResult,
    ListToolsResult,
    ReadResourceResult,
    Resource,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)

warnings.simplefilter("ignore")  # what 2026-07-28 deprecates is what older clients need
PAGE = 3
NAMES = ["kinds", "number", "nothing", "fail", "deny", "stall", "level"]
subscribed: set[str] = set()
level = "none"


async def list_tools(ctx, params) -> ListToolsResult:
    start = int(params.cursor) if params and params.cursor else 0
    more = str(start + PAGE) if start + PAGE < len(NAMES) else None
    tools = [
        Tool(
            name=name,
            title=name.title(),
            description=f"The tool {name}.",
            input_schema={"type": "object"},
            annotations=ToolAnnotations(read_only_hint=True),
            _meta={"example.org/page": start // PAGE},
        )
        for name in NAMES[start : start + PAGE]
    ]
    return ListToolsResult(tools=tools, next_cursor=more)


def kinds() -> list[Any]:
    return [
        TextContent(type="text", text="first", _meta={"example.org/n": 1}),
        ImageContent(type="image", data="AAAA", mime_type="image/png"),
        AudioContent(type="audio", data="AAAA", mime_type="audio/wav"),
        ResourceLink(type="resource_link", uri="file:///a", name="a", size=3),
        EmbeddedResource(type="resource", resource=TextResourceContents(uri="file:///a", text="abc")),
        EmbeddedResource(type="resource", resource=BlobResourceContents(uri="file:///b", blob="AAAA")),
    ]


async def call_tool(ctx, params) -> CallToolResult:
    match params.name:
        case "kinds":
            return CallToolResult(
                content=kinds(), structured_content={"a": [1, None]}, _meta={"example.org/whole": True}
            )
        case "number":
            return CallToolResult(content=[], structured_content=5)
        case "nothing":
            return CallToolResult(content=[])
        case "fail":
            return CallToolResult(
                content=[TextContent(type="text", text="half"), TextContent(type="text", text="done")], is_error=True
            )
        case "deny":
            raise MCPError(code=-31999, message="not you", data={"who": "me"})
        case "level":
            return CallToolResult(content=[TextContent(type="text", text=level)])
        case "stall":
            try:
                await asyncio.sleep(3600)
            finally:
                subscribed.add("cancelled")
        case other:
            raise MCPError(code=-32602, message=f"there is no {other}")
    raise AssertionError(params.name)


async def list_resources(ctx, params) -> ListResourcesResult:
    return ListResourcesResult(resources=[Resource(uri=uri, name=uri) for uri in sorted(subscribed)])


async def read_resource(ctx, params) -> ReadResourceResult:
    return ReadResourceResult(
        contents=[
            TextResourceContents(uri=params.uri, text="text", mime_type="text/plain"),
            BlobResourceContents(uri=f"{params.uri}/blob", blob="AAAA"),
        ]
    )


async def subscribe(ctx, params) -> EmptyResult:
    subscribed.add(params.uri)
    await ctx.session.send_resource_updated(params.uri)
    return EmptyResult()


async def unsubscribe(ctx, params) -> EmptyResult:
    subscribed.discard(params.uri)
    return EmptyResult()


async def set_level(ctx, params) -> EmptyResult:
    global level
    level = params.level
    return EmptyResult()


server = Server(
    "made-with-lowlevel",
    version="0",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_read_resource=read_resource,
    on_subscribe_resource=subscribe,
    on_unsubscribe_resource=unsubscribe,
    on_set_logging_level=set_level,
)


async def main() -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options(NotificationOptions(tools_changed=True)))


if __name__ == "__main__":
    asyncio.run(main())
