"""Endpoints: where a server serves, and what opens each.

An endpoint is None for stdio, a string, or a message stream. What opens a string is found by its scheme, and is loaded
when it is first used. How a client is served is not decided here.
"""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, cast

from modelwire.errors import ConfigError
from modelwire.rpc.message_stream import MessageStream
from modelwire.server.serve import serve_stream

if TYPE_CHECKING:
    from modelwire.server.http.app import Asgi, Principal
    from modelwire.server.server import Server


class ServeOptions(TypedDict, total=False):
    """What can be said about an endpoint.

    Attributes:
        max_connections: How many connections may be open at once. By default 256 on ``tcp://`` and ``unix://``, where
            further ones are closed, and 10,000 on HTTP, where they get status 503; the log says why.
        heartbeat: Seconds of silence after which a client is asked for a sign of life; one that stays silent for as
            many again is given up. On ``tcp://`` and ``unix://`` by default only TCP itself asks, after a minute; on
            ``ws://`` and ``wss://`` it is 20.
        cert: The certificate of ``https://`` and ``wss://``, a file in PEM form.
        key: Its key, likewise.
        allowed_hosts: On HTTP as for `Server.asgi`; likewise ``allowed_origins`` and ``principal``.
        allowed_origins: See ``allowed_hosts``.
        principal: See ``allowed_hosts``.
        stateless: On HTTP as for `Server.asgi`; likewise ``sse``, ``health`` and ``routes``.
        sse: See ``stateless``.
        health: See ``stateless``.
        routes: See ``stateless``.
        workers: How many processes answer, on HTTP and with `Server.run` alone; 1 by default. Each is the program,
            started again with the same command line, and each has a ``max_connections`` of its own.
    """

    max_connections: int
    heartbeat: float | None
    cert: str | None
    key: str | None
    allowed_hosts: Collection[str] | None
    allowed_origins: Collection[str]
    principal: Principal | None
    stateless: bool
    sse: bool
    health: str | None
    routes: Mapping[str, Asgi] | None
    workers: int


def refuse_others(options: ServeOptions, known: Collection[str], what: str) -> None:
    """Refuse options that would do nothing for an endpoint.

    Args:
        options: What was given.
        known: The options that it has.
        what: What it is, for the message.

    Raises:
        ConfigError: There is another one, or ``max_connections`` is no number of connections.
    """
    for name in options:
        if name not in known:
            raise ConfigError(f"{name}= does nothing for {what}; it has {', '.join(sorted(known))}")
    count: Any = options.get("max_connections", 1)
    if type(count) is not int or count < 1:
        raise ConfigError(f"max_connections is a number of connections, at least 1, not {count!r}")


def several_workers(options: ServeOptions) -> bool:
    """Return whether more than one process is to answer.

    Raises:
        ConfigError: ``workers`` is no number of processes.
    """
    count: Any = options.get("workers", 1)
    if type(count) is not int or count < 1:
        raise ConfigError(f"workers is a number of processes, at least 1, not {count!r}")
    return count > 1


