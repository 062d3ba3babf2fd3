"""The least that answers calls of tools over HTTP: an ASGI application under uvicorn with httptools and uvloop.

It reads the body, decodes it, calls the function and answers what modelwire answers in 2026-07-28; it looks at no
header, knows no error and keeps nothing. What the cost of a server over HTTP is held against.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import uvicorn

from benchmarks.programs.bare_loop import TOOLS, Request

INFO = {"io.modelcontextprotocol/serverInfo": {"name": "bench", "version": "1.0.0"}}
_decode = msgspec.json.Decoder(Request).decode
_encode = msgspec.json.Encoder().encode


async def app(
    scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
) -> None:
    part = await receive()
    body = part["body"]
    while part.get("more_body", False):
        part = await receive()
        body += part["body"]
    request = _decode(body)
    if request.method != "tools/call":
        raise SystemExit(f"only tools/call is known here, not {request.method}")
    value = TOOLS[request.params.name](**request.params.arguments)
    result = {
        "content": [{"type": "text", "text": str(value)}],
        "structuredContent": value,
        "resultType": "complete",
        "_meta": INFO,
    }
    answer = _encode({"jsonrpc": "2.0", "id": request.id, "result": result})
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


def main() -> None:
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(sys.argv[1]),
        http="httptools",
        loop="uvloop",
        lifespan="off",
        log_level="critical",
        access_log=False,
        server_header=False,
    )


if __name__ == "__main__":
    main()
