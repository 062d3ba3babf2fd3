"""Finding a tool on a server, also one that appears later. Calls nothing."""

from __future__ import annotations

import asyncio

from modelwire.cli.failures import missing
from modelwire.client.client import Client
from modelwire.client.listening import Listening
from modelwire.errors import PeerError
from modelwire.protocol.types import Tool

POLL = 1.0
"""Seconds between two looks at the list of a server that does not tell of changes."""


async def find_tool(client: Client, name: str, wait: float | None) -> Tool:
    """Return a tool of the server.

    Args:
        client: The open client.
        name: The tool's name.
        wait: Seconds to wait for it to appear; None not to wait.

    Raises:
        Failure: It is not there.
    """
    tool, known = await _look(client, name)
    if tool is None and wait is not None:
        try:
            async with asyncio.timeout(wait):
                return await _appearing(client, name)
        except TimeoutError:
            tool, known = await _look(client, name)
    if tool is not None:
        return tool
    advice = (
        "If it appears later, --wait SECONDS waits for it."
        if wait is None
        else f"It did not appear within {wait:g} s (--wait)."
    )
    raise missing("tool", name, known, advice)


async def _look(client: Client, name: str) -> tuple[Tool | None, list[str]]:
    tools = await client.list_tools(fresh=True)
    return next((tool for tool in tools if tool.name == name), None), [tool.name for tool in tools]


async def _appearing(client: Client, name: str) -> Tool:
    try:
        async with client.listen(tools=True) as events:
            # The list may have changed before the listening began, so it is read again first.
            return await _until_there(client, name, events)
    except PeerError:
        return await _until_there(client, name, None)


async def _until_there(client: Client, name: str, events: Listening | None) -> Tool:
    declared = client.capabilities.tools
    told = events is not None and declared is not None and declared.list_changed
    while True:
        tool, _ = await _look(client, name)
        if tool is not None:
            return tool
        if events is not None and told:
            told = await anext(events, None) is not None
        else:
            await asyncio.sleep(POLL)
