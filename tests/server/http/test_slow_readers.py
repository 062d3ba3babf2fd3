"""Clients that do not read what they are sent: nothing grows for them without end, and they get their answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from modelwire import Context
from tests.server.http.asgi import Legacy, Modern, serving
from tests.server.http.servers import make

LARGE = 100_000
MANY = 200


@pytest.mark.parametrize("kind", [Legacy, Modern])
async def test_progress_is_left_out_for_a_client_that_does_not_read(kind: Any) -> None:
    bench = make()
    flooded = asyncio.Event()

    @bench.server.tool
    async def flood(ctx: Context) -> str:
        for number in range(MANY):
            ctx.progress(number + 1, message="x" * LARGE)
            await asyncio.sleep(0)
        flooded.set()
        return "done"

    async with serving(bench.server) as http:
        client = kind(http)
        if kind is Legacy:
            await client.open()
        exchange = client.call("flood", meta={"progressToken": 1})
        exchange.reads.clear()
        await flooded.wait()
        exchange.reads.set()
        *told, answer = await exchange.messages()
        assert answer["result"]["content"][0]["text"] == "done"
        assert 1 <= len(told) < MANY / 4
        assert client.ledger.faults == []


async def test_who_does_not_read_holds_up_nobody_else() -> None:
    bench = make()
    async with serving(bench.server) as http:
        stuck, fine = await Legacy(http).open(), await Legacy(http).open()
        stream = stuck.get()
        await stream.started()
        stream.reads.clear()
        for number in range(50):
            bench.server.add_tool(lambda: "x", name=f"more{number}")
            assert await fine.ask("ping").done() == 200
            assert await stuck.ask("ping").done() == 200
