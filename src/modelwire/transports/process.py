"""A child process as a stream of frames over its standard streams, for a client.

The child leads its own session and process group, gets a minimal environment, and never survives `aclose`: "closing
the input stream to the child process", then SIGTERM, then SIGKILL, to the whole group (2025-11-25, basic/lifecycle,
Shutdown). If this process is killed, `modelwire.transports.orphans` does the same. POSIX only; works in any thread that
runs an event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence

from modelwire.errors import ConnectionLost, ServerExited
from modelwire.rpc.observer import Observer, tell
from modelwire.rules.lines import DEFAULT_MAX_MESSAGE
from modelwire.transports import forks, orphans
from modelwire.transports.exits import ExitWatch, ended
from modelwire.transports.launch import Launched, child_environment, launch
from modelwire.transports.line_reader import LineReader
from modelwire.transports.line_writer import LineWriter, direct_sink
from modelwire.transports.stderr import StderrReader, StderrTarget

DRAIN_SECONDS = 1.0
"""How long closing lets the child take what is queued."""
EOF_SECONDS = 1.5
"""How long the child has to end after its stdin was closed."""
TERM_SECONDS = 1.5
"""How long the child and what it started have to end after SIGTERM."""
KILL_SECONDS = 0.5
"""How long to wait for the end that SIGKILL cannot fail to bring, but for a process stuck in the kernel."""
EXIT_SECONDS = 0.5
"""How long the end of stdout waits for the exit that usually comes with it."""
_GROUP_POLL_SECONDS = 0.02


class ProcessStream:
    """Frames to and from a child process; a `modelwire.rpc.message_stream.MessageStream`. Made by `spawn`.

    Args:
        launched: The child.
        program: What to call it in errors.
        max_message: The longest message in bytes.
        observers: Told what the child writes to stderr, and of its exit.
        forward_stderr: Where its stderr goes besides.
    """

    def __init__(
        self,
        launched: Launched,
        *,
        program: str,
        max_message: int,
        observers: Sequence[Observer],
        forward_stderr: StderrTarget | None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._program = program
        self._observers = observers
        for fd in (launched.stdin, launched.stdout, launched.stderr):
            forks.keep_from_forks(fd)
        self._stdin: int | None = launched.stdin
        self._stdout: int | None = launched.stdout
        self._exit_code: int | None = None
        self._exited = asyncio.Event()
        self._closing: asyncio.Task[None] | None = None
        self._reader = LineReader(launched.stdout, max_message=max_message, name=f"the server {program!r}")
        self._writer = LineWriter(launched.stdin, direct_sink(launched.stdin), name=f"the stdin of {program!r}")
        # These two, of `EagerStream`, are called for every frame.
        self.receive_nowait = self._reader.receive_nowait
        self.send_nowait = self._writer.send_nowait
        self._stderr = StderrReader(launched.stderr, forward_stderr, observers)
        self._group = _Group(launched.popen)
        self._watch = ExitWatch(launched.popen, self._on_exit)

    @property
    def pid(self) -> int:
        """The child's process id, which is also its process group's."""
        return self._group.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code once the child has ended, negative for a signal; None before, and when it cannot be known."""
        return self._exit_code

    @property
    def unfinished(self) -> bytes:
        """The beginning of a line that the child has not ended yet, at most 1 KiB of it."""
        return self._reader.unfinished

    def stderr_tail(self) -> str:
        """Return the last 64 KiB of what the child wrote to stderr."""
        return self._stderr.tail

    def stderr_before(self, when: float) -> int:
        """Return how many characters of `stderr_tail` had come before a time of the loop's clock."""
        return self._stderr.before(when)

    async def wait_exit(self) -> int | None:
        """Wait until the child has ended by itself or was ended; return its exit code."""
        await self._exited.wait()
        return self._exit_code

    async def receive(self) -> bytes | None:
        """Return the next frame; None once the child has ended or closed its stdout and everything was handed out.

        With None the exit code and the end of stderr are known, unless the child lives on.

        Raises:
            FrameTooLarge: A line was longer than ``max_message``; the next call goes on behind it.
            ConnectionLost: Reading failed.
        """
        frame = await self._reader.receive()
        if frame is None and self._closing is None:
            await self._exits_within(EXIT_SECONDS)
        return frame

    async def send(self, frame: bytes) -> None:
        """Queue a frame; waits while more than 1 MiB is queued.

        Raises:
            ServerExited: The child has ended.
            ConnectionLost: It closed its stdin, or the stream was closed.
        """
        try:
            await self._writer.send(frame)
        except ConnectionLost:
            # That nobody reads any more is often the first sign of the end.
            if self._closing is None and await self._exits_within(EXIT_SECONDS):
                raise self._server_exited() from None
            raise

    def unwritten(self) -> list[bytes]:
        """Return the frames that came too late, of which the child got nothing; see `KnowsUnwritten`."""
        return self._writer.unwritten()

    async def aclose(self) -> None:
        """End the child, and whatever it left in its process group, within 5 seconds.

        Writes what is queued, closes stdin, waits 1.5 s, sends SIGTERM, waits 1.5 s, sends SIGKILL. A caller that is
        cancelled meanwhile is not kept: the child is killed at once.
        """
        if self._closing is None:
            self._closing = self._loop.create_task(self._close(), name=f"modelwire: closing {self._program}")
        try:
            await asyncio.shield(self._closing)
        except asyncio.CancelledError:
            self._group.signal(signal.SIGKILL)
            raise

    async def _close(self) -> None:
        try:
            self._reader.discard()
            await self._writer.drain(DRAIN_SECONDS)
            self._close_stdin()
            if not await self._exits_within(EOF_SECONDS):
                self._group.signal(signal.SIGTERM)
                if not await self._exits_within(TERM_SECONDS):
                    self._group.signal(signal.SIGKILL)
                    await self._exits_within(KILL_SECONDS)
            if self._exited.is_set():
                await self._group.end()
        finally:
            self._kill()
            self._let_go()

    def release(self) -> None:
        """Kill the child at once and let go of everything; for a loop that has ended, where `aclose` cannot run."""
        self._reader.close()
        self._kill()
        self._let_go()

    def _kill(self) -> None:
        """Make sure of the end without waiting for the loop, which may be ending itself."""
        self._group.kill()
        self._watch.check()

    def _let_go(self) -> None:
        self._close_stdin()
        self._reader.close()
        self._stderr.close()
        self._watch.close()
        self._exited.set()
        stdout, self._stdout = self._stdout, None
        if stdout is not None:
            forks.close(stdout)

    def _close_stdin(self) -> None:
        self._writer.close()
        stdin, self._stdin = self._stdin, None
        if stdin is not None:
            forks.close(stdin)

    async def _exits_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._exited.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def _on_exit(self, exit_code: int | None) -> None:
        self._exit_code = exit_code
        self._stderr.drain()
        if exit_code is not None:
            tell(self._observers, lambda observer: observer.exited(exit_code))
        if self._closing is None:
            self._writer.fail(self._server_exited)
        self._reader.end_when_dry()
        self._exited.set()

    def how_it_ended(self) -> ConnectionLost:
        """Return what to tell people once `receive` has returned None."""
        if self._exited.is_set():
            return self._server_exited()
        return ConnectionLost(f"the server {self._program!r} closed its stdout, although its process still runs")

    def _server_exited(self) -> ServerExited:
        how = describe_exit(self._exit_code)
        return ServerExited(f"the server {self._program!r} {how}", exit_code=self._exit_code, stderr=self.stderr_tail())


