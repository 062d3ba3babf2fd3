"""Servers over HTTP that are measured: started on a port of loopback, fed over kept-alive connections, timed, ended.

The load generator is one thread with plain sockets, so that it costs little, and every request is made beforehand.
Knows nothing of what the messages mean.
"""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.child import SILENCE, BenchError, Child

UP = 30.0
"""Seconds that a server may take to accept its first connection."""
_READ = 1 << 18


@dataclass(frozen=True)
class Response:
    """What answered one request.

    Attributes:
        status: The status.
        headers: The headers, by lower-case name.
        body: The body, without the marks of chunks.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def messages(self) -> list[bytes]:
        """The JSON-RPC messages that it carries, as a body of JSON or as events."""
        if not self.headers.get("content-type", "").startswith("text/event-stream"):
            return [self.body] if self.body else []
        lines = self.body.replace(b"\r\n", b"\n").split(b"\n")
        return [line[5:].strip() for line in lines if line.startswith(b"data:") and len(line) > len("data: ")]


def free_port() -> int:
    """Return a port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def post(port: int, body: bytes, headers: Mapping[str, str]) -> bytes:
    """Return a POST to the endpoint, as bytes."""
    given = {
        "host": f"127.0.0.1:{port}",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "content-length": str(len(body)),
        **headers,
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body


class Connection:
    """One connection, which is kept alive, with one request at a time.

    Args:
        port: Where the server listens.
    """

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = bytearray()

    def send(self, request: bytes) -> None:
        """Send a request."""
        self.socket.sendall(request)

    def receive(self) -> Response | None:
        """Read what is there; return the response once it has come as a whole.

        Raises:
            BenchError: The server closed the connection, or said more than it was asked.
        """
        chunk = self.socket.recv(_READ)
        if not chunk:
            raise BenchError(f"the server closed a connection; it had said {bytes(self._received[-500:])!r}")
        self._received += chunk
        found = _response(self._received)
        if found is not None:
            self._received.clear()
        return found


def _response(received: bytearray) -> Response | None:
    end = received.find(b"\r\n\r\n")
    if end < 0:
        return None
    first, *lines = received[:end].decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body: bytes | None = bytes(received[end + 4 :])
    if headers.get("transfer-encoding") == "chunked":
        body = _chunks(received, end + 4)
        if body is None:
            return None
    else:
        length = int(headers.get("content-length", 0))
        if len(body) < length:
            return None
        if len(body) > length:
            raise BenchError(f"the server said more than it was asked: {body[length : length + 500]!r}")
    return Response(int(first.split(" ")[1]), headers, body)


def _chunks(received: bytearray, at: int) -> bytes | None:
    if not received.endswith(b"0\r\n\r\n"):
        return None
    found: list[bytes] = []
    while True:
        end = received.find(b"\r\n", at)
        if end < 0:
            return None
        size = int(received[at:end], 16)
        at = end + 2 + size + 2
        if at > len(received):
            return None
        if not size:
            return b"".join(found)
        found.append(bytes(received[end + 2 : end + 2 + size]))


class WebChild:
    """A server in a process of its own, and connections to it.

    Args:
        command: What to run; the port is its last argument.
        connections: How many there are.
    """

    def __init__(self, command: Sequence[str], connections: int) -> None:
        self.port = free_port()
        self._child = Child([*command, str(self.port)])
        self._connections: list[Connection] = []
        try:
            self._wait_until_up()
            self._connections += [Connection(self.port) for _ in range(connections)]
        except BaseException:
            self.close()
            raise

    def _wait_until_up(self) -> None:
        until = time.monotonic() + UP
        while True:
            try:
                Connection(self.port).socket.close()
                return
            except ConnectionRefusedError:
                if time.monotonic() > until or not self._child.alive:
                    raise self._child.gone() from None
                time.sleep(0.02)

    @property
    def cpu(self) -> float:
        """CPU seconds so far; see `benchmarks.child.Child.cpu`."""
        return self._child.cpu

    @property
    def memory(self) -> float:
        """Resident memory in MiB."""
        return self._child.memory

    @property
    def descriptors(self) -> int:
        """How many descriptors the server has open."""
        return self._child.descriptors

    def exchange(self, requests: Sequence[bytes]) -> tuple[float, list[Response]]:
        """Send requests, one at a time on each connection, and return CPU seconds of the server and its responses.

        Raises:
            BenchError: The server closes a connection, says too much, or nothing for a minute.
        """
        found: list[Response] = []
        ready = select.poll()
        by_number = {connection.socket.fileno(): connection for connection in self._connections}
        waiting = iter(requests)
        before = self.cpu
        for number, connection in by_number.items():
            request = next(waiting, None)
            if request is not None:
                ready.register(number, select.POLLIN)
                connection.send(request)
        while len(found) < len(requests):
            events = ready.poll(SILENCE * 1000)
            if not events:
                raise BenchError(f"the server said nothing for {SILENCE:.0f} seconds")
            for number, _ in events:
                response = by_number[number].receive()
                if response is not None:
                    found.append(response)
                    request = next(waiting, None)
                    if request is not None:
                        by_number[number].send(request)
        return self.cpu - before, found

    def close(self) -> None:
        """Close the connections and end the server. May be called twice."""
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.socket.close()
        self._child.end()
