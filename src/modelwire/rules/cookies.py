"""Cookies, as far as one client of one server needs them: what a load balancer sets to find its server again.

All requests go to one origin, so that neither domain nor path decides anything. Nothing is kept longer than the client.
"""

from __future__ import annotations

import re

MOST = 50
"""How many are kept (RFC 6265, 6.1)."""
LONGEST = 4096

_TEXT = re.compile(r"[\t\x20-\x3a\x3c-\x7e\x80-\xff]*\Z")
_AGE = re.compile(r"-?[0-9]{1,12}\Z")


class Cookies:
    """The cookies of one client."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[str, float | None]] = {}
        """Values, each with when it is to be forgotten."""

    def take(self, header: str, now: float) -> None:
        """Take a ``Set-Cookie`` header.

        Args:
            header: The header.
            now: The time, in seconds on a clock that never goes back.
        """
        pair, *attributes = header.split(";")
        name, equals, value = pair.partition("=")
        name, value = name.strip(), value.strip()
        if not equals or not name or len(pair) > LONGEST or not _TEXT.match(pair):
            return
        age = _age(attributes)
        self.found.pop(name, None)
        if age is None or age > 0:
            self.found[name] = (value, None if age is None else now + age)
            while len(self.found) > MOST:
                del self.found[next(iter(self.found))]

    def header(self, now: float) -> str:
        """Return the value of ``Cookie``; empty for none."""
        for name, (_, until) in list(self.found.items()):
            if until is not None and until <= now:
                del self.found[name]
        return "; ".join(f"{name}={value}" for name, (value, _) in self.found.items())


def _age(attributes: list[str]) -> int | None:
    """Return the seconds that a cookie is to be kept; None for as long as the client lasts.

    A date in ``Expires`` says the same by another clock. Servers use it to take a cookie back, with a date long ago.
    """
    found: int | None = None
    for attribute in attributes:
        name, _, value = attribute.partition("=")
        name, value = name.strip().lower(), value.strip()
        if name == "max-age" and _AGE.match(value):
            return int(value)
        if name == "expires" and "1970" in value:
            found = 0
    return found
