"""Bodies that are no message, or none that may be sent: each is refused in words that the revision's schema allows.

Whatever is posted, in whatever revision, costs only itself: no status 500, no failure in the log, nothing left.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests import spec
from tests.clock import Clock
from tests.server.http.asgi import BOTH, Exchange, Legacy, Modern, legacy, serving
from tests.server.http.servers import make
from tests.wire import HANDSHAKE, MODERN, dumps, every_handshake, opening

HTTP = [MODERN, "2025-11-25", "2025-03-26"]
SENT = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"}
NOTE = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@asynccontextmanager
async def posting(revision: str, **options: Any) -> AsyncIterator[Any]:
    """Serve a server; what is posted is posted in that revision, in a session where it has any."""
    async with serving(make().server, **options) as http:
        if revision == MODERN:
            yield lambda body, headers=None: http.post(body, {**SENT, **(headers or {})})
        else:
            client = await Legacy(http, revision).open()
            yield lambda body, headers=None: http.post(body, client.headers(headers))


async def refusal(exchange: Exchange, revision: str) -> dict[str, Any]:
    """The error that a post is refused with, as the schema of its revision has it."""
    found = await exchange.json()
    assert exchange.status == 400, found
    assert spec.validate_message(revision, "server", found) == []
    return found


# ------------------------------------------------------------------ no JSON, and no message

NO_JSON = [
    b"",
    b" \r\n\t",
    b"{",
    b"[1,",
    b"nonsense",
    b'{"jsonrpc":"2.0","id":1,"method":"ping"} x',
    b'{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping",}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":-Infinity}}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":01}}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\xff"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\xed\xa0\x80"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\x01"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b"[" * 5000 + b"]" * 5000 + b"}",
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b"\x00",
    b"\xff\xfe{\x00}\x00",
    json.dumps(PING).encode("utf-16"),
    b"\xef\xbb\xbf",
    b"\xef\xbb\xbf\xef\xbb\xbf{}",
    b"\x1f\x8b\x08\x00",
    b"id=1&method=ping",
    b"<html></html>",
]
NO_MESSAGE = [
    b"5",
    b"null",
    b"true",
    b'"ping"',
    b"{}",
    b'{"jsonrpc":"2.0"}',
    b'{"jsonrpc":"2.0","id":1}',
    b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
    b'{"id":1,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"method":5}',
    b'{"jsonrpc":"2.0","id":1,"method":null}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":5}',
    b'{"jsonrpc":"2.0","id":null,"method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":null,"method":"notifications/initialized"}',
    b'{"jsonrpc":"2.0","id":1.0,"method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":1e2,"method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":true,"method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":[1],"method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":{},"method":"tools/list"}',
    # answers that are none
    b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}',
    b'{"jsonrpc":"2.0","id":1,"error":{"code":"x","message":"m"}}',
    b'{"jsonrpc":"2.0","id":1,"error":null}',
    b'{"jsonrpc":"2.0","id":1.5,"error":{"code":1,"message":"m"}}',
    b'{"jsonrpc":"2.0","result":{}}',
    b'{"jsonrpc":"2.0","id":null,"result":{}}',
    b'{"id":1,"result":{}}',
    b"[]",
]


@pytest.mark.parametrize("revision", HTTP)
async def test_what_is_no_json_is_a_parse_error(revision: str) -> None:
    async with posting(revision) as post:
        for body in NO_JSON:
            found = await refusal(post(body), revision)
            assert found["error"]["code"] == -32700, body[:60]
            assert found.get("id") in (None, 1)
        assert await post({**PING, "params": {}}).done() in (200, 400)


@pytest.mark.parametrize("revision", HTTP)
async def test_json_that_is_no_message_is_an_invalid_request(revision: str) -> None:
    async with posting(revision) as post:
        for body in NO_MESSAGE:
            found = await refusal(post(body), revision)
            assert found["error"]["code"] == -32600, body
            assert found.get("id") in (None, 1)


async def test_without_a_session_it_is_told_too_and_none_is_opened() -> None:
    async with serving(make().server, max_sessions=1) as http:
        for body, code in [*((body, -32700) for body in NO_JSON), *((body, -32600) for body in NO_MESSAGE)]:
            exchange = http.post(body)
            assert (await refusal(exchange, "2025-11-25"))["error"]["code"] == code, body[:60]
            assert "mcp-session-id" not in exchange.headers
        await Legacy(http).open()


@pytest.mark.parametrize("revision", HTTP)
async def test_a_mark_of_byte_order_before_a_message_is_ignored_and_one_inside_is_kept(revision: str) -> None:
    async with serving(make().server) as http:
        client = Modern(http) if revision == MODERN else await Legacy(http, revision).open()
        message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "wait\ufeff", "arguments": {}}}
        if isinstance(client, Modern):
            message = client.message("tools/call", message["params"])
        headers = client.headers(message) if isinstance(client, Modern) else client.headers()
        found = await http.post(b"\xef\xbb\xbf" + dumps(message), headers).json()
        assert found["id"] == message["id"]
        assert "wait\ufeff" in found["error"]["message"]


async def test_an_encoded_body_is_refused_as_that() -> None:
    async with serving(make().server) as http:
        client = Modern(http)
        for coding in ("gzip", "br", "identity, gzip"):
            assert await client.ask("tools/list", headers={"Content-Encoding": coding}).done() == 415
        assert await client.ask("tools/list", headers={"Content-Encoding": "Identity"}).done() == 200


# ------------------------------------------------------------------ batches


@pytest.mark.parametrize("revision", [MODERN, "2025-06-18", "2025-11-25"])
async def test_where_there_are_no_batches_one_is_refused_as_a_whole(revision: str) -> None:
    async with posting(revision) as post:
        for batch in ([PING], [NOTE], [PING, NOTE], [{"jsonrpc": "2.0", "id": 1, "result": {}}], [5], []):
            found = await refusal(post(dumps(batch)), revision)
            assert found["error"]["code"] == -32600
            assert found.get("id") is None


async def test_where_there_are_batches_each_item_is_answered_and_an_empty_one_is_refused() -> None:
    async with legacy(make().server, "2025-03-26") as client:
        exchange = client.post(dumps([5, PING, {"jsonrpc": "2.0", "id": "i", "method": "initialize"}, []]), valid=False)
        (found,) = [await exchange.answer()]
        assert exchange.status == 200
        by_id = {json.dumps(item.get("id")): item for item in found}
        assert "result" in by_id["1"]
        assert by_id['"i"']["error"]["code"] == -32600
        assert (await refusal(client.http.post(b"[]", client.headers()), "2025-03-26"))["error"]["code"] == -32600
        for batch in ([NOTE, NOTE], [{"jsonrpc": "2.0", "id": 99, "result": {}}]):
            exchange = client.post(dumps(batch))
            assert await exchange.done() == 202
            assert exchange.body == b""


async def test_no_batch_opens_a_session() -> None:
    async with serving(make().server, max_sessions=1) as http:
        first = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening("2025-03-26")}
        for batch in ([first], [first, PING]):
            exchange = http.post(dumps(batch))
            await refusal(exchange, "2025-11-25")
            assert "mcp-session-id" not in exchange.headers
        await Legacy(http).open()


# ------------------------------------------------------------------ messages that may not be sent


async def test_answers_have_no_place_in_2026_07_28() -> None:
    async with posting(MODERN) as post:
        for answer in ({"id": 1, "result": {}}, {"id": 1, "error": {"code": 1, "message": "m"}}):
            found = await refusal(post({"jsonrpc": "2.0", **answer}), MODERN)
            assert found["error"]["code"] == -32600
            assert found.get("id") is None


async def test_any_notification_is_accepted_and_dropped_in_2026_07_28() -> None:
    async with serving(make().server) as http:
        for note in (NOTE, {"jsonrpc": "2.0", "method": "no/such"}, {"jsonrpc": "2.0", "method": "tools/call"}):
            for headers in ({**SENT, "Mcp-Method": note["method"]}, {"MCP-Protocol-Version": MODERN}):
                exchange = http.post(note, headers)
                assert await exchange.done() == 202
                assert exchange.body == b""
        unknown = http.post(NOTE, {"MCP-Protocol-Version": "2099-01-01"})
        assert (await refusal(unknown, MODERN))["error"]["code"] == -32022


@every_handshake
async def test_an_id_in_flight_is_refused_with_400_and_1_is_not_the_string_1(revision: str) -> None:
    bench = make()
    async with legacy(bench.server, revision) as client:
        first = client.call("wait", {"name": "first"}, id=1)
        await bench.waiting.wait()
        bench.waiting.clear()
        for method in ("tools/list", "tools/call", "no/such"):
            again = client.ask(method, {"name": "add", "arguments": {"a": 1, "b": 2}}, id=1, valid=False)
            found = await refusal(again, revision)
            assert (found["id"], found["error"]["code"]) == (1, -32600)
        other = client.call("wait", {"name": "other"}, id="1")
        await bench.waiting.wait()
        assert await client.tell("notifications/cancelled", {"requestId": "1"}).done() == 202
        await other.done()
        bench.go.set()
        assert (await first.result())["content"][0]["text"] == "first"
        assert (await client.call("add", {"a": 1, "b": 2}, id=1).result())["content"][0]["text"] == "3"


# ------------------------------------------------------------------ clients that go


@pytest.mark.parametrize("when", ["before", "in", "after"])
@pytest.mark.parametrize("revision", [MODERN, *HANDSHAKE[1:3]])
async def test_a_client_that_goes_at_any_moment_of_its_body_costs_nothing(
    revision: str, when: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(make().server) as http:
        client = Modern(http) if revision == MODERN else await Legacy(http, revision).open()
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "wait"}}
        headers: Any = client.headers() if isinstance(client, Legacy) else {}
        if isinstance(client, Modern):
            message = client.message("tools/call", {"name": "wait", "arguments": {}})
            headers = client.headers(message)
        body = dumps(message)
        given = {"Content-Type": "application/json", "Accept": BOTH, **headers}
        pieces = {"before": [None], "in": [body[:20], None], "after": [body]}[when]
        exchange = http.ask("POST", given, pieces)
        await Clock().turn()
        await exchange.leave()
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []
