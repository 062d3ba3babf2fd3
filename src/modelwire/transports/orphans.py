"""Ends children whose parent was killed, and what they started: a shell that watches over their process groups.

A parent that ends in order ends its children itself. One that gets SIGKILL, or crashes, cannot; a child that does not
heed the end of its stdin would then live on. So a small ``/bin/sh`` holds the other end of a pipe, is told of every
process group that is to begin, begins and ends, and wakes when the pipe closes, however this process came to its end.
What is left then gets the time of an ordinary close, SIGTERM, the same time again, and SIGKILL.

There is one shell for all children of this process, and none while there are no children. (Linux could tell a child
itself of its parent's end, with ``PR_SET_PDEATHSIG``; but that goes by the thread that started the child, wants code
between fork and exec, and knows no grandchildren.)

A number names a group only while the group lasts, and may be a stranger's later. So the shell is told when the group's
leader began, and signals no group whose leader began at another time. With Linux's ``/proc`` it also finds what the
children have started in groups and sessions of their own, while their parents live, and a child whose start it was not
told of any more. Elsewhere it has only ``ps``, or nothing, and ends the groups that it was told of.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Callable, Generator

from modelwire.log import log as _log
from modelwire.transports import forks

_SHELL = "/bin/sh"
_PROC = "/proc"
_POLLS = 15
"""How often, each tenth of a second, it is looked who is left, before SIGTERM and again before SIGKILL."""
_UNKNOWN = "-"

# The lines that it reads: "? PIPE", a child is to begin whose stdin is that pipe; "+ PIPE GROUP BEGAN", it has;
# "! PIPE", it could not; "- GROUP", it has ended. A group is kept as GROUP=BEGAN. `look` finds out about a process;
# a name may hold anything, line ends included, and ends at the last parenthesis.
_SCRIPT = f"""
trap '' HUP INT QUIT TERM TSTP TTIN TTOU PIPE USR1 USR2
proc=$1 groups=' ' pipes=' '
look() {{
  began= leader=$1 status=
  if [ -r "$proc/self/stat" ]; then
    {{ while read -r part; do status="$status$part "; done < "$proc/$1/stat"; }} 2>/dev/null
    set -f
    set -- ${{status##*") "}}
    set +f
    parent=$2 group=$3 began=${{20}}
  else
    began=$(ps -o lstart= -p "$1" 2>/dev/null)
    set -- $began
    began=$1$2$3$4$5
  fi
}}
add() {{
  look "$1"
  groups="$groups$1=${{2:-${{began:-{_UNKNOWN}}}}} "
}}
drop() {{
  case $groups in *" $1="*)
    rest=${{groups#*" $1="}}
    groups="${{groups%%" $1="*}} ${{rest#* }}" ;;
  esac
}}
begun() {{
  case $pipes in *" $1 "*) pipes="${{pipes%%" $1 "*}} ${{pipes#*" $1 "}}" ;; esac
}}
while read -r what name number when; do
  case $what in
    '?') pipes="$pipes$name " ;;
    -) drop "$name" ;;
    *) begun "$name" ;;
  esac
  [ "$what" = + ] && if [ "$when" = {_UNKNOWN} ]; then add "$number"; else add "$number" "$when"; fi
done
ours() {{
  kill -s 0 -- "-${{1%%=*}}" 2>/dev/null || return 1
  look "${{1%%=*}}"
  case ${{1#*=}} in {_UNKNOWN} | "${{began:-{_UNKNOWN}}}") ;; *) [ -z "$began" ] ;; esac
}}
untold() {{
  for process in "$proc"/[0-9]*; do
    look "${{process##*/}}"
    [ "$group" = "$leader" ] && case $groups in
      *" $group="*) ;;
      *) pipe=$(readlink "$process/fd/0" 2>/dev/null) && case $pipes in *" $pipe "*) add "$group" ;; esac ;;
    esac
  done
}}
family() {{
  members=' ' found=yes
  while [ "$found" ]; do
    found=
    for process in "$proc"/[0-9]*; do
      look "${{process##*/}}"
      process=$leader
      [ "$began" ] && case $members in
        *" $process "*) ;;
        *)
          case "$groups/$members" in *" $group="*/* | */*" $parent "*)
            members="$members$process " found=yes
            case $groups in *" $group="*) ;; *) add "$group" ;; esac ;;
          esac ;;
      esac
    done
  done
}}
left() {{
  kept=' '
  for known in $groups; do ours "$known" && kept="$kept$known "; done
  groups=$kept
  [ "$pipes" != ' ' ] && untold
  [ "$groups$pipes" != '  ' ]
}}
[ -r "$proc/self/stat" ] || {{ pipes=' '; untold() {{ :; }}; family() {{ :; }}; }}
for number in TERM KILL; do
  left && family
  polls=$2
  while left && [ $polls -gt 0 ]; do sleep 0.1 || sleep 1; polls=$((polls - 1)); done
  left && family
  for known in $groups; do ours "$known" && kill -s $number -- "-${{known%%=*}}" 2>/dev/null; done
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
                [_SHELL, "-c", _SCRIPT, "modelwire-watch", _PROC, str(_POLLS)],
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
_groups: dict[int, str] = {}
"""The groups that are watched over, and the lines that told of them."""
_expected: set[str] = set()
"""The pipes of those that are to begin."""
_watcher: _Watcher | None = None


@contextlib.contextmanager
def expecting(stdin: int | None = None) -> Generator[Callable[[int], None]]:
    """Start a child within the block, and call what it gives with the child's process id, which is also its group's.

    If this process is killed, at whatever moment, the child is ended. Without a shell there is nobody to do it; a child
    that heeds the end of its stdin needs nobody.

    Args:
        stdin: The pipe that will be the child's stdin, by which it is found if nothing more could be told of it.
    """
    pipe = _UNKNOWN if stdin is None else f"pipe:[{os.fstat(stdin).st_ino}]"
    with _lock:
        _expected.add(pipe)
        _tell(f"? {pipe}\n")
    try:
        yield lambda pid: _begun(pipe, pid)
    finally:
        with _lock:
            if pipe in _expected:
                _expected.discard(pipe)
                _tell_of_end(f"! {pipe}\n")


def _begun(pipe: str, group: int) -> None:
    with _lock:
        _expected.discard(pipe)
        _groups[group] = f"+ {pipe} {group} {_began(group)}\n"
        _tell(_groups[group])


def release(group: int) -> None:
    """A process group has ended: its number may soon be a stranger's. May be called twice."""
    with _lock:
        if _groups.pop(group, None) is not None:
            _tell_of_end(f"- {group}\n")


def _began(pid: int) -> str:
    """When a process began, as ``/proc`` counts it; unknown where there is none."""
    try:
        with open(f"{_PROC}/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return _UNKNOWN


def _tell_of_end(line: str) -> None:
    global _watcher
    if _groups or _expected:
        _tell(line)
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
        _watcher.tell("".join([*(f"? {pipe}\n" for pipe in _expected), *_groups.values()]))
    except OSError as error:
        _log.debug("no watcher over child processes could be started: %s", error)


def _forked() -> None:
    global _lock, _watcher
    _lock = threading.Lock()
    _groups.clear()
    _expected.clear()
    if _watcher is not None:
        _watcher.disown()
        _watcher = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
