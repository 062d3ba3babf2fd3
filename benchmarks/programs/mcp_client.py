"""The same client, written with the ``mcp`` package; runs in the virtual environment of the peers."""

from __future__ import annotations

import asyncio
import sys

from mcp import Client, StdioServerParameters

from benchmarks.programs.client_loop import obey


async def main() -> None:
    revision, command, *arguments = sys.argv[1:]
    # Handshake revisions cannot be chosen one by one; the newest is what the server and it will agree on.
    mode = "legacy" if revision == "2025-11-25" else revision
    url = command.startswith("http://")
    server = command if url else StdioServerParameters(command=command, args=arguments)
    async with Client(server, mode=mode) as client:
        if client.protocol_version != revision:
            raise SystemExit(f"{revision} was wanted, and {client.protocol_version} was agreed on")

        async def add(a: int, b: int) -> object:
            return (await client.call_tool("add", {"a": a, "b": b})).structured_content

        await obey(add)


if __name__ == "__main__":
    asyncio.run(main())
