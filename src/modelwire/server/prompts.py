"""Prompts and completion: registering them, listing them, writing a prompt out, suggesting values.

On the wire every argument of a prompt is a string; the function's own types take it from there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from modelwire.errors import INVALID_PARAMS, RpcError, SignatureError
from modelwire.protocol import types as t
from modelwire.rpc.call import Call
from modelwire.server import contents
from modelwire.server.choices import choices, matching
from modelwire.server.context import Context
from modelwire.server.dependencies import Injection
from modelwire.server.functions import Function, run_sync, threads_for
from modelwire.server.limits import limited
from modelwire.server.registry import Registry
from modelwire.server.resolving import resolved
from modelwire.server.resources import Resources, guarded
from modelwire.server.signature import ArgumentErrors
from modelwire.server.tools import unknown
from modelwire.server.workers import WorkerPool

MAX_VALUES = 100
"""How many suggestions one answer may hold ("Array of completion values, maximum 100 items")."""


class PromptEntry:
    """One registered prompt."""

    __slots__ = ("choices", "function", "prompt")

    def __init__(self, prompt: t.Prompt, function: Function) -> None:
        schema = function.signature.input_schema
        self.prompt = prompt
        self.function = function
        self.choices = choices(schema, schema["properties"])


class Prompts:
    """The prompts of a server.

    Args:
        registry: Where they are kept.
        max_result: The most bytes that a result may have; None for any number.
    """

    def __init__(self, registry: Registry[PromptEntry], max_result: int | None) -> None:
        self.registry = registry
        self._max_result = max_result

    def add(self, prompt: t.Prompt, function: Function) -> None:
        """Register a prompt; its arguments are read off the function's signature."""
        schema = function.signature.input_schema
        required = set(schema.get("required", []))
        prompt.arguments = [
            t.PromptArgument(name, description=about.get("description"), required=name in required)
            for name, about in schema["properties"].items()
        ]
        self.registry.add(prompt.name, PromptEntry(prompt, function))

    async def get(self, call: Call) -> Any:
        """Answer ``prompts/get``."""
        name: str = call.params.name
        entry = self.registry.get(name)
        if entry is None:
            raise RpcError(INVALID_PARAMS, unknown("prompt", name, self.registry.keys()))
        try:
            args, kwargs = entry.function.signature.bind(msgspec.json.encode(call.params.arguments or {}))
        except ArgumentErrors as error:
            raise RpcError(INVALID_PARAMS, str(error), {"problems": error.problems}) from None
        what = f"prompt {name!r}"
        value = await guarded(call, what, entry.function(call, args, kwargs))
        if not isinstance(value, t.GetPromptResult | t.InputRequiredResult):
            value = t.GetPromptResult(contents.prompt_messages(value), description=entry.prompt.description)
        return limited(call, value, what, self._max_result)


class Completions:
    """Who suggests values for which argument of which prompt or template.

    Arguments whose types list their values (``Literal``, ``Enum``) need nobody: those values are suggested.

    Args:
        prompts: The prompts that a reference may name.
        resources: The resources and templates that a reference may name.
    """

    def __init__(self, prompts: Prompts, resources: Resources) -> None:
        self._prompts = prompts
        self._resources = resources
        self._completers: dict[tuple[str, str], Callable[[Call], Awaitable[Any]]] = {}

    def __bool__(self) -> bool:
        """Whether there is anything to suggest at this moment."""
        return (
            bool(self._completers)
            or any(entry.choices for entry in self._prompts.registry)
            or any(entry.choices for entry in self._resources.templates)
        )

    def add(self, name: str, argument: str, completer: Callable[[Call], Awaitable[Any]]) -> None:
        """Register who suggests values for ``argument`` of the prompt or template ``name``."""
        self._completers[name, argument] = completer

    async def complete(self, call: Call) -> t.CompleteResult:
        """Answer ``completion/complete``."""
        ref, argument = call.params.ref, call.params.argument
        if isinstance(ref, t.PromptReference):
            name, kind, known = ref.name, "prompt", self._prompts.registry.keys()
            entry = self._prompts.registry.get(name)
        else:
            name, kind, known = ref.uri, "resource template", self._resources.templates.keys()
            entry = self._resources.templates.get(name)
        if entry is None and (kind == "prompt" or name not in self._resources.fixed):
            raise RpcError(INVALID_PARAMS, unknown(kind, name, known))
        completer = self._completers.get((name, argument.name))
        if completer is not None:
            return _result(await guarded(call, f"completion of {argument.name!r}", completer(call)))
        values = [] if entry is None else entry.choices.get(argument.name, [])
        return _result(matching(values, argument.value))


def _result(value: Any) -> t.CompleteResult:
    if isinstance(value, t.CompleteResult):
        return value
    if isinstance(value, t.Completion):
        return t.CompleteResult(value)
    values = [str(item) for item in value or ()]
    if len(values) <= MAX_VALUES:
        return t.CompleteResult(t.Completion(values))
    return t.CompleteResult(t.Completion(values[:MAX_VALUES], total=len(values), has_more=True))


def completer(
    function: Callable[..., Any], what: str, shared: Sequence[Any], pool: WorkerPool
) -> Callable[[Call], Awaitable[Any]]:
    """Return what answers with a function's suggestions.

    Args:
        function: Called with the typed text, with ``arguments=`` (the values already chosen) where it has that, and
            with what fills its other parameters: the context, dependencies, what the lifespan yields.
        what: What to call it in messages.
        shared: The types by which parameters take what the lifespan yields.
        pool: The threads for what is no async function.

    Raises:
        SignatureError: It has a parameter that nothing fills.
    """
    injection = Injection(what, Context, shared)
    ordinary = injection.read(function)
    for parameter in ordinary[1:]:
        if parameter.name != "arguments" and parameter.default is parameter.empty:
            raise SignatureError(
                f"{what}: nothing fills parameter {parameter.name!r}; a completer takes the typed text, `arguments`, "
                "a Context and dependencies"
            )
    plan, threads = injection.plan, threads_for(function, pool)
    by_name = [parameter.name for parameter in ordinary[:1] if parameter.kind is not parameter.POSITIONAL_ONLY]
    wants_arguments = any(parameter.name == "arguments" for parameter in ordinary[1:])

    def call_with(call: Call, given: dict[str, Any]) -> Awaitable[Any]:
        typed: str = call.params.argument.value
        if wants_arguments:
            chosen = call.params.context
            given["arguments"] = dict((chosen.arguments if chosen is not None else None) or {})
        if by_name:  # something else may stand before it
            return run_sync(lambda: function(**{by_name[0]: typed}, **given), threads)
        return run_sync(lambda: function(typed, **given), threads)

    def answer(call: Call) -> Awaitable[Any]:
        return resolved(plan, call, pool, lambda given: call_with(call, given))

    return answer
