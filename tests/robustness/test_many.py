"""Many clients at once, and calls that are given up at any moment: nothing is mixed up, and nothing is left."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from typing import Any

import pytest

from modelwire import Client, ConnectionLost, Context, Server
from modelwire.rules import restarts
from tests.fake_server import child
from tests.leftovers import nothing_left

SEEDS = [1, 2, 3]
ECHO = """
opened()
while (request := read()) is not None:
    if "id" in request:
        text(request, request["params"]["arguments"]["value"])
"""


def workshop() -> Server:
    server = Server("workshop")

    @server.tool
    def echo(value: str) -> str:
        return value

    @server.tool
    async def wait(value: str, turns: int) -> str:
        for _ in range(turns):
            await asyncio.sleep(0)
        return value

    @server.tool
    async def steps(value: str, turns: int, ctx: Context) -> str:
        for turn in range(turns):
            ctx.progress(turn, turns)
            await asyncio.sleep(0)
        return value

    return server


async def turns(number: int) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


# --------------------------------------------------------------------------------------------------- many clients


async def live(client: Client, name: str, chance: random.Random) -> None:
    """Open, call, and close, in the way and in the tasks that chance wants."""
    await turns(chance.randrange(20))
    await (client.connect() if chance.random() < 0.5 else asyncio.create_task(client.connect()))
    calls = [asyncio.create_task(client.call("echo", {"value": f"{name}/{n}"})) for n in range(chance.randrange(1, 4))]
    await turns(chance.randrange(20))
    if chance.random() < 0.5:
        assert await asyncio.gather(*calls) == [f"{name}/{n}" for n in range(len(calls))]
    closing = [asyncio.create_task(client.close()) for _ in range(chance.randrange(1, 3))]
    if chance.random() < 0.3:
        closing.pop().cancel()
    await asyncio.gather(*closing, return_exceptions=True)
    await client.close()
    for n, outcome in enumerate(await asyncio.gather(*calls, return_exceptions=True)):
        assert outcome == f"{name}/{n}" or isinstance(outcome, ConnectionLost)


@pytest.mark.slow
@pytest.mark.usefixtures("quiet_loop")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("count", "target"), [(200, workshop), (40, lambda: child(ECHO))], ids=["in this process", "processes"]
)
async def test_clients_that_open_and_close_in_any_order_leave_nothing(
    count: int, target: Callable[[], Any], seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    chance = random.Random(seed)
    async with nothing_left(caplog):
        lives = [live(Client(target()), str(number), chance) for number in range(count)]
        chance.shuffle(lives)
        await asyncio.gather(*(asyncio.create_task(life) for life in lives))
    assert warnings(caplog) == []


# --------------------------------------------------------------------------------------------------- many cancellations


async def cut_short(client: Client, number: int, chance: random.Random) -> bool:
    """Give a call up after some turns of the loop; return whether it was done by then."""
    name = chance.choice(["echo", "wait", "steps"])
    arguments: dict[str, Any] = {"value": str(number)}
    if name != "echo":
        arguments["turns"] = chance.randrange(30)
    told: list[float] = []
    options: dict[str, Any] = {"on_progress": lambda done, *more: told.append(done)} if name == "steps" else {}
    call = asyncio.create_task(client.call(name, arguments, **options))
    await turns(chance.randrange(40))
    call.cancel("enough")
    try:
        assert await call == str(number)
    except asyncio.CancelledError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.usefixtures("quiet_loop")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_thousand_calls_that_are_given_up_at_any_moment_leave_nothing(
    revision: str, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    chance = random.Random(seed)
    async with nothing_left(caplog):
        async with Client(workshop(), revision=revision) as client:
            done = await asyncio.gather(*(cut_short(client, number, chance) for number in range(1000)))
            assert await client.call("echo", {"value": "still here"}) == "still here"
            assert len(client._contacts.here().connection.pending) == 0
        assert 0 < sum(done) < 1000, "chance has cut too early, or too late"
    assert warnings(caplog) == []


@pytest.mark.slow
@pytest.mark.usefixtures("quiet_loop")
@pytest.mark.parametrize("seed", SEEDS)
async def test_calls_to_a_process_that_are_given_up_at_any_moment_leave_nothing(
    seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    chance = random.Random(seed)
    async with nothing_left(caplog), Client(child(ECHO)) as client:
        calls = [asyncio.create_task(client.call("echo", {"value": str(number)})) for number in range(1000)]
        for call in chance.sample(calls, 900):
            await turns(chance.randrange(3))
            call.cancel()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        for number, outcome in enumerate(outcomes):
            assert outcome == str(number) or isinstance(outcome, asyncio.CancelledError)
        assert len([outcome for outcome in outcomes if isinstance(outcome, str)]) >= 100
        assert await client.call("echo", {"value": "still here"}) == "still here"
        assert len(client._contacts.here().connection.pending) == 0
    assert warnings(caplog) == []


# --------------------------------------------------------------------------------------------------- many deaths

MORTAL = """
import random
opened()
while (request := read()) is not None:
    if "id" not in request:
        continue
    if random.random() < 0.05:
        os._exit(1)
    if request["method"] == "tools/list":
        hints = {"readOnlyHint": True}
        result(request, tools=[{"name": "safe", "inputSchema": {"type": "object"}, "annotations": hints}])
    else:
        text(request, request["params"]["arguments"]["value"])
"""


@pytest.mark.slow
@pytest.mark.usefixtures("quiet_loop")
@pytest.mark.parametrize("seed", SEEDS)
async def test_a_server_that_dies_again_and_again_mixes_nothing_up(
    seed: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restarts, "WINDOW", 0.0)  # it may come back as often as it likes
    chance = random.Random(seed)
    outcomes: list[tuple[str, Any]] = []

    async def call(client: Client, number: int) -> None:
        await turns(chance.randrange(200))
        name = chance.choice(["safe", "unsafe"])
        [outcome] = await asyncio.gather(client.call(name, {"value": str(number)}), return_exceptions=True)
        assert outcome == str(number) or isinstance(outcome, ConnectionLost)
        outcomes.append((name, outcome))

    async with nothing_left(caplog), Client(child(MORTAL), revision="2025-11-25") as client:
        for _ in range(5):
            await asyncio.gather(client.list_tools(), return_exceptions=True)
            await asyncio.gather(*(call(client, number) for number in range(40)))
    lost = [(name, str(error)) for name, error in outcomes if isinstance(error, ConnectionLost)]
    assert len(outcomes) == 200
    assert len(lost) < 200
    assert all("may have run" in words or "not sent" in words for name, words in lost if name == "unsafe")
