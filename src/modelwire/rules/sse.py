"""Server-sent events: messages to bytes, as the WHATWG algorithm will read them back. Nothing here reads or writes."""

from __future__ import annotations

COMMENT = b":\n\n"
"""Says nothing, and keeps a stream from being taken for dead."""


def event(data: bytes, *, id: str | None = None, name: str | None = None) -> bytes:
    """Return one event.

    Args:
        data: What it carries: a JSON text, or nothing. A line end in it can only be white space, and becomes a blank.
        id: What ``Last-Event-ID`` will name.
        name: The event's type; ``message`` when left out.
    """
    head = b""
    if name is not None:
        head += b"event: " + name.encode() + b"\n"
    if id is not None:
        head += b"id: " + id.encode() + b"\n"
    if b"\n" in data or b"\r" in data:
        data = data.replace(b"\r", b" ").replace(b"\n", b" ")
    return b"".join((head, b"data: ", data, b"\n\n"))


def retry(milliseconds: int) -> bytes:
    """Return the word on when to come back, which is no event."""
    return b"retry: %d\n\n" % milliseconds
