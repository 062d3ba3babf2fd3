"""Registrations that wait: functions whose annotations name a class that stands further down in the program.

They have their places in the lists already, and are made when the server is first needed, before anything is answered.
This file knows no function and no annotation, only what is to be tried again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class Later:
    """What waits, in the order of registration."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # evaluating an annotation may import what registers more
        self._items: list[Callable[[], object]] = []
        self._checks: list[Callable[[], object]] = []

    def add(self, build: Callable[[], object]) -> None:
        """Have something registered later, in the order of these calls; it raises if that does not work."""
        with self._lock:
            self._items.append(build)

    def check(self, check: Callable[[], object]) -> None:
        """Have something looked at once all items are there; it raises if it is wrong."""
        with self._lock:
            self._checks.append(check)

    def settle(self) -> None:
        """Do everything that waits. What raises goes on waiting, and so does what comes after it.

        Raises:
            SignatureError: A name is still not defined, or the annotation cannot be kept.
            ConfigError: Something else that was registered cannot work.
        """
        with self._lock:
            for waiting in (self._items, self._checks):
                while waiting:
                    waiting[0]()
                    del waiting[0]
