"""One connection over one duplex stream: reads frames, starts the tasks that answer them, writes in order.

This is the only place where tasks of a stream's requests start. It knows nothing of what the frames say.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence

from modelwire.errors import ConnectionLost, FrameTooLarge
from modelwire.log import log as _log
from modelwire.protocol import jsonrpc
from modelwire.rpc.batch import BatchCall, too_much
from modelwire.rpc.call import Call
from modelwire.rpc.connection import Connection
from modelwire.rpc.dispatcher import Dispatcher
from modelwire.rpc.early import Early
from modelwire.rpc.message_stream import EagerStream, KnowsUnwritten, MessageStream, Releasable
from modelwire.rpc.observer import Observer
from modelwire.rules.pending import Outgoing
from modelwire.rules.session import Session

HIGH_WATER = 1 << 20
"""Bytes waiting to be sent above which whoever answers waits."""
CLEAN_UP = 1.0
"""Seconds that the handlers of cancelled requests have to clean up before what they use is taken away."""
PEEK = 256
"""How many bytes of a frame of ours have its id in them."""
READ_PAUSE = 1 << 26
"""Bytes waiting to be sent above which nothing more is read, and nothing more begins that was read already."""
SEND_LIMIT = 1 << 28
"""Bytes waiting to be sent above which answers give way to errors, and notifications to nothing."""


class Link:
    """Runs a `Connection` over a `MessageStream`.

    Args:
        stream: Where frames come from and go to; the link closes it.
        dispatcher: Answers the peer.
        session: What the peer's handshake established.
        observers: Who watches the frames.
        answers_invalid: Whether invalid frames are answered (a server's part).
    """

    def __init__(
        self,
        stream: MessageStream,
        dispatcher: Dispatcher,
        *,
        session: Session | None = None,
        observers: Sequence[Observer] = (),
        answers_invalid: bool = True,
    ) -> None:
        self.stream = stream
        self.connection = Connection(
            dispatcher, self._post, session=session, observers=observers, answers_invalid=answers_invalid
        )
        self.connection.crowded = self._crowded
        self.connection.when_room = self._when_room
        self._answer = dispatcher.answer
        self._answer_now = dispatcher.answer_now
        self._soon: list[Call] | None = None
        """What never waits, and is answered when this turn of the loop is over."""
        self._held: list[Call] = []
        """What was read already, and begins when there is room."""
        self.backlog = 0
        """Bytes that wait for the stream to take them."""
        self.stopping = False
        """Set to have `run` return before it reads the next frame."""
        self._send_nowait = stream.send_nowait if isinstance(stream, EagerStream) else None
        self._out: deque[bytes] = deque()
        self._unsent: list[bytes] = []
        self._writer: asyncio.Task[None] | None = None
        self._wake: asyncio.Future[None] | None = None
        self._room = asyncio.Event()
        self._waiting_for_room: list[Callable[[], None]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed: asyncio.Task[None] | None = None

    # ------------------------------------------------------------------ reading

    async def run(self, early: Early | None = None) -> None:
        """Read and serve until the peer closes or `stopping` is set; requests may still be open then.

        Args:
            early: What has been read already.

        Raises:
            ConnectionLost: The stream broke.
        """
        stream = self.stream
        if early is not None:
            await self._run_early(early)
            if early.over:
                return
        ready = stream.receive_nowait if isinstance(stream, EagerStream) else _nothing_ready
        while not self.stopping:
            try:
                frame = ready() or await stream.receive()
            except FrameTooLarge as error:
                self._take_oversized(error)
                continue
            if frame is None:
                return
            self._take(frame)
            if self.backlog > READ_PAUSE:
                await self._drained(READ_PAUSE)

    async def _run_early(self, early: Early) -> None:
        async with contextlib.aclosing(early.frames()) as frames:
            async for frame in frames:
                if isinstance(frame, FrameTooLarge):
                    self._take_oversized(frame)
                else:
                    self._take(frame)
                if self.stopping:
                    return

    def _take_oversized(self, error: FrameTooLarge) -> None:
        refusal = self.connection.oversized(error)
        if refusal is not None:
            self.connection.post(refusal)

    def _take(self, frame: bytes) -> None:
        answer = self.connection.receive(frame)
        if type(answer) is Call:
            self._start(answer)
        elif type(answer) is bytes:
            self.connection.post(answer)
        elif type(answer) is BatchCall:
            self._keep(asyncio.create_task(self._answer_batch(answer)))

    def _start(self, call: Call) -> None:
        """Have a call answered once this turn is over, so that what came with it may still cancel it.

        What may wait has a task of its own, since timeouts, scopes and registries go by the task; what never waits
        needs none. They begin in the order in which they came.
        """
        loop = self.connection.loop
        if loop.get_task_factory() is not None:
            call.task = loop.create_task(self._answer(call))
            call.task.set_name(call.method.name)
        elif call.now is None:
            self._soon = None
            # What the loop would make, without the detour; a name that exists costs less than making one up.
            call.task = asyncio.Task(self._answer(call), loop=loop, name=call.method.name)
        elif self._soon is None:
            self._soon = [call]
            loop.call_soon(self._answer_soon, self._soon)
        else:
            self._soon.append(call)

    def _answer_soon(self, calls: list[Call]) -> None:
        if self._soon is calls:
            self._soon = None
        for at, call in enumerate(calls):
            if self.backlog > READ_PAUSE:
                self._hold(calls[at:])
                return
            if call.open and call.now is not None:
                self._answer_now(call, call.now)

    def _hold(self, calls: list[Call]) -> None:
        """Answer calls when there is room; until then their answers would only fill the memory."""
        if not self._held:
            self._when_room(self._answer_held)
        self._held += calls

    def _answer_held(self) -> None:
        calls, self._held = self._held, []
        self._answer_soon(calls)

    async def _answer_batch(self, batch: BatchCall) -> None:
        frame = await batch.answered(self._start)
        if frame is not None:
            self.connection.post(frame)

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # ------------------------------------------------------------------ writing

    def _post(self, frame: bytes) -> None:
        if self.connection.ended is not None or self._closed is not None:
            return
        if self._send_nowait is not None and not self._out and self._send_nowait(frame):
            return
        if self.backlog > SEND_LIMIT:
            frame = self._instead(frame)
            if not frame:
                return
        self._out.append(frame)
        self.backlog += len(frame)
        if self._writer is None:
            self._writer = asyncio.create_task(self._write())
        elif self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def _instead(self, frame: bytes) -> bytes:
        """Return what is sent of a frame although the peer reads too slowly; nothing of it is an empty frame."""
        error = too_much(frame)
        if error is None and frame[:1] != b"[" and not jsonrpc.peek(frame):  # no batch, and no request of ours
            self.connection.complain("a notification was dropped: the peer does not read what it is sent")
            return b""
        if error is not None:
            self.connection.complain("an answer was replaced by an error: the peer does not read what it is sent")
        return error or frame

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        send, out = self.stream.send, self._out
        try:
            while True:
                while out:
                    frame = out.popleft()
                    await send(frame)
                    self.backlog -= len(frame)
                self._has_room()
                self._wake = loop.create_future()
                await self._wake
        except Exception as error:
            # A stream that people bring may raise anything; who waits for an answer must hear of it.
            why = error if isinstance(error, ConnectionLost) else ConnectionLost(f"sending failed: {error!r}")
            _log.debug("frames can no longer be sent: %s", why)
            self._unsent += out
            out.clear()
            self.backlog = 0
            self.connection.end(why)
            self._has_room()
            self._keep(asyncio.create_task(self.stream.aclose()))  # which ends the reader, too

    def _crowded(self, mebibytes: int = 1) -> bool:
        return self.backlog > mebibytes << 20

    def _when_room(self, callback: Callable[[], None]) -> None:
        if self.backlog > HIGH_WATER:
            self._waiting_for_room.append(callback)
        else:
            self.connection.loop.call_soon(callback)

    def _has_room(self) -> None:
        self._room.set()
        waiting, self._waiting_for_room = self._waiting_for_room, []
        for callback in waiting:
            self.connection.loop.call_soon(callback)

    async def _drained(self, level: int) -> None:
        while self.backlog > level and self.connection.ended is None:
            self._room.clear()
            await self._room.wait()

    def was_sent(self, entry: Outgoing) -> bool:
        """Whether the peer may have got a request, or a part of it, now that the connection has ended."""
        stream = self.stream
        dropped = [*self._unsent, *self._out, *(stream.unwritten() if isinstance(stream, KnowsUnwritten) else ())]
        return all(jsonrpc.peek(frame[:PEEK]).get("key") != entry.key for frame in dropped)

    reached = True
    """There is somebody at the other end: the stream is open."""
    on_gap: Callable[[], None] | None = None
    """Never called: a stream that goes on has lost nothing."""

    async def hears(self) -> None:
        """Wait until what is told unasked can be heard, which is always so."""

    def release(self) -> None:
        """Let go of the stream from outside its event loop, which has ended."""
        if isinstance(self.stream, Releasable):
            self.stream.release()

    async def flushed(self) -> None:
        """Wait until the stream has taken everything that was posted."""
        await self._drained(0)

    # ------------------------------------------------------------------ the end

    async def finish(self, grace: float) -> None:
        """Wait for the requests that are open, at most ``grace`` seconds; then cancel what is left.

        Requests that last (`Call.lasting`) are not waited for; end them before.
        """
        await asyncio.sleep(0)  # what never waits is answered meanwhile
        if self._held:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._nothing_held(), grace)
        open_tasks = [
            call.task for call in self.connection.calls.values() if call.task is not None and not call.lasting
        ]
        open_tasks += self._tasks
        if open_tasks:
            await asyncio.wait(open_tasks, timeout=grace)
        for call in list(self.connection.calls.values()):
            call.cancel("the connection is closing")
        await self.connection.settle_cancelled(CLEAN_UP)
        try:
            await asyncio.wait_for(self.flushed(), grace)
        except TimeoutError:
            _log.warning("%d bytes could not be sent before the connection closed", self.backlog)

    async def _nothing_held(self) -> None:
        while self._held and self.connection.ended is None:
            await self._drained(HIGH_WATER)
            await asyncio.sleep(0)

    async def aclose(self, why: Exception | None = None) -> None:
        """End the connection and close the stream. May be called twice and from any task."""
        if self._closed is None:
            self._closed = asyncio.create_task(self._close(why or ConnectionLost("the connection was closed")))
        await asyncio.shield(self._closed)

    async def _close(self, why: Exception) -> None:
        self.connection.end(why)
        if self._writer is not None:
            self._writer.cancel()
            await asyncio.wait([self._writer])
        self._has_room()  # nobody waits for it any more
        await self.stream.aclose()


def _nothing_ready() -> bytes | None:
    return None
