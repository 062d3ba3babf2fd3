"""Telling clients what changed: to handshake sessions by what they subscribed to, to listen requests by their filter.

Each subscriber has its own `News`; a burst is told once, at the end of the event loop's turn, and a subscriber that
reads slowly is told later, never less.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from modelwire.errors import INVALID_PARAMS, RpcError
from modelwire.protocol import jsonrpc, wire
from modelwire.protocol.meta import SUBSCRIPTION_ID
from modelwire.protocol.types import SubscriptionFilter
from modelwire.rpc.call import Call
from modelwire.rpc.connection import Connection
from modelwire.rules.subscriptions import MAX_SUBSCRIPTIONS, News, agreed, wants


class Subscriber:
    """One receiver of news on one connection; what it wants to know, and how it is told, is its kind's business.

    Args:
        connection: Where it is told.
    """

    __slots__ = ("_news", "_scheduled", "connection")

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._news = News()
        self._scheduled = False

    def wants(self, kind: str, name: str) -> bool:
        """Whether a piece of news is for it."""
        raise NotImplementedError

    def tell(self, kind: str, name: str) -> None:
        """Send one piece of news."""
        raise NotImplementedError

    @property
    def ready(self) -> bool:
        """Whether it may be told by now."""
        return True

    def offer(self, kind: str, name: str) -> None:
        """Take a piece of news, from any thread."""
        if threading.get_ident() == self.connection.thread:
            self._offer(kind, name)
            return
        try:
            self.connection.loop.call_soon_threadsafe(self._offer, kind, name)
        except RuntimeError:
            return  # its event loop is gone, and so is whoever listened

    def _offer(self, kind: str, name: str) -> None:
        if self.wants(kind, name):
            self._news.add(kind, name)
            self.kick()

    def kick(self) -> None:
        """See that pending news are told, once that may be and once there is room."""
        if self._news and not self._scheduled and self.ready:
            self._scheduled = True
            self.connection.when_room(self._flush)

    def _flush(self) -> None:
        self._scheduled = False
        if self.connection.ended is None and self.ready:  # it may have opened anew since
            for kind, name in self._news.take():
                self.tell(kind, name)


class Hub:
    """Everybody who wants to know what changed on one server."""

    def __init__(self) -> None:
        self._subscribers: dict[Subscriber, None] = {}
        self._lock = threading.Lock()

    def add(self, subscriber: Subscriber) -> None:
        """Have a subscriber told from now on."""
        with self._lock:
            self._subscribers[subscriber] = None

    def remove(self, subscriber: Subscriber) -> None:
        """Stop telling it."""
        with self._lock:
            self._subscribers.pop(subscriber, None)

    def changed(self, kind: str, name: str) -> None:
        """Tell everybody who wants to know. May be called from any thread.

        Args:
            kind: "list" or "resource".
            name: The list's name, or the resource's URI.
        """
        with self._lock:
            subscribers = list(self._subscribers)
        for subscriber in subscribers:
            subscriber.offer(kind, name)


class SessionSubscriber(Subscriber):
    """Stands for a handshake session.

    Args:
        connection: The session's connection.
        announce: Returns further frames to send when a list changed; None for none.
    """

    __slots__ = ("_announce",)

    def __init__(self, connection: Connection, announce: Callable[[str], list[bytes]] | None) -> None:
        super().__init__(connection)
        self._announce = announce

    @property
    def ready(self) -> bool:
        """Whether the client has finished opening."""
        return self.connection.session.ready

    def wants(self, kind: str, name: str) -> bool:
        """Whether the session was promised this."""
        session = self.connection.session
        if session.peer is None:
            return False
        if kind == "resource":
            return session.subscribed.get(name, False)
        return bool(session.declared.get(name, {}).get("listChanged"))

    def tell(self, kind: str, name: str) -> None:
        """Send one piece of news."""
        connection = self.connection
        if kind == "resource":
            connection.notify("notifications/resources/updated", b'{"uri":' + msgspec.json.encode(name) + b"}")
            return
        connection.notify(f"notifications/{name}/list_changed")
        if connection.session.initialized and self._announce is not None:
            for frame in self._announce(name):
                connection.post(frame)


def subscribe(call: Call, concealed: bool) -> dict[str, Any]:
    """Answer ``resources/subscribe``.

    Args:
        call: The request.
        concealed: The resource is not there for whoever calls. To whom it is not there, it does not change either; the
            answer is that for any URI that nobody knows.
    """
    session = call.connection.session
    subscribed = session.subscribed
    if len(subscribed) >= MAX_SUBSCRIPTIONS and call.params.uri not in subscribed:
        raise RpcError(
            INVALID_PARAMS, f"this session follows {MAX_SUBSCRIPTIONS} resources already; unsubscribe from some"
        )
    subscribed[call.params.uri] = not concealed
    return {}


def unsubscribe(call: Call) -> dict[str, Any]:
    """Answer ``resources/unsubscribe``; one that does not exist is not an error."""
    call.connection.session.subscribed.pop(call.params.uri, None)
    return {}


class Listen(Subscriber):
    """One ``subscriptions/listen``: acknowledged first, open until the client cancels it or the server ends it.

    Args:
        call: The request.
        given: What is acknowledged.
        concealed: Of the URIs in it those that are not told of.
        done: Takes the result that tells the client of the graceful end.
    """

    __slots__ = ("_concealed", "_done", "_given", "call")

    def __init__(
        self,
        call: Call,
        given: SubscriptionFilter,
        concealed: frozenset[str],
        done: Callable[[dict[str, Any]], None],
    ) -> None:
        super().__init__(call.connection)
        self.call = call
        self._given = given
        self._concealed = concealed
        self._done = done

    @property
    def _tag(self) -> bytes:
        return b'"_meta":{"' + SUBSCRIPTION_ID.encode() + b'":' + self.call.id + b"}"

    def wants(self, kind: str, name: str) -> bool:
        """Whether the subscription is to this."""
        return wants(self._given, kind, name) and name not in self._concealed

    def tell(self, kind: str, name: str) -> None:
        """Send one piece of news."""
        if kind == "resource":
            uri = msgspec.json.encode(name)
            self.call.notify("notifications/resources/updated", b"{" + self._tag + b',"uri":' + uri + b"}")
        else:
            self.call.notify(f"notifications/{name}/list_changed", b"{" + self._tag + b"}")

    def acknowledge(self) -> None:
        """Send the acknowledgment, which must come before anything else."""
        given = wire.encode(self._given, self.call.peer.revision)
        self.call.notify(
            "notifications/subscriptions/acknowledged", b"{" + self._tag + b',"notifications":' + given + b"}"
        )

    def end(self) -> None:
        """End the subscription from the server's side: both the announcement and the result that is a graceful end.

        "A server MUST send notifications/cancelled referencing a subscriptions/listen request ID when it tears down
        that subscription stream" (basic/patterns/cancellation); "it SHOULD respond to the original request with a
        completion result" (basic/patterns/subscriptions).
        """
        params = b'{"requestId":' + self.call.id + b',"reason":"the server ends the subscription"}'
        (self.call.send or self.call.connection.post)(jsonrpc.encode_notification("notifications/cancelled", params))
        self._done({"_meta": {SUBSCRIPTION_ID: msgspec.Raw(self.call.id)}})


class Listeners:
    """The listen requests of one server.

    Args:
        hub: Where they hear of changes.
        declared: Returns the lists that the server has.
        concealed: Returns those resources that are not there for whoever makes a call; they are acknowledged like
            any that nobody knows, and never told of.
    """

    def __init__(
        self,
        hub: Hub,
        declared: Callable[[], frozenset[str]],
        concealed: Callable[[Iterable[str], Call], frozenset[str]],
    ) -> None:
        self._hub = hub
        self._declared = declared
        self._concealed = concealed
        self._open: dict[Call, Listen] = {}

    async def listen(self, call: Call) -> dict[str, Any]:
        """Answer ``subscriptions/listen``: stay open until the end."""
        ending: asyncio.Future[dict[str, Any]] = call.connection.loop.create_future()
        self.begin(call, lambda result: None if ending.done() else ending.set_result(result))
        try:
            return await ending
        finally:
            self._forget(call)

    def begin(self, call: Call, done: Callable[[dict[str, Any]], None]) -> None:
        """Begin to answer ``subscriptions/listen``.

        Args:
            call: The request.
            done: Takes the result, once the server ends the subscription.

        Raises:
            RpcError: It is refused.
        """
        wanted: SubscriptionFilter = call.params.notifications
        if len(wanted.resource_subscriptions or ()) > MAX_SUBSCRIPTIONS:
            raise RpcError(INVALID_PARAMS, f"a subscription may follow {MAX_SUBSCRIPTIONS} resources at most")
        call.lasting = True
        concealed = self._concealed(wanted.resource_subscriptions or (), call)
        listen = Listen(call, agreed(wanted, self._declared()), concealed, done)
        listen.acknowledge()
        self._hub.add(listen)
        self._open[call] = listen
        call.on_cancel(lambda: self._forget(call))

    def _forget(self, call: Call) -> None:
        listen = self._open.pop(call, None)
        if listen is not None:
            self._hub.remove(listen)

    async def end(self, connection: Connection) -> None:
        """End every subscription of a connection, gracefully, and wait until their results are on the way."""
        await self.end_of([call for call in self._open if call.connection is connection])

    async def end_of(self, calls: Iterable[Call]) -> None:
        """End those of these requests that are subscriptions, likewise."""
        ending = [self._open[call] for call in calls if call in self._open]
        tasks = [listen.call.task for listen in ending if listen.call.task is not None]
        for listen in ending:
            listen.end()
            self._forget(listen.call)
        if tasks:
            await asyncio.wait(tasks, timeout=1)
