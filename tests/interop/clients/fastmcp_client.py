"""A client on FastMCP."""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from mcp.client.subscriptions import listen
from mcp_types import PromptReference
from walk import Heard, read_plan, tell, walk

warnings.simplefilter("ignore")


async def answer(message: str, response_type: Any, params: Any, context: Any) -> Any:
    return {"count": 3}


async def write(messages: Any, params: Any, context: Any) -> str:
    return "Welcome!"


class Fast:
    def __init__(self, client: Client, heard: Heard) -> None:
        self._client = client
        self.heard = heard
        self.legacy = client.session.protocol_version != "2026-07-28"

    def about(self) -> dict[str, Any]:
        info = self._client.session.server_info
        return {
            "revision": self._client.session.protocol_version,
            "server": None if info is None else [info.name, info.version, info.title],
            "instructions": self._client.session.instructions,
        }

    async def page(self, what: str, cursor: str | None) -> Any:
        return await getattr(self._client, f"list_{what}_mcp")(cursor=cursor, cache_mode="bypass")

    async def call(self, name: str, arguments: dict[str, Any], progress: Any = None) -> Any:
        # This is the way in which it makes a Python value of the output schema.
        return await self._client.call_tool(name, arguments, progress_handler=progress, raise_on_error=False)

    async def read(self, uri: str) -> Any:
        return await self._client.read_resource_mcp(uri)

    async def prompt(self, name: str, arguments: dict[str, str]) -> Any:
        return await self._client.get_prompt_mcp(name, arguments)

    async def complete(self, prompt: str, argument: dict[str, str], context: dict[str, str] | None) -> list[str]:
        found = await self._client.complete(PromptReference(type="ref/prompt", name=prompt), argument, context)
        return found.values

    @asynccontextmanager
    async def listening(self, uri: str) -> AsyncIterator[None]:
        session = self._client.session
        if self.legacy:
            await session.subscribe_resource(uri)
            yield
            await session.unsubscribe_resource(uri)
        else:
            # FastMCP has nothing of its own for this; what it stands on does.
            async with listen(session, tools_list_changed=True, resource_subscriptions=[uri]):
                yield


async def main() -> None:
    plan = read_plan()
    command, *arguments = plan["server"]
    heard = Heard()
    client = Client(
        plan["url"] or StdioTransport(command, arguments, env=plan["env"], keep_alive=False),
        mode=plan["mode"],
        log_handler=heard.log,
        message_handler=heard.message,
        elicitation_handler=answer,
        sampling_handler=write,
        roots=["file:///home"],
        timeout=30,
    )
    async with client:
        tell(await walk(Fast(client, heard), plan))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
