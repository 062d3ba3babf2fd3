"""A server with tools that misbehave, for the tests over real stdio. Run as ``python case_server.py [MAX_MESSAGE]``."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from modelwire import Context, Server

server = Server("case", **({"max_message": int(sys.argv[1])} if sys.argv[1:] else {}))


def tell(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


@server.tool
async def echo(value: str) -> str:
    return value


@server.tool
async def repeat(value: str, times: int) -> str:
    return value * times


@server.resource("file:///a")
async def a() -> str:
    return "a"


# ----------------------------------------------------------------------------- writing where it must not


def _from_a_process(number: int) -> int:
    print("stray: from a worker process")
    return number + 1


def _printed() -> None:
    print("stray: printed")
    sys.stdout.write("stray: written, without a line end")
    sys.stdout.flush()


def _raw() -> None:
    os.write(1, b"stray: raw\n")


def _buffered() -> None:
    sys.stdout.buffer.write(b"stray: buffer\n")
    assert sys.__stdout__ is not None
    sys.__stdout__.write("stray: original\n")
    sys.__stdout__.flush()


def _child() -> None:
    subprocess.run(["echo", "stray: child"], check=True)
    os.system("echo stray: system")


def _pool(method: str) -> None:
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.map(_from_a_process, [1]) == [2]


def _forked() -> None:
    pid = os.fork()
    if pid == 0:
        os.write(1, b"stray: forked\n")
        os._exit(0)
    os.waitpid(pid, 0)


def _terminated() -> None:
    ready, tell_ready = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(tell_ready, b"x")
        while True:
            time.sleep(60)
    os.read(ready, 1)  # a signal in the middle of a fork is lost, whoever forks
    os.close(ready)
    os.close(tell_ready)
    os.kill(pid, signal.SIGTERM)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status)


NOISES: dict[str, Any] = {
    "printed": _printed,
    "raw": _raw,
    "buffered": _buffered,
    "child": _child,
    "spawn pool": lambda: _pool("spawn"),
    "fork pool": lambda: _pool("fork"),
    "forked": _forked,
    "terminated": _terminated,
}


@server.tool
def noise(kind: str) -> str:
    NOISES[kind]()
    return f"made {kind}"


@server.tool(inline=True)
def inline_noise(kind: str) -> str:
    NOISES[kind]()
    return f"made {kind}"


# ----------------------------------------------------------------------------- reading where it must not


def _input() -> str:
    with contextlib.suppress(EOFError):
        return input()
    return ""


READS: dict[str, Any] = {
    "sys.stdin": lambda: sys.stdin.read(),
    "buffer": lambda: sys.stdin.buffer.read().decode(),
    "input": _input,
    "os.read": lambda: os.read(0, 100).decode(),
    "child": lambda: subprocess.run(["cat"], capture_output=True, check=True).stdout.decode(),
}


@server.tool
def steal(kind: str) -> str:
    return repr(READS[kind]())


# ----------------------------------------------------------------------------- taking long, ending badly


@server.tool
def block(path: str) -> str:
    """Block in a thread until something is written to a FIFO."""
    tell("blocked")
    return Path(path).read_text()


@server.tool
def block_for_ever() -> str:
    tell("blocked")
    threading.Event().wait()
    return ""


@server.tool
async def hang(ctx: Context) -> str:
    tell("hanging")
    try:
        await asyncio.Event().wait()
    finally:
        tell(f"hung until: {ctx.cancel_reason}")
    return ""


@server.tool
async def finish(path: str) -> str:
    """Take as long as a FIFO takes, on the loop."""
    tell("waiting")
    return await asyncio.to_thread(Path(path).read_text)


@server.tool
async def leave(kind: str) -> str:
    if kind == "exit":
        sys.exit(7)
    if kind == "cancelled":
        raise asyncio.CancelledError
    if kind == "self":
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)
    if kind == "task":
        task = asyncio.create_task(asyncio.sleep(60))
        task.cancel()
        await task
    raise BaseException(kind)


@server.tool
async def change(uri: str) -> str:
    server.changed(uri)
    return "changed"


if __name__ == "__main__":
    server.run()
