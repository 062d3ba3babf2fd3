"""Bytes to frames and back, where LF alone ends a message (stdio, TCP, Unix sockets).

"Messages are delimited by newlines, and MUST NOT contain embedded newlines" (2026-07-28, basic/transports/stdio).
This file never reads, writes or waits, and never looks inside a message: whether it is UTF-8 or JSON is decided later.
"""

from __future__ import annotations

from modelwire.errors import FrameTooLarge

DEFAULT_MAX_MESSAGE = 64 * 1024 * 1024
"""Bytes of one message, if nothing else is said."""

BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r"
_OPENING_BRACE = 0x7B
_CLOSING_BRACE = 0x7D
_AROUND = len(BOM) + len(b"\r")
"""What may stand around a message without counting towards its length."""
_PIECE = 4096
"""Smaller pieces of a line are put together at once, so that many tiny ones take no more memory than they hold."""
_HEAD = 1024
"""How much of a dropped or unfinished line is told."""


class LineFramer:
    """Cuts a stream of bytes into messages, however the bytes arrive.

    CRLF, blank lines and a byte order mark before a message are tolerated: editors and Windows tools write them.
    A CR anywhere else is part of the line. A line that is too long is dropped as it arrives, so it costs no
    memory beyond the limit, and the line after it is read as usual.

    Args:
        max_message: The longest message in bytes, without line end and byte order mark.
    """

    def __init__(self, max_message: int = DEFAULT_MAX_MESSAGE) -> None:
        self._limit = max_message
        self._held: list[bytes] = []
        """The beginning of a line whose end has not arrived, in the pieces that came: joining them once is cheapest."""
        self._held_size = 0
        self._dropping = False
        """The line that is arriving was too long: skip it up to its LF."""

    @property
    def unfinished(self) -> bytes:
        """The beginning of a line whose end has not arrived, at most 1 KiB of it."""
        return b"".join(self._held)[:_HEAD] if self._held_size <= _PIECE else self._held[0][:_HEAD]

    def feed(self, chunk: bytes | memoryview) -> list[bytes | FrameTooLarge]:
        """Return what became complete with these bytes, in order.

        Args:
            chunk: Any piece of the stream, cut anywhere.

        Returns:
            Messages, and one `FrameTooLarge` for each line above the limit, as soon as it is known to be one. Its
            ``frame`` holds the first bytes of the line, at most 1 KiB, so that an id may be recovered from them.
        """
        lines = (chunk if isinstance(chunk, bytes) else bytes(chunk)).split(b"\n")
        rest = lines.pop()
        frames: list[bytes | FrameTooLarge] = []
        if lines and (self._held or self._dropping):
            self._end_held(lines.pop(0), frames)
        limit = self._limit
        for line in lines:
            if line and line[0] == _OPENING_BRACE and line[-1] == _CLOSING_BRACE and len(line) <= limit:
                frames.append(line)
            else:
                self._add(line, frames)
        if rest:
            self._hold(rest, frames)
        return frames

    def finish(self) -> list[bytes | FrameTooLarge]:
        """Return what the end of the stream completes: the last line counts without its LF."""
        frames: list[bytes | FrameTooLarge] = []
        self._end_held(b"", frames)
        return frames

    def _end_held(self, last: bytes, frames: list[bytes | FrameTooLarge]) -> None:
        if not self._dropping:
            self._hold(last, frames)
        if not self._dropping:
            self._add(b"".join(self._held), frames)
        self._release()
        self._dropping = False

    def _hold(self, piece: bytes, frames: list[bytes | FrameTooLarge]) -> None:
        if self._dropping:
            return
        if self._held_size + len(piece) > self._limit + _AROUND:
            self._dropping = True
            frames.append(self._too_large(b"".join((*self._held, piece))[: 2 * _HEAD]))
            self._release()
            return
        if self._held and len(self._held[-1]) < _PIECE:
            self._held[-1] += piece
        elif piece:
            self._held.append(piece)
        self._held_size += len(piece)

    def _release(self) -> None:
        self._held = []
        self._held_size = 0

    def _add(self, line: bytes, frames: list[bytes | FrameTooLarge]) -> None:
        if len(line) > self._limit + _AROUND:
            frames.append(self._too_large(line[: 2 * _HEAD]))
            return
        message = line.removeprefix(BOM).removesuffix(b"\r")
        if len(message) > self._limit:
            frames.append(self._too_large(line[: 2 * _HEAD]))
        elif message.strip(_BLANK):
            frames.append(message)

    def _too_large(self, head: bytes) -> FrameTooLarge:
        error = FrameTooLarge(self._limit)
        error.frame = head.removeprefix(BOM)[: min(_HEAD, self._limit)]
        return error


def frame_line(frame: bytes) -> bytes:
    """Return a frame as the line that carries it.

    JSON escapes a line feed inside a string, so a raw one is white space between tokens (somebody's pretty-printed
    JSON) and a space says the same.
    """
    return (frame.replace(b"\n", b" ") if b"\n" in frame else frame) + b"\n"
