"""Frames over connected sockets: order, bounds, ends, and every way in which a connection can break."""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelwire.errors import ConnectionLost, FrameTooLarge
from modelwire.rpc.message_stream import EagerStream
from modelwire.transports import socket_stream
from modelwire.transports.socket_stream import tune
from tests.clock import Clock
from tests.transports.sockets import MiB, connected, descriptors, reset, stream, tasks
from tests.transports.turns import let_others_run, without_suspension

KINDS = pytest.mark.parametrize("kind", ["tcp", "unix"])


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


async def everything(end: socket.socket) -> bytes:
    """What the other end sends until it closes."""
    loop = asyncio.get_running_loop()
    data = b""
    while chunk := await loop.sock_recv(end, MiB):
        data += chunk
    return data


# --------------------------------------------------------------------------------------------------- frames


@KINDS
async def test_frames_arrive_in_order_both_ways(kind: str, stack: ExitStack) -> None:
    one, other = map(stream, connected(stack, kind))
    assert isinstance(one, EagerStream)
    for frame in (b"1", b"2", b"3"):
        await one.send(frame)
    await other.send(b"back")
    assert [await other.receive() for _ in range(3)] == [b"1", b"2", b"3"]
    assert await one.receive() == b"back"
    await asyncio.gather(one.aclose(), other.aclose())


@KINDS
async def test_frames_of_one_turn_are_handed_out_without_suspension(kind: str, stack: ExitStack) -> None:
    one, other = map(stream, connected(stack, kind))
    for frame in (b"1", b"2", b"3"):
        without_suspension(one.send(frame))
    assert await other.receive() == b"1"
    assert without_suspension(other.receive()) == b"2"
    assert other.receive_nowait() == b"3"
    assert other.receive_nowait() is None
    await asyncio.gather(one.aclose(), other.aclose())


@KINDS
async def test_a_message_of_many_mebibytes_arrives_whole_both_ways(kind: str, stack: ExitStack) -> None:
    one, other = map(stream, connected(stack, kind))
    there, back = b"{" + b"x" * 20 * MiB + b"}", b"{" + b"y" * 30 * MiB + b"}"
    sending = [asyncio.create_task(one.send(there)), asyncio.create_task(other.send(back))]
    received = await asyncio.gather(other.receive(), one.receive())
    assert received == [there, back]
    await asyncio.gather(*sending)
    await asyncio.gather(one.aclose(), other.aclose())


@KINDS
async def test_a_line_above_max_message_costs_only_itself(kind: str, stack: ExitStack) -> None:
    ours, theirs = connected(stack, kind)
    one = stream(ours, max_message=100)
    theirs.sendall(b"[1]\n" + b"x" * 500 + b"\n[2]\n")
    assert await one.receive() == b"[1]"
    with pytest.raises(FrameTooLarge, match="max_message=100"):
        await one.receive()
    assert await one.receive() == b"[2]"
    one.release()


@KINDS
async def test_what_was_read_before_comes_first(kind: str, stack: ExitStack) -> None:
    ours, theirs = connected(stack, kind)
    one = stream(ours)
    one.preload(b"[1]\n[2")
    theirs.sendall(b"]\n[3]\n")
    assert [await one.receive() for _ in range(3)] == [b"[1]", b"[2]", b"[3]"]
    one.release()


LINES = st.lists(st.binary(max_size=40).map(lambda data: data.replace(b"\n", b"")), max_size=8)


@given(lines=LINES, cuts=st.lists(st.integers(0, 400), max_size=8), kind=st.sampled_from(["tcp", "unix"]))
@settings(max_examples=20)
def test_however_the_bytes_are_cut_the_frames_are_the_same(lines: list[bytes], cuts: list[int], kind: str) -> None:
    data = b"".join(line + b"\n" for line in lines)
    marks = sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    pieces = [data[start:end] for start, end in itertools.pairwise(marks)]

    async def received() -> list[bytes]:
        with ExitStack() as stack:
            ours, theirs = connected(stack, kind)
            one = stream(ours)
            frames: list[bytes] = []

            async def read() -> None:
                while (frame := await one.receive()) is not None:
                    frames.append(frame)

            reading = asyncio.create_task(read())
            for piece in pieces:
                theirs.sendall(piece)
                await let_others_run(3)
            theirs.shutdown(socket.SHUT_WR)
            await reading
            for frame in frames:
                await one.send(frame)
            await one.aclose()
            assert await everything(theirs) == b"".join(frame + b"\n" for frame in frames)
            return frames

    bare = (line.removeprefix(b"\xef\xbb\xbf").removesuffix(b"\r") for line in lines)
    assert asyncio.run(received()) == [line for line in bare if line.strip(b" \t\r")]


