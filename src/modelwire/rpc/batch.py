"""Answers that go back together, and what goes in place of those that there is no room for. Sends nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from modelwire.protocol import jsonrpc
from modelwire.rpc.call import Call

MAX_BATCH = 1 << 26
"""Bytes of the answers of one batch above which the rest of them are errors."""


class BatchCall:
    """A batch whose answers go back as one array, in no particular order, once the last is there."""

    __slots__ = ("_size", "calls", "frames")

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.calls: list[Call] = []
        self._size = 0

    def add(self, answer: bytes | Call | None) -> None:
        """Take what an item of the batch came to."""
        if type(answer) is bytes:
            self._take(answer)
        elif type(answer) is Call:
            answer.deliver = self._take
            self.calls.append(answer)

    def _take(self, frame: bytes) -> None:
        if self._size > MAX_BATCH:
            frame = too_much(frame) or frame
        self._size += len(frame)
        self.frames.append(frame)

    async def answered(self, start: Callable[[Call], None]) -> bytes | None:
        """Return the array once each call is answered or cancelled; a handler that will not stop holds up nobody.

        Args:
            start: Begins to answer a call.
        """
        # What arrived with it may have cancelled some of them already.
        calls = [call for call in self.calls if call.open]
        settled = [call.closed() for call in calls]
        for call in calls:
            start(call)
        if settled:
            await asyncio.wait(settled)
        return self.frame

    @property
    def frame(self) -> bytes | None:
        """The array of what was answered; None when nothing was."""
        return jsonrpc.encode_batch(self.frames) if self.frames else None


def too_much(frame: bytes) -> bytes | None:
    """Return the error that goes in place of an answer which there is no room for; None when the frame is no answer."""
    found = jsonrpc.peek(frame)
    if found.get("answerable") is not False:
        return None
    return jsonrpc.encode_error(found["id"], 429, "too much waits to be sent to you already: read it, and ask for less")
