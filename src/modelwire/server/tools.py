"""Tools: registering them, listing them, calling them.

Whatever goes wrong inside a tool becomes a result with ``isError``, never a JSON-RPC error and never the end of the
session; an unknown tool is ``-32602``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from msgspec import UNSET

from modelwire.errors import INVALID_PARAMS, CapabilityRequired, ConnectionLost, PeerError, RpcError, ToolError
from modelwire.log import log as _log
from modelwire.protocol import structured, wire
from modelwire.protocol.revisions import LATEST
from modelwire.protocol.types import CallToolResult, InputRequiredResult, TextContent, Tool
from modelwire.rpc.at_once import run_at_once
from modelwire.rpc.call import Call
from modelwire.rules.param_headers import Path, param_headers
from modelwire.server import contents
from modelwire.server.arguments import not_an_object
from modelwire.server.context import Context
from modelwire.server.crashes import log_crash
from modelwire.server.functions import Expired, Function, positional_count, run_sync, threads_for, within
from modelwire.server.given_schema import argument_validator, result_validator
from modelwire.server.limits import too_large
from modelwire.server.names import nearest
from modelwire.server.registry import Registry
from modelwire.server.signature import ResultError
from modelwire.server.spoken import spoken
from modelwire.server.workers import WorkerPool

ToolHandler = Callable[..., Any]
"""A low-level handler: ``handler(arguments: dict, ctx: Context)``, sync or async, that returns anything a tool may."""


_RESULTS = (CallToolResult, InputRequiredResult)


class ToolEntry:
    """One registered tool.

    Args:
        tool: What ``tools/list`` says of it.
        run: Called with the call; returns, to be awaited, what the tool's function returned.
        finish: Turns that into a result, or into the JSON of one.
        max_result: The most bytes that a result may have; None for any number.
        run_now: Runs the tool to its end and returns what it returned, where nothing in it waits; None otherwise.

    Attributes:
        replay: Whether it may be run again from the top when answers come and it is no longer in memory.
        now: Does as `call` does without waiting; None where the tool may wait.
    """

    __slots__ = ("_headers", "finish", "max_result", "now", "replay", "run", "tool", "wraps")

    def __init__(
        self,
        tool: Tool,
        run: Callable[[Call], Awaitable[Any]],
        finish: Callable[[ToolEntry, Call, Any], Any],
        max_result: int | None,
        run_now: Callable[[Call], Any] | None = None,
    ) -> None:
        self.tool = tool
        self.replay = True
        self._headers: dict[str, Path] | None = None
        self.now = None if run_now is None else self._calling_now(run_now)
        self.max_result = max_result
        self.run = run
        self.finish = finish
        self.wraps = tool.output_schema is not None and structured.needs_wrapping(tool.output_schema)

    @property
    def headers(self) -> dict[str, Path]:
        """The arguments that HTTP headers repeat, by the rest of the header's name; found at the first look."""
        if self._headers is None:
            self._headers = param_headers(self.tool.input_schema)
        return self._headers

    async def call(self, call: Call) -> bytes:
        """Run the tool and return its result as JSON; failures are results, too, and so is one that is too large."""
        try:
            answer = self._finished(call, await self.run(call))
        except BaseException as error:
            answer = self._failed(call, error)
        return answer if self.max_result is None else self._bounded(call, answer, self.max_result)

    def _calling_now(self, run_now: Callable[[Call], Any]) -> Callable[[Call], bytes]:
        def call_now(call: Call) -> bytes:
            try:
                answer = self._finished(call, run_now(call))
            except BaseException as error:
                answer = self._failed(call, error)
            return answer if self.max_result is None else self._bounded(call, answer, self.max_result)

        return call_now

    def _finished(self, call: Call, value: Any) -> bytes:
        result = self.finish(self, call, value)
        return result if type(result) is bytes else self._encoded(call, result)

    def _bounded(self, call: Call, answer: bytes, max_result: int) -> bytes:
        if len(answer) <= max_result:
            return answer
        return self._encoded(call, failure(ToolError(too_large(f"tool {self.tool.name!r}", len(answer), max_result))))

    def _encoded(self, call: Call, result: Any) -> bytes:
        revision = call.peer.revision
        if self.wraps and revision.structured and not revision.any_structured and isinstance(result, CallToolResult):
            result = structured.wrap_result(result)
        return wire.encode_result(result, call.method, revision, call.connection.dispatcher.server_info)

    def _failed(self, call: Call, error: BaseException) -> bytes:
        if isinstance(error, asyncio.CancelledError):
            if call.cancelled:
                raise error
            return self._encoded(call, self._crashed("was cancelled from inside", error))
        return self._encoded(call, self._failure(call, spoken(error)))

    def _failure(self, call: Call, error: BaseException) -> CallToolResult:
        if isinstance(error, ToolError):
            return failure(error)
        if isinstance(error, Expired):
            return failure(ToolError(f"The tool {self.tool.name!r} {error}."))
        if isinstance(error, ResultError | wire.WireError):
            _log.error("tool %r: %s", self.tool.name, error)
            return failure(
                ToolError(f"The tool {self.tool.name!r} returned something it should not have; its log says more.")
            )
        if isinstance(error, CapabilityRequired) and call.peer.revision.handshake:
            return failure(ToolError(error.message))  # which have no code for it
        # A PeerError is another server's answer to the tool's own client, and not our answer to this one.
        if isinstance(error, RpcError) and not isinstance(error, PeerError):
            raise error
        if isinstance(error, KeyboardInterrupt) and not call.connection.dispatcher.contains_interrupts:
            raise error
        if isinstance(error, ConnectionLost) and call.connection.deaf is not None:
            return failure(ToolError(str(error)))  # what it asked a client that has left; no fault of the tool's
        return self._crashed("failed", error)

    def _crashed(self, how: str, error: BaseException) -> CallToolResult:
        log_crash(f"tool {self.tool.name!r} {how}", error)
        return failure(ToolError(f"The tool {self.tool.name!r} {how} unexpectedly; its log says more."))