# --------------------------------------------------------------------------------------------------- slow readers


@KINDS
async def test_send_waits_while_the_other_end_does_not_read(kind: str, stack: ExitStack) -> None:
    ours, theirs = connected(stack, kind)
    one = stream(ours)
    frame = b"x" * 100_000
    sending = [asyncio.create_task(one.send(frame)) for _ in range(200)]
    await let_others_run(50)
    assert not sending[-1].done()
    assert one.blocked
    assert not one.send_nowait(b"[1]")
    other = stream(theirs)
    for _ in sending:
        assert await other.receive() == frame
    await asyncio.gather(*sending)
    assert not one.blocked
    await asyncio.gather(one.aclose(), other.aclose())


@KINDS
async def test_nothing_is_read_while_nobody_takes_the_frames(kind: str, stack: ExitStack) -> None:
    ours, theirs = connected(stack, kind)
    one, other = stream(ours), stream(theirs)
    frames = [b"%07d" % number * 1000 for number in range(2000)]
    sending = asyncio.create_task(send_all(other, frames))
    assert await one.receive() == frames[0]
    await let_others_run(200)
    assert not sending.done()
    assert [await one.receive() for _ in frames[1:]] == frames[1:]
    await sending
    await asyncio.gather(one.aclose(), other.aclose())


async def send_all(end: socket_stream.SocketStream, frames: list[bytes]) -> None:
    for frame in frames:
        await end.send(frame)


# --------------------------------------------------------------------------------------------------- orderly ends


@KINDS
async def test_a_client_that_closes_its_side_still_gets_answers(kind: str, stack: ExitStack) -> None:
    ours, theirs = connected(stack, kind)
    one = stream(ours)
    theirs.sendall(b"[1]\n[2]")
    theirs.shutdown(socket.SHUT_WR)
    assert [await one.receive() for _ in range(4)] == [b"[1]", b"[2]", None, None]
    await one.send(b"[3]")
    await one.aclose()
    assert await everything(theirs) == b"[3]\n"


@KINDS
async def test_where_both_sides_end_together_nothing_is_sent_after_the_end(kind: str, stack: ExitStack) -> None:
    ours, theirs = connected(stack, kind)
    one = stream(ours, ends_together=True)
    theirs.sendall(b"[1]\n")
    theirs.shutdown(socket.SHUT_WR)
    assert [await one.receive() for _ in range(3)] == [b"[1]", None, None]
    assert await everything(theirs) == b""
    with pytest.raises(ConnectionLost, match="cannot send: the other end has closed the connection; open it again"):
        await one.send(b"[2]")
    await one.aclose()


@KINDS
async def test_closing_sends_what_is_queued_and_ends_both_receives(kind: str, stack: ExitStack) -> None:
    one, other = map(stream, connected(stack, kind))
    waiting = asyncio.create_task(one.receive())
    await let_others_run()
    without_suspension(one.send(b"last words"))
    closing = asyncio.create_task(one.aclose())
    assert [await other.receive() for _ in range(2)] == [b"last words", None]
    await other.aclose()
    await closing
    assert await waiting is None
    assert await one.receive() is None
    with pytest.raises(ConnectionLost, match="closed on this side"):
        await one.send(b"x")


