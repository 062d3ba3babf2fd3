"""The same server over HTTP, written with the ``mcp`` package: sessionless, answering with JSON where it can."""

from __future__ import annotations

import sys

import uvicorn
from mcp.server import MCPServer

from benchmarks.programs import tools
from benchmarks.programs.mcp_server import add_kit


def main() -> None:
    server = MCPServer("bench", version="1.0.0", log_level="WARNING")
    for function in tools.functions(sys.argv[1]):
        server.tool(structured_output=None if function.__annotations__["return"] == "int" else False)(function)
    if sys.argv[1] == tools.KIT:
        add_kit(server)
    app = server.streamable_http_app(json_response=sys.argv[2] == "json", stateless_http=True)
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(sys.argv[-1]),
        log_level="critical",
        access_log=False,
        server_header=False,
    )


if __name__ == "__main__":
    main()
