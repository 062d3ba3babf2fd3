"""A server's own standard input and output as a stream of frames.

While it is open, nothing but frames reaches the real stdout and nobody else reads the real stdin: file descriptor 0
is ``/dev/null`` and file descriptor 1 leads to stderr, for this process and for every child it starts. `aclose` puts
everything back. The flags of what was inherited are not changed: a terminal, or a pipe shared with stderr, may be in
use by others. POSIX only.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import socket
import stat
import sys
from collections.abc import Callable, Generator
from typing import ClassVar, TextIO

from modelwire.errors import ConfigError
from modelwire.rules.lines import DEFAULT_MAX_MESSAGE
from modelwire.transports import forks
from modelwire.transports.line_reader import LineReader
from modelwire.transports.line_writer import LineWriter, Sink, cautious_sink, direct_sink, socket_sink

DRAIN_SECONDS = 1.0
"""How long `StdioStream.aclose` lets a slow reader take what is queued."""

_PTMX = os.makedev(5, 2)
"""Opening this device again makes a new terminal instead of the same one."""

_FIRST_PRIVATE_FD = 3


class StdioStream:
    """Frames over stdin and stdout; a `modelwire.rpc.message_stream.MessageStream`. Made by `open_stdio`.

    The end of stdin ends `receive`; frames can still be sent. When the reader of stdout is gone, `send` raises
    ConnectionLost, and so does `receive` once it has handed out what was read: no answer can leave any more.
    """

    def __init__(self, takeover: _Takeover, max_message: int) -> None:
        self._takeover: _Takeover | None = takeover
        stdin, stdout = takeover.stdin, takeover.stdout
        self._is_terminal = os.isatty(stdin)
        polled = not stat.S_ISREG(os.fstat(stdin).st_mode)
        self._reader = LineReader(stdin, max_message=max_message, name="stdin", polled=polled)
        if takeover.read_ahead:
            self._reader.preload(takeover.read_ahead)
        self._out = _Output(stdout)
        self._writer = LineWriter(self._out.fd, self._out.sink, name="stdout", on_broken=self._reader.fail)
        # These two, of `EagerStream`, are called for every frame.
        self.receive_nowait = self._reader.receive_nowait
        self.send_nowait = self._writer.send_nowait

    @property
    def is_terminal(self) -> bool:
        """Whether a person may be typing: stdin is a terminal."""
        return self._is_terminal

    async def receive(self) -> bytes | None:
        """Return the next frame, or None at the end of stdin.

        Raises:
            FrameTooLarge: A line was longer than ``max_message``; the next call goes on behind it.
            ConnectionLost: stdin broke, or stdout did.
        """
        return await self._reader.receive()

    async def send(self, frame: bytes) -> None:
        """Queue a frame; waits while more than 1 MiB is queued.

        Raises:
            ConnectionLost: stdout is closed or broken, or the stream was closed.
        """
        await self._writer.send(frame)

    async def aclose(self) -> None:
        """Write what is queued, for at most a second, and give stdin and stdout back."""
        try:
            await self._writer.drain(DRAIN_SECONDS)
        finally:
            self._release()

    def _release(self) -> None:
        takeover, self._takeover = self._takeover, None
        if takeover is not None:
            self._reader.close()
            self._writer.close()
            self._out.close()
            takeover.undo()


async def open_stdio(*, max_message: int = DEFAULT_MAX_MESSAGE) -> StdioStream:
    """Take over the process's stdin and stdout.

    They may be a pipe, FIFO, regular file, terminal, socket or ``/dev/null``, or closed. From now on ``print``,
    ``os.write(1, ...)`` and children write to stderr, and ``sys.stdin`` and children read an empty input.

    Args:
        max_message: The longest message in bytes.

    Raises:
        ConfigError: They are already taken over in this process.
    """
    takeover, _Takeover.held = _Takeover.held or _Takeover(), None
    try:
        return StdioStream(takeover, max_message)
    except BaseException:
        takeover.undo()
        raise


@contextlib.contextmanager
def held_stdio() -> Generator[None]:
    """Take over the process's stdin and stdout now, for the first `open_stdio` inside the block.

    For programs that run foreign code before they serve: what it prints goes to stderr already, and it cannot read what
    the client has sent. Nothing is read yet. If nobody opens the stream, the end of the block gives both back.

    Raises:
        ConfigError: They are already taken over in this process.
    """
    takeover = _Takeover.held = _Takeover()
    try:
        yield
    finally:
        if _Takeover.held is takeover:
            _Takeover.held = None
            takeover.undo()


class _Takeover:
    """The exchange of file descriptors 0 and 1, and its undoing."""

    active = False
    held: ClassVar[_Takeover | None] = None
    """The one that `held_stdio` keeps for whoever opens the stream."""

    def __init__(self) -> None:
        if _Takeover.active:
            raise ConfigError("stdin and stdout already belong to another open stdio stream; close that one first")
        _Takeover.active = True
        self._undo = contextlib.ExitStack()
        self._undo.callback(setattr, _Takeover, "active", False)
        with contextlib.ExitStack() as on_failure:
            on_failure.callback(self._undo.close)
            holes = self._fill_holes()
            self.stdout = self._take_stdout(sys.__stdout__ is not None and 1 not in holes)
            self.stdin, self.read_ahead = self._take_stdin(sys.__stdin__ is not None and 0 not in holes)
            on_failure.pop_all()

    def undo(self) -> None:
        """Put everything back, the last change first."""
        self._undo.close()

    def _fill_holes(self) -> set[int]:
        """Put ``/dev/null`` where a standard descriptor is closed, so that no file opened later gets its number."""
        holes: set[int] = set()
        for fd in (0, 1, 2):
            if not _is_open(fd):
                _replace(fd, os.O_RDWR)
                self._undo.callback(os.close, fd)
                holes.add(fd)
        return holes

    def _take_stdout(self, is_ours: bool) -> int:
        """Keep stdout, and let descriptor 1 lead to stderr."""
        if not is_ours:
            # The process was started without it, and what may have its number since is somebody else's.
            return self._keep(_open_null(os.O_RDONLY), close=True)  # every write fails
        private = self._keep(1)
        for stream in (sys.stdout, sys.__stdout__):
            _flush(stream)
        if sys.__stderr__ is None:
            _replace(1, os.O_WRONLY)
        else:
            os.dup2(2, 1)
        self._undo.callback(os.dup2, private, 1)
        self._undo.callback(_flush, sys.stdout)
        self._write_lines_at_once(sys.stdout)
        return private

    def _take_stdin(self, is_ours: bool) -> tuple[int, bytes]:
        """Keep stdin, and let descriptor 0 be empty. Also returns what ``sys.stdin`` had already read."""
        if not is_ours:
            return self._keep(_open_null(os.O_RDONLY), close=True), b""
        private = self._keep(0)
        _replace(0, os.O_RDONLY)
        self._undo.callback(os.dup2, private, 0)
        return private, _read_ahead(sys.__stdin__)

    def _keep(self, fd: int, *, close: bool = False) -> int:
        """Return a private duplicate that `undo` closes."""
        private = _duplicate(fd)
        forks.keep_from_forks(private)
        self._undo.callback(forks.close, private)
        if close:
            os.close(fd)
        # An event loop (uvloop does) may make non-blocking what it polls.
        self._undo.callback(_restore_flags, private, fcntl.fcntl(private, fcntl.F_GETFL))
        return private

    def _write_lines_at_once(self, stream: object) -> None:
        """Buffered text would reach stderr late, and out of order."""
        if isinstance(stream, io.TextIOWrapper) and not stream.line_buffering:
            stream.reconfigure(line_buffering=True)
            self._undo.callback(stream.reconfigure, line_buffering=False)


class _Output:
    """The way to write to one descriptor without blocking and without touching its flags."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.sink: Sink
        self._close: Callable[[], object] = lambda: None
        mode = os.fstat(fd).st_mode
        if stat.S_ISSOCK(mode):
            self._use_socket(fd)
        elif stat.S_ISREG(mode) or (stat.S_ISCHR(mode) and not os.isatty(fd)):
            # Never full. A file is not opened again: its offset is shared with stderr under ``2>&1``.
            self.sink = direct_sink(fd)
        else:
            self._use_private(fd)

    def close(self) -> None:
        """Close what was opened here, not the descriptor that was given."""
        self._close()

    def _use_socket(self, fd: int) -> None:
        self.fd = _duplicate(fd)
        forks.keep_from_forks(self.fd)
        connection = socket.socket(fileno=self.fd)
        self.sink = socket_sink(connection)
        self._close = lambda: forks.close(connection.detach())

    def _use_private(self, fd: int) -> None:
        private = _open_again(fd)
        if private is None:
            self.sink = cautious_sink(fd)
            return
        forks.keep_from_forks(private)
        self.fd = private
        self.sink = direct_sink(private)
        self._close = lambda: forks.close(private)