def given_seconds(value: Any) -> float | None:
    """Return the seconds of ``heartbeat=``; None for no heartbeat.

    Raises:
        ConfigError: It is no such number.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ConfigError(f"heartbeat is a number of seconds above 0, or None for no heartbeat, not {value!r}")
    return float(value)


class Endpoint(Protocol):
    """Something that is open, and can be served to its end."""

    @property
    def url(self) -> str | None:
        """Where clients find it, as a target for them; None where that has no name."""
        ...

    async def serve(self, started: asyncio.Future[None]) -> None:
        """Serve until there is nothing more to serve; when cancelled, end in order. Called once.

        Args:
            started: Told when the lifespan has started, so that from now on clients are answered.

        Raises:
            BaseException: What the server's lifespan has failed with.
        """
        ...

    async def aclose(self) -> None:
        """Let go of what `serve` was never called for. May be called twice, also after `serve` has ended."""
        ...


Opener = Callable[["Server", str, ServeOptions], Awaitable[Endpoint]]


def _sockets(server: Server, endpoint: str, options: ServeOptions) -> Awaitable[Endpoint]:
    from modelwire.server.serve_sockets import open_sockets

    return open_sockets(server, endpoint, options)


def _http(server: Server, endpoint: str, options: ServeOptions) -> Awaitable[Endpoint]:
    from modelwire.server.http.run import open_http

    return open_http(server, endpoint, options)


OPENERS: dict[str, Opener] = {
    "tcp": _sockets,
    "unix": _sockets,
    "http": _http,
    "https": _http,
    "ws": _http,
    "wss": _http,
}
"""By scheme."""


def is_http(endpoint: Any) -> bool:
    """Return whether an endpoint is one that HTTP is served at."""
    return isinstance(endpoint, str) and OPENERS.get(endpoint.partition(":")[0]) is _http


def opener_of(endpoint: str) -> Opener:
    """Return what opens an endpoint that is a string.

    Raises:
        ConfigError: Nothing does.
    """
    opener = OPENERS.get(endpoint.partition(":")[0])
    if opener is None:
        raise _no_endpoint(endpoint)
    return opener


def _no_endpoint(given: Any) -> ConfigError:
    return ConfigError(
        f"cannot serve {given!r}: give http://HOST:PORT/PATH, ws://HOST:PORT/PATH, tcp://HOST:PORT or unix:///PATH, or "
        "leave the endpoint out for stdio"
    )


async def open_endpoint(server: Server, endpoint: Any, options: ServeOptions) -> Endpoint:
    """Open an endpoint; nobody is answered yet.

    Raises:
        ConfigError: The endpoint, or an option, makes no sense.
        ConnectionFailed: The endpoint is taken, or not ours to take.
        SignatureError: See `Server.settle`.
    """
    server.settle()
    unknown = options.keys() - ServeOptions.__annotations__.keys()
    if unknown:
        raise _no_option(min(unknown))
    if isinstance(endpoint, str):
        return await opener_of(endpoint)(server, endpoint, options)
    if options:
        raise ConfigError(f"{min(options)}= is for endpoints that have an address")
    if endpoint is not None:
        if not hasattr(endpoint, "receive"):
            raise _no_endpoint(endpoint)
        return _OneStream(server, cast(MessageStream, endpoint))
    from modelwire.transports.stdio import open_stdio

    stream = await open_stdio(max_message=server.max_message)
    if stream.is_terminal:
        _greet(server)
    return _OneStream(server, stream)


def _no_option(name: str) -> ConfigError:
    known = ", ".join(ServeOptions.__annotations__)
    if name in ("transport", "host", "port", "path"):  # other toolkits have these
        example = "http://127.0.0.1:8000/mcp"
        where = f"scheme, host, port and path stand in the endpoint, such as {example!r}; options are"
        return ConfigError(f"serving knows no option {name!r}: {where} {known}")
    return ConfigError(f"serving knows no option {name!r}; there are {known}")


class _OneStream:
    """One message stream as an `Endpoint`."""

    url = None

    def __init__(self, server: Server, stream: MessageStream) -> None:
        self._server = server
        self._stream = stream

    async def serve(self, started: asyncio.Future[None]) -> None:
        await serve_stream(self._server, self._stream, started)

    async def aclose(self) -> None:
        await self._stream.aclose()


def _greet(server: Server) -> None:
    example = (
        '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
        '"clientInfo":{"name":"me","version":"1"}}}'
    )
    sys.stderr.write(
        f"{server.name}: an MCP server; it awaits JSON-RPC messages on standard input, one per line, such as\n"
        f"{example}\n"
        "Ctrl-D ends the input, Ctrl-C the server. A client starts it by itself: give it this command.\n"
    )
    sys.stderr.flush()
