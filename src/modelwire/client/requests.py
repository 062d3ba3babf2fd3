"""What can be asked of a server: every public method of a client that sends a request.

How a request travels, and what becomes of one that gets lost, is in `modelwire.client.conversation`; opening and
closing are in `modelwire.client.client`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Literal, TypeVar, cast, overload

import msgspec
from msgspec import UNSET, Raw, structs

from modelwire.client.answering import Answering
from modelwire.client.cache import Kept
from modelwire.client.connect import ping_method
from modelwire.client.contact import Contact
from modelwire.client.conversation import Conversation
from modelwire.client.failures import Blame
from modelwire.client.hearing import Hearing
from modelwire.client.listening import Listening, wanted_filter
from modelwire.client.lists import whole_list
from modelwire.client.rounds import Rounds
from modelwire.client.values import arguments_json, prompt_arguments, reference, responses, seconds, value_of
from modelwire.errors import ConfigError, PeerError, ProtocolViolation, UrlElicitationNeeded
from modelwire.protocol import structured
from modelwire.protocol import types as t
from modelwire.protocol.methods import METHODS
from modelwire.protocol.revisions import Revision
from modelwire.rules.cache import Asked
from modelwire.rules.pending import OnProgress

T = TypeVar("T")


class _TheClients:
    """Stands for "as the client was told" where None has a meaning of its own."""

    def __repr__(self) -> str:
        return "<the client's>"


DEFAULT: Any = _TheClients()


class Requests:
    """The part of `modelwire.client.client.Client` that asks; it sets what is declared here."""

    timeout: float | None
    """Seconds that a request may take without answer or progress, where a call says nothing else."""
    tools: list[t.Tool] | None
    """The tools as last listed, maybe by the client itself; None before, and again when a connection was replaced."""
    resources: list[t.Resource] | None
    """The resources as last listed, likewise."""
    _max_timeout: float | None
    _answering: Answering
    _rounds: Rounds
    _log_level: t.LoggingLevel | None
    _hearing: Hearing
    _stale: set[str]
    _kept: Kept
    _conversation: Conversation

    @property
    def revision(self) -> Revision:
        """The revision that both sides speak."""
        return self._conversation.contacts.opened.revision

    # ------------------------------------------------------------------ lists

    async def list_tools(self, *, timeout: float | None = DEFAULT, fresh: bool = False) -> list[t.Tool]:
        """Return every tool, following pages; empty when the server has none to list.

        Pages that the server has called fresh for a while (2026-07-28) are not asked for again while they are, nor told
        to have changed; see `Cache`.

        Args:
            timeout: Seconds per page; by default the client's.
            fresh: Whether to ask the server in any case.

        Raises:
            ProtocolViolation: There are more than 1000 pages.
        """
        tools = self._conversation.contacts.tool_headers.learn(await self._list("tools/list", "tools", timeout, fresh))
        self.tools = [structured.unwrap_tool(tool) for tool in tools]
        return list(self.tools)

    async def list_resources(self, *, timeout: float | None = DEFAULT, fresh: bool = False) -> list[t.Resource]:
        """Return every resource, following pages; empty when the server has none to list. See `list_tools`."""
        self.resources = await self._list("resources/list", "resources", timeout, fresh)
        return list(self.resources)

    async def list_resource_templates(
        self, *, timeout: float | None = DEFAULT, fresh: bool = False
    ) -> list[t.ResourceTemplate]:
        """Return every resource template, following pages. See `list_tools`."""
        return await self._list("resources/templates/list", "resource_templates", timeout, fresh)

    async def list_prompts(self, *, timeout: float | None = DEFAULT, fresh: bool = False) -> list[t.Prompt]:
        """Return every prompt, following pages. See `list_tools`."""
        return await self._list("prompts/list", "prompts", timeout, fresh)

    async def _list(self, method: str, field: str, timeout: float | None, fresh: bool) -> list[Any]:
        opened = self._conversation.contacts.opened
        if opened.declared and getattr(opened.capabilities, cast(str, METHODS[method].capability)) is None:
            return []

        def page(cursor: str | None, on: Contact | None) -> Awaitable[Any]:
            params = t.PaginatedRequestParams(cursor=cursor)
            return self._cacheable(method, cursor, params, timeout, fresh, on=on)

        return await whole_list(method, field, page, self._conversation.contacts, lambda: self._kept.forget(method))

    # ------------------------------------------------------------------ tools

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
    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = DEFAULT,
        max_timeout: float | None = DEFAULT,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
        rounds: bool = True,
        input_responses: Mapping[str, Any] | None = None,
        request_state: str | None = None,
    ) -> t.CallToolResult | t.InputRequiredResult:
        """Call a tool and return its result as it is, ``is_error`` included.

        Args:
            name: The tool.
            arguments: Its arguments.
            timeout: Seconds without answer or progress; by default the client's; None for no limit. Where the server
                asks something first, for each round anew; the time in which it is answered does not count.
            max_timeout: Seconds whatever progress comes, likewise.
            on_progress: Called with ``(progress, total, message)``, every time before this returns.
            meta: Further entries for the request's ``_meta``.
            rounds: Whether to answer what the server asks, and call again, until there is a result. Otherwise what it
                asks is returned (`InputRequiredResult`), to be answered by hand, and pages that are needed first are
                an error.
            input_responses: Answers by key, to what was asked before: dicts, or such as `types.ElicitResult`.
            request_state: The state that came with what was asked before.

        Raises:
            InvalidParams: There is no such tool.
            RequestTimeout: No answer came in time; the server is told to stop.
            ConnectionLost: The connection ended.
            ProtocolViolation: The answer breaks a rule, or asks for what the client does not declare.
            Unanswered: What the server asked could not be answered, or it asked too often.
            UrlElicitationNeeded: A page has to be dealt with first, and nobody agreed to.
            ConfigError: The arguments cannot be sent; or the tool asks for what was declared without anybody to answer.
        """
        encoded = arguments_json(arguments)
        params = t.CallToolRequestParams(name, arguments=UNSET if encoded is None else Raw(encoded))
        if input_responses is not None or request_state is not None:
            params = structs.replace(params, **self._by_hand(input_responses, request_state))
        try:
            result = await self._typed("tools/call", params, timeout, max_timeout, on_progress, meta, rounds=rounds)
        except PeerError as error:
            await self._conversation.contacts.tool_headers.unless_the_same(error, name, self.list_tools, timeout)
            result = await self._typed("tools/call", params, timeout, max_timeout, on_progress, meta, rounds=rounds)
        return result if type(result) is t.InputRequiredResult else structured.unwrap_result(result)

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
        timeout: float | None = DEFAULT,
        max_timeout: float | None = DEFAULT,
        on_progress: OnProgress | None = None,
    ) -> Any:
        """Call a tool and return its value: the structured content, or else the text, or else the content blocks.

        Args:
            name: The tool.
            arguments: Its arguments.
            returns: The type that the value is converted to; also out of the ``{"result": ...}`` in which servers made
                with other libraries wrap what is no object. Type checkers know the result of a class; of a union such
                as ``int | None`` they know `Any`, so that the variable may say what it is.
            timeout: As for `call_tool`.
            max_timeout: As for `call_tool`.
            on_progress: As for `call_tool`.

        Raises:
            ToolError: The tool failed; the message is what it said.
            Unanswered: What the server asked could not be answered, and so the tool failed.
            WrongResult: The value is not of the type. The tool has run; ``error.result`` is all that it returned.
        """
        with Blame(self._answering.failures, name):
            result = await self.call_tool(
                name, arguments, timeout=timeout, max_timeout=max_timeout, on_progress=on_progress
            )
            return value_of(result, returns, name)

    # ------------------------------------------------------------------ resources, prompts, completion

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
    async def read_resource(
        self,
        uri: str,
        *,
        timeout: float | None = DEFAULT,
        fresh: bool = False,
        rounds: bool = True,
        input_responses: Mapping[str, Any] | None = None,
        request_state: str | None = None,
    ) -> t.ReadResourceResult | t.InputRequiredResult:
        """Read a resource.

        One that the server has called fresh for a while (2026-07-28) is not asked for again; see `Cache`.

        Args:
            uri: The resource.
            timeout: As for `call_tool`.
            fresh: Whether to ask the server in any case.
            rounds: As for `call_tool`.
            input_responses: As for `call_tool`.
            request_state: As for `call_tool`.

        Raises:
            ResourceNotFound: There is none of that URI.
        """
        by_hand = self._by_hand(input_responses, request_state)
        params = t.ReadResourceRequestParams(uri, **by_hand)
        with Blame(self._answering.failures, uri):
            if by_hand:  # "MUST NOT be cached, as they depend on inputs that are not part of the cache key"
                return await self._typed("resources/read", params, timeout, rounds=rounds)
            return await self._cacheable("resources/read", uri, params, timeout, fresh, rounds=rounds)

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
    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = DEFAULT,
        rounds: bool = True,
        input_responses: Mapping[str, Any] | None = None,
        request_state: str | None = None,
    ) -> t.GetPromptResult | t.InputRequiredResult:
        """Have a prompt written out.

        Args:
            name: The prompt.
            arguments: Its arguments; what is no string is sent as its JSON.
            timeout: As for `call_tool`.
            rounds: As for `call_tool`.
            input_responses: As for `call_tool`.
            request_state: As for `call_tool`.

        Raises:
            InvalidParams: There is no such prompt, or an argument is missing or wrong.
        """
        by_hand = self._by_hand(input_responses, request_state)
        params = t.GetPromptRequestParams(name, arguments=prompt_arguments(arguments), **by_hand)
        with Blame(self._answering.failures, name):
            return await self._typed("prompts/get", params, timeout, rounds=rounds)

    async def complete(
        self,
        ref: str | t.PromptReference | t.ResourceTemplateReference,
        argument: str,
        value: str = "",
        *,
        arguments: Mapping[str, str] | None = None,
        timeout: float | None = DEFAULT,
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

    async def ping(self, *, timeout: float | None = DEFAULT) -> None:
        """Ask for a sign of life: ``ping``, or ``server/discover`` where the revision has no ping."""
        await self.request(ping_method(self.revision), timeout=timeout)

    async def set_log_level(self, level: t.LoggingLevel, *, timeout: float | None = DEFAULT) -> None:
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
        timeout: float | None = DEFAULT,
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
        raw = await self._raw(method, None if params is None else dict(params), timeout, DEFAULT, on_progress)
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

    async def roots_changed(self) -> None:
        """Tell the server that there are other roots now; where it asks for them whenever it needs them, do nothing.

        Raises:
            ConfigError: The client was given no ``roots=``.
            ConnectionLost: The connection has ended.
        """
        if self._answering.roots is None:
            raise ConfigError("this client has no roots; give it roots=, best as a function that returns them")
        if self.revision.handshake:
            await self.notify("notifications/roots/list_changed")

    async def subscribe(self, uri: str, *, timeout: float | None = DEFAULT) -> None:
        """Have the server tell of changes of a resource; handshake revisions only. `listen` works on every revision."""
        await self._typed("resources/subscribe", t.SubscribeRequestParams(uri), timeout)
        self._hearing.subscribed.add(uri)

    async def unsubscribe(self, uri: str, *, timeout: float | None = DEFAULT) -> None:
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
        timeout: float | None = DEFAULT,
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
        wanted = wanted_filter(tools=tools, prompts=prompts, resources=resources, uris=uris)
        patience = self.timeout if timeout is DEFAULT else seconds(timeout, "timeout")
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

    async def _cacheable(
        self, method: str, name: str | None, params: Any, timeout: float | None, fresh: bool, **how: Any
    ) -> Any:
        """Return the result that is kept for ``method`` and ``name``, or else, and if ``fresh``, what `_typed` does."""
        return await self._kept.get(
            (method, name),
            lambda asked: self._typed(method, params, timeout, asked=asked, **how),
            lambda raw: self._conversation.decode(raw, METHODS[method]),
            fresh=fresh,
        )

    async def _typed(
        self,
        method: str,
        params: Any,
        timeout: float | None,
        max_timeout: float | None = DEFAULT,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
        *,
        on: Contact | None = None,
        rounds: bool = False,
        asked: Asked | None = None,
    ) -> Any:
        """Send a request; return its result, typed. With ``rounds``, what the server asks first is answered.

        With ``asked`` its result is kept, but not that of a further round.
        """
        row = METHODS[method]
        if not row.sent_by("client", self.revision):
            raise ConfigError(f"{method} does not exist in {self.revision}, which the server speaks")
        try:
            raw = await self._raw(method, params, timeout, max_timeout, on_progress, meta, on)
        except UrlElicitationNeeded as needed:
            if not rounds:
                raise
            result = needed
        else:
            result = self._conversation.decode(raw, row)
            if asked is not None:
                self._kept.answered(asked, raw, result)
            if not rounds or type(result) is not t.InputRequiredResult:
                return result

        async def send(again: Any) -> Any:
            return await self._typed(method, again, timeout, max_timeout, on_progress, meta)

        return await self._rounds.go(method, getattr(params, row.name_field or ""), params, result, send)

    def _by_hand(self, input_responses: Mapping[str, Any] | None, request_state: str | None) -> dict[str, Any]:
        """Return the members of a request that goes on where an `InputRequiredResult` left it."""
        if input_responses is None and request_state is None:
            return {}
        if self.revision.handshake:
            raise ConfigError(f"input_responses= and request_state= do not exist in {self.revision}")
        return {"input_responses": responses(input_responses, self.revision), "request_state": request_state}

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
        wait = self.timeout if timeout is DEFAULT else seconds(timeout, "timeout")
        if max_timeout is DEFAULT:
            limit = self._max_timeout
            max_timeout = None if wait is None or limit is None else max(wait, limit)
        if on_progress is not None and not callable(on_progress):
            raise ConfigError(f"on_progress is called with (progress, total, message); {on_progress!r} is no function")
        try:
            return await self._conversation.request(
                method,
                params,
                timeout=wait,
                max_timeout=seconds(max_timeout, "max_timeout"),
                on_progress=on_progress,
                meta=meta,
                on=on,
            )
        except PeerError as error:
            self._kept.doubt(method, error)
            raise

    def _may_repeat(self, method: str, params: Any) -> bool:
        row = METHODS.get(method)
        if row is None or method != "tools/call":
            return row is not None and not row.effects
        name = params.name if isinstance(params, t.CallToolRequestParams) else params.get("name")
        tool = next((tool for tool in self.tools or () if tool.name == name), None)
        hints = None if tool is None else tool.annotations
        return hints is not None and bool(hints.read_only_hint or hints.idempotent_hint)
