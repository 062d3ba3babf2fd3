"""`Server`: what people register their functions on, and what every transport serves.

This file holds the public methods and hands the work to the features beside it. It opens no stream itself:
`modelwire.server.serve` does.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Literal, TypeVar, overload

from modelwire.errors import ConfigError, SignatureError
from modelwire.protocol import types as t
from modelwire.protocol import wire
from modelwire.protocol.jsonrpc import Notification
from modelwire.protocol.revisions import LATEST
from modelwire.rpc.call import Call
from modelwire.rpc.connection import Connection
from modelwire.rpc.dispatcher import Dispatcher
from modelwire.rpc.observer import Observer
from modelwire.rules.lines import DEFAULT_MAX_MESSAGE
from modelwire.server import contents
from modelwire.server.context import Context
from modelwire.server.features import Features
from modelwire.server.functions import Function, threads_for
from modelwire.server.program import run
from modelwire.server.prompts import suggest
from modelwire.server.serve import ServerSession, Serving, serve
from modelwire.server.signature import compile_signature, description, tool_name
from modelwire.server.workers import WorkerPool

F = TypeVar("F", bound=Callable[..., Any])


class Server:
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
        announce_lists: Also send changed lists as notifications ``tools/list``, ``resources/list`` and
            ``notifications/root``, which some tutorials teach and no revision has. Handshake revisions only.
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
        announce_lists: bool = False,
        declare: Iterable[Literal["tools", "resources", "prompts", "completions"]] = (),
        extensions: dict[str, dict[str, Any]] | None = None,
        experimental: dict[str, dict[str, Any]] | None = None,
        max_workers: int = 32,
        max_message: int = DEFAULT_MAX_MESSAGE,
        max_result: int | None = DEFAULT_MAX_MESSAGE,
        observers: Sequence[Observer] = (),
    ) -> None:
        if not isinstance(name, str) or not name:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"a server's name is a string, not {name!r}")
        if max_result is not None and (type(max_result) is not int or max_result < 1):
            raise ConfigError(f"max_result is a number of bytes, or None for no limit, not {max_result!r}")
        if page_size is not None and page_size < 1:
            raise ConfigError(f"page_size must be at least 1, not {page_size}")
        if max_result is not None and max_result < 1:
            raise ConfigError(f"max_result must be at least 1 byte, or None for no limit, not {max_result}")
        self.info = t.Implementation(
            name,
            version,
            title=title,
            description=description,
            icons=None if icons is None else list(icons),
            website_url=website_url,
        )
        self.observers = list(observers)
        self.announce_lists = announce_lists
        self.max_message = max_message
        self._pool = WorkerPool(max_workers)
        identity = wire.encode(self.info, LATEST)
        self.features = Features(
            self.info,
            identity,
            instructions=instructions,
            page_size=page_size,
            max_result=max_result,
            declare=frozenset(declare),
            extensions=extensions,
            experimental=experimental,
        )
        self.dispatcher = Dispatcher(self.features.routes, self._notice, identity)

    @property
    def name(self) -> str:
        """The program's name."""
        return self.info.name

    # ------------------------------------------------------------------ tools

    @overload
    def tool(self, function: F, /) -> F: ...
    @overload
    def tool(
        self,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: t.ToolAnnotations | None = None,
        icons: Sequence[t.Icon] | None = None,
        meta: dict[str, Any] | None = None,
        structured: bool | None = None,
        text: bool = True,
        timeout: float | None = None,
        inline: bool = False,
    ) -> Callable[[F], F]: ...
    def tool(self, function: Any = None, /, **options: Any) -> Any:
        """Register a function as a tool; use it with or without parentheses.

        The function stays a plain function. Its parameters become the tool's ``inputSchema``, its docstring the
        description of tool and parameters, its annotated result the ``outputSchema``. A parameter annotated `Context`
        receives the request. Sync functions run in a worker thread.

        Args:
            function: The function, when used without parentheses.
            **options: As in `add_tool`.

        Raises:
            SignatureError: The function cannot become a tool; the message names the parameter.
            ConfigError: There is a tool of that name already.
        """
        return _decorator(self.add_tool, function, options)

    def add_tool(
        self,
        tool: Callable[..., Any] | t.Tool,
        handler: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: t.ToolAnnotations | None = None,
        icons: Sequence[t.Icon] | None = None,
        meta: dict[str, Any] | None = None,
        structured: bool | None = None,
        text: bool = True,
        timeout: float | None = None,
        inline: bool = False,
    ) -> None:
        """Register a tool, at any time; connected clients are told.

        Args:
            tool: A function, method or any callable; or a `Tool` with a schema of your own, sent verbatim.
            handler: For a `Tool`: called with ``(arguments, ctx)``; arguments are checked against the schema.
            name: The tool's name; by default the function's.
            title: A name for people.
            description: What it does; by default the docstring.
            annotations: Hints about its behaviour.
            icons: Images that may stand for it.
            meta: Its ``_meta``.
            structured: False for text only, True for structured results even where the annotation is plain text.
            text: False leaves out the JSON text that stands beside structured results.
            timeout: Seconds that a call may take.
            inline: Run a sync function on the event loop instead of in a thread: for functions that never wait.

        Raises:
            SignatureError: The function cannot become a tool; the message names the parameter.
            ConfigError: There is a tool of that name already, or the schema is invalid.
        """
        if isinstance(tool, t.Tool):
            if handler is None:
                raise ConfigError(f"tool {tool.name!r} needs a handler: add_tool(tool, handler)")
            self.features.tools.add_handler(tool, handler, timeout, None if inline else self._pool)
            return
        name = name or tool_name(tool)
        function = self._function(tool, name, structured=structured, timeout=timeout, inline=inline)
        definition = t.Tool(
            name,
            function.signature.input_schema,
            description=description or _description(tool),
            title=title,
            output_schema=function.signature.output_schema,
            annotations=annotations,
            icons=None if icons is None else list(icons),
            meta=meta,
        )
        self.features.tools.add_function(definition, function, text=text)

    def remove_tool(self, name: str) -> None:
        """Remove a tool; connected clients are told.

        Raises:
            ConfigError: There is none of that name.
        """
        self.features.tools.registry.remove(name)

    # ------------------------------------------------------------------ resources

    def resource(
        self,
        uri: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        annotations: t.Annotations | None = None,
        icons: Sequence[t.Icon] | None = None,
        meta: dict[str, Any] | None = None,
        timeout: float | None = None,
        inline: bool = False,
    ) -> Callable[[F], F]:
        """Register a function as a resource, or with ``{variables}`` in the URI as a family of resources.

        A string becomes text, bytes a blob, anything else JSON.

        Args:
            uri: A URI, kept verbatim, or an RFC 6570 template whose variables are the function's parameters.
            name: Its name; by default the function's.
            title: A name for people.
            description: What it holds; by default the docstring.
            mime_type: Its type; by default ``text/plain``, ``application/octet-stream`` or ``application/json``.
            size: Its size in bytes, if known.
            annotations: For whom it is, how much it matters, when it changed.
            icons: Images that may stand for it.
            meta: Its ``_meta``.
            timeout: Seconds that a read may take.
            inline: Run a sync function on the event loop instead of in a thread.

        Raises:
            SignatureError: Parameters and variables do not match.
            ConfigError: The template is malformed, or there is a resource of that URI already.
        """
        if callable(uri):  # used without parentheses, as tools and prompts may be
            raise SignatureError(f"resource {tool_name(uri)!r} needs a URI: @server.resource('scheme://name')")

        def register(function: F) -> F:
            self.add_resource(
                uri,
                function,
                name=name,
                title=title,
                description=description,
                mime_type=mime_type,
                size=size,
                annotations=annotations,
                icons=icons,
                meta=meta,
                timeout=timeout,
                inline=inline,
            )
            return function

        return register

    def add_resource(
        self,
        uri: str,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        annotations: t.Annotations | None = None,
        icons: Sequence[t.Icon] | None = None,
        meta: dict[str, Any] | None = None,
        timeout: float | None = None,
        inline: bool = False,
    ) -> None:
        """Register a resource or a family of them, at any time; connected clients are told. See `resource`."""
        compiled = self._function(function, uri, structured=None, timeout=timeout, inline=inline)
        about: dict[str, Any] = {
            "title": title,
            "description": description or _description(function),
            "mime_type": mime_type,
            "annotations": annotations,
            "icons": None if icons is None else list(icons),
            "meta": meta,
        }
        name = name or tool_name(function)
        if "{" in uri:
            self.features.resources.add_template(t.ResourceTemplate(uri, name, **about), compiled)
        else:
            self.features.resources.add(t.Resource(uri, name, size=size, **about), compiled)

    def remove_resource(self, uri: str) -> None:
        """Remove a resource by its URI, or a family by its template; connected clients are told.

        Raises:
            ConfigError: There is none.
        """
        self.features.resources.remove(uri)

    # ------------------------------------------------------------------ prompts and completion

    @overload
    def prompt(self, function: F, /) -> F: ...
    @overload
    def prompt(
        self,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[t.Icon] | None = None,
        meta: dict[str, Any] | None = None,
        timeout: float | None = None,
        inline: bool = False,
    ) -> Callable[[F], F]: ...
    def prompt(self, function: Any = None, /, **options: Any) -> Any:
        """Register a function as a prompt; use it with or without parentheses.

        A returned string is one user message; a list holds strings, content blocks or `PromptMessage` objects.

        Args:
            function: The function, when used without parentheses.
            **options: As in `add_prompt`.

        Raises:
            SignatureError: The function cannot become a prompt; the message names the parameter.
            ConfigError: There is a prompt of that name already.
        """
        return _decorator(self.add_prompt, function, options)

    def add_prompt(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[t.Icon] | None = None,
        meta: dict[str, Any] | None = None,
        timeout: float | None = None,
        inline: bool = False,
    ) -> None:
        """Register a prompt, at any time; connected clients are told. See `prompt`."""
        name = name or tool_name(function)
        compiled = self._function(function, name, structured=False, timeout=timeout, inline=inline)
        definition = t.Prompt(
            name,
            title=title,
            description=description or _description(function),
            icons=None if icons is None else list(icons),
            meta=meta,
        )
        self.features.prompts.add(definition, compiled)

    def remove_prompt(self, name: str) -> None:
        """Remove a prompt; connected clients are told.

        Raises:
            ConfigError: There is none of that name.
        """
        self.features.prompts.registry.remove(name)

    def complete(self, name: str, argument: str) -> Callable[[F], F]:
        """Register who suggests values for one argument of a prompt or a resource template.

        The function is called with what has been typed so far and returns strings, of which 100 at most are sent. If it
        has a parameter ``arguments`` it also gets the values chosen already, and the context if it has ``ctx``. Sync
        functions run in a worker thread. Arguments of ``Literal`` and ``Enum`` types need nobody.

        Args:
            name: The prompt's name, or the template.
            argument: The argument.
        """

        def register(function: F) -> F:
            takes = frozenset(inspect.signature(function).parameters)
            threads = threads_for(function, self._pool)

            def answer(call: Call) -> Awaitable[Any]:
                return suggest(function, call, takes, Context(call) if "ctx" in takes else None, threads)

            self.features.completions.add(name, argument, answer)
            return function

        return register

    # ------------------------------------------------------------------ anything else

    def method(self, name: str) -> Callable[[F], F]:
        """Register who answers a method, standard or not; one that exists already is replaced.

        The function is called with ``(params, ctx)`` or as many of these as it takes: ``params`` is a dict. It returns
        the result, an object. A name that starts with ``notifications/`` is a notification: its function is called with
        ``(params, peer)`` and returns nothing. Sync functions run in a worker thread.

        Args:
            name: The method's name.
        """

        def register(function: F) -> F:
            self.features.add_method(name, function, self._pool)
            return function

        return register

    def changed(self, what: str) -> None:
        """Tell clients that a list or a resource changed. May be called from any thread, at any rate.

        Adding and removing does so by itself.

        Args:
            what: "tools", "prompts", "resources", or the URI of a resource.

        Raises:
            ConfigError: It is a misspelt list.
        """
        if what in ("tool", "prompt", "resource"):
            raise ConfigError(f"changed({what!r}) tells nobody anything; the list is called {what + 's'!r}")
        self.features.changed(what)

    # ------------------------------------------------------------------ serving

    def run(self, endpoint: Any = None) -> None:
        """Serve until the client leaves or Ctrl-C; for the end of a program. Standard input and output by default.

        Args:
            endpoint: Where to serve; None for stdio.

        Raises:
            SystemExit: With status 130 after Ctrl-C.
            ConfigError: An event loop runs here already, or the endpoint cannot be served.
        """
        run(self, endpoint)

    async def serve(self, endpoint: Any = None) -> None:
        """Serve inside a running event loop, until the client leaves.

        Args:
            endpoint: None for stdio, or a `MessageStream` of your own.
        """
        await serve(self, endpoint)

    def serving(self, endpoint: Any = None) -> Serving:
        """Return an ``async with`` block during which the server serves.

        Args:
            endpoint: None for stdio, or a `MessageStream` of your own.
        """
        return Serving(self, endpoint)

    def session(self, send: Callable[[bytes], None] | None = None) -> ServerSession:
        """Return one client's conversation, for people who bring their own transport.

        Args:
            send: Called with each frame that is no answer: notifications, and requests where the revision has them.
        """
        return ServerSession(self, send)

    # ------------------------------------------------------------------ inside

    def _function(
        self, function: Callable[..., Any], name: str, *, structured: bool | None, timeout: float | None, inline: bool
    ) -> Function:
        signature = compile_signature(
            function,
            name=name,
            context_type=Context,
            structured=structured,
            content_types=(*contents.RETURNED, t.CallToolResult, t.InputRequiredResult),
        )
        return Function(function, signature, self._pool, inline=inline, timeout=timeout)

    def _notice(self, connection: Connection, notification: Notification) -> None:
        self.features.notice(connection, notification, self.announce_lists)


def _decorator(add: Callable[..., None], function: Any, options: dict[str, Any]) -> Any:
    if isinstance(function, str):
        raise SignatureError(f"{function!r} is no function; a name goes by keyword: name={function!r}")
    if function is not None:
        add(function, **options)
        return function

    def register(decorated: Any) -> Any:
        add(decorated, **options)
        return decorated

    return register


def _description(function: Callable[..., Any]) -> str | None:
    return description(function)
