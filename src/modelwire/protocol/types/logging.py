"""Log messages that a server sends to its client."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias, get_args

from modelwire.protocol.types.base import NotificationParams, RequestParams

LoggingLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]

LOGGING_LEVELS: Final[tuple[LoggingLevel, ...]] = get_args(LoggingLevel)
"""Every level, the least severe first (RFC 5424)."""


class SetLevelRequestParams(RequestParams):
    """The parameters of ``logging/setLevel``."""

    level: LoggingLevel


class LoggingMessageNotificationParams(NotificationParams):
    """The parameters of ``notifications/message``."""

    level: LoggingLevel
    data: Any
    logger: str | None = None
