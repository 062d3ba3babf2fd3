"""Serving as a whole program: the event loop, signals, and an end that nothing can hold up.

Where it is served is `modelwire.server.serving`'s business, the order of an orderly end `modelwire.server.serve`'s.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, cast

from modelwire.errors import ConfigError
from modelwire.log import log as _log
from modelwire.server.endpoints import ServeOptions, is_http, several_workers
from modelwire.server.serving import serve, serve_opened

if TYPE_CHECKING:
    from modelwire.server.http.worker import Place
    from modelwire.server.server import Server

HELD = 1.0
"""Seconds after a signal in which the event loop must notice it; a function that holds the loop is then cut off."""
STUCK = 1.0
"""Seconds that what still runs has to end once it was cancelled for good."""


def run(server: Server, endpoint: Any, options: ServeOptions) -> None:
    """Serve as a whole program: its own event loop, its own answer to SIGINT and SIGTERM."""
    if _loop_runs():
        raise ConfigError("server.run() starts an event loop, and one runs here already: await server.serve() instead")
    server.settle()
    place = None
    if is_http(endpoint) and several_workers(options):
        place = _place(endpoint)
        if place is None:
            _supervise(server, endpoint, options)
            return
    # From here on Ctrl-C arrives as a signal that we handle; a KeyboardInterrupt is a handler's own doing.
    server.dispatcher.contains_interrupts = True
    guarded: list[bool] = []
    with asyncio.Runner(loop_factory=_loop_for(endpoint)) as runner:
        loop = runner.get_loop()
        main = loop.create_task(_main(server, endpoint, options, place, guarded))
        try:
            interrupted = _finish(loop, main, guarded)
        except KeyboardInterrupt:
            interrupted = True
    if interrupted:
        sys.exit(130)


def _place(endpoint: str) -> Place | None:
    from modelwire.server.http.worker import take_place

    return take_place(endpoint)


def _supervise(server: Server, endpoint: str, options: ServeOptions) -> None:
    from modelwire.server.http.run import make_app
    from modelwire.server.http.supervisor import supervise

    make_app(server, endpoint, options)  # what makes no sense is told here, and not by a worker
    status = supervise(endpoint, options)
    if status:
        sys.exit(status)


def _loop_for(endpoint: Any) -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return what makes the event loop: uvloop for HTTP, where it halves the cost of a request; else asyncio's own."""
    if not is_http(endpoint):
        return None
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def _loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _finish(loop: asyncio.AbstractEventLoop, main: asyncio.Task[bool], guarded: list[bool]) -> bool:
    """Turn the loop until the serving is over.

    asyncio lets SystemExit and KeyboardInterrupt of any task out of the loop. A task that a handler has started must
    not end the server, so the loop is taken up again.
    """
    while True:
        try:
            return loop.run_until_complete(main)
        except (SystemExit, KeyboardInterrupt) as error:
            if main.done() or not guarded:
                raise
            _log.error(
                "a task that a handler started raised %s; the server goes on", type(error).__name__, exc_info=error
            )


async def _main(server: Server, endpoint: Any, options: ServeOptions, place: Place | None, guarded: list[bool]) -> bool:
    serving = asyncio.ensure_future(_serve(server, endpoint, options, place))
    with _Signals(asyncio.get_running_loop(), serving.cancel, supervised=place is not None) as signals:
        guarded.append(True)
        if place is not None:
            place.watch()
        try:
            await asyncio.wait([serving])
        except asyncio.CancelledError:
            serving.cancel()
            await asyncio.wait([serving])
        failure = None if serving.cancelled() else serving.exception() or serving.result()
        await _end_the_rest(130 if signals.interrupted else int(failure is not None))
    if failure is not None:
        raise failure
    return signals.interrupted


async def _serve(server: Server, endpoint: Any, options: ServeOptions, place: Place | None) -> SystemExit | None:
    """Serve; return the ``sys.exit()`` of a lifespan, which as an exception would leave the loop at once."""
    try:
        if place is None:
            await serve(server, endpoint, options, lambda url: _say_where(server, url))
        else:
            await serve_opened(place.open(server, endpoint, options), lambda _: place.ready(server.name))
    except SystemExit as error:
        return error
    return None


def _say_where(server: Server, url: str) -> None:
    sys.stderr.write(f"{server.name}: an MCP server, listening on {url}; Ctrl-C ends it\n")
    sys.stderr.flush()


async def _end_the_rest(status: int) -> None:
    """Cancel what still runs. A handler that ignores that, again and again, does not keep the process alive.

    "Servers SHOULD exit promptly when their standard input is closed" (basic/transports/stdio), and the end of an event
    loop would wait for such a handler for ever.
    """
    rest = asyncio.all_tasks() - {cast("asyncio.Task[Any]", asyncio.current_task())}
    for task in rest:
        task.cancel()
    if not rest:
        return
    _, stuck = await asyncio.wait(rest, timeout=STUCK)
    if stuck:
        names = ", ".join(sorted(task.get_name() for task in stuck))
        _log.error("these do not end although they are cancelled, and the process ends without them: %s", names)
        _leave(status)


def _leave(status: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(status)


class _Signals:
    """One SIGINT or SIGTERM ends the serving in order, or, where a handler holds the loop, without order.

    Args:
        loop: The event loop.
        stop: Ends the serving.
        supervised: Whether a supervisor ends this process where that takes too long. Otherwise a second signal does;
            here it may be the first one once more: systemd sends SIGTERM to workers, too.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, stop: Callable[[], Any], *, supervised: bool) -> None:
        self.interrupted = False
        self._supervised = supervised
        self._loop = loop
        self._stop = stop
        self._timer: threading.Timer | None = None
        self._process = os.getpid()
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _Signals:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        # A forked child, such as a worker of multiprocessing, has got this handler too; the signal is to end it.
        forked = os.getpid() != self._process
        if self._timer is not None and self._supervised and not forked:
            return
        if forked or self._timer is not None:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        self.interrupted = number == signal.SIGINT
        self._timer = threading.Timer(HELD, _leave, [128 + number])
        self._timer.daemon = True
        self._timer.start()
        self._loop.call_soon_threadsafe(self._noticed)

    def _noticed(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._stop()
