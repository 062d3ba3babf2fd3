"""Results as text for people: content blocks, tool results, resources, prompts. Prints nothing itself."""

from __future__ import annotations

import json
from typing import Any, cast

from msgspec import UNSET

from modelwire.cli.output import one_line, pretty
from modelwire.protocol import types as t

_FOR_ALL = "--json shows it whole"


def result_text(result: t.CallToolResult) -> str:
    """Return a tool's result: its content, and its structured content where that says more."""
    texts = [block_text(block) for block in result.content]
    structured: Any = result.structured_content
    if structured is UNSET:
        return "\n".join(texts)
    if len(texts) == 1 and texts[0] == structured:
        return texts[0]
    if not texts or (len(texts) == 1 and _is_json_of(texts[0], structured)):
        return pretty(structured)
    return "\n".join([*texts, pretty(structured)])


def _is_json_of(text: str, value: Any) -> bool:
    """Older clients read text only, so servers repeat the structured content there."""
    try:
        return json.loads(text) == value
    except (ValueError, RecursionError):
        return False


def block_text(block: Any) -> str:
    """Return one content block."""
    if isinstance(block, t.TextContent):
        return block.text
    if isinstance(block, t.ImageContent | t.AudioContent):
        return _binary(block.type, block.mime_type, block.data)
    if isinstance(block, t.ResourceLink):
        return f"[resource {block.uri} {block.title or block.name}]"
    if isinstance(block, t.EmbeddedResource):
        return contents_text(block.resource)
    return one_line(block.raw) if isinstance(block, t.UnknownContent) else str(block)


def contents_text(contents: Any) -> str:
    """Return what a resource holds: text as it is, anything else by its size."""
    if isinstance(contents, t.TextResourceContents):
        return contents.text
    return _binary(contents.uri, contents.mime_type or "application/octet-stream", contents.blob)


def _binary(what: str, mime_type: str, data: str) -> str:
    size = len(data) * 3 // 4 - data[-2:].count("=")
    return f"[{what}: {mime_type}, {size} bytes; {_FOR_ALL}]"


def prompt_text(result: t.GetPromptResult) -> str:
    """Return the messages of a prompt, each under its role."""
    return "\n\n".join(f"{message.role}:\n{block_text(message.content)}" for message in result.messages)


def parameters_text(schema: dict[str, Any]) -> str:
    """Return a tool's parameters in a few words: ``city: string, days?: integer``."""
    properties: Any = schema.get("properties")
    required: Any = schema.get("required") or []
    if not isinstance(properties, dict):
        return ""
    return ", ".join(
        f"{name}{'' if name in required else '?'}{_type_suffix(value)}"
        for name, value in cast("dict[str, Any]", properties).items()
    )


def _type_suffix(schema: Any) -> str:
    kind: Any = schema.get("type") if isinstance(schema, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if isinstance(kind, list):
        kind = "|".join(str(item) for item in kind)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return f": {kind}" if isinstance(kind, str) else ""
