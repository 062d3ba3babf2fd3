"""Writes lines to a file descriptor: a standard stream, a pipe to a child process, or a socket.

Everything happens on the event loop, and nothing here makes it wait. The flags of a descriptor are never changed:
whoever opens one decides whether it is non-blocking, and gives the sink that fits. Never closes what it was given.
"""

from __future__ import annotations

import asyncio
import errno
import os
import select
import socket
from collections.abc import Callable

from modelwire.errors import ConnectionLost
from modelwire.rules.lines import frame_line

HIGH_WATER = 1024 * 1024
"""``send`` waits while more bytes than this are queued, until half of it is written."""
PIPE_SIZE = 64 * 1024
"""Bytes that a Linux pipe holds."""
WRITES_PER_TURN = 64
"""A sink that takes little at a time must not keep the loop from turning."""

Sink = Callable[["bytes | memoryview"], int]
"""Writes some of the bytes and returns how many; raises BlockingIOError rather than wait."""


class LineWriter:
    """Writes frames as lines without ever blocking the loop.

    Frames of one turn of the loop leave in one write.

    Args:
        fd: What to poll when the sink is full; stays the caller's.
        sink: Writes to it.
        name: What to call it in errors.
        on_broken: Told once, with the reason, when writing has failed for good.
    """

    def __init__(self, fd: int, sink: Sink, *, name: str, on_broken: Callable[[str], None] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._fd = fd
        self._sink = sink
        self._name = name
        self._on_broken = on_broken
        self._lines: list[bytes] = []
        self._rest: memoryview | None = None
        """What is left of a write that the sink took only in part, or not yet."""
        self._rest_is_whole = False
        self._unwritten: list[bytes] = []
        self._queued = 0
        self._scheduled = False
        self._watching = False
        self._lost: Callable[[], ConnectionLost] | None = None
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []
        self.stirred = False
        """Set whenever the sink takes something again after it was full; cleared by whoever wants to know."""

    @property
    def blocked(self) -> bool:
        """Whether something is queued that the sink does not take for now."""
        return self._watching

    async def send(self, frame: bytes) -> None:
        """Queue a frame, and wait while more than `HIGH_WATER` bytes are queued.

        Raises:
            ConnectionLost: The other end is gone, or this one is closed.
        """
        if self._lost is not None:
            self._unwritten.append(frame)
            raise self._lost()
        self._queue(frame)
        if self._queued > HIGH_WATER:
            await self._until(HIGH_WATER // 2)

    def send_nowait(self, frame: bytes) -> bool:
        """Queue a frame and return True; return False when `send` would wait or raise."""
        if self._lost is not None or self._queued > HIGH_WATER:
            return False
        # As `_queue` does, in full: this is called for every frame.
        line = frame + b"\n" if b"\n" not in frame else frame_line(frame)
        self._lines.append(line)
        self._queued += len(line)
        if not self._scheduled:
            self._schedule()
        return True

    async def drain(self, seconds: float) -> None:
        """Wait until everything is written, or writing failed, or the time is over."""
        if self._queued and self._lost is None:
            try:
                await asyncio.wait_for(self._until(0), seconds)
            except (TimeoutError, ConnectionLost):
                pass

    def fail(self, lost: Callable[[], ConnectionLost]) -> None:
        """Drop what is queued; every `send` raises what ``lost`` makes, those that wait included.

        The last reason given is the one told.
        """
        self._lost = lost
        self._unwritten += self._whole_lines()
        self._lines = []
        self._rest = None
        self._queued = 0
        self._unwatch()
        self._wake()

    def unwritten(self) -> list[bytes]:
        """Return what was dropped or refused, and of which the sink has not taken a byte: frames, or their lines."""
        return self._unwritten

    def _whole_lines(self) -> list[bytes]:
        rest = [] if self._rest is None else bytes(self._rest).split(b"\n")
        # What the sink took may end within a line, or just behind one: that line counts as written.
        return [*(rest if self._rest_is_whole else rest[1:]), *self._lines]

    def close(self) -> None:
        """Drop what is queued and stop writing."""
        self.fail(lambda: ConnectionLost(f"cannot send: {self._name} is closed on this side; open a new connection"))

    async def _until(self, queued: int) -> None:
        if self._lost is None and self._queued > queued:
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._waiters.append((queued, waiter))
            await waiter
        if self._lost is not None:
            raise self._lost()

    def _flush(self) -> None:
        self._scheduled = False
        if self._watching:
            self.stirred = True
        try:
            for _ in range(WRITES_PER_TURN):
                if not self._queued:
                    break
                self._write_some()
        except BlockingIOError:
            self._watch()
        except OSError as error:
            self._break(error)
        else:
            self._unwatch()
            self._schedule()
        self._wake()

    def _queue(self, frame: bytes) -> None:
        line = frame_line(frame)
        self._lines.append(line)
        self._queued += len(line)
        if not self._scheduled:
            self._schedule()

    def _schedule(self) -> None:
        if self._queued and not self._scheduled and not self._watching:
            self._scheduled = True
            self._loop.call_soon(self._flush)

    def _write_some(self) -> None:
        if self._rest is None:
            self._rest = memoryview(self._next_lines())
            self._rest_is_whole = True
        written = self._sink(self._rest)
        self._rest_is_whole = self._rest_is_whole and not written
        self._queued -= written
        self._rest = self._rest[written:] if written < len(self._rest) else None

    def _next_lines(self) -> bytes:
        """Take lines for one write: as many as there are, but no more than fill a pipe, since joining is copying."""
        if self._queued <= PIPE_SIZE:
            lines, self._lines = self._lines, []
        else:
            count = size = 0
            while size < PIPE_SIZE and count < len(self._lines):
                size += len(self._lines[count])
                count += 1
            lines = self._lines[:count]
            del self._lines[:count]
        return lines[0] if len(lines) == 1 else b"".join(lines)

    def _break(self, error: OSError) -> None:
        gone = error.errno in (errno.EPIPE, errno.ECONNRESET)
        problem = f"{self._name} is closed: its reader is gone" if gone else f"cannot write to {self._name}"
        problem = f"{problem} ({error.strerror}); open the connection again"
        self.fail(lambda: ConnectionLost(problem))
        if self._on_broken is not None:
            self._on_broken(problem)

    def _watch(self) -> None:
        if not self._watching:
            self._watching = True
            self._loop.add_writer(self._fd, self._flush)

    def _unwatch(self) -> None:
        if self._watching:
            self._watching = False
            self._loop.remove_writer(self._fd)

    def _wake(self) -> None:
        still: list[tuple[int, asyncio.Future[None]]] = []
        for entry in self._waiters:
            queued, waiter = entry
            if waiter.done():
                continue
            if self._lost is None and self._queued > queued:
                still.append(entry)
            elif not self._loop.is_closed():
                waiter.set_result(None)
        self._waiters = still


def direct_sink(fd: int) -> Sink:
    """Return a sink for a descriptor that is non-blocking, or never full: a regular file, ``/dev/null``."""
    return lambda data: os.write(fd, data)


def socket_sink(connection: socket.socket) -> Sink:
    """Return a sink for a socket, blocking or not."""
    flags = socket.MSG_DONTWAIT | getattr(socket, "MSG_NOSIGNAL", 0)
    return lambda data: connection.send(data, flags)


def cautious_sink(fd: int) -> Sink:
    """Return a sink for a blocking descriptor that must stay one: it writes only what surely fits.

    A pipe that polls as writable takes ``PIPE_BUF`` bytes without blocking. A terminal promises room for one.
    """
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    piece = 1 if os.isatty(fd) else select.PIPE_BUF

    def write(data: bytes | memoryview) -> int:
        if not poll.poll(0):
            raise BlockingIOError(errno.EAGAIN, "not writable now")
        return os.write(fd, data[:piece])

    return write
