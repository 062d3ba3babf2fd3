"""`Registration`: how functions become tools, resources, prompts, completions and methods of a server.

This file holds the public methods for that and hands the work to the features beside it. It serves nothing:
`modelwire.server.server` does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar, overload

from modelwire.errors import ConfigError, SignatureError
from modelwire.protocol import types as t
from modelwire.server import contents
from modelwire.server.context import Context
from modelwire.server.directories import Directory, SingleFile
from modelwire.server.features import Features
from modelwire.server.file_types import media_type
from modelwire.server.functions import Function
from modelwire.server.prompts import completer
from modelwire.server.resolving import ResolvingFunction
from modelwire.server.signature import compile_signature, tool_name
from modelwire.server.signature import description as documented
from modelwire.server.workers import WorkerPool

F = TypeVar("F", bound=Callable[..., Any])


class Registration:
    """What a `Server` can be given, while it is being made and while it serves.

    Args:
        features: Where what is registered is kept.
        pool: The threads that sync functions run in.
    """

    def __init__(self, features: Features, pool: WorkerPool) -> None:
        self.features = features
        self._pool = pool

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
        receives the request, one with `Depends` what another function gives. Sync functions run in a worker thread.

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
            handler: For a `Tool`: called with ``(arguments, ctx)``; arguments and results are held against its schemas.
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
            description=description or documented(tool),
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
            "description": description or documented(function),
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

    def add_file(
        self,
        uri: str,
        path: str | PathLike[str],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        annotations: t.Annotations | None = None,
        icons: Sequence[t.Icon] | None = None,
        meta: dict[str, Any] | None = None,
    ) -> None:
        """Register a file as a resource, at any time; connected clients are told.

        It is read anew at each read, in a thread; the list has its size and when it changed. A file of text in UTF-8
        is text, any other one a blob. One that is gone is not listed, and not found.

        Args:
            uri: Its URI, kept verbatim.
            path: The file; links are followed.
            name: Its name; by default that of the file.
            title: A name for people.
            description: What it holds.
            mime_type: Its type; by default by the end of the file's name, or by its first bytes.
            annotations: For whom it is, how much it matters.
            icons: Images that may stand for it.
            meta: Its ``_meta``.

        Raises:
            ConfigError: There is no such file, or there is a resource of that URI already.

        Example:
            ```
            server.add_file("docs://readme", "README.md")
            ```
        """
        file = Path(path)
        resource = t.Resource(
            uri,
            name or file.name,
            title=title,
            description=description,
            mime_type=mime_type or media_type(file.name),
            annotations=annotations,
            icons=None if icons is None else list(icons),
            meta=meta,
        )
        self.features.add_files(SingleFile(resource, file), self._pool)

    def add_directory(
        self,
        uri: str,
        path: str | PathLike[str],
        *,
        pattern: str = "**/*",
        hidden: bool = False,
        watch: bool = False,
        max_files: int = 10_000,
        mime_type: str | None = None,
        annotations: t.Annotations | None = None,
        icons: Sequence[t.Icon] | None = None,
        meta: dict[str, Any] | None = None,
    ) -> None:
        """Register every file below a directory as a resource, at any time; connected clients are told.

        With ``docs://`` the file ``sub/my file.md`` is ``docs://sub/my%20file.md``. The list is made of what is there
        when it is asked for, and a file can be read as soon as it exists. Nothing outside the directory is ever read,
        whatever a URI or a link says; neither are devices and FIFOs, nor files above the server's ``max_result``.

        Args:
            uri: What the URIs begin with.
            path: The directory.
            pattern: Which files: ``*``, ``?`` and ``[...]`` within a name, ``**`` for any number of folders.
            hidden: Also files whose names, or whose folders' names, begin with a dot.
            watch: While serving, tell clients of files that come, go and change; for what is registered before the
                serving begins. Needs ``modelwire[watch]``.
            max_files: How many files are listed; more can be read, and the log says that there are more.
            mime_type: The type of all of them; by default each by the end of its name, or by its first bytes.
            annotations: For whom they are, how much they matter.
            icons: Images that may stand for each.
            meta: The ``_meta`` of each.

        Raises:
            ConfigError: There is no such directory, the prefix or the pattern is malformed, there is a resource of that
                URI already, or what ``watch`` needs is not installed.

        Example:
            ```
            server.add_directory("docs://", "docs", pattern="**/*.md")
            ```
        """
        template = t.Resource(
            uri,
            "",
            mime_type=mime_type,
            annotations=annotations,
            icons=None if icons is None else list(icons),
            meta=meta,
        )
        directory = Directory(uri, Path(path), pattern=pattern, hidden=hidden, max_files=max_files, template=template)
        add = self.features.add_watched if watch else self.features.add_files
        add(directory, self._pool)

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
            description=description or documented(function),
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
        has a parameter ``arguments`` it also gets the values chosen already, and the context if it has ``ctx``; other
        parameters are dependencies (`Depends`). Sync functions run in a worker thread. Arguments of ``Literal`` and
        ``Enum`` types need nobody.

        Args:
            name: The prompt's name, or the template.
            argument: The argument.

        Raises:
            SignatureError: The function has a parameter that nothing fills; the message names it.
        """

        def register(function: F) -> F:
            what = f"completion of {argument!r} of {name!r}"
            answer = completer(function, what, self.features.lifespan.kinds, self._pool)
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

    # ------------------------------------------------------------------ inside

    def _function(
        self, function: Callable[..., Any], name: str, *, structured: bool | None, timeout: float | None, inline: bool
    ) -> Function:
        signature = compile_signature(
            function,
            name=name,
            context_type=Context,
            shared=self.features.lifespan.kinds,
            structured=structured,
            content_types=(*contents.RETURNED, t.CallToolResult, t.InputRequiredResult),
        )
        if signature.plan is None:
            return Function(function, signature, self._pool, inline=inline, timeout=timeout)
        return ResolvingFunction(function, signature, signature.plan, self._pool, inline=inline, timeout=timeout)


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
