"""A modelwire client over HTTP, of a server on version 2 of the JavaScript SDK: both eras."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from modelwire import Client, PeerError, RequestTimeout, ToolError, ToolsChanged
from tests.interop.http_peers import sdk_server
from tests.interop.peers import LEGACY, MODERN, OLD, PATIENCE, needs_node_peers, shared_loop

pytestmark = [needs_node_peers, shared_loop]

every_era = pytest.mark.parametrize("revision", [None, LEGACY, OLD])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def url() -> AsyncIterator[str]:
    async with sdk_server() as found:
        yield found


@every_era
async def test_calls_are_answered(url: str, revision: str | None) -> None:
    progress: list[float] = []
    async with Client(url, revision=revision) as client:
        assert client.revision.name == (revision or MODERN)
        assert {"add", "steps", "book"} <= {tool.name for tool in await client.list_tools()}
        said = await asyncio.gather(*(client.call("add", {"a": n, "b": 1}) for n in range(20)))
        assert said == [str(n + 1) for n in range(20)]
        assert await client.call("steps", on_progress=lambda done, *rest: progress.append(done)) == "done"
        assert progress == [1, 2, 3]
        with pytest.raises((PeerError, ToolError), match="no-such-tool"):
            await client.call("no-such-tool")


@pytest.mark.parametrize("revision", [None, LEGACY])
async def test_questions_are_answered(url: str, revision: str | None) -> None:
    async with Client(url, revision=revision, on_elicit=lambda question: {"count": 3}) as client:
        assert await client.call("book") == "for 3"


@every_era
async def test_changes_are_told(url: str, revision: str | None) -> None:
    async with Client(url, revision=revision) as client, client.listen(tools=True) as events:
        async with asyncio.timeout(PATIENCE):
            await client.call("change")
            assert await anext(events) == ToolsChanged()


@pytest.mark.parametrize("revision", [None, LEGACY])
async def test_what_is_given_up_harms_nothing(url: str, revision: str | None) -> None:
    async with Client(url, revision=revision) as client:
        with pytest.raises(RequestTimeout):
            await client.call("wait", timeout=0.2)
        assert await client.call("add", {"a": 1, "b": 2}) == "3"
