"""Server-sent events: bytes back to events, by the WHATWG algorithm (HTML, 9.2.6), however the bytes arrive.

Nothing here reads or waits, and nothing is known of what an event says: its data may be anything.
"""

from __future__ import annotations

from dataclasses import dataclass

from modelwire.errors import FrameTooLarge
from modelwire.rules.lines import BOM, DEFAULT_MAX_MESSAGE

_HEAD = 1024
"""How much of an event that was dropped is told."""
_FIELDS = frozenset({b"data", b"event", b"id", b"retry"})
_NAME = len(b"event: ")
MAX_RETRY = 24 * 60 * 60 * 1000
"""Milliseconds; a longer wait is taken for this one."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event.

    Attributes:
        data: Its data; empty where a ``data`` field was empty.
        name: Its type, ``message`` by default.
    """

    data: bytes
    name: str = "message"


class EventReader:
    """Reads one stream, and further ones that go on where it broke off.

    Args:
        max_message: The most bytes of data that an event may have. One with more is dropped as it arrives, and the
            event after it is read as usual.
    """

    def __init__(self, max_message: int = DEFAULT_MAX_MESSAGE) -> None:
        self._limit = max_message
        self.last_id = ""
        """What ``Last-Event-ID`` names to go on after the last event."""
        self.retry: int | None = None
        """Milliseconds to wait before coming back, once the server has said so."""
        self.restart()

    def restart(self) -> None:
        """Begin another stream, which goes on after the last event; what was incomplete is forgotten."""
        self._start: bytes | None = b""
        """The first bytes, while they may be a byte order mark."""
        self._after_cr = False
        self._held = bytearray()
        self._cut = False
        """The line that is arriving is too long; the rest of it is skipped."""
        self._id = self.last_id
        self._forget_event()

    def _forget_event(self) -> None:
        self._data: list[bytes] = []
        self._size = 0
        self._name = ""
        self._head: bytes | None = None
        """The beginning of the data of an event that is too large."""

    def feed(self, chunk: bytes) -> list[Event | FrameTooLarge]:
        """Return what became complete with these bytes, in order.

        Returns:
            Events, and one `FrameTooLarge` for each above the limit, whose ``frame`` holds the first bytes of its data.
        """
        if self._start is not None:
            chunk = self._after_bom(chunk)
        if self._after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._after_cr = False
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        found: list[Event | FrameTooLarge] = []
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if lines and (self._held or self._cut):
            self._hold(lines[0])
            lines[0] = self._take_held()
        for line in lines:
            if line:
                self._line(line)
            else:
                self._dispatch(found)
        if rest:
            self._hold(rest)
        return found

    def _after_bom(self, chunk: bytes) -> bytes:
        start = (self._start or b"") + chunk
        if len(start) < len(BOM) and BOM.startswith(start):
            self._start = start
            return b""
        self._start = None
        return start.removeprefix(BOM)

    def _hold(self, piece: bytes) -> None:
        if self._cut:
            return
        self._held += piece
        if len(self._held) > self._limit + _NAME:
            self._cut = True
            if self._held.startswith(b"data:"):
                self._too_large(bytes(self._held[5 : 5 + _HEAD]).removeprefix(b" "))
            self._held.clear()

    def _take_held(self) -> bytes:
        if self._cut:
            self._cut = False
            return b":"  # what was skipped says nothing any more, and is no empty line either
        line = bytes(self._held)
        self._held.clear()
        return line

    def _line(self, line: bytes) -> None:
        colon = line.find(b":")
        name = line if colon < 0 else line[:colon]
        if name not in _FIELDS:
            return  # a comment, or what nobody knows
        # Copied once, since it may be large; a blank after the colon is not part of it.
        value = b"" if colon < 0 else line[colon + (2 if line[colon + 1 : colon + 2] == b" " else 1) :]
        if name == b"data":
            self._add(value)
        elif name == b"event":
            self._name = value.decode("utf-8", "replace")
        elif name == b"id":
            if b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
        elif value.isdigit():
            self.retry = min(int(value[:20]), MAX_RETRY)

    def _add(self, value: bytes) -> None:
        self._size += len(value) + 1
        if self._head is not None:
            return
        if self._size > self._limit + 1:
            self._too_large(b"\n".join((*self._data, value[:_HEAD]))[:_HEAD])
        else:
            self._data.append(value)

    def _too_large(self, head: bytes) -> None:
        if self._head is None:
            self._head = head
            self._data.clear()

    def _dispatch(self, found: list[Event | FrameTooLarge]) -> None:
        self.last_id = self._id
        if self._head is not None:
            error = FrameTooLarge(self._limit)
            error.frame = self._head[: self._limit]
            found.append(error)
        elif self._data:
            data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
            found.append(Event(data, self._name or "message"))
        self._forget_event()
