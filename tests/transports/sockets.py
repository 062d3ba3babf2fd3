"""What tests of sockets need: pairs of connected ones, and counts of what is left over."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import struct
from contextlib import ExitStack
from typing import Any

import pytest

from modelwire.transports.socket_address import Address, TcpAddress, UnixAddress
from modelwire.transports.socket_stream import SocketStream

MiB = 1024 * 1024


def connected(stack: ExitStack, kind: str) -> tuple[socket.socket, socket.socket]:
    """Two connected sockets, "tcp" or "unix", that are closed when the test ends."""
    if kind == "unix":
        one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    else:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            one = socket.create_connection(listening.getsockname())
            other, _ = listening.accept()
    for end in (one, other):
        stack.callback(end.close)
        end.setblocking(False)
    return one, other


def stream(connection: socket.socket, *, max_message: int = 64 * MiB, ends_together: bool = False) -> SocketStream:
    return SocketStream(connection, name="the other end", max_message=max_message, ends_together=ends_together)


def resolving(monkeypatch: pytest.MonkeyPatch, *hosts: str) -> None:
    """Let every name have these addresses."""

    async def getaddrinfo(self: Any, host: str, port: int, **_: Any) -> Any:
        families = [socket.AF_INET6 if ":" in one else socket.AF_INET for one in hosts]
        return [(family, socket.SOCK_STREAM, 6, "", (one, port)) for family, one in zip(families, hosts)]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", getaddrinfo)


def reset(connection: socket.socket) -> None:
    """Close a TCP connection as a crash does: with RST."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def descriptors() -> int:
    """How many descriptors this process has open, without those that earlier tests forgot."""
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def tasks() -> int:
    """How many tasks of this loop are not done."""
    return len(asyncio.all_tasks())


class RawClient:
    """A client that sends and gets bytes."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._loop = asyncio.get_running_loop()
        self._read = b""

    @classmethod
    async def to(cls, address: Address) -> RawClient:
        family = socket.AF_UNIX if isinstance(address, UnixAddress) else socket.AF_INET
        where = address.path if isinstance(address, UnixAddress) else (address.host, address.port)
        if isinstance(address, TcpAddress) and ":" in address.host:
            family = socket.AF_INET6
        connection = socket.socket(family, socket.SOCK_STREAM)
        connection.setblocking(False)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)  # else the system may take mebibytes for it
        await asyncio.sleep(0)  # the listener gets its turn: else its queue is soon full
        await asyncio.get_running_loop().sock_connect(connection, where)
        return cls(connection)

    async def write(self, data: bytes) -> None:
        await self._loop.sock_sendall(self.connection, data)

    def write_eof(self) -> None:
        self.connection.shutdown(socket.SHUT_WR)

    async def line(self) -> bytes:
        """The next line, or what comes before the end."""
        while b"\n" not in self._read:
            chunk = await self._loop.sock_recv(self.connection, MiB)
            if not chunk:
                break
            self._read += chunk
        line, end, self._read = self._read.partition(b"\n")
        return line + end

    async def rest(self) -> bytes:
        """Everything until the server closes."""
        data, self._read = self._read, b""
        try:
            while chunk := await self._loop.sock_recv(self.connection, MiB):
                data += chunk
        except ConnectionResetError:
            pass
        return data

    def close(self) -> None:
        self.connection.close()

    def reset(self) -> None:
        """Close as a crash does."""
        reset(self.connection)
