"""What servers do that nobody should: a client neither hangs, nor grows, nor gives secrets away, nor hammers them."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
from typing import Any

import aiohttp
import pytest

from modelwire import Client, ConnectionFailed, FrameTooLarge, HttpFailed, MethodNotFound, Missed
from modelwire.transports.http import standing
from tests.transports.http.scripted import SAID, Json, Out, Play, Request, done, legacy, modern, web


def answer(request: Request) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": request.message["id"], "result": SAID}).encode()


async def in_chunks(request: Request, out: Out, after: bytes) -> None:
    body = answer(request)
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    await out.raw(head + b"%x\r\n%s\r\n" % (len(body), body) + after)


# ------------------------------------------------------------------ HTTP


async def test_trailers_say_nothing_about_the_next_answer() -> None:
    async def on_call(request: Request, out: Out) -> None:
        await in_chunks(request, out, b"0\r\ncontent-type: text/html\r\nset-cookie: a=b\r\n\r\n")

    async with web(modern(on_call)) as server, Client(server.url) as client:
        assert [await client.call("t") for _ in range(3)] == ["done"] * 3
        assert server.connections == 1


@pytest.mark.parametrize("begin", [b"0\r\nx: ", b"5;a="], ids=["trailer", "chunk extension"])
async def test_what_is_no_body_is_not_read_without_end(begin: bytes) -> None:
    async def on_call(request: Request, out: Out) -> None:
        await in_chunks(request, out, begin)
        while True:
            await out.raw(b"y" * 65536)

    async with web(modern(on_call)) as server, Client(server.url) as client:
        with pytest.raises(HttpFailed, match="headers of its answer are too large"):
            await client.call("t", timeout=10)


async def test_a_body_behind_an_answer_that_has_none_costs_no_other_request() -> None:
    async def on_call(request: Request, out: Out) -> None:
        if len(server.asked("tools/call")) == 1:
            await out.raw(b"HTTP/1.1 204 x\r\ncontent-length: 5\r\n\r\nhello")
        else:
            await done(request, out)

    async with web(modern(on_call)) as server, Client(server.url) as client:
        with pytest.raises(HttpFailed, match="HTTP 204 and nothing else"):
            await client.call("t")
        assert await client.call("t") == "done"


@pytest.mark.parametrize("era", [modern, legacy])
@pytest.mark.parametrize("status", [200, 202, 204])
async def test_a_success_with_nothing_in_it_says_so(era: Any, status: int) -> None:
    async def on_call(request: Request, out: Out) -> None:
        await out.send(status)

    async with web(era(on_call)) as server, Client(server.url) as client:
        with pytest.raises(HttpFailed, match=f"HTTP {status} and nothing else; a request wants a result") as caught:
            await client.call("t")
    assert caught.value.status == status


async def test_a_server_that_hangs_up_after_each_answer_without_a_word_costs_one_call_at_most() -> None:
    async def on_call(request: Request, out: Out) -> None:
        await done(request, out)
        out.keep = False

    failures = 0
    async with web(modern(on_call)) as server, Client(server.url) as client:
        for _ in range(10):
            try:
                assert await client.call("t") == "done"
            except HttpFailed:
                failures += 1
    assert failures <= 1


async def test_a_body_in_several_parts_of_gzip_is_one() -> None:
    async def on_call(request: Request, out: Out) -> None:
        body = answer(request)
        packed = gzip.compress(body[:10]) + gzip.compress(body[10:]) + b"padding"
        await out.send(200, packed, "application/json", content_encoding="gzip")

    async with web(modern(on_call)) as server, Client(server.url) as client:
        assert await client.call("t") == "done"


async def test_much_that_comes_as_little_leaves_others_their_turn() -> None:
    packed = gzip.compress(b":\n" * (4 << 20))
    turns = 0
    reading = asyncio.Event()

    async def on_call(request: Request, out: Out) -> None:
        await out.send(200, packed, "text/event-stream", content_encoding="gzip")
        reading.set()

    async def others() -> None:
        nonlocal turns
        await reading.wait()
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with web(modern(on_call)) as server, Client(server.url) as client:
        counting = asyncio.create_task(others())
        with pytest.raises(HttpFailed, match="ended the stream"):
            await client.call("t")
        counting.cancel()
    assert turns > 10


async def test_a_date_that_is_none_asks_for_no_wait() -> None:
    async def on_call(request: Request, out: Out) -> None:
        date = "Wed, 21 Oct 2015 07:28:00 +99999999999999999999"
        await out.send(429, b"slow down", "text/plain", retry_after=date)

    async with web(modern(on_call)) as server, Client(server.url) as client:
        with pytest.raises(HttpFailed, match="HTTP 429.*slow down"):
            await client.call("t")


@pytest.mark.parametrize(
    ("place", "path"),
    [("/m p", "/m%20p"), ("http://me:pass@{host}/x?a=b c#d", "/x?a=b%20c")],
    ids=["blanks", "user and fragment"],
)
async def test_where_a_redirect_leads_is_asked_for_in_the_form_of_http(place: str, path: str) -> None:
    async def on_call(request: Request, out: Out) -> None:
        if request.path == "/mcp":
            await out.send(307, location=place.format(host=request.headers["host"]))
        else:
            await done(request, out)

    async with web(modern(on_call)) as server, Client(server.url) as client:
        assert await client.call("t") == "done"
    first, second = server.asked("tools/call")
    assert second.path == path
    assert second.headers["host"] == first.headers["host"]


# ------------------------------------------------------------------ secrets, and the function that gives them


async def test_what_stands_in_a_query_or_was_once_a_header_is_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    count = 0

    async def on_call(request: Request, out: Out) -> None:
        said = f"{request.path} {request.headers['authorization']} pa%73sword password"
        await out.send(500, said.encode(), "text/plain")

    def headers() -> dict[str, str]:
        nonlocal count
        count += 1
        return {"X-Token": f"token-{count:05}"}

    async with web(modern(on_call)) as server:
        url = server.url.replace("//", "//me:pa%73sword@") + "?token=hidden-1&b=hidden%2D2"
        async with Client(url, headers=headers) as client:
            for _ in range(40):
                with pytest.raises(HttpFailed) as caught:
                    await client.call("t")
                shown = f"{caught.value} {caught.value.body}"
                assert not [secret for secret in ("hidden", "sword", "Basic b") if secret in shown]
    assert "hidden" not in caplog.text
    assert "sword" not in caplog.text


async def test_a_library_of_others_shows_no_query_either() -> None:
    async def on_call(request: Request, out: Out) -> None:
        out.keep = False
        await out.raw(b"HTTP/1.1 200 OK\r\nno header\r\n\r\n")

    async with (
        web(modern(on_call)) as server,
        aiohttp.ClientSession() as session,
        Client(f"{server.url}?key=k3y", http=session) as client,
    ):
        with pytest.raises(HttpFailed, match="what it answered is no HTTP") as caught:
            await client.call("t")
    assert "k3y" not in str(caught.value)


async def test_a_function_for_headers_that_was_cancelled_fails_its_request() -> None:
    cancelled = False

    def headers() -> dict[str, str]:
        if cancelled:
            raise asyncio.CancelledError
        return {}

    async with web(modern(done)) as server, Client(server.url, headers=headers) as client:
        cancelled = True
        with pytest.raises(ConnectionFailed, match="headers= was cancelled"):
            await client.call("t", timeout=10)
        cancelled = False
        assert await client.call("t") == "done"


# ------------------------------------------------------------------ sessions


async def test_a_stream_in_answer_to_the_greeting_holds_up_nobody() -> None:
    old = legacy(done)

    async def play(request: Request, out: Out) -> None:
        if request.rpc == "notifications/initialized":
            await out.events()
            await asyncio.Event().wait()
        await old(request, out)

    async with web(play) as server, Client(server.url) as client:
        assert await client.call("t", timeout=5) == "done"


async def test_a_server_that_says_a_word_and_hangs_up_is_not_asked_without_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []
    many = asyncio.Event()
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 4:
            many.set()
        await sleep(0)

    async def get(request: Request, out: Out) -> None:
        await out.events()
        await out.event("", id=f"e{len(server.asked('GET'))}")

    class Asyncio:
        sleep = staticmethod(noted)

        def __getattr__(self, name: str) -> Any:
            return getattr(asyncio, name)

    monkeypatch.setattr(standing, "asyncio", Asyncio())
    async with web(legacy(done, get=get)) as server, Client(server.url):
        async with asyncio.timeout(10):
            await many.wait()
    assert pauses[0] == 0.0
    assert all(pause >= 0.5 for pause in pauses[1:4])


async def test_all_that_a_lost_session_refuses_is_sent_again_and_what_it_answers_is_taken() -> None:
    refused = asyncio.Event()

    async def on_call(request: Request, out: Out) -> None:
        if request.message["params"]["name"] == "begun":
            await refused.wait()
            await done(request, out)
        elif request.headers["mcp-session-id"] == "s1" and len(server.asked("initialize")) == 1:
            await out.send(404)
            refused.set()
        else:
            await done(request, out)

    async with web(legacy(on_call)) as server, Client(server.url) as client:
        begun = asyncio.create_task(client.call("begun"))
        await server.wait_for("tools/call")
        assert await asyncio.gather(*(client.call("t") for _ in range(8))) == ["done"] * 8
        assert await begun == "done"
        assert len(server.asked("initialize")) == 2
        assert len([request for request in server.asked("tools/call") if b"begun" in request.body]) == 1


async def test_a_method_that_is_not_known_is_no_session_that_is_not() -> None:
    async def on_call(request: Request, out: Out) -> None:
        await out.error(request, -32601, "no such method", 404)

    async with web(legacy(on_call)) as server, Client(server.url) as client:
        with pytest.raises(MethodNotFound):
            await client.call("t")
        assert len(server.asked("initialize")) == 1


async def test_who_only_listens_hears_that_the_session_is_gone() -> None:
    go = asyncio.Event()

    async def get(request: Request, out: Out) -> None:
        if len(server.asked("initialize")) == 1 and len(server.asked("GET")) > 1:
            await out.send(404)  # the server was started anew, and knows no session
            return
        await out.events()
        if len(server.asked("GET")) == 1:
            await go.wait()
        else:
            await asyncio.Event().wait()

    async with (
        web(legacy(done, get=get)) as server,
        Client(server.url) as client,
        client.listen(tools=True) as events,
    ):
        go.set()
        async with asyncio.timeout(10):
            assert await anext(events) == Missed()
        assert len(server.asked("initialize")) == 2


def http_with_sse(on_call: Play) -> Play:
    """A server of HTTP+SSE; ``on_call`` answers on the stream."""
    streams: list[Out] = []

    async def play(request: Request, out: Out) -> None:
        if request.method == "GET":
            streams.append(out)
            await out.events()
            await out.event("/post", name="endpoint")
            await asyncio.Event().wait()
        if request.path != "/post":
            await out.send(405)
            return
        await out.send(202)
        if request.rpc == "initialize":
            info: Json = {"name": "old", "version": "1"}
            result: Json = {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}, "serverInfo": info}
            await streams[-1].event({"jsonrpc": "2.0", "id": request.message["id"], "result": result})
        elif request.rpc == "tools/call":
            await on_call(request, streams[-1])

    return play


async def test_an_answer_above_max_message_fails_its_request_over_http_with_sse() -> None:
    async def on_call(request: Request, out: Out) -> None:
        text = "x" * (100_000 if request.message["params"]["name"] == "large" else 1)
        result = {"content": [{"type": "text", "text": text}]}
        await out.event({"jsonrpc": "2.0", "id": request.message["id"], "result": result})

    async with web(http_with_sse(on_call)) as server, Client(server.url, max_message=20_000) as client:
        with pytest.raises(FrameTooLarge):
            await client.call("large", timeout=10)
        assert await client.call("t") == "x"
