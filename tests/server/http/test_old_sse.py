"""HTTP+SSE of 2024-11-05, beside everything else: a stream that says where to post to, and answers on it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from modelwire.server.http.old_sse import EventStream
from tests.clock import Clock
from tests.server.http.asgi import Exchange, Http, Legacy, Modern, serving
from tests.server.http.servers import make
from tests.wire import Ledger, dumps, opening

REVISION = "2024-11-05"
PROGRESS = {"progressToken": "p"}


class Old:
    """A client of this transport; what comes is held against the schema."""

    def __init__(self, http: Http, **scope: Any) -> None:
        self.http = http
        self.ledger = Ledger(REVISION)
        self.stream = http.ask("GET", {"Accept": "text/event-stream"}, path="/sse", ledger=None, **scope)
        self.endpoint = ""

    async def open(self) -> Old:
        first = await self.stream.event()
        assert first.type == "endpoint"
        self.endpoint = first.data
        await self.say("initialize", opening(REVISION), id=0)
        assert (await self.hear())["result"]["protocolVersion"] == REVISION
        await self.say("notifications/initialized")
        return self

    def post(self, body: bytes, endpoint: str | None = None, **scope: Any) -> Exchange:
        path, _, query = (endpoint or self.endpoint).partition("?")
        given = {"path": path, "query_string": query.encode(), **scope}
        return self.http.ask("POST", {"Content-Type": "application/json"}, body, **given)

    async def say(self, method: str, params: Any = None, **id_: Any) -> None:
        message = {"jsonrpc": "2.0", **id_, "method": method, **({} if params is None else {"params": params})}
        self.ledger.sent(dumps(message))
        exchange = self.post(dumps(message))
        assert await exchange.done() == 202

    async def call(self, tool: str, id: int = 1, **arguments: Any) -> None:
        await self.say("tools/call", {"name": tool, "arguments": arguments, "_meta": PROGRESS}, id=id)

    async def hear(self) -> Any:
        event = await self.stream.event()
        assert event.type == "message"
        self.ledger.received(event.data.encode())
        return json.loads(event.data)


@asynccontextmanager
async def old(**options: Any) -> AsyncIterator[tuple[Any, Old]]:
    bench = make()
    async with serving(bench.server, sse=True, **options) as http:
        client = await Old(http).open()
        yield bench, client
    assert client.ledger.faults == []


async def test_answers_and_notifications_come_on_the_stream() -> None:
    async with old() as (_, client):
        assert client.endpoint.startswith("/messages?")
        await client.call("steps", count=2)
        assert [(await client.hear())["params"]["progress"] for _ in range(2)] == [1, 2]
        assert (await client.hear())["result"]["content"][0]["text"] == "2 steps"


async def test_other_revisions_are_served_at_the_same_time() -> None:
    async with old() as (bench, client):
        await client.call("wait")
        await bench.waiting.wait()
        newer, newest = await Legacy(client.http).open(), Modern(client.http)
        for other in (newer, newest):
            assert (await other.call("add", {"a": 1, "b": 2}).result())["content"][0]["text"] == "3"
        bench.go.set()
        assert (await client.hear())["result"]["content"][0]["text"] == "wait"


async def test_a_list_that_changes_is_told() -> None:
    async with old() as (bench, client):
        bench.server.add_tool(lambda: "x", name="more")
        assert (await client.hear())["method"] == "notifications/tools/list_changed"


async def test_the_endpoint_is_below_the_prefix() -> None:
    async with serving(make().server, sse=True) as http:
        stream = http.ask("GET", path="/api/sse", root_path="/api")
        assert (await stream.event()).data.startswith("/api/messages?session_id=")


async def test_silence_is_broken_by_comments() -> None:
    async with old() as (_, client):
        clock = Clock()
        await clock.advance(0.1)
        before = client.stream.reader.comments
        await clock.advance(15.1)
        assert client.stream.reader.comments == before + 1


async def test_a_client_that_goes_ends_what_it_asked_for() -> None:
    async with old() as (bench, client):
        await client.call("wait")
        await bench.waiting.wait()
        endpoint = client.endpoint
        await client.stream.leave()
        async with asyncio.timeout(5):
            await bench.cancelled.wait()
        assert await client.post(b"{}", endpoint).done() == 404


async def test_the_end_of_the_application_ends_the_stream() -> None:
    async with old() as (bench, client):
        await client.call("wait")
        await bench.waiting.wait()
        ending = asyncio.create_task(client.http.app.aclose(5))
        await Clock().turn()
        bench.go.set()
        assert (await client.hear())["result"]["content"][0]["text"] == "wait"
        await ending
        assert await client.stream.done() == 200


@pytest.mark.parametrize(("body", "code"), [(b"{", -32700), (b"5", -32600)])
async def test_what_is_no_message_is_refused(body: bytes, code: int) -> None:
    async with old() as (_, client):
        exchange = client.post(body)
        assert (await exchange.json())["error"]["code"] == code
        assert exchange.status == 400


async def test_statuses() -> None:
    async with old(max_sessions=2, principal=lambda scope: scope["client"][0]) as (_, client):
        http = client.http
        assert await client.post(b"{}", "/messages").done() == 404
        assert await client.post(b"{}", "/messages?session_id=x").done() == 404
        assert await client.post(b"{}", client=("10.0.0.1", 1)).done() == 404
        assert await http.ask("POST", path="/sse").done() == 405
        assert await http.ask("GET", path="/messages").done() == 405
        assert await http.ask("GET", {"Accept": "application/json"}, path="/sse").done() == 406
        assert await http.ask("POST", {"Content-Type": "text/plain"}, path="/messages").done() == 415
        assert await http.ask("GET", {"Origin": "https://evil.example"}, path="/sse").done() == 403
        assert await http.ask("GET", {"Host": "evil.example"}, path="/sse").done() == 403
        await Old(http).open()
        assert await Old(http).stream.done() == 503


async def test_it_is_there_only_when_asked_for() -> None:
    async with serving(make().server) as http:
        assert await http.ask("GET", path="/sse").done() == 404


async def test_what_waits_to_be_taken_in_is_bounded_in_bytes_and_one_message_may_always_wait() -> None:
    async def send(message: Any) -> None:
        raise AssertionError("nothing is said")

    stream = EventStream(send, None, "a client")
    large = b" " * (20 << 20)
    assert stream.put(large)
    assert not stream.put(b"{}")
    assert await stream.receive() == large
    assert all(stream.put(b" " * (1 << 20)) for _ in range(8))
    assert not stream.put(b"{}")


async def test_a_mark_of_byte_order_is_ignored() -> None:
    async with old() as (_, client):
        ping = dumps({"jsonrpc": "2.0", "id": 5, "method": "ping"})
        client.ledger.sent(ping)
        assert await client.post(b"\xef\xbb\xbf" + ping).done() == 202
        assert await client.hear() == {"jsonrpc": "2.0", "id": 5, "result": {}}