@KINDS
async def test_closing_loses_nothing_though_the_other_end_has_sent_more(kind: str, stack: ExitStack) -> None:
    # Closed with something unread, TCP resets the connection, and what was not delivered yet is lost.
    ours, theirs = connected(stack, kind)
    one, other = stream(ours), stream(theirs)
    frames = [b"%07d" % number * 100 for number in range(700)]
    theirs.sendall(b"[1]\n" * 1000)
    sending = asyncio.create_task(send_all(one, frames))
    await sending
    closing = asyncio.create_task(one.aclose())
    for frame in frames:
        assert await other.receive() == frame
        other.send_nowait(b"still talking")
    assert await other.receive() is None
    await other.aclose()
    await closing


@KINDS
async def test_closing_twice_and_from_two_tasks_is_fine(kind: str, stack: ExitStack) -> None:
    one, other = map(stream, connected(stack, kind))
    await asyncio.gather(other.aclose(), one.aclose(), one.aclose())
    await one.aclose()
    one.release()
    other.release()


@KINDS
async def test_closing_waits_for_a_silent_other_end_only_so_long(kind: str, stack: ExitStack) -> None:
    ours, theirs = connected(stack, kind)
    clock = Clock()
    one = stream(ours)
    closing = asyncio.create_task(one.aclose())
    await clock.advance(socket_stream.LINGER_SECONDS / 2)
    assert not closing.done()
    await clock.advance(socket_stream.LINGER_SECONDS)
    await closing
    assert await everything(theirs) == b""


@KINDS
async def test_closing_waits_for_a_slow_reader_only_so_long(kind: str, stack: ExitStack) -> None:
    ours, _ = connected(stack, kind)
    clock = Clock()
    one = stream(ours)
    sending = asyncio.create_task(one.send(b"x" * 20 * MiB))
    await clock.turn()
    closing = asyncio.create_task(one.aclose())
    await clock.advance(socket_stream.DRAIN_SECONDS / 2)
    assert not closing.done()
    await clock.advance(socket_stream.DRAIN_SECONDS)
    await clock.advance(socket_stream.LINGER_SECONDS)
    await closing
    with pytest.raises(ConnectionLost):
        await sending


@KINDS
async def test_a_close_that_is_cancelled_closes_at_once(kind: str, stack: ExitStack) -> None:
    ours, theirs = connected(stack, kind)
    one = stream(ours)
    closing = asyncio.create_task(one.aclose())
    await let_others_run()
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert ours.fileno() == -1
    assert await everything(theirs) == b""


@KINDS
async def test_a_cancelled_receive_loses_nothing(kind: str, stack: ExitStack) -> None:
    ours, theirs = connected(stack, kind)
    one = stream(ours)
    waiting = asyncio.create_task(one.receive())
    await let_others_run()
    waiting.cancel()
    theirs.sendall(b"[1]\n")
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await one.receive() == b"[1]"
    one.release()


# --------------------------------------------------------------------------------------------------- rude ends


async def test_a_reset_is_connection_lost_after_what_came_before(stack: ExitStack) -> None:
    ours, theirs = connected(stack, "tcp")
    one = stream(ours)
    theirs.sendall(b"[1]\n")
    assert await one.receive() == b"[1]"
    waiting = asyncio.create_task(one.receive())
    await let_others_run()
    reset(theirs)
    with pytest.raises(ConnectionLost, match="cannot read from the other end: Connection reset by peer"):
        await waiting
    await one.aclose()


@KINDS
async def test_a_reader_that_goes_while_a_large_message_is_written_is_connection_lost(
    kind: str, stack: ExitStack
) -> None:
    ours, theirs = connected(stack, kind)
    one = stream(ours)
    sending = asyncio.create_task(one.send(b"x" * 20 * MiB))
    await let_others_run()
    theirs.recv(1000)
    theirs.close()
    with pytest.raises(ConnectionLost, match="the other end is closed: its reader is gone"):
        await sending
    with pytest.raises(ConnectionLost):
        await one.receive()
    await one.aclose()


async def test_what_arrived_is_handed_out_though_nothing_can_be_sent_any_more(stack: ExitStack) -> None:
    ours, theirs = connected(stack, "unix")  # TCP itself may drop what is on its way when a connection is reset
    one = stream(ours)
    count = 30_000  # more than is read at once
    for number in range(count):
        try:
            theirs.sendall(b"[%d]\n" % number)
        except BlockingIOError:
            count = number
            break
    theirs.close()
    received = [await one.receive()]
    for _ in range(3):
        one.send_nowait(b"x" * 1000)
        await let_others_run()
    while len(received) < count:
        received.append(await one.receive())
    assert received == [b"[%d]" % number for number in range(count)]
    one.release()


