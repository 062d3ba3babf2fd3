"""Sessions, streams and subscriptions of others: nobody uses, hears, cancels or ends what is not theirs."""

from __future__ import annotations

from typing import Any

import pytest

from modelwire import Context, Server
from tests.clock import Clock
from tests.server.http.asgi import Exchange, Http, Legacy, Modern, serving
from tests.server.http.servers import make
from tests.wire import dumps, opening

PROGRESS = {"progressToken": "p"}


def who(scope: Any) -> str | None:
    """Who asks, by a header that somebody in front of us would have set."""
    found = dict(scope["headers"]).get(b"x-user")
    return None if found is None else found.decode()


async def opened(http: Http, user: str | None) -> Legacy:
    client = Legacy(http)
    exchange = client.ask("initialize", opening("2025-11-25"), headers={"X-User": user})
    await exchange.result()
    client.session = exchange.headers["mcp-session-id"]
    assert await client.tell("notifications/initialized", headers={"X-User": user}).done() == 202
    return client


# ------------------------------------------------------------------ sessions


@pytest.mark.parametrize("stranger", ["eve", "", "ADA", None])
async def test_a_session_of_somebody_else_is_not_there_for_any_method(stranger: str | None) -> None:
    bench = make()
    async with serving(bench.server, principal=who) as http:
        ada = await opened(http, "ada")
        call = ada.call("steps", {"count": 1, "then_wait": True}, id=7, meta=PROGRESS, headers={"X-User": "ada"})
        seen = await call.event()
        await bench.waiting.wait()
        as_stranger = {"X-User": stranger}
        tried: list[Exchange] = [
            ada.ask("tools/list", headers=as_stranger),
            ada.ask("initialize", opening("2025-11-25"), headers=as_stranger),
            ada.tell("notifications/cancelled", {"requestId": 7}, headers=as_stranger),
            ada.post({"jsonrpc": "2.0", "id": 1, "result": {}}, headers=as_stranger),
            ada.get(headers=as_stranger),
            ada.get(seen.id, headers=as_stranger),
            http.ask("DELETE", ada.headers(as_stranger)),
        ]
        missing = Legacy(http)
        missing.session = "there-is-no-such-session-at-all"
        nothing = await missing.ask("tools/list", headers=as_stranger).json()
        for exchange in tried:
            assert await exchange.done() == 404
            # whether there is such a session is nobody else's business
            assert (await exchange.json())["error"] == nothing["error"]
        bench.go.set()
        assert (await call.messages())[-1]["result"]["content"][0]["text"] == "1 steps"


async def test_nobody_chooses_the_id_of_a_session() -> None:
    async with serving(make().server, max_sessions=1) as http:
        for chosen in ("chosen", "x" * 32, ""):
            exchange = http.post(
                {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening("2025-11-25")},
                {"Mcp-Session-Id": chosen},
            )
            assert await exchange.done() == 404
            assert "mcp-session-id" not in exchange.headers
        await Legacy(http).open()


async def test_an_id_of_a_session_that_has_ended_opens_nothing_again() -> None:
    async with serving(make().server) as http:
        client = await Legacy(http).open()
        assert await client.delete().done() == 204
        assert await client.ask("initialize", opening("2025-11-25")).done() == 404


