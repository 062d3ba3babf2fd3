"""A message stream that a test feeds with bytes, cut anywhere, and that keeps what was sent over it."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from typing import Any

from modelwire.errors import ConnectionLost, FrameTooLarge
from modelwire.rules.lines import LineFramer, frame_line


class FedStream:
    """One end of a connection, whose other end is the test.

    Args:
        max_message: The longest message in bytes.
    """

    def __init__(self, max_message: int = 1 << 20) -> None:
        self._framer = LineFramer(max_message)
        self._frames: deque[bytes | FrameTooLarge] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._ended = False
        self._broken = False
        self.closed = False
        self._sent: list[bytes] = []

    # ------------------------------------------------------------------ the test's side

    def feed(self, chunk: bytes) -> None:
        """Have some bytes arrive."""
        self._frames += self._framer.feed(chunk)
        self._wake()

    def say(self, *messages: Any) -> None:
        """Have whole messages arrive, all in one read."""
        self.feed(b"".join(frame_line(json.dumps(message).encode()) for message in messages))

    def hang_up(self) -> None:
        """End the input; the last line counts without its LF."""
        if not self._ended:
            self._ended = True
            self._frames += self._framer.finish()
            self._wake()

    def break_off(self) -> None:
        """Have the connection break."""
        self._broken = True
        self._wake()

    def sent(self) -> list[Any]:
        """Return what was sent since the last time, decoded. Every frame must be one line of strict JSON."""
        sent, self._sent = self._sent, []
        return [strict(frame) for frame in sent]

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # ------------------------------------------------------------------ the message stream

    async def receive(self) -> bytes | None:
        while True:
            if self.closed:
                return None
            if self._frames:
                frame = self._frames.popleft()
                if isinstance(frame, FrameTooLarge):
                    raise frame
                return frame
            if self._broken:
                raise ConnectionLost("the test broke the connection")
            if self._ended:
                return None
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter

    async def send(self, frame: bytes) -> None:
        if self.closed or self._broken:
            raise ConnectionLost("the stream is closed")
        assert frame_line(frame).count(b"\n") == 1
        self._sent.append(frame)

    async def aclose(self) -> None:
        self.closed = True
        self._wake()


def strict(frame: bytes) -> Any:
    """Decode JSON that must be just that: UTF-8, no NaN, no lone surrogate, no member twice."""
    value = json.loads(frame.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_no_twice)
    json.dumps(value, ensure_ascii=False).encode()
    return value


def _no_constant(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


def _no_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    assert len(members) == len(pairs), f"a member is there twice: {[name for name, _ in pairs]}"
    return members
