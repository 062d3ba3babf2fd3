"""Lines from a descriptor: batching, pausing, ends, and what is never done to it."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from modelwire.errors import ConnectionLost, FrameTooLarge
from modelwire.transports import line_reader
from modelwire.transports.line_writer import LineWriter, direct_sink
from tests.transports.descriptors import MiB, open_pipe, reader
from tests.transports.turns import let_others_run, without_suspension


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


async def test_frames_of_one_read_are_handed_out_without_suspension(stack: ExitStack) -> None:
    reading, writing = open_pipe(stack)
    lines = reader(stack, reading)
    os.write(writing, b"[1]\n[2]\n[3]\n")
    assert await lines.receive() == b"[1]"
    assert [without_suspension(lines.receive()) for _ in range(2)] == [b"[2]", b"[3]"]


async def test_reading_never_makes_a_descriptor_non_blocking(stack: ExitStack) -> None:
    reading, writing = open_pipe(stack)
    before = fcntl.fcntl(reading, fcntl.F_GETFL)
    lines = reader(stack, reading)
    os.write(writing, b"[1]\n")
    assert await lines.receive() == b"[1]"
    assert fcntl.fcntl(reading, fcntl.F_GETFL) == before
    assert os.get_blocking(reading)


async def test_the_end_comes_after_everything_was_handed_out(stack: ExitStack) -> None:
    reading, writing = open_pipe(stack)
    lines = reader(stack, reading)
    os.write(writing, b"[1]\n[2]")
    os.close(writing)
    assert [await lines.receive() for _ in range(4)] == [b"[1]", b"[2]", None, None]


async def test_a_line_above_max_message_is_raised_in_its_place(stack: ExitStack) -> None:
    reading, writing = open_pipe(stack)
    lines = reader(stack, reading, max_message=100)
    os.write(writing, b"[1]\n" + b"x" * 500 + b"\n[2]\n")
    assert await lines.receive() == b"[1]"
    with pytest.raises(FrameTooLarge, match="max_message=100"):
        await lines.receive()
    assert await lines.receive() == b"[2]"


async def test_a_cancelled_receive_loses_nothing(stack: ExitStack) -> None:
    reading, writing = open_pipe(stack)
    lines = reader(stack, reading)
    waiting = asyncio.create_task(lines.receive())
    await let_others_run()
    waiting.cancel()
    os.write(writing, b"[1]\n")
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await lines.receive() == b"[1]"


async def test_reading_stops_while_nobody_takes_the_frames(stack: ExitStack) -> None:
    reading, writing = open_pipe(stack, blocking_writes=False)
    lines = reader(stack, reading)
    writer = LineWriter(writing, direct_sink(writing), name="the pipe")
    stack.callback(writer.close)
    frames = [b"%07d" % number * 1000 for number in range(300)]
    sending = [asyncio.create_task(writer.send(frame)) for frame in frames]
    assert await lines.receive() == frames[0]
    await let_others_run(100)
    assert not sending[-1].done()
    assert [await lines.receive() for _ in frames[1:]] == frames[1:]
    await asyncio.gather(*sending)


async def test_a_message_longer_than_the_read_ahead_arrives(stack: ExitStack) -> None:
    reading, writing = open_pipe(stack, blocking_writes=False)
    lines = reader(stack, reading)
    writer = LineWriter(writing, direct_sink(writing), name="the pipe")
    stack.callback(writer.close)
    frame = b"{" + b"x" * (5 * MiB) + b"}"
    sending = asyncio.create_task(writer.send(frame))
    assert await lines.receive() == frame
    await sending


async def test_a_regular_file_is_read_in_pieces_with_turns_between(stack: ExitStack, tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"x" * 5 * line_reader.READ_SIZE + b"\n[2]\n")
    fd = os.open(path, os.O_RDONLY)
    stack.callback(os.close, fd)
    lines = reader(stack, fd, polled=False)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    assert len(await lines.receive() or b"") == 5 * line_reader.READ_SIZE
    counting.cancel()
    assert turns >= 5
    assert await lines.receive() == b"[2]"
    assert await lines.receive() is None


async def test_what_epoll_refuses_is_read_directly(stack: ExitStack) -> None:
    fd = os.open(os.devnull, os.O_RDONLY)
    stack.callback(os.close, fd)
    assert await reader(stack, fd).receive() is None


async def test_a_descriptor_that_cannot_be_read_is_connection_lost(stack: ExitStack, tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    stack.callback(os.close, fd)
    with pytest.raises(ConnectionLost, match="the test's input: Is a directory"):
        await reader(stack, fd).receive()


async def test_end_when_dry_ends_though_the_other_end_is_held(stack: ExitStack) -> None:
    reading, writing = open_pipe(stack)
    os.set_blocking(reading, False)
    lines = reader(stack, reading)
    os.write(writing, b"[1]\n[2]")
    assert await lines.receive() == b"[1]"
    os.write(writing, b"\n[3]")
    lines.end_when_dry()
    assert [await lines.receive() for _ in range(3)] == [b"[2]", b"[3]", None]


async def test_end_when_dry_before_the_first_receive_loses_nothing(stack: ExitStack) -> None:
    reading, writing = open_pipe(stack)
    os.set_blocking(reading, False)
    lines = reader(stack, reading)
    os.write(writing, b"[1]\n")
    lines.end_when_dry()
    assert [await lines.receive() for _ in range(2)] == [b"[1]", None]


async def test_discarding_lets_the_other_end_write_on(stack: ExitStack) -> None:
    reading, writing = open_pipe(stack, blocking_writes=False)
    lines = reader(stack, reading)
    writer = LineWriter(writing, direct_sink(writing), name="the pipe")
    stack.callback(writer.close)
    lines.discard()
    await writer.send(b"x" * (3 * MiB))
    assert await lines.receive() is None


async def test_exhausting_throws_away_what_comes_until_the_end(stack: ExitStack) -> None:
    reading, writing = open_pipe(stack)
    lines = reader(stack, reading)
    os.write(writing, b"[1]\n[2]\n")
    assert await lines.receive() == b"[1]"
    exhausting = [asyncio.create_task(lines.exhaust(30)) for _ in range(2)]
    await let_others_run()
    os.write(writing, b"[3]\n")
    await let_others_run()
    assert not any(task.done() for task in exhausting)
    os.close(writing)
    await asyncio.gather(*exhausting)
    assert await lines.receive() is None
    await lines.exhaust(30)


async def test_exhausting_gives_up_after_its_time(stack: ExitStack) -> None:
    reading, _ = open_pipe(stack)
    lines = reader(stack, reading)
    await lines.exhaust(0.01)
    assert await lines.receive() is None


async def test_a_failure_can_wait_until_everything_that_came_is_handed_out(stack: ExitStack) -> None:
    reading, writing = open_pipe(stack)
    os.set_blocking(reading, False)
    lines = reader(stack, reading)
    waiting = asyncio.create_task(lines.receive())
    await let_others_run()
    os.write(writing, b"[1]\n[2]\n[3]\n")
    lines.fail_when_dry("it broke")
    assert await waiting == b"[1]"
    assert [await lines.receive() for _ in range(2)] == [b"[2]", b"[3]"]
    for _ in range(2):
        with pytest.raises(ConnectionLost, match="it broke"):
            await lines.receive()


async def test_reading_leaves_a_sign(stack: ExitStack) -> None:
    reading, writing = open_pipe(stack)
    lines = reader(stack, reading)
    waiting = asyncio.create_task(lines.receive())
    await let_others_run()
    assert not lines.stirred
    os.write(writing, b"half a line")
    await let_others_run()
    assert lines.stirred
    waiting.cancel()
