"""A connection that is lost comes back: for whom, how soon, how often, as what, and when not."""

from __future__ import annotations

import asyncio
import json

import pytest

from modelwire import Client, ConnectionLost, Observer, Server
from modelwire.rules import restarts
from tests.clock import Clock
from tests.fake_server import (
    MODERN,
    REVISIONS,
    coming_back,
    talking,
    text,
)

# --------------------------------------------------------------------------------------------------- between requests


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_connection_lost_between_requests_is_opened_again_by_the_next_one(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    reasons: list[ConnectionLost] = []
    async with coming_back(revision, on_reconnect=reasons.append) as (client, fake, comings):
        await fake.hang_up()
        await Clock().turn()
        assert not client.connected
        assert comings.tried == 1, "nobody needs it yet"
        assert "was lost; a request opens it again: the server closed the connection" in caplog.text
        call = asyncio.create_task(client.call("t"))
        fake = await comings.opened(revision)
        await fake.result(await fake.expect("tools/call"), text("back"))
        assert await call == "back"
        assert client.connected
        assert [str(why) for why in reasons] == ["the server closed the connection"]


async def test_everything_that_waits_shares_one_opening() -> None:
    async with coming_back() as (client, fake, comings):
        await fake.hang_up()
        calls = [asyncio.create_task(client.call("t")) for _ in range(20)]
        connecting = [asyncio.create_task(client.connect()) for _ in range(3)]
        fake = await comings.opened("2025-11-25")
        for _ in calls:
            await fake.result(await fake.expect("tools/call"), text("x"))
        assert await asyncio.gather(*calls) == ["x"] * 20
        await asyncio.gather(*connecting)
        assert comings.tried == 2


async def test_a_notification_opens_it_again_too() -> None:
    async with coming_back(own=["acme/x"]) as (client, fake, comings):
        await fake.hang_up()
        await Clock().turn()
        telling = asyncio.create_task(client.notify("acme/x"))
        await (await comings.opened("2025-11-25")).expect("acme/x")
        await telling


async def test_an_async_on_reconnect_may_use_the_client_and_one_that_fails_costs_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    said: list[str] = []

    async def tell(why: ConnectionLost) -> None:
        said.append(await clients[0].call("inner"))
        raise ZeroDivisionError

    clients: list[Client] = []
    async with coming_back(on_reconnect=tell) as (client, fake, comings):
        clients.append(client)
        await fake.hang_up()
        outer = asyncio.create_task(client.call("outer"))
        fake = await comings.opened("2025-11-25")
        for _ in range(2):
            request = await fake.expect("tools/call")
            await fake.result(request, text(request["params"]["name"]))
        assert await outer == "outer"
        await Clock().turn()
    assert said == ["inner"]
    assert "ZeroDivisionError" in caplog.text


async def test_a_server_in_this_process_comes_back_too() -> None:
    server = Server("here")
    server.add_tool(lambda: "hi", name="greet")
    async with Client(server, revision="2025-11-25") as client:
        await client.notify("exit")
        while client.connected:
            await asyncio.sleep(0)
        assert await client.call("greet") == "hi"


async def test_a_stream_of_the_users_own_is_not_opened_again() -> None:
    async with talking() as (client, fake):
        await fake.hang_up()
        await Clock().turn()
        with pytest.raises(ConnectionLost, match="tools/call was not sent: the server closed the connection"):
            await client.call("t")


# --------------------------------------------------------------------------------------------------- bounds


async def test_a_server_that_is_away_for_a_moment_is_tried_again_later_and_later() -> None:
    clock = Clock(frozen=True)
    async with coming_back() as (client, fake, comings):
        comings.absent = True
        await fake.hang_up()
        call = asyncio.create_task(client.call("t"))
        for _ in range(3):
            await clock.turn()
        for number, delay in enumerate(restarts.DELAYS[1:-1], start=2):
            assert comings.tried == number
            await clock.advance(delay * 0.9)
            assert comings.tried == number
            await clock.advance(delay * 0.2)
        comings.absent = False
        await clock.advance(restarts.DELAYS[-1])
        fake = await comings.opened("2025-11-25")
        await fake.result(await fake.expect("tools/call"), text("patience"))
        assert await call == "patience"


async def test_a_server_that_does_not_come_back_is_given_up_for_everybody_who_waits() -> None:
    clock = Clock()
    async with coming_back() as (client, fake, comings):
        comings.absent = True
        await fake.hang_up()
        calls = [asyncio.create_task(client.call("t")), asyncio.create_task(client.list_tools())]
        for delay in restarts.DELAYS:
            await clock.advance(delay)
        for call in calls:
            with pytest.raises(ConnectionLost) as caught:
                await call
            assert "5 attempts within 60 s to open the connection again have failed" in str(caught.value)
            assert "client.connect() opens it at once" in str(caught.value)
            assert "nobody is there" in str(caught.value)
        tried = comings.tried
        with pytest.raises(ConnectionLost, match="tools/call was not sent"):
            await client.call("t")
        assert comings.tried == tried, "it is left alone"


async def test_a_connection_that_is_lost_again_and_again_is_left_alone_for_a_while() -> None:
    clock = Clock()
    async with coming_back() as (client, fake, comings):
        for delay in restarts.DELAYS:
            await fake.hang_up()
            call = asyncio.create_task(client.call("t"))
            await clock.advance(delay)
            fake = await comings.opened("2025-11-25")
            await fake.result(await fake.expect("tools/call"), text("x"))
            await call
        await fake.hang_up()
        await clock.turn()
        with pytest.raises(ConnectionLost, match="lost 5 times within 60 s"):
            await client.call("t")
        await clock.advance(restarts.WINDOW)
        call = asyncio.create_task(client.call("t"))
        fake = await comings.opened("2025-11-25")
        await fake.result(await fake.expect("tools/call"), text("forgiven"))
        assert await call == "forgiven"


async def test_connect_opens_at_once_what_was_left_alone_and_begins_to_count_anew() -> None:
    clock = Clock()
    async with coming_back() as (client, fake, comings):
        comings.absent = True
        await fake.hang_up()
        call = asyncio.create_task(client.call("t"))
        for delay in restarts.DELAYS:
            await clock.advance(delay)
        with pytest.raises(ConnectionLost):
            await call
        comings.absent = False
        connecting = asyncio.create_task(client.connect())
        fake = await comings.opened("2025-11-25")
        await connecting
        await fake.hang_up()
        call = asyncio.create_task(client.call("t"))
        await clock.turn()
        fake = await comings.opened("2025-11-25")
        await fake.result(await fake.expect("tools/call"), text("x"))
        assert await call == "x"


async def test_connect_does_not_wait_for_the_time_between_two_tries() -> None:
    clock = Clock()
    async with coming_back() as (client, fake, comings):
        comings.absent = True
        await fake.hang_up()
        call = asyncio.create_task(client.call("t"))
        await clock.turn()
        comings.absent = False
        connecting = asyncio.create_task(client.connect())
        fake = await comings.opened("2025-11-25")
        await connecting
        await clock.advance(1)
        await fake.result(await fake.expect("tools/call"), text("x"))
        assert await call == "x"
        assert client.connected


# --------------------------------------------------------------------------------------------------- the era


@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_era_is_remembered(revision: str) -> None:
    async with coming_back(revision) as (client, fake, comings):
        await fake.hang_up()
        call = asyncio.create_task(client.call("t"))
        fake = await comings.opened(revision)
        await fake.result(await fake.expect("tools/call"), text("x"))
        await call
        opening = ["server/discover"] if revision == MODERN else ["initialize", "notifications/initialized"]
        assert fake.methods == [*opening, "tools/call"]


@pytest.mark.parametrize(("before", "after"), [("2025-11-25", MODERN), (MODERN, "2025-06-18")])
async def test_a_server_of_another_era_is_found_out_anew(before: str, after: str) -> None:
    async with coming_back(before) as (client, fake, comings):
        await fake.hang_up()
        call = asyncio.create_task(client.call("t"))
        fake = await comings.next()
        await fake.error(await fake.next(), -32601, "never heard of it")
        fake = await comings.opened(after)
        await fake.result(await fake.expect("tools/call"), text("x"))
        assert await call == "x"
        assert client.revision.name == after


async def test_a_server_that_is_there_and_refuses_is_not_asked_again_and_again() -> None:
    async with coming_back(MODERN) as (client, fake, comings):
        await fake.hang_up()
        call = asyncio.create_task(client.call("t"))
        for _ in range(2):
            fake = await comings.next()
            await fake.error(await fake.expect("server/discover"), -32021, "no longer for you")
        with pytest.raises(ConnectionLost, match=r"tools/call was not sent.*could not be opened again.*no longer"):
            await call
        assert comings.tried == 3, "once as what it was, once to find out anew"


# --------------------------------------------------------------------------------------------------- closing


@pytest.mark.parametrize("moment", ["between two tries", "while it is opened", "at once"])
async def test_closing_stops_the_opening_and_fails_what_waits_for_it(moment: str) -> None:
    clock = Clock()
    async with coming_back() as (client, fake, comings):
        comings.absent = moment == "between two tries"
        await fake.hang_up()
        await clock.turn()
        call = asyncio.create_task(client.call("t"))
        if moment != "at once":
            await clock.turn()
        if moment == "while it is opened":
            await (await comings.next()).expect("initialize")
        await client.close()
        tried = comings.tried
        with pytest.raises(ConnectionLost, match=r"tools/call was not sent: .*(closed|lost)"):
            await call
        await clock.advance(100)
        assert comings.tried == tried
        assert not client.connected


async def test_a_client_that_was_closed_does_not_come_back() -> None:
    async with coming_back() as (client, _, comings):
        await client.close()
        with pytest.raises(ConnectionLost, match="tools/call was not sent: the client was closed"):
            await client.call("t")
        assert comings.tried == 1


async def test_a_request_without_effects_that_close_ends_is_not_sent_again() -> None:
    async with coming_back() as (client, fake, comings):
        listing = asyncio.create_task(client.list_tools())
        await fake.expect("tools/list")
        await client.close()
        with pytest.raises(ConnectionLost, match="before tools/list was answered: the client was closed"):
            await listing
        assert comings.tried == 1


async def test_without_reconnect_everything_fails_that_needs_the_connection() -> None:
    async with coming_back(reconnect=False) as (client, fake, comings):
        listing, call = asyncio.create_task(client.list_tools()), asyncio.create_task(client.call("t"))
        for _ in range(2):
            await fake.next()
        await fake.hang_up()
        with pytest.raises(ConnectionLost, match="before tools/list was answered: the server closed the connection"):
            await listing
        with pytest.raises(ConnectionLost, match="tools/call was answered; it may have run or not"):
            await call
        with pytest.raises(ConnectionLost, match="tools/call was not sent"):
            await client.call("t")
        assert comings.tried == 1


@pytest.mark.parametrize("reconnect", [True, False])
async def test_after_close_errors_name_the_close_and_no_loss_that_came_before(reconnect: bool) -> None:
    async with coming_back(reconnect=reconnect) as (client, fake, _):
        await fake.aclose()
        await Clock().turn()
        await client.close()
        for ask in (client.call("x"), client.list_tools(), client.notify("acme/told"), client.ping()):
            with pytest.raises(ConnectionLost, match=r"the client was closed; client\.connect\(\) opens it again$"):
                await ask
        with pytest.raises(ConnectionLost, match="listening was not begun: the client was closed"):
            await client.listen(tools=True).__aenter__()


async def test_observers_can_tell_the_connections_apart() -> None:
    class Watching(Observer):
        def __init__(self) -> None:
            self.seen: list[tuple[int, str]] = []
            self.number = 0

        def connection(self, number: int, peer: str) -> Observer:
            own = Watching()
            own.seen, own.number = self.seen, number
            return own

        def frame(self, direction: str, frame: bytes) -> None:
            self.seen.append((self.number, json.loads(frame).get("method")))

    watching = Watching()
    async with coming_back("2025-11-25", revision="2025-11-25", observers=[watching]) as (client, fake, comings):
        await fake.hang_up()
        await Clock().turn()
        call = asyncio.create_task(client.call("x"))
        again = await comings.opened("2025-11-25")
        await again.result(await again.expect("tools/call"), text("done"))
        assert await call == "done"
    opening = ["initialize", None, "notifications/initialized"]
    assert watching.seen == [(number, method) for number in (1, 2) for method in opening] + [
        (2, "tools/call"),
        (2, None),
    ]
