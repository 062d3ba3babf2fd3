"""Drive a server frame by frame, from the client's chair, and hold every frame against the official schemas.

`Talk` is the conversation; `session_talk`, `stream_talk` and `child_talk` hold it with `Server.session`, over a pair of
streams in memory and with a process over its stdin and stdout. It is no client: it sends what a test says, in the order
in which the test says it, and is never shared with the package.

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
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from modelwire import Server
from modelwire.rpc.message_stream import MessageStream
from modelwire.transports.memory import memory_pair
from tests import spec

REVISIONS = spec.REVISION_NAMES
HANDSHAKE = REVISIONS[:-1]
MODERN = REVISIONS[-1]

every_revision = pytest.mark.parametrize("revision", REVISIONS)
every_handshake = pytest.mark.parametrize("revision", HANDSHAKE)

TOLERATED = {
    "client": {"shutdown", "exit", "initialized"},
    "server": {"tools/list", "resources/list", "notifications/root"},
}
"""Closings and announcements that tutorials teach and no revision has; the server's as notifications only."""

PREFIX = "io.modelcontextprotocol/"
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
    return {
        PREFIX + "protocolVersion": MODERN,
        PREFIX + "clientInfo": {"name": "test", "version": "1"},
        PREFIX + "clientCapabilities": {},
        **{(PREFIX + key if key in ("logLevel", "clientCapabilities") else key): value for key, value in more.items()},
    }


def dumps(message: Any) -> bytes:
    """Return a message as the bytes of one frame."""
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


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


def key_of(id: Any) -> str:
    """Return an id or a token as a key: 1 and "1" are two."""
    return json.dumps(id)


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


class Pending:
    """A request that was sent: its id, and its answer when it comes."""

    def __init__(self, id: Any, answer: asyncio.Future[dict[str, Any]]) -> None:
        self.id = id
        self._answer = answer

    @property
    def done(self) -> bool:
        """Whether the answer has come."""
        return self._answer.done()

    async def answer(self) -> dict[str, Any]:
        """Wait for the whole response."""
        async with asyncio.timeout(PATIENCE):
            return await asyncio.shield(self._answer)

    async def result(self) -> dict[str, Any]:
        """Wait for the result."""
        answer = await self.answer()
        assert "result" in answer, answer
        return answer["result"]

    async def error(self) -> dict[str, Any]:
        """Wait for the error."""
        answer = await self.answer()
        assert "error" in answer, answer
        return answer["error"]


