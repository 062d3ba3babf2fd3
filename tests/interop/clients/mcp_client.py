"""A client on the official Python library."""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import Client, StdioServerParameters
from mcp_types import CreateMessageResult, ElicitResult, ListRootsResult, PromptReference, Root, TextContent
from walk import Heard, read_plan, tell, walk

warnings.simplefilter("ignore")  # what 2026-07-28 deprecates is what older servers need


async def answer(context: Any, params: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"count": 3})


async def write(context: Any, params: Any) -> CreateMessageResult:
    return CreateMessageResult(role="assistant", content=TextContent(type="text", text="Welcome!"), model="none")


async def roots(context: Any) -> ListRootsResult:
    return ListRootsResult(roots=[Root(uri="file:///home")])


class Official:
    def __init__(self, client: Client, heard: Heard) -> None:
        self._client = client
        self.heard = heard
        self.legacy = client.protocol_version != "2026-07-28"

    def about(self) -> dict[str, Any]:
        info = self._client.server_info
        return {
            "revision": self._client.protocol_version,
            "server": None if info is None else [info.name, info.version, info.title],
            "instructions": self._client.instructions,
        }

    async def page(self, what: str, cursor: str | None) -> Any:
        return await getattr(self._client, f"list_{what}")(cursor=cursor, cache_mode="bypass")

    async def call(self, name: str, arguments: dict[str, Any], progress: Any = None) -> Any:
        return await self._client.call_tool(name, arguments, progress_callback=progress)

    async def read(self, uri: str) -> Any:
        return await self._client.read_resource(uri)

    async def prompt(self, name: str, arguments: dict[str, str]) -> Any:
        return await self._client.get_prompt(name, arguments)

    async def complete(self, prompt: str, argument: dict[str, str], context: dict[str, str] | None) -> list[str]:
        found = await self._client.complete(PromptReference(type="ref/prompt", name=prompt), argument, context)
        return found.completion.values

    @asynccontextmanager
    async def listening(self, uri: str) -> AsyncIterator[None]:
        if self.legacy:
            await self._client.subscribe_resource(uri)
            yield
            await self._client.unsubscribe_resource(uri)
        else:
            async with self._client.listen(tools_list_changed=True, resource_subscriptions=[uri]):
                yield


async def main() -> None:
    plan = read_plan()
    command, *arguments = plan["server"]
    heard = Heard()
    client = Client(
        plan["url"] or StdioServerParameters(command=command, args=arguments, env=plan["env"]),
        mode=plan["mode"],
        logging_callback=heard.log,
        log_level="info",
        message_handler=heard.message,
        elicitation_callback=answer,
        sampling_callback=write,
        list_roots_callback=roots,
        read_timeout_seconds=30,
    )
    async with client:
        tell(await walk(Official(client, heard), plan))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