class _Group:
    """The child's process group.

    Its number is safe to signal while the child is not reaped. After that it stays taken for as long as the group
    has a member, so it is safe to signal if it was seen alive a moment ago: ids are given out in turn, and do not
    come round in milliseconds.
    """

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self._popen = popen
        self._over = False
        self._told_to_end: float | None = None
        self._killed = False
        self.pid = popen.pid

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to every process of the group, if there is one."""
        if self._over:
            return
        is_over, exit_code = ended(self._popen)
        if is_over and exit_code is None:  # reaped by somebody else: the number may be a stranger's
            self._end()
            return
        if number == signal.SIGTERM and self._told_to_end is None:
            self._told_to_end = asyncio.get_running_loop().time()
        self._killed = self._killed or number == signal.SIGKILL
        self._send(number)

    async def end(self) -> None:
        """The child has ended: end what it started and left in its group."""
        loop = asyncio.get_running_loop()
        if self._told_to_end is None:
            self.signal(signal.SIGTERM)
        self._popen.poll()
        deadline = (self._told_to_end or loop.time()) + TERM_SECONDS
        while not (self._over or self._killed) and self._send(0) and loop.time() < deadline:  # noqa: ASYNC110 -- nothing tells of its end
            await asyncio.sleep(_GROUP_POLL_SECONDS)
        self.kill()

    def kill(self) -> None:
        """Send SIGKILL to what is left, and reap the child. Blocks for a moment at most."""
        if self._over:
            self._popen.poll()
            return
        if self._popen.returncode is None:
            self.signal(signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._popen.wait(KILL_SECONDS)
        if self._send(0):
            self._send(signal.SIGKILL)
        self._end()

    def _end(self) -> None:
        self._over = True
        orphans.release(self.pid)

    def _send(self, number: int) -> bool:
        """Return whether there was somebody to send it to."""
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True


async def spawn(
    command: Sequence[str | os.PathLike[str]],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    max_message: int = DEFAULT_MAX_MESSAGE,
    observers: Sequence[Observer] = (),
    forward_stderr: StderrTarget | None = None,
    pass_env: Iterable[str] = (),
    name: str | None = None,
) -> ProcessStream:
    """Start a server and return the stream to it.

    Args:
        command: The program and its arguments, handed over as they are; no shell is involved.
        env: Variables to add to the minimal environment (`modelwire.transports.launch.INHERITED`).
        cwd: The working directory.
        max_message: The longest message in bytes.
        observers: Told what the child writes to stderr, and of its exit. (Frames are told by whoever uses the stream.)
        forward_stderr: ``sys.stderr`` or another file object, or a function that takes one line of text. By default
            stderr is only kept.
        pass_env: Names of further variables to inherit; ``*`` at the end stands for any ending.
        name: What to call it in errors; by default as the program.

    Raises:
        ConnectionFailed: It could not be started; the message says what was tried and what to do.
        ConfigError: The command or a variable cannot be handed over.
    """
    directory = None if cwd is None else os.fspath(cwd)
    launched = launch(command, env=child_environment(env, pass_env), cwd=directory)
    return ProcessStream(
        launched,
        program=name or os.path.basename(command[0]),
        max_message=max_message,
        observers=tuple(observers),
        forward_stderr=forward_stderr,
    )


def describe_exit(exit_code: int | None) -> str:
    """Say how a process ended, as the end of a sentence."""
    if exit_code is None:
        return "has ended"
    if exit_code >= 0:
        return f"exited with code {exit_code}"
    try:
        return f"was ended by {signal.Signals(-exit_code).name} (signal {-exit_code})"
    except ValueError:
        return f"was ended by signal {-exit_code}"
