"""Reads lines from a file descriptor: a standard stream, a pipe to a child process, or a socket.

Everything happens on the event loop: no thread, so nothing can keep a process from ending. The flags of a descriptor
are never changed here, because others may share the open file description. Never closes what it was given.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections import deque

from modelwire.errors import ConnectionLost, FrameTooLarge
from modelwire.rules.lines import LineFramer

READ_SIZE = 64 * 1024
"""Bytes of one read, and what a Linux pipe holds."""
READ_AHEAD = 256 * 1024
"""Reading pauses when so many bytes were read since somebody last had to wait for a frame."""


class LineReader:
    """Reads frames from a descriptor that may be of any kind.

    What can be polled is read when it is readable, so a blocking descriptor does not block the loop. Regular files
    and ``/dev/null``, which epoll refuses, never block: they are read piece by piece, with a turn for the loop between.
    Nothing is read before the first `receive`.

    Args:
        fd: Where to read; stays the caller's.
        max_message: The longest message in bytes.
        name: What to call it in errors.
        polled: False for regular files, whose readiness nobody can ask.
    """

    def __init__(self, fd: int, *, max_message: int, name: str, polled: bool = True) -> None:
        self._loop = asyncio.get_running_loop()
        self._fd = fd
        self._name = name
        self._polled = polled
        self._framer = LineFramer(max_message)
        self._ready: deque[bytes | FrameTooLarge] = deque()
        self._ahead = 0
        self._watching = False
        self._until_dry = False
        self._discarding = False
        self._ended = False
        self._problem: str | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._over: asyncio.Future[None] | None = None
        self.stirred = False
        """Set whenever anything is read; cleared by whoever wants to know whether something is."""

    @property
    def unfinished(self) -> bytes:
        """The beginning of a line that has not ended yet."""
        return self._framer.unfinished

    def preload(self, chunk: bytes) -> None:
        """Take bytes that somebody else has already read from the descriptor."""
        self._ready.extend(self._framer.feed(chunk))

    async def receive(self) -> bytes | None:
        """Return the next frame, or None at the end.

        Raises:
            FrameTooLarge: A line was too long; the next call goes on behind it.
            ConnectionLost: Reading failed, or `fail` was called.
        """
        while True:
            if self._ready:
                item = self._ready.popleft()
                if isinstance(item, bytes):
                    return item
                raise item
            if self._ended and self._problem is not None:
                raise ConnectionLost(self._problem)
            if self._ended or self._discarding:
                return None
            self._ahead = 0
            await self._more()

    def receive_nowait(self) -> bytes | None:
        """Return a frame that has been read already; None when there is none, or when `receive` would raise."""
        if self._ready and isinstance(self._ready[0], bytes):
            return self._ready.popleft()  # pyright: ignore[reportReturnType] - its type was looked at
        return None

    def end_when_dry(self) -> None:
        """End once nothing is left to read right now, even if someone holds the other end. For a non-blocking fd."""
        self._until_dry = True
        if self._watching:
            self._read()

    def fail_when_dry(self, problem: str) -> None:
        """Do as `end_when_dry` does, and as `fail` then."""
        self._problem = self._problem or problem
        self.end_when_dry()

    def discard(self) -> None:
        """Throw away what was read and what comes, so that the writer is never stuck; `receive` returns None."""
        self._ready.clear()
        self._discarding = True
        if not self._ended:
            self._watch()
        self._wake()

    async def exhaust(self, seconds: float) -> None:
        """Throw away what was read and what comes, until the other end closes or the time is over."""
        self.discard()
        if not self._ended:
            self._over = self._over or self._loop.create_future()
            await asyncio.wait([self._over], timeout=seconds)

    def fail(self, problem: str) -> None:
        """Make `receive` raise ConnectionLost once everything read so far was handed out."""
        self._problem = self._problem or problem
        self._end()

    def close(self) -> None:
        """Stop reading at once; `receive` returns None from now on."""
        self._ready.clear()
        self._problem = None
        self._end()

    async def _more(self) -> None:
        if not self._watch():
            await asyncio.sleep(0)
            self._read()
            return
        if self._until_dry:
            self._loop.call_soon(self._read)
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _watch(self) -> bool:
        if self._polled and not self._watching:
            try:
                self._loop.add_reader(self._fd, self._read)
                self._watching = True
            except PermissionError:  # epoll: "this fd does not support polling", as for /dev/null
                self._polled = False
        return self._polled

    def _unwatch(self) -> None:
        if self._watching:
            self._watching = False
            self._loop.remove_reader(self._fd)

    def _read(self) -> None:
        if self._ended or (self._polled and not self._watching):
            return
        try:
            chunk = os.read(self._fd, READ_SIZE)
        except BlockingIOError:
            if self._until_dry:
                self._finish()
            return
        except OSError as error:
            if error.errno != errno.EIO:  # EIO: the terminal was hung up, which is how a terminal ends
                self._problem = f"cannot read from {self._name}: {error.strerror}; open the connection again"
            chunk = b""
        if chunk:
            self._take(chunk)
        else:
            self._finish()

    def _take(self, chunk: bytes) -> None:
        self.stirred = True
        if self._until_dry:
            self._loop.call_soon(self._read)
        if self._discarding:
            return
        self._ready.extend(self._framer.feed(chunk))
        self._ahead += len(chunk)
        if self._ready:
            if self._ahead > READ_AHEAD:
                self._unwatch()
            self._wake()

    def _finish(self) -> None:
        if not self._discarding:
            self._ready.extend(self._framer.finish())
        self._end()

    def _end(self) -> None:
        self._ended = True
        if self._loop.is_closed():  # whoever waited there is not woken any more
            return
        self._unwatch()
        self._wake()
        if self._over is not None and not self._over.done():
            self._over.set_result(None)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
