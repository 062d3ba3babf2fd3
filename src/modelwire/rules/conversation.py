"""Which conversations a model may be asked to go on with (``sampling/createMessage``). Nothing here asks anybody."""

from __future__ import annotations

from typing import Any, cast

from modelwire.protocol import types as t


def conversation_fault(messages: list[t.SamplingMessage]) -> str | None:
    """Return which rule about tools a conversation breaks; None when it breaks none.

    "every assistant message containing ToolUseContent blocks MUST be followed by a user message that consists entirely
    of ToolResultContent blocks, with each tool use [...] matched by a corresponding tool result" (client/sampling).
    """
    waiting: set[str] = set()
    for position, message in enumerate(messages):
        blocks = _blocks(message)
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


def _blocks(message: t.SamplingMessage) -> list[Any]:
    content = message.content
    return cast("list[Any]", content) if isinstance(content, list) else [content]
