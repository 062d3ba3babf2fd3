"""A server on FastMCP; speaks both eras over stdio."""

from __future__ import annotations

from fastmcp import Context, FastMCP
from fastmcp.exceptions import NotFoundError, ResourceError, ToolError
from fastmcp.prompts import Message
from fastmcp.utilities.types import Audio, Image
from mcp_types import ResourceUpdatedNotification, ResourceUpdatedNotificationParams, ToolListChangedNotification
from offers import FUNCTIONS, PEOPLE, PIXEL, Guests

server = FastMCP("made-with-fastmcp", version="1.2.3", instructions="Ask nicely.")
for function in FUNCTIONS:
    server.tool(function)


@server.tool
def refuse(why: str) -> str:
    raise ToolError(why)


@server.tool
def show() -> list:
    return ["a picture and a sound", Image(data=PIXEL, format="png"), Audio(data=b"RIFF", format="wav")]


@server.tool
async def steps(count: int, ctx: Context) -> str:
    for step in range(1, count + 1):
        await ctx.report_progress(step, count, f"step {step}")
        await ctx.log(level="info", message=f"step {step}", logger_name="steps", extra={"step": step})
        await ctx.debug("too fine")
    return "done"


@server.tool
async def book(hotel: str, ctx: Context) -> str:
    answer = await ctx.elicit("How many guests?", Guests)
    return f"{hotel} for {answer.data.count}" if answer.action == "accept" else answer.action


@server.tool
async def change(ctx: Context) -> str:
    await ctx.send_notification(ToolListChangedNotification())
    await ctx.send_notification(
        ResourceUpdatedNotification(params=ResourceUpdatedNotificationParams(uri="notes://ada"))
    )
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
        raise NotFoundError("nobody is nobody")
    if person == "shy":
        raise ResourceError("does not want to be read")
    return f"a note on {person}"


@server.prompt(title="Greeting")
def greet(person: str, tone: str = "friendly") -> list[Message]:
    """Have somebody greeted."""
    return [Message(f"Write a {tone} greeting for {person}.")]


@server.completion
def complete(ref, argument, context):
    if context and context.arguments and context.arguments.get("tone") == "rude":
        return []
    return [person for person in PEOPLE if person.startswith(argument.value)]


if __name__ == "__main__":
    server.run(show_banner=False, log_level="CRITICAL")
