"""A server on `MCPServer` of the official Python library; speaks both eras over stdio."""

from __future__ import annotations

import warnings
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver import Audio, Context, Elicit, Image, Resolve, UserMessage
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError
from mcp_types import Completion
from offers import FUNCTIONS, PEOPLE, PIXEL, Guests

warnings.simplefilter("ignore")  # what 2026-07-28 deprecates is what older clients need
server = MCPServer(
    "made-with-mcp", title="Made with mcp", version="1.2.3", instructions="Ask nicely.", log_level="CRITICAL"
)
for function in FUNCTIONS:
    server.tool()(function)


@server.tool()
def refuse(why: str) -> str:
    raise ToolError(why)


@server.tool()
def show() -> list:
    return ["a picture and a sound", Image(data=PIXEL, format="png"), Audio(data=b"RIFF", format="wav")]


@server.tool()
async def steps(count: int, ctx: Context) -> str:
    for step in range(1, count + 1):
        await ctx.report_progress(step, count, f"step {step}")
        await ctx.log("info", {"step": step}, logger_name="steps")
        await ctx.debug("too fine")
    return "done"


async def ask() -> Elicit[Guests]:
    return Elicit("How many guests?", Guests)


@server.tool()
async def book(hotel: str, guests: Annotated[Guests, Resolve(ask)]) -> str:
    return f"{hotel} for {guests.count}"


@server.tool()
async def change(ctx: Context) -> str:
    await ctx.notify_tools_changed()
    await ctx.notify_resource_updated("notes://ada")
    # Whoever speaks an older revision is told on the connection.
    if ctx.protocol_version != "2026-07-28":
        await ctx.session.send_tool_list_changed()
        await ctx.session.send_resource_updated("notes://ada")
    return "changed"


@server.resource("notes://all", mime_type="application/json")
def notes() -> dict[str, list[str]]:
    return {"people": PEOPLE}


@server.resource("notes://pixel", mime_type="image/png")
def pixel() -> bytes:
    return PIXEL


@server.resource("notes://{person}")
def note(person: str) -> str:
    if person == "nobody":
        raise ResourceNotFoundError("nobody is nobody")
    if person == "shy":
        raise ResourceError("does not want to be read")
    return f"a note on {person}"


@server.prompt(title="Greeting")
def greet(person: str, tone: str = "friendly") -> list:
    """Have somebody greeted."""
    return [UserMessage(f"Write a {tone} greeting for {person}.")]


@server.completion()
async def complete(ref, argument, context):
    chosen = [person for person in PEOPLE if person.startswith(argument.value)]
    if context and context.arguments and context.arguments.get("tone") == "rude":
        chosen = []
    return Completion(values=chosen, total=len(chosen), has_more=False)


if __name__ == "__main__":
    server.run()
