"""A server in this process as the stream to it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from modelwire.log import log as _log
from modelwire.server.server import Server
from modelwire.transports.memory import memory_pair


class Served:
    """A stream to a server in this process, which it serves until it is closed.

    Args:
        server: The server.
    """

    def __init__(self, server: Server) -> None:
        self._stream, theirs = memory_pair()
        self._name = server.name
        self._serving = asyncio.get_running_loop().create_task(self._serve(server.serve(theirs)))

    async def _serve(self, serving: Coroutine[Any, Any, None]) -> None:
        try:
            await serving
        except (Exception, SystemExit):  # a SystemExit that leaves a task would end the whole loop
            _log.exception("the server %r failed", self._name)

    async def receive(self) -> bytes | None:
        """Return the server's next frame; see `MessageStream`."""
        return await self._stream.receive()

    async def send(self, frame: bytes) -> None:
        """Send a frame to the server; see `MessageStream`."""
        await self._stream.send(frame)

    async def aclose(self) -> None:
        """Close, and wait until the server has seen it."""
        await self._stream.aclose()
        await asyncio.wait([self._serving])
