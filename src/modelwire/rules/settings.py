"""Settings that are not what they should be: told when something is made, by the setting's name, in words that help.

Checks only; what a setting does is the business of whoever takes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

from modelwire.errors import ConfigError

T = TypeVar("T")


def text(given: Any, setting: str) -> Any:
    """Return a setting that is a string or None."""
    if given is not None and not isinstance(given, str):
        raise ConfigError(f"{setting}= is a string, not {given!r}")
    return given


def named(given: Any, setting: str) -> Any:
    """Return a setting that is a string and not empty."""
    if not isinstance(given, str) or not given:
        raise ConfigError(f"{setting}= is a string, not {given!r}")
    return given


def whole(given: Any, setting: str, least: int = 1) -> Any:
    """Return a setting that is a whole number."""
    if type(given) is not int or given < least:
        raise ConfigError(f"{setting}= is a whole number from {least} on, not {given!r}")
    return given


def function(given: Any, setting: str, called_with: str) -> Any:
    """Return a setting that is a function or None.

    Args:
        given: The setting.
        setting: Its name.
        called_with: What it is called with, for the message.
    """
    if given is not None and not callable(given):
        raise ConfigError(f"{setting}= is a function that is called with {called_with}, not {given!r}")
    return given


def several(given: Any, setting: str, kind: type[T], what: str) -> Sequence[T]:
    """Return a setting that is a list, or something else that can be gone through, but no string.

    Args:
        given: The setting.
        setting: Its name.
        kind: What each item is an instance of.
        what: The setting in words, with an example.
    """
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise ConfigError(f"{setting}= is {what}, not {given!r}")
    items = list(cast("Iterable[Any]", given))
    wrong = next((item for item in items if not isinstance(item, kind)), None)
    if wrong is not None:
        raise ConfigError(f"{setting}= is {what}; {wrong!r} in it is none")
    return items


def table(given: Any, setting: str, what: str, check: Callable[[Any, Any], bool] | None = None) -> Any:
    """Return a setting that is a mapping or None.

    Args:
        given: The setting.
        setting: Its name.
        what: The setting in words, with an example.
        check: Called with key and value, says whether they can be right.
    """
    if given is not None and not isinstance(given, Mapping):
        raise ConfigError(f"{setting}= is {what}, not {given!r}")
    if given and check is not None:
        for key, value in cast("Mapping[Any, Any]", given).items():
            if not check(key, value):
                raise ConfigError(f"{setting}= is {what}; {key!r}: {value!r} cannot be in it")
    return cast("Any", given)
