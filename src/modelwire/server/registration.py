"""`Registration`: how functions become tools, resources, prompts, completions and methods of a server.

This file holds the public methods for that and hands the work to the features beside it. It serves nothing:
`modelwire.server.server` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar, Unpack, overload

from modelwire.errors import ConfigError, SignatureError
from modelwire.protocol import types as t
from modelwire.rules.uri_template import UriTemplate
from modelwire.server import contents
from modelwire.server.annotations import Scope
from modelwire.server.caching import caching
from modelwire.server.collection import EVERYBODY
from modelwire.server.context import Context
from modelwire.server.file_registration import FileRegistration
from modelwire.server.functions import Function, refuse_timeout
from modelwire.server.given_schema import result_validator
from modelwire.server.names import warn_of_tool_name
from modelwire.server.options import Options, PromptOptions, ResourceOptions, ToolOptions, refuse_unknown
from modelwire.server.prompts import completer
from modelwire.server.resolving import ResolvingFunction
from modelwire.server.signature import compile_signature, tool_name
from modelwire.server.signature import description as documented
from modelwire.server.visibility import Visibility, visibility

F = TypeVar("F", bound=Callable[..., Any])

_BESIDE_A_TOOL = ("tags", "enabled", "timeout", "inline", "replay")
"""What a `Tool` given whole says nothing of."""


class Registration(FileRegistration):
    """What a `Server` can be given, while it is being made and while it serves.

    Whatever can be refused is refused when it is registered. Only an annotation that names a class which stands further
    down in the program waits, until the server is first needed; see `settle`.

    Args:
        features: Where what is registered is kept.
        pool: The threads that sync functions run in, and that the disk is looked at in.
    """

    # ------------------------------------------------------------------ tools

    @overload
    def tool(self, function: F, /) -> F: ...
    @overload
    def tool(self, /, **options: Unpack[ToolOptions]) -> Callable[[F], F]: ...
    def tool(self, function: Any = None, /, **options: Any) -> Any:
        """Register a function as a tool; use it with or without parentheses.

        The function stays a plain function. Its parameters become the tool's ``inputSchema``, its docstring the
        description of tool and parameters, its annotated result the ``outputSchema``. A parameter annotated `Context`
        receives the request, one with `Depends` what another function gives. Sync functions run in a worker thread.

        Args:
            function: The function, when used without parentheses.
            **options: All by keyword:

                - ``name``: The tool's name; by default the function's.
                - ``title``: A name for people.
                - ``description``: What it does; by default the docstring.
                - ``annotations``: `ToolAnnotations`, hints about its behaviour.
                - ``icons``: Images that may stand for it.
                - ``meta``: Its ``_meta``.
                - ``tags``: A set of words, by which `enable` and `disable` find it. Clients do not see them.
                - ``enabled``: False registers it switched off. A function decides for each request, called with the
                  `Context` or with nothing: ``lambda ctx: ctx.peer.principal == "admin"``. It is quick, for it runs on
                  the event loop, and for lists, too. Clients to whom the tool is not there cannot tell that it exists.
                  In 2026-07-28 a list may depend on who asks and on time, but "MUST NOT vary per-connection".
                - ``timeout``: Seconds that a call may take.
                - ``inline``: Run a sync function on the event loop instead of in a thread: for functions that never
                  wait.
                - ``structured``: False for text only, True for structured results even where the annotation is plain
                  text.
                - ``text``: False leaves out the JSON text that stands beside structured results.
                - ``replay``: False where the function must not be run again from the top, as ``Server(state_keys=...)``
                  would have it; then only the process that asked can go on with the answer.
                - ``input_schema``: JSON Schema of the arguments, sent verbatim. They are validated by it; parameters
                  get the members of their names, converted by their types, ``**kwargs`` the others as they are, and
                  ``*args`` the list of that name.
                - ``output_schema``: JSON Schema of the result, sent in place of the annotation's. Results are validated
                  by it before they are sent.

        Raises:
            SignatureError: The function cannot become a tool; the message names the parameter.
            ConfigError: There is a tool of that name already, or a schema is invalid.
        """
        return _decorator(self.add_tool, function, options)

    def add_tool(
        self,
        tool: Callable[..., Any] | t.Tool,
        handler: Callable[..., Any] | None = None,
        **options: Unpack[ToolOptions],
    ) -> None:
        """Register a tool, at any time; connected clients are told.

        Args:
            tool: A function, method or any callable; or a `Tool` with a schema of your own, sent verbatim.
            handler: For a `Tool`: called with ``(arguments, ctx)``; arguments and results are held against its schemas.
            **options: As for `tool`; beside a `Tool` only ``tags``, ``enabled``, ``timeout``, ``inline`` and
                ``replay``.

        Raises:
            SignatureError: The function cannot become a tool; the message names the parameter.
            ConfigError: There is a tool of that name already, or a schema is invalid.
        """
        refuse_unknown("add_tool", options, ToolOptions)
        if not isinstance(tool, t.Tool):
            self._add_function(tool, handler, options)
            return
        for option in options:
            if option not in _BESIDE_A_TOOL:
                raise ConfigError(f"tool {tool.name!r}: {option}= belongs into the Tool that is given")
        if handler is None:
            raise ConfigError(f"tool {tool.name!r} needs a handler: add_tool(tool, handler)")
        refuse_timeout(options.get("timeout"))
        seen = _seen(f"tool {tool.name!r}", options)
        tools, pool = self.features.tools, None if options.get("inline") else self._pool
        entry = tools.from_handler(tool, handler, options.get("timeout"), pool)
        entry.replay = options.get("replay", True)
        self.features.add(tools.registry, tool.name, seen, lambda: entry)
        warn_of_tool_name(tool.name)

    def _add_function(
        self, function: Callable[..., Any], handler: Callable[..., Any] | None, options: ToolOptions
    ) -> None:
        name = options.get("name") or tool_name(function)
        if handler is not None:
            raise ConfigError(f"tool {name!r}: a handler stands beside a Tool; {function!r} is called itself")
        given = options.get("output_schema")
        structured = options.get("structured")
        if given is not None and structured is False:
            raise ConfigError(f"tool {name!r}: structured=False sends text only, and leaves no use for output_schema=")
        validate = None if given is None else result_validator(name, given)
        tools = self.features.tools
        compiled = self._compiler(function, name, options, structured, options.get("input_schema"))

        def build() -> Any:
            made = compiled()
            tool = t.Tool(
                name,
                made.signature.input_schema,
                **_about(made.signature.description, options),
                output_schema=made.signature.output_schema if given is None else given,
                annotations=options.get("annotations"),
            )
            entry = tools.from_function(tool, made, text=options.get("text", True), validate=validate)
            entry.replay = options.get("replay", True)
            return entry

        self.features.add(tools.registry, name, _seen(f"tool {name!r}", options), build)
        warn_of_tool_name(name)

    def remove_tool(self, name: str) -> None:
        """Remove a tool; connected clients are told.

        Raises:
            ConfigError: There is none of that name.
        """
        self.features.tools.registry.remove(name)

    # ------------------------------------------------------------------ resources

    def resource(self, uri: str, **options: Unpack[ResourceOptions]) -> Callable[[F], F]:
        """Register a function as a resource, or with ``{variables}`` in the URI as a family of resources.

        A string becomes text, bytes a blob, anything else JSON.

        Args:
            uri: A URI, kept verbatim, or an RFC 6570 template whose variables are the function's parameters.
            **options: All by keyword:

                - ``name``: Its name; by default the function's.
                - ``title``: A name for people.
                - ``description``: What it holds; by default the docstring.
                - ``mime_type``: Its type; by default ``text/plain``, ``application/octet-stream`` or
                  ``application/json``.
                - ``size``: Its size in bytes, if known.
                - ``ttl``: Seconds for which clients of 2026-07-28 may go by what they have read without asking again,
                  unless they hear that it has changed (`changed`). By default 0.
                - ``shared``: Whether a gateway may tell others what one client has read: only where it is the same for
                  everybody who may read it at all. By default it may not.
                - ``annotations``: `Annotations`: for whom it is, how much it matters, when it changed.
                - ``icons``: Images that may stand for it.
                - ``meta``: Its ``_meta``.
                - ``tags``, ``enabled``: As for `tool`. Who cannot see it is told of no changes either.
                - ``timeout``: Seconds that a read may take.
                - ``inline``: Run a sync function on the event loop instead of in a thread.

        Raises:
            SignatureError: Parameters and variables do not match.
            ConfigError: The template is malformed, or there is a resource of that URI already.
        """
        if callable(uri):  # used without parentheses, as tools and prompts may be
            raise SignatureError(f"resource {tool_name(uri)!r} needs a URI: @server.resource('scheme://name')")

        def register(function: F) -> F:
            self.add_resource(uri, function, **options)
            return function

        return register

    def add_resource(self, uri: str, function: Callable[..., Any], **options: Unpack[ResourceOptions]) -> None:
        """Register a resource or a family of them, at any time; connected clients are told. See `resource`."""
        refuse_unknown("add_resource", options, ResourceOptions)
        about: dict[str, Any] = {
            **_about(documented(function), options),
            "mime_type": options.get("mime_type"),
            "annotations": options.get("annotations"),
        }
        name = options.get("name") or tool_name(function)
        seen = _seen(f"resource {uri!r}", options)
        kept = caching(f"resource {uri!r}", options.get("ttl"), options.get("shared", False), seen)
        resources = self.features.resources
        compiled = self._compiler(function, uri, options, None)
        if "{" in uri:
            pattern = UriTemplate(uri)
            template = t.ResourceTemplate(uri, name, **about)
            add, registry = resources.family, resources.templates
            self.features.add(registry, uri, seen, lambda: add(template, pattern, compiled(), kept))
        else:
            resource = t.Resource(uri, name, size=options.get("size"), **about)
            self.features.add(resources.fixed, uri, seen, lambda: resources.from_function(resource, compiled(), kept))

    def remove_resource(self, uri: str) -> None:
        """Remove a resource by its URI, a family by its template, or a directory by its prefix; clients are told.

        Raises:
            ConfigError: There is none.
        """
        self.features.resources.remove(uri)

    # ------------------------------------------------------------------ prompts and completion

    @overload
    def prompt(self, function: F, /) -> F: ...
    @overload
    def prompt(self, /, **options: Unpack[PromptOptions]) -> Callable[[F], F]: ...
    def prompt(self, function: Any = None, /, **options: Any) -> Any:
        """Register a function as a prompt; use it with or without parentheses.

        A returned string is one user message; a list holds strings, content blocks or `PromptMessage` objects.

        Args:
            function: The function, when used without parentheses.
            **options: ``name``, ``title``, ``description``, ``icons``, ``meta``, ``tags``, ``enabled``, ``timeout`` and
                ``inline``, as for `tool`.

        Raises:
            SignatureError: The function cannot become a prompt; the message names the parameter.
            ConfigError: There is a prompt of that name already.
        """
        return _decorator(self.add_prompt, function, options)

    def add_prompt(self, function: Callable[..., Any], **options: Unpack[PromptOptions]) -> None:
        """Register a prompt, at any time; connected clients are told. See `prompt`."""
        refuse_unknown("add_prompt", options, PromptOptions)
        name = options.get("name") or tool_name(function)
        prompts = self.features.prompts
        compiled = self._compiler(function, name, options, False, check_content=False)
        prompt = t.Prompt(name, **_about(documented(function), options))
        seen = _seen(f"prompt {name!r}", options)
        self.features.add(prompts.registry, name, seen, lambda: prompts.from_function(prompt, compiled()))

    def remove_prompt(self, name: str) -> None:
        """Remove a prompt; connected clients are told.

        Raises:
            ConfigError: There is none of that name.
        """
        self.features.prompts.registry.remove(name)

    def complete(self, name: str, argument: str) -> Callable[[F], F]:
        """Register who suggests values for one argument of a prompt or a resource template.

        The function is called with what has been typed so far and returns strings, of which 100 at most are sent, or a
        `Completion`; a generator is asked for no more than that. If it has a parameter ``arguments`` it also gets the
        values chosen already, and the context if it has ``ctx``; other parameters are dependencies (`Depends`). Sync
        functions run in a worker thread. Arguments of ``Literal`` and ``Enum`` types need nobody.

        The prompt may be registered later; one that is not there when the server is first needed is a `ConfigError`.

        Args:
            name: The prompt's name, or the template.
            argument: The argument.

        Raises:
            SignatureError: The function has a parameter that nothing fills; the message names it.
        """

        def register(function: F) -> F:
            what = f"completion of {argument!r} of {name!r}"
            completions, kinds = self.features.completions, self.features.lifespan.kinds

            def add() -> None:
                answer = completer(function, what, kinds, self._pool)
                self.features.check(lambda: completions.check(name, argument))
                completions.add(name, argument, answer)

            self.features.attempt(add)
            return function

        return register

    # ------------------------------------------------------------------ on and off

    def enable(
        self,
        *names: str,
        kind: Literal["tool", "prompt", "resource"] | None = None,
        tags: Iterable[str] = (),
    ) -> None:
        """Switch on what was switched off, or registered with ``enabled=False``. From any thread.

        Clients are told of each list that changed, once. Where a function was given as ``enabled=`` it decides again.

        Args:
            *names: Names of tools and prompts, URIs and templates of resources.
            kind: Which of them, if one name is used for several; limits ``tags``, too.
            tags: Also everything that has any of these tags at this moment.

        Raises:
            ConfigError: There is nothing of that name or with that tag, or several kinds of it; nothing is switched.

        Example:
            ```
            server.disable("drop_table", "db://secrets")
            server.enable(tags={"admin"})
            server.disable("search", kind="prompt")  # there is a tool of that name, too
            ```
        """
        self.features.switch(True, names, kind, tags)

    def disable(
        self,
        *names: str,
        kind: Literal["tool", "prompt", "resource"] | None = None,
        tags: Iterable[str] = (),
    ) -> None:
        """Switch off: to clients it is then as if it had never been registered. From any thread. See `enable`.

        Calls that run already go on.
        """
        self.features.switch(False, names, kind, tags)

    # ------------------------------------------------------------------ anything else

    def settle(self) -> None:
        """Finish registering: evaluate the annotations that name what was not defined yet, and look at completions.

        Whatever serves does this first, so that a mistake comes before the first answer; call it to have it earlier.

        Raises:
            SignatureError: A name is not defined; the message names tool and parameter.
            ConfigError: `complete` names a prompt, template or argument that does not exist.
        """
        self.features.later.settle()

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

    # ------------------------------------------------------------------ inside

    def _compiler(
        self,
        function: Callable[..., Any],
        name: str,
        options: Options,
        structured: bool | None,
        input_schema: dict[str, Any] | None = None,
        *,
        check_content: bool = True,
    ) -> Callable[[], Function]:
        """Return what compiles a function, each time with the names that are defined by then."""
        timeout = options.get("timeout")
        refuse_timeout(timeout)
        scope = Scope(function)

        def compiled() -> Function:
            scope.refresh()
            signature = compile_signature(
                function,
                name=name,
                context_type=Context,
                shared=self.features.lifespan.kinds,
                structured=structured,
                check_content=check_content,
                content_types=(*contents.RETURNED, t.CallToolResult, t.InputRequiredResult),
                input_schema=input_schema,
                scope=scope,
            )
            inline = options.get("inline", False)
            if signature.plan is None:
                return Function(function, signature, self._pool, inline=inline, timeout=timeout)
            return ResolvingFunction(function, signature, signature.plan, self._pool, inline=inline, timeout=timeout)

        return compiled


def _seen(what: str, options: Options) -> Visibility:
    if "enabled" not in options and "tags" not in options:
        return EVERYBODY
    return visibility(what, options.get("enabled", True), options.get("tags", ()))


def _about(described: str | None, options: Options) -> dict[str, Any]:
    icons = options.get("icons")
    return {
        "title": options.get("title"),
        "description": options.get("description") or described,
        "icons": None if icons is None else list(icons),
        "meta": options.get("meta"),
    }


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
