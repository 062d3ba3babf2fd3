"""One request while it is being answered: what came, from whom, and what may be sent meanwhile.

A `Call` is also the request's exchange: notifications go out through it as long as it is open, and nothing after.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from modelwire.protocol import jsonrpc
from modelwire.protocol.jsonrpc import IdKey
from modelwire.protocol.meta import RequestMeta
from modelwire.protocol.methods import Method
from modelwire.protocol.revisions import Revision
from modelwire.rules.session import Peer

if TYPE_CHECKING:
    from modelwire.rpc.connection import Connection


class Call:
    """A request that is being answered.

    Attributes:
        id: The request's id as JSON, exactly as it came.
        key: The id's value.
        method: The method's row.
        params: The decoded parameters.
        meta: The reserved keys of the request's ``_meta``, or None when it had none.
        peer: Who asks.
        connection: Where the request came from.
        open: True until the answer is sent or the request is cancelled; nothing is sent for it afterwards.
        cancelled: Whether the peer gave the request up.
        cancel_reason: The reason that came with the cancellation.
    """

    __slots__ = (
        "_watchers", "cancel_reason", "cancelled", "connection", "id", "key", "lasting", "meta", "method", "open",
        "params", "peer", "progressed", "task",
    )  # fmt: skip

    def __init__(
        self,
        connection: Connection,
        id_: bytes,
        key: IdKey,
        method: Method,
        params: Any,
        meta: RequestMeta | None,
        peer: Peer,
    ) -> None:
        self.connection = connection
        self.id = id_
        self.key = key
        self.method = method
        self.params = params
        self.meta = meta
        self.peer = peer
        self.open = True
        self.cancelled = False
        self.cancel_reason: str | None = None
        self.lasting = False
        """Whether the request stays open until somebody ends it, as ``subscriptions/listen`` does."""
        self.progressed: float | None = None
        self.task: asyncio.Task[Any] | None = None
        self._watchers: list[Callable[[], None]] | None = None

    @property
    def progress_token(self) -> msgspec.Raw | None:
        """The token that progress must name, as JSON; None when the peer wants no progress."""
        return None if self.meta is None else self.meta.progress_token

    def notify(self, method: str, params: bytes | None = None) -> None:
        """Send a notification that belongs to this request. Does nothing once the request is over.

        Never waits; call it on the connection's event loop.
        """
        if self.open:
            self.connection.post(jsonrpc.encode_notification(method, params))

    def cancel(self, reason: str | None = None) -> None:
        """Give the request up: its handler is cancelled, and nothing more is sent for it."""
        if self.cancelled:
            return
        self.cancelled = True
        self.cancel_reason = reason
        self.open = False
        for watcher in self._watchers or ():
            watcher()
        if self.task is not None:
            self.task.cancel(reason)

    def on_cancel(self, watcher: Callable[[], None]) -> None:
        """Have ``watcher()`` called when the request is cancelled."""
        if self._watchers is None:
            self._watchers = []
        self._watchers.append(watcher)


Handler: TypeAlias = Callable[[Call], Awaitable[Any]]
"""Answers a request: returns a result (typed, a dict, or the JSON of one as bytes), or raises."""

Middleware: TypeAlias = Callable[[Handler], Handler]

__all__ = ["Call", "Handler", "Middleware", "Revision"]
