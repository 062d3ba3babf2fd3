"""Sockets that listen on TCP: every address of a host, on one port, and why it did not work.

Nothing is accepted here.
"""

from __future__ import annotations

import errno
import os
import socket
from typing import Any

from modelwire.errors import ConnectionFailed
from modelwire.transports.socket_address import TcpAddress
from modelwire.transports.socket_connect import Candidate, resolve

_PORT_ATTEMPTS = 10
_NOT_HERE = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}
_REASONS = {
    errno.EADDRINUSE: "the port is taken; end the program that has it, or choose another port (0 takes a free one)",
    errno.EACCES: "permission denied; ports below 1024 are for the administrator, take a higher one",
    errno.EPERM: "permission denied; ports below 1024 are for the administrator, take a higher one",
    errno.EADDRNOTAVAIL: "this machine does not have that address; 127.0.0.1 is for itself, 0.0.0.0 for all it has",
    errno.EAFNOSUPPORT: "this machine has no address of that kind",
}


async def listen_tcp(address: TcpAddress, backlog: int, name: str | None = None) -> list[socket.socket]:
    """Return a socket for each address of a host that the machine has, all listening on one port.

    Args:
        address: The host and the port; 0 takes a free one.
        backlog: How many connections may wait to be accepted.
        name: What to call it in errors; by default the address.

    Raises:
        ConnectionFailed: It cannot be listened there; the message says why, and what to do.
    """
    candidates = await resolve(address, socket.AI_PASSIVE, name)
    for attempt in range(1, _PORT_ATTEMPTS + 1):
        try:
            return _listen_at_all(candidates, address.port, backlog)
        except OSError as error:
            # A port that was free at one address of the host may be taken at another.
            taken = error.errno == errno.EADDRINUSE and address.port == 0 and attempt < _PORT_ATTEMPTS
            if not taken:
                why = _REASONS.get(error.errno or 0) or os.strerror(error.errno or 0)
                raise ConnectionFailed(f"cannot listen on {name or address}: {why}") from None
    raise AssertionError("the last attempt returns or raises")


def _listen_at_all(candidates: list[Candidate], port: int, backlog: int) -> list[socket.socket]:
    """Return a listening socket for each address of a host, all on one port; at least one.

    Raises:
        OSError: An address cannot be bound, but for those that the machine does not have.
    """
    sockets: list[socket.socket] = []
    missing: OSError | None = None
    try:
        for family, where in candidates:
            try:
                sockets.append(_listen_at(family, (where[0], port, *where[2:]), backlog))
            except OSError as error:
                if error.errno not in _NOT_HERE:
                    raise
                missing = error
                continue
            port = sockets[0].getsockname()[1]
        if missing is not None and not sockets:
            raise missing
    except BaseException:
        for listening in sockets:
            listening.close()
        raise
    return sockets


def _listen_at(family: socket.AddressFamily, where: tuple[Any, ...], backlog: int) -> socket.socket:
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # Else :: takes the port of 0.0.0.0 too, on some systems.
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind(where)
        listening.listen(backlog)
    except BaseException:
        listening.close()
        raise
    return listening
