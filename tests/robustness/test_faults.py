"""Every fault of a server at every moment: each call ends in time, with the right error, and nothing is left."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from modelwire import (
    Client,
    ConnectionFailed,
    ConnectionLost,
    Missed,
    ModelwireError,
    Observer,
    ProtocolViolation,
    RequestTimeout,
    ServerExited,
    ToolsChanged,
)
from modelwire.rules import restarts
from tests.clock import Clock
from tests.fake_server import MODERN, child
from tests.leftovers import nothing_left
from tests.robustness.faults import FAULTS, MOMENTS, Fault, script

OPENING = MOMENTS[:3]
PATIENCE = 30.0
"""Seconds that a client waits; a test that really waits so long has failed."""
ERRORS: dict[str, tuple[type[ModelwireError], ...]] = {
    "exits": (ServerExited,),
    "lost": (ConnectionLost,),
    "deaf": (ConnectionLost, RequestTimeout),
    "late": (RequestTimeout,),
    "wrong": (ProtocolViolation,),
}


def cases() -> list[Any]:
    """Every fault at every moment at which it means something."""
    asked = [
        moment for moment in MOMENTS if moment not in ("before any byte", "between two calls", "when its input ends")
    ]
    return [
        pytest.param(fault, moment, id=f"{name}-{moment}")
        for name, fault in FAULTS.items()
        for moment in (asked if fault.answers else MOMENTS)
    ]


def client_of(fault: Fault, moment: str, mark: str = "", **options: Any) -> Client:
    listens = moment == "during a listening"
    pinned = "2025-11-25" if moment == "before the answer to initialize" else None
    return Client(
        child(script(fault), moment, "per-request" if listens else "handshake", mark),
        revision=MODERN if listens else pinned,
        connect_timeout=PATIENCE,
        timeout=PATIENCE,
        max_message=100_000,
        **options,
    )


class Silences:
    """Lets the time pass for a client whose server has fallen silent."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.begun = asyncio.Event()

    def hear(self, line: str) -> None:
        if line == "now":
            self.begun.set()

    async def during(self, work: Coroutine[Any, Any, None]) -> None:
        working = asyncio.create_task(work)
        await asyncio.wait([working, asyncio.create_task(self.begun.wait())], return_when=asyncio.FIRST_COMPLETED)
        self.begun.set()
        if not working.done():
            await self.clock.turn()
            await self.clock.advance(PATIENCE + 1)
        await working


def opening_errors(fault: Fault, moment: str) -> tuple[type[ModelwireError], ...]:
    """What `connect` may raise."""
    if moment == "before the answer to the probe" and fault.outcome in ("exits", "lost", "wrong"):
        return ()  # a server that dies of the probe, or does not answer it rightly, is one to initialize
    return (ConnectionFailed,) if fault.outcome == "wrong" else ERRORS.get(fault.outcome, ())


async def use(client: Client, moment: str) -> None:
    """Do what the fault comes in between of."""
    if moment == "during the second page of a list":
        assert [tool.name for tool in await client.list_tools()] == ["one", "two"]
    elif moment == "during a listening":
        await hear(client)
    else:
        if moment == "between two calls":
            await client.ping()
        assert await client.call("x") == "done"


async def hear(client: Client) -> None:
    async with client.listen(tools=True) as events:
        async with asyncio.timeout(client.timeout):
            async for event in events:
                if event == ToolsChanged():
                    return
                assert event == Missed()


@pytest.mark.slow
@pytest.mark.usefixtures("quiet_loop", "short_waits")
@pytest.mark.parametrize(("fault", "moment"), cases())
async def test_a_fault_costs_only_what_it_must(fault: Fault, moment: str, caplog: pytest.LogCaptureFixture) -> None:
    silences = Silences()
    async with nothing_left(caplog):
        client = client_of(fault, moment, reconnect=False, stderr=silences.hear)
        await silences.during(goes_wrong(client, fault, moment))
        await client.close()
        assert client.exit_code is not None


async def goes_wrong(client: Client, fault: Fault, moment: str) -> None:
    opening = opening_errors(fault, moment) if moment in OPENING else ()
    if opening:
        with pytest.raises(opening, match=fault.words):
            await client.connect()
        return
    await client.connect()
    if moment in OPENING:
        assert await client.call("x") == "done"
    elif moment != "when its input ends":
        await goes_wrong_in_use(client, fault, moment)


async def goes_wrong_in_use(client: Client, fault: Fault, moment: str) -> None:
    expected = ERRORS.get(fault.outcome)
    if moment == "during a listening":
        await goes_wrong_for_who_listens(client, fault)
    elif expected is None:
        await use(client, moment)
    else:
        with pytest.raises(expected, match=fault.words):
            await use(client, moment)
    if fault.outcome in ("fine", "wrong"):
        assert await client.call("x") == "done"


async def goes_wrong_for_who_listens(client: Client, fault: Fault) -> None:
    if fault.outcome in ("late", "deaf"):  # to listen is to wait: no deadline
        with pytest.raises(TimeoutError):
            await hear(client)
    elif fault.outcome in ("exits", "lost") or "both" in fault.words:
        with pytest.raises(ConnectionLost, match=f"nothing more will be told: [^$]*({fault.words})"):
            await hear(client)
    else:
        await hear(client)


# --------------------------------------------------------------------------------------------------- coming back

ENDINGS = {name: fault for name, fault in FAULTS.items() if fault.outcome in ("exits", "lost")}
IN_USE = [moment for moment in MOMENTS if moment not in OPENING and moment != "when its input ends"]


@pytest.mark.slow
@pytest.mark.usefixtures("quiet_loop", "short_waits")
@pytest.mark.parametrize("moment", IN_USE)
@pytest.mark.parametrize("fault", ENDINGS.values(), ids=ENDINGS)
async def test_a_server_that_ended_once_is_back_for_the_next_request(
    fault: Fault, moment: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with nothing_left(caplog), client_of(fault, moment, str(tmp_path / "mark")) as client:
        if moment == "during a listening":
            async with client.listen(tools=True) as events, asyncio.timeout(PATIENCE):
                assert [await anext(events), await anext(events)] == [Missed(), ToolsChanged()]
        elif moment == "during a call":
            with pytest.raises(ConnectionLost, match="it may have run or not, and was not sent again"):
                await use(client, moment)
        elif moment == "between two calls":
            # The call was written before the end of the server, or has met it already.
            found = await asyncio.gather(use(client, moment), return_exceptions=True)
            assert found == [None] or "it may have run or not" in str(found[0])
        else:
            await use(client, moment)
        assert await client.call("x") == "done"


class Ends(Observer):
    """Counts the processes that have ended."""

    count = 0

    def exited(self, exit_code: int) -> None:
        self.count += 1


@pytest.mark.slow
@pytest.mark.usefixtures("quiet_loop", "short_waits")
@pytest.mark.parametrize("moment", IN_USE)
@pytest.mark.parametrize("fault", ENDINGS.values(), ids=ENDINGS)
async def test_a_server_that_ends_every_time_is_not_started_for_ever(
    fault: Fault, moment: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restarts, "DELAYS", tuple(number / 100 for number in range(restarts.MOST)))
    ends = Ends()
    async with nothing_left(caplog):
        async with client_of(fault, moment, observers=[ends]) as client:
            for _ in range(3 * restarts.MOST):
                found = await asyncio.gather(use(client, moment), return_exceptions=True)
                assert isinstance(found[0], ConnectionLost | None)
                if "lost 5 times within 60 s" in str(found[0]):
                    break
            assert "lost 5 times within 60 s" in str(found[0])
        assert ends.count == restarts.MOST + 1
