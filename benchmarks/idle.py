"""What a server over HTTP keeps of those who say nothing, in sessions and on open streams: its resident memory.

Figures are of a thousand at once, opened after some of their kind, so that what is made only once is not counted.
"""

from __future__ import annotations

import contextlib
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks import requests
from benchmarks.child import BenchError
from benchmarks.contestants import own
from benchmarks.programs import tools
from benchmarks.web import Connection, WebChild, post

MANY = 1000
FIRST = 50
"""How many are opened before anything is counted."""
SETTLED = 30.0
"""Seconds that a server may take until it has noticed that they are gone."""


@dataclass(frozen=True)
class Waves:
    """What two waves cost.

    Attributes:
        each: KiB that one of the first wave took.
        more: The part by which the server was larger in the second wave than in the first, which had been closed.
    """

    each: float
    more: float


class Idle:
    """A server and those who say nothing to it."""

    def __init__(self) -> None:
        self._child = WebChild(own("modelwire_web", tools.ADD, "run"), 8)
        self._open: list[Connection] = []
        self._sessions: list[str] = []
        self.sessions(FIRST)  # so that all connections are accepted
        self.no_sessions()
        self._quiet = self._child.descriptors

    def close(self) -> None:
        """End the server."""
        self._child.close()

    def sessions(self, count: int) -> None:
        """Open sessions of 2025-11-25."""
        asked = [post(self._child.port, requests.INITIALIZE.rstrip(), {})] * count
        self._sessions += [found.headers["mcp-session-id"] for found in self._child.exchange(asked)[1]]

    def no_sessions(self) -> None:
        """End all of them."""
        self._child.exchange([self._bodiless("DELETE", id_) for id_ in self._sessions])
        self._sessions.clear()

    def streams(self, count: int) -> None:
        """Open the streams of sessions that there are."""
        self._begin([self._bodiless("GET", id_) for id_ in self._sessions[:count]])

    def listenings(self, count: int) -> None:
        """Open subscriptions of 2026-07-28."""
        headers = {"mcp-protocol-version": requests.PER_REQUEST, "mcp-method": "subscriptions/listen"}
        ask = requests.Ask("subscriptions/listen", lambda _: {"notifications": {"toolsListChanged": True}}, _any)
        frames = ask.frames(range(1, count + 1), requests.PER_REQUEST)
        self._begin([post(self._child.port, frame.rstrip(), headers) for frame in frames])

    def no_connections(self) -> None:
        """Close what was begun, and wait until the server has noticed."""
        for connection in self._open:
            connection.socket.close()
        self._open.clear()
        until = time.monotonic() + SETTLED
        while self._child.descriptors > self._quiet:
            if time.monotonic() > until:
                raise BenchError("the server has not noticed that its clients are gone")
            time.sleep(0.01)

    def measure(self, begin: Callable[[int], None], end: Callable[[], None]) -> Waves:
        """Return what a thousand cost, and what a second thousand adds."""
        begin(FIRST)
        end()
        before = self._child.memory
        begin(MANY)
        first = self._child.memory
        end()
        begin(MANY)
        second = self._child.memory
        end()
        return Waves((first - before) * 1024 / MANY, second / first - 1)

    def _begin(self, asked: list[bytes]) -> None:
        for request in asked:
            connection = Connection(self._child.port)
            connection.send(request)
            if not connection.socket.recv(1 << 16).startswith(b"HTTP/1.1 200 "):
                raise BenchError("a stream was refused")
            self._open.append(connection)

    def _bodiless(self, method: str, session: str) -> bytes:
        lines = [
            f"{method} /mcp HTTP/1.1",
            f"host: 127.0.0.1:{self._child.port}",
            "accept: text/event-stream",
            f"mcp-session-id: {session}",
            f"mcp-protocol-version: {requests.HANDSHAKE}",
        ]
        return "\r\n".join([*lines, "", ""]).encode()


def _any(id_: int, result: Any) -> bool:
    return True


@contextlib.contextmanager
def idle() -> Iterator[Idle]:
    """Start a server, with room for as many connections on our side, too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 8192)), hard))
    found = Idle()
    try:
        yield found
    finally:
        found.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
