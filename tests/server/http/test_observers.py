"""Who watches a server over HTTP sees every message, and what belongs together."""

from __future__ import annotations

import json
from typing import Any

import pytest

from modelwire import Observer
from tests.server.http.asgi import Legacy, Modern, serving
from tests.server.http.servers import make
from tests.wire import dumps, opening


class Watching(Observer):
    """Notes who was at the other end of each connection, and what was said there."""

    def __init__(self) -> None:
        self.peers: list[str] = []
        self.said: dict[int, list[str]] = {}

    def connection(self, number: int, peer: str) -> Observer:
        self.peers.append(peer)
        said = self.said[number] = []

        class Own(Observer):
            def frame(self, direction: str, frame: bytes) -> None:
                message = json.loads(frame)
                said.append(f"{direction} {message.get('method', 'answer')}")

        return Own()

    def frame(self, direction: str, frame: bytes) -> None:
        raise AssertionError("of no connection")


async def test_each_request_of_2026_07_28_is_a_connection_of_its_own() -> None:
    watching = Watching()
    async with serving(make(observers=[watching]).server) as http:
        client = Modern(http)
        await client.call("steps", {"count": 2}, meta={"progressToken": 1}).done()
        await client.call("add", {"a": 1, "b": 2}, client=("::1", 5)).done()
        await client.ask("tools/list", headers={"Mcp-Method": "x"}, client=None).done()
    progress = "out notifications/progress"
    assert watching.said == {
        1: ["in tools/call", progress, progress, "out answer"],
        2: ["in tools/call", "out answer"],
        3: ["in tools/list", "out answer"],
    }
    assert watching.peers == ["the client 127.0.0.1:50000", "the client [::1]:5", "a client"]


async def test_what_is_no_message_is_shown_as_it_came() -> None:
    seen: list[tuple[str, bytes]] = []

    class Raw(Observer):
        def frame(self, direction: str, frame: bytes) -> None:
            seen.append((direction, frame))

    async with serving(make(observers=[Raw()]).server) as http:
        await http.post(b"{", {"MCP-Protocol-Version": "2026-07-28"}).done()
        session = await Legacy(http).open()
        seen.clear()
        await session.post(b"{", valid=False).done()
    assert [direction for direction, _ in seen] == ["in", "out"]
    assert seen[0][1] == b"{"
    assert json.loads(seen[1][1])["error"]["code"] == -32700


async def test_a_session_is_one_connection_whatever_brings_its_messages() -> None:
    watching = Watching()
    bench = make(observers=[watching])
    async with serving(bench.server) as http:
        session, other = await Legacy(http).open(), await Legacy(http).open()
        stream = session.get()
        await stream.started()
        bench.server.add_tool(lambda: "x", name="more")
        await stream.event()
        await session.call("steps", {"count": 1}, meta={"progressToken": 1}, client=("10.0.0.1", 1)).done()
        await other.ask("ping").done()
        await session.call("add", {"a": 1, "b": 2}).done()
        await session.delete().done()
    opened = ["in initialize", "out answer", "in notifications/initialized"]
    assert watching.said == {
        1: [
            *opened,
            "out notifications/tools/list_changed",
            "in tools/call",
            "out notifications/progress",
            "out answer",
            "in tools/call",
            "out answer",
        ],
        2: [*opened, "out notifications/tools/list_changed", "in ping", "out answer"],
    }
    assert watching.peers == ["the client 127.0.0.1:50000"] * 2


async def test_without_state_each_post_is_a_connection_of_its_own() -> None:
    watching = Watching()
    async with serving(make(observers=[watching]).server, stateless=True) as http:
        client = Legacy(http)
        await client.ask("initialize", opening("2025-11-25")).done()
        await client.ask("ping").done()
    assert watching.said == {1: ["in initialize", "out answer"], 2: ["in ping", "out answer"]}


async def test_a_stream_of_http_with_sse_is_a_connection() -> None:
    watching = Watching()
    async with serving(make(observers=[watching]).server, sse=True) as http:
        stream = http.ask("GET", {"Accept": "text/event-stream"}, path="/sse")
        query = (await stream.event()).data.partition("?")[2].encode()
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        await http.post(dumps(ping), path="/messages", query_string=query).done()
        await stream.event()
        await stream.leave()
    assert watching.said == {1: ["in ping", "out answer"]}
    assert watching.peers == ["the client 127.0.0.1:50000"]


@pytest.mark.parametrize("status", [403, 404, 415])
async def test_what_is_refused_unread_is_no_connection(status: int) -> None:
    watching = Watching()
    refused: dict[int, dict[str, Any]] = {
        403: {"headers": {"Origin": "https://evil.example"}},
        404: {"path": "/other"},
        415: {"headers": {"Content-Type": "text/plain"}},
    }
    async with serving(make(observers=[watching]).server) as http:
        assert await Modern(http).ask("tools/list", **refused[status]).done() == status
    assert watching.peers == []
