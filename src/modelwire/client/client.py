"""`Client`: one server, whatever revision it speaks.

This file holds opening and closing. The methods that ask are in `modelwire.client.requests`, the connections in
`modelwire.client.contacts`, the choice of the era in `modelwire.client.connect`, what servers tell unasked in
`modelwire.client.hearing` and `listening`.
"""

from __future__ import annotations

import os
from collections.abc import Coroutine, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from modelwire.client.answering import Answering, Handler, OnElicit, OnElicitUrl, OnSample
from modelwire.client.cache import Cache, Kept, settings
from modelwire.client.connect import PROBE_WAIT, Opener
from modelwire.client.contacts import Contacts
from modelwire.client.conversation import Conversation
from modelwire.client.hearing import Hearing, OnLog, OnNotification, OnReconnect
from modelwire.client.requests import DEFAULT, Requests
from modelwire.client.restoring import restore
from modelwire.client.roots import Roots
from modelwire.client.rounds import MAX_ROUNDS, Rounds
from modelwire.client.sent_headers import Headers
from modelwire.client.targets import Target
from modelwire.client.values import seconds
from modelwire.errors import ConfigError, ConnectionLost
from modelwire.protocol import types as t
from modelwire.protocol.revisions import REVISIONS, Revision, by_name
from modelwire.rpc.dispatcher import Dispatcher
from modelwire.rpc.observer import Observer, checked
from modelwire.rules.lines import DEFAULT_MAX_MESSAGE
from modelwire.rules.settings import named, text, whole
from modelwire.transports.process import ProcessStream
from modelwire.transports.stderr import StderrTarget
from modelwire.transports.tls import Cert, Verify
from modelwire.version import __version__


