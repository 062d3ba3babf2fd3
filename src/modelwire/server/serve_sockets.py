"""Serving a `Server` over TCP and Unix sockets: every connection is a conversation of its own.

How connections are accepted is `modelwire.transports.socket_listener`'s business.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from modelwire.server.endpoints import Endpoint, ServeOptions, given_seconds, refuse_others
from modelwire.server.lifespan import Running
from modelwire.server.serve import serve_connection
from modelwire.transports.socket_address import parse_address
from modelwire.transports.socket_listener import MAX_CONNECTIONS, SocketListener, listen
from modelwire.transports.socket_stream import SocketStream

if TYPE_CHECKING:
    from modelwire.server.server import Server


async def open_sockets(server: Server, endpoint: str, options: ServeOptions) -> Endpoint:
    """Listen on ``tcp://HOST:PORT`` or ``unix:///PATH``.

    Raises:
        ConfigError: The endpoint or an option makes no sense.
        ConnectionFailed: It cannot be listened there.
    """
    address = parse_address(endpoint)
    refuse_others(options, ("max_connections", "heartbeat"), "tcp:// and unix://")
    max_connections = options.get("max_connections", MAX_CONNECTIONS)
    heartbeat = given_seconds(options.get("heartbeat"))

    listening = _Listening(server, heartbeat)
    listening.listener = await listen(
        address,
        listening.connection,
        max_connections=max_connections,
        max_message=server.max_message,
        heartbeat=heartbeat,
    )
    return listening


class _Listening:
    """A listener as an `Endpoint`."""

    listener: SocketListener
    _running: Running

    def __init__(self, server: Server, heartbeat: float | None) -> None:
        self._server = server
        self._heartbeat = heartbeat

    @property
    def url(self) -> str:
        return str(self.listener.address)

    async def serve(self, started: asyncio.Future[None]) -> None:
        lifespan = self._server.features.lifespan
        # The connections end before the lifespan does; where it could not start, there are none yet.
        async with contextlib.aclosing(self.listener), lifespan.held() as running, contextlib.aclosing(self.listener):
            self._running = running
            self.listener.start()
            if not started.done():
                started.set_result(None)
            await asyncio.wait([running.over])  # it fails, or all this is cancelled

    async def connection(self, stream: SocketStream) -> None:
        """Serve one connection."""
        user = stream.user
        principal = None if user is None else f"uid:{user}"
        await serve_connection(self._server, stream, self._running, principal=principal, heartbeat=self._heartbeat)

    async def aclose(self) -> None:
        await self.listener.aclose()
