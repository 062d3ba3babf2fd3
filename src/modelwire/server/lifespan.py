"""What lives as long as a server serves: the lifespan of ``Server(lifespan=...)``, and what runs beside it.

It is begun once per event loop, when the first connection is served, and ended after the last one. It runs in a task of
its own, so that what it enters it leaves in the same task, whoever serves. This file serves nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import TYPE_CHECKING, Any, cast, get_args, get_origin

from modelwire.errors import ConfigError
from modelwire.log import log as _log
from modelwire.server.annotations import without_annotated
from modelwire.server.crashes import log_crash
from modelwire.server.dependencies import name_of
from modelwire.server.functions import positional_count
from modelwire.server.parking import Lot
from modelwire.server.signature import called
from modelwire.server.workers import WorkerPool
from modelwire.server.yielded import goes_by_type, yielded_type
from modelwire.server.yielding import Held, Managed, held, to_its_end

if TYPE_CHECKING:
    from modelwire.server.server import Server

LifespanFunction = Callable[
    ..., AbstractAsyncContextManager[Any] | AbstractContextManager[Any] | AsyncIterator[Any] | Iterator[Any]
]
"""Called with the server, or with nothing."""
Companion = Callable[["Server"], AbstractAsyncContextManager[Any]]
"""Called with the server; returns what is entered after the lifespan and left before it."""

ENDING = 30.0
"""Seconds that a lifespan may take to end. Then it is cancelled: "Servers SHOULD exit promptly" (2026-07-28, stdio)."""
STUCK = 1.0
"""Seconds that it has once it is cancelled; then it is left alone."""


class Lifespan:
    """The lifespan of a server.

    Args:
        server: The server.
        function: What ``Server(lifespan=...)`` was given; None for nothing.
        pool: The threads for a lifespan that is a plain generator.

    Raises:
        ConfigError: It can be no lifespan.
        SignatureError: Its annotation cannot be evaluated.
    """

    def __init__(self, server: Server, function: LifespanFunction | None, pool: WorkerPool) -> None:
        self._server = server
        self._pool = pool
        self._function = function
        self._name = "the lifespan" if function is None else f"the lifespan {name_of(function)}"
        self._running: dict[asyncio.AbstractEventLoop, Running] = {}
        self._takes = 0 if function is None else _argument_count(function, self._name)
        found = None if function is None else yielded_type(function, self._name)
        several = get_origin(found) is tuple and get_args(found) and ... not in get_args(found)
        self._several = len(get_args(found)) if several else None
        """How many values it yields as a tuple; None when it yields one."""
        kinds = get_args(found) if several else (found,)
        self._indices = [index for index, kind in enumerate(kinds) if goes_by_type(kind)]
        self.kinds = [without_annotated(kinds[index]) for index in self._indices]
        """The types by which parameters are filled with what it yields."""
        for kind, count in Counter(map(repr, self.kinds)).items():
            if count > 1:
                raise ConfigError(f"{self._name} yields {count} values of the type {kind}; give each a type of its own")

    # ------------------------------------------------------------------ whoever serves

    @contextlib.asynccontextmanager
    async def held(self) -> AsyncGenerator[Running, None]:
        """Keep the lifespan alive while a block runs; each connection does so, and a listener for its whole life.

        Whoever serves also ends its serving when `Running.over` is done: the lifespan has failed then, and leaving the
        block raises its error.

        Raises:
            BaseException: What the lifespan has failed with, as it was; where the block raises something, that goes on
                and the lifespan's is logged.
        """
        running = await self.enter()
        try:
            yield running
        except BaseException as error:
            await self._leave_after(running, error)
            raise
        await self.leave(running)

    async def enter(self) -> Running:
        """Begin the lifespan, or join the one that runs; `leave` must follow.

        Raises:
            BaseException: What it has failed with at its start, as it was.
        """
        loop = asyncio.get_running_loop()
        running = self._running.get(loop)
        while running is not None and running.ending:  # a new one begins when the old one has ended
            await asyncio.wait([running.over])
            running = self._running.get(loop)
        if running is None:
            running = self._begun(loop)
        running.references += 1
        try:
            await running.ready()
        except BaseException:
            await self._drop(running)
            raise
        return running

    async def leave(self, running: Running) -> None:
        """Give up what `enter` returned; the last one to leave waits for the end of the lifespan.

        Raises:
            BaseException: What the lifespan has failed with since it began, as it was.
        """
        try:
            await self._drop(running)
        except asyncio.CancelledError as cancelled:
            self._tell(running, cancelled)
            raise
        if running.failure is not None:
            raise running.failure

    async def _leave_after(self, running: Running, error: BaseException) -> None:
        try:
            await self._drop(running)
        finally:
            self._tell(running, error)

    def _tell(self, running: Running, error: BaseException) -> None:
        """Log what the lifespan has failed with, where another error is raised."""
        if running.failure is not None and running.failure is not error:
            log_crash(f"{self._name} failed", running.failure)

    async def _drop(self, running: Running) -> None:
        running.references -= 1
        if running.references == 0:
            await running.end()

    def _begun(self, loop: asyncio.AbstractEventLoop) -> Running:
        features = self._server.features
        lot = features.new_lot(self._pool)
        running = self._running[loop] = Running(self._name, loop, self._function is not None, lot)
        running.over.add_done_callback(lambda _: self._running.pop(loop, None))
        companions = list(features.companions)
        if self._function is not None or companions:
            running.begin(self._made, self._split, [functools.partial(factory, self._server) for factory in companions])
        return running

    def _made(self) -> Held:
        if self._function is None:
            return _Nothing()
        made: Any = self._function(*[self._server][: self._takes])
        kept = held(self._name, made, self._pool)
        if kept is not None:
            return kept
        if isinstance(made, AbstractAsyncContextManager):
            return Managed(made)  # pyright: ignore[reportUnknownArgumentType]
        raise ConfigError(
            f"{self._name} returned a {type(made).__name__}; a lifespan is an async function with one `yield`, or "
            "returns an async context manager"
        )

    def _split(self, value: Any) -> tuple[Any, ...]:
        """Take a yielded value apart by the annotation."""
        values = cast("tuple[Any, ...]", value) if self._several is not None and isinstance(value, tuple) else (value,)
        if len(values) != (self._several or 1):
            raise ConfigError(f"{self._name} is annotated to yield {self._several} values, and yields {len(values)}")
        return tuple(values[index] for index in self._indices)


class Running:
    """One run of a lifespan, in one event loop.

    Attributes:
        exists: Whether the server has a lifespan; there may be companions alone, or nothing at all.
        value: What it yields.
        by_type: Those of its values that parameters are filled with, in the order of `Lifespan.kinds`.
        failure: What it has failed with, at any time.
        over: Done once it has ended, whichever way.
        references: How many keep it alive.
        lot: The handlers that wait for answers; they use what the lifespan yields.
    """

    def __init__(self, name: str, loop: asyncio.AbstractEventLoop, exists: bool, lot: Lot) -> None:
        self.exists = exists
        self.lot = lot
        self.value: Any = None
        self.by_type: tuple[Any, ...] = ()
        self.failure: BaseException | None = None
        self.over: asyncio.Future[None] = loop.create_future()
        self.references = 0
        self.ending = False
        """Whether nobody may join any more."""
        self._name = name
        self._stop = asyncio.Event()
        self._settled: asyncio.Future[None] = loop.create_future()
        """Done once it has started, or failed to."""
        self._task: asyncio.Task[None] | None = None

    def begin(
        self,
        make: Callable[[], Held],
        split: Callable[[Any], tuple[Any, ...]],
        companions: list[Callable[[], AbstractAsyncContextManager[Any]]],
    ) -> None:
        """Start the task that it runs in.

        Args:
            make: Returns what to set up.
            split: Returns those of a yielded value that parameters are filled with.
            companions: Each returns what to enter after it.
        """
        self._task = asyncio.create_task(self._live(make, split, companions), name=self._name)
        self._task.add_done_callback(self._ended)

    async def ready(self) -> None:
        """Wait until it has started.

        Raises:
            BaseException: What it has failed with.
        """
        if self._task is None:
            return
        await asyncio.wait([self._settled])
        if self.failure is not None:
            raise self.failure

    async def end(self) -> None:
        """End it, and wait until it has ended; a start that is under way is cancelled."""
        self.ending = True
        await self.lot.close(STUCK)
        task = self._task
        if task is None:
            self._set_over()
            return
        if task.done():
            return
        self._stop.set()
        if not self._settled.done():
            task.cancel()
        try:
            await to_its_end(task, ENDING)
        finally:
            await self._cut_off(task)

    async def _cut_off(self, task: asyncio.Task[None]) -> None:
        if task.done():
            return
        _log.error("%s did not end within %g s; it was cancelled", self._name, ENDING)
        task.cancel()
        await to_its_end(task, STUCK)
        self._set_over()  # whatever it does still, a new one may begin

    async def _live(
        self,
        make: Callable[[], Held],
        split: Callable[[Any], tuple[Any, ...]],
        companions: list[Callable[[], AbstractAsyncContextManager[Any]]],
    ) -> None:
        kept: Held = _Nothing()
        error: BaseException | None = None
        try:
            kept = make()
            self.value = await kept.start()
            self.by_type = split(self.value)
            async with contextlib.AsyncExitStack() as stack:
                for companion in companions:
                    await stack.enter_async_context(companion())
                self._settled.set_result(None)
                await self._stop.wait()
        except BaseException as raised:  # a SystemExit that leaves a task would end the whole loop
            error = raised
        late = await kept.finish(error)
        self.failure = self._why(error, late)

    def _why(self, error: BaseException | None, late: BaseException | None) -> BaseException | None:
        """Return what it has failed with.

        Args:
            error: What it has ended with.
            late: What its clean-up has failed with.
        """
        # A TaskGroup inside it cancels this task when one of its own tasks has failed, and says why in its clean-up.
        found = [one for one in (error, late) if one is not None and not isinstance(one, asyncio.CancelledError)]
        if len(found) > 1:
            log_crash(f"the clean-up of {self._name} failed", found[1])
        if found or self.ending:
            return found[0] if found else None
        return RuntimeError(f"{self._name} came to its end while the server served")

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.ending = True
        if task.cancelled() and self.failure is None:
            self.failure = RuntimeError(f"{self._name} was cancelled before it began")
        self._set_over()

    def _set_over(self) -> None:
        for future in (self._settled, self.over):
            if not future.done():
                future.set_result(None)


class _Nothing:
    """A lifespan that is not there: only companions are."""

    async def start(self) -> Any:
        return None

    async def finish(self, error: BaseException | None) -> BaseException | None:
        return None


# ---------------------------------------------------------------------- what a function says of itself


def _argument_count(function: Any, name: str) -> int:
    """How many of the one argument that there is a lifespan takes."""
    if isinstance(function, contextlib.ContextDecorator | contextlib.AsyncContextDecorator):
        raise ConfigError("lifespan= takes the function with the `yield` itself: give it without calling it")
    if not callable(function):
        raise ConfigError(f"lifespan= takes a function with one `yield`, not a {type(function).__name__}")
    if inspect.iscoroutinefunction(called(function)) or _returns_nothing(function):
        raise ConfigError(f"{name} returns where it should yield: `yield` what is to live while the server serves")
    return positional_count(function, 1)


def _returns_nothing(function: Any) -> bool:
    """Whether a function says that it returns nothing, and is no generator that says something wrong."""
    plain = inspect.unwrap(function)
    if inspect.isgeneratorfunction(plain) or inspect.isasyncgenfunction(plain) or not inspect.isfunction(plain):
        return False
    return plain.__annotations__.get("return", ...) in (None, "None")
