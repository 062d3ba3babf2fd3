"""Networks that break under a client: one clear error or the right answer, and everything else goes on.

Real servers behind the proxy of `tests.faulty_tcp`, over HTTP in both eras and over WebSockets. Each fault strikes one
connection once, at places all over what goes either way.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from modelwire import Client, LocalError, Missed, RequestTimeout, ToolsChanged
from modelwire.rules import restarts
from modelwire.transports import websocket_connect, websocket_stream
from modelwire.transports.http import exchange, link, standing, streams
from tests.faulty_tcp import FINE, Fault, FaultyTcp, How, Way, faulty
from tests.leftovers import nothing_left
from tests.server.http.servers import Bench, make
from tests.wire import HANDSHAKE, MODERN, PATIENCE

SOON = 0.3
"""The deadline where nobody can hear of a fault."""
UNHEARD = ("half", "stall")
LEGACY = HANDSHAKE[-1]
OLDEST = HANDSHAKE[0]

every_how = pytest.mark.parametrize(
    "how", ["reset", *(pytest.param(how, marks=pytest.mark.slow) for how in ("close", "half", "stall"))]
)
every_way = pytest.mark.parametrize("way", [pytest.param("up", marks=pytest.mark.slow), "down"])
WIRES = {
    "http, modern": ("http", MODERN),
    "http, handshake": ("http", LEGACY),
    "http with sse": ("sse", OLDEST),
    "ws": ("ws", MODERN),
}
every_wire = pytest.mark.parametrize(("scheme", "revision"), WIRES.values(), ids=WIRES.keys())


@dataclass
class Place:
    """A server behind a proxy, and what its clients speak."""

    bench: Bench
    proxy: FaultyTcp
    scheme: str
    revision: str

    def client(self, how: How | None, **settings: Any) -> Client:
        seconds = SOON if how in UNHEARD else PATIENCE
        url = self.proxy.url
        url = url.replace("/mcp", "/sse") if self.scheme == "sse" else url.replace("http://", f"{self.scheme}://")
        given: dict[str, Any] = {"revision": self.revision, "timeout": seconds, "connect_timeout": seconds, **settings}
        return Client(url, **given)


@contextlib.asynccontextmanager
async def place(scheme: str, revision: str, caplog: pytest.LogCaptureFixture) -> AsyncIterator[Place]:
    bench = make()
    async with (
        nothing_left(caplog),
        bench.server.serving("http://127.0.0.1:0/mcp", sse=True) as serving,
        faulty(str(serving.url)) as proxy,
    ):
        yield Place(bench, proxy, scheme, revision)
        bench.go.set()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tried again, is so at once."""
    monkeypatch.setattr(exchange, "PAUSES", (0.01,) * 3)
    monkeypatch.setattr(standing, "PAUSES", (0.0, 0.01))
    monkeypatch.setattr(streams, "PAUSES", (0.01,) * 5)
    monkeypatch.setattr(link, "GOODBYE_SECONDS", SOON)
    monkeypatch.setattr(websocket_stream, "CLOSE_SECONDS", SOON)
    monkeypatch.setattr(websocket_stream, "DRAIN_SECONDS", SOON)
    monkeypatch.setattr(websocket_connect, "CLOSE_SECONDS", SOON)
    monkeypatch.setattr(restarts, "DELAYS", (0.0,) * restarts.MOST)


