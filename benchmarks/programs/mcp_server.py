"""The same server, written with the ``mcp`` package; runs in the virtual environment of the peers.

Its log is turned down and text results are told to be text alone, so that it does what modelwire does and no more.
"""

from __future__ import annotations

import sys

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError

from benchmarks.programs import tools


def add_kit(server: MCPServer) -> None:
    server.tool(structured_output=False)(tools.echo)

    @server.tool(structured_output=False)
    async def steps(ctx: Context) -> str:
        for step in range(1, tools.STEPS + 1):
            await ctx.report_progress(step, tools.STEPS)
        return "done"

    @server.tool(structured_output=False)
    async def refuse() -> str:
        raise ToolError(tools.REFUSAL)

    @server.resource(tools.PAGE_URI, mime_type="text/plain")
    async def page() -> str:
        return tools.PAGE_TEXT


def main() -> None:
    server = MCPServer("bench", version="1.0.0", log_level="WARNING")
    for function in tools.functions(sys.argv[1]):
        server.tool(structured_output=None if function.__annotations__["return"] == "int" else False)(function)
    if sys.argv[1] == tools.KIT:
        add_kit(server)
    server.run()


if __name__ == "__main__":
    main()