def failure(error: ToolError) -> CallToolResult:
    """Return the result that tells a model of a failure."""
    text = error.message.encode("utf-8", "replace").decode()
    content: list[Any] = error.content if error.content is not None else [TextContent(text)]
    return CallToolResult(content, is_error=True)


class Tools:
    """The tools of a server.

    Args:
        registry: Where they are kept.
        max_result: The most bytes that a result may have; None for any number.
    """

    def __init__(self, registry: Registry[ToolEntry], max_result: int | None) -> None:
        self.registry = registry
        self._max_result = max_result

    def from_function(
        self,
        tool: Tool,
        function: Function,
        *,
        text: bool = True,
        validate: Callable[[bytes], None] | None = None,
    ) -> ToolEntry:
        """Return the tool that a function is, compiled already.

        Args:
            tool: What lists say of it.
            function: How to call it.
            text: Whether structured results have their JSON as text beside them.
            validate: Holds results against an output schema that was given by hand; None without one.
        """
        signature, structured_result = function.signature, tool.output_schema is not None
        encode, content = signature.check_result, signature.content
        check = encode if validate is None else _also(encode, validate)
        unsaid_list = signature.unsaid_list and validate is None
        any_text = content is not None and content.takes_any_text

        def finish(entry: ToolEntry, call: Call, value: Any) -> Any:
            if isinstance(value, _RESULTS):
                return value if validate is None else _checked(value, validate)
            identity = call.connection.dispatcher.server_info
            if content is not None and not (any_text and type(value) is str):
                content.check(value)
            if structured_result or (unsaid_list and not contents.is_content_list(value)):
                encoded = check(value)
                beside = (str.__str__(value) if isinstance(value, str) else encoded.decode()) if text else None
                wraps = entry.wraps or unsaid_list
                return wire.encode_tool_result(beside, encoded, call.peer.revision, identity, wrap=wraps)
            if type(value) is str:
                return wire.encode_tool_result(value, None, call.peer.revision, identity)
            return CallToolResult(contents.blocks(value))

        return ToolEntry(tool, _runner(function), finish, self._max_result, _at_once(function))

    def from_handler(
        self, tool: Tool, handler: ToolHandler, timeout: float | None = None, pool: WorkerPool | None = None
    ) -> ToolEntry:
        """Return the tool that a handler of the low level is, which gets the arguments as they came.

        Args:
            tool: What lists say of it; its schemas are sent verbatim, and arguments and results checked against them.
            handler: Called with ``(arguments, ctx)``, or as many of these as it takes.
            timeout: Seconds that a call may take.
            pool: The threads that it runs in when it is a sync function; None runs it on the loop.
        """
        validate = argument_validator(tool.name, tool.input_schema)
        takes = positional_count(handler, 2)
        threads = threads_for(handler, pool)

        def run(call: Call) -> Awaitable[Any]:
            arguments = _arguments(call)
            validate(arguments)
            context = Context(call)
            given = (arguments, context)[:takes]
            running = run_sync(lambda: handler(*given), threads)
            return running if timeout is None else within(timeout, running, context)

        def finish(entry: ToolEntry, call: Call, value: Any) -> Any:
            if isinstance(value, _RESULTS):
                return value if check is None else _checked(value, check)
            if check is None:
                return CallToolResult(contents.blocks(value))
            encoded = wire.encode(value, LATEST)
            check(encoded)
            identity = call.connection.dispatcher.server_info
            return wire.encode_tool_result(encoded.decode(), encoded, call.peer.revision, identity, wrap=entry.wraps)

        check = None if tool.output_schema is None else result_validator(tool.name, tool.output_schema)
        return ToolEntry(tool, run, finish, self._max_result)

    def now(self, call: Call) -> Callable[[Call], bytes] | None:
        """Return what answers ``tools/call`` without waiting, where the tool is one that never does."""
        entry = self.registry.open(call.params.name)
        return None if entry is None or call.params.request_state is not None else entry.now

    def may_replay(self, name: str) -> bool:
        """Whether a tool may be run again from the top, where it asked for input and is no longer in memory."""
        entry = self.registry.get(name)
        return entry is None or entry.replay

    def call(self, call: Call) -> Awaitable[Any]:
        """Answer ``tools/call``."""
        entry = self.registry.find(call.params.name, call)
        if entry is None:
            raise unknown(self.registry, call.params.name, call)
        return entry.call(call)


