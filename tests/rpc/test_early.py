"""Reading before anybody can be answered: bounded, in order, and without a frame lost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from modelwire.errors import ConnectionLost, FrameTooLarge
from modelwire.rpc import early as early_module
from modelwire.rpc.early import Early
from modelwire.transports.memory import memory_pair
from tests.clock import Clock


class Tap:
    """A stream that gives what it is told to give, one item after another; None is its end."""

    def __init__(self, *items: Any) -> None:
        self.items = list(items)

    async def receive(self) -> bytes | None:
        item = self.items.pop(0)
        if isinstance(item, Exception):
            raise item
        return item

    async def send(self, frame: bytes) -> None:
        raise AssertionError

    async def aclose(self) -> None:
        raise AssertionError


async def all_of(early: Early) -> list[Any]:
    return [frame async for frame in early.frames()]


async def test_what_came_is_handed_out_in_order_and_the_end_is_told_once() -> None:
    ends: list[bool] = []
    too_large = FrameTooLarge("too large")
    early = Early(Tap(b"1", too_large, b"2", None), ends.append)
    await Clock().turn()
    assert ends == [True]
    assert await all_of(early) == [b"1", too_large, b"2"]
    assert ends == [True]


async def test_an_end_without_anything_before_it_is_told_as_such() -> None:
    ends: list[bool] = []
    early = Early(Tap(None), ends.append)
    await Clock().turn()
    assert ends == [False]
    assert await all_of(early) == []


async def test_a_broken_stream_is_an_end_and_raises_where_frames_are_taken() -> None:
    ends: list[bool] = []
    early = Early(Tap(b"1", ConnectionLost("cut")), ends.append)
    await Clock().turn()
    assert ends == [True]
    frames = early.frames()
    assert await anext(frames) == b"1"
    with pytest.raises(ConnectionLost, match="cut"):
        await anext(frames)


@pytest.mark.parametrize(("name", "most", "read"), [("MAX_FRAMES", 3, 3), ("MAX_BYTES", 25, 3)])
async def test_no_more_is_read_than_is_kept(name: str, most: int, read: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_module, name, most)
    tap = Tap(*[b"x" * 10] * 9, None)
    early = Early(tap, lambda asked: None)
    await Clock().turn()
    assert len(tap.items) == 10 - read
    assert len(await all_of(early)) == read
    assert len(tap.items) == 10 - read


async def test_the_frame_that_is_awaited_when_the_reading_ends_is_the_last() -> None:
    ours, theirs = memory_pair()
    early = Early(theirs, lambda asked: None)
    await Clock().turn()
    taking = asyncio.create_task(all_of(early))
    await Clock().turn()
    assert not taking.done()
    for frame in (b"1", b"2"):
        await ours.send(frame)
    assert await taking == [b"1"]
    assert await theirs.receive() == b"2"


async def test_it_can_be_closed_at_any_moment_and_twice() -> None:
    ours, theirs = memory_pair()
    early = Early(theirs, lambda asked: None)
    for _ in range(2):
        await early.aclose()
    await ours.aclose()
    early = Early(Tap(ConnectionLost("cut")), lambda asked: None)
    await Clock().turn()
    await early.aclose()