class Client(Requests):
    """A client of one server.

    Use it as ``async with Client(target) as client:``, or `connect` and `close` it yourself. One that is open cannot be
    entered again: its end would be the end for everybody who uses it.

    Args:
        target: A command as a list, the path of a ``.py`` file, which is started, ``"server.py:server"`` for a `Server`
            in one, ``http://host/path`` or ``https://...``, ``ws://host:port/path`` or ``wss://...``,
            ``tcp://host:port``, ``unix:///path``, a `Server` in
            this process, a `MessageStream`, or a function (it may be async) that opens one. Or a server of a
            configuration file, as ``"mcp.json#weather"`` (see `Group`) or as the entry itself.
        revision: The only revision to speak, such as ``"2025-06-18"``; by default the client finds out.
        name: What the client calls itself.
        version: Its version; by default modelwire's.
        title: A name for people.
        timeout: Seconds that a request may take without answer or progress; None for no limit.
        max_timeout: Seconds that a request may take whatever progress comes; a call with a longer ``timeout`` of its
            own, or with none, is not cut short by it.
        connect_timeout: Seconds that opening may take, each time; None for no limit.
        probe_wait: Seconds after which an unanswered ``server/discover`` is joined by ``initialize``.
        env: Environment variables for a command, beside a minimal environment.
        pass_env: Names of variables of this process to hand on.
        cwd: The folder that a command runs in.
        stderr: Where a command's stderr goes besides being kept: a file object, or a callable that takes lines.
        max_message: The longest message that is accepted, in bytes.
        heartbeat: Seconds of silence after which a server behind ``tcp://`` or ``unix://`` is asked for a sign of life,
            with ``ping``, or ``server/discover`` where there is none; after as many again the connection is lost. By
            default only TCP itself asks, after a minute. A WebSocket has its own ping, by default after 20.
        headers: Headers of every request over HTTP, and of the one that opens a WebSocket, as a dict, or a function (it
            may be async) that returns one each time. It runs in the caller's context, so that a
            `contextvars.ContextVar` can give it something of a single call.
        verify: Whom to trust over TLS: True for the authorities that this machine trusts; a file in PEM form, or a
            folder, with the only ones to trust; an ``ssl.SSLContext``; False for anybody, who may then read and change
            everything.
        cert: The client's own certificate over TLS: a file in PEM form, or a pair of those of the certificate and its
            key.
        proxy: Over HTTP, the URL of a proxy, or False for none; by default what ``HTTP_PROXY``, ``HTTPS_PROXY`` and
            ``NO_PROXY`` say.
        http: Somebody else's `aiohttp.ClientSession` or ``AsyncClient`` of httpx, to be used over HTTP and left open.
        on_log: Called with each log message (`LoggingMessageNotificationParams`). May be async, like every callback.
            Where requests carry the level (2026-07-28), they ask for "info" until `set_log_level` says otherwise.
        on_notification: Called with ``(method, params)`` of each notification.
        on_elicit: Fills in a form for the server: called with a `FormQuestion`, returns the content as a dict or as an
            instance of a class with its fields; True for the form as it stands, with its defaults; False if the user
            declines, None if they went away without a choice (also as `Reply`, or all as `types.ElicitResult`).
        on_elicit_url: Asks the user whether a page may be opened: called with a `UrlQuestion`, returns True for
            consent, False or None as above, or `Reply.DONE`.
        on_sample: Has a model write a message: called with a `SampleQuestion`, returns a text, content blocks or a
            `types.CreateMessageResult`; None or False if the user does not want it, for which 2026-07-28 has no answer:
            there the request fails with `Unanswered`.
        roots: Where the server may work: paths, ``file://`` URIs or `types.Root`, or a function that returns them; tell
            of changes with `roots_changed`. What is given of these four is declared. Each may be async, as may
            ``handlers``; a plain function that takes its time holds up everything else. `modelwire.answers` has some
            that are ready to use.
        max_rounds: How often a request may be sent again because the server asks something first.
        handlers: Who answers the server's requests, by method; called with the params as a dict, returns the result.
        capabilities: What to declare besides; ``handlers`` for sampling, roots or elicitation need it.
        reconnect: Whether a connection that is lost is opened again by itself: a server's process is started anew, at
            most 5 times a minute. What was lost on the way is then sent again once, within its own deadline, unless it
            may have effects; those are the tools that `list_tools` has not shown as read-only or idempotent.
        on_reconnect: Called when that has happened, with the `ConnectionLost` that was the reason.
        cache: Whether lists and resources are kept for as long as the server calls them fresh (2026-07-28), and handed
            out again meanwhile; ``Cache(...)`` sets bounds, and what happens where the server cannot be asked.
        polite_shutdown: Send ``shutdown`` and ``exit`` at the end, as some tutorials teach; handshake revisions only.
        observers: Who watches every frame.

    Raises:
        ConfigError: The target or a setting makes no sense.

    Example:
        ```
        async with Client(["python", "server.py"]) as client:
            for tool in await client.list_tools():
                print(tool.name)
            print(await client.call("add", {"a": 1, "b": 2}, returns=int))
        ```
    """

    def __init__(
        self,
        target: Any,
        *,
        revision: str | None = None,
        name: str = "modelwire",
        version: str = __version__,
        title: str | None = None,
        timeout: float | None = 60.0,
        max_timeout: float | None = 600.0,
        connect_timeout: float | None = 30.0,
        probe_wait: float = PROBE_WAIT,
        env: Mapping[str, str] | None = None,
        pass_env: Sequence[str] = (),
        cwd: str | os.PathLike[str] | None = None,
        stderr: StderrTarget | None = None,
        max_message: int = DEFAULT_MAX_MESSAGE,
        heartbeat: float | None = None,
        headers: Headers | None = None,
        verify: Verify = True,
        cert: Cert | None = None,
        proxy: str | bool | None = None,
        http: Any = None,
        on_log: OnLog | None = None,
        on_notification: OnNotification | None = None,
        on_elicit: OnElicit | None = None,
        on_elicit_url: OnElicitUrl | None = None,
        on_sample: OnSample | None = None,
        roots: Roots | None = None,
        max_rounds: int = MAX_ROUNDS,
        handlers: Mapping[str, Handler] | None = None,
        capabilities: t.ClientCapabilities | None = None,
        reconnect: bool = True,
        on_reconnect: OnReconnect | None = None,
        cache: bool | Cache = True,
        polite_shutdown: bool = False,
        observers: Sequence[Observer] = (),
    ) -> None:
        self.timeout = seconds(timeout, "timeout")
        self._max_timeout = seconds(max_timeout, "max_timeout")
        self._connect_timeout = seconds(connect_timeout, "connect_timeout")
        self._polite = polite_shutdown
        self._answering = answering = Answering(
            on_elicit=on_elicit,
            on_elicit_url=on_elicit_url,
            on_sample=on_sample,
            roots=roots,
            handlers=handlers,
            capabilities=capabilities,
        )
        self._hearing = Hearing(on_log, on_notification, on_reconnect)
        self._hearing.on_hint = self._list_again
        self.tools = self.resources = None
        self._stale = set()
        self._log_level = None
        opener = Opener(
            t.Implementation(named(name, "name"), named(version, "version"), title=text(title, "title")),
            answering.capabilities,
            pinned=_pinned(revision),
            probe_wait=probe_wait,
        )
        aim = Target(
            target,
            env=env,
            pass_env=pass_env,
            cwd=cwd,
            stderr=stderr,
            max_message=whole(max_message, "max_message"),
            heartbeat=seconds(heartbeat, "heartbeat"),
            headers=headers,
            verify=verify,
            cert=cert,
            proxy=proxy,
            http=http,
        )
        answering.target = aim.name
        self._contacts = Contacts(
            aim,
            opener,
            Dispatcher(answering.routes(), self._hearing.hear, stray_error=opener.stray_error, side="client"),
            self._hearing,
            checked(observers),
            reconnect=reconnect,
            connect_timeout=self._connect_timeout,
        )
        self._kept = Kept(settings(cache), self._contacts)
        self._hearing.on_news = self._kept.heard
        self._hearing.on_missed = self._kept.clear
        self._rounds = Rounds(answering, self._contacts, max_rounds, self._max_timeout)
        self._hearing.on_complete = self._rounds.completed
        self._contacts.restore = self._restore
        self._contacts.on_reopened = self._reopened
        self._conversation = Conversation(
            self._contacts, opener, may_repeat=self._may_repeat, log_level=None if on_log is None else "info"
        )

    # ------------------------------------------------------------------ opening and closing

    async def connect(self, *, timeout: float | None = DEFAULT) -> Self:
        """Open the conversation, unless it is open; return the client. After the end, a client can connect again.

        Args:
            timeout: Seconds that this may take; by default the client's ``connect_timeout``; None for no limit.

        Raises:
            ConnectionFailed: It could not be opened; the message says why.
            ConnectionLost: It ended meanwhile. `ServerExited`: the server's process did; with exit code and the end of
                its stderr.
            RequestTimeout: It took too long.
        """
        await self._contacts.open(self._connect_timeout if timeout is DEFAULT else seconds(timeout, "timeout"))
        return self

    async def close(self) -> None:
        """Close the conversation, and end the server if this client started it. Any task may, any number of times.

        Requests that are open fail with `ConnectionLost`; listenings end.

        Raises:
            ConfigError: The client was connected in another event loop, which still runs.
        """
        self._contacts.check_loop("close it there: asyncio.run_coroutine_threadsafe(client.close(), loop)")
        self._hearing.close()
        try:
            await self._contacts.close(self._polite)
        finally:  # not before: a function that is asked may be the one who closes
            self._rounds.close()
            self._kept.clear()

    def _check_entry(self) -> None:
        """Raise `ConfigError` where a ``with`` block would close at its end what others use; every block begins so."""
        self._contacts.check_entry()

    async def __aenter__(self) -> Self:
        self._check_entry()
        return await self.connect()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def connected(self) -> bool:
        """Whether requests can be sent at once; a connection that was lost is opened again by one (``reconnect=``)."""
        return self._contacts.connected

    @property
    def capabilities(self) -> t.ServerCapabilities:
        """What the server can do."""
        return self._contacts.opened.capabilities

    @property
    def server_info(self) -> t.Implementation | None:
        """Who the server says it is; for display only."""
        return self._contacts.opened.info

    @property
    def instructions(self) -> str | None:
        """How the server wants to be used."""
        return self._contacts.opened.instructions

    @property
    def stderr(self) -> str:
        """The last 64 KiB that the server's process wrote to stderr."""
        process = self._process
        return "" if process is None else process.stderr_tail()

    @property
    def exit_code(self) -> int | None:
        """The exit code of the server's process once it has ended; negative is a signal's number."""
        process = self._process
        return None if process is None else process.exit_code

    @property
    def _process(self) -> ProcessStream | None:
        return None if self._contacts.current is None else self._contacts.current.process

    def _restore(self) -> Coroutine[Any, Any, None] | None:
        if self._log_level is None and not self._hearing.awaited:
            return None
        return restore(self._conversation, self._hearing, self._log_level, self.timeout)

    def _reopened(self, why: ConnectionLost) -> None:
        self.tools = self.resources = None  # the server that is there now may have others
        self._hearing.reconnected(self._contacts.here().connection, why)


def _pinned(revision: str | None) -> Revision | None:
    if revision is None:
        return None
    found = by_name(named(revision, "revision"))
    if found is None:
        raise ConfigError(f"unknown revision {revision!r}; known are {', '.join(r.name for r in REVISIONS)}")
    return found