@KINDS
async def test_giving_up_ends_both_directions_for_that_reason(kind: str, stack: ExitStack) -> None:
    ours, _ = connected(stack, kind)
    one = stream(ours)
    waiting = asyncio.create_task(one.receive())
    sending = asyncio.create_task(one.send(b"x" * 20 * MiB))
    await let_others_run()
    one.fail("it is dead")
    for task in (waiting, sending):
        with pytest.raises(ConnectionLost, match="it is dead"):
            await task
    assert not one.send_nowait(b"x")
    await one.aclose()


# --------------------------------------------------------------------------------------------------- signs of life


@KINDS
async def test_silence_and_signs_of_life_are_told_apart(kind: str, stack: ExitStack) -> None:
    ours, theirs = connected(stack, kind)
    one = stream(ours)
    reading = asyncio.create_task(one.receive())
    await let_others_run()
    assert not one.stirred()
    theirs.sendall(b"half a mess")
    await let_others_run()
    assert one.stirred()
    assert not one.stirred()
    one.send_nowait(b"into the system's buffer, which proves nothing")
    await let_others_run()
    assert not one.stirred()
    assert not one.blocked
    reading.cancel()
    one.release()


@KINDS
async def test_taking_what_was_waiting_is_a_sign_of_life(kind: str, stack: ExitStack) -> None:
    ours, theirs = connected(stack, kind)
    one = stream(ours)
    sending = asyncio.create_task(one.send(b"x" * 20 * MiB))
    await let_others_run()
    assert one.blocked
    assert not one.stirred()
    taken = 0
    while not one.stirred():
        taken += len(await asyncio.get_running_loop().sock_recv(theirs, MiB))
    assert 0 < taken < 20 * MiB
    sending.cancel()
    one.release()


@pytest.mark.parametrize(("heartbeat", "idle"), [(None, 60), (10, 10), (0.1, 1)])
def test_tcp_sends_at_once_and_asks_after_silence(heartbeat: float | None, idle: int, stack: ExitStack) -> None:
    one, _ = connected(stack, "tcp")
    tune(one, heartbeat)
    assert one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    assert one.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert one.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == idle
    assert one.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) == max(1, round(idle / 4))
    timeout = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
    assert timeout == (0 if heartbeat is None else round(2000 * heartbeat))


def test_tuning_leaves_other_sockets_and_dead_ones_alone(stack: ExitStack) -> None:
    one, _ = connected(stack, "unix")
    tune(one, 10)
    dead, _ = connected(stack, "tcp")
    dead.close()
    tune(dead, 1e12)


# --------------------------------------------------------------------------------------------------- who, and leftovers


async def test_the_user_at_the_other_end_is_known_for_unix_sockets_only(stack: ExitStack) -> None:
    for kind, user in (("unix", os.getuid()), ("tcp", None)):
        ours, _ = connected(stack, kind)
        one = stream(ours)
        assert one.user == user
        one.release()


@KINDS
async def test_nothing_is_left_over(kind: str, stack: ExitStack) -> None:
    before = descriptors(), tasks()
    for _ in range(20):
        one, other = map(stream, connected(stack, kind))
        await one.send(b"x" * 10_000)
        await asyncio.gather(one.aclose(), other.aclose())
    assert (descriptors(), tasks()) == before


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 warns of forks beside threads
@KINDS
async def test_a_forked_child_does_not_keep_the_connection_open(kind: str, stack: ExitStack) -> None:
    ours, theirs = connected(stack, kind)
    one = stream(ours)
    waiting, go = os.pipe()
    child = os.fork()
    if child == 0:
        theirs.close()
        os.close(go)
        os.read(waiting, 1)
        os._exit(0)
    os.close(waiting)
    try:
        one.release()
        assert await everything(theirs) == b""
    finally:
        os.close(go)
        os.waitpid(child, 0)
