"""`server.run("http://127.0.0.1:8000/mcp")`: the application under uvicorn, with an end that waits for nobody.

uvicorn alone waits for ever on a stream of events that is open when it is told to end; here the streams are ended
first. What is served is `modelwire.server.http.app`'s business.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Generator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from modelwire.errors import ConfigError
from modelwire.rules.http import LOOPBACK, is_loopback
from modelwire.server.endpoints import Endpoint, ServeOptions, refuse_others
from modelwire.server.http.app import App
from modelwire.transports.socket_address import TcpAddress
from modelwire.transports.socket_bind import listen_tcp

if TYPE_CHECKING:
    from modelwire.server.server import Server

BACKLOG = 2048
GRACE = 5.0
"""Seconds that running requests have once the serving is to end."""
LINGER = 1.0
"""Seconds that clients then have to take what is sent to them."""
KEEP_ALIVE = 75
"""Seconds that a connection is kept between two requests: longer than most clients keep theirs."""
MAX_CONNECTIONS = 10_000
_FORM = "write http://HOST:PORT/PATH, such as http://127.0.0.1:8000/mcp"
_PORTS = {"http": 80, "https": 443}


async def open_http(server: Server, endpoint: str, options: ServeOptions) -> Endpoint:
    """Listen on ``http://HOST:PORT/PATH`` or ``https://...``.

    Raises:
        ConfigError: The endpoint or an option makes no sense, or uvicorn is not installed.
        ConnectionFailed: It cannot be listened there.
    """
    try:
        import uvicorn  # noqa: F401 # pyright: ignore[reportUnusedImport]
    except ImportError:
        raise ConfigError("serving over HTTP needs uvicorn and httptools: pip install 'modelwire[http]'") from None
    scheme, host, port, path = _parts(endpoint)
    secure = scheme == "https"
    if secure is not bool(options.get("cert")):
        raise ConfigError(f"{endpoint!r}: https:// needs cert= and key=, files in PEM form; http:// takes neither")
    refuse_others(options, ServeOptions.__annotations__.keys() - {"heartbeat"}, "HTTP")
    hosts = options.get("allowed_hosts")
    if hosts is None and host not in ("0.0.0.0", "::"):
        # On loopback only names of loopback, elsewhere the address that it was bound to: what else a page calls us
        # is another name for the same machine, and DNS rebinding.
        hosts = {*LOOPBACK, host} if is_loopback(host) else {host}
    app = server.asgi(
        path,
        allowed_hosts=hosts,
        allowed_origins=options.get("allowed_origins", ()),
        principal=options.get("principal"),
        stateless=options.get("stateless", False),
        sse=options.get("sse", False),
        health=options.get("health"),
        routes=options.get("routes"),
    )
    sockets = await listen_tcp(TcpAddress(host, port), BACKLOG)
    bound = sockets[0].getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    return _Http(app, sockets, f"{scheme}://{shown}:{bound}{path}", options)


def _parts(endpoint: str) -> tuple[str, str, int, str]:
    try:
        found = urlsplit(endpoint)
        port = found.port
    except ValueError as error:
        raise ConfigError(f"cannot serve {endpoint!r}: {error}; {_FORM}") from None
    if not found.hostname or found.query or found.fragment or "@" in found.netloc:
        raise ConfigError(f"cannot serve {endpoint.partition('?')[0]!r}: {_FORM}")
    path = found.path if found.path.strip("/") else "/mcp"
    return found.scheme, found.hostname, _PORTS[found.scheme] if port is None else port, path


class _Http:
    """An application on sockets of its own, as an `Endpoint`."""

    def __init__(self, app: App, sockets: list[socket.socket], url: str, options: ServeOptions) -> None:
        self._app = app
        self._sockets = sockets
        self._options = options
        self.url = url

    async def serve(self, started: asyncio.Future[None]) -> None:
        running = await self._app.start()
        uvicorn = _uvicorn(self._app, self._options)
        try:
            serving = asyncio.ensure_future(uvicorn.serve(self._sockets))
            try:
                await asyncio.wait([serving, uvicorn.up], return_when=asyncio.FIRST_COMPLETED)
                if not started.done():
                    started.set_result(None)
                await asyncio.wait([serving, running.over], return_when=asyncio.FIRST_COMPLETED)
            finally:
                await self._end(uvicorn, serving)
        finally:
            await self.aclose()

    async def _end(self, uvicorn: Any, serving: asyncio.Future[None]) -> None:
        """The order of the end: nothing new is accepted, streams end with their results, requests finish."""
        uvicorn.should_exit = True
        ending = asyncio.ensure_future(self._app.aclose(GRACE))
        await asyncio.wait([ending])
        await asyncio.wait([serving], timeout=LINGER)
        if not serving.done():
            # Somebody does not read what is sent to them, and uvicorn would wait for ever.
            uvicorn.force_exit = True
            for connection in list(uvicorn.server_state.connections):
                connection.transport.abort()
            await asyncio.wait([serving])
        for done in (serving, ending):
            done.result()

    async def aclose(self) -> None:
        for listening in self._sockets:
            listening.close()


def _uvicorn(app: App, options: ServeOptions) -> Any:
    import uvicorn

    from modelwire.server.http.direct import Direct

    class Quiet(uvicorn.Server):
        """uvicorn without its own signals: those belong to the program, or to whoever awaits the serving."""

        def __init__(self, config: uvicorn.Config) -> None:
            super().__init__(config)
            self.up: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        @contextlib.contextmanager
        def capture_signals(self) -> Generator[None, None, None]:
            yield

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            self.up.set_result(None)

    config = uvicorn.Config(
        app,
        http=Direct,
        ws="none",
        loop="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE,
        limit_concurrency=options.get("max_connections", MAX_CONNECTIONS) + 1,  # from which on uvicorn refuses
        ssl_certfile=options.get("cert"),
        ssl_keyfile=options.get("key"),
    )
    return Quiet(config)
