"""The modelwire server that clients of others are set on: a tool of each kind of type, and every feature once.

``python -m tests.interop.server`` serves over stdio, with an endpoint behind it there.
"""

from __future__ import annotations

import asyncio
import base64
import sys
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta

from modelwire import (
    Audio,
    Context,
    EmbeddedResource,
    Image,
    NotFound,
    ResourceLink,
    RpcError,
    Server,
    ToolError,
    types,
)
from tests.server.kinds import KINDS

PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNg+F8PAAKHAYDrR7qSAAAAAElFTkSuQmCC")
PEOPLE = ["Ada", "Alan", "Grace"]
PAGE = 10

server = Server(
    "made-with-modelwire", version="1.2.3", title="Made with modelwire", instructions="Ask nicely.", page_size=PAGE
)


def tool_name(kind: str) -> str:
    """Return the name of the tool that takes and returns a value of a kind."""
    return f"kind-{kind.replace(' ', '-')}"


def register_kinds() -> None:
    for kind, (annotation, *_) in KINDS.items():

        def function(v: Any) -> Any:
            return v

        function.__annotations__ = {"v": annotation, "return": annotation}
        server.tool(name=tool_name(kind), inline=True)(function)


register_kinds()


@server.tool
async def show() -> list[str | Image | Audio | ResourceLink | EmbeddedResource]:
    return [
        "all kinds of content",
        Image(PIXEL),
        Audio(b"RIFF", mime_type="audio/wav"),
        ResourceLink("notes://all", name="notes"),
        EmbeddedResource("notes://ada", text="a note on Ada"),
    ]


@server.tool
async def refuse(why: str) -> None:
    raise ToolError(why)


@server.tool
async def crash() -> None:
    raise ValueError("hunter2")


@server.tool
async def deny() -> None:
    raise RpcError(4711, "not you", {"who": "me"})


@server.tool
async def steps(ctx: Context, count: int = 3) -> str:
    """Take each step once the client has called `go_on`: it has then heard of the one before."""
    for step in range(1, count + 1):
        ctx.progress(step, count, f"step {step}")
        ctx.log.info({"step": step}, logger="steps")
        ctx.log.debug("too fine")
        await gone_on.acquire()
    return "done"


gone_on = asyncio.Semaphore(0)


@server.tool
async def go_on() -> None:
    gone_on.release()


@server.tool
async def hurry(ctx: Context) -> str:
    """Say everything at once."""
    for step in range(1, 4):
        ctx.progress(step)
    return "done"


@server.tool
async def stall(ctx: Context) -> None:
    ctx.progress(1)
    try:
        await asyncio.Event().wait()
    finally:
        seen_cancelled.append(str(ctx.request_id))


seen_cancelled: list[str] = []


@dataclass
class Guests:
    count: Annotated[int, Meta(ge=1)]


@server.tool
async def cancelled() -> int:
    return len(seen_cancelled)


@server.tool
async def book(hotel: str, ctx: Context) -> str:
    """Ask the user, then the model and for roots side by side."""
    guests = await ctx.elicit("How many guests?", Guests)
    written, roots = await asyncio.gather(ctx.sample(f"Welcome {guests.count} guests.", max_tokens=20), ctx.roots())
    assert isinstance(written.content, types.TextContent)
    return f"{hotel} for {guests.count}: {written.content.text}, {[root.uri for root in roots]}"


@server.tool
async def change() -> str:
    async def new() -> None: ...

    server.add_tool(new, name="new")
    server.changed("notes://ada")
    return "changed"


@server.resource("notes://all", mime_type="application/json")
async def notes() -> dict[str, list[str]]:
    return {"people": PEOPLE}


@server.resource("notes://pixel", mime_type="image/png")
async def pixel() -> bytes:
    return PIXEL


@server.resource("notes://{person}")
async def note(person: str) -> str:
    if person == "nobody":
        raise NotFound("nobody is nobody")
    return f"a note on {person}"


@server.prompt(title="Greeting")
async def greet(person: Annotated[str, Meta(description="who is greeted")], tone: str = "friendly") -> str:
    """Have somebody greeted."""
    return f"Write a {tone} greeting for {person}."


@server.complete("greet", "person")
async def people(typed: str, arguments: dict[str, str]) -> list[str]:
    if arguments.get("tone") == "rude":
        return []
    return [person for person in PEOPLE if person.startswith(typed)]


if __name__ == "__main__":
    server.run(sys.argv[1] if len(sys.argv) > 1 else None)
