"""The dependencies of one call: made before its function, cleaned up after it.

`modelwire.server.dependencies` has found them and their order; this file calls them. What becomes of the errors that it
raises is for those who answer the request.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from modelwire.rpc.call import Call
from modelwire.server.context import Context
from modelwire.server.crashes import log_crash
from modelwire.server.dependencies import Plan, Step
from modelwire.server.functions import Function, run_sync, threads_for, within
from modelwire.server.signature import Signature
from modelwire.server.workers import WorkerPool
from modelwire.server.yielding import Held, held


class ResolvingFunction(Function):
    """A registered function some of whose parameters are no arguments.

    Args:
        function: The function.
        signature: What it takes and gives.
        plan: What fills the parameters that are no arguments.
        pool: The threads for sync functions.
        inline: Run a sync function on the event loop; its dependencies run in threads all the same.
        timeout: Seconds that a call may take, its dependencies included, their clean-up not; or None.
    """

    __slots__ = ("_plan",)

    def __init__(
        self,
        function: Callable[..., Any],
        signature: Signature,
        plan: Plan,
        pool: WorkerPool,
        *,
        inline: bool,
        timeout: float | None,
    ) -> None:
        super().__init__(function, signature, pool, inline=inline, timeout=timeout)
        self._plan = plan

    @property
    def direct(self) -> bool:
        """Never: there is more to a call than the function's own coroutine."""
        return False

    def __call__(self, call: Call, args: list[Any], kwargs: dict[str, Any]) -> Awaitable[Any]:
        """Make what the function needs, call it, clean up; await what this returns for the function's result."""
        arguments = {**dict(zip(self.signature.positional, args, strict=False)), **kwargs}
        return resolved(
            self._plan, call, self.pool, lambda given: self._run(args, {**kwargs, **given}), self.timeout, arguments
        )


async def resolved(
    plan: Plan,
    call: Call,
    pool: WorkerPool,
    use: Callable[[dict[str, Any]], Awaitable[Any]],
    timeout: float | None = None,
    arguments: dict[str, Any] | None = None,
) -> Any:
    """Make what a plan says, use it, clean up; return what the use gave.

    Args:
        plan: The plan.
        call: The request.
        pool: The threads for sync dependencies.
        use: Called with the values by parameter.
        timeout: Seconds that making and using may take, or None.
        arguments: The arguments of the call by parameter, for the questions of `Ask`.

    Raises:
        Expired: They took longer.
    """
    resolution = _Resolution(call, pool)
    resolution.context.arguments = arguments or {}
    running = resolution.run(plan, use)
    try:
        result = await (running if timeout is None else within(timeout, running, resolution.context))
    except BaseException as error:
        await resolution.clean_up(error)
        raise
    failure = await resolution.clean_up(None)
    if failure is not None:
        raise failure
    return result


class _Resolution:
    def __init__(self, call: Call, pool: WorkerPool) -> None:
        self.context = Context(call)
        self._pool = pool
        shared = call.connection.shared
        self._values: list[Any] = [self.context, *(() if shared is None else shared.by_type)]
        self._held: list[tuple[str, Held]] = []

    async def run(self, plan: Plan, use: Callable[[dict[str, Any]], Awaitable[Any]]) -> Any:
        for step in plan.steps:
            self._values.append(await self._make(step, self._given(step.takes)))
        return await use(self._given(plan.takes))

    def _given(self, takes: dict[str, int]) -> dict[str, Any]:
        return {name: self._values[source] for name, source in takes.items()}

    async def _make(self, step: Step, given: dict[str, Any]) -> Any:
        if not step.yields:
            return await run_sync(lambda: step.function(**given), threads_for(step.function, self._pool))
        made = step.function(**given)  # which runs none of it yet
        name = f"the dependency {step.name}"
        kept = held(name, made, self._pool)
        if kept is None:  # a decorator makes something else of the generator
            return await made if inspect.isawaitable(made) else made
        self._held.append((name, kept))
        return await kept.start()

    async def clean_up(self, error: BaseException | None) -> BaseException | None:
        """Clean up what was made, the last first; return what the call has failed with in the end.

        Args:
            error: What it had failed with before, or None.
        """
        while self._held:
            name, kept = self._held.pop()
            failure = await kept.finish(error)
            if failure is None:
                continue
            if not isinstance(failure, asyncio.CancelledError):
                log_crash(f"the clean-up of {name} failed", failure)
            error = failure if error is None else error
        return error
