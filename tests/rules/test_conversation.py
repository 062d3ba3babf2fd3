"""Which conversations a model may be asked to go on with."""

from __future__ import annotations

from typing import Any

import pytest

from modelwire import types
from modelwire.rules.conversation import conversation_fault

TEXT = types.TextContent("hi")
USE = types.ToolUseContent("1", "add", {})
RESULT = types.ToolResultContent("1", [])


def says(role: Any, *content: Any) -> types.SamplingMessage:
    return types.SamplingMessage(role, list(content) if len(content) != 1 else content[0])


GOOD = [
    [says("user", TEXT)],
    [says("user", TEXT), says("assistant", TEXT, USE), says("user", RESULT)],
    [says("assistant", USE), says("user", RESULT), says("assistant", TEXT)],
]
BAD = [
    ([says("assistant", USE)], "tool result missing"),
    ([says("assistant", USE), says("user", TEXT)], "tool result missing"),
    ([says("assistant", USE, types.ToolUseContent("2", "add", {})), says("user", RESULT)], "missing in request: 2"),
    ([says("assistant", USE), says("user", RESULT, TEXT)], "mixed with other content"),
    ([says("user", RESULT)], "no tool use"),
    ([says("user", USE), says("user", RESULT)], "tool use in a message of the user"),
]


@pytest.mark.parametrize("messages", GOOD)
def test_tool_results_follow_tool_uses(messages: list[types.SamplingMessage]) -> None:
    assert conversation_fault(messages) is None


@pytest.mark.parametrize(("messages", "words"), BAD)
def test_a_conversation_that_breaks_a_rule_about_tools_is_told(messages: Any, words: str) -> None:
    assert words in str(conversation_fault(messages))
