"""What servers tell unasked: handed on to the callbacks and to whoever listens. Sends nothing.

One listener or callback that fails is logged, and costs the others nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import msgspec
from msgspec import UNSET, Raw

from modelwire.errors import ConnectionLost
from modelwire.log import log as _log
from modelwire.protocol import types as t
from modelwire.protocol import wire
from modelwire.protocol.jsonrpc import Notification
from modelwire.rpc.callbacks import guarded
from modelwire.rpc.connection import Connection
from modelwire.rules.settings import function

if TYPE_CHECKING:
    from modelwire.client.listening import Listening

OnLog: TypeAlias = Callable[[t.LoggingMessageNotificationParams], Any]
OnNotification: TypeAlias = Callable[[str, dict[str, Any]], Any]
OnReconnect: TypeAlias = Callable[[ConnectionLost], Any]


HINTS: dict[str, str] = {"tools/list": "tools", "resources/list": "resources", "notifications/root": "resources"}
"""Notifications that are in no revision, and the list that they say has changed. Their params are not trusted."""


class Hearing:
    """Takes in the notifications of one client.

    Args:
        on_log: Called with each log message.
        on_notification: Called with method and params of each notification.
        on_reconnect: Called when a lost connection is back, with the reason why it was lost.

    Raises:
        ConfigError: One of them is no function.
    """

    def __init__(
        self, on_log: OnLog | None, on_notification: OnNotification | None, on_reconnect: OnReconnect | None = None
    ) -> None:
        function(on_log, "on_log", "each log message")
        function(on_reconnect, "on_reconnect", "the ConnectionLost that was the reason")
        function(on_notification, "on_notification", "method and params of each notification")
        self._on_log = on_log
        self._on_reconnect = on_reconnect
        self._on_notification = on_notification
        self.listenings: set[Listening] = set()
        self.on_hint: Callable[[str], Awaitable[None] | None] | None = None
        """Called with "tools" or "resources" when a server announces a list in a way that only tutorials teach."""
        self.on_news: Callable[[str, Raw], None] = lambda method, params: None
        """Called with method and params of each notification, before anybody else, who may act on it."""
        self.on_missed: Callable[[], object] = lambda: None
        """Called before a `Missed` is handed out: there may have been news that nobody has heard."""
        self.on_complete: Callable[[str], None] | None = None
        """Called with the id of each elicitation that the server says is complete (2025-11-25)."""
        self.subscribed: set[str] = set()
        """The URIs that the user subscribed to by hand; no `Listening` takes them back."""

    @property
    def awaited(self) -> bool:
        """Whether somebody waits for news, which come unasked."""
        return bool(self.listenings or self.subscribed)

    def hear(self, connection: Connection, notification: Notification) -> None:
        """Hand a notification on."""
        params = Raw(b"{}") if notification.params is UNSET else notification.params
        self.on_news(notification.method, params)
        hinted = HINTS.get(notification.method)
        if hinted is not None and self.on_hint is not None:
            _tell(connection, self.on_hint(hinted))
        for listening in list(self.listenings):
            _guarded(notification.method, lambda listening=listening: listening.hear(notification.method, params))
        if notification.method == "notifications/elicitation/complete" and self.on_complete is not None:
            _guarded(notification.method, lambda: self._hear_complete(params))
        if connection.callbacks.full:
            if self._on_log is not None or self._on_notification is not None:
                connection.overheard(notification.method)
            return
        if notification.method == "notifications/message" and self._on_log is not None:
            _guarded(notification.method, lambda: self._hear_log(connection, params))
        if self._on_notification is not None:
            _guarded(notification.method, lambda: self._hear_any(connection, notification.method, params))

    def close(self) -> None:
        """End every listening, in order: the client closes."""
        for listening in list(self.listenings):
            listening.finish(None)
        self.listenings.clear()
        self.subscribed.clear()

    def gap(self) -> None:
        """Tell every listening that something may have been told that nobody heard."""
        self.on_missed()
        for listening in list(self.listenings):
            listening.missed()

    def lost(self, why: Exception) -> None:
        """End every listening: nothing more will come."""
        for listening in list(self.listenings):
            listening.finish(why)

    def reconnected(self, connection: Connection, why: ConnectionLost) -> None:
        """Say that a lost connection is back."""
        on_reconnect = self._on_reconnect
        if on_reconnect is not None:
            _tell(connection, guarded("on_reconnect", lambda: on_reconnect(why)))

    def followed_elsewhere(self, uri: str, listening: Listening) -> bool:
        """Whether somebody else than ``listening`` has subscribed to a resource."""
        return uri in self.subscribed or any(
            other is not listening and uri in other.subscribed for other in self.listenings
        )

    def _hear_log(self, connection: Connection, params: Raw) -> None:
        message = wire.decode(params, t.LoggingMessageNotificationParams)
        if self._on_log is not None:
            _tell(connection, self._on_log(message), len(params))

    def _hear_complete(self, params: Raw) -> None:
        complete = wire.decode(params, t.ElicitationCompleteNotificationParams)
        if self.on_complete is not None:
            self.on_complete(complete.elicitation_id)

    def _hear_any(self, connection: Connection, method: str, params: Raw) -> None:
        found: Any = msgspec.json.decode(params)
        if not isinstance(found, dict):
            raise wire.WireError("params must be an object")
        if self._on_notification is not None:
            _tell(connection, self._on_notification(method, cast("dict[str, Any]", found)), len(params))


def _tell(connection: Connection, told: Any, size: int = 0) -> None:
    if inspect.isawaitable(told):
        connection.follow(told, size)


def _guarded(method: str, hand_on: Callable[[], None]) -> None:
    def unless_malformed() -> None:
        try:
            hand_on()
        except (wire.WireError, msgspec.MsgspecError, RecursionError) as error:
            _log.warning("a malformed %s was dropped: %s", method, error)

    guarded(f"a callback for {method}", unless_malformed)
