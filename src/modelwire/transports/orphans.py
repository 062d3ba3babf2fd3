"""Ends children whose parent was killed, and what they started: a shell that watches over their process groups.

A parent that ends in order ends its children itself. One that gets SIGKILL, or crashes, cannot; a child that does not
heed the end of its stdin would then live on. So a small ``/bin/sh`` holds the other end of a pipe, is told of every
process group that begins and ends, and wakes when the pipe closes, however this process came to its end. What is left
then gets the time of an ordinary close, SIGTERM, the same time again, and SIGKILL.

There is one shell for all children of this process, and none while there are no children. (Linux could tell a child
itself of its parent's end, with ``PR_SET_PDEATHSIG``; but that goes by the thread that started the child, wants code
between fork and exec, and knows no grandchildren.) A process that moved to a session of its own is not found.
"""

from __future__ import annotations

import os
import subprocess
import threading

from modelwire.log import log as _log
from modelwire.transports import forks

_SHELL = "/bin/sh"
_POLLS = 15
"""How often, each tenth of a second, it is looked who is left, before SIGTERM and again before SIGKILL."""

# A group that was seen to be empty is forgotten at once, since its number may be given out again.
_SCRIPT = f"""
trap '' HUP INT QUIT TERM TSTP TTIN TTOU PIPE USR1 USR2
groups=' '
while read -r what group; do
  case $what in
    +) groups="$groups$group " ;;
    -) groups="${{groups%%" $group "*}} ${{groups#*" $group "}}" ;;
  esac
done
left() {{
  kept=' '
  for group in $groups; do kill -s 0 -- "-$group" 2>/dev/null && kept="$kept$group "; done
  groups=$kept
  [ "$groups" != ' ' ]
}}
for number in TERM KILL; do
  polls={_POLLS}
  while left && [ $polls -gt 0 ]; do sleep 0.1 || sleep 1; polls=$((polls - 1)); done
  for group in $groups; do kill -s $number -- "-$group" 2>/dev/null; done
done
"""


class _Watcher:
    """The shell, and the pipe to it.

    Raises:
        OSError: It cannot be started.
    """

    def __init__(self) -> None:
        reading, self._fd = os.pipe()
        try:
            os.set_blocking(self._fd, False)
            self._popen = subprocess.Popen(
                [_SHELL, "-c", _SCRIPT, "modelwire-watch"],
                stdin=reading,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"PATH": os.environ.get("PATH", os.defpath)},
                start_new_session=True,
            )
        except OSError:
            os.close(self._fd)
            raise
        finally:
            os.close(reading)
        forks.keep_from_forks(self._fd)

    def tell(self, what: str) -> None:
        """Send it lines.

        Raises:
            OSError: It is gone, or stopped.
        """
        os.write(self._fd, what.encode())

    def end(self) -> None:
        """End it; there must be nothing left to watch. Blocks for a moment."""
        self._popen.kill()
        self._popen.wait()
        forks.close(self._fd)

    def disown(self) -> None:
        """Forget it: this process is a fork, and its parent's watcher is none of its business."""
        self._popen.returncode = 0


_lock = threading.Lock()
_groups: set[int] = set()
_watcher: _Watcher | None = None


def guard(group: int) -> None:
    """Have a process group ended if this process is killed.

    Without a shell there is nobody to do it; a child that heeds the end of its stdin needs nobody.
    """
    with _lock:
        _groups.add(group)
        _tell(f"+ {group}\n")


def release(group: int) -> None:
    """A process group has ended: its number may soon be a stranger's. May be called twice."""
    global _watcher
    with _lock:
        if group not in _groups:
            return
        _groups.discard(group)
        if _groups:
            _tell(f"- {group}\n")
        elif _watcher is not None:
            _watcher.end()
            _watcher = None


def _tell(line: str) -> None:
    global _watcher
    watcher = _watcher
    try:
        if watcher is not None:
            watcher.tell(line)
            return
    except BrokenPipeError:  # somebody ended the shell
        assert watcher is not None
        watcher.end()
        _watcher = None
    except OSError as error:
        _log.debug("the watcher over child processes does not listen: %s", error)
        return
    try:
        _watcher = _Watcher()
        _watcher.tell("".join(f"+ {group}\n" for group in _groups))
    except OSError as error:
        _log.debug("no watcher over child processes could be started: %s", error)


def _forked() -> None:
    global _lock, _watcher
    _lock = threading.Lock()
    _groups.clear()
    if _watcher is not None:
        _watcher.disown()
        _watcher = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
