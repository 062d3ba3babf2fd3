"""What servers tell unasked, as typed events on every revision.

Handshake revisions send ``list_changed`` and ``updated`` on the open connection; 2026-07-28 sends them on
``subscriptions/listen``. Either way a `Listening` yields the same events. A burst that is not read yet is kept once per
list and URI, so that a slow reader loses nothing that it could still act on. When a connection that was lost is back,
the server is asked to tell again, and a `Missed` stands for whatever it could not tell meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec import Raw

from modelwire.errors import ConfigError, ConnectionLost, HttpFailed, MethodNotFound, ModelwireError, RequestTimeout
from modelwire.log import log as _log
from modelwire.protocol import types as t
from modelwire.protocol import wire
from modelwire.protocol.meta import SUBSCRIPTION_ID
from modelwire.rpc.connection import lost
from modelwire.rules.restarts import Restarts
from modelwire.rules.subscriptions import LISTS, is_below, wants

if TYPE_CHECKING:
    from modelwire.client.contact import Contact
    from modelwire.client.conversation import Conversation
    from modelwire.client.hearing import Hearing


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


@dataclass(frozen=True, slots=True)
class Missed:
    """The connection was lost and is back; what changed meanwhile was not told: list, and read, what matters again."""


Event: TypeAlias = ToolsChanged | PromptsChanged | ResourcesChanged | ResourceUpdated | Missed

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


class _Cancelled(msgspec.Struct):
    requestId: int | str


_decode_uri = msgspec.json.Decoder(_Uri).decode
_decode_tag = msgspec.json.Decoder(_Tagged).decode
_decode_cancelled = msgspec.json.Decoder(_Cancelled).decode

MAX_EVENTS = 10_000
"""How many resources below one that is followed are kept apart for a reader who is slow."""
UNSUBSCRIBE_SECONDS = 5.0
"""How long the end of a listening waits for the server to note it."""


def wanted_filter(*, tools: bool, prompts: bool, resources: bool, uris: Sequence[str]) -> t.SubscriptionFilter:
    """Return what is listened for as the protocol has it.

    Raises:
        ConfigError: Nothing is asked for, or ``uris`` is a string.
    """
    if isinstance(uris, str):
        raise ConfigError(f"uris= takes a list of URIs: uris=[{uris!r}]")
    if not (tools or prompts or resources or uris):
        raise ConfigError("listen() was asked for nothing; pass tools=True, prompts=True, resources=True or uris=[...]")
    return t.SubscriptionFilter(
        tools_list_changed=tools or None,
        prompts_list_changed=prompts or None,
        resources_list_changed=resources or None,
        resource_subscriptions=list(uris) or None,
    )


class Listening:
    """Events while an ``async with`` block runs; iterate over it.

    The iteration ends when the block, the client or the server ends it. When the connection breaks and comes back, it
    goes on with a `Missed`; when it does not come back, it raises `ConnectionLost`.

    Args:
        conversation: Where to listen.
        hearing: Hands the notifications on.
        wanted: What to listen for.
        timeout: Seconds that the server may take to agree.
    """

    def __init__(
        self, conversation: Conversation, hearing: Hearing, wanted: t.SubscriptionFilter, timeout: float | None
    ) -> None:
        self._conversation = conversation
        self._hearing = hearing
        self._wanted = wanted
        self._timeout = timeout
        self._events: dict[Event, None] = {}
        self._news = asyncio.Event()
        self._acknowledged: asyncio.Future[t.SubscriptionFilter] | None = None
        self._request: asyncio.Task[Any] | None = None
        self._returning: asyncio.Task[None] | None = None
        """What has the server tell again after the stream was lost."""
        self._restarts = Restarts()
        self._id: int | None = None
        self._end: Exception | None = None
        self._over = False
        self._begun = False
        self._lost = False
        """Set from the loss of a connection until the server tells again over another one."""
        self._entered = False
        self.subscribed: list[str] = []
        """The URIs that ``resources/subscribe`` was sent for."""
        self.honoured: t.SubscriptionFilter = t.SubscriptionFilter()
        """The part of what was asked for that the server agreed to tell; the rest was logged as a warning."""

    async def __aenter__(self) -> Listening:
        self._entered = True
        self._hearing.listenings.add(self)
        try:
            contact = await self._ready()
            try:
                await self._begin(contact)
            except ConnectionLost:
                await self._begin(await self._ready())
        except BaseException:
            await self.aclose()
            raise
        self._begun = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __aiter__(self) -> Listening:
        if not self._entered:
            raise ConfigError("a listening is an `async with` block: async with client.listen(...) as events:")
        return self

    async def __anext__(self) -> Event:
        while not self._events:
            if self._over:
                if self._end is not None:
                    raise lost(self._end, "nothing more will be told")
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        event = next(iter(self._events))
        del self._events[event]
        return event

    async def aclose(self) -> None:
        """Stop listening; the server is told. May be called twice, and never fails."""
        self.finish(None)
        if self._returning is not None:
            self._returning.cancel()
            await asyncio.wait([self._returning])
        if self._request is not None:
            self._request.cancel("the client stopped listening")
            await asyncio.wait([self._request])
        if self.subscribed:
            await self._unsubscribe()

    def finish(self, error: Exception | None) -> None:
        """End the iteration, with an error where there is one. What was heard before is still handed out."""
        if not self._over:
            self._over = True
            self._end = error
        self._hearing.listenings.discard(self)
        self._news.set()

    def missed(self) -> None:
        """Note that something may have been told that was not heard."""
        if self._begun:
            self._put(Missed())

    async def resume(self) -> None:
        """Have the server tell again, over a connection that has come in the place of a lost one."""
        if not self._begun or self._over:
            return
        self._lost = True
        self._id = None
        try:
            await self._begin(await self._ready())
        except HttpFailed as again:
            _log.debug("the server did not tell again: %s", again)
        except ConnectionLost as again:
            _log.debug("the connection was lost before the server told again: %s", again)
        except ModelwireError as error:
            self.finish(error)
            if self._request is not None:
                self._request.cancel("the server did not agree in time")

    # ------------------------------------------------------------------ the two eras

    async def _ready(self) -> Contact:
        now = asyncio.get_running_loop().time()
        until = None if self._timeout is None else now + self._timeout
        return await self._conversation.contacts.ready("listening", "was not begun", began=now, until=until)

    async def _begin(self, contact: Contact) -> None:
        if self._conversation.contacts.opened.revision.listen:
            self.honoured = await self._listen(contact)
        else:
            self.honoured = await self._subscribe(contact)
        if not self._over:
            self._found_again()
            _warn_of_missing(self._wanted, self.honoured)

    async def _listen(self, contact: Contact) -> t.SubscriptionFilter:
        self._acknowledged = asyncio.get_running_loop().create_future()
        asked = self._conversation.listen(contact, self._wanted)
        self._id = asked.key
        self._request = asyncio.create_task(contact.connection.answer(asked))
        self._request.add_done_callback(self._ended)
        await asyncio.wait(
            [self._acknowledged, self._request], timeout=self._timeout, return_when=asyncio.FIRST_COMPLETED
        )
        if self._acknowledged.done():
            return self._acknowledged.result()
        if not self._request.done():
            assert self._timeout is not None
            raise RequestTimeout("subscriptions/listen", self._timeout, ["the server did not acknowledge it"])
        if not self._request.cancelled():  # by `aclose`
            try:
                self._request.result()
            except MethodNotFound as error:
                told = f"the server does not tell of changes on {self._conversation.contacts.opened.revision}"
                hint = "a client with revision='2025-11-25' may hear of them"
                raise MethodNotFound(error.code, f"{told}; {hint}. It said: {error.message}", error.data) from error
        return t.SubscriptionFilter()

    def _found_again(self) -> None:
        if self._lost:
            self._lost = False
            self._hearing.on_missed()
            self._put(Missed())

    def _ended(self, request: asyncio.Task[Any]) -> None:
        error = None if request.cancelled() else request.exception()
        if request is not self._request:
            return
        if isinstance(error, HttpFailed) and self._conversation.contacts.connected:
            if self._begun and not self._over:
                self._returning = asyncio.create_task(self._return(error))
        # Of a lost connection the conversation tells, once it knows whether there is another one.
        elif not isinstance(error, ConnectionLost):
            self.finish(error if isinstance(error, Exception) else None)

    async def _return(self, why: HttpFailed) -> None:
        """Have the server tell again after the stream alone was lost, over HTTP."""
        loop = asyncio.get_running_loop()
        delay = self._restarts.next(loop.time()) if self._conversation.contacts.comes_back else None
        if delay is None or (why.status is not None and not why.broken):
            self.finish(why)
            return
        await asyncio.sleep(delay)
        await self.resume()

    async def _subscribe(self, contact: Contact) -> t.SubscriptionFilter:
        self.subscribed.clear()
        await contact.hears()
        declared = self._conversation.contacts.opened.capabilities
        if declared.resources is not None and declared.resources.subscribe:
            for uri in self._wanted.resource_subscriptions or ():
                params = t.SubscribeRequestParams(uri)
                await self._conversation.request("resources/subscribe", params, timeout=self._timeout, on=contact)
                self.subscribed.append(uri)
        if self._over:  # meanwhile
            await self._unsubscribe()
        lists = {
            "tools_list_changed": declared.tools,
            "prompts_list_changed": declared.prompts,
            "resources_list_changed": declared.resources,
        }
        told = {name: True for name, it in lists.items() if it is not None and it.list_changed}
        return t.SubscriptionFilter(
            resource_subscriptions=list(self.subscribed) or None,
            **{name: True for name in told if getattr(self._wanted, name)},
        )

    async def _unsubscribe(self) -> None:
        uris, self.subscribed = self.subscribed, []
        seconds = UNSUBSCRIBE_SECONDS if self._timeout is None else min(self._timeout, UNSUBSCRIBE_SECONDS)
        if not self._conversation.contacts.connected:
            return
        contact = self._conversation.contacts.here()
        answers = [
            self._conversation.request(
                "resources/unsubscribe", t.UnsubscribeRequestParams(uri), timeout=seconds, on=contact
            )
            for uri in dict.fromkeys(uris)
            if not self._hearing.followed_elsewhere(uri, self)
        ]
        for failed in await asyncio.gather(*answers, return_exceptions=True):
            if isinstance(failed, BaseException):
                _log.debug("taking a subscription back failed: %s", failed)

    # ------------------------------------------------------------------ hearing

    def hear(self, method: str, params: Raw) -> None:
        """Take in a notification of the connection, if it is for this listening.

        Raises:
            MsgspecError, WireError: It is malformed.
        """
        if not self._conversation.contacts.opened.revision.listen:
            self._hear_event(method, params)
        elif method == "notifications/cancelled":
            # "A server MUST send notifications/cancelled [...] to terminate a subscriptions/listen stream": nothing
            # comes after it but, if at all, the result.
            if _decode_cancelled(params).requestId == self._id:
                self.finish(None)
        elif self._is_mine(params):
            if method == "notifications/subscriptions/acknowledged":
                self._acknowledge(params)
            else:
                self._hear_event(method, params)

    def _hear_event(self, method: str, params: Raw) -> None:
        if method == "notifications/resources/updated":
            uri = _decode_uri(params).uri
            asked = self._followed(uri)
            if asked is not None:
                self._put(ResourceUpdated(uri if len(self._events) < MAX_EVENTS else asked))
        elif method in _LISTS:
            name, event = _LISTS[method]
            if wants(self._wanted, "list", name):
                self._put(event)

    def _is_mine(self, params: Raw) -> bool:
        # "On stdio, where all messages share a single channel, clients MUST use this field to correlate"
        tag = (_decode_tag(params).meta or {}).get(SUBSCRIPTION_ID)
        return tag is not None and tag == self._id and type(tag) is type(self._id)

    def _acknowledge(self, params: Raw) -> None:
        given = wire.decode(params, t.SubscriptionsAcknowledgedNotificationParams)
        if self._acknowledged is not None and not self._acknowledged.done():
            self._acknowledged.set_result(given.notifications)
            self._found_again()  # before anything that is told from here on

    def _put(self, event: Event) -> None:
        if not self._over:
            self._events[event] = None
            self._news.set()

    def _followed(self, uri: str) -> str | None:
        # "sub-resources of the one that the client actually subscribed to" may be named instead (schema)
        return next((asked for asked in self._wanted.resource_subscriptions or () if is_below(uri, asked)), None)


def _warn_of_missing(wanted: t.SubscriptionFilter, honoured: t.SubscriptionFilter) -> None:
    missing = [name for name in LISTS if wants(wanted, "list", name) and not wants(honoured, "list", name)]
    told = honoured.resource_subscriptions or ()
    missing += [uri for uri in wanted.resource_subscriptions or () if uri not in told]
    if missing:
        _log.warning("the server did not agree to tell of changes of: %s", ", ".join(missing))
