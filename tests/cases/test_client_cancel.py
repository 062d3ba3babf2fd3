"""Calls that are given up, and cancellations that mean nothing, from the client's side and against a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from modelwire import Client, Context, RequestTimeout, Server
from tests.clock import Clock
from tests.fake_server import HANDSHAKE, REVISIONS, talking


class Slow:
    """A server whose tool runs until it is cancelled, and counts."""

    def __init__(self) -> None:
        self.server = Server("slow")
        self.started = self.cancelled = 0
        self.server.tool(self.work)
        self.server.tool(self.step)

    async def work(self) -> str:
        self.started += 1
        try:
            await asyncio.sleep(10_000)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return "done"

    async def step(self, ctx: Context) -> str:
        for number in range(1, 4):
            ctx.progress(number, 3, f"step {number}")
        return "done"


@asynccontextmanager
async def slow(revision: str, **options: Any) -> AsyncIterator[tuple[Client, Slow]]:
    service = Slow()
    async with Client(service.server, revision=revision, **options) as client:
        yield client, service


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_call_that_takes_too_long_stops_the_handler(revision: str) -> None:
    clock = Clock()
    async with slow(revision) as (client, service):
        call = asyncio.create_task(client.call("work"))
        await clock.turn()
        assert service.started == 1
        await clock.advance(61)
        with pytest.raises(RequestTimeout):
            await call
        await clock.turn()
        assert service.cancelled == 1
        assert await client.call("step") == "done"


@pytest.mark.parametrize("revision", REVISIONS)
async def test_abandoned_calls_leave_no_handler_running(revision: str) -> None:
    async with slow(revision) as (client, service):
        calls = [asyncio.create_task(client.call("work")) for _ in range(50)]
        await Clock().turn()
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        await Clock().turn()
        assert (service.started, service.cancelled) == (50, 50)
        assert await client.call("step") == "done"


@pytest.mark.parametrize("revision", REVISIONS)
async def test_progress_of_a_real_tool_is_complete_when_the_call_returns(revision: str) -> None:
    told: list[Any] = []
    async with slow(revision) as (client, _):
        await client.call("step", on_progress=lambda *news: told.append(news))
    message = [None] * 3 if revision == "2024-11-05" else [f"step {number}" for number in (1, 2, 3)]
    assert told == [(number, 3, words) for number, words in zip((1, 2, 3), message, strict=True)]


@pytest.mark.parametrize(
    "params",
    [None, {}, {"requestId": 99}, {"requestId": 1}, {"requestId": "1"}, {"requestId": {}}, {"requestId": None}, [1]],
    ids=str,
)
@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_cancellation_that_means_nothing_is_ignored_and_cancels_no_call_of_ours(
    revision: str, params: Any
) -> None:
    async with talking(revision) as (client, fake):
        call = asyncio.create_task(client.call("t"))
        request = await fake.expect("tools/call")
        await fake.notify("notifications/cancelled", params)
        await fake.notify("notifications/cancelled", {"requestId": request["id"]})
        await fake.result(request, {"content": [{"type": "text", "text": "done"}]})
        assert await call == "done"


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_server_that_cancels_its_request_with_an_id_like_ours_leaves_our_call_alone(revision: str) -> None:
    stopped = asyncio.Event()

    async def roots(params: Any) -> Any:
        try:
            await asyncio.sleep(10_000)
        finally:
            stopped.set()

    async with talking(revision, handlers={"roots/list": roots}) as (client, fake):
        call = asyncio.create_task(client.call("t"))
        request = await fake.expect("tools/call")
        await fake.send({"jsonrpc": "2.0", "id": request["id"], "method": "roots/list"})
        await Clock().turn()
        await fake.notify("notifications/cancelled", {"requestId": request["id"]})
        await stopped.wait()
        assert not call.done()
        await fake.result(request, {"content": []})
        assert await call is None
