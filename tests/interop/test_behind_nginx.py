"""A modelwire client of servers behind nginx, which buffers what it passes on where nobody has told it otherwise.

A server that says ``X-Accel-Buffering: no`` is passed on at once, as far as nginx heeds it: `DEAF` does not. Then
what is streamed comes late, and all of it; what would need an answer in the middle does not come, and that is said.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from modelwire import Client, ConnectionFailed, Context, Missed, RequestTimeout, ToolsChanged
from modelwire.transports.http import old_sse
from tests.interop.http_peers import everything_server, python_server, sdk_server
from tests.interop.peers import LEGACY, MODERN, OLD, PATIENCE, needs_node_peers, needs_python_peers, shared_loop
from tests.nginx import DEAF, WEBSOCKET, Nginx, nginx
from tests.server.http.servers import Bench, make

pytestmark = [needs_python_peers, needs_node_peers, shared_loop]

SHORT = "proxy_read_timeout 300ms;"
"""Hangs up when nothing has come for a moment; it is a minute where nobody says anything."""
UNBUFFERED = "proxy_buffering off;"
OWN = ("own", "own deaf", "own short", "own ws")
OTHERS = (
    "everything streamableHttp", "everything streamableHttp deaf", "everything sse", "everything sse unbuffered",
    "mcp http", "mcp http deaf", "mcp sse", "fastmcp http", "fastmcp http deaf", "fastmcp sse", "sdk", "sdk deaf",
)  # fmt: skip
MORE = {"deaf": DEAF, "short": SHORT, "unbuffered": UNBUFFERED, "ws": WEBSOCKET}
STARTS: dict[str, Callable[[], Any]] = {
    "everything streamableHttp": lambda: everything_server("streamableHttp"),
    "everything sse": lambda: everything_server("sse"),
    "mcp http": lambda: python_server("mcp", "http"),
    "mcp sse": lambda: python_server("mcp", "sse"),
    "fastmcp http": lambda: python_server("fastmcp", "http"),
    "fastmcp sse": lambda: python_server("fastmcp", "sse"),
    "sdk": sdk_server,
}


@dataclass
class Field:
    """What is behind nginx.

    Attributes:
        urls: Where each is, by its name and what nginx does to it.
        bench: Ours.
        direct: Where ours is without nginx.
    """

    urls: dict[str, str]
    bench: Bench
    nginx: Nginx
    direct: str


def own() -> Bench:
    bench = make()

    @bench.server.tool
    async def leave(ctx: Context) -> str:
        """Let the client hang up; it comes back for the answer."""
        ctx.progress(1)
        ctx.close_stream(retry=0.01)
        ctx.progress(2)
        return "came back"

    return bench


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def field(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Field]:
    bench = own()
    async with contextlib.AsyncExitStack() as stack:
        starting = [stack.enter_async_context(start()) for start in STARTS.values()]
        found = dict(zip(STARTS, await asyncio.gather(*starting), strict=True))
        serving = await stack.enter_async_context(bench.server.serving("http://127.0.0.1:0/mcp"))
        found["own"] = str(serving.url)
        names = (*OWN, *OTHERS)
        behind = [(found[_peer(name)], MORE.get(name.rpartition(" ")[2], "")) for name in names]
        proxy = await stack.enter_async_context(nginx(tmp_path_factory.mktemp("nginx"), behind))
        urls = dict(zip(names, proxy.urls, strict=True))
        urls["own ws"] = urls["own ws"].replace("http://", "ws://")
        yield Field(urls, bench, proxy, found["own"])


def _peer(name: str) -> str:
    peer, _, how = name.rpartition(" ")
    return peer if how in MORE else name


def noted(into: list[float]) -> Callable[..., Any]:
    return lambda done, *rest: into.append(done)


def eras(name: str) -> list[str | None]:
    """What is spoken there: None for what is found out."""
    if name.startswith("everything"):
        return [None]
    return [LEGACY, OLD] if " sse" in name else [None, LEGACY, OLD]


STEPS = {"everything": ("trigger-long-running-operation", {"duration": 0.3, "steps": 3}), "sdk": ("steps", {})}


@pytest.mark.parametrize("name", [name for name in (*OWN, *OTHERS) if name != "everything sse"])
async def test_calls_are_answered_and_nothing_that_is_streamed_is_lost(field: Field, name: str) -> None:
    library = name.split(" ")[0]
    tool, arguments = STEPS.get(library, ("steps", {"count": 3}))
    for revision in eras(name):
        progress: list[float] = []
        async with asyncio.timeout(PATIENCE), Client(field.urls[name], revision=revision) as client:
            assert tool in {found.name for found in await client.list_tools()}
            calls = [client.call(tool, arguments, on_progress=noted(progress))]
            if library != "everything":
                kind = str if library == "sdk" else int
                calls += [client.call("add", {"a": n, "b": 1}, returns=kind) for n in range(20)]
            said = await asyncio.gather(*calls)
        assert progress == [1, 2, 3]
        assert [str(each) for each in said[1:]] == [str(n + 1) for n in range(20)][: len(said) - 1]


@pytest.mark.parametrize("name", ["own", "own ws", "mcp http", "sdk"])
async def test_questions_are_answered(field: Field, name: str) -> None:
    for revision in (None, LEGACY):
        answer = {"name": "Ada"} if name.startswith("own") else {"count": 3}
        asking = Client(field.urls[name], revision=revision, on_elicit=lambda question, found=answer: found)
        async with asyncio.timeout(PATIENCE), asking as client:
            if name.startswith("own"):
                assert await client.call("ask_name") == "hello Ada"
            else:
                assert "for 3" in str(await client.call("book", {"hotel": "Ritz"} if name == "mcp http" else {}))


@pytest.mark.parametrize("name", ["own", "own ws", "mcp http", "sdk"])
async def test_changes_are_told(field: Field, name: str) -> None:
    for revision in (None, LEGACY):
        client = Client(field.urls[name], revision=revision)
        async with asyncio.timeout(PATIENCE), client, client.listen(tools=True) as events:
            if name.startswith("own"):
                field.bench.server.changed("tools")
            else:
                await client.call("change")
            assert await anext(events) == ToolsChanged()


async def test_questions_of_2026_07_28_need_no_stream(field: Field) -> None:
    async with Client(field.urls["own deaf"], on_elicit=lambda question: {"name": "Ada"}) as client:
        assert client.revision.name == MODERN
        assert await client.call("ask_name") == "hello Ada"


@pytest.mark.parametrize("name", ["own deaf", "sdk deaf"])
async def test_a_question_that_is_held_back_costs_its_own_call_only(field: Field, name: str) -> None:
    tool = "ask_name" if name == "own deaf" else "book"
    async with Client(field.urls[name], revision=LEGACY, on_elicit=lambda question: {}) as client:
        with pytest.raises(RequestTimeout, match="no answer to tools/call within 0.3 s"):
            await client.call(tool, timeout=0.3)
        assert int(await client.call("add", {"a": 1, "b": 2})) == 3


async def test_a_listening_that_is_held_back_says_so_in_time(field: Field) -> None:
    async with Client(field.urls["own deaf"], timeout=0.3) as client:
        with pytest.raises(RequestTimeout, match="did not acknowledge"):
            await client.listen(tools=True).__aenter__()
        assert await client.call("add", {"a": 1, "b": 2}) == 3


async def test_streams_that_nginx_ends_for_their_silence_come_back(field: Field) -> None:
    for revision in (None, LEGACY):
        client = Client(field.urls["own short"], revision=revision)
        async with asyncio.timeout(PATIENCE), client, client.listen(tools=True) as events:
            assert await anext(events) == Missed()
            # It may end again before the change is told, and then that is what is missed.
            field.bench.server.changed("tools")
            assert await anext(events) in (ToolsChanged(), Missed())
            assert await client.call("add", {"a": 1, "b": 2}) == 3


async def test_a_call_that_nginx_gives_up_is_an_error_of_its_own(field: Field) -> None:
    async with asyncio.timeout(PATIENCE), Client(field.urls["own short"]) as client:
        with pytest.raises(Exception, match="HTTP 504") as caught:
            await client.call("wait")
        assert "a proxy in between got no answer" in str(caught.value)
        assert await client.call("add", {"a": 1, "b": 2}) == 3


@pytest.mark.parametrize("name", ["own", "own deaf"])
async def test_a_stream_that_the_server_ends_is_taken_up_again(field: Field, name: str) -> None:
    progress: list[float] = []
    async with asyncio.timeout(PATIENCE), Client(field.urls[name], revision=LEGACY) as client:
        assert await client.call("leave", on_progress=noted(progress)) == "came back"
    assert progress == [1, 2]


async def test_http_with_sse_that_is_held_back_cannot_be_opened_and_it_is_said_why(
    field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(old_sse, "FIRST_SECONDS", 1.0)
    with pytest.raises(ConnectionFailed, match="where messages go to.*buffer"):
        await Client(field.urls["everything sse"]).connect()


async def test_a_server_that_is_not_there_is_told_as_such(field: Field, tmp_path: Path) -> None:
    async with nginx(tmp_path, [("http://127.0.0.1:1/mcp", "")]) as proxy:
        with pytest.raises(ConnectionFailed, match="HTTP 502; a proxy in between cannot reach the server behind it"):
            await Client(proxy.urls[0]).connect()
