"""What the servers of a group tell unasked, as one row of events.

Each server is listened to by a `Listening` of its own. A server that cannot be listened to, or no longer, is reported
and costs the others nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from types import TracebackType

from modelwire.client.client import Client
from modelwire.client.listening import MAX_EVENTS, Event, wanted_filter
from modelwire.client.members import Members
from modelwire.errors import ConfigError, ModelwireError
from modelwire.log import log as _log


@dataclass(frozen=True, slots=True)
class GroupEvent:
    """Something changed on one server of a group.

    Attributes:
        server: The server's name in the group.
        event: What changed: `ToolsChanged`, `PromptsChanged`, `ResourcesChanged`, `ResourceUpdated`, or `Missed`.
    """

    server: str
    event: Event


class GroupListening:
    """Events of every server while an ``async with`` block runs; iterate over it.

    Servers that are added meanwhile are listened to as well. The iteration ends when the block or the group ends it,
    or when no server is left to listen to.

    Args:
        members: The servers.
        open_blocks: Where the group keeps the blocks that are open.
        owner: Finds the server that a URI belongs to.
        lists: Whether to listen for changes of the lists of tools, prompts and resources.
        uris: Resources to follow.
        timeout: Seconds that each server may take to agree; by default its client's.
    """

    def __init__(
        self,
        members: Members,
        open_blocks: set[GroupListening],
        owner: Callable[[str], Awaitable[str]],
        lists: dict[str, bool],
        uris: Sequence[str],
        timeout: float | None,
    ) -> None:
        wanted_filter(**lists, uris=uris)
        self._members = members
        self._open_blocks = open_blocks
        self._owner = owner
        self._lists = lists
        self._timeout = timeout
        self._uris = list(uris)
        self._by_server: dict[str, list[str]] = {}
        self._listeners: dict[asyncio.Task[None], str] = {}
        """What listens, and to which server."""
        self._events: dict[GroupEvent, None] = {}
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._entered = False
        self._over = False

    async def __aenter__(self) -> GroupListening:
        self._entered = True
        for uri in self._uris:
            self._by_server.setdefault(await self._owner(uri), []).append(uri)
        self._open_blocks.add(self)
        try:
            await asyncio.gather(*(self.join(name, client) for name, client in self._members.opened.items()))
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __aiter__(self) -> GroupListening:
        if not self._entered:
            raise ConfigError("a listening is an `async with` block: async with group.listen(...) as events:")
        return self

    async def __anext__(self) -> GroupEvent:
        while not self._events:
            if self._over or not self._listeners:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        event = next(iter(self._events))
        del self._events[event]
        self._room.set()
        return event

    async def join(self, name: str, client: Client) -> None:
        """Listen to a server, too; returns once it has agreed, or failed."""
        uris = self._by_server.get(name, [])
        if self._over or not (uris or any(self._lists.values())):
            return
        agreed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        listener = asyncio.create_task(self._listen(name, client, uris, agreed))
        self._listeners[listener] = name
        listener.add_done_callback(self._ended)
        await asyncio.wait([agreed, listener], return_when=asyncio.FIRST_COMPLETED)

    async def _listen(self, name: str, client: Client, uris: list[str], agreed: asyncio.Future[None]) -> None:
        try:
            async with client.listen(**self._lists, uris=uris, timeout=self._timeout) as events:
                agreed.set_result(None)
                async for event in events:
                    await self._put(GroupEvent(name, event))
        except ModelwireError as error:
            self._members.failed(name, "listening", error)

    async def _put(self, event: GroupEvent) -> None:
        """Have an event handed out, once. What a slow reader has not taken waits with the server's own listening."""
        while len(self._events) >= MAX_EVENTS and event not in self._events:
            self._room.clear()
            await self._room.wait()
        self._events[event] = None
        self._news.set()

    def _ended(self, listener: asyncio.Task[None]) -> None:
        self._listeners.pop(listener, None)
        self._news.set()
        if not listener.cancelled() and listener.exception() is not None:
            _log.error("listening to a server failed", exc_info=listener.exception())

    async def leave(self, name: str) -> None:
        """Listen to a server no more."""
        await _stop([listener for listener, server in self._listeners.items() if server == name])

    async def aclose(self) -> None:
        """Stop listening; the servers are told. May be called twice, and never fails."""
        self._over = True
        self._news.set()
        self._open_blocks.discard(self)
        await _stop(list(self._listeners))


async def _stop(listeners: list[asyncio.Task[None]]) -> None:
    for listener in listeners:
        listener.cancel()
    if listeners:
        await asyncio.wait(listeners)
