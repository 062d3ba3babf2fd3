"""Opening and walking the files of a folder, so that nothing outside it is ever opened.

Each name on the way is opened from the descriptor of the folder above it, and never through a link: there is no moment
between check and use in which a link could take the place of what was checked. Knows no resource and no URI.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from modelwire.server.paths import is_below

MAX_DEPTH = 64
"""Folders within each other."""

Names = tuple[str, ...]
"""The names of a path below a folder, from the top; bytes that are no UTF-8 are surrogates, as `os` has them."""

ABSENT = (
    errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL, errno.ENXIO, errno.ENODEV,
    errno.EACCES, errno.EPERM,
)  # fmt: skip
"""The errors of a path that leads to nothing that could be read; others are faults of the system."""


class NotServed(Exception):
    """A path leads to nothing that is served: out of its folder, to a device, to nothing at all."""


def open_below(folder: Path, names: Sequence[str], *, hidden: bool) -> int:
    """Open a regular file below a folder for reading, and return its descriptor.

    The file itself may be a link to another file below the folder; the folders on the way may not be links.

    Args:
        folder: Where to begin; links on the way to it are followed.
        names: The names below it.
        hidden: Whether names may begin with a dot.

    Raises:
        NotServed: There is no such file there.
        OSError: It cannot be opened for another reason.
    """
    try:
        return _opened(folder, names, hidden)
    except OSError as error:
        if error.errno in ABSENT:
            raise NotServed from error
        raise


def open_regular(path: Path) -> int:
    """Open a regular file for reading, wherever it is, and return its descriptor.

    Raises:
        NotServed: There is no such file.
        OSError: It cannot be opened for another reason.
    """
    try:
        return _regular(os.open(path, _flags()))
    except OSError as error:
        if error.errno in ABSENT:
            raise NotServed from error
        raise


def read_all(descriptor: int, limit: int | None) -> bytes:
    """Read a file from its descriptor to its end, or one byte more than the limit."""
    with open(descriptor, "rb", closefd=False) as file:
        return file.read() if limit is None else file.read(limit + 1)


def walk(folder: Path, *, hidden: bool, depth: int) -> Iterator[tuple[Names, os.stat_result]]:
    """Yield every regular file below a folder, by their names; a folder's own files come before deeper ones.

    Links to files below the folder are among them; links to folders are not followed. What cannot be read, and what
    comes or goes meanwhile, is left out.

    Args:
        folder: Where to begin.
        hidden: Whether names may begin with a dot.
        depth: How many names a path may have.

    Raises:
        OSError: The folder itself cannot be read.
    """
    waiting: list[Names] = [()]
    while waiting:
        above = waiting.pop()
        try:
            files, folders = _listing(folder, above, hidden)
        except OSError:
            if not above:
                raise
            continue
        yield from files
        if len(above) + 1 < depth:
            waiting += reversed(folders)


def is_hidden(names: Sequence[str]) -> bool:
    """Say whether a name among these begins with a dot."""
    return any(name.startswith(".") for name in names)


def _flags() -> int:
    # NONBLOCK: opening a FIFO that took the file's place must not wait for a writer.
    return os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def _folder(folder: Path, names: Sequence[str]) -> int:
    """Open a folder below a folder, by its names."""
    descriptor = os.open(folder, _flags() | os.O_DIRECTORY)
    for name in names:
        above = descriptor
        try:
            descriptor = os.open(name, _flags() | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
        finally:
            os.close(above)
    return descriptor


def _opened(folder: Path, names: Sequence[str], hidden: bool, *, links: bool = True) -> int:
    if not names or len(names) > MAX_DEPTH or (not hidden and is_hidden(names)):
        raise NotServed
    above = _folder(folder, names[:-1])
    try:
        mode = os.stat(names[-1], dir_fd=above, follow_symlinks=False).st_mode
        if stat.S_ISREG(mode):
            return _regular(os.open(names[-1], _flags() | os.O_NOFOLLOW, dir_fd=above))
    finally:
        os.close(above)
    if links and stat.S_ISLNK(mode):
        return _opened(folder, _target(folder, names), hidden, links=False)
    raise NotServed


def _target(folder: Path, names: Sequence[str]) -> Names:
    """Where a link leads, as names below the folder."""
    root = os.path.realpath(folder)
    target = os.path.realpath(os.path.join(root, *names))
    if not is_below(target, root):
        raise NotServed
    return tuple(name for name in target[len(root) :].split(os.sep) if name)


def _regular(descriptor: int) -> int:
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise NotServed


def _listing(folder: Path, above: Names, hidden: bool) -> tuple[list[tuple[Names, os.stat_result]], list[Names]]:
    """Return the files and the folders of one folder."""
    files: list[tuple[Names, os.stat_result]] = []
    folders: list[Names] = []
    descriptor = _folder(folder, above)
    try:
        with os.scandir(descriptor) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                names = (*above, entry.name)
                if not hidden and is_hidden(names[-1:]):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.append(names)
                elif (status := _status(folder, names, entry, hidden)) is not None:
                    files.append((names, status))
    finally:
        os.close(descriptor)
    return files, folders


def _status(folder: Path, names: Names, entry: os.DirEntry[str], hidden: bool) -> os.stat_result | None:
    """What is known of a file; None of anything else."""
    try:
        if not entry.is_symlink():
            found = entry.stat(follow_symlinks=False)
            return found if stat.S_ISREG(found.st_mode) else None
        descriptor = open_below(folder, names, hidden=hidden)
    except (OSError, NotServed):
        return None
    try:
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)