class Talk:
    """A conversation with a server. Subclasses carry the frames.

    Args:
        revision: What is spoken.
        own: Methods of the user's own, which no schema has.

    Attributes:
        ledger: Every frame so far.
        inbox: Messages that came and are no answer to a request that waits, oldest first; `hear` takes them out.
    """

    def __init__(self, revision: str, own: Iterable[str] = ()) -> None:
        self.revision = revision
        self.ledger = Ledger(revision, own)
        self.inbox: list[Any] = []
        self.closed = False
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._arrival = asyncio.Event()
        self._last_id = 0

    # ------------------------------------------------------------------------------------------------- to override

    async def write(self, frame: bytes) -> None:
        """Carry one frame to the server."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------------- sending

    async def open(self, **params: Any) -> dict[str, Any]:
        """Open as the revision has it; return the result of ``initialize``, or of ``server/discover``."""
        if self.revision == MODERN:
            return await self.result("server/discover")
        result = await self.result("initialize", opening(self.revision, **params))
        await self.notify("notifications/initialized")
        return result

    async def begin(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        id: Any = None,
        revision: str | None = None,
        **meta: Any,
    ) -> Pending:
        """Send a request and go on.

        Args:
            method: The method.
            params: Its params, without what every request of 2026-07-28 carries.
            id: Its id; by default the next number.
            revision: MODERN sends it as a request of 2026-07-28 on any conversation.
            **meta: More entries for ``_meta``.
        """
        if id is None:
            self._last_id += 1
            id = self._last_id
        answer = self._waiting[key_of(id)] = asyncio.get_running_loop().create_future()
        message = {"jsonrpc": "2.0", "id": id, "method": method}
        whole = dict(params or {})
        if (revision or self.revision) == MODERN:
            whole["_meta"] = modern_meta(**meta)
        elif meta:
            whole["_meta"] = meta
        if whole or params is not None:
            message["params"] = whole
        frame = dumps(message)
        self.ledger.sent(frame)
        await self.write(frame)
        return Pending(id, answer)

    async def request(self, method: str, params: Mapping[str, Any] | None = None, **options: Any) -> dict[str, Any]:
        """Send a request and return the whole response."""
        return await (await self.begin(method, params, **options)).answer()

    async def result(self, method: str, params: Mapping[str, Any] | None = None, **options: Any) -> dict[str, Any]:
        """Send a request and return its result."""
        return await (await self.begin(method, params, **options)).result()

    async def error(self, method: str, params: Mapping[str, Any] | None = None, **options: Any) -> dict[str, Any]:
        """Send a request and return its error."""
        return await (await self.begin(method, params, **options)).error()

    async def call(self, tool: str, arguments: Mapping[str, Any] | None = None, **options: Any) -> dict[str, Any]:
        """Call a tool and return its result."""
        return await self.result("tools/call", {"name": tool, "arguments": dict(arguments or {})}, **options)

    async def begin_call(self, tool: str, arguments: Mapping[str, Any] | None = None, **options: Any) -> Pending:
        """Call a tool and go on."""
        return await self.begin("tools/call", {"name": tool, "arguments": dict(arguments or {})}, **options)

    async def text(self, tool: str, arguments: Mapping[str, Any] | None = None, **options: Any) -> str:
        """Call a tool that must succeed, and return its text."""
        result = await self.call(tool, arguments, **options)
        assert not result.get("isError"), result
        return result["content"][0]["text"]

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = dict(params)
        frame = dumps(message)
        self.ledger.sent(frame)
        await self.write(frame)

    async def cancel(self, request: Pending, reason: str | None = None) -> None:
        """Cancel a request."""
        params = {"requestId": request.id} | ({} if reason is None else {"reason": reason})
        await self.notify("notifications/cancelled", params)

    async def raw(self, frame: bytes | dict[str, Any] | list[Any], *, valid: bool = False) -> None:
        """Send a frame as it is; by default one that is wrong."""
        if not isinstance(frame, bytes):
            frame = dumps(frame)
        self.ledger.sent(frame, valid=valid)
        await self.write(frame)

    async def answer_to(self, frame: bytes | dict[str, Any] | list[Any], *, valid: bool = False) -> Any:
        """Send a frame as it is and return the next thing that comes and is no notification."""
        await self.raw(frame, valid=valid)
        return await self.take(lambda message: isinstance(message, list) or "method" not in message)

    # ------------------------------------------------------------------------------------------------- receiving

    def arrived(self, frame: bytes) -> None:
        """Take in what the server sent."""
        message = self.ledger.received(frame)
        waiting = None
        if isinstance(message, dict) and "method" not in message and "id" in message:
            waiting = self._waiting.pop(key_of(message["id"]), None)
        if waiting is not None and not waiting.done():
            waiting.set_result(message)
        else:
            self.inbox.append(message)
        self._arrival.set()

    async def take(self, which: Callable[[Any], bool]) -> Any:
        """Wait for a message of the inbox and take it out."""
        async with asyncio.timeout(PATIENCE):
            while True:
                for index, message in enumerate(self.inbox):
                    if which(message):
                        return self.inbox.pop(index)
                assert not self.closed, "the server has closed"
                self._arrival.clear()
                await self._arrival.wait()

    async def hear(self, method: str, **params: Any) -> dict[str, Any]:
        """Wait for a notification, or a request of the server's, with these params; return its params."""

        def fits(message: Any) -> bool:
            if not isinstance(message, dict) or message.get("method") != method:
                return False
            return params.items() <= message.get("params", {}).items()

        return (await self.take(fits)).get("params", {})

    def heard(self, method: str) -> list[dict[str, Any]]:
        """Return the params of every notification of that name that waits in the inbox."""
        return [m.get("params", {}) for m in self.inbox if isinstance(m, dict) and m.get("method") == method]

    async def settle(self) -> None:
        """Wait until everything that the server had sent or was about to send has come."""
        for _ in range(5):
            await asyncio.sleep(0)
        await self.request("server/discover" if self.revision == MODERN else "ping")
        for _ in range(5):
            await asyncio.sleep(0)

    async def quiet(self) -> bool:
        """Whether nothing at all comes that was not asked for, up to the answer to one more request."""
        await self.settle()
        return not self.inbox

    def hang_up(self) -> None:
        """Note that nothing more will come."""
        self.closed = True
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ConnectionError("the server has closed"))
                waiting.exception()
        self._arrival.set()

    def check(self) -> None:
        """Fail if a frame was not as the official schema has it."""
        assert not self.ledger.faults, "\n".join(self.ledger.faults)


