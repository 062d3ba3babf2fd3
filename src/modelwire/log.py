"""The library's logger, which never raises.

The standard library guards against handlers that fail, but not against filters and loggers of the user's own. What is
logged is logged on the way to an answer, and the answer must not be lost because of it. Nothing is configured here.
"""

from __future__ import annotations

import logging
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
