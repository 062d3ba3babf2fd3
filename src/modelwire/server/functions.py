"""Calls the functions that users register: async ones on the loop, sync ones in a thread, generators to their end.

The one place where user code starts. What it raises passes through; what becomes of that is for the callers.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from modelwire.errors import ConfigError, SignatureError
from modelwire.rpc.at_once import never_waits
from modelwire.rpc.call import Call
from modelwire.server.context import Context
from modelwire.server.dependencies import Dependency, name_of
from modelwire.server.signature import Signature, called
from modelwire.server.workers import Job, WorkerPool


class Function:
    """A registered function and how to call it.

    Args:
        function: The function.
        signature: What it takes and gives.
        pool: The threads for sync functions.
        inline: Run a sync function on the event loop; for quick ones.
        timeout: Seconds that a call may take, or None.
    """

    __slots__ = ("_context", "_direct", "function", "inline", "pool", "signature", "timeout")

    def __init__(
        self,
        function: Callable[..., Any],
        signature: Signature,
        pool: WorkerPool,
        *,
        inline: bool,
        timeout: float | None,
    ) -> None:
        self.function = function
        self.signature = signature
        self.pool = pool
        self.inline = inline
        self.timeout = timeout
        self._context = signature.context_parameter
        self._direct = signature.is_async and not signature.is_generator

    @property
    def direct(self) -> bool:
        """Whether a call is the function's own coroutine and nothing besides: no context, no time limit, no thread."""
        return self._direct and self._context is None and self.timeout is None

    @property
    def at_once(self) -> bool:
        """Whether it is `direct`, and has nothing to wait for either."""
        return self.direct and never_waits(self.function)

    def __call__(self, call: Call, args: list[Any], kwargs: dict[str, Any]) -> Awaitable[Any]:
        """Call the function; await what this returns for its result. A generator's is the list of its items.

        Raises:
            Expired: It took longer than ``timeout``.
        """
        context = None
        if self._context is not None:
            context = kwargs[self._context] = Context(call)
        running = self.function(*args, **kwargs) if self._direct else self._run(args, kwargs)
        return running if self.timeout is None else within(self.timeout, running, context)

    async def _run(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if self.signature.is_async:
            started = self.function(*args, **kwargs)
            if hasattr(started, "__anext__"):
                return [item async for item in started]
            return await started if inspect.isawaitable(started) else started
        return await run_sync(lambda: self._sync(args, kwargs), None if self.inline else self.pool)

    def _sync(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        result = self.function(*args, **kwargs)
        # A decorator may have made something else of what the generator inside it gives.
        return list(result) if self.signature.is_generator and hasattr(result, "__next__") else result


def refuse_timeout(timeout: Any) -> None:
    """Refuse what is no limit of time.

    Raises:
        ConfigError: It is neither None nor a number of seconds.
    """
    if timeout is not None and not (isinstance(timeout, int | float) and timeout > 0):
        raise ConfigError(f"timeout must be a number of seconds above 0, not {timeout!r}")


def positional_count(function: Callable[..., Any], most: int) -> int:
    """Return how many of ``most`` positional arguments a function takes.

    Raises:
        SignatureError: It has a parameter that nobody would fill: one too many, one by keyword only, a dependency.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return most
    for parameter in parameters:
        if isinstance(parameter.default, Dependency):
            raise SignatureError(
                f"{name_of(function)}: parameter {parameter.name!r} has {parameter.default!r}, which works in tools, "
                "prompts, resources and completers only"
            )
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    filled = [parameter.name for parameter in parameters if parameter.kind in kinds][:most]
    for parameter in parameters:
        open_ended = parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        if parameter.name not in filled and parameter.default is parameter.empty and not open_ended:
            raise SignatureError(
                f"{name_of(function)}: nothing fills parameter {parameter.name!r}; give it a default "
                f"(at most {most} {'argument is' if most == 1 else 'arguments are'} passed, by position)"
            )
    return most if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters) else len(filled)


def threads_for(function: Callable[..., Any], pool: WorkerPool | None) -> WorkerPool | None:
    """Return the pool that a function belongs into, or None for an async one, which runs on the loop."""
    inner = called(function)
    return None if inspect.iscoroutinefunction(inner) or inspect.isasyncgenfunction(inner) else pool


async def run_sync(function: Callable[[], Any], pool: WorkerPool | None) -> Any:
    """Call a sync function in a thread that sees the context variables of the request; without a pool, here.

    What it returns may be something to await: a sync wrapper around an async function is a sync function.
    """

    def run() -> Any:
        try:
            return function()
        except (StopIteration, GeneratorExit) as error:
            # A future cannot carry a StopIteration, and a GeneratorExit would close the coroutine that awaits it.
            raise RuntimeError(f"the function raised {type(error).__name__}") from error
        except KeyboardInterrupt as error:
            if pool is None:
                raise
            # Ctrl-C reaches the main thread only: in a worker it is the function's own doing.
            raise RuntimeError("the function raised KeyboardInterrupt") from error

    if pool is None:
        result = run()
    else:
        here = contextvars.copy_context()
        job = Job(pool, run)
        try:
            result = await asyncio.get_running_loop().run_in_executor(pool, here.run, job)
        except asyncio.CancelledError:
            pool.give_up(job)
            raise
    return await result if inspect.isawaitable(result) else result


class Expired(TimeoutError):
    """A function took longer than its ``timeout``."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"timed out after {seconds:g} s")


async def within(seconds: float, running: Awaitable[Any], context: Context | None = None) -> Any:
    """Await a handler for so long and no longer.

    Args:
        seconds: How long.
        running: The handler.
        context: Its context, which learns that the time is up: a sync function has no other way to know.

    Raises:
        Expired: The time is up.
    """
    clock = asyncio.timeout(seconds)
    if context is not None:
        context.limited_by(clock)
    try:
        async with clock:
            return await running
    except TimeoutError:
        if not clock.expired():
            raise  # the handler's own
        expired = Expired(seconds)
        if context is not None:
            context.expire(str(expired))
        raise expired from None
