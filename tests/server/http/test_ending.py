"""SIGTERM and SIGINT on a program that serves over HTTP: what is open ends in order, and nobody holds it up."""

from __future__ import annotations

import asyncio
import json
import signal
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.server.http.programs import COME_THROUGH, Gate, Program, gate, script, serving
from tests.server.http.raw import Connection, call, connected, opened, posted
from tests.wire import dumps, modern_meta, opening

pytestmark = pytest.mark.slow  # programs are started

SERVER = f"""{COME_THROUGH}
import asyncio
from modelwire import Context, Server
from modelwire.server.http import run

server = Server("it", version="1")

@server.tool
def pass_by(gate: str, ctx: Context) -> str:
    ctx.progress(1)
    come_through(gate)
    return "passed"

@server.tool
async def large() -> str:
    return "x" * (24 << 20)
"""
RUN = """
if __name__ == "__main__":
    server.run("http://127.0.0.1:0/mcp", sse=True)
"""


async def listen(http: Connection) -> None:
    """Open a subscription, and wait until it is acknowledged."""
    params = {"notifications": {"toolsListChanged": True}, "_meta": modern_meta()}
    await http.ask("POST", *posted({"jsonrpc": "2.0", "id": 5, "method": "subscriptions/listen", "params": params}))
    assert (await http.head())[0] == 200
    assert b"acknowledged" in await http.chunk()


async def ended(http: Connection) -> None:
    """See that a subscription ends with its result, and its stream after that."""
    last = (await http.messages())[-1]
    assert (last["id"], "result" in last) == (5, True)


async def refused(program: Program) -> None:
    """See that nobody is let in any more."""
    where = urlsplit(program.url)
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(where.hostname, where.port)


@pytest.mark.parametrize("words", [["IT"], ["-m", "modelwire", "run", "--http", "127.0.0.1:0", "IT"]])
async def test_a_call_that_ends_soon_is_answered_while_nobody_new_is_let_in(words: list[str], tmp_path: Path) -> None:
    path = script(tmp_path, SERVER + RUN)
    async with gate() as here, serving(*(path if word == "IT" else word for word in words)) as program:
        async with connected(program.url) as working, connected(program.url) as listening:
            await working.ask("POST", *call("pass_by", {"gate": here.address}))
            await listen(listening)
            await here.reached()
            program.process.send_signal(signal.SIGTERM)
            await ended(listening)
            await refused(program)
            here.open()
            status, _, body = await working.whole()
            assert (status, json.loads(body)["result"]["content"][0]["text"]) == (200, "passed")
        assert await program.end() == 0
        assert len(program.said) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_second_signal_ends_it_at_once(number: signal.Signals, tmp_path: Path) -> None:
    path = script(tmp_path, f"{SERVER}run.GRACE = 1000\n{RUN}")
    async with gate() as here, serving(path) as program, connected(program.url) as working:
        await working.ask("POST", *call("pass_by", {"gate": here.address}))
        await here.reached()
        async with connected(program.url) as listening:
            await listen(listening)
            program.process.send_signal(number)
            await ended(listening)
        program.process.send_signal(number)
        assert await program.end() == -number


async def test_streams_that_only_wait_and_clients_that_do_not_read_hold_nothing_up(tmp_path: Path) -> None:
    path = script(tmp_path, f"{SERVER}run.GRACE, run.LINGER = 1000, 0.1\n{RUN}")
    async with serving(path) as program, AsyncExitStack() as stack:
        old, waiting, deaf = [await stack.enter_async_context(connected(program.url)) for _ in range(3)]
        await old.ask("GET", {"Accept": "text/event-stream"}, path="/sse")
        assert (await old.head())[0] == 200
        assert b"/messages?session_id=" in await old.chunk()
        await waiting.ask("GET", {**await opened(waiting), "Accept": "text/event-stream"})
        assert (await waiting.head())[0] == 200
        await waiting.chunk()
        await deaf.ask("POST", *call("large"))
        assert (await deaf.head())[0] == 200
        program.process.send_signal(signal.SIGTERM)
        assert await waiting.messages() == []
        assert await old.chunk() == b""
        assert await program.end() == 0
        assert len(program.said) == 1


async def called(old: Connection, posts: Connection, here: Gate) -> None:
    """Open a stream of HTTP+SSE, and call a tool that comes to a gate."""
    await old.ask("GET", {"Accept": "text/event-stream"}, path="/sse")
    assert (await old.head())[0] == 200
    where = (await old.chunk()).decode().partition("data: ")[2].strip()
    arguments = {"gate": here.address}
    for message in (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening("2024-11-05")},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "pass_by", "arguments": arguments}},
    ):
        await posts.ask("POST", {"Content-Type": "application/json"}, dumps(message), path=where)
        assert (await posts.head())[0] == 202
    assert b'"protocolVersion":"2024-11-05"' in await old.chunk()
    await here.reached()


async def test_a_call_of_http_sse_that_ends_soon_is_answered(tmp_path: Path) -> None:
    async with gate() as here, serving(script(tmp_path, f"{SERVER}run.GRACE = 1000\n{RUN}")) as program:
        async with AsyncExitStack() as stack:
            old, posts, listening = [await stack.enter_async_context(connected(program.url)) for _ in range(3)]
            await called(old, posts, here)
            await listen(listening)
            program.process.send_signal(signal.SIGTERM)
            await ended(listening)
            here.open()
            assert (await old.messages())[-1]["result"]["content"][0]["text"] == "passed"
        assert await program.end() == 0


async def test_a_call_of_http_sse_that_does_not_end_is_cut_off(tmp_path: Path) -> None:
    path = script(tmp_path, f"{SERVER}run.GRACE = 0.1\n{RUN}")
    async with (
        gate() as here,
        serving(path) as program,
        connected(program.url) as old,
        connected(program.url) as posts,
    ):
        await called(old, posts, here)
        program.process.send_signal(signal.SIGTERM)
        assert await program.end() == 0
