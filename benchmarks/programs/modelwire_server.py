"""A modelwire server on stdio, with the tools that its first argument names."""

from __future__ import annotations

import sys

from benchmarks.programs import tools
from modelwire import Context, Server, ToolError


def add_kit(server: Server) -> None:
    server.tool(tools.echo)

    @server.tool
    async def steps(ctx: Context) -> str:
        for step in range(1, tools.STEPS + 1):
            ctx.progress(step, tools.STEPS)
        return "done"

    @server.tool
    async def refuse() -> str:
        raise ToolError(tools.REFUSAL)

    @server.resource(tools.PAGE_URI, mime_type="text/plain")
    async def page() -> str:
        return tools.PAGE_TEXT


def main() -> None:
    server = Server("bench", version="1.0.0")
    for function in tools.functions(sys.argv[1]):
        server.tool(function)
    if sys.argv[1] == tools.KIT:
        add_kit(server)
    server.run()


if __name__ == "__main__":
    main()
