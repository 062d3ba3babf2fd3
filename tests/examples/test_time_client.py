"""`examples/time_client.py`, run as a newcomer would run it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.examples.programs import EXAMPLES


def test_it_lists_calls_reads_listens_and_leaves(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "time_client.py")]
    ran = subprocess.run(command, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, timeout=50)
    said = ran.stdout.decode()
    assert (ran.returncode, ran.stderr) == (0, b""), said
    in_order = [
        "mcp-time-server speaks 2026-07-28",
        "get_current_time: 获取当前的系统日期和时间",
        "file:///internal/server_log.txt: 服务器内部日志",
        "code_review: ",
        "当前系统时间是：",
        "the tool says no: ",
        "log (info): ",
        "progress: 3 of 3",
        "A new tool: 你好",
        "#42",
        "新工具 echo 已注册",
    ]
    places = [said.find(text) for text in in_order]
    assert -1 not in places, said
    assert places == sorted(places), said
