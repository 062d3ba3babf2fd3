"""The time server answers whatever its standard streams are: a pipe, a file, a FIFO, one log for both."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from modelwire import Client
from tests.examples.programs import EXAMPLES, TIME_SERVER

INITIALIZE = json.dumps(
    {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "me", "version": "1"}},
    }
)  # fmt: skip
MW = [str(Path(sys.executable).with_name("mw")), "run", str(EXAMPLES / "time_server.py")]

either_way = pytest.mark.parametrize("command", [TIME_SERVER, MW], ids=["python FILE", "mw run FILE"])


def shell(script: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["sh", "-c", script], cwd=folder, capture_output=True, timeout=50)


def assert_answers(line: bytes | str) -> None:
    answer: dict[str, Any] = json.loads(line)
    assert (answer["id"], answer["result"]["protocolVersion"]) == (1, "2025-11-25")
    assert answer["result"]["serverInfo"]["name"] == "mcp-time-server"


@either_way
def test_it_answers_a_frame_from_a_pipe(command: list[str], tmp_path: Path) -> None:
    ran = shell(f"echo {shlex.quote(INITIALIZE)} | {shlex.join(command)}", tmp_path)
    assert ran.returncode == 0
    [line] = ran.stdout.splitlines()
    assert_answers(line)


@either_way
def test_it_answers_a_frame_from_a_file(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "frames.jsonl").write_text(INITIALIZE + "\n")
    ran = shell(f"{shlex.join(command)} < frames.jsonl", tmp_path)
    assert ran.returncode == 0
    [line] = ran.stdout.splitlines()
    assert_answers(line)


@either_way
def test_it_answers_a_frame_from_a_fifo_that_tail_feeds(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "frames.jsonl").write_text(INITIALIZE + "\n")
    os.mkfifo(tmp_path / "fifo")
    feeding = subprocess.Popen(["sh", "-c", "exec tail -f frames.jsonl > fifo"], cwd=tmp_path)
    serving = subprocess.Popen(
        ["sh", "-c", f"exec {shlex.join(command)} < fifo"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with feeding, serving:
        assert serving.stdout is not None
        try:
            assert_answers(serving.stdout.readline())
            feeding.terminate()  # the end of the FIFO
            assert serving.wait(timeout=30) == 0
        finally:
            feeding.kill()
            serving.kill()


@either_way
def test_it_answers_when_stdout_and_stderr_are_one_file(command: list[str], tmp_path: Path) -> None:
    ran = shell(f"echo {shlex.quote(INITIALIZE)} | {shlex.join(command)} > out.log 2>&1", tmp_path)
    assert ran.returncode == 0
    lines = (tmp_path / "out.log").read_text(encoding="utf-8").splitlines()
    [frame] = [line for line in lines if line.startswith("{")]
    assert_answers(frame)


@either_way
def test_it_ends_at_once_when_stdin_is_empty_or_closed(command: list[str], tmp_path: Path) -> None:
    assert shell(f"{shlex.join(command)} < /dev/null", tmp_path).returncode == 0
    assert shell(f"{shlex.join(command)} <&-", tmp_path).returncode == 0


@pytest.mark.slow
async def test_echo_appears_under_mw_run_too() -> None:
    async with Client(MW) as client, client.listen(tools=True) as events:
        while "echo" not in {tool.name for tool in await client.list_tools()}:
            await anext(events)
        assert await client.call("echo", {"message": "你好"}) == "你好"
