"""Children whose parent was killed: whatever they ignore, they and what they started are gone soon after."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from modelwire.errors import ConnectionFailed
from modelwire.transports import forks, orphans
from modelwire.transports.launch import launch

STUBBORN = """
import signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
more = subprocess.Popen([sys.executable, "-c", "import signal\\nwhile True: signal.pause()"])
print(more.pid, flush=True)
while True:
    signal.pause()
"""
"""Neither the end of its input nor SIGTERM ends it, nor its child, which inherits what is ignored."""

PARENT = f"""
import asyncio, json, os, signal, sys
from modelwire.transports.process import spawn

async def main():
    streams = [await spawn([sys.executable, "-c", {STUBBORN!r}]) for _ in range(int(sys.argv[1]))]
    pids = [[stream.pid, json.loads(await stream.receive())] for stream in streams]
    print(json.dumps(sum(pids, [])), flush=True)
    if sys.argv[2] == "exits": os._exit(3)
    if sys.argv[2] == "crashes": os.abort()
    await streams[0].wait_exit()

asyncio.run(main())
"""
PATIENCE = 30.0
"""Seconds after which a process that still runs has survived."""


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """The watchers of this process, though not those of others, give less time before SIGTERM and SIGKILL."""
    monkeypatch.setattr(orphans, "_POLLS", 2)


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", code, *arguments]


def assert_gone(pidfds: list[int]) -> None:
    for pidfd in pidfds:
        assert select.select([pidfd], [], [], PATIENCE)[0], "a process survived"
        os.close(pidfd)


@pytest.mark.slow  # the time of an ordinary close
@pytest.mark.parametrize(("children", "end"), [(1, "is killed"), (3, "is killed"), (1, "exits"), (1, "crashes")])
def test_nothing_survives_a_parent_that_cannot_close(children: int, end: str) -> None:
    with subprocess.Popen(python(PARENT, str(children), end), stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        gone = [os.pidfd_open(pid) for pid in json.loads(parent.stdout.readline())]
        if end == "is killed":
            parent.kill()
    assert len(gone) == 2 * children
    assert_gone(gone)


# --------------------------------------------------------------------------------------------------- the watcher


@contextmanager
def group(code: str = "import signal; signal.pause()") -> Iterator[int]:
    """A process group, and its number."""
    with subprocess.Popen(python(code), start_new_session=True) as process:
        with orphans.expecting() as guard:
            guard(process.pid)
        try:
            yield process.pid
        finally:
            process.kill()
            process.wait()
            orphans.release(process.pid)


def watcher_pid() -> int:
    assert orphans._watcher is not None
    return orphans._watcher._popen.pid


def test_one_shell_watches_all_children_and_ends_with_the_last() -> None:
    before = os.listdir("/proc/self/fd")
    with group() as first:
        pid = watcher_pid()
        with group() as second:
            assert watcher_pid() == pid
            assert set(orphans._groups) == {first, second}
        assert watcher_pid() == pid
    assert orphans._watcher is None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert os.listdir("/proc/self/fd") == before


def test_a_group_may_be_released_twice() -> None:
    with group() as number:
        orphans.release(number)
    orphans.release(number)


@contextmanager
def pidfd(pid: int) -> Iterator[int]:
    fd = os.pidfd_open(pid)
    try:
        yield fd
    finally:
        os.close(fd)


def assert_ends(process: int) -> None:
    assert select.select([process], [], [], PATIENCE)[0], "a process survived"


def close_the_pipe() -> None:
    """Do what the end of this process would do, and wait for the watcher to have done its work."""
    assert orphans._watcher is not None
    watcher, orphans._watcher = orphans._watcher, None
    forks.close(watcher._fd)
    watcher._popen.wait(PATIENCE)


@pytest.mark.slow
def test_a_watcher_that_somebody_ended_is_started_again_and_told_everything() -> None:
    with group() as first, pidfd(first) as one:
        old = watcher_pid()
        os.kill(old, signal.SIGKILL)
        os.waitid(os.P_PID, old, os.WEXITED | os.WNOWAIT)
        with group() as second, pidfd(second) as other:
            assert watcher_pid() != old
            close_the_pipe()
            assert_ends(one)
            assert_ends(other)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_no_ordinary_signal_ends_the_watcher(number: signal.Signals) -> None:
    with group(), pidfd(watcher_pid()) as shell:
        wait_until_it_reads(watcher_pid())
        os.kill(watcher_pid(), number)
        assert not select.select([shell], [], [], 0.05)[0]


def wait_until_it_reads(pid: int) -> None:
    """Wait until the shell has set its traps: SIGTERM is ignored then."""
    while True:
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        if int(status["SigIgn"], 16) & (1 << (signal.SIGTERM - 1)):
            return


@pytest.mark.slow
def test_the_watcher_leaves_a_group_alone_that_was_released() -> None:
    """Its number may be a stranger's: here a process that was released lives on when the pipe closes."""
    with (
        group() as kept,
        subprocess.Popen(python("import signal; signal.pause()"), start_new_session=True) as stranger,
        pidfd(stranger.pid) as lives,
        pidfd(kept) as gone,
    ):
        with orphans.expecting() as guard:
            guard(stranger.pid)
        orphans.release(stranger.pid)
        close_the_pipe()
        assert_ends(gone)
        assert not select.select([lives], [], [], 0)[0]
        stranger.kill()


