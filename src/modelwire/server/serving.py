"""Serving an endpoint: until there is nothing more to serve, or while an ``async with`` block runs.

Inside a running event loop; a whole program, with its signals, is `modelwire.server.program`'s business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from modelwire.log import log as _log
from modelwire.server.endpoints import Endpoint, ServeOptions, open_endpoint

if TYPE_CHECKING:
    from modelwire.server.server import Server


async def serve(
    server: Server, endpoint: Any, options: ServeOptions, on_start: Callable[[str], None] | None = None
) -> None:
    """Serve an endpoint until there is nothing more to serve, then finish what was accepted.

    Args:
        server: The server.
        endpoint: None for stdio, an endpoint's name, or a message stream.
        options: What is said about the endpoint.
        on_start: Told where clients find the server once they are answered there; where that has a name.

    Raises:
        BaseException: What the server's lifespan has failed with.
    """
    await serve_opened(await open_endpoint(server, endpoint, options), on_start)


async def serve_opened(opened: Endpoint, on_start: Callable[[str], None] | None = None) -> None:
    """Serve what is open already, as `serve` does.

    Args:
        opened: The endpoint.
        on_start: See `serve`.

    Raises:
        BaseException: What the server's lifespan has failed with.
    """
    started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    url = opened.url
    if on_start is not None and url is not None:
        started.add_done_callback(lambda _: on_start(url))
    await opened.serve(started)


class Serving:
    """A server that serves while an ``async with`` block runs.

    Args:
        server: The server.
        endpoint: None for stdio, an endpoint's name such as ``tcp://127.0.0.1:0``, or a message stream.
        options: What is said about the endpoint.

    Example:
        ```
        async with server.serving("tcp://127.0.0.1:0") as serving:
            async with Client(serving.url) as client:
                ...
        ```
    """

    def __init__(self, server: Server, endpoint: Any = None, options: ServeOptions | None = None) -> None:
        self._server = server
        self._endpoint = endpoint
        self._options: ServeOptions = options or {}
        self._opened: Endpoint | None = None
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Serving:
        self._opened = await open_endpoint(self._server, self._endpoint, self._options)
        started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._opened.serve(started))
        try:
            await asyncio.wait([self._task, started], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self.aclose()
            raise
        if self._task.done():
            self._task.result()
        return self

    @property
    def url(self) -> str | None:
        """Where clients find the server, with the port that was taken for port 0; None for stdio and a stream."""
        return None if self._opened is None else self._opened.url

    async def wait(self) -> None:
        """Wait until the client has left; where there may be many, until the serving is ended."""
        if self._task is not None:
            await asyncio.shield(self._task)

    async def aclose(self) -> None:
        """End the serving: open subscriptions end, running requests get a moment. May be called twice.

        Raises:
            BaseException: What the server's lifespan has failed with.
        """
        if self._task is None or self._opened is None:
            return
        self._task.cancel()
        await asyncio.wait([self._task])
        await self._opened.aclose()  # a task that was cancelled before it began has closed nothing
        if not self._task.cancelled():
            self._task.result()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.aclose()
        except BaseException as failure:
            if error is None or failure is error or isinstance(failure, asyncio.CancelledError):
                raise
            _log.error("serving %s failed", self._server.name, exc_info=failure)
