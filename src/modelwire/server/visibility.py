"""For whom an item is there: its tags, whether it is switched on, and the function that decides for each request.

To a peer that an item is not there for, it is as one that was never registered. This file decides about one item;
`modelwire.server.registry` keeps them, `modelwire.server.switches` finds what is to be switched.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, cast

from modelwire.errors import ConfigError, SignatureError
from modelwire.rpc.call import Call
from modelwire.rpc.callbacks import guarded
from modelwire.server.context import Context
from modelwire.server.functions import positional_count
from modelwire.server.signature import called


class Guard:
    """Decides, for each request, whether an item is there.

    Args:
        function: Called with the context, or with nothing. Quick: it runs on the event loop, at each list, too.
        what: The item, for messages.

    Raises:
        ConfigError: The function is asynchronous, or wants something else.
    """

    __slots__ = ("_takes", "_what", "function")

    def __init__(self, function: Callable[..., Any], what: str) -> None:
        inner = called(function)
        for kind in (inspect.iscoroutinefunction, inspect.isasyncgenfunction, inspect.isgeneratorfunction):
            if kind(inner):
                raise ConfigError(f"{what}: enabled= is asked while a list is made, and cannot wait; use a plain `def`")
        self.function = function
        self._what = what
        try:
            self._takes = positional_count(function, 1)
        except SignatureError as error:
            raise ConfigError(f"{what}: enabled= is called with the context alone: {error}") from None

    def allows(self, call: Call) -> bool:
        """Whether the item is there for whoever makes this call; not if the function fails, which the log is told."""
        given = (Context(call),)[: self._takes]

        def decide() -> bool:
            answer = self.function(*given)
            if inspect.isawaitable(answer):
                if inspect.iscoroutine(answer):
                    answer.close()
                raise TypeError("it returned something to await")
            return bool(answer)

        return guarded(f"enabled= of {self._what}, which is hidden therefore,", decide) is True


@dataclass(frozen=True, slots=True)
class Visibility:
    """For whom an item is there.

    Args:
        on: It is switched on.
        guard: Decides for each request; None for everybody.
        tags: By which it can be switched.
    """

    on: bool = True
    guard: Guard | None = None
    tags: frozenset[str] = frozenset()


def visibility(what: str, enabled: Any, tags: Iterable[str]) -> Visibility:
    """Return what was asked for at registration.

    Args:
        what: The item, for messages.
        enabled: True, False, or a function.
        tags: Any words.

    Raises:
        ConfigError: These are other things.
    """
    words = tag_set(tags, what)
    if isinstance(enabled, bool):
        return Visibility(enabled, None, words)
    if not callable(enabled):
        raise ConfigError(f"{what}: enabled= is True, False or a function of the context, not {enabled!r}")
    return Visibility(True, Guard(enabled, what), words)


def tag_set(tags: Any, what: str) -> frozenset[str]:
    """Return tags as a set.

    Raises:
        ConfigError: They are one string, or hold something else.
    """
    if isinstance(tags, str) or not isinstance(tags, Iterable):
        raise ConfigError(f"{what}: tags= is a set of strings, such as {{'admin'}}, not {tags!r}")
    words = frozenset(cast("Iterable[Any]", tags))
    if not all(isinstance(word, str) for word in words):
        raise ConfigError(f"{what}: tags are strings, not {sorted(map(repr, words))}")
    return words
