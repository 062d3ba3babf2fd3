"""A modelwire client of the server whose command, or URL, follows the revision in the arguments."""

from __future__ import annotations

import asyncio
import sys

from benchmarks.programs.client_loop import obey
from modelwire import Client


async def main() -> None:
    revision, *command = sys.argv[1:]
    target = command[0] if command[0].startswith("http://") else command
    async with Client(target, revision=revision) as client:

        async def add(a: int, b: int) -> object:
            return (await client.call_tool("add", {"a": a, "b": b})).structured_content

        await obey(add)


if __name__ == "__main__":
    asyncio.run(main())
