"""Who is measured, and what one round of each costs: servers, clients, imports, memory.

A contestant is started once, is measured in every round, and is closed at the end. Every answer of every round is
verified, outside of what is timed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Protocol

import msgspec

from benchmarks import requests
from benchmarks.child import ROOT, BenchError, Child
from benchmarks.crowd import Crowd
from benchmarks.programs.tools import GROUP
from benchmarks.requests import Ask
from benchmarks.web import Response, WebChild, post

PEERS = ROOT / ".venv-peers" / "bin" / "python"
"""The interpreter that has the peers."""

Command = Sequence[str]


class Contestant(Protocol):
    def measure(self, share: float) -> float:
        """Run one round and return what it cost, in µs, ms or MiB as the measurement says.

        Args:
            share: The part of the usual number of requests to make, such as 0.25.
        """
        ...

    def close(self) -> None: ...


def own(program: str, *arguments: str) -> Command:
    """Return the command of a program that needs modelwire, or nothing."""
    return [sys.executable, "-m", f"benchmarks.programs.{program}", *arguments]


def peer(program: str, *arguments: str) -> Command:
    """Return the command of a program that needs the peers.

    Raises:
        BenchError: The peers are not installed.
    """
    if not PEERS.exists():
        raise BenchError("there is nothing to compare with in .venv-peers; `make bench` installs it")
    return [str(PEERS), "-m", f"benchmarks.programs.{program}", *arguments]


class ServerCalls:
    """CPU time of a server per request, in microseconds.

    Args:
        command: The server.
        ask: The requests.
        count: How many requests one round has.
        depth: How many are open at once.
        revision: Which revision is spoken; None for the bare loop, which is not greeted.
    """

    def __init__(
        self, command: Command, ask: Ask, count: int, depth: int = 16, revision: str | None = requests.HANDSHAKE
    ) -> None:
        self._ask, self._count, self._depth = ask, count, depth
        self._revision = revision or requests.HANDSHAKE
        self._next_id = 2
        self._child = opened(command) if revision == requests.HANDSHAKE else Child(command)

    def measure(self, share: float = 1) -> float:
        ids = range(self._next_id, self._next_id + max(1, int(self._count * share)))
        self._next_id = ids.stop
        done = self._child.exchange(self._ask.frames(ids, self._revision), self._depth, self._ask.lines_each)
        self._ask.verify(ids, done.lines)
        return done.seconds / len(ids) * 1e6

    @property
    def memory(self) -> float:
        """Resident memory of the server in MiB."""
        return self._child.memory

    def close(self) -> None:
        self._child.close()


class CrowdCalls:
    """CPU time of a server over HTTP per call of a crowd whose calls all have one id; see `benchmarks.crowd`.

    Args:
        command: The server, with every tool of the kit; the port is added as its last argument.
        count: How many calls one round has.
    """

    def __init__(self, command: Command, count: int) -> None:
        self._count = count
        self._child = WebChild(command, 0)
        try:
            self._crowd = Crowd(self._child.port)
        except BaseException:
            self._child.close()
            raise

    def measure(self, share: float = 1) -> float:
        calls = max(1, int(self._count * share))
        before = self._child.cpu
        self._crowd.run(calls)
        return (self._child.cpu - before) / calls * 1e6

    def close(self) -> None:
        self._crowd.close()
        self._child.close()


class WebCalls:
    """CPU time of a server over HTTP per request, in microseconds.

    Args:
        command: The server; the port is added as its last argument.
        ask: The requests.
        count: How many requests one round has.
        depth: How many are open at once, each on a connection of its own.
        revision: Which revision is spoken.
    """

    def __init__(
        self, command: Command, ask: Ask, count: int, depth: int = 16, revision: str = requests.PER_REQUEST
    ) -> None:
        self._ask, self._count, self._revision = ask, count, revision
        self._next_id = 2
        self._child = WebChild(command, depth)
        self._headers = {"mcp-protocol-version": revision}
        if revision == requests.HANDSHAKE:
            [opened] = self._exchange([requests.INITIALIZE])
            if "mcp-session-id" in opened.headers:
                self._headers["mcp-session-id"] = opened.headers["mcp-session-id"]
            self._exchange([requests.INITIALIZED.splitlines()[0]])

    def _exchange(self, bodies: list[bytes]) -> list[Response]:
        return self._child.exchange([post(self._child.port, body, self._headers) for body in bodies])[1]

    def measure(self, share: float = 1) -> float:
        ids = range(self._next_id, self._next_id + max(1, int(self._count * share)))
        self._next_id = ids.stop
        bodies = self._ask.frames(ids, self._revision)
        made = [
            post(self._child.port, body.rstrip(), {**self._headers, **self._routing(id_)})
            for id_, body in zip(ids, bodies, strict=True)
        ]
        seconds, responses = self._child.exchange(made)
        self._ask.verify(ids, [message for response in responses for message in response.messages])
        return seconds / len(ids) * 1e6

    def _routing(self, id_: int) -> dict[str, str]:
        if self._revision == requests.HANDSHAKE:
            return {}
        params = self._ask.params(id_)
        name = params.get("name") or params.get("uri")
        return {"mcp-method": self._ask.method, **({} if name is None else {"mcp-name": name})}

    def close(self) -> None:
        self._child.close()


def opened(command: Command) -> Child:
    """Start a server and shake hands with it."""
    child = Child(command)
    try:
        requests.check_opening(child.exchange([requests.INITIALIZE, requests.INITIALIZED]).lines)
    except BenchError:
        child.close()
        raise
    return child


class ClientCalls:
    """CPU time of a client per call, in microseconds; the program times itself and verifies the answers.

    Args:
        command: The client.
        count: How many calls one round has.
        depth: How many are open at once.
    """

    def __init__(self, command: Command, count: int, depth: int) -> None:
        self._count, self._depth = count, depth
        self._child = Child(command)

    def measure(self, share: float = 1) -> float:
        count = max(self._depth, int(self._count * share))
        done = self._child.exchange([b"%d %d\n" % (count, self._depth)])
        return msgspec.json.decode(done.lines[0])["seconds"] / count * 1e6

    def close(self) -> None:
        self._child.close()


class WebClientCalls(ClientCalls):
    """The same over HTTP.

    Args:
        server: The server; the port is added as its last argument.
        command: The client; the URL is added as its last argument.
        count: How many calls one round has.
        depth: How many are open at once.
    """

    def __init__(self, server: Command, command: Command, count: int, depth: int) -> None:
        self._server = WebChild(server, 1)
        try:
            super().__init__((*command, f"http://127.0.0.1:{self._server.port}/mcp"), count, depth)
        except BaseException:
            self._server.close()
            raise

    def close(self) -> None:
        super().close()
        self._server.close()


class Import:
    """CPU time of a process that does nothing but import something, its own start included, in milliseconds.

    Installed packages have their bytecode beside them; that of a checkout is written by a first import, not counted.

    Args:
        python: The interpreter.
        statement: What is imported, as a statement.
    """

    def __init__(self, python: str, statement: str) -> None:
        self._command = [python, "-c", f"{statement}\nimport time\nprint(time.process_time())"]
        self._environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        self.measure()

    def measure(self, share: float = 1) -> float:
        ran = subprocess.run(self._command, capture_output=True, text=True, cwd=ROOT, env=self._environment)
        if ran.returncode:
            raise BenchError(f"{self._command[-1].splitlines()[0]!r} failed: {ran.stderr[-2000:]}")
        return float(ran.stdout) * 1e3

    def close(self) -> None:
        pass


class Registration:
    """CPU time of registering a thousand tools, in milliseconds; each round in a process of its own.

    What the process costs to start, its imports, and the functions that are registered are not counted; what a library
    loads only when it first registers something is.

    Args:
        command: The program.
    """

    TOOLS = 1000

    def __init__(self, command: Command) -> None:
        self._command = command

    def measure(self, share: float = 1) -> float:
        tools = max(GROUP, int(self.TOOLS * share) // GROUP * GROUP)
        ran = subprocess.run([*self._command, str(tools)], capture_output=True, text=True, cwd=ROOT)
        if ran.returncode:
            raise BenchError(f"{' '.join(self._command[1:])} failed: {ran.stderr[-2000:]}")
        seconds, found = ran.stdout.split()
        if int(found) != tools:
            raise BenchError(f"{' '.join(self._command[1:])} registered {found} tools where {tools} were wanted")
        return float(seconds) / tools * self.TOOLS * 1e3

    def close(self) -> None:
        pass


class IdleMemory:
    """Resident memory of a server that was started, greeted and left alone, in MiB.

    Args:
        command: The server.
    """

    def __init__(self, command: Command) -> None:
        self._command = command

    def measure(self, share: float = 1) -> float:
        child = opened(self._command)
        try:
            return child.memory
        finally:
            child.close()

    def close(self) -> None:
        pass
