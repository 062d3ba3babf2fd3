"""`Client`: one server, whatever revision it speaks.

This file holds the public methods. The conversation itself is in `modelwire.client.conversation`, the choice of the era
in `modelwire.client.connect`, what servers tell unasked in `modelwire.client.hearing` and `listening`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar, cast, overload

import msgspec
from msgspec import UNSET, Raw

from modelwire.client.answers import unanswered
from modelwire.client.connect import PROBE_WAIT, Opener
from modelwire.client.contact import Contact
from modelwire.client.conversation import Conversation
from modelwire.client.handlers import Handler
from modelwire.client.hearing import Hearing, OnLog, OnNotification, OnReconnect
from modelwire.client.listening import Listening
from modelwire.client.lists import all_pages
from modelwire.client.restoring import restore
from modelwire.client.targets import Target
from modelwire.client.values import arguments_json, prompt_arguments, reference, seconds, value_of
from modelwire.errors import ConfigError, ConnectionLost, ProtocolViolation
from modelwire.protocol import structured
from modelwire.protocol import types as t
from modelwire.protocol.methods import METHODS
from modelwire.protocol.revisions import REVISIONS, Revision, by_name
from modelwire.rpc.observer import Observer
from modelwire.rules.lines import DEFAULT_MAX_MESSAGE
from modelwire.rules.pending import OnProgress
from modelwire.transports.stderr import StderrTarget
from modelwire.version import __version__

T = TypeVar("T")


class _TheClients:
    """Stands for "as the client was told" where None has a meaning of its own."""

    def __repr__(self) -> str:
        return "<the client's>"


_DEFAULT: Any = _TheClients()


class Client:
    """A client of one server.

    Use it as ``async with Client(target) as client:``, or `connect` and `close` it yourself.

    Args:
        target: A command as a list, the path of a ``.py`` file, a `Server` in this process, a `MessageStream`, or a
            function (it may be async) that opens one.
        revision: The only revision to speak, such as ``"2025-06-18"``; by default the client finds out.
        name: What the client calls itself.
        version: Its version; by default modelwire's.
        title: A name for people.
        timeout: Seconds that a request may take without answer or progress; None for no limit.
        max_timeout: Seconds that a request may take whatever progress comes; a call with a longer ``timeout`` of its
            own, or with none, is not cut short by it.
        connect_timeout: Seconds that opening may take; None for no limit.
        probe_wait: Seconds after which an unanswered ``server/discover`` is joined by ``initialize``.
        env: Environment variables for a command, beside a minimal environment.
        pass_env: Names of variables of this process to hand on.
        cwd: The folder that a command runs in.
        stderr: Where a command's stderr goes besides being kept: a file object, or a callable that takes lines.
        max_message: The longest message that is accepted, in bytes.
        on_log: Called with each log message (`LoggingMessageNotificationParams`). May be async, like every callback.
            Where requests carry the level (2026-07-28), they ask for "info" until `set_log_level` says otherwise.
        on_notification: Called with ``(method, params)`` of each notification.
        handlers: Who answers the server's requests, by method; called with the params as a dict, returns the result.
        capabilities: What to declare; handlers for sampling, roots or elicitation need it.
        reconnect: Whether a connection that is lost is opened again by itself: a server's process is started anew, at
            most 5 times a minute. What was lost on the way is then sent again once, within its own deadline, unless it
            may have effects; those are the tools that `list_tools` has not shown as read-only or idempotent.
        on_reconnect: Called when that has happened, with the `ConnectionLost` that was the reason.
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
        on_log: OnLog | None = None,
        on_notification: OnNotification | None = None,
        handlers: Mapping[str, Handler] | None = None,
        capabilities: t.ClientCapabilities | None = None,
        reconnect: bool = True,
        on_reconnect: OnReconnect | None = None,
        polite_shutdown: bool = False,
        observers: Sequence[Observer] = (),
    ) -> None:
        self.timeout = seconds(timeout, "timeout")
        self._max_timeout = seconds(max_timeout, "max_timeout")
        self._connect_timeout = seconds(connect_timeout, "connect_timeout")
        self._polite = polite_shutdown
        self._capabilities = capabilities or t.ClientCapabilities()
        self._hearing = Hearing(on_log, on_notification, on_reconnect)
        self._hearing.on_hint = self._list_again
        self.tools: list[t.Tool] | None = None
        """The tools as last listed, by `list_tools` or, after a tutorial's announcement, by the client itself."""
        self.resources: list[t.Resource] | None = None
        """The resources as last listed, likewise."""
        self._stale: set[str] = set()
        self._log_level: t.LoggingLevel | None = None
        self._conversation = Conversation(
            Target(
                target,
                env=env,
                pass_env=pass_env,
                cwd=cwd,
                stderr=stderr,
                max_message=max_message,
                observers=observers,
            ),
            Opener(
                t.Implementation(name, version, title=title),
                self._capabilities,
                pinned=_pinned(revision),
                probe_wait=probe_wait,
            ),
            handlers=handlers or {},
            hearing=self._hearing,
            observers=observers,
            reconnect=reconnect,
            connect_timeout=self._connect_timeout,
            may_repeat=self._may_repeat,
        )
        self._conversation.restore = self._restore
        self._conversation.on_reopened = self._reopened

    # ------------------------------------------------------------------ opening and closing

    async def connect(self, *, timeout: float | None = _DEFAULT) -> Client:
        """Open the conversation, unless it is open; return the client. After the end, a client can connect again.

        Args:
            timeout: Seconds that this may take; by default the client's ``connect_timeout``; None for no limit.

        Raises:
            ConnectionFailed: It could not be opened; the message says why.
            ConnectionLost: It ended meanwhile. `ServerExited`: the server's process did; with exit code and the end of
                its stderr.
            RequestTimeout: It took too long.
        """
        await self._conversation.open(self._connect_timeout if timeout is _DEFAULT else seconds(timeout, "timeout"))
        return self

    async def close(self) -> None:
        """Close the conversation, and end the server if this client started it. Any task may, any number of times.

        Requests that are open fail with `ConnectionLost`; listenings end.
        """
        self._hearing.close()
        await self._conversation.close(self._polite)

    async def __aenter__(self) -> Client:
        return await self.connect()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def connected(self) -> bool:
        """Whether requests can be sent."""
        return self._conversation.connected

    @property
    def revision(self) -> Revision:
        """The revision that both sides speak."""
        return self._conversation.opened.revision

    @property
    def capabilities(self) -> t.ServerCapabilities:
        """What the server can do."""
        return self._conversation.opened.capabilities

    @property
    def server_info(self) -> t.Implementation | None:
        """Who the server says it is; for display only."""
        return self._conversation.opened.info

    @property
    def instructions(self) -> str | None:
        """How the server wants to be used."""
        return self._conversation.opened.instructions

    @property
    def stderr(self) -> str:
        """The last 64 KiB that the server's process wrote to stderr."""
        process = self._conversation.process
        return "" if process is None else process.stderr_tail()

    @property
    def exit_code(self) -> int | None:
        """The exit code of the server's process once it has ended; negative is a signal's number."""
        process = self._conversation.process
        return None if process is None else process.exit_code

    # ------------------------------------------------------------------ lists

    async def list_tools(self, *, timeout: float | None = _DEFAULT) -> list[t.Tool]:
        """Return every tool, following pages; empty when the server has none to list.

        Args:
            timeout: Seconds per page; by default the client's.

        Raises:
            ProtocolViolation: A cursor repeats, or there are more than 1000 pages.
        """
        self.tools = [structured.unwrap_tool(tool) for tool in await self._list("tools/list", "tools", timeout)]
        return list(self.tools)

    async def list_resources(self, *, timeout: float | None = _DEFAULT) -> list[t.Resource]:
        """Return every resource, following pages; empty when the server has none to list. See `list_tools`."""
        self.resources = await self._list("resources/list", "resources", timeout)
        return list(self.resources)

    async def list_resource_templates(self, *, timeout: float | None = _DEFAULT) -> list[t.ResourceTemplate]:
        """Return every resource template, following pages. See `list_tools`."""
        return await self._list("resources/templates/list", "resource_templates", timeout)

    async def list_prompts(self, *, timeout: float | None = _DEFAULT) -> list[t.Prompt]:
        """Return every prompt, following pages. See `list_tools`."""
        return await self._list("prompts/list", "prompts", timeout)

    async def _list(self, method: str, field: str, timeout: float | None) -> list[Any]:
        opened = self._conversation.opened
        if opened.declared and getattr(opened.capabilities, cast(str, METHODS[method].capability)) is None:
            return []

        contact: Contact | None = None

        async def fetch(cursor: str | None) -> Any:
            nonlocal contact
            page = await self._typed(method, t.PaginatedRequestParams(cursor=cursor), timeout, on=contact)
            contact = contact or self._conversation.here()
            return page

        try:
            return await all_pages(method, field, fetch)
        except ConnectionLost:
            if contact is None or not self._conversation.comes_back:
                raise
        # The cursor of a server that is gone means nothing to the one that comes after it.
        contact = None
        return await all_pages(method, field, fetch)

    # ------------------------------------------------------------------ tools

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = _DEFAULT,
        max_timeout: float | None = _DEFAULT,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> t.CallToolResult:
        """Call a tool and return its result as it is, ``is_error`` included.

        Args:
            name: The tool.
            arguments: Its arguments.
            timeout: Seconds without answer or progress; by default the client's; None for no limit.
            max_timeout: Seconds whatever progress comes.
            on_progress: Called with ``(progress, total, message)``, every time before this returns.
            meta: Further entries for the request's ``_meta``.

        Raises:
            InvalidParams: There is no such tool.
            RequestTimeout: No answer came in time; the server is told to stop.
            ConnectionLost: The connection ended.
            ProtocolViolation: The answer breaks a rule.
            ConfigError: The arguments cannot be sent; or the tool asks for input, which this client does not give by
                itself.
        """
        encoded = arguments_json(arguments)
        params = t.CallToolRequestParams(name, arguments=UNSET if encoded is None else Raw(encoded))
        result = await self._typed("tools/call", params, timeout, max_timeout, on_progress, meta)
        return structured.unwrap_result(cast(t.CallToolResult, result))

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
    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        returns: Any = None,
        timeout: float | None = _DEFAULT,
        max_timeout: float | None = _DEFAULT,
        on_progress: OnProgress | None = None,
    ) -> Any:
        """Call a tool and return its value: the structured content, or else the text, or else the content blocks.

        Args:
            name: The tool.
            arguments: Its arguments.
            returns: The type that the value is converted to; also out of the ``{"result": ...}`` in which servers made
                with other libraries wrap what is no object.
            timeout: As for `call_tool`.
            max_timeout: As for `call_tool`.
            on_progress: As for `call_tool`.

        Raises:
            ToolError: The tool failed; the message is what it said.
            ProtocolViolation: The value is not of the type.
        """
        result = await self.call_tool(
            name, arguments, timeout=timeout, max_timeout=max_timeout, on_progress=on_progress
        )
        return value_of(result, returns)

    # ------------------------------------------------------------------ resources, prompts, completion

    async def read_resource(self, uri: str, *, timeout: float | None = _DEFAULT) -> t.ReadResourceResult:
        """Read a resource.

        Raises:
            ResourceNotFound: There is none of that URI.
        """
        return cast(
            t.ReadResourceResult, await self._typed("resources/read", t.ReadResourceRequestParams(uri), timeout)
        )

    async def get_prompt(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, timeout: float | None = _DEFAULT
    ) -> t.GetPromptResult:
        """Have a prompt written out.

        Args:
            name: The prompt.
            arguments: Its arguments; what is no string is sent as its JSON.
            timeout: As for `call_tool`.

        Raises:
            InvalidParams: There is no such prompt, or an argument is missing or wrong.
        """
        params = t.GetPromptRequestParams(name, arguments=prompt_arguments(arguments))
        return cast(t.GetPromptResult, await self._typed("prompts/get", params, timeout))

    async def complete(
        self,
        ref: str | t.PromptReference | t.ResourceTemplateReference,
        argument: str,
        value: str = "",
        *,
        arguments: Mapping[str, str] | None = None,
        timeout: float | None = _DEFAULT,
    ) -> t.Completion:
        """Ask for values that an argument may take.

        Args:
            ref: The prompt's name, or the template or URI of a resource.
            argument: The argument.
            value: What has been typed so far.
            arguments: The arguments that have a value already.
            timeout: As for `call_tool`.
        """
        context = None if arguments is None else t.CompletionContext(arguments=dict(arguments))
        params = t.CompleteRequestParams(reference(ref), t.CompletionArgument(argument, value), context=context)
        result = cast(t.CompleteResult, await self._typed("completion/complete", params, timeout))
        return result.completion

    # ------------------------------------------------------------------ the rest of the protocol

    async def ping(self, *, timeout: float | None = _DEFAULT) -> None:
        """Ask for a sign of life: ``ping``, or ``server/discover`` where the revision has no ping."""
        await self.request("ping" if self.revision.handshake else "server/discover", timeout=timeout)

    async def set_log_level(self, level: t.LoggingLevel, *, timeout: float | None = _DEFAULT) -> None:
        """Choose the least severe log messages to receive; in 2026-07-28 each request says so from then on.

        Args:
            level: One of the eight levels of RFC 5424.
            timeout: As for `call_tool`.
        """
        if level not in t.LOGGING_LEVELS:
            raise ConfigError(f"unknown log level {level!r}; known are {', '.join(t.LOGGING_LEVELS)}")
        self._conversation.log_level = self._log_level = level
        if not self.revision.log_level_per_request:
            await self._typed("logging/setLevel", t.SetLevelRequestParams(level), timeout)

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = _DEFAULT,
        on_progress: OnProgress | None = None,
    ) -> dict[str, Any]:
        """Send any request and return its result as it came.

        Args:
            method: The method.
            params: Its parameters.
            timeout: As for `call_tool`.
            on_progress: As for `call_tool`.

        Raises:
            PeerError: The server answered with an error.
        """
        raw = await self._raw(method, None if params is None else dict(params), timeout, _DEFAULT, on_progress)
        try:
            result = msgspec.json.decode(raw)
        except msgspec.MsgspecError as error:
            raise ProtocolViolation(f"the answer to {method} is no JSON: {error}", bytes(raw)) from None
        if not isinstance(result, dict):
            raise ProtocolViolation(f"the answer to {method} must be an object", bytes(raw))
        return cast("dict[str, Any]", result)

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send any notification.

        Raises:
            ConnectionLost: The connection has ended.
        """
        await self._conversation.notify(method, None if params is None else dict(params), timeout=self.timeout)

    async def subscribe(self, uri: str, *, timeout: float | None = _DEFAULT) -> None:
        """Have the server tell of changes of a resource; handshake revisions only. `listen` works on every revision."""
        await self._typed("resources/subscribe", t.SubscribeRequestParams(uri), timeout)
        self._hearing.subscribed.add(uri)

    async def unsubscribe(self, uri: str, *, timeout: float | None = _DEFAULT) -> None:
        """Take a `subscribe` back; handshake revisions only."""
        self._hearing.subscribed.discard(uri)
        await self._typed("resources/unsubscribe", t.UnsubscribeRequestParams(uri), timeout)

    def listen(
        self,
        *,
        tools: bool = False,
        prompts: bool = False,
        resources: bool = False,
        uris: Sequence[str] = (),
        timeout: float | None = _DEFAULT,
    ) -> Listening:
        """Return an ``async with`` block that yields typed events of what changes, on every revision.

        Args:
            tools: The list of tools.
            prompts: The list of prompts.
            resources: The lists of resources and templates.
            uris: Resources to follow.
            timeout: Seconds that the server may take to agree; by default the client's. Then there is no limit.

        What the server does not agree to tell is logged, and missing from the block's ``honoured``. The hints of some
        tutorials, notifications called ``tools/list`` and the like, count as what they mean.

        Example:
            ```
            async with client.listen(tools=True, uris=["file:///log"]) as events:
                async for event in events:
                    print(event)
            ```

        Raises:
            ConfigError: Nothing is asked for, or ``uris`` is a string.
        """
        if isinstance(uris, str):
            raise ConfigError(f"uris= takes a list of URIs: uris=[{uris!r}]")
        if not (tools or prompts or resources or uris):
            raise ConfigError(
                "listen() was asked for nothing; pass tools=True, prompts=True, resources=True or uris=[...]"
            )
        wanted = t.SubscriptionFilter(
            tools_list_changed=tools or None,
            prompts_list_changed=prompts or None,
            resources_list_changed=resources or None,
            resource_subscriptions=list(uris) or None,
        )
        patience = self.timeout if timeout is _DEFAULT else seconds(timeout, "timeout")
        return Listening(self._conversation, self._hearing, wanted, patience)

    # ------------------------------------------------------------------ inside

    def _list_again(self, name: str) -> Awaitable[None] | None:
        """List again what a server announced in a tutorial's way; a burst is one listing more, not many."""
        listed = self.tools if name == "tools" else self.resources
        if listed is None or name in self._stale or not self.revision.handshake:
            return None
        self._stale.add(name)
        return self._listed_again(name)

    async def _listed_again(self, name: str) -> None:
        await asyncio.sleep(0)  # the rest of the burst
        self._stale.discard(name)
        await (self.list_tools() if name == "tools" else self.list_resources())

    async def _typed(
        self,
        method: str,
        params: Any,
        timeout: float | None,
        max_timeout: float | None = _DEFAULT,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
        on: Contact | None = None,
    ) -> t.Received:
        row = METHODS[method]
        if not row.sent_by("client", self.revision):
            raise ConfigError(f"{method} does not exist in {self.revision}, which the server speaks")
        raw = await self._raw(method, params, timeout, max_timeout, on_progress, meta, on)
        result = self._conversation.decode(raw, row)
        if isinstance(result, t.InputRequiredResult):
            name = "" if row.name_field is None else getattr(params, row.name_field)
            raise unanswered(method, name, result, self._capabilities)
        return result

    async def _raw(
        self,
        method: str,
        params: Any,
        timeout: float | None,
        max_timeout: float | None,
        on_progress: OnProgress | None,
        meta: Mapping[str, Any] | None = None,
        on: Contact | None = None,
    ) -> Raw:
        wait = self.timeout if timeout is _DEFAULT else seconds(timeout, "timeout")
        if max_timeout is _DEFAULT:
            limit = self._max_timeout
            max_timeout = None if wait is None or limit is None else max(wait, limit)
        if on_progress is not None and not callable(on_progress):
            raise ConfigError(f"on_progress is called with (progress, total, message); {on_progress!r} is no function")
        return await self._conversation.request(
            method,
            params,
            timeout=wait,
            max_timeout=seconds(max_timeout, "max_timeout"),
            on_progress=on_progress,
            meta=meta,
            on=on,
        )

    # ------------------------------------------------------------------ after a loss

    def _may_repeat(self, method: str, params: Any) -> bool:
        row = METHODS.get(method)
        if row is None or method != "tools/call":
            return row is not None and not row.effects
        name = params.name if isinstance(params, t.CallToolRequestParams) else params.get("name")
        tool = next((tool for tool in self.tools or () if tool.name == name), None)
        hints = None if tool is None else tool.annotations
        return hints is not None and bool(hints.read_only_hint or hints.idempotent_hint)

    def _restore(self) -> Coroutine[Any, Any, None] | None:
        if self._log_level is None and not self._hearing.awaited:
            return None
        return restore(self._conversation, self._hearing, self._log_level, self.timeout)

    def _reopened(self, why: ConnectionLost) -> None:
        self.tools = self.resources = None  # the server that is there now may have others
        self._hearing.reconnected(self._conversation.here().connection, why)


def _pinned(revision: str | None) -> Revision | None:
    if revision is None:
        return None
    found = by_name(revision)
    if found is None:
        raise ConfigError(f"unknown revision {revision!r}; known are {', '.join(r.name for r in REVISIONS)}")
    return found
