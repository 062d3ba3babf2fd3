"""`Server`: what people register their functions on, and what every transport serves.

This file holds the settings and the ways to serve; `modelwire.server.registration` what can be registered. It opens no
stream itself: `modelwire.server.endpoints` does.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack

from modelwire.errors import ConfigError
from modelwire.protocol import types as t
from modelwire.protocol import wire
from modelwire.protocol.jsonrpc import Notification
from modelwire.protocol.revisions import LATEST
from modelwire.rpc.connection import Connection
from modelwire.rpc.dispatcher import Dispatcher
from modelwire.rpc.observer import Observer, checked
from modelwire.rules.lines import DEFAULT_MAX_MESSAGE
from modelwire.rules.settings import named, several, table, text, whole
from modelwire.server.caching import ListKind, list_caching
from modelwire.server.endpoints import ServeOptions
from modelwire.server.features import Features
from modelwire.server.lifespan import Lifespan, LifespanFunction
from modelwire.server.parking import Parking, adjusted
from modelwire.server.program import run
from modelwire.server.registration import Registration
from modelwire.server.sealing import KeyRing
from modelwire.server.serve import ServerSession
from modelwire.server.serving import Serving, serve
from modelwire.server.workers import WorkerPool

if TYPE_CHECKING:
    from modelwire.rpc.message_stream import MessageStream
    from modelwire.server.http.app import App, Asgi, Principal


class Server(Registration):
    """An MCP server, for every revision of the protocol at once.

    Args:
        name: The program's name, as clients see it.
        version: Its version.
        title: A name for people.
        description: What it does, in a sentence or two.
        instructions: How a model should use it; clients may put this into the model's prompt.
        icons: Images that may stand for it.
        website_url: Where to read more.
        page_size: Items per page of a list; None sends each list whole.
        list_ttl: Seconds for which clients of 2026-07-28 may go by a list without asking again, unless they hear that
            it has changed: for all lists, or by list, as ``{"tools": 300, "templates": 60}``. The lists are "tools",
            "prompts", "resources", "templates", and "discover", what the server says of itself. By default 0.
        list_shared: Whether a gateway may tell others what it was told: True, or the lists, such as ``{"tools"}``. A
            list is not shared as long as a function decides about anything in it (``enabled=``).
        announce_lists: Also send changed lists as notifications ``tools/list``, ``resources/list`` and
            ``notifications/root``, which some tutorials teach and no revision has. Handshake revisions only. They
            belong to no request, so what a function decides about (``enabled=``) is left out.
        declare: Features to declare although nothing is registered for them yet: "tools", "resources", "prompts",
            "completions". Those with something registered are declared anyway.
        extensions: Extensions supported, by identifier, with their settings (2026-07-28).
        experimental: Non-standard capabilities to declare.
        max_workers: How many sync functions may run at once, each in a thread.
        max_message: The longest message that is accepted, in bytes; 64 MiB by default.
        max_result: The largest result of a tool, resource or prompt that is sent, in bytes; by default 64 MiB, the
            longest message that clients of this library accept. In place of a larger one goes an error that says how
            large it was. None sends any.
        observers: Who watches the frames of every connection.
        lifespan: What is set up before the first client is served and cleaned up after the last: an async function
            with one ``yield``, with or without ``@asynccontextmanager``, called with the server or with nothing. What
            it yields is ``ctx.lifespan``, and fills parameters of the type that its annotation names:
            ``AsyncIterator[Database]``, or ``AsyncIterator[tuple[Database, Cache]]`` for several. A plain generator
            function runs in a worker thread. If it fails, the serving ends with its error.
        state_keys: Secrets of at least 32 characters, the newest first, that seal what was answered so far into the
            ``requestState`` of 2026-07-28, so that another process with the same keys, or this one after a restart, can
            run the handler again from the top. Without keys only this process can go on, as long as it remembers.
            Needs ``pip install 'modelwire[state]'``.
        parking: How many handlers may wait for answers, and for how long: ``Parking(calls=1000, seconds=600)``.

    Raises:
        ConfigError: A setting cannot work.

    Example:
        ```
        server = Server("weather", version="1.0.0")

        @server.tool
        async def forecast(city: str, days: int = 3) -> list[str]:
            return [f"sun over {city}"] * days

        server.run()
        ```
    """

    def __init__(
        self,
        name: str,
        *,
        version: str = "0.0.0",
        title: str | None = None,
        description: str | None = None,
        instructions: str | None = None,
        icons: Sequence[t.Icon] | None = None,
        website_url: str | None = None,
        page_size: int | None = None,
        list_ttl: float | Mapping[ListKind, float] | None = None,
        list_shared: bool | Collection[ListKind] = False,
        announce_lists: bool = False,
        declare: Iterable[Literal["tools", "resources", "prompts", "completions"]] = (),
        extensions: dict[str, dict[str, Any]] | None = None,
        experimental: dict[str, dict[str, Any]] | None = None,
        max_workers: int = 32,
        max_message: int = DEFAULT_MAX_MESSAGE,
        max_result: int | None = DEFAULT_MAX_MESSAGE,
        observers: Sequence[Observer] = (),
        lifespan: LifespanFunction | None = None,
        state_keys: Sequence[bytes | str] | None = None,
        parking: Parking | None = None,
    ) -> None:
        if not isinstance(name, str) or not name:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"a server's name is a string, not {name!r}")
        if max_result is not None and (type(max_result) is not int or max_result < 1):
            raise ConfigError(f"max_result is a number of bytes, or None for no limit, not {max_result!r}")
        if page_size is not None:
            whole(page_size, "page_size")
        for setting, given in (("title", title), ("description", description), ("website_url", website_url)):
            text(given, setting)
        declared = several(declare, "declare", str, "a list of features, such as ['tools']")
        for setting, given in (("extensions", extensions), ("experimental", experimental)):
            table(given, setting, "a dict of settings by name", lambda key, one: isinstance(one, Mapping))
        self.info = t.Implementation(
            name,
            named(version, "version"),
            title=title,
            description=description,
            icons=None if icons is None else list(icons),
            website_url=website_url,
        )
        self.observers = list(checked(observers))
        self.numbers = itertools.count(1)
        """The number of the next connection, for observers."""
        self.announce_lists = announce_lists
        self.max_message = whole(max_message, "max_message")
        identity = wire.encode(self.info, LATEST)
        pool = WorkerPool(whole(max_workers, "max_workers"))
        features = Features(
            self.info,
            identity,
            instructions=text(instructions, "instructions"),
            page_size=page_size,
            caching=list_caching(list_ttl, list_shared),
            max_result=max_result,
            declare=frozenset(declared),
            extensions=extensions,
            experimental=experimental,
            lifespan=Lifespan(self, lifespan, pool),
            parking=adjusted(parking),
            state_keys=None if state_keys is None else KeyRing(state_keys),
        )
        super().__init__(features, pool)
        self.dispatcher = Dispatcher(features.routes, self._notice, identity)

    @property
    def name(self) -> str:
        """The program's name."""
        return self.info.name

    # ------------------------------------------------------------------ serving

    def run(self, endpoint: str | None = None, **options: Unpack[ServeOptions]) -> None:
        """Serve until the client leaves or Ctrl-C; for the end of a program. Standard input and output by default.

        Args:
            endpoint: Where to serve: None for stdio, ``"http://127.0.0.1:8000/mcp"``, ``"ws://127.0.0.1:8000/mcp"``
                (which is the same, told as a WebSocket), ``"tcp://127.0.0.1:9000"`` or ``"unix:///run/mcp.sock"``. A
                line on stderr then says so, and clients may come and go until Ctrl-C.
            **options: ``cert=`` and ``key=`` for ``https://`` and ``wss://``, ``max_connections=``, ``workers=`` (how
                many processes answer over HTTP), and others. See `ServeOptions`.

        Raises:
            SystemExit: With status 130 after Ctrl-C; with 1 where no worker could be started.
            ConfigError: An event loop runs here already, the endpoint cannot be served, or see `settle`.
            ConnectionFailed: The endpoint is taken, or not ours to take.
            SignatureError: See `settle`.
        """
        run(self, endpoint, options)

    # No `async def`, so that a mistake is raised to whoever calls, and not in a task.
    def serve(
        self, endpoint: str | MessageStream | None = None, **options: Unpack[ServeOptions]
    ) -> Coroutine[Any, Any, None]:
        """Serve inside a running event loop, until the client leaves; sockets until this is cancelled.

        Args:
            endpoint: As for `run`, or a `MessageStream` of your own.
            **options: As for `run`, without ``workers``.

        Raises:
            SignatureError: See `settle`, as for every way to serve.
            ConfigError: The endpoint cannot be served, or see `settle`.
            ConnectionFailed: The endpoint is taken, or not ours to take.
        """
        self.settle()
        return serve(self, endpoint, options)

    def serving(self, endpoint: str | MessageStream | None = None, **options: Unpack[ServeOptions]) -> Serving:
        """Return an ``async with`` block during which the server serves; its ``url`` says where.

        Args:
            endpoint: As for `run`, or a `MessageStream` of your own. Port 0 takes a free one.
            **options: As for `run`, without ``workers``.

        Example:
            ```
            async with server.serving("tcp://127.0.0.1:0") as serving:
                print(serving.url)
                await serving.wait()
            ```
        """
        return Serving(self, endpoint, options)

    def asgi(
        self,
        path: str = "/mcp",
        *,
        allowed_hosts: Collection[str] | None = None,
        allowed_origins: Collection[str] = (),
        principal: Principal | None = None,
        max_sessions: int = 10_000,
        session_idle: float = 1800,
        stateless: bool = False,
        sse: bool = False,
        health: str | None = None,
        routes: Mapping[str, Asgi] | None = None,
    ) -> App:
        """Return an ASGI application that serves this server over Streamable HTTP and WebSockets, in every revision.

        It can be mounted under any prefix of any ASGI application; it needs no lifespan, and starts with the first
        request. Sessions of handshake revisions live in this process. WebSockets are opened at ``path``, or at ``/ws``.
        Frameworks do not pass their lifespan on to what they mount: ``await app.aclose()`` on the signal to end makes
        the end graceful; where their lifespan ends, servers have waited for open streams already.

        Args:
            path: Where the endpoint is, below the prefix that it is mounted under. Better leave its name here than in
                the prefix: asked for a prefix without a slash at its end, frameworks redirect, which not all clients
                follow.
            allowed_hosts: What the ``Host`` header may name, with or without a port. By default the names of loopback
                where requests come in there, and any elsewhere: name yours in production; ``*`` for any.
            allowed_origins: The origins of web pages that may ask, such as ``https://example.com``; ``*`` for any. By
                default pages of the machine itself, on loopback.
            principal: For people who authenticate elsewhere: called with ASGI's scope, it says who asks. Sessions and
                states belong to who they were made for.
            max_sessions: How many sessions there may be, and how many WebSockets and clients of HTTP+SSE.
            session_idle: Seconds that a session is kept when nobody uses it.
            stateless: Keep nothing from one request to the next on handshake revisions either, so that any process may
                answer any request. Clients then cannot be asked anything, told of nothing outside a request, and not
                come back to a stream.
            sse: Serve clients of 2024-11-05 too, which open ``/sse`` and post to ``/messages`` beside the endpoint.
            health: A path, such as ``/health``, that answers whether the server is up, whoever asks.
            routes: Applications of your own by path, such as ``{"/": page}``. They look at ``Host`` and ``Origin``
                themselves.

        Raises:
            ConfigError: One of them cannot be what it is to be.
        """
        from modelwire.server.http.app import App

        return App(
            self,
            path,
            allowed_hosts=allowed_hosts,
            allowed_origins=allowed_origins,
            principal=principal,
            max_sessions=max_sessions,
            session_idle=session_idle,
            stateless=stateless,
            sse=sse,
            health=health,
            routes=routes,
        )

    def session(self, send: Callable[[bytes], None] | None = None) -> ServerSession:
        """Return one client's conversation, for people who bring their own transport.

        Args:
            send: Called with each frame that is no answer: notifications, and requests where the revision has them.
        """
        return ServerSession(self, send)

    def _notice(self, connection: Connection, notification: Notification) -> None:
        self.features.notice(connection, notification, self.announce_lists)
