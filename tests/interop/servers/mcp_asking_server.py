"""A server on `MCPServer` of the official Python library that asks for everything that a client can be asked for."""

from __future__ import annotations

import warnings
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Elicit, ListRoots, Resolve, Sample
from mcp.shared.exceptions import UrlElicitationRequiredError
from mcp_types import CreateMessageResult, ElicitRequestURLParams, ListRootsResult, SamplingMessage, TextContent
from offers import Guests

warnings.simplefilter("ignore")  # what 2026-07-28 deprecates is what older clients need
server = MCPServer("asks-with-mcp", version="1.2.3", log_level="CRITICAL")
signed: set[str] = set()


async def guests() -> Elicit[Guests]:
    return Elicit("How many guests?", Guests)


async def wish(guests: Annotated[Guests, Resolve(guests)]) -> Sample:
    question = TextContent(type="text", text=f"A wish for {guests.count}?")
    return Sample([SamplingMessage(role="user", content=question)], max_tokens=20)


async def places() -> ListRoots:
    return ListRoots()


@server.tool()
async def plan(
    guests: Annotated[Guests, Resolve(guests)],
    wish: Annotated[CreateMessageResult, Resolve(wish)],
    places: Annotated[ListRootsResult, Resolve(places)],
) -> str:
    return f"{guests.count} at {places.roots[0].uri}: {wish.content.text} ({wish.model})"


@server.tool()
async def open_page(ctx: Context) -> str:
    answer = await ctx.elicit_url("Sign in", "https://example.org/sign", "e1")
    return answer.action


@server.tool()
async def sign(ctx: Context) -> str:
    """Stands for the page: what it does is told on the connection."""
    signed.add("e2")
    await ctx.session.send_elicit_complete("e2")
    return "signed"


@server.tool()
async def members_only() -> str:
    if "e2" in signed:
        return "welcome"
    page = ElicitRequestURLParams(message="Sign in", url="https://example.org/sign", elicitation_id="e2")
    raise UrlElicitationRequiredError([page])


if __name__ == "__main__":
    server.run()
