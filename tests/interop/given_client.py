"""Calls a server over HTTP with a client of httpx or httpx2 that is given to ours; prints what came of it as JSON.

Run with this library's Python. Arguments: the library; where it is installed; the URL of a server with the tools of
`tests/transports/http/test_link.py`; the revision.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from typing import Any

name, where, url, revision = sys.argv[1:]
sys.path.append(where)
library = importlib.import_module(name)

from modelwire import Client, ConnectionFailed, RequestTimeout  # noqa: E402


async def main() -> dict[str, Any]:
    found: dict[str, Any] = {}
    progress: list[Any] = []
    async with library.AsyncClient() as http:
        async with Client(url, http=http, revision=revision) as client:
            found["revision"] = client.revision.name
            found["many"] = await asyncio.gather(*(client.call("add", {"a": n, "b": 1}, returns=int) for n in range(5)))
            found["said"] = await client.call("slow", on_progress=lambda *args: progress.append(args[0]))
            found["progress"] = progress
            try:
                await client.call("forever", timeout=0.2)
            except RequestTimeout:
                found["given up"] = True
        found["left open"] = not http.is_closed
        try:
            await Client("http://127.0.0.1:1/mcp", http=http).connect()
        except ConnectionFailed as error:
            found["error"] = str(error)
    return found


print(json.dumps(asyncio.run(main())))
