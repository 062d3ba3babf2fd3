"""What a function's answer for the model becomes."""

from __future__ import annotations

from typing import Any

import pytest

from modelwire import types
from modelwire.client.sampling import message_of

TEXT = types.TextContent("hi")
USE = types.ToolUseContent("1", "add", {})


def test_a_text_a_block_or_blocks_become_a_message() -> None:
    assert message_of("hi") == types.CreateMessageResult("assistant", TEXT, "unnamed", stop_reason="endTurn")
    assert message_of(TEXT).content == TEXT
    assert message_of([TEXT, USE]).stop_reason == "toolUse"
    whole = types.CreateMessageResult("assistant", TEXT, "m")
    assert message_of(whole) is whole


@pytest.mark.parametrize("answer", [7, b"x", [], ["x"], {"type": "text"}])
def test_anything_else_is_no_message(answer: Any) -> None:
    with pytest.raises(TypeError):
        message_of(answer)
