"""Progress and cancellation: abandoned calls end, unknown cancellations are ignored, nothing follows a cancellation."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from modelwire import Context, Server
from tests.wire import MODERN, Talk, every_revision, opening, session_talk, stream_talk

over_both = pytest.mark.parametrize("over", [session_talk, stream_talk])


class Running:
    """A server whose tool runs until it is cancelled, and what became of its calls."""

    def __init__(self) -> None:
        self.server = Server("progress")
        self.started: list[Any] = []
        self.ended: list[Any] = []
        self.changed = asyncio.Condition()
        self.server.add_tool(self.wait)
        self.server.add_tool(self.echo)

    async def wait(self, ctx: Context) -> str:
        await self._note(self.started, ctx.request_id)
        try:
            await asyncio.Event().wait()
        finally:
            ctx.progress(1)
            ctx.log.emergency("too late")
            await self._note(self.ended, ctx.request_id)
        return ""

    async def echo(self, value: str) -> str:
        return value

    async def _note(self, where: list[Any], id: Any) -> None:
        async with self.changed:
            where.append(id)
            self.changed.notify_all()

    async def until(self, where: list[Any], count: int) -> None:
        async with asyncio.timeout(5), self.changed:
            await self.changed.wait_for(lambda: len(where) >= count)


async def still_works(talk: Talk) -> None:
    assert await talk.text("echo", {"value": "still here"}) == "still here"
    assert talk.inbox == []


@over_both
@every_revision
async def test_fifty_abandoned_calls_leave_nothing_running_and_get_nothing(revision: str, over: Any) -> None:
    running = Running()
    level = {"logLevel": "debug"} if revision == MODERN else {}
    async with over(running.server, revision) as talk:
        before = len(asyncio.all_tasks())
        calls = [await talk.begin_call("wait", progressToken=number, **level) for number in range(50)]
        await running.until(running.started, 50)
        for call in calls:
            await talk.cancel(call, "timed out")
        await running.until(running.ended, 50)
        await still_works(talk)
        assert not any(call.done for call in calls)
        assert len(asyncio.all_tasks()) <= before


@pytest.mark.parametrize(
    "params",
    [
        {"requestId": "never issued"},
        {"requestId": 999},
        {"requestId": 1},
        None,
        {},
        {"requestId": {}},
        {"requestId": []},
        {"requestId": None},
        {"requestId": 1.5},
        {"requestId": True},
        {"requestId": "7"},
        {"requestId": 7.0},
        {"requestId": 999, "reason": 5},
        {"reason": "no id"},
        {"requestId": 2**80},
        {"requestId": "x" * 10_000},
    ],
    ids=lambda params: str(params)[:40],
)
@over_both
@every_revision
async def test_an_unknown_or_malformed_cancellation_is_ignored(revision: str, over: Any, params: Any) -> None:
    running = Running()
    async with over(running.server, revision) as talk:
        call = await talk.begin_call("wait", id=7)
        await running.until(running.started, 1)
        message = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
        await talk.raw(message if params is None else {**message, "params": params})
        await still_works(talk)
        assert running.ended == []
        assert not call.done
        await talk.cancel(call)


@every_revision
async def test_params_that_are_no_object_are_ignored_too(revision: str) -> None:
    running = Running()
    async with session_talk(running.server, revision) as talk:
        for params in (b"[7]", b"7", b'"7"', b"null"):
            await talk.raw(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":' + params + b"}")
        await talk.settle()
        talk.inbox.clear()  # whether a malformed envelope is told of is another matter
        await still_works(talk)


@every_revision
async def test_cancelling_a_finished_request_is_ignored(revision: str) -> None:
    running = Running()
    async with session_talk(running.server, revision) as talk:
        call = await talk.begin_call("echo", {"value": "x"})
        await call.result()
        await talk.cancel(call)
        await talk.cancel(call)
        await still_works(talk)


@every_revision
async def test_cancelling_twice_is_cancelling_once(revision: str) -> None:
    running = Running()
    async with stream_talk(running.server, revision) as talk:
        call = await talk.begin_call("wait")
        await running.until(running.started, 1)
        for _ in range(3):
            await talk.cancel(call)
        await running.until(running.ended, 1)
        await still_works(talk)
        assert len(running.ended) == 1


@every_revision
async def test_a_request_may_be_cancelled_before_it_has_begun(revision: str) -> None:
    running = Running()
    async with stream_talk(running.server, revision) as talk:
        # One write each, but the server reads both before anything runs.
        call = await talk.begin_call("wait")
        await talk.cancel(call)
        await still_works(talk)
        assert not call.done
        assert len(running.started) == len(running.ended)
        assert "result" in await talk.request("tools/list", id=call.id)


async def test_initialize_cannot_be_cancelled() -> None:
    running = Running()
    async with stream_talk(running.server, "2025-11-25", opened=False) as talk:
        call = await talk.begin("initialize", opening("2025-11-25"))
        await talk.cancel(call)
        assert (await call.result())["protocolVersion"] == "2025-11-25"


@every_revision
async def test_a_cancellation_hits_the_one_request_that_it_names(revision: str) -> None:
    running = Running()
    async with stream_talk(running.server, revision) as talk:
        calls = [await talk.begin_call("wait", id=id) for id in (1000, "1000", 1001)]
        await running.until(running.started, 3)
        await talk.cancel(calls[1])
        await running.until(running.ended, 1)
        await still_works(talk)
        assert running.ended == ["1000"]
        await talk.cancel(calls[0])
        await talk.cancel(calls[2])


@every_revision
async def test_a_cancellation_reaches_only_requests_of_the_same_client(revision: str) -> None:
    running = Running()
    async with stream_talk(running.server, revision) as one, stream_talk(running.server, revision) as other:
        first = await one.begin_call("wait", id=5)
        call = await other.begin_call("wait", id=5)
        await running.until(running.started, 2)
        await other.cancel(call)
        await running.until(running.ended, 1)
        await still_works(one)
        assert len(running.ended) == 1
        await one.cancel(first)


@every_revision
async def test_an_id_is_free_as_soon_as_its_request_is_cancelled(revision: str) -> None:
    running = Running()
    async with stream_talk(running.server, revision) as talk:
        for _ in range(5):
            call = await talk.begin_call("wait", id="again")
            await talk.cancel(call)
        assert await talk.text("echo", {"value": "x"}, id="again") == "x"


async def test_a_handler_that_takes_its_time_to_end_does_not_block_its_id_or_answer_late() -> None:
    server = Server("s")
    started, gate, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @server.tool
    async def slow_to_end() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            await gate.wait()
            ended.set()
        return ""

    async with stream_talk(server, "2025-11-25") as talk:
        call = await talk.begin_call("slow_to_end", id=3)
        await asyncio.wait_for(started.wait(), 5)
        await talk.cancel(call)
        assert "result" in await talk.request("tools/list", id=3)
        gate.set()
        await asyncio.wait_for(ended.wait(), 5)
        assert await talk.quiet()


@every_revision
async def test_what_runs_when_the_client_leaves_is_cancelled_with_a_reason(revision: str) -> None:
    server = Server("s")
    started = asyncio.Event()
    reasons: asyncio.Queue[Any] = asyncio.Queue()

    @server.tool
    async def wait(ctx: Context) -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            reasons.put_nowait((ctx.cancelled, ctx.cancel_reason))
        return ""

    async with session_talk(server, revision) as talk:
        await talk.begin_call("wait")
        await asyncio.wait_for(started.wait(), 5)
        await talk.session.aclose()
        cancelled, reason = await asyncio.wait_for(reasons.get(), 5)
        assert cancelled
        assert reason
