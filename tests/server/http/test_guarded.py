"""Bytes as attackers, odd proxies and clients in a hurry send them, to the program that `server.run` is.

Nothing of it may be a way around what is checked, outlast its bounds, or leave anything behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.leftovers import nothing_left
from tests.server.http.raw import Connection, call, closed, connected, posted
from tests.server.http.servers import make
from tests.server.http.test_uvicorn import HERE
from tests.wire import PATIENCE, modern_meta

ADD = {"a": 1, "b": 2}


def request(
    headers: Mapping[str, str], body: bytes, *, first: str = "POST /mcp HTTP/1.1", length: bool = True
) -> bytes:
    """A request as bytes."""
    given = {"Host": "localhost", **({"Content-Length": str(len(body))} if length else {}), **headers}
    return "\r\n".join([first, *(f"{name}: {value}" for name, value in given.items()), "", ""]).encode() + body


def chunked(body: bytes, trailers: bytes = b"", size: int = 1 << 16) -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n" + trailers + b"\r\n"


async def text(http: Connection) -> str:
    status, _, body = await http.whole()
    assert status == 200, body
    return json.loads(body)["result"]["content"][0]["text"]


# ------------------------------------------------------------------ where a request ends


TWO_ENDS: list[dict[str, str]] = [
    {"Content-Length": "5", "Transfer-Encoding": "chunked"},
    {"Transfer-Encoding": "xchunked"},
    {"Transfer-Encoding": "identity"},
    {"Transfer-Encoding": "chunked, identity"},
    {"Transfer-Encoding": "chunked, chunked"},
    {"Content-Length": "5", "content-length": "6"},
    {"Content-Length": "5, 5"},
    {"Content-Length": "+5"},
    {"Content-Length": "0x5"},
    {"Content-Length": "-5"},
    {"Content-Length": "5\x0b"},
    {"Content-Length ": "5"},
    {"X-Folded": "a\r\n b"},
    {"X-Bare": "a\rX-Evil: 1"},
    {"X-Bare": "a\nContent-Length: 5"},
    {"X-Null": "a\x00b"},
]


async def test_a_request_whose_end_two_machines_might_see_at_two_places_is_refused_and_cut_off() -> None:
    own, _ = call("add", ADD)
    async with make().server.serving(HERE) as serving:
        for headers in TWO_ENDS:
            async with connected(serving.url) as http:
                http.writer.write(request({**own, **headers}, b"5\r\nhello\r\n0\r\n\r\n", length=False))
                http.writer.write(request(own, b"{}"))
                found = await closed(http)
                assert found.startswith(b"HTTP/1.1 400 "), headers
                assert found.count(b"HTTP/1.1 ") == 1, headers


async def test_bodies_in_chunks_and_bodies_that_are_announced_are_taken() -> None:
    async with make().server.serving(HERE) as serving, connected(serving.url) as http:
        own, body = call("add", ADD)
        in_chunks = {**own, "Transfer-Encoding": "Chunked"}
        for size in (1, 7, 1000):
            http.writer.write(request(in_chunks, chunked(body, size=size), length=False))
            assert await text(http) == "3"
        http.writer.write(request({**own, "Expect": "100-continue", "Content-Length": str(len(body))}, b""))
        assert (await http.head())[0] == 100
        http.writer.write(body)
        assert await text(http) == "3"


async def test_what_is_refused_by_its_headers_is_not_asked_for() -> None:
    async with make().server.serving(HERE) as serving, connected(serving.url) as http:
        own, body = call("add", ADD)
        refused = {**own, "Expect": "100-continue", "Content-Type": "text/plain", "Content-Length": str(len(body))}
        http.writer.write(request(refused, b""))
        assert (await http.whole())[0] == 415
    async with make(max_message=1000).server.serving(HERE) as serving, connected(serving.url) as http:
        http.writer.write(request({**own, "Expect": "100-continue", "Content-Length": "1001"}, b""))
        assert (await http.whole())[0] == 413
        http.writer.write(b"x" * 1001 + request(own, body))
        assert await text(http) == "3"


async def test_trailers_are_no_headers() -> None:
    bench = make()

    def who(scope: Any) -> str | None:
        found = dict(scope["headers"]).get(b"x-user")
        return None if found is None else found.decode()

    async with bench.server.serving(HERE, principal=who) as serving, connected(serving.url) as http:
        own, body = call("where")
        for trailers in (b"Origin: http://evil.example\r\n", b"Host: evil.example\r\n", b"X-User: root\r\n"):
            http.writer.write(request({**own, "Transfer-Encoding": "chunked"}, chunked(body, trailers), length=False))
            assert "root" not in await text(http)
        many = b"".join(b"X-%d: x\r\n" % number for number in range(5000))
        http.writer.write(request({**own, "Transfer-Encoding": "chunked"}, chunked(body, many), length=False))
        assert (await http.whole())[0] == 200


async def test_an_offer_of_another_protocol_is_not_taken_up_and_costs_the_request_nothing() -> None:
    own, body = call("add", ADD)
    headers = {**own, "Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAMAAABkAARAAAAA"}
    offer = request(headers, body)
    async with make().server.serving(HERE) as serving, connected(serving.url) as http:
        for _ in range(2):
            http.writer.write(offer)
            assert await text(http) == "3"
        http.writer.write(request(own, body) + offer + request(own, body))
        for _ in range(3):
            assert await text(http) == "3"
        for at in range(0, len(offer), 40):
            http.writer.write(offer[at : at + 40])
            await http.writer.drain()
            await asyncio.sleep(0)
        assert await text(http) == "3"
        http.writer.write(request({**headers, "Transfer-Encoding": "chunked"}, chunked(body), length=False))
        assert await text(http) == "3"
        http.writer.write(request({**headers, "Upgrade": "x/1.0, h2c"}, body))
        assert await text(http) == "3"
        http.writer.write(request(own, body))
        assert await text(http) == "3"


async def test_there_is_no_tunnel() -> None:
    async with make().server.serving(HERE) as serving:
        for place in ("/mcp", "evil.example:443"):
            async with connected(serving.url) as http:
                http.writer.write(request({}, b"", first=f"CONNECT {place} HTTP/1.1"))
                assert (await closed(http)).startswith(b"HTTP/1.1 400 ")


async def test_the_endpoint_in_every_spelling_of_its_path() -> None:
    own, body = call("add", ADD)
    async with make().server.serving(HERE) as serving, connected(serving.url) as http:
        for path in ("/mcp/", "/mcp?a=1", "/mcp?", "/%6dcp", "/mcp%2F", "http://localhost/mcp"):
            http.writer.write(request(own, body, first=f"POST {path} HTTP/1.1"))
            assert await text(http) == "3"
        for path in ("//mcp", "/mcp/..", "/mcp/x", "/./mcp", "/mcp;x", "/mcp%00", "/MCP", "/"):
            http.writer.write(request(own, body, first=f"POST {path} HTTP/1.1"))
            assert (await http.whole())[0] == 404


async def test_a_client_of_http_1_0_is_answered_in_both_forms() -> None:
    async with make().server.serving(HERE) as serving:
        for tool, given, last in (("add", ADD, b"3"), ("steps", {"count": 1}, b"1 steps")):
            async with connected(serving.url) as http:
                own, body = call(tool, given, progressToken=1)
                http.writer.write(request(own, body, first="POST /mcp HTTP/1.0"))
                found = await closed(http)
                assert found.startswith(b"HTTP/1.1 200 ")
                head, _, body = found.partition(b"\r\n\r\n")
                assert b"connection: close" in head
                assert b"transfer-encoding" not in head
                answer = json.loads(body if tool == "add" else body.strip().rpartition(b"data: ")[2])
                assert answer["result"]["content"][0]["text"].encode() == last


# ------------------------------------------------------------------ several at once


async def test_pipelined_requests_are_answered_in_order() -> None:
    async with make().server.serving(HERE) as serving, connected(serving.url) as http:
        whole = b"".join(request(*call("add", {"a": number, "b": 0})) for number in range(300))
        http.writer.write(whole)
        assert [await text(http) for _ in range(300)] == [str(number) for number in range(300)]


async def test_a_client_that_goes_with_requests_still_waiting_leaves_nothing(caplog: pytest.LogCaptureFixture) -> None:
    bench = make()
    first, second = (request(*call("wait", {"name": name})) for name in ("first", "second"))
    async with nothing_left(caplog), bench.server.serving(HERE) as serving:
        async with connected(serving.url) as http:
            http.writer.write(first + second)
            await bench.waiting.wait()
        async with asyncio.timeout(PATIENCE):
            await bench.cancelled.wait()
        assert bench.events == ["first cancelled"]  # and the second never began


async def test_connections_beyond_their_number_are_refused_and_a_place_becomes_free() -> None:
    own, body = call("add", ADD)
    async with make().server.serving(HERE, max_connections=2) as serving, connected(serving.url) as one:
        async with connected(serving.url) as two:
            for http in (one, two):
                http.writer.write(request(own, body))
                assert await text(http) == "3"
            async with connected(serving.url) as three:
                three.writer.write(request(own, body))
                assert (await three.whole())[0] == 503
                assert await closed(three) == b""
        async with asyncio.timeout(PATIENCE):
            while True:
                async with connected(serving.url) as again:
                    again.writer.write(request(own, body))
                    if (await again.whole())[0] == 200:
                        break


# ------------------------------------------------------------------ slow ones


async def until_closed(http: Connection, piece: bytes) -> None:
    """Send a piece now and then until the other side has closed."""
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(PATIENCE):
            while True:
                http.writer.write(piece)
                await http.writer.drain()
                await asyncio.sleep(0.02)


@pytest.mark.parametrize(("piece", "tool"), [(b"\r\n", "add"), (b"\r\n", "quick"), (b"x", "add")])
async def test_who_dribbles_after_an_answer_is_cut_off(
    piece: bytes, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("modelwire.server.http.guarded.HEADER_SECONDS", 0.2)
    bench = make()
    bench.server.add_tool(lambda a, b: a + b, name="quick", inline=True)
    async with bench.server.serving(HERE) as serving, connected(serving.url) as http:
        own, body = call(tool, ADD)
        if piece == b"x":  # the body of what was refused already
            http.writer.write(request({**own, "Content-Type": "text/plain", "Content-Length": "1000000"}, b""))
            assert (await http.whole())[0] == 415
        else:
            http.writer.write(request(own, body))
            assert await text(http) == "3"
        await until_closed(http, piece)


async def test_the_rest_of_what_was_refused_is_skipped_and_the_next_request_answered() -> None:
    async with make().server.serving(HERE) as serving, connected(serving.url) as http:
        own, body = call("add", ADD)
        http.writer.write(request({**own, "Content-Type": "text/plain", "Content-Length": "200000"}, b""))
        assert (await http.whole())[0] == 415
        http.writer.write(b"x" * 200_000 + request(own, body))
        assert await text(http) == "3"


async def unread(url: str | None, sent: bytes) -> socket.socket:
    """Send a request over a connection that takes next to nothing, and do not read."""
    found = urlsplit(url)
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.setblocking(False)
    await asyncio.get_running_loop().sock_connect(connection, (found.hostname, found.port))
    await asyncio.get_running_loop().sock_sendall(connection, sent)
    return connection


@pytest.mark.parametrize("how", ["an answer", "a last answer", "a stream"])
async def test_who_takes_nothing_of_what_it_is_sent_is_cut_off_and_leaves_nothing(
    how: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("modelwire.server.http.guarded.SEND_SECONDS", 0.1)
    bench = make()

    @bench.server.tool
    def large() -> str:
        return "x" * (24 << 20)

    listen = {"notifications": {"resourceSubscriptions": ["file:///" + "x" * 5000]}, "_meta": modern_meta()}
    message = {"jsonrpc": "2.0", "id": 5, "method": "subscriptions/listen", "params": listen}
    own, body = posted(message) if how == "a stream" else call("large")
    async with nothing_left(caplog), bench.server.serving(HERE) as serving:
        last = {"Connection": "close"} if how == "a last answer" else {}
        connection = await unread(serving.url, request({**own, **last}, body))
        async with asyncio.timeout(PATIENCE):
            while "taken nothing" not in caplog.text:
                if how == "a stream":
                    bench.server.changed("file:///" + "x" * 5000)
                await asyncio.sleep(0)
            while bench.server.features.listeners._open:
                await asyncio.sleep(0)
        connection.close()
