"""Reads a stream before anybody can be answered, so that its end is noticed; what comes meanwhile is kept.

For whoever needs time to begin, such as a server whose lifespan starts. It never cancels a `receive`: a stream may lose
a frame by that.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable

from modelwire.errors import FrameTooLarge
from modelwire.rpc.message_stream import MessageStream

MAX_FRAMES = 256
MAX_BYTES = 1 << 20
"""What is read early at most; then the stream has to wait, as it would without this."""


class Early:
    """Frames that came early.

    Args:
        stream: The stream; nobody else may receive from it until `frames` has ended.
        on_end: Called when the other end has closed, or the stream has broken, with whether anything came before.
    """

    def __init__(self, stream: MessageStream, on_end: Callable[[bool], None]) -> None:
        self._stream = stream
        self._on_end: Callable[[bool], None] | None = on_end
        self.over = False
        """Whether the other end has closed: nothing comes after what came early."""
        self._frames: deque[bytes | FrameTooLarge] = deque()
        self._bytes = 0
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        try:
            while self._on_end is not None and len(self._frames) < MAX_FRAMES and self._bytes < MAX_BYTES:
                frame = await self._received()
                if frame is None:
                    self.over = True
                    self._ended()
                    return
                self._bytes += 0 if isinstance(frame, FrameTooLarge) else len(frame)
                self._frames.append(frame)
        except Exception:
            self._ended()
            raise

    async def _received(self) -> bytes | FrameTooLarge | None:
        try:
            return await self._stream.receive()
        except FrameTooLarge as error:
            return error

    def _ended(self) -> None:
        if self._on_end is not None:
            self._on_end(bool(self._frames))

    def enough(self) -> None:
        """Read no more, but for the frame that is awaited already; the end is not told of any more."""
        self._on_end = None

    async def frames(self) -> AsyncGenerator[bytes | FrameTooLarge, None]:
        """Hand out what came; no more is read.

        Raises:
            ConnectionLost: The stream broke.
        """
        self.enough()
        while self._frames or not self._reading.done():
            if self._frames:
                yield self._frames.popleft()
            else:
                await asyncio.wait([self._reading])
        self._reading.result()

    async def aclose(self) -> None:
        """Let go of the stream. May be called twice."""
        self.enough()
        self._reading.cancel()
        await asyncio.wait([self._reading])
        if not self._reading.cancelled():
            self._reading.exception()
