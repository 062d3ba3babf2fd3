"""Handlers that wait in memory: bounded, and gone when their time is over."""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import subprocess
import sys
import tracemalloc
from typing import Any

import pytest

from modelwire import ConfigError, Context, Parking, Server
from modelwire.server.serve import ServerSession
from tests.clock import Clock
from tests.server.persons import EVERYTHING
from tests.wire import modern_meta


def asking(**options: Any) -> Server:
    server = Server("s", **options)

    @server.tool
    async def ask(number: int, ctx: Context) -> str:
        await ctx.elicit(f"Go on with {number}?")
        return "done"

    return server


async def _call(session: ServerSession, number: int) -> dict[str, Any]:
    # By hand, and not by a client that remembers every frame.
    params = {"name": "ask", "arguments": {"number": number}, "_meta": modern_meta(clientCapabilities=EVERYTHING)}
    message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    answer = await session.handle(json.dumps(message).encode())
    assert answer is not None
    return json.loads(answer)


async def _wave(session: ServerSession, count: int) -> None:
    for number in range(count):
        assert (await _call(session, number))["result"]["resultType"] == "input_required"


@pytest.mark.slow
async def test_thousands_of_calls_that_nobody_answers_leave_nothing_when_their_time_is_over() -> None:
    count = 1_000
    clock = Clock()
    session = asking(parking=Parking(calls=count, seconds=60)).session()
    tasks = len(asyncio.all_tasks())
    tracemalloc.start()
    left: list[int] = []
    for _ in range(4):
        await _wave(session, count)
        assert len(asyncio.all_tasks()) == tasks + count
        held = tracemalloc.get_traced_memory()[0]
        assert "Too many calls" in (await _call(session, -1))["error"]["message"]
        await clock.advance(61)
        assert len(asyncio.all_tasks()) == tasks
        gc.collect()
        left.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    # A table grows in one wave or another, as the addresses of what was in it have it, and stays so large. What
    # a call left behind would be added by every wave.
    assert min(after - before for before, after in itertools.pairwise(left)) < held / 100
    await session.aclose()


WAVES = """
import asyncio, gc, json, sys
from modelwire import Context, Parking, Server

server = Server("s", parking=Parking(calls=10_000, bytes=1 << 30, seconds=60), state_keys=json.loads(sys.argv[1]))

@server.tool
async def ask(number: int, ctx: Context) -> str:
    await ctx.elicit(f"Go on with {number}?")
    return "done"

def resident():
    return int(open("/proc/self/statm").read().split()[1])

async def main():
    loop = asyncio.get_running_loop()
    real, ahead = loop.time, 0.0
    loop.time = lambda: real() + ahead
    session = server.session()
    prefix = "io.modelcontextprotocol/"
    meta = {prefix + "protocolVersion": "2026-07-28", prefix + "clientCapabilities": {"elicitation": {}}}
    for _ in range(3):
        for number in range(10_000):
            params = {"name": "ask", "arguments": {"number": number}, "_meta": meta}
            message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
            assert b"input_required" in await session.handle(json.dumps(message).encode())
        print(resident())
        ahead += 61
        for _ in range(20):
            await asyncio.sleep(0)
        gc.collect()
        assert len(asyncio.all_tasks()) == 1
    await session.aclose()

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc says what a process holds")
@pytest.mark.parametrize("keys", [None, ["k" * 32]], ids=["parked", "sealed"])
def test_a_second_wave_of_ten_thousand_takes_no_more_memory_than_the_first(keys: Any) -> None:
    ran = subprocess.run([sys.executable, "-c", WAVES, json.dumps(keys)], capture_output=True, text=True, timeout=50)
    assert ran.returncode == 0, ran.stderr
    first, *later = map(int, ran.stdout.split())
    assert max(later) < first * 1.02


@pytest.mark.parametrize("limits", [{"calls": -1}, {"bytes": "many"}, {"seconds": None}, {"calls": True}])
def test_limits_that_are_none_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="parking"):
        Parking(**limits)


def test_parking_takes_its_own_class() -> None:
    with pytest.raises(ConfigError, match=r"Parking\(calls="):
        Server("s", parking=1000)  # type: ignore[arg-type]
