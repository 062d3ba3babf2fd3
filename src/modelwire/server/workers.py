"""The bounded pool of threads that sync functions run in.

The threads are daemons: a function that blocks for ever must not keep the process from ending once its client is gone.
The standard library's pool joins its threads at exit, which is why this one exists. It knows nothing of tools.
"""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, Literal, ParamSpec, TypeVar

from modelwire.log import log as _log

P = ParamSpec("P")
T = TypeVar("T")

_Item = tuple["Future[Any]", Callable[[], Any]] | Literal["end one", "end all"]
"""A function to call and whom to tell; or that this thread, or every one, shall end."""

GIVEN_UP = 8
"""How many times its size a pool may grow while cancelled functions run on."""


class WorkerPool(Executor):
    """A pool of daemon threads, started one by one as work comes in. They end once nobody holds the pool any more.

    Args:
        size: How many functions may run at once; further ones wait their turn.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._work: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        weakref.finalize(self, self._work.put, "end all").atexit = False
        self._lock = threading.Lock()
        self._threads = 0
        self._open = 0
        """Functions that were submitted and have not returned."""
        self._given_up = 0
        """Those among them that run although nobody waits for them any more."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have ``fn`` called in one of the threads."""
        future: Future[T] = Future()
        with self._lock:
            self._open += 1
            self._work.put((future, lambda: fn(*args, **kwargs)))
            self._grow()
        return future

    def give_up(self, job: Job) -> None:
        """Stop waiting for a function; if it runs and cannot be stopped, another thread takes its place.

        Otherwise a few functions that never return would keep all others from ever being called.
        """
        with self._lock:
            if not job.running:
                return
            if self._given_up >= self._size * GIVEN_UP:
                _log.warning("%d sync functions run on although they were cancelled; others wait", self._given_up)
                return
            job.given_up = True
            self._given_up += 1
            self._grow()

    def returned(self, job: Job) -> None:
        """Take note that a function has come to its end after all."""
        with self._lock:
            job.running = False
            if job.given_up:
                self._given_up -= 1

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let each thread end after its current function. Nothing is waited for: see the top of the file."""
        with self._lock:
            for _ in range(self._threads):
                self._work.put("end one")
            self._threads = 0

    def _grow(self) -> None:
        while self._threads < min(self._open, self._size + self._given_up):
            self._threads += 1
            name = f"modelwire-worker-{self._threads}"
            threading.Thread(target=_run, args=(self._work, weakref.ref(self)), name=name, daemon=True).start()

    def ended(self) -> None:
        """Take note that a function has returned. For the pool's own threads."""
        with self._lock:
            self._open -= 1


def _run(work: queue.SimpleQueue[_Item], pool: weakref.ref[WorkerPool]) -> None:
    """Call what comes. A waiting thread keeps neither the pool alive nor the last result."""
    while isinstance(item := work.get(), tuple):
        future, call = item
        if future.set_running_or_notify_cancel():
            _complete(future, call)
        del item, future, call
        if (still := pool()) is not None:
            still.ended()
        del still
    if item == "end all":
        work.put(item)  # for the next one


def _complete(future: Future[Any], call: Callable[[], Any]) -> None:
    try:
        result = call()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)


class Job:
    """A function on its way through a pool, so that it can be given up.

    Args:
        pool: The pool that it is for.
        function: The function.
    """

    __slots__ = ("_function", "_pool", "given_up", "running")

    def __init__(self, pool: WorkerPool, function: Callable[[], Any]) -> None:
        self._pool = pool
        self._function = function
        self.running = False
        self.given_up = False

    def __call__(self) -> Any:
        self.running = True
        try:
            return self._function()
        finally:
            self._pool.returned(self)
