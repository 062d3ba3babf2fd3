"""The event loop that all synchronous clients of a process share, in a thread of its own.

It runs coroutines for other threads and knows nothing of clients, but for those that it closes at the end of the
process.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from modelwire.errors import ConfigError, ConnectionLost
from modelwire.log import log as _log

T = TypeVar("T")

END_SECONDS = 15.0
"""How long the end of the process waits for clients that are still open, and then for the thread."""


class Closable(Protocol):
    """What must be closed before the loop ends."""

    async def close(self) -> None:
        """Close it."""
        ...


class LoopThread:
    """An event loop in a daemon thread. Made by `shared`, once per process.

    Raises:
        OSError: No event loop can be made, as when no file descriptors are left.
    """

    def __init__(self) -> None:
        self.open: set[Closable] = set()
        """What is closed at the end of the process."""
        self.forked = False
        """Whether this is a copy in a forked child, where the thread is not."""
        self._ended = False
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._live, name="modelwire.sync", daemon=True)
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            raise self._failure

    @property
    def gone(self) -> bool:
        """Whether nothing can be run any more."""
        return self.forked or self._ended

    def _live(self) -> None:
        try:
            with asyncio.Runner() as runner:
                runner.run(self._serve())
        except BaseException as error:
            if self._started.is_set():
                raise
            self._failure = error
            self._started.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        self._started.set()
        await self._over.wait()

    def run(self, function: Callable[..., Coroutine[Any, Any, T]], *arguments: Any, **options: Any) -> T:
        """Run an async function in the loop, and wait for it.

        What interrupts the waiting, such as Ctrl-C, cancels it.

        Raises:
            ConfigError: The loop is not there for this caller; the message says why.
            ConnectionLost: The process is ending.
        """
        self._check()
        future: concurrent.futures.Future[T] | None = None
        try:
            future = asyncio.run_coroutine_threadsafe(function(*arguments, **options), self._loop)
            return future.result()
        except concurrent.futures.CancelledError:
            raise ConnectionLost("the process is ending: its clients were closed") from None
        except BaseException:
            if future is not None:
                future.cancel()
            raise

    def _check(self) -> None:
        if self.forked:
            raise ConfigError("this client was used before the process forked; make a new one in the child")
        if self._ended:
            raise ConnectionLost("the process is ending: its clients were closed")
        if threading.get_ident() == self._thread.ident:
            raise ConfigError(
                "a callback runs in the thread of the clients' event loop, where waiting for a client would never end; "
                "hand what needs a client to a thread of your own"
            )

    def end(self) -> None:
        """Close what is open, and end the thread."""
        if self.gone:
            return
        closing = asyncio.run_coroutine_threadsafe(self._close(), self._loop)
        try:
            closing.result(END_SECONDS)
        except Exception:  # a callback may hold the loop for ever; the process must end all the same
            _log.exception("closing the clients that were still open failed")
        self._ended = True
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(END_SECONDS)

    async def _close(self) -> None:
        await asyncio.gather(*(one.close() for one in list(self.open)), return_exceptions=True)


_shared: LoopThread | None = None
_making = threading.Lock()
_before_fork: list[LoopThread] = []
"""Loops of the parent: kept, because to collect one would close what the parent still uses."""


def shared() -> LoopThread:
    """Return the loop of this process."""
    global _shared
    with _making:
        if _shared is None:
            _shared = LoopThread()
            atexit.register(_shared.end)
        return _shared


def _in_child() -> None:
    global _shared, _making
    _making = threading.Lock()
    if _shared is not None:
        _shared.forked = True
        _before_fork.append(_shared)
        _shared = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
