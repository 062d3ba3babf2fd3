"""What to say instead, to a peer whose revision lacks a thing: two tables and the functions in them.

`REPLACED` turns a kind of value that came later into one that was there before, or raises `WireError` where nothing
comes near. `SHAPED` rewrites values of a kind that was always there, but could hold less. Fields that are simply
missing are left out elsewhere (`modelwire.protocol.pruning`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeAlias, cast

import msgspec
from msgspec import Struct

from modelwire.protocol import structured
from modelwire.protocol import types as t
from modelwire.protocol.faults import WireError
from modelwire.protocol.revisions import Revision
from modelwire.protocol.types.base import encode_hook

Rewrite: TypeAlias = Callable[[Any, Revision], Any]


def _audio(value: t.AudioContent, revision: Revision) -> t.TextContent:
    return t.TextContent(_describe(value), annotations=value.annotations)


def _resource_link(value: t.ResourceLink, revision: Revision) -> t.TextContent:
    return t.TextContent(_describe(value), annotations=value.annotations)


def _tool_use(value: t.ToolUseContent, revision: Revision) -> t.TextContent:
    return t.TextContent(_describe(value))


def _tool_result(value: t.ToolResultContent, revision: Revision) -> t.TextContent:
    return t.TextContent(_describe(value))


def _describe(block: Any) -> str:
    """Say in words what a content block is or says."""
    match block:
        case t.TextContent():
            return block.text
        case t.ImageContent() | t.AudioContent():
            return f"[{block.type} left out: {block.mime_type}, {len(block.data) * 3 // 4} bytes]"
        case t.ResourceLink():
            about = f" - {block.description}" if block.description else ""
            return f"[resource: {block.title or block.name}, {block.uri}{about}]"
        case t.EmbeddedResource():
            held = block.resource
            return held.text if isinstance(held, t.TextResourceContents) else f"[resource: {held.uri}]"
        case t.ToolUseContent():
            return f"[tool call {block.id}: {block.name} {_json(block.input)}]"
        case t.ToolResultContent():
            said = "\n".join(_describe(part) for part in block.content)
            return f"[tool {'error' if block.is_error else 'result'} {block.tool_use_id}: {said}]"
        case _:
            return f"[{getattr(block, 'type', 'content')} left out]"


def _json(value: Any) -> str:
    try:
        return msgspec.json.encode(value, enc_hook=encode_hook).decode()
    except Exception:
        return "{...}"


def _titled_choice(value: t.TitledSingleSelectEnumSchema, revision: Revision) -> t.LegacyTitledEnumSchema:
    return t.LegacyTitledEnumSchema(
        [option.const for option in value.one_of],
        [option.title for option in value.one_of],
        title=value.title,
        description=value.description,
        default=value.default,
    )


def _refuse(what: str) -> Rewrite:
    def refuse(value: Any, revision: Revision) -> NoReturn:
        raise WireError(f"{what} cannot be said in revision {revision}")

    return refuse


REPLACED: Final[dict[type[Struct], tuple[str, Rewrite]]] = {
    t.AudioContent: ("2025-03-26", _audio),
    t.ResourceLink: ("2025-06-18", _resource_link),
    t.ToolUseContent: ("2025-11-25", _tool_use),
    t.ToolResultContent: ("2025-11-25", _tool_result),
    t.TitledSingleSelectEnumSchema: ("2025-11-25", _titled_choice),
    t.UntitledMultiSelectEnumSchema: ("2025-11-25", _refuse("a multiple choice in a form")),
    t.TitledMultiSelectEnumSchema: ("2025-11-25", _refuse("a multiple choice in a form")),
    t.ElicitRequestURLParams: ("2025-11-25", _refuse("an elicitation at a URL")),
}
"""By type: the revision that it came with, and what earlier ones get."""


def _tool(tool: t.Tool, revision: Revision) -> t.Tool:
    tool = structured.plain_properties(tool)
    return structured.wrap_tool(tool) if revision.structured else tool


def _structured_result(result: Any, revision: Revision) -> Any:
    value = result.structured_content
    if value is msgspec.UNSET or not structured.is_no_object(value):
        return result
    return structured.wrap_result(result) if revision.structured else result


def _sampling_request(params: t.CreateMessageRequestParams, revision: Revision) -> t.CreateMessageRequestParams:
    """Up to 2025-06-18 a message holds one block: those with more become several messages of the same role."""
    if not any(isinstance(m.content, list) for m in params.messages):
        return params
    messages: list[t.SamplingMessage] = []
    for message in params.messages:
        for block in _blocks(message.content):
            messages.append(t.SamplingMessage(message.role, block))
    params = copy.copy(params)
    params.messages = messages
    return params


def _one_block(message: Any, revision: Revision) -> Any:
    """Up to 2025-06-18 a model's answer is one block: several become one text."""
    content: Any = message.content
    if not isinstance(content, list):
        return message
    blocks = _blocks(content)
    message = copy.copy(message)
    message.content = blocks[0] if len(blocks) == 1 else t.TextContent("\n\n".join(map(_describe, blocks)))
    return message


def _blocks(content: Any) -> list[Any]:
    return cast("list[Any]", content) if isinstance(content, list) else [content]


SHAPED: Final[dict[type[Struct], tuple[str, Rewrite]]] = {
    t.Tool: ("2025-11-25", _tool),
    t.CallToolResult: ("2025-11-25", _structured_result),
    t.ToolResultContent: ("2025-11-25", _structured_result),
    t.CreateMessageRequestParams: ("2025-06-18", _sampling_request),
    t.SamplingMessage: ("2025-06-18", _one_block),
    t.CreateMessageResult: ("2025-06-18", _one_block),
}
"""By type: the last revision that needs the rewrite, and the rewrite. It returns its argument where it fits."""
