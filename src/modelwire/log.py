"""The library's logger, which never raises.

The standard library guards against handlers that fail, but not against filters and loggers of the user's own. What is
logged is logged on the way to an answer, and the answer must not be lost because of it. Nothing is configured here.
"""

from __future__ import annotations

import logging
import re
from collections.abc import MutableMapping
from typing import Any


class _Guarded(logging.LoggerAdapter[logging.Logger]):
    """Hands on to the logger "modelwire"; what goes wrong there goes no further."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        return msg, kwargs

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        try:
            super().log(level, msg, *args, **kwargs)
        except Exception:
            return


log = _Guarded(logging.getLogger("modelwire"))
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def on_one_line(value: Any) -> Any:
    """Return what a peer has said as a log may have it: no text of somebody else's writes lines of its own."""
    return _CONTROLS.sub(lambda found: repr(found[0])[1:-1], value) if isinstance(value, str) else value
