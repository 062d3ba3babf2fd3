"""How a client program ends: Ctrl-C, signals, exceptions; once is enough, and its servers end with it."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PATIENCE = 30.0
SERVER = """
import json, os, signal, sys
def interrupted(*_):
    open(os.environ["MARK"], "w").close()
signal.signal(signal.SIGINT, interrupted)
if "stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
for line in sys.stdin:
    request = json.loads(line)
    answer = {"jsonrpc": "2.0", "id": request.get("id")}
    if request["method"] == "server/discover":
        print(json.dumps({**answer, "error": {"code": -32601, "message": "no"}}), flush=True)
    elif request["method"] == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "0"}}
        print(json.dumps({**answer, "result": result}), flush=True)
while "stubborn" in sys.argv:
    signal.pause()
"""
PROGRAM = f"""
import asyncio, sys
from modelwire import Client

async def main():
    async with Client([sys.executable, "-c", {SERVER!r}, sys.argv[1]], pass_env=["MARK"]) as client:
        print(client._process.pid, flush=True)
        if sys.argv[2] == "raises":
            sys.stdin.readline()  # until the test has found the server
            raise ZeroDivisionError("mine")
        await client.call("never", timeout=None)

asyncio.run(main())
"""


@contextmanager
def program(
    manner: str, does: str, mark: Path, terminal: int | None = None
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A client program with a call under way, and a pidfd of its server."""

    def take_terminal() -> None:
        import fcntl
        import termios

        if terminal is not None:
            fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)

    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, manner, does],
        stdin=subprocess.PIPE if terminal is None else terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "MARK": str(mark)},
        start_new_session=True,
        preexec_fn=take_terminal if terminal is not None else None,
    ) as process:
        assert process.stdout is not None
        server = os.pidfd_open(int(process.stdout.readline()))
        if process.stdin is not None:
            process.stdin.write(b"\n")
            process.stdin.flush()
        try:
            yield process, server
        finally:
            process.kill()
            os.close(server)


def assert_gone(server: int) -> None:
    assert select.select([server], [], [], PATIENCE)[0], "the server still runs"


@pytest.mark.parametrize("manner", ["meek", pytest.param("stubborn", marks=pytest.mark.slow)])
def test_ctrl_c_typed_once_ends_the_program_and_its_server_which_does_not_notice_it(
    manner: str, tmp_path: Path
) -> None:
    master, slave = pty.openpty()
    try:
        with program(manner, "waits", tmp_path / "interrupted", slave) as (process, server):
            os.write(master, b"\x03")
            _, said = process.communicate(timeout=PATIENCE)
            assert process.returncode in (130, -signal.SIGINT)
            assert b"KeyboardInterrupt" in said
            assert b"ExceptionGroup" not in said
            assert b"never retrieved" not in said
            assert_gone(server)
        assert not (tmp_path / "interrupted").exists(), "a server is in a session of its own"
    finally:
        os.close(master)
        os.close(slave)


@pytest.mark.parametrize("manner", ["meek", pytest.param("stubborn", marks=pytest.mark.slow)])
def test_an_exception_ends_the_program_as_itself_and_its_server(manner: str, tmp_path: Path) -> None:
    with program(manner, "raises", tmp_path / "mark") as (process, server):
        _, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == 1
        assert said.rstrip().endswith(b"ZeroDivisionError: mine")
        assert said.count(b"Traceback") == 1
        assert_gone(server)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
@pytest.mark.parametrize("manner", ["meek", pytest.param("stubborn", marks=pytest.mark.slow)])
def test_a_program_that_is_ended_by_a_signal_takes_its_server_along(
    manner: str, number: signal.Signals, tmp_path: Path
) -> None:
    with program(manner, "waits", tmp_path / "mark") as (process, server):
        process.send_signal(number)
        assert process.wait(PATIENCE) == -number
        assert_gone(server)
