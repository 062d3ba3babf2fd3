"""The same with the ``mcp`` package; runs in the virtual environment of the peers."""

from __future__ import annotations

import asyncio
import sys
import time

from mcp.server import MCPServer

from benchmarks.programs.mixture import mixture


def main() -> None:
    functions = mixture(int(sys.argv[1]))
    started = time.process_time()
    server = MCPServer("bench", version="1.0.0", log_level="WARNING")
    for function in functions:
        server.tool()(function)
    print(time.process_time() - started, len(asyncio.run(server.list_tools())))


if __name__ == "__main__":
    main()
