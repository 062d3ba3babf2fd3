"""Child processes that are measured: started, fed over pipes, timed, ended. Knows nothing of what the messages mean."""

from __future__ import annotations

import os
import select
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SILENCE = 60.0
"""Seconds without an answer after which a measurement is given up."""
PIPE_SIZE = 1 << 16
"""Bytes that a pipe holds."""
ENDING = 10.0
"""Seconds that a child may take to end once its stdin is closed."""


class BenchError(Exception):
    """A measurement that cannot be made, or whose answers are wrong."""


@dataclass(frozen=True)
class Exchanged:
    """What came of a number of requests: the CPU seconds of the child, and the lines that it wrote."""

    seconds: float
    lines: list[bytes]


class Child:
    """One process with pipes to its stdin and stdout, run in the checkout's folder.

    Args:
        command: What to run.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self.name = " ".join(command[1:])
        self._said = ""
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the child
        try:
            self._process = subprocess.Popen(
                command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr, cwd=ROOT
            )
        except OSError as error:
            self._stderr.close()
            raise BenchError(f"cannot start {command[0]}: {error.strerror}") from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._pipes = (self._process.stdin, self._process.stdout)
        self._stdin, self._stdout = (pipe.fileno() for pipe in self._pipes)
        os.set_blocking(self._stdin, False)
        self._unwritten: deque[memoryview] = deque()
        self._readable, self._ready = select.poll(), select.poll()
        """Two sets, so that neither is changed while a server waits for us."""
        self._readable.register(self._stdout, select.POLLIN)
        self._ready.register(self._stdout, select.POLLIN)
        self._ready.register(self._stdin, select.POLLOUT)

    @property
    def cpu(self) -> float:
        """CPU seconds so far, of all threads of the process, those that have ended included."""
        # Linux's id for the CPU clock of a process, see clock_getcpuclockid(3). The files in /proc/<pid> count in
        # hundredths of a second, or one thread only.
        return time.clock_gettime_ns((~self._process.pid << 3) | 2) / 1e9

    @property
    def memory(self) -> float:
        """Resident memory in MiB."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")) / 1024

    def exchange(self, requests: Sequence[bytes], depth: int = 1, lines_each: int = 1) -> Exchanged:
        """Send requests, so many at once, and read what comes back.

        Args:
            requests: What to send; each is a line, or several.
            depth: How many may be open at once.
            lines_each: How many lines answer one request.

        Raises:
            BenchError: The child ended, said nothing for a minute, or said more than it was asked.
        """
        before = self.cpu
        chunks: list[bytes] = []
        lines = sent = 0
        while lines < len(requests) * lines_each:
            now = min(lines // lines_each + depth, len(requests))
            if now > sent:
                self._unwritten.append(memoryview(b"".join(requests[sent:now])))
                sent = now
            self._write()
            chunk = self._read()
            chunks.append(chunk)
            lines += chunk.count(b"\n")
        seconds = self.cpu - before
        answer = b"".join(chunks)
        if not answer.endswith(b"\n") or lines > len(requests) * lines_each:
            raise BenchError(f"{self.name} wrote more than it was asked: {answer[-200:]!r}")
        return Exchanged(seconds, answer.split(b"\n")[:-1])

    def _write(self) -> None:
        """Write what the pipe takes."""
        unwritten = self._unwritten
        try:
            while unwritten:
                written = os.write(self._stdin, unwritten[0])
                if written == len(unwritten[0]):
                    unwritten.popleft()
                else:
                    unwritten[0] = unwritten[0][written:]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            raise self._gone() from None

    def _read(self) -> bytes:
        """Wait until something can be read, or written if there is something to write; return what was read."""
        ready = (self._ready if self._unwritten else self._readable).poll(SILENCE * 1000)
        if not ready:
            raise BenchError(f"{self.name} said nothing for {SILENCE:.0f} seconds")
        if not any(descriptor == self._stdout for descriptor, _ in ready):
            return b""
        chunk = os.read(self._stdout, PIPE_SIZE)
        if not chunk:
            raise self._gone()
        return chunk

    @property
    def descriptors(self) -> int:
        """How many descriptors it has open."""
        return len(os.listdir(f"/proc/{self._process.pid}/fd"))

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def gone(self) -> BenchError:
        """Return the error for a child that has ended, or is to be ended, with what it said on stderr."""
        self.end()
        return BenchError(f"{self.name} does not answer; on stderr:\n{self._said}")

    def end(self) -> None:
        """Ask a child that does not end with its stdin to end, and wait for that. May be called twice."""
        if self.alive:
            self._process.terminate()
        self.close()

    def _gone(self) -> BenchError:
        self.close()
        return BenchError(f"{self.name} ended with code {self._process.returncode}; on stderr:\n{self._said}")

    def close(self) -> None:
        """Close the child's stdin and wait for its end; end it by force when it does not come. May be called twice."""
        if self._stderr.closed:
            return
        for pipe in self._pipes:
            pipe.close()
        try:
            self._process.wait(ENDING)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stderr.seek(0)
        self._said = self._stderr.read()[-4000:].decode("utf-8", "replace")
        self._stderr.close()