def test_the_watcher_leaves_a_group_alone_whose_number_was_given_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with group() as kept, pidfd(kept) as gone:
        monkeypatch.setattr(orphans, "_began", lambda pid: "1")  # soon after the machine had started
        with group() as again, pidfd(again) as lives:
            close_the_pipe()
            assert_ends(gone)
            assert not select.select([lives], [], [], 0)[0]


def test_without_proc_the_watcher_goes_by_what_ps_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphans, "_PROC", "/no/proc")
    with group() as number, pidfd(number) as gone:
        close_the_pipe()
        assert_ends(gone)


def test_without_proc_and_ps_the_watcher_ends_the_groups_that_it_was_told_of(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(orphans, "_PROC", "/no/proc")
    monkeypatch.setenv("PATH", str(tmp_path))
    with group() as number, pidfd(number) as gone:
        close_the_pipe()
        assert_ends(gone)


DEPARTING = """
import subprocess, sys
more = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], start_new_session=True)
print(more.pid, flush=True)
more.wait()
"""


def test_what_a_child_has_started_in_a_session_of_its_own_ends_with_it() -> None:
    with subprocess.Popen(python(DEPARTING), start_new_session=True, stdout=subprocess.PIPE) as process:
        with orphans.expecting() as guard:
            guard(process.pid)
        assert process.stdout is not None
        with pidfd(int(process.stdout.readline())) as gone:
            close_the_pipe()
            assert_ends(gone)
        orphans.release(process.pid)


TELLING = STUBBORN.replace("print(more.pid", "print(more.pid, file=open(sys.argv[1], 'w')")
SUDDEN = f"""
import os, signal, sys
from contextlib import contextmanager
from modelwire.transports import orphans
from modelwire.transports.launch import launch

expecting = orphans.expecting

@contextmanager
def killed_at_once(pipe):
    with expecting(pipe):
        yield lambda pid: os.kill(os.getpid(), signal.SIGKILL)

orphans.expecting = killed_at_once
launch([sys.executable, "-c", {TELLING!r}, sys.argv[1]], env={{}}, cwd=None)
"""


@pytest.mark.slow  # as above
def test_a_child_is_ended_whose_parent_was_killed_before_it_could_tell_of_it(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    os.mkfifo(told)
    with subprocess.Popen(python(SUDDEN, str(told))), told.open() as reading:
        gone = [os.pidfd_open(int(reading.readline()))]
    assert_gone(gone)


def test_a_child_that_could_not_be_started_leaves_no_watcher() -> None:
    before = os.listdir("/proc/self/fd")
    with pytest.raises(ConnectionFailed):
        launch(["/no/such/program"], env={}, cwd=None)
    assert orphans._watcher is None
    assert os.listdir("/proc/self/fd") == before


def test_without_a_shell_children_are_started_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphans, "_SHELL", "/no/such/shell")
    before = os.listdir("/proc/self/fd")
    with group():
        assert orphans._watcher is None
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 warns of forks beside threads
def test_a_forked_worker_neither_holds_the_pipe_nor_ends_the_watcher() -> None:
    with group():
        assert orphans._watcher is not None
        worker = os.fork()
        if worker == 0:
            clean = orphans._watcher is None and not orphans._groups
            os._exit(0 if clean else 1)
        assert os.waitpid(worker, 0)[1] == 0
        with pidfd(watcher_pid()) as shell:
            assert not select.select([shell], [], [], 0)[0]


def test_threads_may_start_and_end_children_at_once() -> None:
    def work() -> None:
        for _ in range(10):
            with group("pass"):
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert orphans._watcher is None
    assert not orphans._groups
