"""The one shape that every transport but HTTP has: a duplex stream of frames.

Only the shape; the transports implement it, `modelwire.rpc.connection` uses it.
"""

from __future__ import annotations

from typing import Protocol


class MessageStream(Protocol):
    """A duplex stream of JSON-RPC messages.

    A frame is the bytes of one message, without the line end or other framing. A stream belongs to one
    event loop. ``receive`` has one caller at a time; ``send`` may have many.
    """

    async def receive(self) -> bytes | None:
        """Return the next frame, or None once the other end has closed and everything was handed out.

        Frames that arrived in one read are handed out without giving up the event loop in between.

        Raises:
            FrameTooLarge: A message was longer than ``max_message``. It was dropped; the next call goes on
                with the message after it.
            ConnectionLost: The stream broke (anything but an orderly end).
        """
        ...

    async def send(self, frame: bytes) -> None:
        """Queue a frame; frames queued in one turn of the event loop leave in one write.

        Returns at once while little is queued, and waits while the other end is slow to read.

        Raises:
            ConnectionLost: The stream is closed or broken.
        """
        ...

    async def aclose(self) -> None:
        """Write what is queued (for at most a second or so), then close. May be called twice and from any task."""
        ...
