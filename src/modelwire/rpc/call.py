"""One request while it is being answered: what came, from whom, and what may be sent meanwhile.

A `Call` is also the request's exchange: notifications go out through it as long as it is open, and nothing after.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from modelwire.protocol import jsonrpc
from modelwire.protocol.jsonrpc import IdKey
from modelwire.protocol.meta import RequestMeta
from modelwire.protocol.methods import Method
from modelwire.rules.session import Peer

if TYPE_CHECKING:
    from modelwire.rpc.connection import Connection


class Asking(Protocol):
    """What knows which request a handler is answering: after a question inside a result that is a later one."""

    async def to_be_answered(self, call: Call) -> Call:
        """Return the request that waits for the result of a handler that was started for ``call``; wait for it."""
        ...

    @property
    def call(self) -> Call:
        """The request that is being answered now, or that was the last one."""
        ...


class Call(Struct, eq=False, weakref=True):
    """A request that is being answered.

    Attributes:
        connection: Where the request came from.
        id: The request's id as JSON, exactly as it came.
        key: The id's value.
        method: The method's row.
        handle: Answers it.
        params: The decoded parameters.
        meta: The reserved keys of the request's ``_meta``, or None when it had none.
        peer: Who asks.
        open: True until the answer is sent or the request is cancelled; nothing is sent for it afterwards.
        cancelled: Whether the peer gave the request up.
        cancel_reason: The reason that came with the cancellation.
        lasting: Whether the request stays open until somebody ends it, as ``subscriptions/listen`` does.
        progressed: The last progress that was sent.
        task: What runs the handler; cancelling the call cancels it.
        deliver: Takes the answer's frame instead of the connection, for batches and for people who bring their own
            transport.
        send: Takes what else belongs to the request, instead of the connection, where that has many streams.
        now: Does all that ``handle`` does, and returns the JSON of the result, without ever waiting; None where it may
            wait.
        asking: What asks the client while the request is answered; None where nothing was asked.
        clock: What limits the handler's time.
        context: The context variables that its handler began with.
        http: What the HTTP request was that brought it, where one did.
        let_go: Closes the stream that the answer will go to, for the client to come back later, in as many
            milliseconds; None where there is no such stream.
    """

    # A Struct, since one is made for every request, and nothing makes objects faster.
    connection: Connection
    id: bytes
    key: IdKey
    method: Method
    handle: Callable[[Call], Any]
    params: Any
    meta: RequestMeta | None
    peer: Peer
    open: bool = True
    cancelled: bool = False
    cancel_reason: str | None = None
    lasting: bool = False
    progressed: float | None = None
    task: asyncio.Task[Any] | None = None
    deliver: Callable[[bytes], None] | None = None
    send: Callable[[bytes], None] | None = None
    now: Callable[[Call], bytes] | None = None
    asking: Asking | None = None
    clock: asyncio.Timeout | None = None
    context: contextvars.Context | None = None
    http: Any = None
    let_go: Callable[[int], None] | None = None
    _watchers: tuple[Callable[[], None], ...] = ()

    def __repr__(self) -> str:
        return f"<Call {self.id.decode()} of {self.method.name}>"  # and nothing of what the peer sent

    @property
    def progress_token(self) -> bytes | None:
        """The token that progress must name, as JSON; None when the peer wants no progress."""
        return None if self.meta is None else self.meta.progress_token

    def notify(self, method: str, params: bytes | None = None) -> None:
        """Send a notification that belongs to this request. Does nothing once the request is over.

        Never waits; call it on the connection's event loop.
        """
        if self.open:
            (self.send or self.connection.post)(jsonrpc.encode_notification(method, params))

    def answered(self, frame: bytes) -> None:
        """Send the answer, which ends the request. Does nothing when it was given up before."""
        if self.open:
            self.open = False
            self._watchers = ()
            del self.connection.calls[self.key]
            (self.deliver or self.connection.post)(frame)

    def cancel(self, reason: str | None = None) -> None:
        """Give the request up: its handler is cancelled, and nothing more is sent for it."""
        if not self.open:
            return
        self.open = False
        self.cancelled = True
        self.cancel_reason = reason
        del self.connection.calls[self.key]
        watchers, self._watchers = self._watchers, ()
        for watcher in watchers:
            watcher()
        if self.task is not None and not self.task.done():
            self.connection.leaves(self.task)
            self.task.cancel(reason)

    def on_cancel(self, watcher: Callable[[], None]) -> None:
        """Have ``watcher()`` called when the request is cancelled."""
        self._watchers = (*self._watchers, watcher)

    def closed(self) -> asyncio.Future[None]:
        """Return a future that is done once the request is answered or cancelled; to be asked for while it is open."""
        over: asyncio.Future[None] = self.connection.loop.create_future()
        deliver = self.deliver or self.connection.post

        def done(frame: bytes | None = None) -> None:
            if frame is not None:
                deliver(frame)
            if not over.done():
                over.set_result(None)

        self.deliver = done
        self.on_cancel(done)
        return over
