"""Knowing when a child process ends, without a thread and without reaping it.

Not reaped, an ended child keeps its process id, so that a signal to its process group cannot reach a stranger.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable

_POLL_SECONDS = 0.05


def ended(popen: subprocess.Popen[bytes]) -> tuple[bool, int | None]:
    """Return whether a child has ended, and its exit code: negative is a signal's number, None is unknown.

    Unknown when somebody else reaped it (a program that ignores SIGCHLD, or waits for any child).
    """
    if popen.returncode is not None:
        return True, popen.returncode
    if not hasattr(os, "waitid"):  # macOS before Python 3.13: this reaps
        return popen.poll() is not None, popen.returncode
    try:
        status = os.waitid(os.P_PID, popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True, None
    if status is None:
        return False, None
    return True, status.si_status if status.si_code == os.CLD_EXITED else -status.si_status


class ExitWatch:
    """Calls back once, on the event loop, when a child has ended.

    Linux tells through a pidfd, which works in any thread and needs no signal handler. Elsewhere the child is asked
    20 times a second.

    Args:
        popen: The child.
        on_exit: Takes its exit code, None when unknown.
    """

    def __init__(self, popen: subprocess.Popen[bytes], on_exit: Callable[[int | None], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._popen = popen
        self._on_exit = on_exit
        self._timer: asyncio.TimerHandle | None = None
        self._pidfd = _open_pidfd(popen.pid)
        if self._pidfd is None:
            self._timer = self._loop.call_later(_POLL_SECONDS, self.check)
        else:
            self._loop.add_reader(self._pidfd, self.check)

    def check(self) -> None:
        """Look now, and call back if the child has ended."""
        if self._pidfd is None and self._timer is None:
            return
        over, exit_code = ended(self._popen)
        if over:
            self.close()
            self._on_exit(exit_code)
        elif self._timer is not None:
            self._timer = self._loop.call_later(_POLL_SECONDS, self.check)

    def close(self) -> None:
        """Stop watching."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None


def _open_pidfd(pid: int) -> int | None:
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:  # an old kernel, a sandbox, or a child that was reaped by itself
        return None
