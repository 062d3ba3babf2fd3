"""A server with something of everything, for tests that throw things at it."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from typing import Annotated, Any, Literal

import msgspec

from modelwire import Context, NotFound, RpcError, Server, ToolError, types

TOOLS = (
    "add", "upper", "inline", "shape", "anything", "fail", "refuse", "tool_error", "cancel_itself", "by_hand", "exit",
)  # fmt: skip
PROMPTS = ("greet", "review")
URIS = ("note://fixed", "note://bytes", "item://7/part", "item://7/part?note=x", "item://x/part", "note://gone")
TEMPLATES = ("item://{number}/part{?note}",)
OWN_METHOD = "acme/echo"


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.5
    label: Literal["a", "b"] | None = None


def expected_failure(record: logging.LogRecord) -> bool:
    """Whether a logged error is about a handler that fails on purpose."""
    return any(name in record.getMessage() for name in ("'fail'", "'cancel_itself'", "'exit'"))


def rich_server(page_size: int | None = 3) -> Server:
    """Return a new server with tools, resources, templates, prompts, completion and a method of its own."""
    server = Server("rich", version="1", instructions="Break me.", page_size=page_size)
    _add_tools(server)
    _add_failing_tools(server)
    _add_resources(server)
    _add_prompts(server)

    @server.method(OWN_METHOD)
    async def echo(params: dict[str, Any]) -> dict[str, Any]:
        return {"echo": {key: value for key, value in params.items() if key != "_meta"}}

    return server


def _add_tools(server: Server) -> None:
    @server.tool
    async def add(a: int, b: Annotated[int, msgspec.Meta(ge=0)] = 1) -> int:
        return a + b

    @server.tool
    def upper(text: str) -> str:
        return text.upper()

    @server.tool(inline=True)
    def inline(values: list[float], ctx: Context) -> list[float]:
        ctx.progress(1, 2, "half")
        ctx.log.warning({"values": len(values)})
        return sorted(values)

    @server.tool
    async def shape(points: list[Point], names: dict[str, int] | None = None) -> dict[str, int]:
        return {"points": len(points), **(names or {})}

    @server.tool
    async def anything(value: Any = None) -> Any:
        return value

    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    server.add_tool(types.Tool("by_hand", schema), lambda arguments, ctx: arguments["n"])


def _add_failing_tools(server: Server) -> None:
    @server.tool
    async def fail() -> None:
        raise ValueError("on purpose")

    @server.tool
    async def refuse() -> None:
        raise RpcError(1234, "refused", {"why": "on purpose"})

    @server.tool
    async def tool_error() -> None:
        raise ToolError("no")

    @server.tool
    async def cancel_itself() -> None:
        raise asyncio.CancelledError

    @server.tool
    def exit() -> None:
        raise SystemExit(3)


def _add_resources(server: Server) -> None:
    @server.resource("note://fixed", mime_type="text/plain")
    def fixed() -> str:
        return "fixed"

    @server.resource("note://bytes")
    async def raw() -> bytes:
        return b"\x00\xff"

    @server.resource("note://gone")
    async def gone() -> str:
        raise NotFound("gone", uri="note://gone")

    @server.resource("item://{number}/part{?note}")
    async def item(number: int, note: str = "") -> dict[str, Any]:
        return {"number": number, "note": note}


def _add_prompts(server: Server) -> None:
    @server.prompt
    def greet(name: str = "you") -> str:
        return f"Greet {name}"

    @server.prompt
    async def review(number: int, focus: str | None = None) -> list[str]:
        return [f"Review {number}", focus or "all of it"]

    @server.complete("review", "focus")
    async def focus(prefix: str) -> list[str]:
        return [word for word in ("speed", "safety") if word.startswith(prefix)]

    @server.complete("item://{number}/part{?note}", "number")
    def number(prefix: str, arguments: dict[str, str]) -> list[str]:
        return [prefix + str(n) for n in range(200)]