# --------------------------------------------------------------------------------------------------- Server.session


class SessionTalk(Talk):
    """Through `Server.session`: each frame in a task of its own, as a transport would do it."""

    def __init__(self, server: Server, revision: str, own: Iterable[str] = ()) -> None:
        super().__init__(revision, own)
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
        super().__init__(revision, own)
        self.stream, theirs = memory_pair()
        self.serving = server.serving(theirs)
        self.reads = asyncio.Event()
        """Cleared, the client does not read."""
        self.reads.set()
        self._reading: asyncio.Task[None] | None = None

    async def write(self, frame: bytes) -> None:
        await self.stream.send(frame)

    def read(self) -> None:
        """Begin to read what the server sends."""
        self._reading = asyncio.create_task(self._read(self.stream))

    async def _read(self, stream: MessageStream) -> None:
        while True:
            await self.reads.wait()
            frame = await stream.receive()
            if frame is None:
                self.hang_up()
                return
            self.arrived(frame)

    async def ended(self) -> None:
        """Wait until the server has closed and everything that it sent has come."""
        assert self._reading is not None
        async with asyncio.timeout(PATIENCE):
            await self._reading

    async def aclose(self) -> None:
        await self.stream.aclose()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)


@contextlib.asynccontextmanager
async def stream_talk(
    server: Server, revision: str, *, own: Iterable[str] = (), opened: bool = True
) -> AsyncIterator[StreamTalk]:
    """Hold a conversation over a stream in memory; at the end every frame must have been right."""
    talk = StreamTalk(server, revision, own)
    try:
        async with talk.serving:
            talk.read()
            if opened:
                await talk.open()
            yield talk
    finally:
        await talk.aclose()
    talk.check()


# --------------------------------------------------------------------------------------------------- a process


class ChildTalk(Talk):
    """With a process, over its stdin and stdout; its stderr is kept in `stderr`."""

    def __init__(self, revision: str, own: Iterable[str] = ()) -> None:
        super().__init__(revision, own)
        self.stderr = b""
        self.output = b""
        """Every byte of stdout."""
        self._reading: list[asyncio.Task[None]] = []

    async def start(self, command: Sequence[str], **options: Any) -> None:
        """Start the process; options are those of ``create_subprocess_exec``."""
        given = {"stdin": asyncio.subprocess.PIPE, "start_new_session": True, **options}
        self.process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, limit=2**26, **given
        )
        self._reading = [asyncio.create_task(self._read_stdout()), asyncio.create_task(self._read_stderr())]

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
        self.hang_up()

    async def _read_stderr(self) -> None:
        assert self.process.stderr is not None
        while chunk := await self.process.stderr.read(65536):
            self.stderr += chunk
            self._arrival.set()

    async def says(self, text: str) -> None:
        """Wait until the process has written that to stderr."""
        async with asyncio.timeout(PATIENCE):
            while text.encode() not in self.stderr:
                assert not self._reading[1].done(), self.stderr
                self._arrival.clear()
                await self._arrival.wait()

    async def ended(self) -> int:
        """Wait until the process has ended and everything that it wrote has come; return its exit code."""
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*self._reading)
            return await self.process.wait()

    async def aclose(self) -> None:
        if not all(reading.done() for reading in self._reading):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)  # it and whatever it started that still holds its pipes
        await self.process.wait()
        await asyncio.gather(*self._reading, return_exceptions=True)
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