def at_each(whole: int, how: How) -> list[Fault]:
    """Where it breaks: both ends, their neighbours, and some in between; fewer where each is waited for."""
    if how in UNHEARD:
        # Behind its end, one that stalls is the next request's trouble.
        places = {0, whole // 2, whole - 1}
    else:
        places = {0, 1, whole // 4, whole // 2, whole * 3 // 4, whole - 1, whole}
    return [Fault(after=after, how=how) for after in sorted(places)]


async def outcome(asked: Awaitable[Any]) -> Any:
    """Return a result, or what was raised; either must come."""
    async with asyncio.timeout(PATIENCE):
        [found] = await asyncio.gather(asked, return_exceptions=True)
    if isinstance(found, BaseException) and not (isinstance(found, LocalError) and str(found)):
        raise found
    return found


Ask = Callable[[Client], Awaitable[Any]]


async def read(client: Client) -> Any:
    return (await client.read_resource("file:///a")).contents[0].text  # type: ignore[union-attr]


async def add(client: Client) -> Any:
    return await client.call("add", {"a": 1, "b": 2}, returns=int)


async def note(client: Client) -> Any:
    return await client.call("note")


async def steps(client: Client) -> Any:
    told: list[float] = []
    said = await client.call("steps", {"count": 3}, on_progress=lambda done, *rest: told.append(done))
    return said, told


async def measured(spot: Place, way: Way, ask: Ask) -> int:
    """Return how many bytes go one way for what is asked."""
    async with spot.client(None) as client:
        await read(client)
        trap = spot.proxy.trap(way, FINE)
        await ask(client)
        return trap.crossed


async def struck(spot: Place, client: Client, way: Way, fault: Fault, ask: Ask) -> tuple[Any, Any]:
    """Ask for something that a fault strikes, and for something else beside it; return what comes of both."""
    trap = spot.proxy.trap(way, fault)
    asked = asyncio.create_task(outcome(ask(client)))
    await trap.begun.wait()
    other = asyncio.create_task(outcome(read(client)))
    return await asked, await other


# ------------------------------------------------------------------ calls


@every_wire
@every_way
@every_how
async def test_what_has_no_effects_is_answered_whatever_breaks(
    scheme: str, revision: str, way: Way, how: How, caplog: pytest.LogCaptureFixture
) -> None:
    async with place(scheme, revision, caplog) as spot:
        for fault in at_each(await measured(spot, way, read), how):
            async with spot.client(how) as client:
                await add(client)
                found, other = await struck(spot, client, way, fault, read)
                if how in UNHEARD:
                    assert found == "content" or isinstance(found, RequestTimeout), (fault, found)
                    assert other == "content" or scheme == "ws", (fault, other)
                else:
                    assert (found, other) == ("content", "content"), fault
                if scheme == "http" or how not in UNHEARD:
                    assert await read(client) == "content"


@every_wire
@every_way
@every_how
async def test_what_has_effects_is_never_done_twice(
    scheme: str, revision: str, way: Way, how: How, caplog: pytest.LogCaptureFixture
) -> None:
    async with place(scheme, revision, caplog) as spot:
        events = spot.bench.events
        for fault in at_each(await measured(spot, way, note), how):
            events.clear()
            async with spot.client(how) as client:
                await add(client)
                found, other = await struck(spot, client, way, fault, note)
                if found == "noted":
                    assert events == ["noted"]
                else:
                    assert isinstance(found, LocalError)
                    assert len(events) <= 1
                    assert isinstance(found, RequestTimeout) or "it may have run or not" in str(found), (fault, found)
                assert other == "content" or (scheme == "ws" and how in UNHEARD), (fault, other)
                if scheme == "http" or how not in UNHEARD:
                    assert await read(client) == "content"


@every_wire
@every_way
@every_how
async def test_a_stream_breaks_into_its_answer_or_one_error_and_tells_nothing_twice(
    scheme: str, revision: str, way: Way, how: How, caplog: pytest.LogCaptureFixture
) -> None:
    async with place(scheme, revision, caplog) as spot:
        for fault in at_each(await measured(spot, way, steps), how):
            async with spot.client(how) as client:
                await add(client)
                found, other = await struck(spot, client, way, fault, steps)
                assert found == ("3 steps", [1, 2, 3]) or isinstance(found, LocalError), (fault, found)
                assert other == "content" or (scheme == "ws" and how in UNHEARD), (fault, other)


# ------------------------------------------------------------------ opening and closing


@every_wire
@every_way
@every_how
async def test_an_opening_succeeds_or_fails_with_one_error(
    scheme: str, revision: str, way: Way, how: How, caplog: pytest.LogCaptureFixture
) -> None:
    async with place(scheme, revision, caplog) as spot:

        async def opened() -> Any:
            async with spot.client(how) as client:
                return await read(client)

        trap = spot.proxy.trap(way, FINE)
        await opened()
        for fault in at_each(trap.crossed, how):
            spot.proxy.trap(way, fault)
            found = await outcome(opened())
            if scheme == "http" and how not in UNHEARD:  # what opens has no effects, and is sent again
                assert found == "content", fault
            else:
                assert found == "content" or isinstance(found, LocalError), (fault, found)
            assert await opened() == "content"


@every_wire
@every_way
@every_how
async def test_closing_ends_whatever_breaks(
    scheme: str, revision: str, way: Way, how: How, caplog: pytest.LogCaptureFixture
) -> None:
    async with place(scheme, revision, caplog) as spot:
        for after in (0, 1, 20, 150):
            client = spot.client(how)
            await client.connect()
            await read(client)
            spot.proxy.trap(way, Fault(after=after, how=how))
            async with asyncio.timeout(PATIENCE):
                await client.close()
            spot.proxy.disarm()  # with 2026-07-28 over HTTP there is nothing to say at the end


# ------------------------------------------------------------------ listening


@every_wire
@pytest.mark.parametrize("how", ["reset", pytest.param("close", marks=pytest.mark.slow)])
async def test_a_listening_comes_back_and_says_what_may_be_missed(
    scheme: str, revision: str, how: How, caplog: pytest.LogCaptureFixture
) -> None:
    async with place(scheme, revision, caplog) as spot:
        for after in (0, 1, 50, 130, 1000):
            async with spot.client(how) as client, client.listen(tools=True) as events:
                trap = spot.proxy.trap("down", Fault(after=after, how=how))
                spot.bench.server.changed("tools")
                await trap.begun.wait()
                async with asyncio.timeout(PATIENCE):
                    assert await anext(events) in (ToolsChanged(), Missed()), after
                    assert await read(client) == "content"


@every_wire
@every_way
@every_how
async def test_a_listening_begins_or_fails_with_one_error(
    scheme: str, revision: str, way: Way, how: How, caplog: pytest.LogCaptureFixture
) -> None:
    async with place(scheme, revision, caplog) as spot:

        async def listened(client: Client) -> Any:
            async with client.listen(tools=True, uris=["file:///a"]):
                return "begun"

        for fault in at_each(await measured(spot, way, listened), how):
            async with spot.client(how) as client:
                await read(client)
                spot.proxy.trap(way, fault)
                found = await outcome(listened(client))
                spot.proxy.disarm()
                assert found == "begun" or isinstance(found, LocalError)
                if scheme == "http" or how not in UNHEARD:
                    assert await outcome(read(client)) == "content"


@every_wire
async def test_a_listening_comes_back_also_when_it_is_the_opening_that_breaks_next(
    scheme: str, revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with place(scheme, revision, caplog) as spot:
        for after in (0, 100, 300):
            async with spot.client(None) as client, client.listen(tools=True) as events:
                spot.proxy.trap("down", Fault(after=after))
                for crossing in spot.proxy.crossings:
                    crossing.reset()
                async with asyncio.timeout(PATIENCE):
                    assert await anext(events) == Missed(), after
                    spot.bench.server.changed("tools")
                    assert await anext(events) == ToolsChanged(), after
                spot.proxy.disarm()


# ------------------------------------------------------------------ slow networks


@every_wire
async def test_everything_may_come_in_crumbs(scheme: str, revision: str, caplog: pytest.LogCaptureFixture) -> None:
    async with place(scheme, revision, caplog) as spot:
        spot.proxy.up, spot.proxy.down = Fault(split=1), Fault(split=1)
        async with asyncio.timeout(PATIENCE), spot.client(None) as client, client.listen(tools=True) as events:
            assert await read(client) == "content"
            assert await steps(client) == ("3 steps", [1, 2, 3])
            spot.bench.server.changed("tools")
            assert await anext(events) == ToolsChanged()


@every_wire
async def test_what_is_held_up_is_answered_once_it_is_let_go(
    scheme: str, revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with place(scheme, revision, caplog) as spot, spot.client(None) as client:
        await read(client)
        for crossing in spot.proxy.crossings:
            crossing.hold()
        trap = spot.proxy.trap("up", FINE)
        held = asyncio.create_task(steps(client))
        async with asyncio.timeout(PATIENCE):
            await trap.begun.wait()
            assert (trap.crossed, held.done()) == (0, False)
            for crossing in spot.proxy.crossings:
                crossing.release()
            assert await held == ("3 steps", [1, 2, 3])
            assert await add(client) == 3


# ------------------------------------------------------------------ networks that stay broken


@every_wire
async def test_where_every_connection_breaks_a_request_fails_in_the_end_and_works_again_afterwards(
    scheme: str, revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with place(scheme, revision, caplog) as spot, spot.client(None) as client:
        await read(client)
        for crossing in spot.proxy.crossings:
            crossing.reset()
        spot.proxy.down = Fault(after=100)
        found = await outcome(read(client))
        assert isinstance(found, LocalError)
        spot.proxy.down = FINE
        await client.connect()  # at once, however often it was tried
        assert await read(client) == "content"
