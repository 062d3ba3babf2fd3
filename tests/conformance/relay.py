"""Has the suite's client speak an older revision. Whatever it is told to test, it asks for 2025-11-25.

A relay of bytes between client and server, which knows nothing but the name of the revision: names are of one length,
so nothing else changes. What is not a request for that revision goes through as it is.
"""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from collections.abc import Generator
from urllib.parse import urlsplit

ASKED = b'"protocolVersion":"2025-11-25"'
"""As the suite's client writes it."""
_CHUNK = 1 << 16


class _Relay(socketserver.ThreadingTCPServer):
    daemon_threads = True
    upstream: tuple[str, int]
    wanted: bytes
    changed = 0


class _Connection(socketserver.BaseRequestHandler):
    request: socket.socket

    def handle(self) -> None:
        relay = self.server
        assert isinstance(relay, _Relay)
        with socket.create_connection(relay.upstream) as upstream:
            back = threading.Thread(target=_pump, args=(upstream, self.request), daemon=True)
            back.start()
            with contextlib.suppress(OSError):
                while chunk := self.request.recv(_CHUNK):
                    relay.changed += chunk.count(ASKED)
                    upstream.sendall(chunk.replace(ASKED, relay.wanted))
            with contextlib.suppress(OSError):
                upstream.shutdown(socket.SHUT_WR)
            back.join()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while chunk := source.recv(_CHUNK):
            sink.sendall(chunk)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def speaking(revision: str, url: str) -> Generator[str]:
    """Return a URL at which a server is asked for a revision by clients that ask for 2025-11-25.

    Args:
        revision: The revision.
        url: The server.

    Raises:
        AssertionError: Nobody asked, so it made no difference.
    """
    parts = urlsplit(url)
    with _Relay(("127.0.0.1", 0), _Connection) as relay:
        relay.upstream = (parts.hostname or "", parts.port or 80)
        relay.wanted = ASKED.replace(b"2025-11-25", revision.encode())
        serving = threading.Thread(target=relay.serve_forever, args=(0.05,), daemon=True)
        serving.start()
        try:
            yield f"http://localhost:{relay.server_address[1]}{parts.path}"
        finally:
            relay.shutdown()
            serving.join()
    assert relay.changed, f"the suite's client never asked for {ASKED.decode()}, so {revision} was not tested"
