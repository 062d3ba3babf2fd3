"""Roots on the client's side: what people give for them, as the protocol has it.

No directory is looked at: a root that does not exist is the user's to name.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias, cast
from urllib.parse import urlsplit

from modelwire.errors import ConfigError
from modelwire.protocol import types as t

RootValue: TypeAlias = str | os.PathLike[str] | t.Root
RootValues: TypeAlias = RootValue | Iterable[RootValue]
Roots: TypeAlias = RootValues | Callable[[], RootValues | Awaitable[RootValues]]
"""A path, a ``file://`` URI or a `Root`; several of them; or a function that returns such, which may be async."""


async def listed(roots: Roots) -> t.ListRootsResult:
    """Return the roots of this moment.

    Raises:
        ConfigError: One of them is no root.
    """
    found: Any = roots() if callable(roots) else roots
    return t.ListRootsResult(root_list(await found if inspect.isawaitable(found) else found))


def root_list(values: Any) -> list[t.Root]:
    """Return what people gave as roots.

    Raises:
        ConfigError: One of them is none.
    """
    if isinstance(values, str | os.PathLike | t.Root):
        values = [values]
    if not isinstance(values, Iterable):
        raise ConfigError(f"roots are paths, file:// URIs or types.Root, or a function that returns them: {values!r}")
    return [_root(value) for value in cast("Iterable[Any]", values)]


def _root(value: Any) -> t.Root:
    if isinstance(value, t.Root):
        root = value
    elif isinstance(value, os.PathLike) or (isinstance(value, str) and "://" not in value):
        path = Path(cast(str, value)).expanduser().absolute()
        root = t.Root(path.as_uri(), name=path.name or None)
    elif isinstance(value, str):
        root = t.Root(value)
    else:
        raise ConfigError(f"a root is a path, a file:// URI or a types.Root, not {value!r}")
    if urlsplit(root.uri).scheme != "file":
        # "This MUST be a file:// URI in the current specification." (client/roots)
        raise ConfigError(f"a root must be a file:// URI, not {root.uri!r}")
    return root
