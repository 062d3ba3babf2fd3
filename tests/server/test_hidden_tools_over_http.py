"""A tool that is not there for a client cannot be told from one that never was, by its headers neither."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

from modelwire import Context, Header, Server
from modelwire.server.http.app import App


def made() -> App:
    """A server with a tool that is only there for some, with one that is switched off, and with one for all."""
    server = Server("regions")

    def known(ctx: Context) -> bool:
        return ctx.http is not None and "x-known" in ctx.http.headers

    async def look(region: Annotated[str, Header("Region")]) -> str:
        return f"a look at {region}"

    server.add_tool(look, name="open")
    server.add_tool(look, name="off", enabled=False)
    server.add_tool(look, name="for-the-known", enabled=known)
    return server.asgi()


async def call(app: App, name: str, **headers: str) -> tuple[int, dict[str, Any]]:
    """Call a tool with an argument that a header is to repeat, and return the status and the message."""
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params: dict[str, Any] = {"name": name, "arguments": {"region": "west"}, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    given = {
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": name,
        **{header.replace("_", "-"): value for header, value in headers.items()},
    }
    requests = [{"type": "http.request", "body": body}]
    sent: list[Any] = []

    async def receive() -> Any:
        return requests.pop() if requests else await asyncio.Event().wait()

    async def send(part: Any) -> None:
        sent.append(part)

    raw = [(header.encode(), value.encode()) for header, value in given.items()]
    await app({"type": "http", "method": "POST", "path": "/mcp", "headers": raw}, receive, send)
    return sent[0]["status"], json.loads(b"".join(part["body"] for part in sent[1:]))


async def test_a_call_without_the_header_is_refused_where_the_tool_is_there() -> None:
    app = made()
    for name, headers in (("open", {}), ("for-the-known", {"x_known": "1"})):
        status, message = await call(app, name, **headers)
        assert (status, message["error"]["code"]) == (400, -32020)
        status, message = await call(app, name, mcp_param_region="east", **headers)
        assert (status, message["error"]["code"]) == (400, -32020)
        status, message = await call(app, name, mcp_param_region="west", **headers)
        assert (status, message["result"]["content"][0]["text"]) == (200, "a look at west")
    await app.aclose()


async def test_where_it_is_not_there_the_answer_is_that_of_a_tool_that_never_was() -> None:
    app = made()
    for headers in ({}, {"mcp_param_region": "east"}, {"mcp_param_region": "west"}):
        never = await call(app, "never", **headers)
        for name in ("off", "for-the-known"):
            status, message = await call(app, name, **headers)
            assert (status, message["error"]["code"]) == (never[0], never[1]["error"]["code"]) == (400, -32602)
            assert message["error"]["message"].replace(name, "never") == never[1]["error"]["message"]
    await app.aclose()
