"""What becomes of an HTTP request, whatever carries it: a response that is whole, or one that takes its time.

Shapes only. `modelwire.server.http.reply` sends them as ASGI has it, `modelwire.server.http.direct_reply` without.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

from modelwire.rules.http import EVENTS, Refusal

SILENCE: Final = 15.0
"""Seconds without a word after which a stream begins, or says that it is still there."""
ROOM: Final = 1 << 16
"""Bytes that wait to be taken, below which there is room for more."""
STREAM_HEADERS: Final[list[tuple[bytes, bytes]]] = [
    (b"content-type", EVENTS.encode()),
    (b"cache-control", b"no-store"),
    # "servers SHOULD include the X-Accel-Buffering: no header" (2026-07-28, basic/transports/streamable-http)
    (b"x-accel-buffering", b"no"),
]


class Whole(NamedTuple):
    """A response that is there as a whole.

    Attributes:
        status: The status.
        body: The body, JSON; without one there is no content type.
        headers: More headers.
    """

    status: int
    body: bytes = b""
    headers: tuple[tuple[bytes, bytes], ...] = ()


def refused(refusal: Refusal, id_: bytes | None = None) -> Whole:
    """Return the response that is a refusal.

    Args:
        refusal: The refusal.
        id_: The id of the request that is refused, where it could be read.
    """
    headers = tuple((name.encode(), value.encode()) for name, value in refusal.headers.items())
    return Whole(refusal.status, refusal.body(id_), headers)


class Response(Protocol):
    """A response that takes its time: a body of JSON where nothing precedes the answer, else a stream of events."""

    @property
    def streaming(self) -> bool:
        """Whether it has become a stream."""
        ...

    @property
    def over(self) -> bool:
        """Whether nothing more is sent, or taken."""
        ...

    def post(self, event: bytes) -> None:
        """Send an event; from now on it is a stream."""
        ...

    def finish(self, answer: bytes, status: int = 200) -> None:
        """Send the answer, the last thing that is sent.

        Args:
            answer: The body where nothing was sent yet; otherwise an event without an id.
            status: The body's status.
        """
        ...

    def end(self) -> None:
        """Send what is waiting, and then no more."""
        ...

    def crowded(self, mebibytes: int = 1) -> bool:
        """Whether so much waits to be taken; see `modelwire.rpc.connection.Connection.crowded`."""
        ...

    def when_room(self, callback: Callable[[], Any]) -> None:
        """Call a function once no more than `ROOM` waits to be taken, or nobody will take anything any more."""
        ...


class Opening(Protocol):
    """Says what stands at the beginning of a stream that begins because of silence."""

    def __call__(self, response: Response, /) -> None: ...


class Begin(Protocol):
    """Begins a response.

    Args:
        silence: Seconds without a word until a stream begins; `SILENCE` by default.
        opening: What is called then.
    """

    def __call__(self, silence: float | None = None, opening: Opening | None = None) -> Response: ...


class Begun(Protocol):
    """A request that is being answered with a response of its own."""

    @property
    def response(self) -> Any:
        """The response: what `Begin` returned."""
        ...

    def over(self, stayed: bool) -> None:
        """Note that the response is over.

        Args:
            stayed: Whether the client was there to the end.
        """
        ...
