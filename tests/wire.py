"""Drive a server frame by frame, from the client's chair, and hold every frame against the official schemas.

`Talk` is `modelwire.testing.FakeClient` with a `Ledger`; `session_talk`, `stream_talk` and `child_talk` hold a
conversation with `Server.session`, over a pair of streams in memory and with a process over its stdin and stdout.

What is not held against a schema, by name: `TOLERATED` (no revision has them), methods of the user's own (`own=`), and
frames that a test sends with `raw` because they are wrong.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from modelwire import Server
from modelwire.testing import FakeClient
from modelwire.testing.fake_client import Pending, key_of
from modelwire.testing.scripted import PER_REQUEST as PREFIX
from modelwire.testing.scripted import dumps, request_meta
from modelwire.transports.memory import memory_pair
from tests import spec

__all__ = ["PREFIX", "Pending", "dumps"]

REVISIONS = spec.REVISION_NAMES
HANDSHAKE = REVISIONS[:-1]
MODERN = REVISIONS[-1]

BETWEEN = ("2025-03-26", "2025-06-18")
"""Neither the oldest nor the newest with a handshake: `make check` leaves them to `make test`."""


def _each(revisions: Sequence[str]) -> list[Any]:
    return [pytest.param(name, marks=pytest.mark.slow) if name in BETWEEN else name for name in revisions]


every_revision = pytest.mark.parametrize("revision", _each(REVISIONS))
every_handshake = pytest.mark.parametrize("revision", _each(HANDSHAKE))

TOLERATED = {
    "client": {"shutdown", "exit", "initialized"},
    "server": {"tools/list", "resources/list", "notifications/root"},
}
"""Closings and announcements that tutorials teach and no revision has; the server's as notifications only."""

PATIENCE = 10.0
"""Seconds after which a test that waits for something has failed; nothing is measured with it."""

ROOT = Path(__file__).resolve().parent.parent


def opening(revision: str, **params: Any) -> dict[str, Any]:
    """Return the params of an ``initialize``."""
    return {
        "protocolVersion": revision,
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
        **params,
    }


def modern_meta(**more: Any) -> dict[str, Any]:
    """Return the ``_meta`` that every request of 2026-07-28 carries."""
    return request_meta(MODERN, **more)


def strictly(frame: bytes) -> Any:
    """Decode a frame as RFC 8259 has it: UTF-8, one line, no NaN, no name twice.

    Raises:
        ValueError: It is not that.
    """
    if b"\n" in frame or b"\r" in frame:
        raise ValueError("a line end inside a frame")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({name for name, _ in pairs}) != len(pairs):
            raise ValueError(f"a name twice: {[name for name, _ in pairs]}")
        return dict(pairs)

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not JSON")

    return json.loads(frame.decode("utf-8"), object_pairs_hook=unique, parse_constant=refuse)


