"""`Group`: several servers as one client.

This file holds the public methods. Opening, asking and closing many at once is in `modelwire.client.members`; what
things are called in `modelwire.client.naming`; whose a URI is in `modelwire.client.owners`. Frames are the clients' own
business.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType, TracebackType
from typing import Any, Literal, Self, TypeVar, cast, overload

from msgspec import structs

from modelwire.client import configs
from modelwire.client.client import Client
from modelwire.client.contacts import ENTERED
from modelwire.client.group_listening import GroupListening
from modelwire.client.members import MakeClient, Members, OnFailure
from modelwire.client.naming import Names, Prefix
from modelwire.client.owners import Owners
from modelwire.client.requests import DEFAULT
from modelwire.client.signatures import like
from modelwire.client.values import reference
from modelwire.errors import ConfigError, ModelwireError, WrongResult
from modelwire.log import log as _log
from modelwire.protocol import types as t
from modelwire.rules.pending import OnProgress

T = TypeVar("T")


class Group:
    """Several servers as one client.

    Use it as ``async with Group({...}) as group:``, or `connect` and `close` it yourself. All servers are opened at
    once. One that fails is in `failures` and in the log, and harms no other.

    Tools and prompts go by ``server__name``. The names that model APIs take are up to 64 of ``A-Z a-z 0-9 _ -``: a name
    that does not fit is changed, and ends in eight characters that depend on the server and its own name only. `origin`
    says what a name stands for. Resources keep their URIs, and are read from the server that listed them.

    Args:
        servers: The servers by name. Each is what a `Client` takes, or a `Client`, which the group opens and closes
            unless it is open already; or an entry of a configuration file, such as ``{"command": "node", "args":
            ["server.js"]}``. Or else the path of a file with ``mcpServers`` (or ``servers``), in which ``${NAME}``,
            ``${NAME:-default}`` and ``${env:NAME}`` stand for environment variables; servers that say ``disabled`` are
            left out.
        prefix: What stands between server and name; made of ``_`` and ``-``. False: names stay as they are, and of two
            tools of one name the first server's counts, with a warning. Or a function of the server and the name.
        strict: Whether a server that cannot be opened is an error.
        client: Makes the client of a server from its name and its entry here; for settings, as in
            ``client=lambda name, target: Client(target, timeout=5)``. Clients are taken as they are.
        on_failure: Called with ``(server, error)`` when a server cannot be opened, listed or listened to.

    Raises:
        ConfigError: The file, a name or a setting makes no sense. What is wrong with one server is its failure, later.

    Example:
        ```
        async with Group({"weather": "weather.py", "files": ["node", "files.js"]}) as group:
            for tool in await group.list_tools():
                print(tool.name)
            print(await group.call("weather__forecast", {"city": "Oslo"}, returns=list[str]))
        ```
    """

    def __init__(
        self,
        servers: Mapping[str, Any] | str | os.PathLike[str],
        *,
        prefix: Prefix = "__",
        strict: bool = False,
        client: MakeClient | None = None,
        on_failure: OnFailure | None = None,
    ) -> None:
        targets = _targets(servers)
        self._members = Members(targets, make=client, strict=strict, on_failure=on_failure)
        self._tools = Names(prefix)
        self._prompts = Names(prefix)
        self._owners = Owners()
        self._tables = (self._tools, self._prompts, self._owners)
        self._listenings: set[GroupListening] = set()
        self._warned: set[tuple[str, str, str]] = set()
        for name in targets:
            self._note(name)

    # ------------------------------------------------------------------ opening and closing

    async def connect(self, *, timeout: float | None = DEFAULT) -> Self:
        """Open the servers that are not open, all at once; return the group. Call it again to try again what failed.

        Args:
            timeout: Seconds that each may take; by default its client's ``connect_timeout``; None for no limit.

        Raises:
            ConnectionFailed: The group is ``strict`` and a server could not be opened; all are closed again.
            ConnectionLost: The group was closed meanwhile.
        """
        await self._members.open(timeout)
        return self

    async def close(self) -> None:
        """Close every server that the group has opened. Any task may, any number of times."""
        for listening in list(self._listenings):
            await listening.aclose()
        await self._members.close()

    def _check_entry(self) -> None:
        """Raise `ConfigError` where a ``with`` block would close at its end what others use; every block begins so."""
        if self._members.running:
            raise ConfigError(ENTERED.format(what="group"))

    async def __aenter__(self) -> Self:
        self._check_entry()
        return await self.connect()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def add(self, name: str, target: Any) -> None:
        """Add a server; it is opened if the group is open.

        Args:
            name: Its name in the group.
            target: As in ``Group({name: target})``.

        Raises:
            ConfigError: The group has one of that name, or the target makes no sense.
            LocalError: It could not be opened, and was not added.
        """
        _check_name(name)
        await self._members.add(name, target)
        self._note(name)
        client = self._members.opened.get(name)
        if client is not None:
            await asyncio.gather(*(listening.join(name, client) for listening in list(self._listenings)))

    async def remove(self, name: str) -> None:
        """Remove a server, and close it if the group opened it; its requests that are open fail.

        Raises:
            ConfigError: There is none of that name.
        """
        for table in self._tables:
            table.remove(name)
        # A client that is not the group's own goes on, and would go on telling.
        await asyncio.gather(*(listening.leave(name) for listening in list(self._listenings)))
        await self._members.remove(name)

    def _note(self, name: str) -> None:
        for table in self._tables:
            table.add(name)

    @property
    def connected(self) -> bool:
        """Whether the group is open; servers may have failed all the same."""
        return self._members.running

    @property
    def clients(self) -> Mapping[str, Client]:
        """The clients by the names of their servers, for what concerns one server; also of those that are not open."""
        return MappingProxyType(self._members.clients)

    @property
    def failures(self) -> dict[str, ModelwireError]:
        """What is wrong with which server: it could not be opened, or its list failed; gone once that has worked."""
        return self._members.failures

    def origin(self, name: str) -> tuple[str, str]:
        """Return the server that a tool or prompt belongs to, and its name there.

        Args:
            name: What it is called in the group.

        Raises:
            ConfigError: Nothing of that name was listed.
        """
        found = self._tools.find(name) or self._prompts.find(name) or self._tools.spelt(name)
        if found is None:
            raise _unknown("tool or prompt", name, self._tools, self._members)
        return found

    # ------------------------------------------------------------------ lists

    @like(Client.list_tools)
    async def list_tools(self, **options: Any) -> list[t.Tool]:
        """Return the tools of every server, in the order of the servers; unchanged but for their names.

        Args:
            **options: As for `Client.list_tools`; a ``timeout`` is each server's own.
        """
        return await self._named("tools/list", self._tools, lambda client: client.list_tools(**options))

    @like(Client.list_prompts)
    async def list_prompts(self, **options: Any) -> list[t.Prompt]:
        """Return the prompts of every server. See `list_tools`."""
        return await self._named("prompts/list", self._prompts, lambda client: client.list_prompts(**options))

    @like(Client.list_resources)
    async def list_resources(self, **options: Any) -> list[t.Resource]:
        """Return the resources of every server, unchanged. See `list_tools`."""
        answers = await self._members.ask("resources/list", lambda client: client.list_resources(**options))
        for server, resources in answers:
            self._owners.resources_listed(server, [resource.uri for resource in resources])
        return [resource for _, resources in answers for resource in resources]

    @like(Client.list_resource_templates)
    async def list_resource_templates(self, **options: Any) -> list[t.ResourceTemplate]:
        """Return the resource templates of every server, unchanged. See `list_tools`."""
        answers = await self._members.ask(
            "resources/templates/list", lambda client: client.list_resource_templates(**options)
        )
        for server, templates in answers:
            self._owners.templates_listed(server, [template.uri_template for template in templates])
        return [template for _, templates in answers for template in templates]

    async def _named(self, what: str, names: Names, ask: Callable[[Client], Awaitable[list[Any]]]) -> list[Any]:
        found: dict[str, Any] = {}
        origin: dict[str, str] = {}
        for server, items in await self._members.ask(what, ask):
            names.listed(server, [item.name for item in items])
            for item in items:
                name = names.name(server, item.name)
                if name in found:
                    self._warn(name, origin[name], server)
                else:
                    found[name] = structs.replace(item, name=name)
                    origin[name] = server
        return list(found.values())

    def _warn(self, name: str, first: str, other: str) -> None:
        if (name, first, other) not in self._warned:
            self._warned.add((name, first, other))
            _log.warning("%r is of both %r and %r; it stands for that of %r", name, first, other, first)

    # ------------------------------------------------------------------ tools and prompts

    # Spelt out, unlike the other methods: type checkers keep overloads only where they are written.
    @overload
    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = ...,
        max_timeout: float | None = ...,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
        rounds: Literal[True] = True,
        input_responses: Mapping[str, Any] | None = None,
        request_state: str | None = None,
    ) -> t.CallToolResult: ...
    @overload
    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = ...,
        max_timeout: float | None = ...,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
        rounds: bool,
        input_responses: Mapping[str, Any] | None = None,
        request_state: str | None = None,
    ) -> t.CallToolResult | t.InputRequiredResult: ...
    @like(Client.call_tool)
    async def call_tool(self, name: str, *arguments: Any, **options: Any) -> t.CallToolResult | t.InputRequiredResult:
        """Call a tool and return its result as it is. See `Client.call_tool`.

        Args:
            name: The tool, as `list_tools` has it.
            *arguments: As for `Client.call_tool`.
            **options: Likewise.

        Raises:
            ConfigError: No server has a tool of that name; the message names the nearest.
            ConnectionFailed: Its server could not be opened.
        """
        client, own = await self._owner("tool", name, self._tools, self.list_tools)
        return await client.call_tool(own, *arguments, **options)

    @overload
    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        returns: type[T],
        timeout: float | None = ...,
        max_timeout: float | None = ...,
        on_progress: OnProgress | None = None,
    ) -> T: ...
    @overload
    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        returns: Any = None,
        timeout: float | None = ...,
        max_timeout: float | None = ...,
        on_progress: OnProgress | None = None,
    ) -> Any: ...
    @like(Client.call)
    async def call(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Call a tool and return its value, as `Client.call` does.

        Args:
            name: The tool, as `list_tools` has it.
            *arguments: As for `Client.call`.
            **options: Likewise.

        Raises:
            ToolError: The tool failed.
            WrongResult: Its value is not of the type that ``returns=`` asks for.
            ConfigError: No server has a tool of that name; the message names the nearest.
            ConnectionFailed: Its server could not be opened.
        """
        client, own = await self._owner("tool", name, self._tools, self.list_tools)
        try:
            return await client.call(own, *arguments, **options)
        except WrongResult as wrong:
            raise WrongResult(name, wrong.expected, wrong.why, wrong.result) from None

    @overload
    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = ...,
        rounds: Literal[True] = True,
        input_responses: Mapping[str, Any] | None = None,
        request_state: str | None = None,
    ) -> t.GetPromptResult: ...
    @overload
    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = ...,
        rounds: bool,
        input_responses: Mapping[str, Any] | None = None,
        request_state: str | None = None,
    ) -> t.GetPromptResult | t.InputRequiredResult: ...
    @like(Client.get_prompt)
    async def get_prompt(self, name: str, *arguments: Any, **options: Any) -> t.GetPromptResult | t.InputRequiredResult:
        """Have a prompt written out. See `Client.get_prompt`.

        Args:
            name: The prompt, as `list_prompts` has it.
            *arguments: As for `Client.get_prompt`.
            **options: Likewise.

        Raises:
            ConfigError: No server has a prompt of that name; the message names the nearest.
            ConnectionFailed: Its server could not be opened.
        """
        client, own = await self._owner("prompt", name, self._prompts, self.list_prompts)
        return await client.get_prompt(own, *arguments, **options)

    async def _owner(
        self, what: str, name: str, names: Names, list_again: Callable[..., Awaitable[Any]]
    ) -> tuple[Client, str]:
        found = names.find(name)
        if found is None and not names.says_itself(name):
            await list_again(fresh=True)
            found = names.find(name)
        found = found or names.spelt(name)
        if found is None:
            raise _unknown(what, name, names, self._members)
        return self._members.client(found[0]), found[1]

    # ------------------------------------------------------------------ resources and completion

    @overload
    async def read_resource(
        self,
        uri: str,
        *,
        timeout: float | None = ...,
        fresh: bool = False,
        rounds: Literal[True] = True,
        input_responses: Mapping[str, Any] | None = None,
        request_state: str | None = None,
    ) -> t.ReadResourceResult: ...
    @overload
    async def read_resource(
        self,
        uri: str,
        *,
        timeout: float | None = ...,
        fresh: bool = False,
        rounds: bool,
        input_responses: Mapping[str, Any] | None = None,
        request_state: str | None = None,
    ) -> t.ReadResourceResult | t.InputRequiredResult: ...
    @like(Client.read_resource)
    async def read_resource(self, uri: str, **options: Any) -> t.ReadResourceResult | t.InputRequiredResult:
        """Read a resource from the server that listed it, or whose template it fits. See `Client.read_resource`.

        Raises:
            ConfigError: No server has it, or several do: read it with ``group.clients[name]`` then.
            ConnectionFailed: Its server could not be opened.
        """
        return await self._members.client(await self._reader(uri)).read_resource(uri, **options)

    @like(Client.complete)
    async def complete(
        self, ref: str | t.PromptReference | t.ResourceTemplateReference, *arguments: Any, **options: Any
    ) -> t.Completion:
        """Ask for values that an argument may take. See `Client.complete`.

        Args:
            ref: The prompt as `list_prompts` has it, or the template or URI of a resource.
            *arguments: As for `Client.complete`.
            **options: Likewise.

        Raises:
            ConfigError: No server has the prompt, template or URI, or several have it.
            ConnectionFailed: Its server could not be opened.
        """
        found = reference(ref)
        if isinstance(found, t.PromptReference):
            client, own = await self._owner("prompt", found.name, self._prompts, self.list_prompts)
            return await client.complete(structs.replace(found, name=own), *arguments, **options)
        client = self._members.client(await self._reader(found.uri))
        return await client.complete(found, *arguments, **options)

    async def _reader(self, uri: str) -> str:
        """Return the server that a URI belongs to."""
        owners = self._owners.find(uri)
        if not owners:
            await asyncio.gather(self.list_resources(fresh=True), self.list_resource_templates(fresh=True))
            owners = self._owners.find(uri)
        if not owners:
            owners = [name for name, client in self._members.opened.items() if client.capabilities.resources]
            if len(owners) != 1:
                raise ConfigError(
                    f"no server of the group lists {uri!r}, nor a template for it; if you know which has it, read it "
                    f"with group.clients[name]; there are {', '.join(self._members.names) or 'none'}"
                )
        if len(owners) > 1:
            raise ConfigError(
                f"{uri!r} belongs to several servers, {' and '.join(owners)}; read it with group.clients[name]"
            )
        return owners[0]

    # ------------------------------------------------------------------ hearing

    def listen(
        self,
        *,
        tools: bool = False,
        prompts: bool = False,
        resources: bool = False,
        uris: Sequence[str] = (),
        timeout: float | None = DEFAULT,
    ) -> GroupListening:
        """Return an ``async with`` block that yields what changes, as `GroupEvent`: the server, and the event.

        Args:
            tools: The lists of tools.
            prompts: The lists of prompts.
            resources: The lists of resources and templates.
            uris: Resources to follow, each on the server that it is read from.
            timeout: Seconds that each server may take to agree; by default its client's.

        Example:
            ```
            async with group.listen(tools=True) as changes:
                async for change in changes:
                    print(change.server, change.event)
            ```

        Raises:
            ConfigError: Nothing is asked for, or ``uris`` is a string; on entering, that a URI is nobody's.
        """
        lists = {"tools": tools, "prompts": prompts, "resources": resources}
        return GroupListening(self._members, self._listenings, self._reader, lists, uris, timeout)


def _targets(servers: Mapping[str, Any] | str | os.PathLike[str]) -> dict[str, Any]:
    if isinstance(servers, str | os.PathLike):
        found = configs.read(servers)
        left_out = [name for name, server in found.items() if server.disabled]
        if left_out:
            _log.info("disabled and left out: %s", ", ".join(left_out))
        return {name: server for name, server in found.items() if name not in left_out}
    given = cast(Any, servers)
    if not isinstance(given, Mapping):
        raise ConfigError(f"a group takes servers by name, as in Group({{'weather': 'weather.py'}}), not {servers!r}")
    for name in servers:
        _check_name(name)
    return dict(servers)


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name:
        raise ConfigError(f"the name of a server is a string, not {name!r}")


def _unknown(what: str, name: str, names: Names, members: Members) -> ConfigError:
    near = names.nearest(name)
    hint = "" if near is None else f"; did you mean {near!r}?"
    missing = members.failures
    there = f"The servers are {', '.join(members.names) or 'none'}"
    failed = f"; {', '.join(missing)} failed" if missing else ""
    return ConfigError(f"no server of the group has a {what} {name!r}{hint or '.'} {there}{failed}")
