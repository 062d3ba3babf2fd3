"""A connected TCP or Unix socket as a stream of frames: the same lines as over stdio.

"The wire format (one newline-delimited JSON-RPC message per line over a reliable bidirectional byte stream) works
unchanged over Unix domain sockets, TCP connections, or any similar channel" (2026-07-28, basic/transports/stdio).
Nothing is connected or accepted here.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import sys

from modelwire.errors import ConnectionLost
from modelwire.transports import forks
from modelwire.transports.line_reader import LineReader
from modelwire.transports.line_writer import LineWriter, socket_sink

DRAIN_SECONDS = 1.0
"""How long `SocketStream.aclose` lets a slow reader take what is queued."""
LINGER_SECONDS = 0.5
"""How long it then waits for the other end to close, too."""
KEEPALIVE_SECONDS = 60.0
"""Seconds of silence after which TCP itself asks for a sign of life, if nothing else is said."""
_PROBES = 4
_PEER_CREDENTIALS = struct.Struct("iII")  # struct ucred: pid, uid, gid
_NOBODY = (1 << 32) - 1


class SocketStream:
    """Frames over a connected socket; a `modelwire.rpc.message_stream.MessageStream`.

    When the other end closes its side, `receive` returns None and frames can still be sent: a client may close its side
    and wait for the answers to what it has asked.

    Args:
        connection: The socket, which belongs to the stream from now on.
        name: What to call the other end in errors.
        max_message: The longest message in bytes.
        ends_together: Whether to close this side as soon as the other end has closed its own. A client does: no
            answer can come any more.
    """

    def __init__(
        self,
        connection: socket.socket,
        *,
        name: str,
        max_message: int,
        ends_together: bool = False,
    ) -> None:
        connection.setblocking(False)
        self.name = name
        self._socket = connection
        self._ends_together = ends_together
        fd = connection.fileno()
        forks.keep_from_forks(fd)
        self._reader = LineReader(fd, max_message=max_message, name=name)
        # When nothing can be sent any more, what has arrived before is still worth having.
        self._writer = LineWriter(fd, socket_sink(connection), name=name, on_broken=self._reader.fail_when_dry)
        # These two, of `EagerStream`, are called for every frame.
        self.receive_nowait = self._reader.receive_nowait
        self.send_nowait = self._writer.send_nowait

    def preload(self, chunk: bytes) -> None:
        """Take bytes that somebody else has already read from the socket."""
        self._reader.preload(chunk)

    async def receive(self) -> bytes | None:
        """Return the next frame, or None once the other end has closed its side and everything was handed out.

        Raises:
            FrameTooLarge: A line was longer than ``max_message``; the next call goes on behind it.
            ConnectionLost: The connection broke, or `fail` was called.
        """
        frame = await self._reader.receive()
        if frame is None and self._ends_together:
            problem = f"cannot send: {self.name} has closed the connection; open it again"
            self._writer.fail(lambda: ConnectionLost(problem))
            self._end_writing()
        return frame

    async def send(self, frame: bytes) -> None:
        """Queue a frame; waits while more than 1 MiB is queued.

        Raises:
            ConnectionLost: The connection broke, or is closed.
        """
        await self._writer.send(frame)

    def unwritten(self) -> list[bytes]:
        """Return what was queued and never began to be written; see `KnowsUnwritten`."""
        return self._writer.unwritten()

    async def aclose(self) -> None:
        """Close the connection in order, within 1.5 seconds. May be called twice and from any task.

        What is queued is written, for at most a second. Then this side is closed, and what still comes is thrown away
        until the other end closes, too: closed with something unread, TCP would drop what it has not delivered yet.
        """
        try:
            await self._writer.drain(DRAIN_SECONDS)
            self._end_writing()
            await self._reader.exhaust(LINGER_SECONDS)
        finally:
            self.release()

    def release(self) -> None:
        """Close the connection at once. May be called twice."""
        if self._socket.fileno() >= 0:
            self._reader.close()
            self._writer.close()
            forks.close(self._socket.detach())

    def _end_writing(self) -> None:
        with contextlib.suppress(OSError):  # it is broken, or closed
            self._socket.shutdown(socket.SHUT_WR)

    @property
    def user(self) -> int | None:
        """The id of the user at the other end of a Unix socket, as the kernel knows it; None where it does not tell."""
        if self._socket.family != socket.AF_UNIX or sys.platform != "linux":
            return None
        credentials = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER_CREDENTIALS.size)
        uid = _PEER_CREDENTIALS.unpack(credentials)[1]
        return None if uid == _NOBODY else uid

    # ------------------------------------------------------------------ signs of life

    @property
    def blocked(self) -> bool:
        """Whether the other end does not take what is queued for it."""
        return self._writer.blocked

    def stirred(self) -> bool:
        """Whether the other end gave a sign of life since this was asked last: it sent, or took what was waiting."""
        stirred = self._reader.stirred or self._writer.stirred
        self._reader.stirred = self._writer.stirred = False
        return stirred

    def fail(self, problem: str) -> None:
        """Give the connection up: `receive` and `send` raise ConnectionLost."""
        self._writer.fail(lambda: ConnectionLost(problem))
        self._reader.fail(problem)


def tune(connection: socket.socket, heartbeat: float | None = None) -> None:
    """Have a TCP socket send small messages at once, and notice it when the other machine is gone.

    Args:
        connection: The socket; one that is not TCP is left alone.
        heartbeat: Seconds of silence after which TCP asks for a sign of life; after as many again it gives up.
    """
    if connection.family == socket.AF_UNIX:
        return
    idle = KEEPALIVE_SECONDS if heartbeat is None else heartbeat
    options: dict[str, float] = {
        "TCP_NODELAY": 1,
        "TCP_KEEPIDLE": idle,
        "TCP_KEEPALIVE": idle,  # what macOS calls it
        "TCP_KEEPINTVL": idle / _PROBES,
        "TCP_KEEPCNT": _PROBES,
    }
    if heartbeat is not None:
        options["TCP_USER_TIMEOUT"] = 2000 * heartbeat  # milliseconds; holds while data are under way, too
    with contextlib.suppress(OSError):  # the other end may have gone already, and a system may have bounds of its own
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in options.items():
            if hasattr(socket, option):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), max(1, round(value)))
