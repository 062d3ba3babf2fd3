"""One HTTP response, written to its connection without ASGI: no task, no queue; the connection says when it is gone.

uvicorn takes it for the request that is being answered, so that others on the connection wait for their turn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from modelwire.rules import sse
from modelwire.server.http import answers
from modelwire.server.http.answers import STREAM_HEADERS, Begun, Opening, Whole
from modelwire.server.http.silences import Silences

if TYPE_CHECKING:
    from modelwire.server.http.direct import Direct

_LAST: Final = b"0\r\n\r\n"
_LAST_ONE: Final = (b"connection", b"close")


class _Nobody:
    """Stands for those who wait for news from the client: nobody does."""

    def set(self) -> None:
        """Tell nobody."""


class DirectReply:
    """The response to one request.

    Args:
        connection: Where it is written to.
        silences: Where streams are that say nothing.
        silence: Seconds without a word until a stream begins.
        opening: Says what stands at the beginning of a stream that begins because of silence.
    """

    __slots__ = (
        "_connection", "_events", "_opening", "_silence", "_silences", "_size", "_spoke", "begun", "disconnected",
        "keep_alive", "over", "response_complete", "streaming",
    )  # fmt: skip

    message_event: Final = _Nobody()  # what uvicorn wants to tell

    def __init__(
        self,
        connection: Direct,
        silences: Silences,
        silence: float | None = None,
        opening: Opening | None = None,
    ) -> None:
        self._connection = connection
        self._silences = silences
        self._silence = answers.SILENCE if silence is None else silence
        self._opening = opening
        self._events: list[bytes] = []
        """What is written together, once this turn of the loop is over."""
        self._size = 0
        """How many bytes those are: whoever tells of its progress asks for it each time."""
        self._spoke = connection.loop.time()
        self.begun: Begun | None = None
        """Whom it concerns when the response is over, once there is somebody."""
        self.streaming = self.over = self.response_complete = self.disconnected = False
        self.keep_alive = True
        """Whether the connection stays; uvicorn says so when the server ends."""

    # ------------------------------------------------------------------ see `modelwire.server.http.answers.Response`

    def post(self, event: bytes) -> None:
        """Send an event; from now on it is a stream."""
        if not self.over:
            if not self._events:
                self._connection.loop.call_soon(self._flush)
            self._events.append(event)
            self._size += len(event)

    def finish(self, answer: bytes, status: int = 200) -> None:
        """Send the answer, the last thing that is sent."""
        if self.over:
            return
        if self.streaming or self._events:
            self._events.append(sse.event(answer))
            self.end()
        else:
            self.over = True
            self._connection.write_whole(Whole(status, answer, () if self.keep_alive else (_LAST_ONE,)))
            self._complete()

    def end(self) -> None:
        """Send what is waiting, and then no more."""
        if not self.over:
            self.over = True
            self._write(_LAST)
            self._complete()

    def crowded(self, mebibytes: int = 1) -> bool:
        """Whether so much waits to be taken."""
        return not self.over and self._connection.unwritten + self._size > mebibytes << 20

    def when_room(self, callback: Callable[[], Any]) -> None:
        """Call a function once little waits to be taken, by the transport's measure, or nobody will take anything."""
        if self._connection.flow.write_paused and not self.over:
            self._connection.when_room(callback)
        else:
            self._connection.loop.call_soon(callback)

    # ------------------------------------------------------------------ see `modelwire.server.http.silences.Silent`

    @property
    def due(self) -> float:
        """When its silence is to be broken."""
        return self._spoke + (answers.SILENCE if self.streaming else self._silence)

    def break_silence(self) -> None:
        """Say that it is still there."""
        if self._opening is not None and not (self.streaming or self._events):
            self._opening(self)
        if not self._events:  # what is about to be sent breaks it as well
            self.post(sse.COMMENT)

    # ------------------------------------------------------------------ its life

    def start(self, begun: Begun) -> None:
        """Note whom it concerns; it may be over already."""
        if self.over:
            begun.over(True)
        else:
            self.begun = begun
            self._silences.add(self)

    def gone(self) -> None:
        """Note that the client has gone."""
        if not self.response_complete:
            self.over = self.disconnected = self.response_complete = True
            self._events.clear()
            self._size = 0
            self._let_go(False)

    def _flush(self) -> None:
        if self._events and not self.over:
            self._write()

    def _write(self, last: bytes = b"") -> None:
        data = b"".join(self._events)
        self._events.clear()
        self._size = 0
        self._spoke = self._connection.loop.time()
        parts = (b"%x\r\n" % len(data), data, b"\r\n", last) if data else (last,)
        if not self.streaming:
            self.streaming = True
            last_one = () if self.keep_alive else (_LAST_ONE,)
            head = self._connection.head(200, (*STREAM_HEADERS, *last_one, (b"transfer-encoding", b"chunked")))
            parts = (head, b"\r\n", *parts)
        self._connection.transport.write(b"".join(parts))

    def _complete(self) -> None:
        self.response_complete = True
        self._let_go(True)
        if not self.keep_alive:
            self._connection.transport.close()
        self._connection.on_response_complete()

    def _let_go(self, stayed: bool) -> None:
        self._silences.remove(self)
        begun, self.begun, self._opening = self.begun, None, None
        if begun is not None:
            begun.over(stayed)
