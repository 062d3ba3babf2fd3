"""The server that the official conformance suite is set on: all that its scenarios ask for, written as a user would.

``python -m tests.conformance.server`` serves over HTTP on a free port and says on stderr where. Names, texts and shapes
are the suite's own, and so is what a tool does; nothing here knows how any of it travels, or on which revision.
"""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import sys
from typing import Annotated, Any

from modelwire import Audio, Context, EmbeddedResource, Header, Image, Server, ToolError, types
from tests.conformance import asking

PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNg+F8PAAKHAYDrR7qSAAAAAElFTkSuQmCC")
SILENCE = b"RIFF&\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0@\x1f\0\0\x80>\0\0\x02\0\x10\0data\x02\0\0\0\0\0"
MOMENT = 0.05
CONTACT: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

server = Server("conformance", version="1.0.0", state_keys=[secrets.token_hex()])

# ------------------------------------------------------------------ tools that answer


# The first in the list: the suite calls it, without arguments, to see which headers are accepted.
@server.tool
async def test_simple_text() -> str:
    """Return a text."""
    return "This is a simple text response for testing."


@server.tool
async def test_image_content() -> Image:
    """Return an image."""
    return Image(PIXEL)


@server.tool
async def test_audio_content() -> Audio:
    """Return a sound."""
    return Audio(SILENCE)


@server.tool
async def test_embedded_resource() -> EmbeddedResource:
    """Return a resource."""
    return EmbeddedResource("test://embedded-resource", "This is an embedded resource content.")


@server.tool
async def test_multiple_content_types() -> list[str | Image | EmbeddedResource]:
    """Return a text, an image and a resource."""
    text = json.dumps({"test": "data", "value": 123})
    return [
        "Multiple content types test:",
        Image(PIXEL),
        EmbeddedResource("test://mixed-content-resource", text, mime_type="application/json"),
    ]


@server.tool
async def test_error_handling() -> str:
    """Fail, with words for the model."""
    raise ToolError("This tool intentionally returns an error for testing")


@server.tool
async def test_tool_with_logging(ctx: Context) -> str:
    """Say in the log what is going on."""
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        ctx.log.info(text)
        await asyncio.sleep(MOMENT)
    return "Logged three messages."


@server.tool
async def test_logging_tool(ctx: Context) -> str:
    """Log something, for those who want to hear it."""
    ctx.log.info("This is only for clients that asked for it")
    return "Logged a message, if you wanted one."


@server.tool
async def test_tool_with_progress(ctx: Context) -> str:
    """Tell how far it is."""
    for done in (0, 50, 100):
        ctx.progress(done, 100, f"Completed step {done} of 100")
        await asyncio.sleep(MOMENT)
    return "Done."


@server.tool
async def test_reconnection(ctx: Context) -> str:
    """Let the client go and have it come back for the result."""
    ctx.progress(1, 2)
    ctx.close_stream(retry=0.1)
    await asyncio.sleep(3 * MOMENT)
    return "You came back."


@server.tool
async def test_x_mcp_header(region: Annotated[str, Header("Region")]) -> str:
    """Take an argument that clients repeat in a header."""
    return f"Looked around in {region}"


async def _contact(arguments: dict[str, Any], ctx: Context) -> str:
    return f"Reached {arguments.get('name', 'somebody')}"


server.add_tool(
    types.Tool("json_schema_2020_12_tool", CONTACT, description="Take arguments by a schema given by hand."), _contact
)

for tool in asking.TOOLS:
    server.add_tool(tool)


# ------------------------------------------------------------------ lists that change


@server.tool
async def test_trigger_tool_change() -> str:
    """Change the list of tools."""

    async def for_a_moment() -> None:
        """Be there, and then no more."""

    server.add_tool(for_a_moment)
    server.remove_tool("for_a_moment")
    return "The list of tools has changed."


@server.tool
async def test_trigger_prompt_change() -> str:
    """Change the list of prompts."""

    async def for_a_moment() -> str:
        """Be there, and then no more."""
        return ""

    server.add_prompt(for_a_moment)
    server.remove_prompt("for_a_moment")
    return "The list of prompts has changed."


# ------------------------------------------------------------------ resources


@server.resource("test://static-text", mime_type="text/plain")
async def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
async def static_binary() -> bytes:
    """An image."""
    return PIXEL


@server.resource("test://watched-resource", mime_type="text/plain")
async def watched_resource() -> str:
    """A text that may change."""
    return "Watched resource content"


@server.resource("test://template/{id}/data", mime_type="application/json")
async def template(id: str) -> dict[str, Any]:
    """Data by its id."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


# ------------------------------------------------------------------ prompts


@server.prompt
async def test_simple_prompt() -> str:
    """A prompt."""
    return "This is a simple prompt for testing."


@server.prompt
async def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.complete("test_prompt_with_arguments", "arg1")
async def arg1(typed: str) -> list[str]:
    return [word for word in ("paris", "park", "party") if word.startswith(typed)]


@server.prompt
async def test_prompt_with_embedded_resource(
    resourceUri: str,  # the suite's name
) -> list[str | EmbeddedResource]:
    """A prompt with a resource."""
    return [
        EmbeddedResource(resourceUri, "Embedded resource content for testing."),
        "Please process the embedded resource above.",
    ]


@server.prompt
async def test_prompt_with_image() -> list[str | Image]:
    """A prompt with an image."""
    return [Image(PIXEL), "Please analyze the image above."]


server.add_prompt(asking.test_input_required_result_prompt)


if __name__ == "__main__":
    server.run(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:0/mcp")
