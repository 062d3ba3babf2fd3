"""A server as a program of its own, over HTTP: where it answers, what it says, and how it has ended."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

LISTENING = "listening on "
PATIENCE = 40.0
"""Seconds after which a program that does nothing has failed: several of them start on a busy machine."""


class Program:
    """A program that serves.

    Attributes:
        process: Its process; with several workers that of their supervisor.
        said: What it has said on stderr so far, line by line.
        url: Where it answers.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.said: list[str] = []
        self.url = ""

    async def hear(self, words: str) -> str:
        """Read stderr up to a line with these words in it."""
        assert self.process.stderr is not None
        async with asyncio.timeout(PATIENCE):
            while line := (await self.process.stderr.readline()).decode():
                self.said.append(line.rstrip("\n"))
                if words in line:
                    return line
        raise AssertionError(f"it never said {words!r}: {self.said}")

    async def end(self) -> int | None:
        """Wait until it, and whoever has its stderr, has ended; return its exit code."""
        assert self.process.stderr is not None
        async with asyncio.timeout(PATIENCE):
            # Its workers write to the same stderr: at the end of that there are none.
            self.said += (await self.process.stderr.read()).decode().splitlines()
            return await self.process.wait()


@asynccontextmanager
async def started(*words: str) -> AsyncIterator[Program]:
    """Start a program: the words after that of the interpreter."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-W",
        "error",
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    program = Program(process)
    try:
        yield program
    finally:
        if process.returncode is None:
            process.kill()
        await program.end()


@asynccontextmanager
async def serving(*words: str) -> AsyncIterator[Program]:
    """Start a program, and wait until it says where it answers."""
    async with started(*words) as program:
        line = await program.hear(LISTENING)
        program.url = line.partition(LISTENING)[2].partition(";")[0]
        yield program


COME_THROUGH = """
import os, socket

def come_through(gate: str) -> int:
    host, _, port = gate.partition(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(b"%d\\n" % os.getpid())
        connection.recv(1)
    return os.getpid()
"""
"""The beginning of a program with functions that stand at a `Gate`; each blocks, and returns its process."""


class Gate:
    """Where functions of other processes stand until they are let through.

    Attributes:
        address: What they are told.
    """

    def __init__(self) -> None:
        self.address = ""
        self._come: asyncio.Queue[int] = asyncio.Queue()
        self._standing: dict[int, asyncio.StreamWriter] = {}

    async def _arrived(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        process = int(await reader.readline())
        self._standing[process] = writer
        self._come.put_nowait(process)

    async def reached(self) -> int:
        """Wait until one more stands there; return its process."""
        async with asyncio.timeout(PATIENCE):
            return await self._come.get()

    def open(self, *processes: int) -> None:
        """Let some through, or all."""
        for process in processes or [*self._standing]:
            self._standing.pop(process).close()


@asynccontextmanager
async def gate() -> AsyncIterator[Gate]:
    """A gate; at the end of the block it is open."""
    made = Gate()
    server = await asyncio.start_server(made._arrived, "127.0.0.1", 0)  # pyright: ignore[reportPrivateUsage]
    made.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()
        made.open()


def script(folder: Path, source: str) -> str:
    """Write a program; return its path."""
    path = folder / "it.py"
    path.write_text(source)
    return str(path)
