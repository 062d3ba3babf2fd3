"""WebSockets through networks that break: wherever it is cut, nothing hangs, nothing is left, no bystander suffers."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Literal

import pytest

from modelwire import Client, ConnectionFailed, ConnectionLost, RequestTimeout
from tests.faulty_tcp import FINE, Fault, How, faulty
from tests.leftovers import nothing_left
from tests.server.http.servers import make
from tests.server.http.sockets import raw_socket, talking
from tests.wire import PATIENCE

HERE = "ws://127.0.0.1:0/mcp"


@pytest.fixture(autouse=True)
def short_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who does not answer is not waited for."""
    for name in (
        "transports.websocket_stream.CLOSE_SECONDS",
        "transports.websocket_stream.DRAIN_SECONDS",
        "client.contact.FLUSH_SECONDS",
        "server.http.run.LINGER",
        "server.http.run.GRACE",
    ):
        monkeypatch.setattr(f"modelwire.{name}", 0.05)


async def converse(url: str, seconds: float) -> None:
    """Connect, call, and leave."""
    client = Client(url, reconnect=False, connect_timeout=seconds, timeout=seconds)
    try:
        await client.connect()
        await client.call("steps", {"count": 3})
    finally:
        await client.close()


@pytest.mark.parametrize("where", ["up", "down"])
@pytest.mark.parametrize(
    "how", ["reset", *(pytest.param(how, marks=pytest.mark.slow) for how in ("close", "half", "stall"))]
)
async def test_wherever_it_is_cut_the_call_fails_and_nothing_is_left(
    how: How, where: Literal["up", "down"], caplog: pytest.LogCaptureFixture
) -> None:
    seconds = 0.2 if how == "stall" else PATIENCE
    async with nothing_left(caplog), make().server.serving(HERE) as serving, faulty(str(serving.url)) as proxy:
        await converse(proxy.url, PATIENCE)
        whole = proxy.crossings[0].up if where == "up" else proxy.crossings[0].down
        async with raw_socket(serving.url) as bystander, talking(bystander, "2025-11-25") as talk:
            for after in sorted({0, 1, whole - 1, *(whole * step // 12 for step in range(12))}):
                setattr(proxy, where, Fault(after=after, how=how))
                with contextlib.suppress(ConnectionFailed, ConnectionLost, RequestTimeout):
                    async with asyncio.timeout(2 * PATIENCE):
                        await converse(proxy.url, seconds)
                assert await talk.text("add", {"a": after, "b": 1}) == f"{after + 1}"
            proxy.up = proxy.down = FINE
            await converse(proxy.url, PATIENCE)


async def test_bytes_that_come_one_by_one_are_the_same_conversation(caplog: pytest.LogCaptureFixture) -> None:
    async with nothing_left(caplog), make().server.serving(HERE) as serving, faulty(str(serving.url)) as proxy:
        proxy.up = proxy.down = Fault(split=1)
        await converse(proxy.url, PATIENCE)


async def test_a_client_comes_back_as_often_as_its_connection_is_reset(caplog: pytest.LogCaptureFixture) -> None:
    async with (
        nothing_left(caplog),
        make().server.serving(HERE) as serving,
        faulty(str(serving.url)) as proxy,
        Client(proxy.url) as client,
    ):
        for number in range(3):
            assert await client.call("add", {"a": number, "b": 1}, returns=int) == number + 1
            proxy.crossings[-1].reset()
            async with asyncio.timeout(PATIENCE):
                while client.connected:
                    await asyncio.sleep(0.001)
