"""A modelwire client of server-everything over HTTP: Streamable HTTP of 2025-11-25, and HTTP+SSE."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from modelwire import Client, ConnectionFailed
from tests.interop.http_peers import everything_server
from tests.interop.peers import LEGACY, needs_node_peers, shared_loop

pytestmark = [needs_node_peers, shared_loop]


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["streamableHttp", "sse"])
async def url(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    async with everything_server(request.param) as found:
        yield found


async def test_it_is_found_out_and_answers(url: str) -> None:
    progress: list[float] = []
    async with Client(url) as client:
        assert client.revision.name == LEGACY
        assert "echo" in {tool.name for tool in await client.list_tools()}
        assert await client.call("echo", {"message": "hello"}) == "Echo: hello"
        assert await client.call(
            "trigger-long-running-operation",
            {"duration": 1, "steps": 3},
            on_progress=lambda done, *rest: progress.append(done),
        )
        assert progress == [1, 2, 3]
        assert await client.list_resources()


async def test_it_may_ask(url: str) -> None:
    async with Client(url, on_elicit=lambda question: {"name": "Ada"}) as client:
        await client.list_tools()
        assert "Ada" in str(await client.call("trigger-elicitation-request"))


async def test_another_path_says_so(url: str) -> None:
    with pytest.raises(ConnectionFailed, match="HTTP 404"):
        await Client(url + "/elsewhere").connect()
