"""A reader of server-sent events, written from the WHATWG text ("9.2.6 Interpreting an event stream")."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Event:
    """What is dispatched."""

    data: str
    id: str
    type: str


class Reader:
    """Reads a stream as it arrives.

    Attributes:
        last_id: The last event ID.
        retry: The reconnection time in milliseconds, where the stream has said one.
        comments: How many comment lines came.
    """

    def __init__(self) -> None:
        self.last_id = ""
        self.retry: int | None = None
        self.comments = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text = ""
        self._begun = self._after_cr = False
        self._id = self._type = ""
        self._data: list[str] = []

    def feed(self, data: bytes) -> list[Event]:
        """Take in bytes; return the events that are complete with them."""
        self._text += self._decoder.decode(data)
        if not self._begun and self._text:
            self._begun = True
            self._text = self._text.removeprefix("\ufeff")
        found: list[Event] = []
        while True:
            if self._after_cr and self._text:
                self._after_cr = False
                self._text = self._text.removeprefix("\n")  # the second half of a CRLF
            end = re.search(r"\r|\n", self._text)
            if end is None:
                break
            self._after_cr = end[0] == "\r"
            line, self._text = self._text[: end.start()], self._text[end.end() :]
            event = self._line(line)
            if event is not None:
                found.append(event)
        return found

    def _line(self, line: str) -> Event | None:
        if line == "":
            return self._dispatch()
        if line.startswith(":"):
            self.comments += 1
            return None
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            self._type = value
        elif field == "data":
            self._data.append(value)
        elif field == "id" and "\0" not in value:
            self._id = value
        elif field == "retry" and value.isascii() and value.isdigit():
            self.retry = int(value)
        return None

    def _dispatch(self) -> Event | None:
        self.last_id = self._id
        data, kind = "\n".join(self._data), self._type
        self._data, self._type = [], ""
        return Event(data, self.last_id, kind or "message") if data else None
