"""A server on FastMCP that asks: on the connection in handshake revisions, inside results in 2026-07-28."""

from __future__ import annotations

from fastmcp import Context, FastMCP
from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
)

server = FastMCP("asks-with-fastmcp", version="1.2.3")
TOPPINGS = {"oil": {"title": "Olive oil"}, "salt": {"title": "Sea salt"}}
SCHEMA = {
    "type": "object",
    "properties": {"count": {"type": "integer", "minimum": 1}, "tea": {"type": "boolean", "default": True}},
    "required": ["count"],
}


@server.tool
async def toppings(ctx: Context) -> str:
    answer = await ctx.elicit("Which ones?", [TOPPINGS])
    return " and ".join(answer.data) if answer.action == "accept" else answer.action


@server.tool
async def size(ctx: Context) -> str:
    answer = await ctx.elicit("How big?", {"s": {"title": "Small"}, "l": {"title": "Large"}})
    return answer.data if answer.action == "accept" else answer.action


@server.tool
async def plan(ctx: Context) -> str | InputRequiredResult:
    answers = ctx.input_responses
    if answers is None:
        question = SamplingMessage(role="user", content=TextContent(type="text", text="A wish?"))
        return InputRequiredResult(
            input_requests={
                "guests": ElicitRequest(
                    params=ElicitRequestFormParams(message="How many guests?", requested_schema=SCHEMA)
                ),
                "page": ElicitRequest(params=ElicitRequestURLParams(message="Sign in", url="https://example.org/sign")),
                "wish": CreateMessageRequest(params=CreateMessageRequestParams(messages=[question], max_tokens=20)),
                "places": ListRootsRequest(),
            },
            request_state="round one",
        )
    guests, page, wish, places = (answers[key] for key in ("guests", "page", "wish", "places"))
    return f"{guests.content} {page.action} {wish.content.text} {places.roots[0].uri} after {ctx.request_state}"


if __name__ == "__main__":
    server.run(show_banner=False, log_level="CRITICAL")
