"""`server.run("http://127.0.0.1:8000/mcp")`: the application under uvicorn, with an end that waits for nobody.

uvicorn alone waits for ever on a stream of events that is open when it is told to end; here the streams are ended
first. What is served is `modelwire.server.http.app`'s business.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from modelwire.errors import ConfigError
from modelwire.rules.http import LOOPBACK, is_loopback
from modelwire.server.endpoints import Endpoint, ServeOptions, given_seconds, refuse_others, several_workers
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
HEARTBEAT = 20.0
"""Seconds after which a WebSocket is asked for a sign of life, and given up after as many again without one."""
_FORM = "write http://HOST:PORT/PATH, such as http://127.0.0.1:8000/mcp"
_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}


@dataclass(frozen=True, slots=True)
class Bound:
    """Where it is listened.

    Attributes:
        sockets: Those that listen.
        url: Where clients find them.
    """

    sockets: list[socket.socket]
    url: str

    def close(self) -> None:
        """Listen no more."""
        for listening in self.sockets:
            listening.close()


async def open_http(server: Server, endpoint: str, options: ServeOptions) -> Endpoint:
    """Listen on ``http://HOST:PORT/PATH``, ``https://...``, ``ws://...`` or ``wss://...``.

    The scheme says whether there is TLS, and whether WebSockets must be; what is served is the same.

    Raises:
        ConfigError: The endpoint or an option makes no sense, or uvicorn is not installed; or websockets, if needed.
        ConnectionFailed: It cannot be listened there.
    """
    if several_workers(options):
        raise ConfigError(
            f"workers={options.get('workers')} needs a program of its own: server.run(..., workers=...), or mw run "
            "--workers; inside a running event loop there is one process"
        )
    app = make_app(server, endpoint, options)
    bound = await bind(endpoint, options)
    return _Http(app, bound, server.max_message, settled(endpoint, options))


def serve_bound(server: Server, endpoint: str, options: ServeOptions, bound: Bound) -> Endpoint:
    """Return what serves as one of several processes that listen on the same sockets.

    Raises:
        ConfigError: An option makes no sense.
    """
    app = make_app(server, endpoint, options)
    app.keep_no_sessions(f"this server runs {options.get('workers')} workers")
    return _Http(app, bound, server.max_message, settled(endpoint, options))


async def bind(endpoint: str, options: ServeOptions) -> Bound:
    """Listen.

    Raises:
        ConfigError: The endpoint or an option makes no sense, or uvicorn is not installed.
        ConnectionFailed: It cannot be listened there.
    """
    try:
        import uvicorn  # noqa: F401 # pyright: ignore[reportUnusedImport]
    except ImportError:
        raise ConfigError("serving over HTTP needs uvicorn and httptools: pip install 'modelwire[http]'") from None
    scheme, host, port, path = _parts(endpoint)
    settled(endpoint, options)
    sockets = await listen_tcp(TcpAddress(host, port), BACKLOG, endpoint)
    bound = sockets[0].getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    return Bound(sockets, f"{scheme}://{shown}:{bound}{path}")


def settled(endpoint: str, options: ServeOptions) -> ServeOptions:
    """Return the options with what is left out, once they have proved to make sense for an endpoint.

    Raises:
        ConfigError: They make no sense.
    """
    scheme = _parts(endpoint)[0]
    secure = scheme in ("https", "wss")
    if secure is not bool(options.get("cert")):
        raise ConfigError(
            f"{endpoint!r}: https:// and wss:// need cert= and key=, files in PEM form; http:// and ws:// take neither"
        )
    known = ServeOptions.__annotations__.keys()
    if secure:
        _check_certificate(options.get("cert"), options.get("key"))
    if scheme in ("ws", "wss"):
        if _websockets() is None:
            raise ConfigError("serving WebSockets needs websockets: pip install 'modelwire[http,ws]'")
        refuse_others(options, known, "WebSockets")
    else:
        refuse_others(options, known - {"heartbeat"}, "HTTP")
    return {**options, "heartbeat": given_seconds(options.get("heartbeat", HEARTBEAT))}


def make_app(server: Server, endpoint: str, options: ServeOptions) -> App:
    """Return the application for an endpoint.

    Raises:
        ConfigError: The endpoint or an option makes no sense.
    """
    _, host, _, path = _parts(endpoint)
    hosts = options.get("allowed_hosts")
    if hosts is None and host not in ("0.0.0.0", "::"):
        # On loopback only names of loopback, elsewhere the address that it was bound to: what else a page calls us
        # is another name for the same machine, and DNS rebinding.
        hosts = {*LOOPBACK, host} if is_loopback(host) else {host}
    return server.asgi(
        path,
        allowed_hosts=hosts,
        allowed_origins=options.get("allowed_origins", ()),
        principal=options.get("principal"),
        stateless=options.get("stateless", False),
        sse=options.get("sse", False),
        health=options.get("health"),
        routes=options.get("routes"),
    )


def _parts(endpoint: str) -> tuple[str, str, int, str]:
    try:
        found = urlsplit(endpoint)
        port = found.port
    except ValueError as error:
        raise ConfigError(f"cannot serve {endpoint!r}: {error}; {_FORM}") from None
    if found.query or found.fragment or "@" in found.netloc:  # which may hold a secret
        raise ConfigError(f"cannot serve at a URL with a user, a query or a fragment: {_FORM}")
    if not found.hostname:
        raise ConfigError(f"cannot serve {endpoint!r}: {_FORM}")
    path = found.path if found.path.strip("/") else "/mcp"
    return found.scheme, found.hostname, _PORTS[found.scheme] if port is None else port, path


def _check_certificate(cert: str | None, key: str | None) -> None:
    for name, path in (("cert", cert), ("key", key)):
        try:
            if path is not None:
                open(path, "rb").close()
        except OSError as error:
            why = f"{name}={path!r} cannot be read: {error.strerror}"
            raise ConfigError(f"{why}; cert= and key= are files in PEM form") from None
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert or "", key)
    except OSError as error:
        why = getattr(error, "reason", None) or error.strerror or error
        raise ConfigError(f"cert={cert!r} and key={key!r} are no certificate and its key in PEM form: {why}") from None


class _Http:
    """An application on sockets of its own, as an `Endpoint`."""

    def __init__(self, app: App, bound: Bound, max_message: int, options: ServeOptions) -> None:
        self._app = app
        self._max_message = max_message
        self._bound = bound
        self._options = options
        self.url = bound.url

    async def serve(self, started: asyncio.Future[None]) -> None:
        running = await self._app.start()
        uvicorn = _uvicorn(self._app, self._max_message, self._options)
        try:
            serving = asyncio.ensure_future(uvicorn.serve(self._bound.sockets))
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
        # uvicorn looks at `should_exit` ten times a second; until then it would accept who finds nothing any more.
        uvicorn.stop_listening()
        uvicorn.should_exit = True
        ending = asyncio.ensure_future(self._app.aclose(GRACE))
        await asyncio.wait([ending])
        for connection in list(uvicorn.server_state.connections):
            if hasattr(connection, "hang_up"):
                connection.hang_up()
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
        self._bound.close()


def _websockets() -> Any:
    """Return what serves WebSockets; None where websockets is not installed."""
    try:
        from modelwire.server.http.guarded_websocket import GuardedWebSocket
    except ImportError:
        return None
    return GuardedWebSocket


def _uvicorn(app: App, max_message: int, options: ServeOptions) -> Any:
    import uvicorn

    from modelwire.server.http.direct import Direct

    class Quiet(uvicorn.Server):
        """uvicorn without its own signals: those belong to the program, or to whoever awaits the serving."""

        def __init__(self, config: uvicorn.Config) -> None:
            super().__init__(config)
            self.up: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.servers = []

        def stop_listening(self) -> None:
            for server in self.servers:
                server.close()

        @contextlib.contextmanager
        def capture_signals(self) -> Generator[None, None, None]:
            yield

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            self.up.set_result(None)

    config = uvicorn.Config(
        app,
        http=Direct,
        ws=_websockets() or "none",
        ws_max_size=max_message,
        ws_ping_interval=options.get("heartbeat"),
        ws_ping_timeout=options.get("heartbeat"),
        # Most messages are too small to gain by it; it costs CPU and memory per connection, and what is compressed
        # together with a secret tells of it by its length.
        ws_per_message_deflate=False,
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
