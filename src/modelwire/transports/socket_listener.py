"""Listening on TCP and Unix sockets: many connections at once, up to a number, each looked at before it is served.

What is served over a connection is the caller's business. Nothing is accepted before `SocketListener.start`.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import os
import socket
from collections.abc import Awaitable, Callable
from typing import Any, cast

from modelwire.log import log as _log
from modelwire.protocol import jsonrpc
from modelwire.rules.first_line import FirstLine, Refusal
from modelwire.rules.lines import DEFAULT_MAX_MESSAGE, frame_line
from modelwire.transports import forks
from modelwire.transports.line_reader import READ_SIZE
from modelwire.transports.socket_address import Address, TcpAddress
from modelwire.transports.socket_bind import listen_tcp
from modelwire.transports.socket_file import SocketFile, listen_unix
from modelwire.transports.socket_stream import SocketStream, tune

FIRST_LINE_SECONDS = 30.0
"""How long a connection may take to send its first line: who says nothing must not keep others out."""
MAX_CONNECTIONS = 256
"""How many connections are served at once, if nothing else is said."""
BACKLOG = 128
"""How many connections may wait to be accepted."""
PAUSE_SECONDS = 1.0
"""How long nothing is accepted once the process has no descriptor left."""
_ACCEPTS_PER_TURN = 32
_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}

Serve = Callable[[SocketStream], Awaitable[None]]
"""Serves one connection to its end."""


class SocketListener:
    """Accepts connections and has each served in a task of its own. Made by `listen`.

    Args:
        sockets: What listens.
        address: Where, with the port that was taken.
        file: The file of a Unix socket.
        serve: Serves one connection; when it is cancelled, it ends the connection in order.
        max_connections: How many may be open at once; further ones are closed.
        max_message: The longest message that is accepted, in bytes.
        heartbeat: Seconds of silence after which TCP asks for a sign of life.
    """

    def __init__(
        self,
        sockets: list[socket.socket],
        address: Address,
        file: SocketFile | None,
        serve: Serve,
        *,
        max_connections: int,
        max_message: int,
        heartbeat: float | None,
    ) -> None:
        self.address = address
        self._sockets = sockets
        self._file = file
        self._serve = serve
        self._max_connections = max_connections
        self._max_message = max_message
        self._heartbeat = heartbeat
        self._loop = asyncio.get_running_loop()
        self._connections: dict[asyncio.Task[None], SocketStream] = {}
        self._is_full = False
        self._resuming: asyncio.TimerHandle | None = None
        for listening in sockets:
            listening.setblocking(False)
            forks.keep_from_forks(listening.fileno())

    def start(self) -> None:
        """Begin to accept connections."""
        for listening in self._sockets:
            self._loop.add_reader(listening.fileno(), self._accept, listening)

    async def aclose(self) -> None:
        """Accept no more, and end every connection in order. May be called twice."""
        self._pause()
        if self._resuming is not None:
            self._resuming.cancel()
        file, self._file = self._file, None
        if file is not None:
            file.remove()
        sockets, self._sockets = self._sockets, []
        for listening in sockets:
            forks.close(listening.detach())
        for task in list(self._connections):
            task.cancel()
        if self._connections:
            await asyncio.wait(list(self._connections))

    # ------------------------------------------------------------------ accepting

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_ACCEPTS_PER_TURN):
            try:
                connection, where = listening.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if error.errno not in _EXHAUSTED:
                    continue  # this client has gone again
                self._wait_for_descriptors(error)
                return
            self._take(connection, where)

    def _wait_for_descriptors(self, error: OSError) -> None:
        reason = os.strerror(error.errno or 0)
        _log.error("no connection can be accepted for now (%s); raise the limit, or lower max_connections", reason)
        self._pause()
        self._resuming = self._loop.call_later(PAUSE_SECONDS, self.start)

    def _pause(self) -> None:
        for listening in self._sockets:
            self._loop.remove_reader(listening.fileno())

    def _take(self, connection: socket.socket, where: Any) -> None:
        if len(self._connections) >= self._max_connections:
            self._turn_away(connection)
            return
        self._is_full = False
        tune(connection, self._heartbeat)
        stream = SocketStream(connection, name=_client_name(where), max_message=self._max_message)
        task = self._loop.create_task(self._connection(connection, stream))
        self._connections[task] = stream
        task.add_done_callback(self._gone)

    def _turn_away(self, connection: socket.socket) -> None:
        reason = f"{self._max_connections} connections are open, and max_connections allows no more"
        if not self._is_full:  # once, until there is room again
            self._is_full = True
            _log.warning("connections to %s are closed for now: %s", self.address, reason)
        frame = jsonrpc.encode_error(None, 429, f"the server takes no connection now: {reason}; try again later")
        with contextlib.suppress(OSError), connection:
            connection.setblocking(False)
            connection.send(frame_line(frame))
            connection.shutdown(socket.SHUT_WR)

    def _gone(self, task: asyncio.Task[None]) -> None:
        self._connections.pop(task).release()  # also that of a task which was cancelled before it began
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("serving a connection to %s failed", self.address, exc_info=error)

    # ------------------------------------------------------------------ one connection

    async def _connection(self, connection: socket.socket, stream: SocketStream) -> None:
        opening = FirstLine(self._max_message)
        refusal = await self._opening(connection, stream.name, opening)
        if refusal is not None:
            _log.warning("%s was refused at %s: %s", stream.name, self.address, refusal.reason)
            if refusal.frame is not None:
                stream.send_nowait(refusal.frame)
            await stream.aclose()
        elif opening.complete:
            stream.preload(opening.taken)
            await self._serve(stream)

    async def _opening(self, connection: socket.socket, name: str, opening: FirstLine) -> Refusal | None:
        """Read until the first line is there; return why it is not to be served."""
        try:
            async with asyncio.timeout(FIRST_LINE_SECONDS):
                while not opening.complete:
                    chunk = await self._loop.sock_recv(connection, READ_SIZE)
                    refusal = opening.feed(chunk) if chunk else opening.finish()
                    if refusal is not None or not chunk:
                        return refusal
        except TimeoutError:
            return Refusal(f"it sent no first line within {FIRST_LINE_SECONDS:g} s")
        except OSError as error:
            _log.debug("%s was gone before its first line: %s", name, error)
        return None


async def listen(
    address: Address,
    serve: Serve,
    *,
    max_connections: int = MAX_CONNECTIONS,
    max_message: int = DEFAULT_MAX_MESSAGE,
    heartbeat: float | None = None,
) -> SocketListener:
    """Listen, and return the listener; it accepts nothing before its `start`.

    Args:
        address: Where. A host name is listened to at each of its addresses, on one port; port 0 takes a free one.
        serve: Serves one connection to its end. When it is cancelled it ends the connection in order.
        max_connections: How many may be open at once; further ones are told so and closed.
        max_message: The longest message that is accepted, in bytes.
        heartbeat: Seconds of silence after which TCP asks for a sign of life.

    Raises:
        ConnectionFailed: It cannot be listened there; the message says why, and what to do.
    """
    file: SocketFile | None = None
    if isinstance(address, TcpAddress):
        sockets = await listen_tcp(address, BACKLOG)
        address = TcpAddress(address.host, sockets[0].getsockname()[1])
        _warn_of_strangers(address, sockets)
    else:
        listening, file = listen_unix(address, BACKLOG)
        sockets = [listening]
    return SocketListener(
        sockets,
        address,
        file,
        serve,
        max_connections=max_connections,
        max_message=max_message,
        heartbeat=heartbeat,
    )


def _warn_of_strangers(address: TcpAddress, sockets: list[socket.socket]) -> None:
    hosts = [listening.getsockname()[0] for listening in sockets]
    if not all(ipaddress.ip_address(host).is_loopback for host in hosts):
        _log.warning(
            "%s can be reached from other machines, and whoever reaches it may use the server: nobody has to say who "
            "they are, and nothing is encrypted. Listen on 127.0.0.1, unless the network keeps strangers out",
            address,
        )


def _client_name(where: Any) -> str:
    if not isinstance(where, tuple):
        return "a client on this machine"
    host, port = cast("tuple[Any, ...]", where)[:2]
    return f"the client [{host}]:{port}" if ":" in host else f"the client {host}:{port}"
