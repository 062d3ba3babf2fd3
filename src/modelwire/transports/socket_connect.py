"""Connecting to a TCP or Unix socket: names, several addresses of one host, and why it did not work.

The stream over the connection is `modelwire.transports.socket_stream`'s business.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import stat
from collections.abc import Sequence
from itertools import chain, zip_longest
from typing import Any, TypeAlias

from modelwire.errors import ConfigError, ConnectionFailed
from modelwire.rules.lines import DEFAULT_MAX_MESSAGE
from modelwire.transports.socket_address import Address, TcpAddress, UnixAddress
from modelwire.transports.socket_stream import SocketStream, tune

STAGGER_SECONDS = 0.25
"""How long one address of a host is tried before the next is tried beside it (RFC 8305, Connection Attempt Delay)."""
_FULL_SECONDS = 0.02
"""How long to wait before a Unix socket whose queue of connections is full is tried again."""

Candidate: TypeAlias = tuple[socket.AddressFamily, tuple[Any, ...]]
"""One address of a host: its family, and the form in which the system takes it."""

_REASONS = {
    errno.ECONNREFUSED: "nothing listens there. Is the server running, and is the port right?",
    errno.ETIMEDOUT: "no answer. Is the machine running, and does a firewall let the port through?",
    errno.EHOSTUNREACH: "the machine cannot be reached. Is it running, in this network?",
    errno.ENETUNREACH: "its network cannot be reached from here",
    errno.EADDRNOTAVAIL: "this machine has no address of that kind",
    errno.EAFNOSUPPORT: "this machine has no address of that kind",
    errno.EACCES: "this machine's own rules forbid it",
    errno.EPERM: "this machine's own rules forbid it",
}
_UNIX_REASONS = {
    errno.ENOENT: "there is no such file. Is the server running?",
    errno.ENOTDIR: "there is no such file. Is the server running?",
    errno.ECONNREFUSED: "nobody listens there: the file was left by a server that has ended. Start it again",
    errno.EACCES: "permission denied: only the user who started the server may connect",
    errno.EPERM: "permission denied: only the user who started the server may connect",
    errno.EPROTOTYPE: "it is a socket of another kind, which carries no streams",
}


async def connect_socket(
    address: Address,
    *,
    max_message: int = DEFAULT_MAX_MESSAGE,
    heartbeat: float | None = None,
) -> SocketStream:
    """Connect, and return the stream.

    Args:
        address: Where to. A host that has several addresses is tried at all of them, the next after a quarter of a
            second or once one has failed; the first that answers is taken.
        max_message: The longest message that is accepted, in bytes.
        heartbeat: Seconds of silence after which TCP asks for a sign of life.

    Raises:
        ConnectionFailed: It did not work; the message says what was tried, why it failed and what to do.
        ConfigError: The port is 0, which only a listener can use.
    """
    if isinstance(address, TcpAddress) and address.port == 0:
        raise ConfigError(f"cannot connect to {address}: port 0 is for servers, which then take a free one; name that")
    connection = await (connect_tcp(address) if isinstance(address, TcpAddress) else _connect_unix(address))
    tune(connection, heartbeat)
    return SocketStream(connection, name=str(address), max_message=max_message, ends_together=True)


# ------------------------------------------------------------------ TCP


async def connect_tcp(address: TcpAddress, name: str | None = None) -> socket.socket:
    """Connect to a host, at whichever of its addresses answers first.

    Args:
        address: The host and the port.
        name: What to call it in errors; by default the address.

    Raises:
        ConnectionFailed: It did not work.
    """
    name = name or str(address)
    race = _Race(interleaved(await resolve(address, name=name)))
    connection = await race.run()
    if connection is None:
        raise _failed(name, race.why_lost())
    return connection


async def connect_first(address: TcpAddress) -> socket.socket:
    """Connect to a host, at whichever of its addresses answers first; for those who have words of their own for errors.

    Raises:
        OSError: It did not work; where there are several addresses, this is why not at the first one that failed.
    """
    race = _Race(interleaved(await look_up(address)))
    connection = await race.run()
    if connection is None:
        raise race.errors[0]
    return connection


class _Race:
    """Tries the addresses of one host, side by side but not all at once (RFC 8305).

    Args:
        candidates: The addresses, in the order of preference.
    """

    def __init__(self, candidates: list[Candidate]) -> None:
        self._candidates = candidates
        self._running: dict[asyncio.Task[socket.socket], str] = {}
        self._reasons: dict[str, str] = {}
        self.errors: list[OSError] = []
        """Why an address was not reached, for each that was not."""

    async def run(self) -> socket.socket | None:
        """Return the first connection that is made; None when every address has failed."""
        try:
            return await self._run()
        finally:
            self._abandon()

    async def _run(self) -> socket.socket | None:
        for candidate in self._candidates:
            self._running[asyncio.create_task(_attempt(candidate))] = str(candidate[1][0])
            if (won := await self._next(STAGGER_SECONDS)) is not None:
                return won
        while self._running:
            if (won := await self._next(None)) is not None:
                return won
        return None

    async def _next(self, patience: float | None) -> socket.socket | None:
        """Return a connection once there is one; None when an attempt has failed, or the time is over."""
        done, _ = await asyncio.wait(self._running, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            error = task.exception()
            if error is None:
                del self._running[task]
                return task.result()
            if not isinstance(error, OSError):
                raise error
            self.errors.append(error)
            number = error.errno or 0
            self._reasons[self._running.pop(task)] = _REASONS.get(number) or os.strerror(number)
        return None

    def _abandon(self) -> None:
        """End the attempts that still run; a connection that one of them makes is closed."""
        for task in self._running:
            task.add_done_callback(_close_result)
            task.cancel()

    def why_lost(self) -> str:
        """Say why every address failed, and which were tried where there were several."""
        reasons = set(self._reasons.values())
        if len(reasons) > 1:
            return "; ".join(f"at {where} {reason}" for where, reason in self._reasons.items())
        tried = f" (Tried: {', '.join(self._reasons)}.)" if len(self._reasons) > 1 else ""
        return reasons.pop() + tried


async def _attempt(candidate: Candidate) -> socket.socket:
    family, where = candidate
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, where)
        if connection.getsockname() == connection.getpeername():
            # Nobody listens, and the system has given us the very port that we called: TCP then answers itself.
            raise ConnectionRefusedError(errno.ECONNREFUSED, "connected to itself")
    except BaseException:
        connection.close()
        raise
    return connection


def _close_result(task: asyncio.Task[socket.socket]) -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().close()


async def resolve(address: TcpAddress, flags: int = 0, name: str | None = None) -> list[Candidate]:
    """Return the addresses that a host has, in the system's order.

    Args:
        address: The host and the port.
        flags: Flags of ``getaddrinfo``.
        name: What to call it in errors; by default the address.

    Raises:
        ConnectionFailed: The name cannot be resolved.
    """
    try:
        return await look_up(address, flags)
    except (socket.gaierror, UnicodeError):
        why = f"the name {address.host!r} cannot be resolved. Is it spelled right, and is the network there?"
        raise ConnectionFailed(f"cannot use {name or address}: {why}") from None


async def look_up(address: TcpAddress, flags: int = 0) -> list[Candidate]:
    """The same.

    Raises:
        socket.gaierror, UnicodeError: The name cannot be resolved.
    """
    numeric = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    with contextlib.suppress(socket.gaierror, UnicodeError):
        # An address needs no thread to be looked up in.
        return _candidates(
            socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=flags | numeric)
        )
    loop = asyncio.get_running_loop()
    return _candidates(await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=flags))


def _candidates(found: Sequence[tuple[Any, Any, Any, Any, Any]]) -> list[Candidate]:
    return list(dict.fromkeys((family, where) for family, _, _, _, where in found))


def interleaved(candidates: list[Candidate]) -> list[Candidate]:
    """Return addresses with their families in turn, so that a dead family costs one attempt (RFC 8305, section 4)."""
    families = dict.fromkeys(family for family, _ in candidates)
    by_family = ([one for one in candidates if one[0] == family] for family in families)
    return [one for one in chain.from_iterable(zip_longest(*by_family)) if one is not None]


# ------------------------------------------------------------------ Unix


async def _connect_unix(address: UnixAddress) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        while True:
            try:
                connection.connect(address.path)
                return connection
            except BlockingIOError:
                # The server's queue of connections is full. The loop's sock_connect takes this for "soon connected".
                await asyncio.sleep(_FULL_SECONDS)
    except OSError as error:
        connection.close()
        raise _failed(address, _why_unix(address.path, error)) from None
    except BaseException:
        connection.close()
        raise


def _why_unix(path: str, error: OSError) -> str:
    with contextlib.suppress(OSError):
        if error.errno == errno.ECONNREFUSED and not stat.S_ISSOCK(os.stat(path).st_mode):
            return "the file is no socket"
    return _UNIX_REASONS.get(error.errno or 0) or os.strerror(error.errno or 0)


def _failed(name: object, why: str) -> ConnectionFailed:
    return ConnectionFailed(f"cannot connect to {name}: {why}")
