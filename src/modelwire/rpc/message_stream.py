"""The one shape that every transport but HTTP has: a duplex stream of frames.

Only the shape; the transports implement it, `modelwire.rpc.connection` uses it.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable


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


@runtime_checkable
class EagerStream(MessageStream, Protocol):
    """A stream that also takes and gives frames without a coroutine, which saves a tenth of a call's cost.

    Optional: a transport that has these two methods is used through them, one that has not works all the same.
    """

    def receive_nowait(self) -> bytes | None:
        """Return a frame that has been read already; None when there is none, or when `receive` has more to say."""
        ...

    def send_nowait(self, frame: bytes) -> bool:
        """Queue a frame and return True; return False when `send` would wait or raise."""
        ...


@runtime_checkable
class KnowsUnwritten(MessageStream, Protocol):
    """A stream that can say what it never began to send. Optional: it spares a client from calling that uncertain."""

    def unwritten(self) -> list[bytes]:
        """Return the frames, or lines, that were refused or dropped, and of which no byte left."""
        ...


@runtime_checkable
class Releasable(MessageStream, Protocol):
    """A stream that can be left without its event loop. Optional: it spares who forgot to close one the remains."""

    def release(self) -> None:
        """Close at once; what is queued is lost. For a loop that has ended, where ``aclose`` cannot run."""
        ...
