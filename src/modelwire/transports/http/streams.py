"""A stream of events that outlives its connections: it is taken up again after the last event, as far as that goes.

    how a connection ends            what comes
    -------------------------------  ---------------------------------------------------------------
    what was waited for has come     nothing more
    with an id to go on after        a GET with ``Last-Event-ID``, after ``retry`` milliseconds
    without one                      the stream is over
    with nothing, several times      the stream is over

Resumption is "always via HTTP GET with Last-Event-ID" (2025-11-25, basic/transports), however the stream began.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from modelwire.errors import FrameTooLarge, HttpFailed
from modelwire.rules.sse_reader import Event, EventReader
from modelwire.transports.http.engine import Reply
from modelwire.transports.http.exchange import Sender, closing

PAUSES = (0.2, 0.5, 1.0, 2.0, 4.0)
"""Seconds before each attempt to go on, where the server has not said when to; each counts from the last event."""
MOST_POLLS = 1000
"""How often a server may let us go and have us come back without an event meanwhile."""

Take = Callable[["Event | FrameTooLarge"], bool]
"""Called with each event; says whether that was the last one that matters."""


async def read(sender: Sender, reply: Reply, reader: EventReader, take: Take, what: str) -> bool:
    """Hand on the events of one connection; return whether ``take`` has had enough.

    Raises:
        HttpFailed: The connection broke.
    """
    while chunk := await sender.chunk(reply, what):
        enough = False
        for event in reader.feed(chunk):
            enough = take(event) or enough
        if enough:
            return True
    return False


async def read_on(
    sender: Sender,
    reply: Reply,
    reader: EventReader,
    take: Take,
    what: str,
    resume: Callable[[str], Awaitable[Reply]],
) -> None:
    """Hand on the events of a stream, over as many connections as it takes.

    Args:
        sender: Reads the bodies.
        reply: The first connection.
        reader: Reads the events.
        take: Takes them.
        what: What the stream is of, for messages.
        resume: Asks for what comes after an id; raises `HttpFailed` where there is no more of the stream.

    Raises:
        HttpFailed: The stream ended without what was waited for.
    """
    barren = 0
    current: Reply | None = reply
    while True:
        why: HttpFailed | None = None
        before = reader.last_id
        if current is not None:
            try:
                async with closing(current):
                    if await read(sender, current, reader, take, what):
                        return
            except HttpFailed as error:
                why = error
        barren = 0 if reader.last_id != before else barren + 1
        asked = reader.retry
        # A server that says when to come back may well have nothing to say yet.
        most = len(PAUSES) if asked is None or current is None or why else MOST_POLLS
        if not reader.last_id or barren > most:
            raise why or ended(sender, what)
        await asyncio.sleep(PAUSES[max(barren - 1, 0)] if asked is None else asked / 1000)
        reader.restart()
        try:
            current = await resume(reader.last_id)
        except HttpFailed as error:
            if not error.broken:
                raise
            current = None


def ended(sender: Sender, what: str) -> HttpFailed:
    """Return the error for a stream that ended too early."""
    shown = sender.endpoint.shown
    return HttpFailed(f"{what}: {shown} ended the stream of events without an answer", url=shown, broken=True)
