"""Who is silent is asked, who stays silent is given up, and who gives any sign of life is not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager

import pytest

from modelwire.errors import MethodNotFound, RequestTimeout
from modelwire.rpc.connection import Connection
from modelwire.rpc.heartbeat import keep_watch
from tests.clock import Clock
from tests.rpc.desk import Desk

SECONDS = 10.0


class Other:
    """The other end, as a stream tells of it."""

    def __init__(self) -> None:
        self.blocked = False
        self.alive = False
        self.problem: str | None = None

    def stirred(self) -> bool:
        alive, self.alive = self.alive, False
        return alive

    def fail(self, problem: str) -> None:
        self.problem = problem


class Watch:
    """What is watched, and the questions that were asked."""

    def __init__(self, connection: Connection) -> None:
        self.other = Other()
        self.asked = 0
        self.may_ask = True
        self.answer: Exception | None = None
        self.clock = Clock()
        self.task = asyncio.create_task(keep_watch(connection, self.other, SECONDS, self.ping))

    def ping(self) -> Awaitable[object] | None:
        if not self.may_ask:
            return None
        self.asked += 1
        return self.asking()

    async def asking(self) -> None:
        if self.answer is not None:
            raise self.answer

    async def pass_by(self, beats: float = 1.0) -> None:
        await self.clock.advance(beats * SECONDS + 0.1)


@asynccontextmanager
async def watch() -> AsyncIterator[Watch]:
    found = Watch(Desk().connection)
    await found.clock.turn()
    yield found
    found.task.cancel()
    await asyncio.wait([found.task])


async def test_who_is_heard_is_never_asked() -> None:
    async with watch() as it:
        for _ in range(5):
            it.other.alive = True
            await it.pass_by()
        assert it.asked == 0
        assert not it.task.done()


async def test_who_is_silent_is_asked_and_given_up_after_as_long_again() -> None:
    async with watch() as it:
        await it.pass_by()
        assert it.asked == 1
        assert it.other.problem is None
        await it.pass_by()
        assert it.other.problem == "the other end gave no sign of life for 20 s (heartbeat=10)"
        assert it.task.done()
        assert it.asked == 1


async def test_who_answers_is_asked_again_at_the_next_silence() -> None:
    async with watch() as it:
        for count in range(1, 4):
            await it.pass_by()
            assert it.asked == count
            it.other.alive = True
            await it.pass_by()
        assert it.other.problem is None


@pytest.mark.parametrize("answer", [MethodNotFound(-32601, "no"), RequestTimeout("ping", 10)])
async def test_an_answer_that_says_no_is_an_answer(answer: Exception, caplog: pytest.LogCaptureFixture) -> None:
    async with watch() as it:
        it.answer = answer
        await it.pass_by()
        it.other.alive = True
        await it.pass_by()
        assert it.other.problem is None
        assert not it.task.done()
    assert caplog.text == ""


async def test_who_may_not_be_asked_may_be_silent_for_ever() -> None:
    async with watch() as it:
        it.may_ask = False
        for _ in range(10):
            await it.pass_by()
        assert it.other.problem is None
        assert not it.task.done()


async def test_who_takes_nothing_of_what_waits_is_given_up_without_being_asked() -> None:
    async with watch() as it:
        it.may_ask = False
        it.other.blocked = True
        await it.pass_by()
        assert it.other.problem is None
        await it.pass_by()
        assert it.other.problem is not None
        assert it.asked == 0


async def test_who_takes_what_waits_slowly_is_kept() -> None:
    async with watch() as it:
        it.other.blocked = True
        for _ in range(5):
            it.other.alive = True
            await it.pass_by()
        assert it.other.problem is None


async def test_what_was_heard_before_the_watch_began_counts_for_nothing() -> None:
    connection = Desk().connection
    other = Other()
    other.alive = True
    clock = Clock()
    task = asyncio.create_task(keep_watch(connection, other, SECONDS, lambda: None))
    await clock.turn()
    assert not other.alive
    task.cancel()
    await asyncio.wait([task])
