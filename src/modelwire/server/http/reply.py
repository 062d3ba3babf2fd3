"""One HTTP response: a JSON body where nothing precedes the answer, a stream of events from the first message on.

It is handed frames and sends them; whose they are, and whether somebody else takes over when the client goes, is not
its business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from modelwire.log import log as _log
from modelwire.rules import sse
from modelwire.rules.http import JSON, Refusal
from modelwire.server.http import answers
from modelwire.server.http.answers import ROOM, STREAM_HEADERS, Begun, Opening, Whole, refused
from modelwire.server.http.silences import Silences

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

NOBODY = 499
"""The status of a response to a client that has gone. Nobody gets it, but frameworks take none at all for a fault."""
SOON_GONE = 0.02
"""Seconds after which somebody looks whether the client has gone meanwhile."""

Pairs = Iterable[tuple[bytes, bytes]]


class Reply:
    """The response to one request.

    Args:
        send: ASGI's.
        silences: Where streams are that say nothing.
        silence: Seconds without a word until a stream begins.
        opening: Says what stands at the beginning of a stream that begins because of silence.
    """

    __slots__ = (
        "__weakref__", "_answer", "_begun", "_events", "_for_room", "_gone", "_opening", "_send", "_silence",
        "_silences", "_spoke", "_timer", "_wake", "_watching", "over", "streaming", "waiting",
    )  # fmt: skip

    def __init__(
        self,
        send: Send,
        silences: Silences,
        silence: float | None = None,
        opening: Opening | None = None,
    ) -> None:
        self._send = send
        self._silences = silences
        self._silence = answers.SILENCE if silence is None else silence
        self._opening = opening
        self._events: list[bytes] = []
        self._answer: tuple[bytes, int] | None = None
        self._gone = self._begun = False
        self.over = False
        """Whether nothing more is sent, or taken."""
        self._for_room: list[Callable[[], object]] = []
        """What is called once there is room."""
        self._wake: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._watching: asyncio.Task[None] | None = None
        self._spoke = 0.0
        """When something was sent last, or the waiting began, on the loop's clock."""
        self.streaming = False
        """Whether it has become a stream."""
        self.waiting = 0
        """Bytes that the client has not taken yet."""

    # ------------------------------------------------------------------ what is to be said

    def post(self, event: bytes) -> None:
        """Send an event; from now on it is a stream."""
        if not self.over:
            self._events.append(event)
            self.waiting += len(event)
            self._stir()

    def finish(self, answer: bytes, status: int = 200) -> None:
        """Send the answer, the last thing that is sent.

        Args:
            answer: The body where nothing was sent yet; otherwise an event without an id.
            status: The body's status.
        """
        if self.over:
            return
        if self.streaming or self._events:
            self.post(sse.event(answer))
        else:
            self._answer = answer, status
        self.end()

    def end(self) -> None:
        """Send what is waiting, and then no more."""
        self.over = True
        self._stir()

    def crowded(self, mebibytes: int = 1) -> bool:
        """Whether so much waits to be taken; see `modelwire.rpc.connection.Connection.crowded`."""
        return self.waiting > mebibytes << 20

    def when_room(self, callback: Callable[[], object]) -> None:
        """Call a function once no more than `ROOM` waits to be taken, or nobody will take anything any more."""
        if self.waiting > ROOM and not self.over:
            self._for_room.append(callback)
        else:
            asyncio.get_running_loop().call_soon(callback)

    def _has_room(self) -> None:
        waiting, self._for_room = self._for_room, []
        for callback in waiting:
            asyncio.get_running_loop().call_soon(callback)

    def _stir(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    # ------------------------------------------------------------------ sending

    async def run(self, receive: Receive) -> bool:
        """Send all of it, and return whether the client stayed to the end.

        Args:
            receive: ASGI's; it tells when the client goes.
        """
        loop = asyncio.get_running_loop()
        try:
            while not self._gone and await self._said():
                self._wake = loop.create_future()
                if self._timer is None:
                    self._spoke = loop.time()
                    # Most answers are there before this is over. Who waits for nothing needs nobody who watches.
                    self._timer = loop.call_later(min(SOON_GONE, self._patience), self._watch_from_now_on, receive)
                await self._wake
                if not (self._gone or self._events or self.over):
                    await self._break_silence()
        except OSError:  # ASGI says of a client that has gone with this, or with nothing at all
            self._gone = True
        finally:
            self.over = True
            self._has_room()
            await self._let_go()
        if self._gone and not self._begun:
            await respond(self._send, NOBODY)
        return not self._gone

    async def _let_go(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._silences.remove(self)
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])

    async def _said(self) -> bool:
        """Send what there is; return whether more may come."""
        if self._answer is not None:
            await self._whole(*self._answer)
            return False
        while self._events and not self._gone:
            await self._flush()
        if self.over:
            await self._end_stream()
        return not self.over

    async def _break_silence(self) -> None:
        if self._opening is not None and not self.streaming:
            self._opening(self)
        if not self._events:
            await self._start()
            await self._body(sse.COMMENT)

    @property
    def due(self) -> float:
        """See `modelwire.server.http.silences.Silent`."""
        return self._spoke + self._patience

    @property
    def _patience(self) -> float:
        return answers.SILENCE if self.streaming else self._silence

    def break_silence(self) -> None:
        """See `modelwire.server.http.silences.Silent`."""
        self._spoke = asyncio.get_running_loop().time()
        self._stir()

    def _watch_from_now_on(self, receive: Receive) -> None:
        self._watching = asyncio.get_running_loop().create_task(self._watch(receive))
        self._silences.add(self)

    async def _watch(self, receive: Receive) -> None:
        try:
            await gone(receive)
        except Exception as error:  # whoever cannot be told of its client has lost it
            _log.debug("a client is taken for gone: %r", error)
        self._gone = True
        self._stir()

    async def _flush(self) -> None:
        await self._start()
        if self._events:
            chunk = b"".join(self._events)
            self._events.clear()
            self._spoke = asyncio.get_running_loop().time()
            await self._body(chunk)
            self.waiting -= len(chunk)
            if self._for_room and self.waiting <= ROOM:
                self._has_room()

    async def _start(self) -> None:
        if not self.streaming:
            self.streaming = self._begun = True
            await self._send({"type": "http.response.start", "status": 200, "headers": [*STREAM_HEADERS]})

    async def _end_stream(self) -> None:
        await self._start()
        await self._body(b"", more=False)

    async def _body(self, data: bytes, *, more: bool = True) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": more})

    async def _whole(self, body: bytes, status: int) -> None:
        self._begun = True
        await _respond(self._send, status, body, (), JSON)


