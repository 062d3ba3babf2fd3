"""A modelwire client of the npm server "sequential-thinking": one tool, whose thoughts also go to stderr."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from modelwire import ToolError
from tests.interop.peers import connected, needs_node_peers, node_server

pytestmark = needs_node_peers


@dataclass
class Progress:
    thoughtNumber: int
    totalThoughts: int
    nextThoughtNeeded: bool
    branches: list[str]
    thoughtHistoryLength: int


async def test_thoughts_follow_one_another_and_branch() -> None:
    lines: list[str] = []
    async with connected(node_server("sequential-thinking"), stderr=lines.append) as client:
        [tool] = await client.list_tools()
        assert tool.input_schema["properties"]["nextThoughtNeeded"]["type"] == ["boolean", "string"]

        first = {"thought": "水を沸かす", "thoughtNumber": 1, "totalThoughts": 2, "nextThoughtNeeded": True}
        assert await client.call(tool.name, first, returns=Progress) == Progress(1, 2, True, [], 1)
        other = first | {"thought": "or not", "thoughtNumber": 3, "branchFromThought": 1, "branchId": "cold"}
        # Their schema asks for whole numbers, and their result for any; what comes is whole.
        assert await client.call(tool.name, other, returns=Progress) == Progress(3, 3, True, ["cold"], 2)

        with pytest.raises(ToolError, match="thoughtNumber"):
            await client.call(tool.name, first | {"thoughtNumber": 0})
        with pytest.raises(ToolError, match='Expected boolean or "true"/"false" string'):
            await client.call(tool.name, first | {"nextThoughtNeeded": "perhaps"})
    assert any("水を沸かす" in line for line in lines)
    assert "水を沸かす" in client.stderr
