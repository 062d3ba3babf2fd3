"""`Client` for programs that do not ``await``. Every method waits for the one of `modelwire.Client`, which does it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, cast

from modelwire.client.answering import words
from modelwire.client.client import Client as AsyncClient
from modelwire.client.requests import DEFAULT
from modelwire.client.signatures import like
from modelwire.protocol import types as t
from modelwire.protocol.revisions import Revision
from modelwire.sync.blocking import Blocking, blocking
from modelwire.sync.listening import ClientListening


class Client(Blocking):
    """A client of one server, for programs that do not ``await``.

    Use it as ``with Client(target) as client:``, or `connect` and `close` it yourself. It takes what `modelwire.Client`
    takes, and has its methods. Several threads may use one at once; when one closes it, the requests of the others fail
    with `ConnectionLost`. After Ctrl-C it can be used on. A child that is forked needs a client of its own.

    Callbacks (``on_log``, ``on_notification``, ``on_progress``, ``on_reconnect``, ``stderr``, observers) run in the
    thread of the loop that all clients share: they should be quick, and cannot call a client. What answers the server
    (``on_elicit``, ``on_elicit_url``, ``on_sample``, ``roots``, ``handlers``), where it is a plain function, runs in a
    worker thread: it may take its time.

    Example:
        ```
        with Client(["python", "server.py"]) as client:
            for tool in client.list_tools():
                print(tool.name)
            print(client.call("add", {"a": 1, "b": 2}, returns=int))
        ```
    """

    _inner: AsyncClient

    @like(AsyncClient.__init__)
    def __init__(self, *arguments: Any, **options: Any) -> None:
        if isinstance(handlers := options.get("handlers"), Mapping):
            given = cast("Mapping[str, Any]", handlers)
            options["handlers"] = {
                method: _in_thread(handler) if callable(handler) else handler for method, handler in given.items()
            }
        for name in ("on_elicit", "on_elicit_url", "on_sample", "roots"):
            if callable(options.get(name)):
                options[name] = _in_thread(options[name])
        super().__init__(AsyncClient(*arguments, **options))

    def connect(self, *, timeout: float | None = DEFAULT) -> Self:
        """Open the conversation, unless it is open; return the client. After the end, a client can connect again.

        Args:
            timeout: Seconds that this may take; by default the client's ``connect_timeout``; None for no limit.

        Raises:
            ConnectionFailed: It could not be opened; the message says why.
            ConnectionLost: It ended meanwhile. `ServerExited`: the server's process did; with exit code and the end of
                its stderr.
            RequestTimeout: It took too long.
        """
        return super().connect(timeout=timeout)

    def close(self) -> None:
        """Close the conversation, and end the server if this client started it. Any thread may, any number of times.

        Requests that other threads wait for fail with `ConnectionLost`; listenings end.
        """
        super().close()

    list_tools = blocking(AsyncClient.list_tools)
    """Return every tool. See `modelwire.Client.list_tools`, and so for all that follow."""
    list_resources = blocking(AsyncClient.list_resources)
    """Return every resource."""
    list_resource_templates = blocking(AsyncClient.list_resource_templates)
    """Return every resource template."""
    list_prompts = blocking(AsyncClient.list_prompts)
    """Return every prompt."""
    call_tool = blocking(AsyncClient.call_tool)
    """Call a tool and return its result as it is."""
    call = blocking(AsyncClient.call)
    """Call a tool and return its value, converted to ``returns``."""
    read_resource = blocking(AsyncClient.read_resource)
    """Read a resource."""
    get_prompt = blocking(AsyncClient.get_prompt)
    """Have a prompt written out."""
    complete = blocking(AsyncClient.complete)
    """Ask for values that an argument may take."""
    ping = blocking(AsyncClient.ping)
    """Ask for a sign of life."""
    set_log_level = blocking(AsyncClient.set_log_level)
    """Choose the least severe log messages to receive."""
    request = blocking(AsyncClient.request)
    """Send any request and return its result as it came."""
    notify = blocking(AsyncClient.notify)
    """Send any notification."""
    roots_changed = blocking(AsyncClient.roots_changed)
    """Tell the server that there are other roots now."""
    subscribe = blocking(AsyncClient.subscribe)
    """Have the server tell of changes of a resource; handshake revisions only."""
    unsubscribe = blocking(AsyncClient.unsubscribe)
    """Take a `subscribe` back."""

    def listen(
        self,
        *,
        tools: bool = False,
        prompts: bool = False,
        resources: bool = False,
        uris: Sequence[str] = (),
        timeout: float | None = DEFAULT,
    ) -> ClientListening:
        """Return a ``with`` block that yields typed events of what changes, on every revision.

        Args:
            tools: The list of tools.
            prompts: The list of prompts.
            resources: The lists of resources and templates.
            uris: Resources to follow.
            timeout: Seconds that the server may take to agree; by default the client's. Then there is no limit.

        Example:
            ```
            with client.listen(tools=True, uris=["file:///log"]) as events:
                for event in events:
                    print(event)
            ```

        Raises:
            ConfigError: Nothing is asked for, or ``uris`` is a string.
        """
        events = self._inner.listen(tools=tools, prompts=prompts, resources=resources, uris=uris, timeout=timeout)
        return ClientListening(self._loop, events)

    # ------------------------------------------------------------------ what there is to know

    @property
    def connected(self) -> bool:
        """Whether requests can be sent."""
        return self._inner.connected

    @property
    def revision(self) -> Revision:
        """The revision that both sides speak."""
        return self._inner.revision

    @property
    def capabilities(self) -> t.ServerCapabilities:
        """What the server can do."""
        return self._inner.capabilities

    @property
    def server_info(self) -> t.Implementation | None:
        """Who the server says it is; for display only."""
        return self._inner.server_info

    @property
    def instructions(self) -> str | None:
        """How the server wants to be used."""
        return self._inner.instructions

    @property
    def stderr(self) -> str:
        """The last 64 KiB that the server's process wrote to stderr."""
        return self._inner.stderr

    @property
    def exit_code(self) -> int | None:
        """The exit code of the server's process once it has ended; negative is a signal's number."""
        return self._inner.exit_code

    @property
    def timeout(self) -> float | None:
        """Seconds that a request may take without answer or progress; None for no limit."""
        return self._inner.timeout

    @property
    def tools(self) -> list[t.Tool] | None:
        """The tools as last listed."""
        return self._inner.tools

    @property
    def resources(self) -> list[t.Resource] | None:
        """The resources as last listed."""
        return self._inner.resources


def wrapped(inner: AsyncClient) -> Client:
    """Return a client that waits for this one."""
    client = Client.__new__(Client)
    Blocking.__init__(client, inner)
    return client


def _in_thread(function: Callable[..., Any]) -> Callable[..., Any]:
    """Have a plain function answer in a worker thread: it may well wait, for a person or for a model."""
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
        return function

    async def handle(*given: Any) -> Any:
        answer = await asyncio.to_thread(function, *given)
        return await answer if inspect.isawaitable(answer) else answer

    handle.__qualname__ = words(function)  # for messages
    return handle
