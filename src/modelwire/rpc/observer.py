"""Who may watch a connection: every frame, a child's stderr, its exit.

The wire view, captures and taps are observers. An observer only watches: it never changes a frame, and an
exception that it raises is logged and goes no further.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from modelwire.rpc.callbacks import guarded
from modelwire.rules.settings import several

Direction = Literal["in", "out"]
"""Seen from the program that watches: ``in`` was received, ``out`` was sent."""


class Observer:
    """Base class of everything that watches connections. Override what you need."""

    def connection(self, number: int, peer: str) -> Observer:
        """A connection begins; return who watches it. By default this one does, and cannot tell connections apart.

        Over HTTP a session is a connection, whichever requests bring its messages; in 2026-07-28, and where a server
        keeps nothing, each request with its answer is one, since it stands alone.

        Args:
            number: Counts the connections of the client, or of the server, from 1.
            peer: Who is at the other end, for people.
        """
        return self

    def frame(self, direction: Direction, frame: bytes) -> None:
        """One JSON-RPC message crossed the connection, before it is handled or just before it is sent."""

    def stderr(self, chunk: bytes) -> None:
        """The child process wrote to its stderr."""

    def exited(self, exit_code: int) -> None:
        """The child process ended."""


def checked(given: Any) -> Sequence[Observer]:
    """Return what was given as ``observers=``.

    Raises:
        ConfigError: It is no list of observers.
    """
    return several(given, "observers", Observer, "a list of instances of Observer, such as [Watch()]")


def watchers(observers: Sequence[Observer], number: int, peer: str) -> list[Observer]:
    """Return who watches a connection that begins; see `Observer.connection`."""
    found: list[Observer] = []
    for observer in observers:
        own = guarded(f"the observer {type(observer).__name__}", lambda: observer.connection(number, peer))  # noqa: B023
        found.append(own or observer)
    return found


def tell_frame(observers: Sequence[Observer], direction: Direction, frame: bytes) -> None:
    """Tell every observer of a message."""
    if observers:
        tell(observers, lambda observer: observer.frame(direction, frame))


def tell(observers: Sequence[Observer], what: Callable[[Observer], None]) -> None:
    """Tell every observer; one that fails is logged and costs the others nothing."""
    for observer in observers:
        guarded(f"the observer {type(observer).__name__}", lambda: what(observer))  # noqa: B023 - called at once
