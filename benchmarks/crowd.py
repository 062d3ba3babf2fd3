"""Many clients over HTTP that all use the id 1, as many calls at once as possible; each answer must be its asker's own.

Every second client has a session of 2025-11-25, with one call at a time; the others speak 2026-07-28 over several
connections, each with a call whose id is 1. The server is one with the tools of `benchmarks.programs.tools.KIT`.
"""

from __future__ import annotations

import contextlib
import functools
import select
from collections.abc import Mapping
from typing import Any

import msgspec

from benchmarks import requests
from benchmarks.child import SILENCE, BenchError
from benchmarks.programs import tools
from benchmarks.web import Connection, Response, post

CLIENTS = 50
CONNECTIONS = 4
"""How many connections each client of 2026-07-28 has."""
_KINDS = ("echo", "echo", "add_after_a_turn", "echo", "echo", "add_after_a_turn", "echo", "steps")
"""Answered at once, after the event loop has turned, and as a stream."""


@functools.cache
def _frame(kind: str, revision: str) -> bytes:
    """A call, with words in the places of what makes it somebody's own."""
    arguments: dict[str, dict[str, Any]] = {"echo": {"text": "OWN"}, "add_after_a_turn": {"a": "SUM", "b": 0}}
    ask = requests.call(kind, lambda _: arguments.get(kind, {}), lambda _, __: True)
    frame = msgspec.json.decode(ask.frames(range(1, 2), revision)[0])
    # Progress carries the token, so that a notice of somebody else's call is seen, too.
    frame["params"].setdefault("_meta", {})["progressToken"] = "OWN"
    return msgspec.json.encode(frame)


class Caller:
    """One connection of a client, on which every call has the id 1.

    Args:
        port: Where the server listens.
        number: A number that no other caller has; it is in whatever is asked, and must be in whatever is answered.
        session: The headers of its session, for a client that has one.
    """

    def __init__(self, port: int, number: int, session: Mapping[str, str] | None) -> None:
        self.connection = Connection(port)
        self._port = port
        self._number = number
        self._session = session
        self._count = 0

    def send(self) -> None:
        """Send the next call."""
        self._count += 1
        kind = _KINDS[self._count % len(_KINDS)]
        revision = requests.PER_REQUEST if self._session is None else requests.HANDSHAKE
        routing = {"mcp-method": "tools/call", "mcp-name": kind, "mcp-protocol-version": revision}
        body = _frame(kind, revision).replace(b"OWN", self._own.encode()).replace(b'"SUM"', b"%d" % self._sum)
        self.connection.send(post(self._port, body, routing if self._session is None else self._session))

    @property
    def _own(self) -> str:
        return f"{self._number}-{self._count}"

    @property
    def _sum(self) -> int:
        return self._number * 10_000_000 + self._count

    def check(self, response: Response) -> None:
        """Hold a response against the call.

        Raises:
            BenchError: It is none to this call, or a wrong one.
        """
        kind = _KINDS[self._count % len(_KINDS)]
        text = {"echo": self._own, "add_after_a_turn": str(self._sum), "steps": "done"}[kind]
        found = [msgspec.json.decode(message) for message in response.messages]
        told = [message["params"]["progressToken"] for message in found[:-1] if "params" in message]
        answer = found[-1] if found else {}
        content = answer.get("result", {}).get("content")
        if (
            response.status != 200
            or answer.get("id") != 1
            or content != [{"type": "text", "text": text}]
            or told != [self._own] * (tools.STEPS if kind == "steps" else 0)
        ):
            raise BenchError(f"{self._own} called {kind} and was answered {response.status} {response.body[:500]!r}")


class Crowd:
    """The clients.

    Args:
        port: Where the server listens.
        clients: How many there are.
    """

    def __init__(self, port: int, clients: int = CLIENTS) -> None:
        self._callers: list[Caller] = []
        try:
            for client in range(clients):
                session = _opened(port) if client % 2 else None
                for _ in range(1 if client % 2 else CONNECTIONS):
                    self._callers.append(Caller(port, len(self._callers) + 1, session))
        except BaseException:
            self.close()
            raise

    def run(self, calls: int) -> None:
        """Have all of them call, until as many calls as that are answered.

        Raises:
            BenchError: An answer was wrong, somebody else's, or none for a minute.
        """
        ready = select.poll()
        by_number = {caller.connection.socket.fileno(): caller for caller in self._callers}
        left, open_ = calls, 0
        for number, caller in by_number.items():
            if left:
                ready.register(number, select.POLLIN)
                caller.send()
                left, open_ = left - 1, open_ + 1
        while open_:
            events = ready.poll(SILENCE * 1000)
            if not events:
                raise BenchError(f"the server said nothing for {SILENCE:.0f} seconds")
            for number, _ in events:
                caller = by_number[number]
                response = caller.connection.receive()
                if response is None:
                    continue
                caller.check(response)
                open_ -= 1
                if left:
                    caller.send()
                    left, open_ = left - 1, open_ + 1

    def close(self) -> None:
        """Close every connection."""
        for caller in self._callers:
            with contextlib.suppress(OSError):
                caller.connection.socket.close()


def _opened(port: int) -> dict[str, str]:
    """Open a session, and return its headers."""
    connection = Connection(port)
    session = {"mcp-protocol-version": requests.HANDSHAKE}
    for body in (requests.INITIALIZE, requests.INITIALIZED.splitlines()[0]):
        connection.send(post(port, body.strip(), session))
        response = None
        while response is None:
            response = connection.receive()
        session.setdefault("mcp-session-id", response.headers.get("mcp-session-id", ""))
    connection.socket.close()
    return session
