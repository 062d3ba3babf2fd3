"""Lines to a descriptor: batching, waiting, and what never happens to the loop."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import tty
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from modelwire.errors import ConnectionLost
from modelwire.transports import line_writer
from modelwire.transports.line_writer import LineWriter, cautious_sink, direct_sink, socket_sink
from tests.transports.descriptors import open_pipe, reader
from tests.transports.turns import let_others_run, without_suspension


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


async def test_frames_of_one_turn_leave_in_one_write(stack: ExitStack) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # keeps writes apart
    stack.callback(ours.close)
    stack.callback(theirs.close)
    writer = LineWriter(ours.fileno(), direct_sink(ours.fileno()), name="the socket")
    stack.callback(writer.close)
    for frame in (b"[1]", b"[2]", b"[3]"):
        without_suspension(writer.send(frame))
    await let_others_run()
    assert theirs.recv(1000) == b"[1]\n[2]\n[3]\n"


@pytest.mark.parametrize("cautious", [False, True], ids=["non-blocking", "blocking descriptor"])
async def test_a_full_pipe_never_blocks_the_loop_and_send_waits(stack: ExitStack, cautious: bool) -> None:
    reading, writing = open_pipe(stack, blocking_writes=cautious)
    sink = cautious_sink(writing) if cautious else direct_sink(writing)
    writer = LineWriter(writing, sink, name="the pipe")
    stack.callback(writer.close)
    frame = b"x" * 200_000
    count = line_writer.HIGH_WATER // len(frame)
    for _ in range(count):
        without_suspension(writer.send(frame))
    waiting = [asyncio.create_task(writer.send(frame)) for _ in range(3)]
    await let_others_run()
    assert not any(task.done() for task in waiting)
    lines = reader(stack, reading)
    for _ in range(count + 3):
        assert await lines.receive() == frame
    await asyncio.gather(*waiting)
    assert os.get_blocking(writing) is cautious


@pytest.mark.parametrize("cautious", [False, True], ids=["non-blocking", "blocking descriptor"])
async def test_a_reader_that_is_gone_is_connection_lost(stack: ExitStack, cautious: bool) -> None:
    reading, writing = open_pipe(stack, blocking_writes=cautious)
    told: list[str] = []
    sink = cautious_sink(writing) if cautious else direct_sink(writing)
    writer = LineWriter(writing, sink, name="the pipe", on_broken=told.append)
    waiting = asyncio.create_task(writer.send(b"x" * (line_writer.HIGH_WATER + 1)))
    await let_others_run()
    os.close(reading)
    with pytest.raises(ConnectionLost, match="the pipe is closed: its reader is gone"):
        await waiting
    with pytest.raises(ConnectionLost, match="its reader is gone"):
        await writer.send(b"x")
    assert len(told) == 1


@pytest.mark.parametrize("kind", ["pipe", "terminal"])
def test_a_cautious_sink_refuses_rather_than_block(stack: ExitStack, kind: str) -> None:
    if kind == "pipe":
        reading, writing = open_pipe(stack)
    else:
        reading, writing = os.openpty()
        tty.setraw(writing)
        stack.callback(os.close, reading)
        stack.callback(os.close, writing)
    sink = cautious_sink(writing)
    written = 0
    try:
        while True:  # a write that blocked would run into the test's time limit
            written += sink(b"x" * 100_000)
    except BlockingIOError:
        assert written > 4000
    assert os.get_blocking(writing)


async def test_a_cancelled_drain_and_a_cancelled_send_leave_the_writer_working(stack: ExitStack) -> None:
    reading, writing = open_pipe(stack, blocking_writes=False)
    writer = LineWriter(writing, direct_sink(writing), name="the pipe")
    stack.callback(writer.close)
    frame = b"x" * (line_writer.HIGH_WATER + 1)
    waiting = [asyncio.create_task(writer.send(frame)), asyncio.create_task(writer.drain(30))]
    await let_others_run()
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    lines = reader(stack, reading)
    assert await lines.receive() == frame
    await writer.send(b"[2]")
    assert await lines.receive() == b"[2]"


async def test_drain_gives_up_after_its_time(stack: ExitStack) -> None:
    _, writing = open_pipe(stack, blocking_writes=False)
    writer = LineWriter(writing, direct_sink(writing), name="the pipe")
    await writer.send(b"x" * 200_000)
    await writer.drain(0.01)
    writer.close()
    with pytest.raises(ConnectionLost, match="closed on this side"):
        await writer.send(b"x")


async def test_a_full_device_is_connection_lost(stack: ExitStack) -> None:
    fd = os.open("/dev/full", os.O_WRONLY)
    stack.callback(os.close, fd)
    writer = LineWriter(fd, direct_sink(fd), name="stdout")
    await writer.send(b"x")
    await writer.drain(5)
    with pytest.raises(ConnectionLost, match=r"cannot write to stdout \(No space left on device\)"):
        await writer.send(b"x")


async def test_what_was_never_begun_is_told_from_what_was_written_in_part(stack: ExitStack) -> None:
    """Ten bytes at a time: the first line is through, the second was begun, the third and what comes later is not."""
    _, writing = open_pipe(stack, blocking_writes=False)
    taken: list[bytes] = []

    def sink(data: bytes | memoryview) -> int:
        if len(taken) == 2:
            raise BrokenPipeError(errno.EPIPE, "gone")
        taken.append(bytes(data[:10]))
        return 10

    writer = LineWriter(writing, sink, name="the pipe")
    for frame in (b"1" * 8, b"2" * 20, b"3" * 5, b"4"):
        await writer.send(frame)
    await let_others_run()
    with pytest.raises(ConnectionLost):
        await writer.send(b"5")
    assert b"".join(taken) == b"11111111\n22222222222"
    assert [line for line in writer.unwritten() if line] == [b"33333", b"4", b"5"]


async def test_a_write_that_fails_at_once_has_written_nothing(stack: ExitStack) -> None:
    reading, writing = open_pipe(stack, blocking_writes=False)
    os.close(reading)
    writer = LineWriter(writing, direct_sink(writing), name="the pipe")
    for frame in (b"1", b"2"):
        await writer.send(frame)
    await let_others_run()
    assert [line for line in writer.unwritten() if line] == [b"1", b"2"]
    writer.close()
    assert [line for line in writer.unwritten() if line] == [b"1", b"2"]


async def test_what_was_written_is_not_called_unwritten(stack: ExitStack) -> None:
    _, writing = open_pipe(stack, blocking_writes=False)
    writer = LineWriter(writing, direct_sink(writing), name="the pipe")
    await writer.send(b"1")
    await writer.drain(5)
    writer.close()
    assert writer.unwritten() == []


async def test_a_sink_that_takes_something_again_leaves_a_sign(stack: ExitStack) -> None:
    reading, writing = open_pipe(stack, blocking_writes=False)
    writer = LineWriter(writing, direct_sink(writing), name="the pipe")
    stack.callback(writer.close)
    writer.send_nowait(b"x")
    await let_others_run()
    assert not writer.blocked
    writer.send_nowait(b"x" * 500_000)
    await let_others_run()
    assert writer.blocked
    assert not writer.stirred
    while not writer.stirred:
        os.read(reading, 65536)
        await let_others_run()


async def test_a_sink_for_a_socket_never_blocks_and_raises_no_signal(stack: ExitStack) -> None:
    ours, theirs = socket.socketpair()
    stack.callback(ours.close)
    sink = socket_sink(ours)
    try:
        while True:  # a write that blocked would run into the test's time limit
            sink(b"x" * 100_000)
    except BlockingIOError:
        assert ours.getblocking()
    theirs.close()
    before = signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        with pytest.raises(OSError, match="Broken pipe|reset"):
            sink(b"x")
    finally:
        signal.signal(signal.SIGPIPE, before)
