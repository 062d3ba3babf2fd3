"""What a handler says by failing, also where a task group has wrapped it. Nothing here answers or logs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from modelwire.errors import PeerError, RpcError, ToolError


def spoken(error: BaseException) -> BaseException:
    """Return the error that is to be answered with: the first of a group in which all are meant for the client.

    A ``TaskGroup`` wraps even a single error, such as that the user declined one of several questions.

    Args:
        error: What the handler has failed with.
    """
    if not isinstance(error, BaseExceptionGroup):
        return error
    errors = list(_leaves(cast("BaseExceptionGroup[Any]", error)))
    meant = all(isinstance(one, ToolError | RpcError) and not isinstance(one, PeerError) for one in errors)
    return errors[0] if meant else cast("BaseException", error)


def _leaves(group: BaseExceptionGroup[Any]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(cast("BaseExceptionGroup[Any]", error))
        else:
            yield error
