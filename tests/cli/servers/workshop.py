"""A server for the tests of the command line; it serves under ``__main__``."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from modelwire import Context, Server, ToolError

server = Server("workshop", version="1.2.3")


@server.tool
def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b


@server.tool
def show(text: str, number: float = 0, flag: bool = False, items: list[str] | None = None) -> dict[str, Any]:
    return {"text": text, "number": number, "flag": flag, "items": items}


@server.tool
def arguments() -> list[str]:
    return sys.argv[1:]


@server.tool
def variable(name: str) -> str | None:
    return os.environ.get(name)


@server.tool
def fail() -> str:
    print("the cause is on stderr", file=sys.stderr)
    raise ToolError("no luck today")


@server.tool
def crash(depth: int = 20) -> str:
    """Two functions in turn, so that the traceback is long: repeated lines would be left out of it."""
    return deeper(depth) if depth else str({}["boom"])


def deeper(depth: int) -> str:
    return crash(depth - 1)


@server.tool
async def steps(count: int, ctx: Context, witness: str | None = None) -> str:
    """Goes on for ever after its steps if there is a witness: a file that learns why it was cancelled."""
    for step in range(1, count + 1):
        ctx.progress(step, count, f"step {step}")
    ctx.log.info("all steps are done")
    if witness is not None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            with open(witness, "w") as file:
                file.write(str(ctx.cancel_reason))
            raise
    return "walked"


@server.tool
async def hang() -> None:
    print("hanging", file=sys.stderr)
    await asyncio.Event().wait()


@server.tool
async def grow(name: str) -> str:
    server.add_tool(lambda: "late", name=name)
    return "grown"


@server.tool
def leave() -> None:
    print("leaving in a hurry", file=sys.stderr, flush=True)
    os._exit(3)


@server.resource("file:///notes.txt")
def notes() -> str:
    return "Notizen\n日本語"


@server.resource("file:///blob", mime_type="image/png")
def blob() -> bytes:
    return b"\x89PNG" * 10


@server.prompt
def review(pr: int, focus: str | None = None) -> str:
    """Review a change."""
    return f"Review {pr}, mind {focus}."


async def appear_later() -> None:
    await asyncio.sleep(0.2)
    server.add_tool(lambda word: word, name="echo")


if __name__ == "__main__":
    server.run()
