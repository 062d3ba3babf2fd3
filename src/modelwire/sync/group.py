"""`Group` for programs that do not ``await``. Every method waits for the one of `modelwire.Group`, which does it."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Self

from modelwire.client.client import Client as AsyncClient
from modelwire.client.group import Group as AsyncGroup
from modelwire.client.group_listening import GroupEvent
from modelwire.client.members import OnFailure
from modelwire.client.naming import Prefix
from modelwire.client.requests import DEFAULT
from modelwire.errors import ModelwireError
from modelwire.sync.blocking import Blocking, blocking, inner_of
from modelwire.sync.client import Client, wrapped
from modelwire.sync.listening import Listening


class Group(Blocking):
    """Several servers as one client, for programs that do not ``await``.

    Use it as ``with Group({...}) as group:``, or `connect` and `close` it yourself. It does as `modelwire.Group`, where
    names, files and failures are explained; threads, Ctrl-C, forks and callbacks are as for `Client`.

    Args:
        servers: The servers by name, or the path of a file with ``mcpServers``.
        prefix: What stands between server and name; False, or a function, as for `modelwire.Group`.
        strict: Whether a server that cannot be opened is an error.
        client: Makes the client of a server from its name and its entry here; for settings, as in
            ``client=lambda name, target: Client(target, timeout=5)``.
        on_failure: Called with ``(server, error)`` when a server cannot be opened, listed or listened to.

    Raises:
        ConfigError: The file, a name or a setting makes no sense.

    Example:
        ```
        with Group({"weather": "weather.py", "files": ["node", "files.js"]}) as group:
            print(group.call("weather__forecast", {"city": "Oslo"}, returns=list[str]))
        ```
    """

    _inner: AsyncGroup

    def __init__(
        self,
        servers: Mapping[str, Any] | str | os.PathLike[str],
        *,
        prefix: Prefix = "__",
        strict: bool = False,
        client: Callable[[str, Any], Client] | None = None,
        on_failure: OnFailure | None = None,
    ) -> None:
        self._clients: weakref.WeakKeyDictionary[AsyncClient, Client] = weakref.WeakKeyDictionary()
        if isinstance(servers, Mapping):
            servers = {name: self._unwrapped(target) for name, target in servers.items()}

        def make(name: str, target: Any) -> AsyncClient:
            assert client is not None
            return self._unwrapped(client(name, target))

        super().__init__(
            AsyncGroup(
                servers, prefix=prefix, strict=strict, client=None if client is None else make, on_failure=on_failure
            )
        )

    def connect(self, *, timeout: float | None = DEFAULT) -> Self:
        """Open the servers that are not open, all at once; return the group. Call it again to try again what failed.

        Args:
            timeout: Seconds that each may take; by default its client's ``connect_timeout``; None for no limit.

        Raises:
            ConnectionFailed: The group is ``strict`` and a server could not be opened; all are closed again.
            ConnectionLost: The group was closed meanwhile.
        """
        return super().connect(timeout=timeout)

    def close(self) -> None:
        """Close every server that the group has opened. Any thread may, any number of times."""
        super().close()

    def add(self, name: str, target: Any) -> None:
        """Add a server; it is opened if the group is open. See `modelwire.Group.add`.

        Args:
            name: Its name in the group.
            target: As in ``Group({name: target})``.
        """
        self._run("add", name, self._unwrapped(target))

    remove = blocking(AsyncGroup.remove)
    """Remove a server. See `modelwire.Group.remove`, and so for all that follow."""
    list_tools = blocking(AsyncGroup.list_tools)
    """Return the tools of every server, in the order of the servers; unchanged but for their names."""
    list_resources = blocking(AsyncGroup.list_resources)
    """Return the resources of every server."""
    list_resource_templates = blocking(AsyncGroup.list_resource_templates)
    """Return the resource templates of every server."""
    list_prompts = blocking(AsyncGroup.list_prompts)
    """Return the prompts of every server."""
    call_tool = blocking(AsyncGroup.call_tool)
    """Call a tool and return its result as it is."""
    call = blocking(AsyncGroup.call)
    """Call a tool and return its value, converted to ``returns``."""
    read_resource = blocking(AsyncGroup.read_resource)
    """Read a resource from the server that listed it, or whose template it fits."""
    get_prompt = blocking(AsyncGroup.get_prompt)
    """Have a prompt written out."""
    complete = blocking(AsyncGroup.complete)
    """Ask for values that an argument may take."""

    def listen(
        self,
        *,
        tools: bool = False,
        prompts: bool = False,
        resources: bool = False,
        uris: Sequence[str] = (),
        timeout: float | None = DEFAULT,
    ) -> Listening[GroupEvent]:
        """Return a ``with`` block that yields what changes, as `GroupEvent`. See `modelwire.Group.listen`.

        Args:
            tools: The lists of tools.
            prompts: The lists of prompts.
            resources: The lists of resources and templates.
            uris: Resources to follow, each on the server that it is read from.
            timeout: Seconds that each server may take to agree; by default its client's.
        """
        events = self._inner.listen(tools=tools, prompts=prompts, resources=resources, uris=uris, timeout=timeout)
        return Listening(self._loop, events)

    # ------------------------------------------------------------------ what there is to know

    @property
    def connected(self) -> bool:
        """Whether the group is open; servers may have failed all the same."""
        return self._inner.connected

    @property
    def clients(self) -> Mapping[str, Client]:
        """The clients by the names of their servers, for what concerns one server; also of those that are not open."""
        return MappingProxyType({name: self._wrapped(client) for name, client in self._inner.clients.items()})

    @property
    def failures(self) -> dict[str, ModelwireError]:
        """What is wrong with which server. See `modelwire.Group.failures`."""
        return self._inner.failures

    def origin(self, name: str) -> tuple[str, str]:
        """Return the server that a tool or prompt belongs to, and its name there. See `modelwire.Group.origin`.

        Args:
            name: What it is called in the group.
        """
        return self._inner.origin(name)

    def _wrapped(self, inner: AsyncClient) -> Client:
        if inner not in self._clients:
            self._clients[inner] = wrapped(inner)
        return self._clients[inner]

    def _unwrapped(self, target: Any) -> Any:
        if not isinstance(target, Client):
            return target
        inner: AsyncClient = inner_of(target)
        self._clients[inner] = target
        return inner
