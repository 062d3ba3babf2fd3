"""The bounded pool of threads that sync functions run in.

The threads are daemons: a function that blocks for ever must not keep the process from ending once its client is gone.
The standard library's pool joins its threads at exit, which is why this one exists. It knows nothing of tools.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class WorkerPool(Executor):
    """A pool of daemon threads, started one by one as work comes in.

    Args:
        size: How many functions may run at once; further ones wait their turn.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._work: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._idle = 0

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have ``fn`` called in one of the threads."""
        future: Future[T] = Future()
        with self._lock:
            self._work.put((future, lambda: fn(*args, **kwargs)))
            if self._idle:
                self._idle -= 1
            elif self._threads < self._size:
                self._threads += 1
                threading.Thread(target=self._run, name=f"modelwire-worker-{self._threads}", daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let each thread end after its current function. Nothing is waited for: see the top of the file."""
        with self._lock:
            for _ in range(self._threads):
                self._work.put(None)
            self._threads = self._idle = 0

    def _run(self) -> None:
        while True:
            item = self._work.get()
            if item is None:
                return
            future, call = item
            if future.set_running_or_notify_cancel():
                _complete(future, call)
            del item, future, call  # a waiting thread must not keep the last result alive
            with self._lock:
                self._idle += 1


def _complete(future: Future[Any], call: Callable[[], Any]) -> None:
    try:
        result = call()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)
