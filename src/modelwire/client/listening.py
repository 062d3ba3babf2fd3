"""What servers tell unasked, as typed events on every revision.

Handshake revisions send ``list_changed`` and ``updated`` on the open connection; 2026-07-28 sends them on
``subscriptions/listen``. Either way a `Listening` yields the same events. A burst that is not read yet is kept once per
list and URI, so that a slow reader loses nothing that it could still act on.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from modelwire.errors import PeerError
from modelwire.protocol import types as t
from modelwire.protocol import wire
from modelwire.protocol.jsonrpc import Notification
from modelwire.protocol.meta import SUBSCRIPTION_ID
from modelwire.rules.subscriptions import wants

if TYPE_CHECKING:
    from modelwire.client.client import Client


@dataclass(frozen=True, slots=True)
class ToolsChanged:
    """The list of tools changed: list again."""


@dataclass(frozen=True, slots=True)
class PromptsChanged:
    """The list of prompts changed: list again."""


@dataclass(frozen=True, slots=True)
class ResourcesChanged:
    """The list of resources or templates changed: list again."""


@dataclass(frozen=True, slots=True)
class ResourceUpdated:
    """A resource changed: read it again.

    Attributes:
        uri: The URI that the server named; it may lie below the one that was asked for.
    """

    uri: str


Event: TypeAlias = ToolsChanged | PromptsChanged | ResourcesChanged | ResourceUpdated

_LISTS: dict[str, tuple[str, Event]] = {
    "notifications/tools/list_changed": ("tools", ToolsChanged()),
    "notifications/prompts/list_changed": ("prompts", PromptsChanged()),
    "notifications/resources/list_changed": ("resources", ResourcesChanged()),
    # In no revision, but taught by tutorials: a hint that says the same. Its params are not trusted.
    "tools/list": ("tools", ToolsChanged()),
    "resources/list": ("resources", ResourcesChanged()),
    "notifications/root": ("resources", ResourcesChanged()),
}


class _Uri(msgspec.Struct):
    uri: str


class _Tagged(msgspec.Struct):
    meta: dict[str, Any] | None = msgspec.field(default=None, name="_meta")


_decode_uri = msgspec.json.Decoder(_Uri).decode
_decode_tag = msgspec.json.Decoder(_Tagged).decode


class Listening:
    """Events while an ``async with`` block runs; iterate over it.

    The iteration ends when the server ends the subscription, and raises `ConnectionLost` when the connection breaks.
    """

    def __init__(self, client: Client, wanted: t.SubscriptionFilter) -> None:
        self._client = client
        self._wanted = wanted
        self._events: dict[Event, None] = {}
        self._waiter: asyncio.Future[None] | None = None
        self._acknowledged: asyncio.Future[t.SubscriptionFilter] | None = None
        self._request: asyncio.Task[Any] | None = None
        self._id: int | None = None
        self._end: BaseException | None = None
        self._over = False
        self.honoured: t.SubscriptionFilter = wanted
        """The part of the filter that the server agreed to."""

    async def __aenter__(self) -> Listening:
        try:
            if self._client.revision.listen:
                await self._listen()
            else:
                await self._subscribe()
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __aiter__(self) -> Listening:
        return self

    async def __anext__(self) -> Event:
        while not self._events:
            if self._over:
                if self._end is not None:
                    raise self._end
                raise StopAsyncIteration
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        event = next(iter(self._events))
        del self._events[event]
        return event

    async def aclose(self) -> None:
        """Stop listening; the server is told. May be called twice."""
        self._client.listenings.discard(self)
        self.finish(None)
        if self._request is not None:
            request, self._request = self._request, None
            request.cancel()
            await asyncio.wait([request])
        elif self._client.connected and not self._client.revision.listen:
            await self._unsubscribe()

    # ------------------------------------------------------------------ the two eras

    async def _listen(self) -> None:
        self._acknowledged = asyncio.get_running_loop().create_future()
        self._client.listenings.add(self)
        self._request = asyncio.create_task(self._client.hold_listen(self._wanted, self._sent))
        self._request.add_done_callback(self._ended)
        async with asyncio.timeout(self._client.timeout):
            await asyncio.wait([self._acknowledged, self._request], return_when=asyncio.FIRST_COMPLETED)
        if self._acknowledged.done():
            self.honoured = self._acknowledged.result()
        else:
            self._request.result()

    def _sent(self, id_: int) -> None:
        self._id = id_

    def _ended(self, request: asyncio.Task[Any]) -> None:
        if request.cancelled():
            self.finish(None)
        else:
            self.finish(request.exception())

    async def _subscribe(self) -> None:
        self._client.listenings.add(self)
        for uri in self._wanted.resource_subscriptions or ():
            await self._client.subscribe(uri)

    async def _unsubscribe(self) -> None:
        for uri in self._wanted.resource_subscriptions or ():
            try:
                await self._client.unsubscribe(uri)
            except PeerError:
                pass  # it no longer knows the resource, which is as good

    # ------------------------------------------------------------------ hearing

    def hear(self, notification: Notification) -> None:
        """Take in a notification of the connection, if it is for this listening."""
        params = b"{}" if isinstance(notification.params, msgspec.UnsetType) else bytes(notification.params)
        try:
            if self._client.revision.listen and not self._is_mine(params):
                return
            if notification.method == "notifications/subscriptions/acknowledged":
                self._acknowledge(params)
            elif notification.method == "notifications/resources/updated":
                self._put(ResourceUpdated(_decode_uri(params).uri))
            elif notification.method in _LISTS:
                name, event = _LISTS[notification.method]
                if wants(self._wanted, "list", name):
                    self._put(event)
        except msgspec.MsgspecError:
            return  # malformed; the client has logged it

    def _is_mine(self, params: bytes) -> bool:
        # "On stdio, where all messages share a single channel, clients MUST use this field to correlate"
        tag = (_decode_tag(params).meta or {}).get(SUBSCRIPTION_ID)
        return tag == self._id and type(tag) is type(self._id)

    def _acknowledge(self, params: bytes) -> None:
        given = wire.decode(params, t.SubscriptionsAcknowledgedNotificationParams)
        if self._acknowledged is not None and not self._acknowledged.done():
            self._acknowledged.set_result(given.notifications)

    def _put(self, event: Event) -> None:
        if isinstance(event, ResourceUpdated) and not self._follows(event.uri):
            return
        self._events[event] = None
        self._wake()

    def _follows(self, uri: str) -> bool:
        # "sub-resources of the one that the client actually subscribed to" may be named instead (schema)
        return any(uri == asked or uri.startswith(asked) for asked in self._wanted.resource_subscriptions or ())

    def finish(self, error: BaseException | None) -> None:
        """End the iteration, with an error where there is one."""
        if not self._over:
            self._over = True
            self._end = error
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