async def _taken(sending: Awaitable[None]) -> bool:
    """Send; ASGI says of a client that has gone with an OSError, or with nothing at all."""
    try:
        await sending
    except OSError:
        return False
    return True


async def respond(send: Send, status: int, body: bytes = b"", headers: Pairs = (), kind: str = JSON) -> None:
    """Send a whole response, if the client is still there.

    Args:
        send: ASGI's.
        status: The status.
        body: The body; without one there is no content type.
        headers: More headers.
        kind: The body's media type.
    """
    await _taken(_respond(send, status, body, headers, kind))


async def refuse(send: Send, refusal: Refusal, id_: bytes | None = None, *, method: str = "POST") -> None:
    """Send a refusal, if the client is still there.

    Args:
        send: ASGI's.
        refusal: The refusal.
        id_: The id of the request that is refused, where it could be read.
        method: The request's: "the server MUST NOT send content" in response to HEAD (RFC 9110, 9.3.2).
    """
    status, body, headers = refused(refusal, id_)
    await respond(send, status, b"" if method == "HEAD" else body, headers)


async def _respond(send: Send, status: int, body: bytes, headers: Pairs, kind: str) -> None:
    given = [(b"content-length", b"%d" % len(body)), *headers]
    if body:
        given.insert(0, (b"content-type", kind.encode()))
    await send({"type": "http.response.start", "status": status, "headers": given})
    await send({"type": "http.response.body", "body": body})


async def answered(found: Whole | Begun, receive: Receive, send: Send) -> None:
    """Send what became of a request.

    Args:
        found: What became of it; its response, where it has one, is a `Reply`.
        receive: ASGI's.
        send: ASGI's.
    """
    if isinstance(found, Whole):
        await respond(send, *found)
        return
    stayed = False
    try:
        stayed = await found.response.run(receive)
    finally:
        found.over(stayed)


async def gone(receive: Receive) -> None:
    """Return once the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
