"""The events of one stream, kept so that a reader that lost its connection can go on where it was. Plain values."""

from __future__ import annotations

from collections import deque

MAX_EVENTS = 1000
MAX_BYTES = 1 << 20
"""Of one stream; the oldest events go first. One that is larger by itself is kept alone."""


class EventLog:
    """What was said on a stream, numbered from 1.

    Args:
        stream: The stream's number in its session; part of every id, so that an id names stream and place.
    """

    def __init__(self, stream: int) -> None:
        self.stream = stream
        self._kept: deque[tuple[int, bytes]] = deque()
        self.bytes = 0
        """How many are kept."""
        self.last = 0

    def add(self, data: bytes) -> str:
        """Take in what is said next, and return its id."""
        self.last += 1
        self._kept.append((self.last, data))
        self.bytes += len(data)
        while len(self._kept) > MAX_EVENTS or (self.bytes > MAX_BYTES and len(self._kept) > 1):
            self.bytes -= len(self._kept.popleft()[1])
        return event_id(self.stream, self.last)

    def after(self, place: int) -> list[tuple[str, bytes]]:
        """Return what was said after a place, as far as it is kept: ids and data."""
        return [(event_id(self.stream, number), data) for number, data in self._kept if number > place]

    def says(self, place: int) -> bool:
        """Whether this stream has had a place, and everything that was said after it is kept."""
        first = self._kept[0][0] if self._kept else 1
        return first - 1 <= place <= self.last


def event_id(stream: int, place: int) -> str:
    """Return the id of an event."""
    return f"{stream}-{place}"


def place_of(text: str) -> tuple[int, int] | None:
    """Return the stream and the place that a ``Last-Event-ID`` names; None for what is none of ours."""
    stream, dash, place = text.partition("-")
    if not dash or not (stream.isascii() and stream.isdigit() and place.isascii() and place.isdigit()):
        return None
    if len(stream) > 15 or len(place) > 15:
        return None
    return int(stream), int(place)
