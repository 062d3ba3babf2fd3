"""What a client is pointed at, and how a stream to it is opened.

A target is a command (a list), a Python file or an object of one, the address of a socket or a WebSocket, a `Server` in
this process, a message stream, a function that opens one, or a server of a configuration file (see
`modelwire.client.configs`). Nothing is sent here.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import re
import shlex
import ssl
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from modelwire.client import configs
from modelwire.client.sent_headers import Headers, SentHeaders
from modelwire.errors import ConfigError, ConnectionFailed, ModelwireError
from modelwire.log import log as _log
from modelwire.rpc.connection import Connection
from modelwire.rpc.dispatcher import Dispatcher
from modelwire.rpc.message_stream import MessageStream
from modelwire.rpc.observer import Observer
from modelwire.rpc.stream import Link
from modelwire.rules.pending import Outgoing
from modelwire.rules.session import Session
from modelwire.rules.settings import several, table
from modelwire.transports.http.endpoint import HttpOptions, endpoint, is_http_url, shown_url
from modelwire.transports.launch import check_variable
from modelwire.transports.memory import memory_pair
from modelwire.transports.process import spawn
from modelwire.transports.socket_address import is_socket_url, parse_address
from modelwire.transports.stderr import StderrTarget
from modelwire.transports.tls import Cert, Verify, tls_context
from modelwire.transports.websocket_address import checked, is_secure, is_websocket_url

SERVER_SECONDS = 10.0
"""How long a server in this process may take to end once its client has left; half of it, it gives its own requests."""

FAILING_SECONDS = 1.0
"""How long a server in this process that has closed the connection may take to say why."""

SERVED = ["-P", "-m", "modelwire", "run"]
"""What serves an object of a Python file. With -P no file beside us stands in for a module of the standard library."""

WEBSOCKET_HEARTBEAT = 20.0
"""Seconds of silence after which a server behind a WebSocket is asked for a sign of life, if nothing else is said."""


class Wire(Protocol):
    """What a conversation goes over: a stream, or many requests of HTTP."""

    connection: Connection
    on_gap: Callable[[], None] | None
    """Called when the server may have told something that was not heard, although the connection goes on."""

    @property
    def stream(self) -> MessageStream | None:
        """The stream, where there is one."""
        ...

    @property
    def reached(self) -> bool:
        """Whether there is somebody at the other end."""
        ...

    async def run(self) -> None:
        """Run it until it ends."""
        ...

    async def hears(self) -> None:
        """Wait until what is told unasked can be heard."""
        ...

    async def flushed(self) -> None:
        """Wait until what was posted has left."""
        ...

    def was_sent(self, entry: Outgoing) -> bool:
        """Whether the server may have got a request that has failed."""
        ...

    async def aclose(self, why: Exception | None = None) -> None:
        """End it."""
        ...

    def release(self) -> None:
        """Let go of it from outside the event loop, which has ended."""
        ...


class Target:
    """How to open a stream to one server.

    Args:
        target: A command, a ``.py`` file, ``http(s)://host/path``, ``tcp://host:port``, ``unix:///path``,
            ``ws(s)://host:port/path``, a `Server`, a `MessageStream`, or a function that opens one; or a server
            of a configuration file.
        env: Environment variables for a command, beside a minimal environment.
        pass_env: Names of variables of this process to hand on.
        cwd: The folder that a command runs in.
        stderr: Where a command's stderr goes besides being kept: a file object, a callable that takes lines, or None.
        max_message: The longest message that is accepted, in bytes.
        heartbeat: Seconds of silence after which a server behind a socket is asked for a sign of life.
        headers: Headers of requests over HTTP, or of the one that opens a WebSocket, or a function that returns them.
        verify: Whom to trust over TLS; see `modelwire.transports.tls.tls_context`.
        cert: Our own certificate over TLS; likewise.
        proxy: What HTTP goes through; False for nothing whatever the environment says.
        http: Somebody else's client of HTTP.

    Raises:
        ConfigError: The target is none of these.
    """

    def __init__(
        self,
        target: Any,
        *,
        env: Mapping[str, str] | None,
        pass_env: Sequence[str],
        cwd: str | os.PathLike[str] | None,
        stderr: StderrTarget | None,
        max_message: int,
        heartbeat: float | None = None,
        headers: Headers | None = None,
        verify: Verify = True,
        cert: Cert | None = None,
        proxy: str | bool | None = None,
        http: Any = None,
    ) -> None:
        pass_env = several(pass_env, "pass_env", str, "a list of names of variables, such as ['API_KEY']")
        given: Mapping[Any, Any] = table(env, "env", "a dict of variables, such as {'API_KEY': '...'}") or {}
        for variable, value in given.items():
            check_variable(variable, value)
        entry = configs.find(target)
        self._where = None if entry is None else entry.where
        if entry is not None:
            _check_address(entry)
            target, env, cwd = entry.target, {**entry.env, **(env or {})}, cwd or entry.cwd
        self._headers = SentHeaders(headers, None if entry is None else entry.headers)
        self._target = target
        self._env = env
        self._pass_env = pass_env
        self._cwd = _folder(cwd)
        self._stderr = _stderr(stderr)
        self._max_message = max_message
        self._opened = False
        self._serving: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None
        """What a server in this process has failed with."""
        self._address = parse_address(target) if isinstance(target, str) and is_socket_url(target) else None
        self._websocket = checked(target) if isinstance(target, str) and is_websocket_url(target) else None
        over_http = isinstance(target, str) and is_http_url(target)
        elsewhere = self._address is not None or self._websocket is not None or over_http
        self.command = None if elsewhere else _command(target)
        if heartbeat is not None and self._address is None and self._websocket is None:
            raise ConfigError(
                "heartbeat= is for tcp:// and unix:// targets, and ws:// ones; others tell of their end by themselves"
            )
        self.heartbeat = heartbeat if self._websocket is None or heartbeat is not None else WEBSOCKET_HEARTBEAT
        if (proxy is not None or http is not None) and not over_http:
            raise ConfigError(f"{'proxy' if proxy is not None else 'http'}= is for http:// and https:// targets")
        self._tls = self._trusted(verify, cert, over_http)
        self.endpoint = None
        """Where the server is, where that is behind HTTP."""
        if over_http:
            said = self._headers.now if self._headers.fixed is None else self._headers.fixed
            options = HttpOptions(said, self._tls, proxy, http)
            old = entry is not None and entry.old
            self.endpoint = endpoint(target, options, max_message=max_message, old=old, called=self._where)

    def _trusted(self, verify: Verify, cert: Cert | None, over_http: bool) -> ssl.SSLContext | None:
        """Return whom to trust over TLS, and refuse what would do nothing for the target."""
        if self._websocket is None and not over_http and self._headers:
            raise ConfigError("headers= is for http:// and ws:// targets, and https:// and wss:// ones")
        secure = self._target.startswith("https://") if over_http else self._websocket and is_secure(self._websocket)
        if secure:
            return tls_context(verify, cert)
        if verify is not True or cert is not None:
            raise ConfigError(f"{'cert' if verify is True else 'verify'}= is for https:// and wss:// targets")
        return None

    def __str__(self) -> str:
        if self._where is not None:
            return self._where  # what was filled into its command may be secret
        if self.command is not None:
            return " ".join(self.command)
        if self._address is not None:
            return str(self._address)
        if self._websocket is not None:
            return shown_url(self._websocket)
        if self.endpoint is not None:
            return self.endpoint.shown
        name = getattr(self._target, "name", None)
        if isinstance(name, str):
            return f"the server {name!r}"
        return getattr(self._target, "__name__", type(self._target).__name__)

    @property
    def place(self) -> str:
        """The address where it listens, or its name in a configuration; empty for what has no address."""
        there = self._address is not None or self._websocket is not None or self.endpoint is not None
        return str(self) if there else ""

    @property
    def name(self) -> str:
        """What to call it in the log: of a command only what it runs, since arguments may be secrets."""
        if self.command is None:
            return str(self)
        if self.command[1:-1] == SERVED:
            return " ".join(os.path.basename(word) for word in (self.command[0], self.command[-1]))
        shown = [self.command[0], *(word for word in self.command[1:2] if not word.startswith("-"))]
        return " ".join(os.path.basename(word) or word for word in shown)

    @property
    def can_restart(self) -> bool:
        """Whether a new stream can be opened after the first has ended."""
        return self.command is not None or hasattr(self._target, "dispatcher") or self.elsewhere

    @property
    def elsewhere(self) -> bool:
        """Whether the server lives without us, so that it may be there again a moment after it was gone."""
        return bool(self.place) or _opens(self._target)

    async def link(self, dispatcher: Dispatcher, session: Session, observers: Sequence[Observer]) -> Wire:
        """Open what a conversation goes over; the arguments are those of `modelwire.rpc.stream.Link`.

        Raises:
            LocalError: As `open`.
        """
        if self.endpoint is not None:
            from modelwire.transports.http.engines import engine_for
            from modelwire.transports.http.link import HttpLink

            engine = engine_for(self.endpoint)
            return HttpLink(self.endpoint, engine, dispatcher, session=session, observers=observers)
        stream = await self.open(observers)
        return Link(stream, dispatcher, session=session, observers=observers, answers_invalid=False)

    async def open(self, observers: Sequence[Observer] = ()) -> MessageStream:
        """Open a stream.

        Args:
            observers: Told of a process's stderr and exit.

        Raises:
            ConnectionFailed: That did not work; the message says why.
            SignatureError: The target is a `Server`, and something that was registered there cannot work.
            ConfigError: The same.
        """
        if self.command is not None:
            return await spawn(
                self.command,
                env=self._env,
                pass_env=self._pass_env,
                cwd=self._cwd,
                max_message=self._max_message,
                observers=observers,
                forward_stderr=self._stderr,
                name=self.name,
            )
        if self._address is not None:
            from modelwire.transports.socket_connect import connect_socket

            return await connect_socket(self._address, max_message=self._max_message, heartbeat=self.heartbeat)
        if self._websocket is not None:
            return await self._open_websocket(self._websocket)
        if hasattr(self._target, "dispatcher"):
            return self._open_memory()
        if _opens(self._target):
            return await _opened_by(self._target)
        if self._opened:
            raise ConnectionFailed(f"{self} was used once; give a new client a new stream")
        self._opened = True
        return cast(MessageStream, self._target)

    async def _open_websocket(self, url: str) -> MessageStream:
        try:
            from modelwire.transports.websocket_connect import connect_websocket
        except ImportError:
            raise ConfigError(f"connecting to {self} needs websockets: pip install 'modelwire[ws]'") from None
        headers = await self._headers.now()
        return await connect_websocket(url, headers=headers, tls=self._tls, max_message=self._max_message)

    def _open_memory(self) -> MessageStream:
        ours, theirs = memory_pair()
        self._failure = None
        # Called here and not in the task: what was registered wrongly is raised to whoever connects.
        serving: Coroutine[Any, Any, None] = self._target.serve(theirs)
        self._serving = asyncio.create_task(self._serve(serving))
        return ours

    async def _serve(self, serving: Coroutine[Any, Any, None]) -> None:
        try:
            await serving
        except (Exception, SystemExit) as error:  # a SystemExit that leaves a task would end the whole loop
            self._failure = error

    async def failure(self) -> tuple[str, BaseException] | None:
        """Return why a server in this process has ended, in words and as it was, where it has failed."""
        if self._serving is not None:
            await asyncio.wait([self._serving], timeout=FAILING_SECONDS)
        why = self._failure
        return why and (f"{self} closed the connection, because it failed: {type(why).__name__}: {why}", why)

    async def closed(self) -> None:
        """Wait for what `open` started in this process."""
        serving = self._serving
        if serving is None:
            return
        await asyncio.wait([serving], timeout=SERVER_SECONDS)
        if not serving.done():
            _log.warning("%s did not end within %g s; it was cancelled", self, SERVER_SECONDS)
            serving.cancel()
            await asyncio.wait([serving], timeout=SERVER_SECONDS)
        if self._serving is serving:
            self._serving = None
            if self._failure is not None:
                _log.error("%s failed", self, exc_info=self._failure)


def _folder(given: Any) -> str | None:
    if given is not None and not isinstance(given, str | os.PathLike):
        raise ConfigError(f"cwd= is the path of a folder, not {given!r}")
    return None if given is None else os.fsdecode(cast("str | os.PathLike[str]", given))


def _stderr(given: Any) -> StderrTarget | None:
    if given is not None and not callable(given) and not callable(getattr(given, "write", None)):
        raise ConfigError(
            "stderr= is a file object, such as sys.stderr or open('server.log', 'a'), or a function that takes a line; "
            f"not {given!r}"
        )
    return given


async def _opened_by(function: Callable[[], Any]) -> MessageStream:
    try:
        stream = function()
        stream = await stream if inspect.isawaitable(stream) else stream
    except ModelwireError:
        raise
    except Exception as error:
        raise ConnectionFailed(f"no stream could be opened: {error!r}") from error
    if not _is_stream(stream):
        raise ConfigError(f"the function that opens a message stream returned {stream!r}")
    return cast(MessageStream, stream)


def _opens(target: Any) -> bool:
    return callable(target) and not isinstance(target, type) and not hasattr(target, "dispatcher")


def _is_stream(value: Any) -> bool:
    return all(hasattr(value, name) for name in ("receive", "send", "aclose"))


_ADDRESSES = "http://HOST/PATH, ws://HOST:PORT/PATH, tcp://HOST:PORT or unix:///PATH"
_RUNNERS = {".js": "node", ".mjs": "node", ".cjs": "node", ".ts": "npx", ".sh": "sh", ".rb": "ruby"}
_BARE = re.compile(r"([\w.-]+:\d+|localhost|[\w-]+(?:\.[\w-]+)+(?=/))(?:/\S*)?\Z")


def is_bare_address(target: str) -> bool:
    """Whether a target looks like an address without its ``http://``: a host with a port, or with a path."""
    found = _BARE.match(target)
    if found is None or os.path.exists(target):
        return False
    files = (".py", *_RUNNERS)
    return not target.endswith(files) and not found[1].partition(":")[0].endswith(files)


