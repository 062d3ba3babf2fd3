"""Sampling on the client's side: what a function's answer becomes.

Nothing here asks a model.
"""

from __future__ import annotations

from typing import Any, cast

from modelwire.protocol import types as t

UNNAMED_MODEL = "unnamed"
"""The name of the model where a function returns only what it said; the protocol demands one."""
_BLOCKS = (t.TextContent, t.ImageContent, t.AudioContent, t.ToolUseContent, t.ToolResultContent, t.UnknownContent)


def message_of(answer: Any) -> t.CreateMessageResult:
    """Return what a function said for the model, as the answer to the server.

    Args:
        answer: A text, a content block, a list of blocks, or the whole result.

    Raises:
        TypeError: It is nothing of the kind.
    """
    if isinstance(answer, t.CreateMessageResult):
        return answer
    content: Any = t.TextContent(answer) if isinstance(answer, str) else answer
    blocks = _blocks(content)
    wrong = next((block for block in blocks if not isinstance(block, _BLOCKS)), None)
    if wrong is not None or not blocks:
        raise TypeError(f"a str, content blocks or a types.CreateMessageResult was expected, not {answer!r}")
    uses = any(isinstance(block, t.ToolUseContent) for block in blocks)
    return t.CreateMessageResult("assistant", content, UNNAMED_MODEL, stop_reason="toolUse" if uses else "endTurn")


def _blocks(content: Any) -> list[Any]:
    return cast("list[Any]", content) if isinstance(content, list) else [content]
