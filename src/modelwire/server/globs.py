"""Patterns of paths, such as ``**/*.md``. Pure text; the file system is not asked."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence

from modelwire.errors import ConfigError


class Glob:
    """A pattern that a path below a folder fits or does not.

    Args:
        pattern: Names with ``/`` between them. ``*``, ``?`` and ``[...]`` stand for characters of one name, a name
            ``**`` for any number of folders. Upper and lower case differ.

    Attributes:
        depth: How many names a path that fits may have; None for any number.

    Raises:
        ConfigError: It could fit nothing.
    """

    __slots__ = ("_parts", "depth", "pattern")

    def __init__(self, pattern: str) -> None:
        names = pattern.split("/")
        if any(name in ("", ".", "..") for name in names):
            raise ConfigError(
                f"the pattern {pattern!r} fits no file: it is relative to the directory, without '.' and '..', "
                "such as '**/*.md'"
            )
        self.pattern = pattern
        self.depth = None if "**" in names else len(names)
        self._parts = [None if name == "**" else re.compile(fnmatch.translate(name)).match for name in names]

    def matches(self, names: Sequence[str]) -> bool:
        """Say whether a path, given as its names, fits."""
        part = name = after = 0
        wild: int | None = None
        while name < len(names):
            fits = None if part == len(self._parts) else self._parts[part]
            if part < len(self._parts) and fits is None:
                wild, after = part, name
                part += 1
            elif fits is not None and fits(names[name]):
                part, name = part + 1, name + 1
            elif wild is not None:  # let the last ** take one more folder
                after += 1
                part, name = wild + 1, after
            else:
                return False
        return all(rest is None for rest in self._parts[part:])
