"""A modelwire client of server-everything over HTTP: Streamable HTTP of 2025-11-25, and HTTP+SSE."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from modelwire import Client, ConnectionFailed
from tests.interop.peers import LEGACY, PATIENCE, needs_node_peers, node_server, shared_loop

pytestmark = [needs_node_peers, shared_loop]


def free_port() -> int:
    """It takes a port that it is told, and tells none; this one was free a moment ago."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


@pytest_asyncio.fixture(
    scope="module", loop_scope="module", params=[("streamableHttp", "/mcp"), ("sse", "/sse")], ids=lambda kind: kind[0]
)
async def url(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    kind, path = request.param
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        *node_server("everything", kind),
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    found = f"http://127.0.0.1:{port}{path}"
    try:
        async with asyncio.timeout(2 * PATIENCE):
            await until_it_listens(port)
        yield found
    finally:
        process.kill()
        await process.wait()


async def until_it_listens(port: int) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.1)  # nothing tells when it is there
            continue
        writer.close()
        return


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