class Ledger:
    """Every frame that crossed, each held against the schema of its revision.

    Args:
        revision: What the test speaks.
        own: Methods of the user's own, which no schema has.
    """

    def __init__(self, revision: str, own: Iterable[str] = ()) -> None:
        self.revision = revision
        self.own = frozenset(own)
        self.frames: list[tuple[str, bytes]] = []
        self.faults: list[str] = []
        self._agreed: str | None = None
        self._asked: dict[str, tuple[str, str]] = {}
        self._tokens: dict[str, str] = {}

    def sent(self, frame: bytes, *, valid: bool = True) -> None:
        """Note what the client sent; only valid frames are held against a schema."""
        self.frames.append(("client", frame))
        try:
            decoded = json.loads(frame)
        except (ValueError, RecursionError):
            return
        for message in decoded if isinstance(decoded, list) else [decoded]:
            if isinstance(message, dict):
                self._sent(message, valid)

    def _sent(self, message: dict[str, Any], valid: bool) -> None:
        method, params = message.get("method"), message.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        meta = meta if isinstance(meta, dict) else {}
        revision = MODERN if PREFIX + "protocolVersion" in meta else self._session_revision(method, params)
        if "id" in message and isinstance(method, str):
            key = key_of(message["id"])
            if valid or key not in self._asked:  # a duplicate in flight does not take the first one's place
                self._asked[key] = (method, revision)
            if "progressToken" in meta:
                self._tokens[key_of(meta["progressToken"])] = revision
        if valid and not self._exempt("client", message):
            self._hold(revision, "client", message, None)

    def _session_revision(self, method: Any, params: Any) -> str:
        if method == "initialize" and isinstance(params, dict) and params.get("protocolVersion") in HANDSHAKE:
            return params["protocolVersion"]
        if method is not None and self.revision in HANDSHAKE:
            return self._agreed or self.revision
        return self._agreed or HANDSHAKE[-1]

    def received(self, frame: bytes) -> Any:
        """Note what the server sent, and return it decoded."""
        self.frames.append(("server", frame))
        try:
            decoded = strictly(frame)
        except ValueError as error:
            self.faults.append(f"server sent {frame[:300]!r}: {error}")
            return None
        for message in decoded if isinstance(decoded, list) else [decoded]:
            self._received(message)
        if isinstance(decoded, list) and self._agreed != "2025-03-26":
            self.faults.append(f"a batch outside 2025-03-26: {frame[:300]!r}")
        return decoded

    def _received(self, message: dict[str, Any]) -> None:
        if "method" in message:
            if not self._exempt("server", message):
                self._hold(self._revision_of(message), "server", message, None)
            return
        method, revision = self._asked.get(key_of(message.get("id")), (None, self._session_revision(None, None)))
        if message.get("error", {}).get("code") != -32600:
            self._asked.pop(key_of(message.get("id")), None)
        if method == "initialize" and "result" in message:
            revision = self._agreed = message["result"].get("protocolVersion", self.revision)
        known = None if method in self.own or method == "shutdown" else method
        self._hold(revision, "server", message, known)

    def _revision_of(self, message: dict[str, Any]) -> str:
        params = message.get("params", {})
        if PREFIX + "subscriptionId" in params.get("_meta", {}):
            return MODERN
        if "progressToken" in params:
            return self._tokens.get(key_of(params["progressToken"]), self.revision)
        if message["method"] == "notifications/cancelled":
            return self._asked.get(key_of(params.get("requestId")), ("", self.revision))[1]
        return self.revision

    def _exempt(self, sender: str, message: dict[str, Any]) -> bool:
        method = message.get("method")
        announced = method in TOLERATED[sender] and (sender == "client" or "id" not in message)
        return method in self.own or announced

    def _hold(self, revision: str, sender: str, message: dict[str, Any], method: str | None) -> None:
        if spec.ABSENT is None:
            for fault in spec.validate_message(revision, sender, message, method):
                self.faults.append(f"{sender}, {revision}: {fault}: {json.dumps(message)[:300]}")


class Talk(FakeClient):
    """A conversation with a server, of which every frame is held against the schema. Subclasses carry the frames.

    Args:
        stream: What carries them, where that is a stream.
        revision: What is spoken.
        own: Methods of the user's own, which no schema has.

    Attributes:
        ledger: Every frame so far.
    """

    def __init__(self, stream: Any, revision: str, own: Iterable[str] = ()) -> None:
        super().__init__(stream, revision, patience=PATIENCE)
        self.ledger = Ledger(revision, own)

    async def send(self, message: Any, *, valid: bool = True) -> None:
        frame = message if isinstance(message, bytes) else dumps(message)
        self.ledger.sent(frame, valid=valid)
        await super().send(frame)

    async def raw(self, message: Any, *, valid: bool = False) -> None:
        """Send a frame as it is; by default one that is wrong."""
        await self.send(message, valid=valid)

    async def answer_to(self, message: Any, *, valid: bool = False) -> Any:
        """Send a frame as it is and return the next thing that comes and is no notification."""
        await self.raw(message, valid=valid)
        return await self.take(lambda found: isinstance(found, list) or "method" not in found)

    def arrived(self, frame: bytes) -> None:
        self.ledger.received(frame)
        super().arrived(frame)

    def check(self) -> None:
        """Fail if a frame was not as the official schema has it."""
        assert not self.ledger.faults, "\n".join(self.ledger.faults)


# --------------------------------------------------------------------------------------------------- Server.session


class SessionTalk(Talk):
    """Through `Server.session`: each frame in a task of its own, as a transport would do it."""

    def __init__(self, server: Server, revision: str, own: Iterable[str] = ()) -> None:
        super().__init__(None, revision, own)
        self.session = server.session(send=self.arrived)
        self._tasks: set[asyncio.Task[None]] = set()

    async def write(self, frame: bytes) -> None:
        task = asyncio.create_task(self._handle(frame))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await asyncio.sleep(0)

    async def _handle(self, frame: bytes) -> None:
        try:
            answer = await self.session.handle(frame)
        except Exception as error:
            self.ledger.faults.append(f"handle raised {error!r} for {frame[:300]!r}")
            raise
        if answer is not None:
            self.arrived(answer)

    async def aclose(self) -> None:
        await self.session.aclose()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@contextlib.asynccontextmanager
