"""HTTP+SSE as its client sees it: a stream that says where messages go to, and what is said when it does not."""

from __future__ import annotations

import asyncio

import pytest

from modelwire import Client, ConnectionFailed
from modelwire.transports.http import old_sse
from tests.leftovers import nothing_left
from tests.transports.http.scripted import Out, Request, web


async def silent(request: Request, out: Out) -> None:
    """Behave like HTTP+SSE behind a proxy that holds back what is streamed."""
    if request.method == "POST":
        await out.send(404, b"Cannot POST /sse", "text/plain")
    else:
        await out.gone()


async def test_a_stream_that_is_held_back_is_named_beside_the_refusal(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(old_sse, "FIRST_SECONDS", 0.05)
    async with web(silent) as server, nothing_left(caplog):
        with pytest.raises(ConnectionFailed) as caught:
            await Client(server.url).connect()
    said = str(caught.value)
    assert "HTTP 404" in said
    assert "did not say within 0.05 s where messages go to" in said
    assert "nginx: proxy_buffering off" in said


async def test_an_address_on_another_server_is_named_beside_the_refusal() -> None:
    async def play(request: Request, out: Out) -> None:
        if request.method == "POST":
            await out.send(405)
        else:
            await out.events()
            await out.event("https://evil.example/message", name="endpoint")

    async with web(play) as server:
        with pytest.raises(ConnectionFailed, match=r"HTTP 405.*https://evil\.example/message, which is another server"):
            await Client(server.url).connect()


async def test_where_there_is_no_stream_either_the_refusal_is_enough() -> None:
    async def play(request: Request, out: Out) -> None:
        await out.send(404, b"nothing", "text/plain")

    async with web(play) as server:
        with pytest.raises(ConnectionFailed) as caught:
            await Client(server.url).connect()
    assert "HTTP+SSE" not in str(caught.value)


async def test_a_client_that_is_given_up_while_it_waits_for_the_stream_leaves_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with web(silent) as server, nothing_left(caplog):
        connecting = asyncio.create_task(Client(server.url).connect())
        await server.wait_for("GET")
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