def _check_address(entry: configs.Entry) -> None:
    """Refuse an address without showing it: a secret may have been filled in."""
    if isinstance(entry.target, str) and is_http_url(entry.target):
        return  # it is checked with what is said about it
    websocket = isinstance(entry.target, str) and is_websocket_url(entry.target)
    if entry.headers and not websocket:
        raise ConfigError(f'{entry.where}: "headers" are for an "url" of http:// or ws://, or https:// or wss://')
    if isinstance(entry.target, str):
        try:
            checked(entry.target) if websocket else parse_address(entry.target)
        except ConfigError:
            raise ConfigError(f'{entry.where}: "url" is no address that this version can open: {_ADDRESSES}') from None


def _command(target: Any) -> list[str] | None:
    if isinstance(target, str | Path):
        return _from_string(os.fspath(target))
    if isinstance(target, list | tuple):
        words = cast("Sequence[Any]", target)
        if not words or not all(isinstance(word, str | os.PathLike) for word in words):
            raise ConfigError(f"a command is a list of strings, such as ['python', 'server.py'], not {target!r}")
        return [os.fspath(word) for word in words]
    if hasattr(target, "dispatcher") or _is_stream(target) or _opens(target):
        return None
    raise ConfigError(
        f"cannot connect to {target!r}: give a command as a list, the path of a .py file, http://HOST/PATH, "
        "ws://HOST:PORT/PATH, tcp://HOST:PORT, unix:///PATH, a Server, or a message stream"
    )