async def test_a_cancellation_an_answer_and_a_progress_reach_no_other_session() -> None:
    bench = make()
    async with serving(bench.server) as http:
        one, two = await Legacy(http).open(), await Legacy(http).open()
        call = one.call("wait", id=1)
        await bench.waiting.wait()
        modern = Modern(http)
        for exchange in (
            two.tell("notifications/cancelled", {"requestId": 1}),
            http.post(
                {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
                modern.headers({"method": "notifications/cancelled"}),
            ),
        ):
            assert await exchange.done() == 202
        await Clock().turn()
        assert bench.events == []
        bench.go.set()
        assert (await call.result())["content"][0]["text"] == "wait"


async def test_streams_of_another_session_are_not_replayed_whatever_is_guessed() -> None:
    async with serving(make().server) as http:
        one, two = await Legacy(http).open(), await Legacy(http).open()
        for _ in range(3):
            await one.call("steps", {"count": 2}, meta=PROGRESS).done()
        for stream in range(5):
            for place in range(5):
                exchange = two.get(f"{stream}-{place}")
                await Clock().turn()
                assert b"progress" not in exchange.body
                assert exchange.status == (200 if (stream, place) == (0, 0) else 400)


async def test_subscribers_hear_what_they_asked_for_and_nothing_of_others() -> None:
    bench = make()
    async with serving(bench.server) as http:
        one, two = await Legacy(http).open(), await Legacy(http).open()
        await one.ask("resources/subscribe", {"uri": "file:///a"}).done()
        streams = [one.get(), two.get()]
        for stream in streams:
            await stream.started()
        listening = Modern(http).ask("subscriptions/listen", {"notifications": {"promptsListChanged": True}})
        await listening.message()
        bench.server.changed("file:///a")
        assert (await streams[0].message())["method"] == "notifications/resources/updated"
        await Clock().turn()
        assert streams[1].events == listening.events == []


# ------------------------------------------------------------------ many


async def test_a_thousand_openings_take_no_more_than_their_bound_and_give_it_back() -> None:
    async with serving(make().server, max_sessions=50, session_idle=100) as http:
        clock = Clock()
        statuses = [
            await http.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening("2025-11-25")}).done()
            for _ in range(1000)
        ]
        assert statuses.count(200) == 50
        assert statuses.count(503) == 950
        for _ in range(12):
            await clock.advance(11)
        await Legacy(http).open()


async def test_bodies_that_are_on_their_way_are_bounded_together_and_one_alone_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("modelwire.server.http.body.MAX_ARRIVING", 1000)
    async with serving(make().server) as http:
        client = Modern(http)
        message = client.message("tools/list")
        large = [b" " * 800, b" " * 800, dumps(message)]
        slow = http.post([b" " * 800], client.headers(message))
        slow._pieces.append(None)
        await Clock().turn()
        refused = http.post(large, client.headers(message))
        assert await refused.done() == 503
        assert "retry-after" in refused.headers
        assert await client.ask("tools/list").done() == 200  # which is small
        await slow.leave()
        assert await http.post(large, client.headers(message)).done() == 200


async def test_what_is_kept_for_clients_that_come_back_is_bounded() -> None:
    server = Server("large")

    @server.tool
    async def large(ctx: Context, size: int) -> str:
        ctx.progress(1)
        return "x" * size

    async with serving(server) as http:
        client = await Legacy(http).open()
        seen: list[str] = []
        for size in (10, *[900_000] * 10, 6_000_000, 10):
            exchange = client.call("large", {"size": size}, meta=PROGRESS)
            seen.append((await exchange.event()).id)
            await exchange.done()
        found = [await client.get(last).done() for last in seen]
        # The oldest went. The last is there, and so are as many before it as there is room for.
        assert found[0] == 400
        assert found[-1] == 200
        assert 1 <= found.count(200) <= 6
        again = client.call("large", {"size": 6_000_000}, meta=PROGRESS)
        last = await again.event()
        await again.done()
        assert len((await client.get(last.id).messages())[-1]["result"]["content"][0]["text"]) == 6_000_000


async def test_calls_that_wait_without_end_are_bounded_and_cost_only_their_own_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("modelwire.rpc.connection.MAX_REQUESTS", 50)
    bench = make()
    async with serving(bench.server) as http:
        one, two = await Legacy(http).open(), await Legacy(http).open()
        waiting = [one.call("wait", id=number + 1) for number in range(50)]
        await bench.waiting.wait()
        refused = one.call("add", {"a": 1, "b": 2}, id=5000, valid=False)
        assert (await refused.answer())["error"]["code"] == 429
        assert (await two.call("add", {"a": 1, "b": 2}).result())["content"][0]["text"] == "3"
        await one.delete().done()
        for exchange in waiting:
            await exchange.done()
