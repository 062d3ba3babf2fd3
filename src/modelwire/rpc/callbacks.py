"""Calls functions of the user's that only listen: what they raise is logged, and harms nobody.

For callbacks that are called from the loop that reads frames. Handlers of requests are not called here: what they raise
becomes an answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from modelwire.log import log as _log

T = TypeVar("T")


def guarded(what: str, call: Callable[[], T]) -> T | None:
    """Call a function; log what it raises, and return None then.

    That includes SystemExit and a CancelledError that is not ours (such as that of somebody's cancelled future): either
    would end the reading of frames without a word. Only Ctrl-C passes.

    Args:
        what: What is called, for the log.
        call: The function.
    """
    try:
        return call()
    except KeyboardInterrupt:
        raise
    except BaseException:
        _log.exception("%s failed", what)
        return None
