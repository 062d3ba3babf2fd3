"""A child's stderr: the last of it kept, lines forwarded by choice, observers told.

It is always read, so that a chatty child is never stuck. What it says is never interpreted: "The client ... SHOULD
NOT assume stderr output indicates error conditions" (2026-07-28, basic/transports/stdio).
"""

from __future__ import annotations

import asyncio
import codecs
import io
import os
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from modelwire.log import log as _log
from modelwire.rpc.observer import Observer, tell
from modelwire.transports import forks

TAIL_BYTES = 64 * 1024
_READ_SIZE = 64 * 1024
_CHUNKS = 256
_DRAIN_READS = 16
"""A child that has ended left at most a pipe's worth; its own children may go on writing for ever."""


class Writable(Protocol):
    """A file object: text, such as ``sys.stderr``, or binary."""

    def write(self, text: Any, /) -> object:
        """Take a line, with its line end."""
        ...


StderrTarget = Callable[[str], object] | Writable


class StderrReader:
    """Reads one child's stderr until it ends.

    Args:
        fd: The read end of the pipe, non-blocking; belongs to this object.
        target: A file object, or a function that takes one line without its end. None: nothing is forwarded.
        observers: Told of every chunk.
    """

    def __init__(self, fd: int, target: StderrTarget | None, observers: Sequence[Observer]) -> None:
        self._loop = asyncio.get_running_loop()
        self._fd = fd
        self._put = None if target is None else _line_taker(target)
        self._observers = observers
        self._tail = bytearray()
        self._total = 0
        self._chunks: deque[tuple[float, int]] = deque(maxlen=_CHUNKS)
        """When each of the last chunks came, and how much had come before it."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._line = ""
        self._closed = False
        self._loop.add_reader(fd, self._read)

    @property
    def tail(self) -> str:
        """The last 64 KiB, as text."""
        return self._tail.decode("utf-8", "replace")

    def before(self, when: float) -> int:
        """Return how many characters of `tail` had come before a time of the loop's clock."""
        total = next((total for came, total in self._chunks if came >= when), self._total)
        kept = total - (self._total - len(self._tail))
        return len(self._tail[: max(kept, 0)].decode("utf-8", "replace"))

    def drain(self) -> None:
        """Read what is there now."""
        for _ in range(_DRAIN_READS):
            if self._closed or not self._read():
                return

    def close(self) -> None:
        """Read what is there, and stop."""
        self.drain()
        self._end()

    def _read(self) -> bool:
        try:
            chunk = os.read(self._fd, _READ_SIZE)
        except BlockingIOError:
            return False
        except OSError:
            chunk = b""
        if not chunk:
            self._end()
            return False
        self._chunks.append((self._loop.time(), self._total))
        self._total += len(chunk)
        self._tail += chunk
        del self._tail[:-TAIL_BYTES]
        tell(self._observers, lambda observer: observer.stderr(chunk))
        if self._put is not None:
            self._forward(self._decoder.decode(chunk))
        return True

    def _end(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._loop.remove_reader(self._fd)
        forks.close(self._fd)
        if self._put is not None:
            self._forward(self._decoder.decode(b"", final=True))
            if self._line:
                self._forward("\n")

    def _forward(self, text: str) -> None:
        *lines, self._line = (self._line + text).split("\n")
        if len(self._line) > TAIL_BYTES:  # a progress bar without line ends
            lines.append(self._line)
            self._line = ""
        for line in lines:
            self._put_line(line.removesuffix("\r"))

    def _put_line(self, line: str) -> None:
        if self._put is None:
            return
        try:
            self._put(line)
        except Exception:
            self._put = None
            _log.exception("forwarding a child's stderr failed; it is only kept from now on")


def _line_taker(target: StderrTarget) -> Callable[[str], object]:
    write = getattr(target, "write", None)
    if write is None:
        assert callable(target)
        return target
    if isinstance(target, io.RawIOBase | io.BufferedIOBase):
        return lambda line: write(line.encode("utf-8", "replace") + b"\n")
    return lambda line: write(line + "\n")
