"""Events of what changes, for a plain ``for`` loop."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Generic, TypeVar, cast

from modelwire.client.listening import Event
from modelwire.client.listening import Listening as AsyncListening
from modelwire.errors import ConfigError
from modelwire.protocol import types as t
from modelwire.sync.loop import LoopThread

E = TypeVar("E")


class Listening(Generic[E]):
    """Events while a ``with`` block runs; iterate over it.

    The iteration waits for the next event, and ends when the block, the client or the server ends it: closing from
    another thread does, too. It raises `ConnectionLost` when the connection breaks.

    Args:
        loop: The loop that the client runs in.
        events: What is listened to.
    """

    def __init__(self, loop: LoopThread, events: Any) -> None:
        self._loop = loop
        self._events = events
        self._entered = False

    def __enter__(self) -> Listening[E]:
        self._loop.run(self._events.__aenter__)
        self._entered = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Listening[E]:
        if not self._entered:
            raise ConfigError("a listening is a `with` block: with client.listen(...) as events:")
        return self

    def __next__(self) -> E:
        event = self._loop.run(self._next)
        if event is None:
            raise StopIteration
        return cast(E, event)

    async def _next(self) -> Any:
        return await anext(self._events, None)

    def close(self) -> None:
        """Stop listening; the server is told. May be called twice, and from any thread."""
        self._loop.run(self._events.aclose)


class ClientListening(Listening[Event]):
    """Events of one server."""

    def __enter__(self) -> ClientListening:
        super().__enter__()
        return self

    @property
    def honoured(self) -> t.SubscriptionFilter:
        """The part of what was asked for that the server agreed to tell; the rest was logged as a warning."""
        return cast(AsyncListening, self._events).honoured
