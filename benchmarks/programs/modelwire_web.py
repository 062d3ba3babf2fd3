"""A modelwire server over HTTP, with the tools that its first argument names, as `Server.run` starts it.

With a second argument ``asgi`` before the port, the bare application runs under uvicorn as anybody would start it.
"""

from __future__ import annotations

import sys

from benchmarks.programs import tools
from benchmarks.programs.modelwire_server import add_kit
from modelwire import Server


def main() -> None:
    server = Server("bench", version="1.0.0")
    for function in tools.functions(sys.argv[1]):
        server.tool(function)
    if sys.argv[1] == tools.KIT:
        add_kit(server)
    port = sys.argv[-1]
    if sys.argv[2] != "asgi":
        server.run(f"http://127.0.0.1:{port}/mcp")
        return
    import uvicorn

    uvicorn.run(
        server.asgi(),
        host="127.0.0.1",
        port=int(port),
        http="httptools",
        loop="uvloop",
        log_level="critical",
        access_log=False,
        server_header=False,
    )


if __name__ == "__main__":
    main()
