"""Knowing that a child has ended, with a pidfd and without."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess

import pytest

from modelwire.transports import exits
from modelwire.transports.exits import ExitWatch, ended


async def exit_code_of(command: list[str]) -> int | None:
    popen = subprocess.Popen(command)
    told: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
    watch = ExitWatch(popen, told.set_result)  # a second call would raise
    code = await told
    watch.check()
    watch.close()
    assert popen.returncode is None, "reaped"
    popen.wait()
    return code


@pytest.mark.parametrize("pidfd", [True, False])
@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", -9)])
async def test_the_end_is_told_once_and_the_child_is_not_reaped(
    monkeypatch: pytest.MonkeyPatch, pidfd: bool, script: str, code: int
) -> None:
    if not pidfd:
        monkeypatch.setattr(exits, "_open_pidfd", lambda pid: None)
    assert await exit_code_of(["sh", "-c", script]) == code


@pytest.mark.parametrize("pidfd", [True, False])
async def test_a_watch_that_was_closed_tells_nothing(monkeypatch: pytest.MonkeyPatch, pidfd: bool) -> None:
    if not pidfd:
        monkeypatch.setattr(exits, "_open_pidfd", lambda pid: None)
    told: list[int | None] = []
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as popen:
        watch = ExitWatch(popen, told.append)
        watch.check()
        watch.close()
        watch.close()
        popen.kill()
    await asyncio.sleep(0)
    watch.check()
    assert told == []


def test_a_child_that_somebody_else_reaped_has_ended_with_an_unknown_code() -> None:
    popen = subprocess.Popen(["cat"], stdin=subprocess.DEVNULL)
    assert os.waitpid(popen.pid, 0)[0] == popen.pid
    assert ended(popen) == (True, None)
    popen.wait()


def test_a_child_that_runs_has_not_ended() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as popen:
        assert ended(popen) == (False, None)
        popen.send_signal(signal.SIGKILL)
        popen.wait()
        assert ended(popen) == (True, -9)
