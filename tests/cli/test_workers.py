"""``mw run --workers``: processes that answer, what is told once, and where it does nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.cli.programs import PATIENCE, PROGRAM, mw
from tests.wire import MODERN, dumps, modern_meta

pytestmark = pytest.mark.slow  # programs are started

LISTENING = "it: an MCP server in 2 workers, listening on "
SERVER = """
import os
from modelwire import Server

server = Server("it", version="1")

@server.tool
def pid() -> int:
    return os.getpid()
"""


def pid_at(url: str) -> int:
    """Call the tool over a connection of its own."""
    params = {"name": "pid", "arguments": {}, "_meta": modern_meta()}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "tools/call",
        "Mcp-Name": "pid",
    }
    message = dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    with urlopen(Request(url, message, headers), timeout=PATIENCE) as answer:
        return int(json.load(answer)["result"]["content"][0]["text"])


def file(tmp_path: Path, source: str) -> str:
    (tmp_path / "it.py").write_text(source)
    return str(tmp_path / "it.py")


@pytest.mark.parametrize(("serves", "number", "status"), [("mw", signal.SIGTERM, 0), ("the file", signal.SIGINT, 130)])
def test_workers_answer_are_replaced_and_end(serves: str, number: int, status: int, tmp_path: Path) -> None:
    path = file(tmp_path, SERVER if serves == "mw" else f"{SERVER}server.run()\n")
    words = [*PROGRAM, "run", "--http", "127.0.0.1:0", "--workers", "2", path]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            url = line.partition(LISTENING)[2].partition(";")[0]
            assert url.startswith("http://127.0.0.1:"), line
            first = pid_at(url)
            os.kill(first, signal.SIGKILL)
            assert "another takes its place" in process.stderr.readline()
            assert pid_at(url) not in (first, process.pid)
            process.send_signal(number)
            _, err = process.communicate(timeout=PATIENCE)
            assert (process.returncode, err) == (status, "")
        finally:
            process.kill()


def test_what_is_wrong_with_the_file_is_told_once(tmp_path: Path) -> None:
    ran = mw("run", "--http", "127.0.0.1:0", "--workers", "4", file(tmp_path, "this is no python\n"))
    assert ran.code == 1
    assert ran.err.count("SyntaxError") == 1
    assert ran.err.splitlines()[-1].startswith("the server ends: no worker can be started; the last one exited with")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--workers", "2"], "--workers is for a server over HTTP: add --http HOST:PORT"),
        (["--workers", "2", "--listen", "tcp://127.0.0.1:0"], "--workers is for a server over HTTP"),
        (["--workers", "0", "--http", "127.0.0.1:0"], "'0' is no number above 0"),
        (["--workers", "2", "--http", "127.0.0.1:x"], "'127.0.0.1:x' is no HOST:PORT"),
    ],
)
def test_workers_that_make_no_sense_are_refused(words: list[str], why: str, tmp_path: Path) -> None:
    ran = mw("run", *words, file(tmp_path, SERVER))
    assert (ran.code, ran.out) == (1, "")
    assert why in ran.err


def test_a_file_that_serves_elsewhere_by_itself_is_refused(tmp_path: Path) -> None:
    ran = mw(
        "run", "--http", "127.0.0.1:0", "--workers", "2", file(tmp_path, f'{SERVER}server.run("tcp://127.0.0.1:0")\n')
    )
    assert ran.code == 1
    assert ran.err.count("the file serves by itself, at tcp://127.0.0.1:0, where --workers has no say") == 1


def test_one_worker_is_the_program_itself(tmp_path: Path) -> None:
    words = [*PROGRAM, "run", "--http", "127.0.0.1:0", "--workers", "1", file(tmp_path, SERVER)]
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            stderr: Any = process.stderr
            url = stderr.readline().partition("listening on ")[2].partition(";")[0]
            assert pid_at(url) == process.pid
        finally:
            process.kill()