def _open_again(fd: int) -> int | None:
    """Return a non-blocking open file description of our own for the same pipe or terminal, or None.

    None where there is no Linux ``/proc``, where the pipe belongs to another user, or where no reader is left.
    """
    before = os.fstat(fd)
    if stat.S_ISCHR(before.st_mode) and before.st_rdev == _PTMX:
        return None
    try:
        again = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError:
        return None
    after = os.fstat(again)
    if (after.st_dev, after.st_ino) == (before.st_dev, before.st_ino):
        return again
    os.close(again)
    return None


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _duplicate(fd: int) -> int:
    """Return a duplicate that no child inherits, away from the standard descriptors' numbers."""
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FIRST_PRIVATE_FD)


def _open_null(access: int) -> int:
    return os.open(os.devnull, access | os.O_CLOEXEC)


def _replace(fd: int, access: int) -> None:
    """Let a standard descriptor be ``/dev/null``, for children too."""
    null = _open_null(access)
    if null == fd:
        os.set_inheritable(fd, True)
    else:
        os.dup2(null, fd)
        os.close(null)


def _read_ahead(stream: TextIO | None) -> bytes:
    """Return what ``sys.stdin`` took from the real stdin beyond what the program asked for. Its input is empty now."""
    if not isinstance(stream, io.TextIOWrapper) or stream.closed:
        return b""
    try:
        return stream.read().encode(stream.encoding, stream.errors or "strict")
    except (OSError, ValueError):
        return b""


def _flush(stream: object) -> None:
    if isinstance(stream, io.TextIOBase):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()


def _restore_flags(fd: int, flags: int) -> None:
    if fcntl.fcntl(fd, fcntl.F_GETFL) != flags:
        fcntl.fcntl(fd, fcntl.F_SETFL, flags)
