"""Two joined streams behave like any other transport: order, bounds, ends."""

from __future__ import annotations

import asyncio

import pytest

from modelwire.errors import ConnectionLost
from modelwire.transports import memory
from modelwire.transports.memory import memory_pair
from tests.transports.turns import let_others_run, without_suspension


async def test_frames_arrive_in_order_on_the_other_end() -> None:
    one, other = memory_pair()
    for frame in (b"1", b"2", b"3"):
        await one.send(frame)
    await other.send(b"back")
    assert [await other.receive() for _ in range(3)] == [b"1", b"2", b"3"]
    assert await one.receive() == b"back"


async def test_frames_of_one_turn_are_handed_out_without_suspension() -> None:
    one, other = memory_pair()
    first = asyncio.create_task(other.receive())
    await let_others_run()
    for frame in (b"1", b"2", b"3"):
        without_suspension(one.send(frame))
    assert await first == b"1"
    assert [without_suspension(other.receive()) for _ in range(2)] == [b"2", b"3"]


async def test_closing_lets_the_other_end_receive_the_rest_and_then_none() -> None:
    one, other = memory_pair()
    await one.send(b"last words")
    await one.aclose()
    await one.aclose()
    assert await other.receive() == b"last words"
    assert await other.receive() is None
    assert await other.receive() is None


async def test_closing_ends_a_receive_that_waits_on_either_end() -> None:
    one, other = memory_pair()
    waiting = [asyncio.create_task(one.receive()), asyncio.create_task(other.receive())]
    await let_others_run()
    await one.aclose()
    assert await asyncio.gather(*waiting) == [None, None]


async def test_sending_after_either_end_closed_is_connection_lost() -> None:
    one, other = memory_pair()
    await one.aclose()
    with pytest.raises(ConnectionLost, match="this end"):
        await one.send(b"x")
    with pytest.raises(ConnectionLost, match="the other end"):
        await other.send(b"x")


@pytest.mark.parametrize(
    ("frame", "until_full"),
    [(b"x", memory.MAX_QUEUED_FRAMES), (b"x" * 300_000, memory.MAX_QUEUED_BYTES // 300_000)],
    ids=["count", "bytes"],
)
async def test_send_waits_while_much_is_queued(frame: bytes, until_full: int) -> None:
    one, other = memory_pair()
    for _ in range(until_full):
        without_suspension(one.send(frame))
    waiting = asyncio.create_task(one.send(frame))
    await let_others_run()
    assert not waiting.done()
    for _ in range(until_full + 1):
        assert await other.receive() == frame
    await waiting


async def test_senders_that_wait_keep_their_order() -> None:
    one, other = memory_pair()
    sent = [b"%d" % number for number in range(memory.MAX_QUEUED_FRAMES + 50)]
    tasks = [asyncio.create_task(one.send(frame)) for frame in sent]
    await let_others_run()
    assert [await other.receive() for _ in sent] == sent
    await asyncio.gather(*tasks)


async def test_a_sender_that_waits_is_told_when_the_other_end_closes() -> None:
    one, other = memory_pair()
    waiting = asyncio.create_task(one.send(b"x" * (memory.MAX_QUEUED_BYTES + 1)))
    await let_others_run()
    await other.aclose()
    with pytest.raises(ConnectionLost):
        await waiting


async def test_a_cancelled_receive_loses_nothing() -> None:
    one, other = memory_pair()
    waiting = asyncio.create_task(other.receive())
    await let_others_run()
    waiting.cancel()
    await one.send(b"kept")
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await other.receive() == b"kept"
