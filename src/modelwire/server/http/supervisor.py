"""Several workers at one address: the supervisor that starts them, replaces those that die, and ends them all.

It listens, and answers nobody: each worker is a fresh interpreter with this process's command line, inherits the
listening sockets and accepts by itself, so that a connection that waits outlives the death of any worker. What a
worker does is not known here; what it is told stands in `modelwire.server.http.worker`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Generator

import msgspec

from modelwire.errors import ConfigError
from modelwire.log import log as _log
from modelwire.rules.restarts import DELAYS
from modelwire.server.endpoints import ServeOptions
from modelwire.server.http.run import Bound, bind
from modelwire.server.http.worker import PATIENCE, VARIABLE, Hello
from modelwire.server.sealing import KeyRing
from modelwire.transports.exits import ExitWatch
from modelwire.transports.process import describe_exit

STEADY = 10.0
"""Seconds after which the end of a worker is taken for an accident, and another takes its place at once."""
HOPELESS = len(DELAYS)
"""How many workers in a row may fail to start while there is none that answers."""
_SIZE = 1 << 16


def supervise(endpoint: str, options: ServeOptions) -> int:
    """Serve with several workers until a signal ends it; return the exit code.

    Args:
        endpoint: Where: ``http://...`` or ``https://...``.
        options: What is said about it; ``workers`` is how many.

    Raises:
        ConfigError: The endpoint or an option makes no sense, workers cannot be started here, or the package
            ``cryptography`` is missing.
        ConnectionFailed: It cannot be listened there.
    """
    key = secrets.token_urlsafe(32)
    _check(key, options)
    with asyncio.Runner() as runner:
        return runner.run(_supervise(endpoint, options, key))


def _check(key: str, options: ServeOptions) -> None:
    if options.get("sse"):
        raise ConfigError(
            "sse=True needs one worker: a client of HTTP+SSE posts to /messages over a connection of its own, which "
            "another worker may accept"
        )
    if not hasattr(socket, "send_fds") or not sys.executable or not sys.orig_argv:
        raise ConfigError("workers= needs a POSIX system, and a Python interpreter that can be started again")
    if threading.current_thread() is not threading.main_thread():
        raise ConfigError("workers= needs the main thread, which gets the signals that end them")
    try:
        KeyRing([key])
    except ConfigError:
        raise ConfigError(
            "several workers need the package cryptography, by which each goes on with what another has asked: "
            "pip install 'modelwire[state]'"
        ) from None


async def _supervise(endpoint: str, options: ServeOptions, key: str) -> int:
    bound = await bind(endpoint, options)
    try:
        supervisor = _Supervisor(bound, Hello(endpoint, bound.url, key), options.get("workers", 1))
        with supervisor.signals():
            return await supervisor.run()
    finally:
        bound.close()


class _Worker:
    """One worker, from its start to its end.

    Args:
        hello: What it is told.
        sockets: Those that listen.

    Attributes:
        started: Done once it answers clients, with the server's name; or with None once it has ended before.
        over: Done once it has ended, with its exit code as `describe_exit` takes it.

    Raises:
        OSError: It cannot be started.
    """

    def __init__(self, hello: Hello, sockets: list[socket.socket]) -> None:
        self._loop = asyncio.get_running_loop()
        self.started: asyncio.Future[str | None] = self._loop.create_future()
        self.over: asyncio.Future[int | None] = self._loop.create_future()
        self._said = b""
        self._control, theirs = socket.socketpair()
        try:
            words = secrets.token_urlsafe(12)
            told = words.encode() + b"\n" + msgspec.json.encode(hello)
            # Before it starts, so that it is there whenever it is looked for.
            socket.send_fds(self._control, [told], [listening.fileno() for listening in sockets])
            self._popen = subprocess.Popen(
                [sys.executable, *sys.orig_argv[1:]],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={**os.environ, VARIABLE: f"{theirs.fileno()}:{words}"},
                process_group=0,  # Ctrl-C is the supervisor's to feel: it says when they end
            )
        except BaseException:
            self._control.close()
            raise
        finally:
            theirs.close()
        self._control.setblocking(False)
        self._loop.add_reader(self._control, self._hear)
        self._watch = ExitWatch(self._popen, self._ended)

    @property
    def pid(self) -> int:
        """Its process."""
        return self._popen.pid

    @property
    def answers(self) -> bool:
        """Whether it answers clients."""
        return self.started.done() and not self.over.done()

    def _hear(self) -> None:
        try:
            heard = self._control.recv(_SIZE)
        except BlockingIOError:
            return
        except OSError:
            heard = b""
        self._said += heard
        if not heard:
            self._loop.remove_reader(self._control)
        elif heard.endswith(b"\n") and not self.started.done():
            self.started.set_result(self._said.decode(errors="replace").strip())

    def _ended(self, exit_code: int | None) -> None:
        self._loop.remove_reader(self._control)
        self._control.close()
        self._popen.poll()
        if not self.started.done():
            self.started.set_result(None)
        self.over.set_result(exit_code)

    def end(self) -> None:
        """Have it end in order; before it answers anybody, at once."""
        if self.over.done():
            return
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)
        if not self.started.done():
            self._popen.terminate()

    def kill(self) -> None:
        """Have it end, whatever it does."""
        self._popen.kill()


class _Supervisor:
    """The workers at one address.

    Args:
        bound: Where it is listened.
        hello: What each worker is told.
        count: How many there are to be.
    """

    def __init__(self, bound: Bound, hello: Hello, count: int) -> None:
        self._bound = bound
        self._hello = hello
        self._count = count
        self._loop = asyncio.get_running_loop()
        self._workers: set[_Worker] = set()
        self._failures = 0
        """How many in a row have ended before they answered anybody."""
        self._stop: asyncio.Future[int] = self._loop.create_future()
        """Done once all is to end, with the exit code."""
        self._hopeless: _Worker | None = None
        """The worker after which no further one is started."""

    # ------------------------------------------------------------------ signals

    @contextlib.contextmanager
    def signals(self) -> Generator[None, None, None]:
        """End in order after SIGTERM or SIGINT, and at once after another, while a block runs."""
        numbers = (signal.SIGTERM, signal.SIGINT)
        before = {number: signal.getsignal(number) for number in numbers}
        for number in numbers:
            self._loop.add_signal_handler(number, self._signalled, number)
        try:
            yield
        finally:
            for number in numbers:
                self._loop.remove_signal_handler(number)
                signal.signal(number, before[number])

    def _signalled(self, number: signal.Signals) -> None:
        if not self._stop.done():
            self._stop.set_result(130 if number == signal.SIGINT else 0)
            return
        for worker in self._workers:
            worker.kill()
        self._loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)

    # ------------------------------------------------------------------ from the start to the end

    async def run(self) -> int:
        """Return the exit code, once all workers have ended."""
        keepers: list[asyncio.Task[None]] = []
        try:
            # One alone, so that what is wrong with the program is told once.
            first = self._begin()
            await asyncio.wait([first.started, self._stop], return_when=asyncio.FIRST_COMPLETED)
            if not self._stop.done():
                keepers = self._keep_all(first)
                await asyncio.wait([self._stop])
        except OSError as error:
            raise ConfigError(f"cannot start a worker, {sys.executable}: {error.strerror}") from None
        finally:
            for keeper in keepers:
                keeper.cancel()
            await self._end()
        if self._hopeless is not None:
            _say_why(self._hopeless)  # last, so that what the others had to say stands above, too
        return self._stop.result()

    def _keep_all(self, first: _Worker) -> list[asyncio.Task[None]]:
        name = first.started.result()
        if name is None:
            self._give_up(first)
            return []
        sys.stderr.write(
            f"{name}: an MCP server in {self._count} workers, listening on {self._bound.url}; Ctrl-C ends it\n"
        )
        sys.stderr.flush()
        return [self._loop.create_task(self._keep(first if at == 0 else None)) for at in range(self._count)]

    async def _keep(self, worker: _Worker | None) -> None:
        """Keep one of the places filled.

        Args:
            worker: Who fills it; None for nobody yet.
        """
        quick = 0
        while True:
            began = self._loop.time()
            if worker is None:
                worker = self._begun_again()
            if worker is not None:
                await asyncio.wait([worker.over])  # not `await`: that would cancel it, should this be cancelled
                self._replace(worker)
            quick = 0 if self._loop.time() - began >= STEADY else quick + 1
            worker = None
            await asyncio.sleep(DELAYS[min(max(quick - 1, 0), len(DELAYS) - 1)])

    def _begin(self) -> _Worker:
        worker = _Worker(self._hello, self._bound.sockets)
        self._workers.add(worker)
        worker.over.add_done_callback(lambda _: self._workers.discard(worker))
        worker.started.add_done_callback(self._note_start)
        return worker

    def _begun_again(self) -> _Worker | None:
        try:
            return self._begin()
        except OSError as error:
            _log.error("a worker cannot be started: %s", error.strerror)
            return None

    def _note_start(self, started: asyncio.Future[str | None]) -> None:
        self._failures = self._failures + 1 if started.result() is None else 0

    def _replace(self, worker: _Worker) -> None:
        """Say that a worker has ended; give up where none answers and none can be started."""
        hopeless = worker.started.result() is None and self._failures >= HOPELESS
        if hopeless and not any(other.answers for other in self._workers):
            self._give_up(worker)
        elif not self._stop.done():
            how = describe_exit(worker.over.result())
            _log.warning("worker %d %s; another takes its place", worker.pid, how)

    def _give_up(self, worker: _Worker) -> None:
        if not self._stop.done():
            self._hopeless = worker
            self._stop.set_result(1)

    async def _end(self) -> None:
        self._bound.close()
        over = [worker.over for worker in self._workers]
        for worker in self._workers:
            worker.end()
        if not over:
            return
        _, late = await asyncio.wait(over, timeout=PATIENCE)
        if late:
            left = [*self._workers]
            pids = ", ".join(str(worker.pid) for worker in left)
            _log.error("did not end within %g s, and is killed: worker %s", PATIENCE, pids)
            for worker in left:
                worker.kill()
            await asyncio.wait(over)


def _say_why(worker: _Worker) -> None:
    why = "what it said stands above"
    if worker.over.result() == 0:
        why = "it is this program, started again with the same words; it must come to the same server.run()"
    how = describe_exit(worker.over.result())
    _log.error("the server ends: no worker can be started; the last one %s before it answered anybody: %s", how, why)
