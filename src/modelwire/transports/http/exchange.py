"""One HTTP request of a link: its headers, where a redirect leads, what is tried again because it was never seen.

What the reply says is not looked at here.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Callable

from modelwire.errors import FrameTooLarge, HttpFailed
from modelwire.rules.http import EVENTS, JSON
from modelwire.rules.http_request import joined, retry_after, same_origin
from modelwire.transports.http.endpoint import Endpoint, sendable, shown_url
from modelwire.transports.http.engine import Broken, Engine, Reply
from modelwire.transports.http.trouble import BODY, failed, redirected, refused
from modelwire.version import __version__

HOPS = 5
"""How many redirects are followed."""
PAUSES = (0.1, 0.3, 1.0)
"""Seconds before a request that has not reached a server which was there before is tried again."""
WAITS = 3
"""How often one request waits because the server asks it to."""
LONGEST_WAIT = 60.0
"""Seconds; a server that asks for more is taken at its word, and the request fails."""

_ALWAYS = [("User-Agent", f"modelwire/{__version__}"), ("Accept-Encoding", "gzip, deflate")]
POST_HEADERS = [("Content-Type", JSON), ("Accept", f"{JSON}, {EVENTS}"), *_ALWAYS]
GET_HEADERS = [("Accept", EVENTS), *_ALWAYS]

_MOVED = frozenset({301, 302, 303, 307, 308})
_KEEPS_METHOD = frozenset({307, 308})


class Sender:
    """Sends the requests of one link.

    Args:
        endpoint: The server.
        engine: What HTTP is spoken with.
    """

    def __init__(self, endpoint: Endpoint, engine: Engine) -> None:
        self.endpoint = endpoint
        self._engine = engine
        self._moved: dict[str, str] = {}
        self.reached = False
        """Whether the server has answered anything."""

    async def send(
        self,
        method: str,
        url: str,
        own: list[tuple[str, str]],
        body: bytes | None,
        what: str,
        *,
        urgent: bool = True,
        patience: Callable[[int], float] | None = None,
    ) -> Reply:
        """Send a request; return the reply that is no redirect.

        Args:
            method: The HTTP method.
            url: Where to.
            own: The headers of this request.
            body: The body.
            what: What the request is, for messages.
            urgent: Whether it must not wait for others.
            patience: Says how many seconds are left for a server that asks to wait, given its status; None where nobody
                waits.

        Raises:
            HttpFailed: There was no reply, or one that is not followed.
        """
        waits = 0
        while True:
            reply = await self._reached(method, url, own, body, what, urgent)
            if patience is None or waits == WAITS or reply.status not in (429, 503):
                return reply
            wait = retry_after(reply.header("retry-after"), time.time())
            if wait is None or wait > min(patience(reply.status), LONGEST_WAIT):
                return reply
            reply.close()
            waits += 1
            await asyncio.sleep(wait)

    async def _reached(
        self, method: str, url: str, own: list[tuple[str, str]], body: bytes | None, what: str, urgent: bool
    ) -> Reply:
        pauses = iter(PAUSES if self.reached else ())
        while True:
            try:
                return await self._followed(method, url, own, body, what, urgent)
            except HttpFailed as error:
                pause = next(pauses, None)
                if not (error.unsent and error.broken) or pause is None:
                    raise
                await asyncio.sleep(pause)

    async def _followed(
        self, method: str, url: str, own: list[tuple[str, str]], body: bytes | None, what: str, urgent: bool
    ) -> Reply:
        headers = [*(GET_HEADERS if method == "GET" else POST_HEADERS), *own, *await self.endpoint.headers()]
        at = self._moved.get(url, url)
        for hop in range(HOPS + 1):
            try:
                reply = await self._engine.send(method, at, headers, body, urgent=urgent)
            except Broken as broken:
                raise failed(self.endpoint, what, broken) from broken.__cause__
            self.reached = True
            if reply.status not in _MOVED:
                return reply
            reply.close()
            at = self._next(method, at, reply, what)
            if hop == HOPS:
                why = f"there were {HOPS} redirects before it"
                raise redirected(self.endpoint, what, reply.status, shown_url(at), why)
            if reply.status == 308:
                self._moved[url] = at
        raise AssertionError

    def _next(self, method: str, at: str, reply: Reply, what: str) -> str:
        location = reply.header("location") or ""
        new = joined(at, location)
        shown = shown_url(new) if location else ""
        if not location or not same_origin(new, at):
            # What is meant for one server, the token above all, is not shown to another.
            why = f"it leads to another server; if that is right, connect to {shown}" if shown else "it names no place"
            raise redirected(self.endpoint, what, reply.status, shown, why)
        if method == "POST" and reply.status not in _KEEPS_METHOD:
            why = f"it would turn the message into a GET; if that is the new address, connect to {shown}"
            raise redirected(self.endpoint, what, reply.status, shown, why)
        return sendable(new)

    async def body(self, reply: Reply, what: str, most: int) -> bytes:
        """Return a whole body.

        Raises:
            FrameTooLarge: It is larger than ``most``; its beginning is the error's ``frame``.
            HttpFailed: It broke off.
        """
        chunks: list[bytes] = []
        size = 0
        while chunk := await self.chunk(reply, what):
            chunks.append(chunk)
            size += len(chunk)
            if size > most:
                error = FrameTooLarge(most)
                error.frame = b"".join(chunks)[: min(1024, most)]
                raise error
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def chunk(self, reply: Reply, what: str) -> bytes:
        """Return the next piece of a body; empty at its end.

        Raises:
            HttpFailed: It broke off.
        """
        try:
            return await reply.chunk()
        except Broken as broken:
            raise failed(self.endpoint, what, broken) from broken.__cause__

    async def excerpt(self, reply: Reply, what: str) -> bytes:
        """Return the beginning of the body of a refusal."""
        found = b""
        try:
            async with asyncio.timeout(5):
                while len(found) < BODY and (chunk := await self.chunk(reply, what)):
                    found += chunk
        except (TimeoutError, HttpFailed):
            pass  # the status says enough
        return found[:BODY]

    def refusal(self, reply: Reply, what: str, body: bytes) -> HttpFailed:
        """Return the error for a reply that is no success."""
        wait = retry_after(reply.header("retry-after"), time.time()) if reply.status in (429, 503) else None
        return refused(self.endpoint, what, reply.status, reply.header("content-type"), body, wait)


@contextlib.asynccontextmanager
async def closing(reply: Reply) -> AsyncGenerator[Reply]:
    """Let go of a reply at the end of a block."""
    try:
        yield reply
    except BaseException:
        reply.close()
        raise
    reply.finish()
