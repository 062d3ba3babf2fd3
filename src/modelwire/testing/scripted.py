"""One end of a conversation that a test moves: frames in, frames out.

`FakeServer` and `FakeClient` are made of it. It does nothing by itself but read.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Generator
from types import TracebackType
from typing import Any, Self

from modelwire.errors import ConnectionLost, FrameTooLarge
from modelwire.protocol import revisions
from modelwire.rpc.message_stream import MessageStream
from modelwire.testing.frames import Frames
from modelwire.testing.patterns import differences, of_message, shown

REVISIONS: tuple[str, ...] = tuple(revision.name for revision in revisions.REVISIONS)
"""Every revision of the protocol, oldest first; for ``pytest.mark.parametrize``."""
PER_REQUEST = "io.modelcontextprotocol/"
"""How the keys begin that requests of per-request revisions carry in their ``_meta``."""


def is_per_request(revision: str) -> bool:
    """Whether a revision has no handshake: every request says who asks."""
    found = revisions.by_name(revision)
    assert found is not None, f"there is no revision {revision!r}; there are {', '.join(REVISIONS)}"
    return not found.handshake


def dumps(message: Any) -> bytes:
    """Return a message as the bytes of one frame."""
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


class Scripted:
    """One end of a conversation; an ``async with`` block.

    Args:
        stream: What frames come from and go to.
        other: What the other end is, for messages.
        patience: Seconds after which a test that waits has failed.

    Attributes:
        frames: Every frame so far.
        inbox: Messages that came and that nobody has looked at, oldest first.
        faults: What was wrong with what came; where there is any, the block ends with an AssertionError.
        gone: Set once the other end has closed.
        reads: Cleared, nothing more is read, as by a peer that is stuck.
    """

    def __init__(self, stream: MessageStream, other: str, patience: float) -> None:
        self._stream = stream
        self._other = other
        self.patience = patience
        self.frames = Frames()
        self.inbox: list[Any] = []
        self.faults: list[str] = []
        self.gone = asyncio.Event()
        self.reads = asyncio.Event()
        self.reads.set()
        self._arrival = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._reading = asyncio.create_task(self._read())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
        if kind is None and self.faults:
            raise AssertionError(f"the {self._other} sent what it must not:\n" + "\n".join(self.faults))

    async def _read(self) -> None:
        try:
            while True:
                await self.reads.wait()
                try:
                    frame = await self._stream.receive()
                except FrameTooLarge as error:
                    self.faults.append(str(error))
                    continue
                if frame is None:
                    return
                self.arrived(frame)
        except ConnectionLost:
            return
        finally:
            self.over()

    def arrived(self, frame: bytes) -> None:
        """Take in a frame. Override it, and call it, to look at frames as they come."""
        self.frames.frame("in", frame)
        try:
            message = json.loads(frame)
        except (ValueError, RecursionError) as error:
            self.faults.append(f"no JSON ({error}): {frame[:300]!r}")
            return
        self.take_in(message)
        self._arrival.set()

    def take_in(self, message: Any) -> None:
        """Put a message where it is waited for."""
        self.inbox.append(message)

    def over(self) -> None:
        """Note that nothing more will come."""
        self.gone.set()
        self._arrival.set()

    # ------------------------------------------------------------------ what comes

    async def next(self) -> Any:
        """Return the next message that nobody has looked at, waiting for it.

        Raises:
            AssertionError: None came in time, or the other end has closed.
        """
        return await self._taken(..., "a message")

    async def expect(self, pattern: Any) -> Any:
        """Return the next message, which must fit a pattern (see `modelwire.testing.patterns`).

        Args:
            pattern: The pattern, or the name of a method.

        Raises:
            AssertionError: It does not; the error has each difference, and the message. Or none came.
        """
        wanted = of_message(pattern)
        message = await self._taken(..., repr(wanted))
        lines = differences(message, wanted)
        if lines:
            told = "\n".join(f"  {line}" for line in lines)
            raise AssertionError(f"the {self._other} sent something else:\n{told}\n  the message: {shown(message)}")
        return message

    async def take(self, pattern: Any) -> Any:
        """Wait for a message that fits a pattern, whatever comes before it, and take it out of the inbox."""
        wanted = of_message(pattern)
        return await self._taken(wanted, repr(wanted))

    async def _taken(self, wanted: Any, awaited: str) -> Any:
        with self._patient(awaited):
            async with asyncio.timeout(self.patience):
                while True:
                    for at, message in enumerate(self.inbox):
                        if not differences(message, wanted):
                            return self.inbox.pop(at)
                    if self.gone.is_set():
                        raise AssertionError(f"the {self._other} has closed; expected was {awaited}{self._unread()}")
                    self._arrival.clear()
                    await self._arrival.wait()

    async def hear(self, method: str, **params: Any) -> dict[str, Any]:
        """Wait for a notification or request with these params, whatever comes before it; return all its params."""
        pattern = {"method": method, **({"params": params} if params else {})}
        return (await self.take(pattern)).get("params", {})

    def heard(self, method: str) -> list[dict[str, Any]]:
        """Return the params of every message of that method that waits in the inbox; they stay there."""
        return [message.get("params", {}) for message in self.inbox if not differences(message, {"method": method})]

    async def closed(self) -> None:
        """Wait until the other end has closed.

        Raises:
            AssertionError: It did not in time.
        """
        with self._patient("the end of the connection"):
            async with asyncio.timeout(self.patience):
                await self.gone.wait()

    @contextlib.contextmanager
    def _patient(self, awaited: str) -> Generator[None]:
        try:
            yield
        except TimeoutError:
            raise AssertionError(
                f"after {self.patience:g} s the test still waits for {awaited}{self._unread()}"
            ) from None

    def _unread(self) -> str:
        if not self.inbox:
            return "; nothing is in the inbox"
        return "; in the inbox:\n" + "\n".join(f"  {shown(message)}" for message in self.inbox)

    # ------------------------------------------------------------------ what goes

    async def send(self, message: Any) -> None:
        """Send a message, or bytes as they are: whatever is wrong with them.

        Raises:
            ConnectionLost: The connection is closed.
        """
        frame = message if isinstance(message, bytes) else dumps(message)
        self.frames.frame("out", frame)
        await self.write(frame)

    async def write(self, frame: bytes) -> None:
        """Carry a frame to the other end."""
        await self._stream.send(frame)

    async def notify(self, method: str, params: Any = None) -> None:
        """Send a notification."""
        await self.send({"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params}))

    # ------------------------------------------------------------------ the end

    async def hang_up(self) -> None:
        """Close this end; what the other end still sends is not read."""
        await self._stream.aclose()

    async def aclose(self) -> None:
        """Close this end and stop reading. May be called twice."""
        await self._stream.aclose()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])


def request_meta(revision: str, **more: Any) -> dict[str, Any]:
    """Return the ``_meta`` of a request: what its revision wants of every request, and more.

    Args:
        revision: The revision.
        **more: Entries; ``logLevel`` and ``clientCapabilities`` are the protocol's own.
    """
    if not is_per_request(revision):
        return more
    reserved = ("logLevel", "clientCapabilities")
    return {
        PER_REQUEST + "protocolVersion": revision,
        PER_REQUEST + "clientInfo": {"name": "test", "version": "1"},
        PER_REQUEST + "clientCapabilities": {},
        **{(PER_REQUEST + key if key in reserved else key): value for key, value in more.items()},
    }
