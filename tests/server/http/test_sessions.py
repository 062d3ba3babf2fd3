"""What a session keeps of streams that have ended, for clients that come back."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from modelwire import Context
from modelwire.server.http.sessions import Stream
from tests.server.http.asgi import Legacy, legacy
from tests.server.http.servers import Bench, make

LARGE = 1000


def with_large(**options: Any) -> Bench:
    """A server with a tool that tells something large before it answers."""
    bench = make(**options)

    @bench.server.tool
    async def large(ctx: Context, size: int = LARGE, wait: bool = False) -> str:
        ctx.progress(1, message="x" * size)
        if wait:
            await bench.wait("large")
        return "done"

    return bench


async def first_id(client: Legacy, **arguments: Any) -> str:
    """Call it, and return the id of what it tells first."""
    call = client.call("large", arguments, meta={"progressToken": 1})
    id_ = (await call.event()).id
    await call.done()
    return id_


async def resumable(client: Legacy, ids: list[str]) -> list[bool]:
    """Which streams can be taken up again."""
    found: list[bool] = []
    for id_ in ids:
        again = client.get(id_)
        status = await again.started()
        found.append(status == 200)
        if status == 200:
            assert "result" in (await again.messages())[-1]
        else:
            assert await again.done() == 400
    return found


async def test_of_streams_that_have_ended_no_more_than_so_many_bytes_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("modelwire.server.http.sessions.MAX_ENDED_BYTES", 5 * LARGE)
    async with legacy(with_large().server) as client:
        ids = [await first_id(client) for _ in range(8)]
        found = await resumable(client, ids)
        assert found == sorted(found)  # the oldest went first
        assert 2 <= sum(found) <= 4


async def test_the_last_is_kept_however_large_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("modelwire.server.http.sessions.MAX_ENDED_BYTES", 5 * LARGE)
    async with legacy(with_large().server) as client:
        ids = [await first_id(client), await first_id(client, size=9 * LARGE)]
        assert await resumable(client, ids) == [False, True]
        ids.append(await first_id(client))
        assert await resumable(client, ids) == [False, False, True]


async def test_what_is_still_going_on_is_kept_and_counts_from_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("modelwire.server.http.sessions.MAX_ENDED_BYTES", 3 * LARGE)
    bench = with_large()
    async with legacy(bench.server) as client:
        long = client.call("large", {"wait": True}, meta={"progressToken": 1})
        id_ = (await long.event()).id
        others = [await first_id(client) for _ in range(4)]
        bench.go.set()
        await long.done()
        assert await resumable(client, [others[0], id_]) == [False, True]


async def test_no_more_than_so_many_streams_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("modelwire.server.http.sessions.MOST_ENDED", 2)
    async with legacy(with_large().server) as client:
        ids = [await first_id(client, size=1) for _ in range(4)]
        assert await resumable(client, ids) == [False, False, True, True]


async def test_of_an_answer_without_a_stream_nothing_is_kept() -> None:
    async with legacy(make().server) as client:
        before = streams()
        for _ in range(3):
            assert await client.call("steps").done() == 200
        assert streams() == before


async def test_of_a_stream_that_nobody_was_told_an_id_of_nothing_is_kept() -> None:
    bench = make()
    async with legacy(bench.server) as client:
        before = streams()
        call = client.call("wait")
        await bench.waiting.wait()
        await call.leave()
        bench.go.set()
        assert await client.ask("ping").done() == 200
        assert bench.events == ["wait finished"]
        assert streams() == before


def streams() -> int:
    gc.collect()
    return sum(isinstance(found, Stream) for found in gc.get_objects())
