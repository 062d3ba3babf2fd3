"""Serves `mcp_server` or `fastmcp_server` over HTTP on a free port of this machine, and prints its URL.

Arguments: the library, ``mcp`` or ``fastmcp``; then ``http``, ``json`` (every answer is JSON) or ``sse`` (2024-11-05).
"""

from __future__ import annotations

import asyncio
import importlib
import socket
import sys

import uvicorn

library, kind = sys.argv[1:]
server = importlib.import_module(f"{library}_server").server


@server.tool()
async def wait() -> str:
    await asyncio.sleep(60)
    return ""


if library == "fastmcp":
    app = server.http_app(transport="sse" if kind == "sse" else "http", json_response=kind == "json" or None)
elif kind == "sse":
    app = server.sse_app()
else:
    app = server.streamable_http_app(json_response=kind == "json")

listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
listening.bind(("127.0.0.1", 0))
listening.listen()
print(f"http://127.0.0.1:{listening.getsockname()[1]}/{'sse' if kind == 'sse' else 'mcp'}", flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1)).run([listening])
