"""A stream that stands before another and spoils what crosses it, as a test says: deterministic, with no clock.

Each direction is a `Lane`. What becomes of whole frames is decided first (drop, duplicate, corrupt, reorder). Then
frames go over the wire as pieces of bytes (split), which can be held up and let go one by one (hold, release), until
the wire is cut (cut).
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from modelwire.errors import ConnectionLost, FrameTooLarge
from modelwire.rpc.message_stream import MessageStream
from modelwire.testing.frames import Frame
from modelwire.testing.patterns import differences, of_message

FLUSH_SECONDS = 1.0
"""How long closing lets the other stream take what was sent before."""


class _Piece(NamedTuple):
    data: bytes
    last: bool
    """Whether a frame ends with it."""


class Lane:
    """One direction of a `FaultyStream`.

    ``which`` names the frames that a fault hits: a number counts from now, 0 being the next frame; a pattern, or the
    name of a method, hits every frame with such a message.

    Attributes:
        passed: How many frames have been delivered.
        is_cut: Whether the wire has been cut.
    """

    def __init__(self, deliver: Callable[[bytes], None], broke: Callable[[bool], None]) -> None:
        self._deliver = deliver
        self._broke = broke
        self._faults: list[Callable[[bytes], list[bytes] | None]] = []
        self._sizes: tuple[int, ...] = ()
        self._budget: tuple[int | None, int | None] = (None, None)
        self._held: deque[_Piece] | None = None
        self._more_held = asyncio.Event()
        self._whole = b""
        self._over: Callable[[], None] | None = None
        self._orderly = False
        self.passed = 0
        self.is_cut = False

    # ------------------------------------------------------------------ faults of frames

    def drop(self, which: Any = 0) -> None:
        """Lose frames."""
        self._hit(which, lambda frame: [])

    def duplicate(self, which: Any = 0, times: int = 2) -> None:
        """Deliver frames several times."""
        self._hit(which, lambda frame: [frame] * times)

    def corrupt(self, which: Any = 0, change: Callable[[bytes], bytes] | None = None) -> None:
        """Change frames.

        Args:
            which: The frames.
            change: What becomes of a frame; by default its middle byte becomes one that UTF-8 never has.
        """
        spoil = change or _spoilt
        self._hit(which, lambda frame: [spoil(frame)])

    def reorder(self, *order: int) -> None:
        """Deliver the next frames in another order, once all of them are there.

        Args:
            *order: Which comes when: ``reorder(1, 0)`` swaps the next two.
        """
        if sorted(order) != list(range(len(order))):
            raise ValueError(f"reorder{order} must name each of 0 to {len(order) - 1} once")
        kept: list[bytes] = []

        def keep(frame: bytes) -> list[bytes] | None:
            if len(kept) == len(order):
                return None
            kept.append(frame)
            return [kept[at] for at in order] if len(kept) == len(order) else []

        self._faults.append(keep)

    def _hit(self, which: Any, fault: Callable[[bytes], list[bytes]]) -> None:
        left = which if isinstance(which, int) else None

        def by_number(frame: bytes) -> list[bytes] | None:
            nonlocal left
            assert left is not None
            left -= 1
            return fault(frame) if left == -1 else None

        def by_pattern(frame: bytes) -> list[bytes] | None:
            return fault(frame) if _has(frame, which) else None

        self._faults.append(by_pattern if left is None else by_number)

    # ------------------------------------------------------------------ faults of the wire

    def split(self, *sizes: int) -> None:
        """Send every frame in pieces of so many bytes, the sizes taking turns. `release` then lets pieces go.

        Args:
            *sizes: The sizes; none sends frames whole again.
        """
        if any(size < 1 for size in sizes):
            raise ValueError(f"split{sizes}: a piece has at least one byte")
        self._sizes = sizes

    def hold(self) -> None:
        """Hold up everything from now on, until `release`."""
        if self._held is None:
            self._held = deque()

    def release(self, pieces: int | None = None) -> None:
        """Let go what is held.

        Args:
            pieces: How many pieces (frames, unless they are `split`); by default all, and what comes after them.
        """
        held = self._held
        if held is None:
            return
        for _ in range(len(held) if pieces is None else min(pieces, len(held))):
            self._cross(held.popleft())
        if pieces is None:
            self._held = None
            if self._over is not None:
                self._over()

    async def held(self, pieces: int = 1) -> None:
        """Wait until at least so many pieces are held up."""
        while len(self._held or ()) < pieces:
            self._more_held.clear()
            await self._more_held.wait()

    def cut(self, after_frames: int | None = None, *, after_bytes: int | None = None, orderly: bool = False) -> None:
        """Cut the wire, for both directions: now, or after more frames or bytes have crossed this lane.

        Args:
            after_frames: How many frames still cross.
            after_bytes: How many bytes still cross; the wire may be cut in the middle of a frame.
            orderly: The end looks like one: what was left of a frame is delivered, then the end of the stream. By
                default it is lost, and the stream breaks.
        """
        self._orderly = orderly
        self._budget = (after_frames, after_bytes)
        if (after_frames, after_bytes) == (None, None) or after_frames == 0 or after_bytes == 0:
            self._end()

    # ------------------------------------------------------------------ what crosses

    def take(self, frame: bytes) -> None:
        """Take in a frame from the side that sent it."""
        frames = [frame]
        for fault in list(self._faults):
            frames = [out for one in frames for out in _through(fault, one)]
        for one in frames:
            for piece in self._pieces(one):
                if self._held is None:
                    self._cross(piece)
                else:
                    self._held.append(piece)
                    self._more_held.set()

    def _pieces(self, frame: bytes) -> list[_Piece]:
        pieces: list[_Piece] = []
        sizes = itertools.cycle(self._sizes or (len(frame),))
        at = 0
        while at < len(frame):
            end = at + next(sizes)
            pieces.append(_Piece(frame[at:end], end >= len(frame)))
            at = end
        return pieces

    def finish(self, over: Callable[[], None]) -> None:
        """Take in the end of the stream: it comes after everything that is held up."""
        if self._held is None:
            over()
        else:
            self._over = over

    def _cross(self, piece: _Piece) -> None:
        if self.is_cut:
            return
        frames, left = self._budget
        if left is not None and len(piece.data) >= left:
            piece = _Piece(piece.data[:left], piece.last and len(piece.data) == left)
        self._whole += piece.data
        if piece.last:
            whole, self._whole = self._whole, b""
            self.passed += 1
            self._deliver(whole)
        self._budget = (
            None if frames is None else frames - piece.last,
            None if left is None else left - len(piece.data),
        )
        if 0 in self._budget:
            self._end()

    def _end(self) -> None:
        if self.is_cut:
            return
        self.is_cut = True
        if self._orderly and self._whole:
            self._deliver(self._whole)
        self._broke(self._orderly)


class FaultyStream:
    """A stream that stands before another and spoils what crosses it. It is made where an event loop runs.

    Args:
        stream: The stream that it stands before.

    Attributes:
        incoming: What comes from the stream.
        outgoing: What is sent to it.

    Example:
        ```
        faults: list[FaultyStream] = []
        async with connected(server, through=lambda stream: faults.append(FaultyStream(stream)) or faults[0]) as client:
            faults[0].incoming.drop()
            with pytest.raises(RequestTimeout):
                await client.call("add", {"a": 1, "b": 2}, timeout=0.1)
        ```
    """

    def __init__(self, stream: MessageStream) -> None:
        self._stream = stream
        self._arrived: deque[bytes | FrameTooLarge] = deque()
        self._leaving: deque[bytes] = deque()
        self._news = asyncio.Event()
        self._work = asyncio.Event()
        self._end: Exception | None = None
        self._ended = False
        self.incoming = Lane(self._arrive, self._break)
        self.outgoing = Lane(self._leave, self._break)
        self._reading = asyncio.get_running_loop().create_task(self._read())
        self._writing = asyncio.get_running_loop().create_task(self._write())

    # ------------------------------------------------------------------ the message stream

    async def receive(self) -> bytes | None:
        """Return the next frame that came through; see `MessageStream`."""
        while not self._arrived:
            if self._ended:
                if self._end is not None:
                    raise self._end
                return None
            self._news.clear()
            await self._news.wait()
        frame = self._arrived.popleft()
        if isinstance(frame, FrameTooLarge):
            raise frame
        return frame

    async def send(self, frame: bytes) -> None:
        """Send a frame on its way; see `MessageStream`."""
        if self._ended:
            raise self._end or ConnectionLost("cannot send: the connection is closed")
        self.outgoing.take(frame)

    async def aclose(self) -> None:
        """Close both streams. May be called twice."""
        self._finish(None)
        self._arrived.clear()
        self._reading.cancel()
        await asyncio.wait([self._writing], timeout=FLUSH_SECONDS)
        self._writing.cancel()
        await asyncio.wait([self._reading, self._writing])
        await self._stream.aclose()

    # ------------------------------------------------------------------ inside

    async def _read(self) -> None:
        why: Exception | None = None
        try:
            while not self._ended:
                try:
                    frame = await self._stream.receive()
                except FrameTooLarge as error:
                    self._arrive(error)
                    continue
                if frame is None:
                    break
                self.incoming.take(frame)
        except Exception as error:
            why = error
        self.incoming.finish(lambda: self._finish(why))

    async def _write(self) -> None:
        try:
            while not self._ended or self._leaving:
                while self._leaving:
                    await self._stream.send(self._leaving.popleft())
                self._work.clear()
                if not self._ended:
                    await self._work.wait()
        except Exception as error:
            self._finish(error)
        await self._stream.aclose()

    def _arrive(self, frame: bytes | FrameTooLarge) -> None:
        self._arrived.append(frame)
        self._news.set()

    def _leave(self, frame: bytes) -> None:
        self._leaving.append(frame)
        self._work.set()

    def _break(self, orderly: bool) -> None:
        self._finish(None if orderly else ConnectionLost("the test cut the connection"))

    def _finish(self, error: Exception | None) -> None:
        if not self._ended:
            self._ended = True
            self._end = error
            self.incoming.is_cut = self.outgoing.is_cut = True
        self._news.set()
        self._work.set()


def _through(fault: Callable[[bytes], list[bytes] | None], frame: bytes) -> list[bytes]:
    """Return what a fault makes of a frame; the frame itself where it does not hit."""
    hit = fault(frame)
    return [frame] if hit is None else hit


def _has(frame: bytes, pattern: Any) -> bool:
    wanted = of_message(pattern)
    return any(not differences(message, wanted) for message in Frame("in", frame).messages)


def _spoilt(frame: bytes) -> bytes:
    middle = len(frame) // 2
    return frame[:middle] + b"\xff" + frame[middle + 1 :]
