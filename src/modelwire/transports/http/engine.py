"""What HTTP is spoken with, as far as this folder knows it: one request, one reply that arrives piece by piece.

An engine follows no redirect, repeats nothing, and has no deadline of its own but for reaching the server.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

CONNECT_SECONDS = 30.0
"""How long reaching a server may take, whatever the request's own deadline is."""
MOST = 128
"""How many requests are under way at once; further ones wait. What must not wait for others is not counted."""
KEPT_SECONDS = 15.0
"""How long a connection that nobody uses is kept."""

HeaderList = Sequence[tuple[str, str]]


class Broken(Exception):
    """The network, or the other end, broke an exchange off.

    Args:
        reason: What happened, as the end of a sentence.
        unsent: Whether the server cannot have seen the request.
        hint: What may help.
    """

    def __init__(self, reason: str, *, unsent: bool = False, hint: str = "") -> None:
        super().__init__(reason)
        self.unsent = unsent
        self.hint = hint


class Reply(Protocol):
    """The reply to one request, whose head has arrived."""

    status: int

    def header(self, name: str) -> str | None:
        """Return a header; names are in lower case."""
        ...

    async def chunk(self) -> bytes:
        """Return what has come of the body, decompressed; empty at its end.

        Raises:
            Broken: The body broke off.
        """
        ...

    def finish(self) -> None:
        """Let go of it, of which enough is known; never waits. The connection is kept where that can be done."""
        ...

    def close(self) -> None:
        """Let go of it at once: the server sees that nobody listens any more. May be called twice."""
        ...


class Engine(Protocol):
    """Sends requests over a pool of connections that are kept alive. Belongs to one event loop."""

    async def send(self, method: str, url: str, headers: HeaderList, body: bytes | None, *, urgent: bool) -> Reply:
        """Send a request; return once the head of the reply is there.

        Args:
            method: ``POST``, ``GET`` or ``DELETE``.
            url: Where to.
            headers: Each header once.
            body: The body.
            urgent: Whether it must not wait for a free place among `MOST`: others may be waiting for it.

        Raises:
            Broken: There was no reply.
        """
        ...

    async def aclose(self) -> None:
        """Close every connection. May be called twice."""
        ...

    def release(self) -> None:
        """Let go of everything from outside the event loop, which has ended."""
        ...
