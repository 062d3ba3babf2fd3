"""What has arrived on a connection that answers nothing, and what its peer does wrong, for whoever wonders why.

Nothing is answered or refused here.
"""

from __future__ import annotations

import logging
from typing import Any

from modelwire.log import log as _log
from modelwire.log import on_one_line
from modelwire.rpc.bounds import HEARD, NAME


class Noticing:
    """The part of `modelwire.rpc.connection.Connection` that remembers this."""

    __slots__ = ("_complained", "_dropped", "dropped_count", "heard", "heard_count")

    def __init__(self) -> None:
        self.heard: list[str] = []
        """The names of the last notifications."""
        self.heard_count = 0
        self.dropped_count = 0
        self._dropped = ""
        self._complained: set[str] | None = None

    def hear(self, method: str) -> None:
        """Note a notification."""
        if len(self.heard) >= HEARD:
            del self.heard[0]
        self.heard.append(method[:NAME])
        self.heard_count += 1

    def drop(self, what: str) -> None:
        """Note a message that could not be read."""
        self.dropped_count += 1
        self._dropped = what

    def noticed(self, heard: int = 0, dropped: int = 0) -> list[str]:
        """Say what has arrived that answers nothing, one clause each.

        Args:
            heard: How many notifications had come before.
            dropped: How many unreadable messages had come before.
        """
        clauses: list[str] = []
        count = self.heard_count - heard
        if count:
            names = sorted(set(self.heard[-count:]))
            clauses.append(f"{count} notification{'s' if count > 1 else ''} ({', '.join(names)})")
        count = self.dropped_count - dropped
        if count:
            clauses.append(f"{count} unreadable message{'s' if count > 1 else ''}, the last one {self._dropped}")
        return clauses

    def overheard(self, method: str) -> None:
        """Complain of a notification that no callback is told of, because too many of them still run."""
        self.complain("a %s was not handed on: too many callbacks for earlier notifications still run", method)

    def complain(self, text: str, *details: Any) -> None:
        """Warn of what the peer does wrong, once for each kind: a peer that floods us must not flood the log.

        What it says is shown on one line, whatever is in it, so that it cannot write lines of its own.
        """
        if self._complained is None:
            self._complained = set()
        first = text not in self._complained
        self._complained.add(text)
        more = "; more of this kind is logged for debugging only" if first else ""
        _log.log(logging.WARNING if first else logging.DEBUG, text + more, *map(on_one_line, details))
