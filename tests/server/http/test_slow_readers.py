"""Clients that do not read what they are sent: nothing grows for them without end, and they get their answer."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from modelwire import Context
from tests.clock import Clock
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


@pytest.mark.parametrize("kind", [Legacy, Modern])
async def test_changes_wait_together_for_a_listener_that_does_not_read_and_the_last_of_each_is_told(kind: Any) -> None:
    bench = make()
    uris = [f"file:///{number}/{'x' * 1000}" for number in range(20)]
    async with serving(bench.server) as http:
        client = kind(http)
        if kind is Legacy:
            await client.open()
            for uri in uris:
                await client.ask("resources/subscribe", {"uri": uri}).done()
            stream = client.get()
        else:
            wanted = {"toolsListChanged": True, "resourceSubscriptions": uris}
            stream = client.ask("subscriptions/listen", {"notifications": wanted})
            await stream.message()
        await stream.started()
        stream.reads.clear()
        for _ in range(50):
            for uri in uris:
                bench.server.changed(uri)
            bench.server.changed("tools")
            for _ in range(3):
                await asyncio.sleep(0)
        stream.reads.set()
        told = [await stream.message() for _ in range(len(uris))]
        while told[-1]["method"] != "notifications/tools/list_changed":
            told.append(await stream.message())
        await Clock().turn()
        told += [json.loads(event.data) for event in stream.events]
        assert {note["params"]["uri"] for note in told if "uri" in note.get("params", {})} == set(uris)
        assert len(told) < 50 * len(uris) / 4
        assert client.ledger.faults == []


async def test_a_listener_that_goes_while_changes_wait_for_it_leaves_nothing_and_the_next_is_told() -> None:
    bench = make()
    uri = "file:///" + "x" * 40_000
    async with serving(bench.server) as http:
        client = await Legacy(http).open()
        await client.ask("resources/subscribe", {"uri": uri}).done()
        stuck = client.get()
        await stuck.started()
        stuck.reads.clear()
        for _ in range(10):
            bench.server.changed(uri)
            for _ in range(3):
                await asyncio.sleep(0)
        await stuck.leave()
        fresh = client.get(stuck.reader.last_id or None)
        assert (await fresh.message())["params"]["uri"] == uri
