"""``headers=``: what a client adds to its HTTP requests.

No message of this shows a value: values are where the secrets are.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias, cast

from modelwire.errors import ConfigError, ConnectionFailed, ModelwireError

Headers: TypeAlias = Mapping[str, str] | Callable[[], Mapping[str, str] | Awaitable[Mapping[str, str]]]

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*\Z")
_OURS = frozenset({"connection", "content-length", "host", "transfer-encoding", "upgrade"})
_FORM = "headers= is a dict of headers, such as {'Authorization': 'Bearer ...'}, or a function that returns one"


class SentHeaders:
    """The headers, however they were given.

    Args:
        given: What was given; None for none.
        more: Others, which these come before.

    Raises:
        ConfigError: They cannot be headers.
    """

    def __init__(self, given: Any, more: Mapping[str, str] | None = None) -> None:
        self._more = _checked(more or {})
        self._function = given if callable(given) else None
        self._fixed = {} if given is None or callable(given) else _checked(given)

    def __bool__(self) -> bool:
        return bool(self._function or self._fixed or self._more)

    @property
    def fixed(self) -> dict[str, str] | None:
        """What they are; None where a function says so, each time."""
        return {**self._more, **self._fixed} if self._function is None else None

    async def now(self) -> dict[str, str]:
        """Return them as they are at this moment.

        Raises:
            ConnectionFailed: The function that says them failed.
            ConfigError: It says something that cannot be headers.
        """
        if self._function is None:
            return {**self._more, **self._fixed}
        try:
            found = self._function()
            found = await found if inspect.isawaitable(found) else found
        except ModelwireError:
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise ConnectionFailed("the function of headers= was cancelled, or what it waits for") from error
        except Exception as error:
            raise ConnectionFailed(f"the function of headers= failed: {error!r}") from error
        return {**self._more, **_checked(found)}


def _checked(given: Any) -> dict[str, str]:
    if not isinstance(given, Mapping):
        raise ConfigError(f"{_FORM}, not {type(given).__name__}")
    for name, value in cast("Mapping[Any, Any]", given).items():
        if not isinstance(name, str) or not _NAME.match(name):
            raise ConfigError(f"{_FORM}; {name!r} can be no name of one")
        if name.lower() in _OURS or name.lower().startswith("sec-websocket-"):
            raise ConfigError(f"headers=: {name} is the connection's own, and cannot be given")
        if not isinstance(value, str) or not _VALUE.match(value):
            raise ConfigError(f"headers=: the value of {name} is no string that a header can have")
    return dict(cast("Mapping[str, str]", given))
