"""What is sent again, once, when its POST breaks off: what opens, and what nobody waits for and does no harm twice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from modelwire import Client, ConnectionFailed
from tests.transports.http.scripted import HANDSHAKE, MODERN, SAID, Out, Play, Request, done, legacy, modern, web


def breaking(rpc: str, play: Play, times: int = 1) -> Play:
    """Reset the first connections over which a message of this method comes."""
    left = times

    async def broken(request: Request, out: Out) -> None:
        nonlocal left
        if request.rpc == rpc and left:
            left -= 1
            out.reset()
        else:
            await play(request, out)

    return broken


@pytest.mark.parametrize(
    ("rpc", "play", "revision"),
    [
        ("server/discover", modern(done), None),
        ("server/discover", modern(done), MODERN),
        ("initialize", legacy(done), None),
        ("initialize", legacy(done), HANDSHAKE),
    ],
)
async def test_what_opens_is_sent_again(rpc: str, play: Play, revision: str | None) -> None:
    async with web(breaking(rpc, play)) as server, Client(server.url, revision=revision) as client:
        assert await client.call("t") == "done"
    assert len(server.asked(rpc)) == 2


async def test_what_opens_fails_the_second_time() -> None:
    async with web(breaking("server/discover", modern(done), 2)) as server:
        with pytest.raises(ConnectionFailed, match="the connection was reset|closed the connection"):
            await Client(server.url, revision=MODERN).connect()


async def test_a_server_hears_that_it_was_opened_although_the_post_broke() -> None:
    # Some refuse everything before that.
    async def on_call(request: Request, out: Out) -> None:
        await (done(request, out) if len(server.asked("notifications/initialized")) == 2 else out.send(400))

    async with web(breaking("notifications/initialized", legacy(on_call))) as server, Client(server.url) as client:
        assert await client.call("t") == "done"


async def test_an_answer_to_the_server_is_delivered_although_the_post_broke() -> None:
    answered = asyncio.Event()

    async def on_call(request: Request, out: Out) -> None:
        if request.rpc == "POST":  # what has no method is an answer
            nonlocal answers
            answers += 1
            if answers == 1:
                out.reset()
            else:
                answered.set()
                await out.send(202)
            return
        await out.events()
        await out.event({"jsonrpc": "2.0", "id": "q", "method": "ping"})
        await answered.wait()
        await out.event({"jsonrpc": "2.0", "id": request.message["id"], "result": SAID})

    answers = 0
    async with web(legacy(on_call)) as server, Client(server.url) as client:
        assert await client.call("t", timeout=10) == "done"
    assert answers == 2


async def test_a_notification_that_is_nobodys_is_not_sent_twice() -> None:
    async def on_call(request: Request, out: Out) -> None:
        await (out.send(202) if request.rpc == "notifications/own" else done(request, out))

    async with web(breaking("notifications/own", legacy(on_call))) as server, Client(server.url) as client:
        params: dict[str, Any] = {"count": 1}
        await client.notify("notifications/own", params)
        await server.wait_for("notifications/own")
        assert await client.call("t") == "done"
    assert len(server.asked("notifications/own")) == 1