def _runner(function: Function) -> Callable[[Call], Awaitable[Any]]:
    """Return what calls a function with the arguments of a call; with nothing in between where it needs nothing."""
    bind, values, target = function.signature.bind, function.signature.values, function.function

    def run(call: Call) -> Awaitable[Any]:
        arguments = call.params.arguments
        args, kwargs = bind(None if arguments is UNSET else arguments)
        return function(call, args, kwargs)

    def run_directly(call: Call) -> Awaitable[Any]:
        arguments = call.params.arguments
        assert values is not None
        return target(*values(None if arguments is UNSET else arguments))

    return run_directly if function.direct and values is not None else run


def _at_once(function: Function) -> Callable[[Call], Any] | None:
    """Return what calls a function to its end, where it has nothing to wait for; None otherwise."""
    values, target = function.signature.values, function.function
    if values is None or not function.at_once:
        return None

    def now(call: Call) -> Any:
        arguments = call.params.arguments
        return run_at_once(target(*values(None if arguments is UNSET else arguments)), call.connection.loop)

    return now


def _also(encode: Callable[[Any], bytes], validate: Callable[[bytes], None]) -> Callable[[Any], bytes]:
    def check(value: Any) -> bytes:
        encoded = encode(value)
        validate(encoded)
        return encoded

    return check


def _checked(result: Any, check: Callable[[bytes], None]) -> Any:
    """Hold a whole result against the schema: "Servers MUST provide structured results that conform to this schema"."""
    if isinstance(result, CallToolResult) and not result.is_error and result.structured_content is not UNSET:
        check(wire.encode(result.structured_content, LATEST))
    return result


def unknown(registry: Registry[Any], name: str, call: Call) -> RpcError:
    """Return the error for a name that does not exist, with the nearest one that is there for whoever calls."""
    near = nearest(name, registry.visible(call))
    return RpcError(
        INVALID_PARAMS, f"Unknown {registry.kind}: {name[:200]}" + (f". Did you mean {near}?" if near else "")
    )


def _arguments(call: Call) -> dict[str, Any]:
    raw = call.params.arguments
    if raw is UNSET:
        return {}
    found: Any = msgspec.json.decode(raw)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise not_an_object(raw)
    return found  # pyright: ignore[reportUnknownVariableType]
