"""A client of the time server beside it: start it, look around, call it, read, listen, and leave.

python examples/time_client.py
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from modelwire import Client, ToolError, ToolsChanged, types

SERVER = Path(__file__).with_name("time_server.py")
LOG = "file:///internal/server_log.txt"


def show_log(message: types.LoggingMessageNotificationParams) -> None:
    print(f"  log ({message.level}): {message.data}")


def show_progress(done: float, total: float | None, message: str | None) -> None:
    print(f"  progress: {done:g} of {total:g}" if total else f"  progress: {done:g}")


async def main() -> None:
    # A command, as a list. `Client("time_server.py")` does as well, where no arguments are needed.
    command = [sys.executable, str(SERVER), "--echo-after", "1"]
    async with Client(command, on_log=show_log) as client:
        print(f"{client.server_info.name if client.server_info else 'a server'} speaks {client.revision}")

        print("Tools:")
        for tool in await client.list_tools():
            print(f"  {tool.name}: {tool.description}")
        print("Resources:")
        for resource in await client.list_resources():
            print(f"  {resource.uri}: {resource.name}")
        print("Prompts:")
        for prompt in await client.list_prompts():
            print(f"  {prompt.name}: {prompt.description}")

        print("Calls:")
        print(f"  {await client.call('get_current_time')}")
        print(f"  {await client.call('get_current_time_v2', {'timezone': 'Europe/London'})}")
        try:
            await client.call("get_current_time_v2", {"timezone": "Mars/Olympus"})
        except ToolError as error:
            print(f"  the tool says no: {error}")
        await client.set_log_level("info")  # in 2026-07-28 nothing is logged to a client that does not ask
        await client.call("build_project", {"steps": 3}, on_progress=show_progress)

        await wait_for_tool(client, "echo")
        print(f"A new tool: {await client.call('echo', {'message': '你好'}, returns=str)}")

        review = await client.get_prompt("code_review", {"pr_number": 42, "focus": "安全"})
        print(f"Prompt: {text_of(review.messages[0].content)}")

        print("The server's log:")
        for part in (await client.read_resource(LOG)).contents:
            if isinstance(part, types.TextResourceContents):
                print("  " + part.text.replace("\n", "\n  ").rstrip())


async def wait_for_tool(client: Client, name: str) -> None:
    """Wait until the server has a tool: first listen, then look, so that no change can slip through in between."""
    async with client.listen(tools=True) as events:
        while name not in {tool.name for tool in await client.list_tools()}:
            async for event in events:
                if isinstance(event, ToolsChanged):
                    break


def text_of(block: object) -> str:
    return block.text if isinstance(block, types.TextContent) else f"({type(block).__name__})"


if __name__ == "__main__":
    asyncio.run(main())
