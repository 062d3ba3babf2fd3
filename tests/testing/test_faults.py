"""A stream that spoils what crosses it: every fault, in both directions, exactly as the test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelwire import ConnectionLost, FrameTooLarge, RequestTimeout, Server, ToolError
from modelwire.testing import FakeServer, FaultyStream, Lane, RecordedClient, connected
from modelwire.transports.memory import MemoryStream, memory_pair

FRAMES = [b"zero", b"one", b"two", b"three", b"four"]


class Ends:
    """Both directions of a faulty stream, as one: ``put`` on one side, ``got`` on the other."""

    def __init__(self, faulty: FaultyStream, other: MemoryStream, incoming: bool) -> None:
        self.faulty = faulty
        self.lane = faulty.incoming if incoming else faulty.outgoing
        self.sender: Any = other if incoming else faulty
        self.receiver: Any = faulty if incoming else other

    async def put(self, *frames: bytes) -> None:
        for frame in frames:
            await self.sender.send(frame)

    async def got(self, count: int) -> list[bytes | None]:
        async with asyncio.timeout(10):
            return [await self.receiver.receive() for _ in range(count)]

    async def rest(self) -> list[bytes]:
        """Close the sending side, and return what comes out before the end."""
        await self.sender.aclose()
        found: list[bytes] = []
        async with asyncio.timeout(10):
            while (frame := await self.receiver.receive()) is not None:
                found.append(frame)
        return found


@asynccontextmanager
async def ends(incoming: bool) -> AsyncIterator[Ends]:
    ours, other = memory_pair()
    faulty = FaultyStream(ours)
    yield Ends(faulty, other, incoming)
    await faulty.aclose()
    await faulty.aclose()
    await other.aclose()


both_ways = pytest.mark.parametrize("incoming", [True, False], ids=["in", "out"])


@both_ways
async def test_without_faults_everything_passes_in_order(incoming: bool) -> None:
    async with ends(incoming) as there:
        await there.put(*FRAMES)
        assert await there.got(2) == FRAMES[:2]
        assert await there.rest() == FRAMES[2:]
        assert there.lane.passed == 5


FAULTS: list[tuple[str, Callable[[Lane], None], list[bytes]]] = [
    ("drop", lambda lane: lane.drop(), [b"one", b"two", b"three", b"four"]),
    ("drop the third", lambda lane: lane.drop(2), [b"zero", b"one", b"three", b"four"]),
    ("duplicate", lambda lane: lane.duplicate(1), [b"zero", b"one", b"one", b"two", b"three", b"four"]),
    ("three times", lambda lane: lane.duplicate(4, times=3), [*FRAMES, b"four", b"four"]),
    ("corrupt", lambda lane: lane.corrupt(0), [b"ze\xffo", *FRAMES[1:]]),
    ("corrupt by", lambda lane: lane.corrupt(0, lambda frame: frame[:2]), [b"ze", *FRAMES[1:]]),
    ("swap", lambda lane: lane.reorder(1, 0), [b"one", b"zero", *FRAMES[2:]]),
    ("reorder", lambda lane: lane.reorder(2, 0, 1), [b"two", b"zero", b"one", *FRAMES[3:]]),
    ("split", lambda lane: lane.split(1, 2), FRAMES),
    ("cut", lambda lane: lane.cut(2, orderly=True), FRAMES[:2]),
    ("cut in a frame", lambda lane: lane.cut(after_bytes=6, orderly=True), [b"zero", b"on"]),
    ("cut between", lambda lane: lane.cut(after_bytes=7, orderly=True), [b"zero", b"one"]),
    ("cut early", lambda lane: lane.cut(after_bytes=1, orderly=True), [b"z"]),
    ("cut at once", lambda lane: lane.cut(orderly=True), []),
    ("cut after none", lambda lane: lane.cut(0, orderly=True), []),
    ("the sooner of two", lambda lane: lane.cut(3, after_bytes=5, orderly=True), [b"zero", b"o"]),
]


@both_ways
@pytest.mark.parametrize(("fault", "left"), [case[1:] for case in FAULTS], ids=[case[0] for case in FAULTS])
async def test_each_fault_does_what_it_says(fault: Callable[[Lane], None], left: list[bytes], incoming: bool) -> None:
    async with ends(incoming) as there:
        fault(there.lane)
        for frame in FRAMES:
            try:
                await there.put(frame)
            except ConnectionLost:
                break
        assert await there.rest() == left


@both_ways
async def test_faults_add_up(incoming: bool) -> None:
    async with ends(incoming) as there:
        there.lane.drop(0)
        there.lane.duplicate(0)  # of what is left
        there.lane.split(1)
        await there.put(*FRAMES)
        assert await there.rest() == [b"one", b"one", *FRAMES[2:]]


@both_ways
async def test_a_cut_that_is_none_of_the_orderly_kind_breaks_both_directions(incoming: bool) -> None:
    async with ends(incoming) as there:
        await there.put(*FRAMES)
        assert await there.got(1) == [b"zero"]
        there.lane.cut()
        if incoming:
            with pytest.raises(ConnectionLost, match="the test cut the connection"):
                await there.rest()
        else:
            assert (await there.rest())[-1:] == [b"four"]  # they had crossed before
        with pytest.raises(ConnectionLost):
            await there.faulty.send(b"x")
        assert there.faulty.incoming.is_cut
        assert there.faulty.outgoing.is_cut


async def test_half_a_frame_is_lost_when_the_connection_breaks() -> None:
    async with ends(True) as there:
        there.lane.cut(after_bytes=6)
        await there.put(*FRAMES)
        assert await there.got(1) == [b"zero"]
        with pytest.raises(ConnectionLost, match="the test cut the connection"):
            await there.got(1)


@both_ways
async def test_frames_are_held_up_and_let_go_one_by_one(incoming: bool) -> None:
    async with ends(incoming) as there:
        there.lane.hold()
        await there.put(*FRAMES[:3])
        await there.lane.held(3)
        assert there.lane.passed == 0
        there.lane.release(1)
        assert await there.got(1) == [b"zero"]
        assert there.lane.passed == 1
        there.lane.release()
        await there.put(*FRAMES[3:])
        assert await there.rest() == FRAMES[1:]
        there.lane.release()  # nothing is held: nothing happens


@both_ways
async def test_a_frame_in_pieces_is_there_once_its_last_piece_is(incoming: bool) -> None:
    async with ends(incoming) as there:
        there.lane.split(3)
        there.lane.hold()
        await there.put(b"0123456789")
        await there.lane.held(4)
        there.lane.release(3)
        assert there.lane.passed == 0
        there.lane.release(1)
        assert await there.got(1) == [b"0123456789"]


async def test_the_end_of_the_stream_comes_after_what_is_held_up() -> None:
    async with ends(True) as there:
        there.lane.hold()
        await there.put(*FRAMES)
        await there.sender.aclose()
        await there.lane.held(5)
        there.lane.release(4)
        assert await there.got(4) == FRAMES[:4]
        there.lane.release()
        assert await there.got(2) == [b"four", None]


@given(st.lists(st.binary(min_size=1, max_size=20), max_size=6), st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_pieces_of_any_sizes_make_the_same_frames(frames: list[bytes], sizes: list[int]) -> None:
    got: list[bytes] = []
    lane = Lane(got.append, lambda orderly: None)
    lane.split(*sizes)
    for frame in frames:
        lane.take(frame)
    assert got == frames


@given(st.lists(st.binary(min_size=1, max_size=20), max_size=6), st.integers(1, 50))
def test_a_cut_leaves_just_the_bytes_that_crossed(frames: list[bytes], count: int) -> None:
    got: list[bytes] = []
    lane = Lane(got.append, lambda orderly: None)
    lane.cut(after_bytes=count, orderly=True)
    for frame in frames:
        lane.take(frame)
    assert b"".join(got) == b"".join(frames)[:count]


@pytest.mark.parametrize("order", [(0, 0), (1, 2), (0, 2)])
def test_an_order_names_each_frame_once(order: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="must name each of 0 to 1 once"):
        Lane(print, print).reorder(*order)


def test_a_piece_has_a_byte() -> None:
    with pytest.raises(ValueError, match="a piece has at least one byte"):
        Lane(print, print).split(2, 0)


# --------------------------------------------------------------------------------------------------- with a client


def shop() -> Server:
    server = Server("shop")

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    return server


class Between:
    """Puts a faulty stream between a server and a client."""

    def __init__(self) -> None:
        self.stream: Any = None

    def __call__(self, stream: Any) -> Any:
        self.stream = FaultyStream(stream)
        return self.stream


async def test_a_lost_answer_is_a_timeout_and_no_more() -> None:
    between = Between()
    async with connected(shop(), through=between) as client:
        assert await add(client) == 3
        between.stream.incoming.drop()
        with pytest.raises(RequestTimeout):
            await client.call("add", {"a": 1, "b": 2}, timeout=0.01)
        assert await add(client) == 3


async def test_faults_may_hit_by_method_or_pattern() -> None:
    between = Between()
    async with connected(shop(), through=between, revision="2025-11-25") as client:
        between.stream.outgoing.corrupt("tools/call", lambda frame: frame.replace(b'"add"', b'"sub"'))
        for _ in range(2):
            with pytest.raises(Exception, match="Unknown tool: sub"):
                await add(client)
        assert len(await client.list_tools()) == 1
        between.stream.incoming.corrupt({"result": {"tools": ...}}, lambda frame: b"nonsense")
        with pytest.raises(RequestTimeout, match="unreadable"):
            await client.list_tools(timeout=0.01)


async def test_an_answer_that_comes_twice_or_late_harms_nothing() -> None:
    between = Between()
    async with connected(shop(), through=between) as client:
        between.stream.incoming.duplicate()
        assert await add(client) == 3
        between.stream.incoming.hold()
        call = asyncio.create_task(add(client))
        await between.stream.incoming.held()
        assert not call.done()
        between.stream.incoming.release()
        assert await call == 3


async def test_answers_in_another_order_reach_their_calls() -> None:
    between = Between()
    async with connected(shop(), through=between) as client:
        between.stream.incoming.reorder(2, 1, 0)
        calls = [client.call("add", {"a": n, "b": 0}, returns=int) for n in range(3)]
        assert await asyncio.gather(*calls) == [0, 1, 2]


async def test_a_cut_is_a_lost_connection() -> None:
    between = Between()
    async with connected(shop(), through=between) as client:
        between.stream.incoming.cut(after_bytes=10)
        with pytest.raises(ConnectionLost, match="the test cut the connection"):
            await add(client)


async def test_what_is_wrong_with_the_other_stream_is_passed_on() -> None:
    class Odd(MemoryStream):
        told = False

        async def receive(self) -> bytes | None:
            if not self.told:
                self.told = True
                raise FrameTooLarge(5)
            raise OSError("the cable was cut")

    faulty = FaultyStream(Odd())
    with pytest.raises(FrameTooLarge):
        await faulty.receive()
    with pytest.raises(OSError, match="the cable was cut"):
        await faulty.receive()
    await faulty.aclose()


async def test_closing_sends_what_is_on_its_way() -> None:
    async with FakeServer() as fake:
        faulty = FaultyStream(fake.stream)
        await faulty.send(b'{"jsonrpc":"2.0","method":"acme/last"}')
        await faulty.aclose()
        await fake.expect("acme/last")
        await fake.closed()
        assert await faulty.receive() is None


async def add(client: RecordedClient) -> int:
    return await client.call("add", {"a": 1, "b": 2}, returns=int)


async def test_a_tool_error_is_no_fault() -> None:
    async with connected(shop(), through=Between()) as client:
        with pytest.raises(ToolError):
            await client.call("add", {"a": "x", "b": 2})
