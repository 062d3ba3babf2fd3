"""Sampling on the client's side: which conversations a server may ask about, and what a function's answer becomes.

Nothing here asks a model.
"""

from __future__ import annotations

from typing import Any, cast

from modelwire.protocol import types as t

UNNAMED_MODEL = "unnamed"
"""The name of the model where a function returns only what it said; the protocol demands one."""
_BLOCKS = (t.TextContent, t.ImageContent, t.AudioContent, t.ToolUseContent, t.ToolResultContent, t.UnknownContent)


def conversation_fault(messages: list[t.SamplingMessage]) -> str | None:
    """Return which rule about tools a conversation breaks; None when it breaks none.

    "every assistant message containing ToolUseContent blocks MUST be followed by a user message that consists entirely
    of ToolResultContent blocks, with each tool use [...] matched by a corresponding tool result" (client/sampling).
    """
    waiting: set[str] = set()
    for position, message in enumerate(messages):
        blocks = _blocks(message.content)
        results = [block for block in blocks if isinstance(block, t.ToolResultContent)]
        if results and (message.role != "user" or len(results) != len(blocks)):
            return f"messages[{position}]: tool results mixed with other content"
        given = {result.tool_use_id for result in results}
        if missing := waiting - given:
            return f"messages[{position}]: tool result missing in request: {', '.join(sorted(missing))}"
        if strange := given - waiting:
            return f"messages[{position}]: a result of no tool use in the message before: {', '.join(sorted(strange))}"
        waiting = {block.id for block in blocks if isinstance(block, t.ToolUseContent)}
        if waiting and message.role != "assistant":
            return f"messages[{position}]: a tool use in a message of the user"
    return f"tool result missing in request: {', '.join(sorted(waiting))}" if waiting else None


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