async def session_talk(
    server: Server, revision: str, *, own: Iterable[str] = (), opened: bool = True
) -> AsyncIterator[SessionTalk]:
    """Hold a conversation through `Server.session`; at the end every frame must have been right."""
    talk = SessionTalk(server, revision, own)
    try:
        if opened:
            await talk.open()
        yield talk
    finally:
        await talk.aclose()
    talk.check()


# --------------------------------------------------------------------------------------------------- a stream


class StreamTalk(Talk):
    """Over a pair of streams in memory, the server's end served as any transport's would be."""

    def __init__(self, server: Server, revision: str, own: Iterable[str] = ()) -> None:
        self.stream, theirs = memory_pair()
        super().__init__(self.stream, revision, own)
        self.serving = server.serving(theirs)


@contextlib.asynccontextmanager
async def stream_talk(
    server: Server, revision: str, *, own: Iterable[str] = (), opened: bool = True
) -> AsyncIterator[StreamTalk]:
    """Hold a conversation over a stream in memory; at the end every frame must have been right."""
    talk = StreamTalk(server, revision, own)
    async with talk.serving, talk:
        if opened:
            await talk.open()
        yield talk
    talk.check()


# --------------------------------------------------------------------------------------------------- a process


class ChildTalk(Talk):
    """With a process, over its stdin and stdout; its stderr is kept in `stderr`."""

    def __init__(self, revision: str, own: Iterable[str] = ()) -> None:
        super().__init__(None, revision, own)
        self.stderr = b""
        self.output = b""
        """Every byte of stdout."""
        self._readers: list[asyncio.Task[None]] = []

    async def start(self, command: Sequence[str], **options: Any) -> None:
        """Start the process; options are those of ``create_subprocess_exec``."""
        given = {"stdin": asyncio.subprocess.PIPE, "start_new_session": True, **options}
        self.process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, limit=2**26, **given
        )
        self._readers = [asyncio.create_task(self._read_stdout()), asyncio.create_task(self._read_stderr())]

    async def write(self, frame: bytes) -> None:
        await self.write_bytes(frame + b"\n")

    async def write_bytes(self, data: bytes) -> None:
        """Write to the process's stdin, whatever it is."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        await self.process.stdin.drain()

    def close_stdin(self) -> None:
        """Let the process see the end of its input."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    async def _read_stdout(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            self.output += line
            if not line.endswith(b"\n"):
                self.ledger.faults.append(f"a line without its end: {line[:300]!r}")
            self.arrived(line.removesuffix(b"\n"))
        self.over()

    async def _read_stderr(self) -> None:
        assert self.process.stderr is not None
        while chunk := await self.process.stderr.read(65536):
            self.stderr += chunk
            self._arrival.set()

    async def says(self, text: str) -> None:
        """Wait until the process has written that to stderr."""
        async with asyncio.timeout(PATIENCE):
            while text.encode() not in self.stderr:
                assert not self._readers[1].done(), self.stderr
                self._arrival.clear()
                await self._arrival.wait()

    async def ended(self) -> int:
        """Wait until the process has ended and everything that it wrote has come; return its exit code."""
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*self._readers)
            return await self.process.wait()

    async def aclose(self) -> None:
        if not all(reading.done() for reading in self._readers):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)  # it and whatever it started that still holds its pipes
        await self.process.wait()
        await asyncio.gather(*self._readers, return_exceptions=True)
        self.process._transport.close()  # asyncio has no other way to let go of the pipes at once


@contextlib.asynccontextmanager
async def child_talk(
    program: str | Path,
    *arguments: str,
    revision: str = "2025-11-25",
    own: Iterable[str] = (),
    opened: bool = True,
    python: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    **options: Any,
) -> AsyncIterator[ChildTalk]:
    """Hold a conversation with a Python program over stdio; at the end every frame must have been right.

    Args:
        program: The program.
        *arguments: Its arguments.
        revision: What is spoken.
        own: Methods of the user's own.
        opened: Open the conversation first.
        python: Options of the interpreter.
        env: Environment variables to add.
        **options: More options of ``create_subprocess_exec``, such as another ``stdin``.
    """
    talk = ChildTalk(revision, own)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **(env or {})}
    await talk.start([sys.executable, *python, str(program), *arguments], env=environment, **options)
    try:
        if opened:
            await talk.open()
        yield talk
    finally:
        await talk.aclose()
    talk.check()
