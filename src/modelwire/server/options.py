"""What can be said of a tool, a resource or a prompt when it is registered, by keyword: one list for each.

`Server.tool`, `Server.add_tool` and their like take these; what each means stands there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypedDict

from modelwire.protocol import types as t
from modelwire.server.context import Context
from modelwire.server.names import did_you_mean

Enabled: TypeAlias = bool | Callable[[Context], bool] | Callable[[], bool]
"""Whether something is there: always, not before it is enabled, or as a function decides for each request."""


class Options(TypedDict, total=False):
    """Of everything."""

    name: str | None
    title: str | None
    description: str | None
    icons: Sequence[t.Icon] | None
    meta: dict[str, Any] | None
    tags: Iterable[str]
    enabled: Enabled
    timeout: float | None
    inline: bool


class ToolOptions(Options, total=False):
    """Of a tool."""

    annotations: t.ToolAnnotations | None
    structured: bool | None
    text: bool
    replay: bool
    input_schema: dict[str, Any] | None
    output_schema: dict[str, Any] | None


class ResourceOptions(Options, total=False):
    """Of a resource, or of a family of them."""

    annotations: t.Annotations | None
    mime_type: str | None
    size: int | None
    ttl: float | None
    shared: bool


class PromptOptions(Options, total=False):
    """Of a prompt."""


def refuse_unknown(method: str, options: Mapping[str, Any], known: type[Any]) -> None:
    """Refuse what Python would have refused, had the keywords been written out.

    Args:
        method: What was called.
        options: What it was given.
        known: The list of what it takes.

    Raises:
        TypeError: Something else is in it.
    """
    names = known.__annotations__
    for name in options:
        if name not in names:
            raise TypeError(f"{method}() got an unexpected keyword argument {name!r}{did_you_mean(name, names)}")
