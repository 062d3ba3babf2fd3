"""Prompts and completion: registering them, listing them, writing a prompt out, suggesting values.

On the wire every argument of a prompt is a string; the function's own types take it from there.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from typing import Any, cast

import msgspec

from modelwire.errors import INVALID_PARAMS, ConfigError, RpcError, SignatureError
from modelwire.protocol import types as t
from modelwire.rpc.call import Call
from modelwire.server import contents
from modelwire.server.choices import choices, matching
from modelwire.server.context import Context
from modelwire.server.dependencies import Injection
from modelwire.server.functions import Function, run_sync, threads_for
from modelwire.server.headers import refuse_headers
from modelwire.server.limits import limited
from modelwire.server.names import did_you_mean
from modelwire.server.registry import Registry
from modelwire.server.resolving import resolved
from modelwire.server.resources import Resources, guarded
from modelwire.server.signature import ArgumentErrors
from modelwire.server.suggestions import begun, begun_async, suggestions
from modelwire.server.tools import unknown
from modelwire.server.workers import WorkerPool


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

    def from_function(self, prompt: t.Prompt, function: Function) -> PromptEntry:
        """Return the prompt that a function writes; its arguments are read off the signature.

        Raises:
            SignatureError: They cannot be a prompt's.
        """
        schema = function.signature.input_schema
        refuse_headers(f"prompt {prompt.name!r}", schema)
        required = set(schema.get("required", []))
        prompt.arguments = [
            t.PromptArgument(name, description=about.get("description"), required=name in required)
            for name, about in schema["properties"].items()
        ]
        return PromptEntry(prompt, function)

    async def get(self, call: Call) -> Any:
        """Answer ``prompts/get``."""
        name: str = call.params.name
        entry = self.registry.find(name, call)
        if entry is None:
            raise unknown(self.registry, name, call)
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
        max_result: The most bytes that a result may have; None for any number.
    """

    def __init__(self, prompts: Prompts, resources: Resources, max_result: int | None) -> None:
        self._max_result = max_result
        self._prompts = prompts
        self._resources = resources
        self._completers: dict[tuple[str, str], Callable[[Call], Awaitable[t.CompleteResult]]] = {}

    def __bool__(self) -> bool:
        """Whether there is anything to suggest at this moment."""
        return (
            bool(self._completers)
            or any(entry.choices for entry in self._prompts.registry)
            or any(entry.choices for entry in self._resources.templates)
        )

    def add(self, name: str, argument: str, completer: Callable[[Call], Awaitable[t.CompleteResult]]) -> None:
        """Register who suggests values for ``argument`` of the prompt or template ``name``."""
        self._completers[name, argument] = completer

    def check(self, name: str, argument: str) -> None:
        """See that there is such an argument.

        Raises:
            ConfigError: There is not; the message has the nearest that there is.
        """
        asked = f"complete({name!r}, {argument!r})"
        prompt, family = self._prompts.registry.get(name), self._resources.templates.get(name)
        if prompt is None and family is None:
            known = [*self._prompts.registry.keys(), *self._resources.templates.keys()]
            raise ConfigError(f"{asked}: there is no prompt or resource template {name!r}{did_you_mean(name, known)}")
        arguments = [about.name for about in prompt.prompt.arguments or ()] if prompt is not None else []
        arguments += family.pattern.variables if family is not None else []
        if argument not in arguments:
            what = "resource template" if prompt is None else "prompt"
            near = did_you_mean(argument, arguments)
            raise ConfigError(f"{asked}: the {what} {name!r} has no argument {argument!r}{near}")

    async def complete(self, call: Call) -> Any:
        """Answer ``completion/complete``."""
        ref, argument = call.params.ref, call.params.argument
        found = self._choices(ref, call)
        name = ref.name if isinstance(ref, t.PromptReference) else ref.uri
        what = f"completion of {argument.name!r} of {name!r}"
        completer = self._completers.get((name, argument.name))
        if completer is None:
            result = suggestions(matching(found.get(argument.name, []), argument.value))
        else:
            result = await guarded(call, what, completer(call))
        return limited(call, result, what, self._max_result)

    def _choices(self, ref: t.PromptReference | t.ResourceTemplateReference, call: Call) -> dict[str, list[str]]:
        """What the types of the arguments list by themselves.

        Raises:
            RpcError: There is nothing of that name for whoever calls.
        """
        if isinstance(ref, t.PromptReference):
            prompt = self._prompts.registry.find(ref.name, call)
            if prompt is None:
                raise unknown(self._prompts.registry, ref.name, call)
            return prompt.choices
        family = self._resources.templates.find(ref.uri, call)
        if family is None and self._resources.fixed.find(ref.uri, call) is None:
            raise unknown(self._resources.templates, ref.uri, call)
        return {} if family is None else family.choices


def completer(
    function: Callable[..., Any], what: str, shared: Sequence[Any], pool: WorkerPool
) -> Callable[[Call], Awaitable[t.CompleteResult]]:
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

    async def call_with(call: Call, given: dict[str, Any]) -> t.CompleteResult:
        typed: list[str] = [call.params.argument.value]
        if wants_arguments:
            chosen = call.params.context
            given["arguments"] = dict((chosen.arguments if chosen is not None else None) or {})
        if by_name:  # something else may stand before it
            given[by_name[0]] = typed.pop()
        # A generator runs where its function does, and no further than what is sent.
        found = await run_sync(lambda: begun(function(*typed, **given)), threads)
        if isinstance(found, AsyncIterable):
            return suggestions(await begun_async(cast("AsyncIterable[Any]", found)))
        return suggestions(begun(found))

    def answer(call: Call) -> Awaitable[t.CompleteResult]:
        return resolved(plan, call, pool, lambda given: call_with(call, given))

    return answer
