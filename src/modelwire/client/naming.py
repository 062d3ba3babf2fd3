"""Names for the tools and prompts of several servers: which is called what, and which name stands for what.

Pure: it asks no server anything. "Clients or proxies that aggregate tools from multiple servers [...] SHOULD implement
a disambiguation strategy such as prefixing tool names with a server identifier" (2026-07-28, server/tools, Tool Names).
The APIs of models take less than the protocol does: 64 characters of ``[A-Za-z0-9_-]``. Names are made to fit that.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

from modelwire.errors import ConfigError

MAX_NAME = 64
"""How long a name may be."""
MAX_LABEL = 32
"""How much of it the server may take."""

Prefix: TypeAlias = str | Literal[False] | Callable[[str, str], str]
"""A separator; or False for no prefix; or what makes the name of a server's and a tool's."""

_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
_SEPARATOR = re.compile(r"[_-]{1,8}")
_DIGEST = 8
_DIGESTED = re.compile(r"_[0-9a-f]{8}\Z")


def fitted(name: str, of: str) -> str:
    """Return a name as model APIs take it.

    A name that fits stays as it is. Any other loses what does not fit and ends in a digest of what it was made of, so
    that it depends on nothing else: not on the order of servers, nor on what else there is.

    Args:
        name: The name.
        of: What it was made of.
    """
    plain = _FOREIGN.sub("_", name)
    if plain == name and 0 < len(name) <= MAX_NAME:
        return name
    return f"{plain[: MAX_NAME - _DIGEST - 1]}_{_digest(of)}"


def _digest(of: str) -> str:
    return hashlib.sha256(of.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]


class Names:
    """What the tools, or the prompts, of the servers of a group are called.

    Args:
        prefix: See `Prefix`.

    Raises:
        ConfigError: The separator cannot be part of a name.
    """

    def __init__(self, prefix: Prefix) -> None:
        self._separator = None if prefix is False or callable(prefix) else _separator(prefix)
        self._made = prefix if callable(prefix) else None
        self._starts: dict[str, str] = {}
        """By server: what its names begin with, the separator included."""
        self._listed: dict[str, dict[str, str]] = {}
        """By server: its own names by the names they go by."""

    def add(self, server: str) -> None:
        """Take in a server; the order in which they come decides between names that are equal."""
        self._listed[server] = {}
        if self._separator is not None:
            self._starts[server] = self._label(server, self._separator) + self._separator

    def remove(self, server: str) -> None:
        """Forget a server."""
        self._listed.pop(server, None)
        self._starts.pop(server, None)

    def name(self, server: str, own: str) -> str:
        """Return what a server's tool is called.

        Raises:
            ConfigError: The function given as prefix returned no string.
        """
        if self._made is None:
            return fitted(self._starts.get(server, "") + own, f"{server}\n{own}")
        made: Any = self._made(server, own)
        if not isinstance(made, str):
            raise ConfigError(f"prefix= must return a name, not {made!r}")
        return fitted(made, f"{server}\n{own}")

    def listed(self, server: str, owns: Sequence[str]) -> None:
        """Note all that a server has."""
        if server in self._listed:
            self._listed[server] = {self.name(server, own): own for own in reversed(owns)}

    def find(self, name: str) -> tuple[str, str] | None:
        """Return the server and the own name that a name was listed for."""
        return next(((server, names[name]) for server, names in self._listed.items() if name in names), None)

    def spelt(self, name: str) -> tuple[str, str] | None:
        """Return the server and the own name that a name says by itself; None when it does not."""
        # What a name begins with never holds the separator before its end, so that no two servers can be meant.
        return next(
            ((server, name.removeprefix(start)) for server, start in self._starts.items() if name.startswith(start)),
            None,
        )

    def says_itself(self, name: str) -> bool:
        """Whether `spelt` is right about a name that was never listed: it needed no change to fit."""
        return self._separator is not None and _DIGESTED.search(name) is None

    def nearest(self, name: str) -> str | None:
        """Return the name that somebody who wrote this one may have meant."""
        import difflib

        known = [known for names in self._listed.values() for known in names]
        starts = [f"{start}..." for start in self._starts.values()]
        near = difflib.get_close_matches(name, known, n=1) or difflib.get_close_matches(name, starts, n=1, cutoff=0.5)
        return near[0] if near else None

    def _label(self, server: str, separator: str) -> str:
        """Return what stands for a server: as like its name as can be, and told from the rest of any name."""
        plain = _FOREIGN.sub("_", server)
        other = "-" if separator == "_" else "_"
        while separator in plain:
            plain = plain.replace(separator, other)
        plain = plain.strip("_-")
        if plain and len(plain) <= MAX_LABEL and plain + separator not in self._starts.values():
            return plain
        digest = _digest(server)
        return f"{plain[: MAX_LABEL - _DIGEST - 1].rstrip('_-')}{other}{digest}" if plain else digest


def _separator(given: Any) -> str:
    if not isinstance(given, str) or not _SEPARATOR.fullmatch(given):
        raise ConfigError(
            "prefix= is a separator of '_' and '-', such as '__', or False, or a function of a server's and a tool's "
            f"name; not {given!r}"
        )
    return given