def split_object(target: str) -> tuple[str, str | None]:
    """Split ``FILE:OBJECT``; a file of exactly that name comes first."""
    path, colon, name = target.rpartition(":")
    if not colon or os.path.exists(target) or not all(part.isidentifier() for part in name.split(".")):
        return target, None
    return path, name


def _from_string(target: str) -> list[str]:
    # Whole, since the command may run in another folder.
    path = os.path.abspath(target)
    if os.path.isdir(path):
        raise ConfigError(f"{target!r} is a folder; name the .py file in it, or give a command as a list")
    if not os.path.exists(path) and len(target.split()) > 1:
        raise ConfigError(f"{target!r} is no file; give a command as a list: {shlex.split(target)!r}")
    file, name = split_object(target)
    if name is not None and file.endswith(".py") and os.path.exists(file):
        return [sys.executable, *SERVED, f"{os.path.abspath(file)}:{name}"]
    if "://" in target:
        raise ConfigError(f"{shown_url(target)!r} is no address that this version can open: {_ADDRESSES}")
    if is_bare_address(target):
        raise ConfigError(
            f"{target!r} is no .py file; an address begins with http:// or ws://, such as {f'http://{target}'!r}"
        )
    if not target.endswith(".py"):
        runner = _RUNNERS.get(os.path.splitext(target)[1], "program")
        raise ConfigError(f"{target!r} is no .py file; give a command as a list, such as {[runner, target]!r}")
    if not os.path.exists(path):
        raise ConfigError(f"there is no file {target!r}; the path is taken from {os.getcwd()!r}")
    return [sys.executable, path]
