"""A modelwire client over HTTP, of servers written with the official Python library and with FastMCP.

What they offer is held over stdio (`test_python_library_servers.py`); here is what HTTP adds to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from modelwire import Client, InvalidParams, MethodNotFound, PeerError, RequestTimeout, ToolError, ToolsChanged
from modelwire.protocol import types as t
from tests.interop.http_peers import python_server
from tests.interop.peers import LEGACY, MODERN, OLD, PATIENCE, needs_python_peers, shared_loop

pytestmark = [needs_python_peers, shared_loop]


@dataclass
class Place:
    library: str
    kind: str
    url: str


def _places(*kinds: str) -> pytest.MarkDecorator:
    places = [(library, kind) for library in ("mcp", "fastmcp") for kind in kinds]
    return pytest.mark.parametrize("place", places, indirect=True, ids=" ".join, scope="module")


everywhere = _places("http", "json", "sse")
where_there_are_streams = _places("http", "sse")
"""An answer that is JSON has room for nothing else: no progress, and no question of older revisions."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    library, kind = request.param
    async with python_server(library, kind) as url:
        yield Place(library, kind, url)


def revisions(place: Place) -> list[str | None]:
    return [LEGACY, OLD] if place.kind == "sse" else [None, LEGACY, OLD]


@everywhere
async def test_the_era_is_found_out(place: Place) -> None:
    async with Client(place.url) as client:
        assert client.revision.name == (LEGACY if place.kind == "sse" else MODERN)
        assert client.server_info is not None
        assert client.server_info.name == f"made-with-{place.library}"


@everywhere
async def test_calls_are_answered(place: Place) -> None:
    for revision in revisions(place):
        async with Client(place.url, revision=revision) as client:
            assert {"add", "steps", "book"} <= {tool.name for tool in await client.list_tools()}
            assert await client.call("add", {"a": 1, "b": 2}, returns=int) == 3
            with pytest.raises(ToolError, match="no more"):
                await client.call("refuse", {"why": "no more"})
            with pytest.raises((InvalidParams, ToolError, PeerError)):
                await client.call("no-such-tool")
            results = await asyncio.gather(*(client.call("add", {"a": n, "b": 1}, returns=int) for n in range(20)))
            assert results == list(range(1, 21))


@where_there_are_streams
async def test_progress_and_log_messages_come_on_the_stream_of_the_call(place: Place) -> None:
    for revision in revisions(place):
        logs: list[Any] = []
        progress: list[Any] = []
        async with Client(place.url, revision=revision, on_log=logs.append) as client:
            said = await client.call("steps", {"count": 3}, returns=str, on_progress=_noted(progress))
            assert (said, [done for done, *_ in progress]) == ("done", [1, 2, 3])
            assert len(logs) >= 3


def _noted(into: list[Any]) -> Any:
    return lambda *progress: into.append(progress)


@where_there_are_streams
async def test_questions_are_answered(place: Place) -> None:
    for revision in (None, LEGACY):
        if revision is None and (place.kind == "sse" or place.library == "fastmcp"):
            continue  # FastMCP asks on its own in older revisions only
        async with Client(
            place.url,
            revision=revision,
            capabilities=t.ClientCapabilities(elicitation=t.ElicitationCapability(form={})),
            handlers={"elicitation/create": lambda params: {"action": "accept", "content": {"count": 3}}},
        ) as client:
            assert await client.call("book", {"hotel": "Ritz"}, returns=str) == "Ritz for 3"


@everywhere
async def test_changes_are_told(place: Place) -> None:
    for revision in revisions(place)[:2]:
        if (place.library, place.kind, revision) == ("fastmcp", "json", LEGACY):
            continue  # it sends the change on the call's own stream, of which JSON has none
        async with Client(place.url, revision=revision) as client:
            listening = client.listen(tools=True)
            if place.library == "fastmcp" and revision is None:
                with pytest.raises(MethodNotFound):  # over HTTP it has none of 2026-07-28
                    await listening.__aenter__()
                continue
            async with listening as events, asyncio.timeout(PATIENCE):
                await client.call("change")
                assert await anext(events) == ToolsChanged()


@everywhere
async def test_what_is_given_up_harms_nothing(place: Place) -> None:
    for revision in revisions(place)[:2]:
        async with Client(place.url, revision=revision) as client:
            with pytest.raises(RequestTimeout):
                await client.call("wait", timeout=0.2)
            assert await client.call("add", {"a": 1, "b": 2}, returns=int) == 3
