"""Keeps a connection out of forked children.

Close-on-exec does nothing for a child that is forked and runs on, such as a worker of multiprocessing: it would hold
the connection open after this process has closed it or was killed, and the other side would wait for an end that does
not come. In such a child every descriptor listed here becomes ``/dev/null``; its number stays taken, because objects
copied by the fork may still close it.
"""

from __future__ import annotations

import os

_ours: set[int] = set()


def keep_from_forks(fd: int) -> None:
    """List a descriptor of a connection."""
    _ours.add(fd)


def close(fd: int) -> None:
    """Close a descriptor, and take it off the list."""
    _ours.discard(fd)
    os.close(fd)


def _blank() -> None:
    if not _ours:
        return
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for fd in _ours:
        os.dup2(null, fd, inheritable=False)
    os.close(null)
    _ours.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_blank)
