"""Finding out that the other end of a connection is no longer there, although nothing says so.

A machine that lost its power, or a program that hangs, closes nothing. So who has been silent is asked something, and
who stays silent is given up. It knows nothing of what is asked: "Implementations SHOULD periodically issue pings to
detect connection health" (2025-11-25, basic/utilities/ping), and other revisions have no ping.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, runtime_checkable

from modelwire.errors import ModelwireError
from modelwire.rpc.connection import Connection


class Watched(Protocol):
    """A stream that can tell whether its other end gives signs of life."""

    @property
    def blocked(self) -> bool:
        """Whether the other end does not take what is queued for it."""
        ...

    def stirred(self) -> bool:
        """Whether the other end gave a sign of life since this was asked last."""
        ...

    def fail(self, problem: str) -> None:
        """Give the connection up for that reason."""
        ...


@runtime_checkable
class Pings(Watched, Protocol):
    """One that asks its other end by itself, below the messages."""

    def ping(self) -> Awaitable[object]:
        """Ask for a sign of life."""
        ...


async def keep_watch(
    connection: Connection, stream: Watched, seconds: float, ping: Callable[[], Awaitable[object] | None]
) -> None:
    """Watch a stream until its other end has been silent for too long; then give it up.

    Anything that comes is a sign of life, and so is an answer that says no.

    Args:
        connection: What runs over the stream.
        stream: The stream.
        seconds: Silence after which the other end is asked; after as many again it is given up.
        ping: Asks it; None when nothing may be asked. Then it is given up only while it takes nothing of what is
            queued for it.
    """
    asked = False
    stream.stirred()
    while True:
        await asyncio.sleep(seconds)
        if stream.stirred():
            asked = False
        elif asked:
            stream.fail(f"the other end gave no sign of life for {2 * seconds:g} s (heartbeat={seconds:g})")
            return
        elif stream.blocked:
            asked = True
        else:
            question = ping()
            asked = question is not None
            if question is not None:
                connection.follow(_heard_out(question))


async def _heard_out(question: Awaitable[object]) -> None:
    try:
        await question
    except ModelwireError:
        return  # no answer in time is told by the silence
