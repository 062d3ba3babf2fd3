"""One of several workers: how a process learns that it is one, where it answers, and that its supervisor has gone.

A worker is a fresh interpreter with the command line of its supervisor (`modelwire.server.http.supervisor`). It has
inherited one end of a pair of sockets, and finds its number in the environment. Through it come the listening sockets
and the key, which stand nowhere else; through it goes that clients are answered. Once the other end is closed, however
that came, the worker ends in order. Nothing is started here.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from typing import TYPE_CHECKING

import msgspec

from modelwire.errors import ConfigError
from modelwire.server.http.run import Bound, serve_bound
from modelwire.server.sealing import KeyRing
from modelwire.transports import forks

if TYPE_CHECKING:
    from modelwire.server.endpoints import Endpoint, ServeOptions
    from modelwire.server.server import Server

VARIABLE = "MODELWIRE_WORKER"
"""In the environment: the number of the descriptor, and the words that whoever is meant finds there."""
MOST_SOCKETS = 64
_SIZE = 1 << 16
PATIENCE = 45.0
"""Seconds that a worker has to end: more than all that it waits for may take together."""


class Hello(msgspec.Struct, frozen=True):
    """What a worker is told first.

    Attributes:
        endpoint: What its program was to serve.
        url: Where clients find it.
        key: What seals the states that any worker may have to open.
    """

    endpoint: str
    url: str
    key: str


class Place:
    """What a worker was given.

    Args:
        control: Its end of the pair.
        hello: What it was told.
        sockets: Those that listen.
    """

    def __init__(self, control: socket.socket, hello: Hello, sockets: list[socket.socket]) -> None:
        # A plain descriptor: it stays open to the end of the process, which is nothing to warn of.
        self._control = control.detach()
        os.set_inheritable(self._control, False)
        forks.keep_from_forks(self._control)
        self._hello = hello
        self._sockets = sockets

    def open(self, server: Server, endpoint: str, options: ServeOptions) -> Endpoint:
        """Return what is to be served, by the server's own keys or, where it has none, by that of all workers."""
        server.features.share_states(KeyRing([self._hello.key]))
        return serve_bound(server, endpoint, options, Bound(self._sockets, self._hello.url))

    def ready(self, name: str) -> None:
        """Tell that clients are answered.

        Args:
            name: The server's.
        """
        with contextlib.suppress(OSError):  # the supervisor has gone: `watch` sees to it
            os.write(self._control, name.encode()[: _SIZE // 2] + b"\n")

    def watch(self) -> None:
        """From now on end this process, in order, once the supervisor wants it or has gone."""
        threading.Thread(target=_end_with, args=(self._control,), name="modelwire-supervised", daemon=True).start()


def _end_with(control: int) -> None:
    # In a thread, so that it is noticed although a function holds the event loop.
    with contextlib.suppress(OSError):
        while os.read(control, _SIZE):
            pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(PATIENCE)
    os.kill(os.getpid(), signal.SIGKILL)


def is_worker() -> bool:
    """Whether this process was started as a worker, and has not taken its place yet."""
    control = _control()
    if control is None:
        return False
    control.detach()
    return True


def take_place(endpoint: str) -> Place | None:
    """Return what this process was given as a worker; None if it is none.

    Args:
        endpoint: What it has come to serve.

    Raises:
        ConfigError: It was to serve something else.
    """
    control = _control()
    if control is None:
        return None
    del os.environ[VARIABLE]  # what this process starts is no worker
    told, fds, _, _ = socket.recv_fds(control, _SIZE, MOST_SOCKETS)
    hello = msgspec.json.decode(told.partition(b"\n")[2], type=Hello)
    for fd in fds:
        os.set_inheritable(fd, False)
    if endpoint != hello.endpoint:
        control.close()
        for fd in fds:
            os.close(fd)
        raise ConfigError(
            f"each worker is this program, started again; this one was to serve {hello.endpoint} and has come to serve "
            f"{endpoint}: a program with workers= serves at one address"
        )
    return Place(control, hello, [socket.socket(fileno=fd) for fd in fds])


def _control() -> socket.socket | None:
    """Return our end of the pair.

    The variable alone says nothing: programs that a worker starts inherit it, and a descriptor of that number may be
    anything there. So what waits to be read is looked at.
    """
    number, _, words = os.environ.get(VARIABLE, "").partition(":")
    try:
        control = socket.socket(fileno=int(number))
    except (ValueError, OSError):
        return None
    try:
        if words and control.recv(len(words), socket.MSG_PEEK | socket.MSG_DONTWAIT) == words.encode():
            return control
    except OSError:
        pass
    control.detach()
    return None
