"""The file of a Unix socket: private from its first moment, never in the way of a live one, gone at the end.

A socket that is bound at its path is open to whoever the process's umask lets in until its mode is changed, and looks
abandoned until it listens. So it is made in a folder of its own that nobody else can enter, and appears at its path
when all is done. Nothing is accepted here.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
import tempfile

from modelwire.errors import ConnectionFailed
from modelwire.transports.socket_address import MAX_PATH, UnixAddress

MODE = 0o600
"""Who may connect: the user who started the server."""
_ATTEMPTS = 10
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP)

_REASONS = {
    errno.ENOENT: "its folder does not exist; make it first",
    errno.ENOTDIR: "its folder does not exist; make it first",
    errno.EACCES: "permission denied: its folder must be one that you can write to",
    errno.EPERM: "permission denied: its folder must be one that you can write to",
    errno.EROFS: "its folder cannot be written to",
}


class SocketFile:
    """The file under which a socket of ours listens.

    Args:
        path: Where it is.
        identity: Its device and inode. No other file gets these for as long as the socket is open.
    """

    def __init__(self, path: str, identity: tuple[int, int]) -> None:
        self._path = path
        self._identity = identity

    def remove(self) -> None:
        """Remove it, once and before the socket is closed, unless somebody has put another in its place."""
        with contextlib.suppress(OSError):
            if _identity(os.lstat(self._path)) == self._identity:
                os.unlink(self._path)


def listen_unix(address: UnixAddress, backlog: int) -> tuple[socket.socket, SocketFile]:
    """Return a socket that listens at a path, and its file. A file that a dead server has left there is replaced.

    Args:
        address: The path.
        backlog: How many connections may wait to be accepted.

    Raises:
        ConnectionFailed: Somebody listens there, something else is there, or it cannot be made there.
    """
    path = address.path
    try:
        with _private_folder(os.path.dirname(path)) as private:
            inner = os.path.join(private, "s")
            if len(os.fsencode(inner)) > MAX_PATH:
                raise _failed(path, "the path of its folder is too long; choose a shorter one")
            listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                listening.bind(inner)
                os.chmod(inner, MODE)
                listening.listen(backlog)
                file = SocketFile(path, _identity(os.lstat(inner)))
                _place(inner, path, private)
                return listening, file
            except BaseException:
                listening.close()
                raise
    except OSError as error:
        raise _failed(path, _REASONS.get(error.errno or 0) or os.strerror(error.errno or 0)) from None


def _private_folder(folder: str) -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix=".", dir=folder, ignore_cleanup_errors=True)


def _place(inner: str, path: str, private: str) -> None:
    for _ in range(_ATTEMPTS):
        try:
            _appear(inner, path)
            return
        except FileExistsError:
            _clear(path, private)
    raise _failed(path, "others keep making it")


def _appear(inner: str, path: str) -> None:
    """Let a socket appear at its path, all at once; a link, unlike a renamed file, never replaces what is there.

    Raises:
        FileExistsError: Something is there.
    """
    try:
        os.link(inner, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(path):  # the next best where a file system has no links, or none to sockets
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
        os.rename(inner, path)


def _clear(path: str, private: str) -> None:
    """Remove the socket that a dead server has left.

    Raises:
        ConnectionFailed: It is alive, or it is no socket.
    """
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise _failed(path, "a file that is no socket is there; it was left alone. Choose another path")
    if _is_alive(path):
        raise _failed(path, "another server listens there; end it, or choose another path")
    # Another server may do the same at this moment, and have put its own there by now: take it away, and then look.
    taken = os.path.join(private, "taken")
    os.rename(path, taken)
    if _identity(os.lstat(taken)) != _identity(found):
        with contextlib.suppress(FileExistsError):
            _appear(taken, path)
        raise _failed(path, "another server has just begun to listen there; end it, or choose another path")
    os.unlink(taken)


def _is_alive(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:  # its queue is full, or it is not for us to know
            return True
    return True


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _failed(path: str, why: str) -> ConnectionFailed:
    return ConnectionFailed(f"cannot listen on unix://{path}: {why}")
