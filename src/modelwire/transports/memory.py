"""Two streams joined in memory: what is sent on one is received on the other.

For a client and a server in one process and for tests. It copies nothing, frames nothing and starts no task; both
ends belong to the same event loop.
"""

from __future__ import annotations

import asyncio
from collections import deque

from modelwire.errors import ConnectionLost

MAX_QUEUED_FRAMES = 1024
MAX_QUEUED_BYTES = 1024 * 1024
"""Above either, ``send`` waits until half of it has been received."""


class MemoryStream:
    """One end of a pair; a `modelwire.rpc.message_stream.MessageStream`. Made by `memory_pair`."""

    def __init__(self) -> None:
        self._peer: MemoryStream = self
        self._inbox: deque[bytes] = deque()
        self._inbox_bytes = 0
        self._closed = False
        self._receiver: asyncio.Future[None] | None = None
        self._refused: list[bytes] = []
        self._senders: list[asyncio.Future[None]] = []
        """Who waits for room in this end's inbox."""

    async def receive(self) -> bytes | None:
        """Return the next frame, or None once the other end has closed and everything was handed out."""
        while not self._closed:
            if self._inbox:
                return self._take()
            if self._peer._closed:
                break
            self._receiver = asyncio.get_running_loop().create_future()
            try:
                await self._receiver
            finally:
                self._receiver = None
        return None

    async def send(self, frame: bytes) -> None:
        """Queue a frame for the other end; waits while much is queued there.

        Raises:
            ConnectionLost: Either end is closed.
        """
        if self._closed or self._peer._closed:
            self._refused.append(frame)
        self._require_open()
        peer = self._peer
        peer._put(frame)
        while peer._full:
            room: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            peer._senders.append(room)
            await room
            self._require_open()

    def receive_nowait(self) -> bytes | None:
        """Return a frame that has arrived already; see `EagerStream`."""
        return self._take() if self._inbox and not self._closed else None

    def send_nowait(self, frame: bytes) -> bool:
        """Queue a frame if that needs no waiting; see `EagerStream`."""
        if self._closed or self._peer._closed or self._peer._full:
            return False
        self._peer._put(frame)
        return True

    def unwritten(self) -> list[bytes]:
        """Return the frames that came too late; see `KnowsUnwritten`."""
        return self._refused

    async def aclose(self) -> None:
        """Close this end: the other end receives what was sent, then None; here nothing more is received."""
        if self._closed:
            return
        self._closed = True
        self._inbox.clear()
        self._inbox_bytes = 0
        for end in (self, self._peer):
            _wake(end._receiver)
            end._release_senders()

    @property
    def _full(self) -> bool:
        return len(self._inbox) > MAX_QUEUED_FRAMES or self._inbox_bytes > MAX_QUEUED_BYTES

    def _put(self, frame: bytes) -> None:
        self._inbox.append(frame)
        self._inbox_bytes += len(frame)
        _wake(self._receiver)

    def _take(self) -> bytes:
        frame = self._inbox.popleft()
        self._inbox_bytes -= len(frame)
        if self._senders and len(self._inbox) <= MAX_QUEUED_FRAMES // 2 and self._inbox_bytes <= MAX_QUEUED_BYTES // 2:
            self._release_senders()
        return frame

    def _release_senders(self) -> None:
        senders, self._senders = self._senders, []
        for sender in senders:
            _wake(sender)

    def _require_open(self) -> None:
        if self._closed:
            raise ConnectionLost("cannot send: this end of the in-memory connection is closed; open a new one")
        if self._peer._closed:
            raise ConnectionLost("cannot send: the other end of the in-memory connection was closed; open a new one")


def memory_pair() -> tuple[MemoryStream, MemoryStream]:
    """Return two open streams, each the other end of the other."""
    one, other = MemoryStream(), MemoryStream()
    one._peer, other._peer = other, one  # pyright: ignore[reportPrivateUsage] -- the pair is wired here, once
    return one, other


def _wake(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
