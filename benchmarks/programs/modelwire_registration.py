"""Registers as many tools as its argument says, and prints the CPU seconds that took and how many tools there are."""

from __future__ import annotations

import asyncio
import sys
import time

from benchmarks.programs.mixture import mixture
from modelwire import Client, Server


async def count(server: Server) -> int:
    async with Client(server) as client:
        return len(await client.list_tools())


def main() -> None:
    functions = mixture(int(sys.argv[1]))
    started = time.process_time()
    server = Server("bench", version="1.0.0")
    for function in functions:
        server.tool(function)
    print(time.process_time() - started, asyncio.run(count(server)))


if __name__ == "__main__":
    main()
