"""A server and a client in one process, joined in memory, with a record of every frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from modelwire.client.client import Client
from modelwire.client.signatures import like
from modelwire.rpc.message_stream import MessageStream
from modelwire.rpc.observer import Observer
from modelwire.server.server import Server
from modelwire.sync.client import Client as SyncClient
from modelwire.testing.frames import Frames
from modelwire.testing.served import Served


class RecordedClient(Client):
    """A `Client` that keeps a record of its frames in ``frames``. It takes what a `Client` takes."""

    @like(Client.__init__)
    def __init__(self, target: Any, *, observers: Sequence[Observer] = (), **options: Any) -> None:
        self.frames = Frames()
        """Every frame so far, from the opening on."""
        super().__init__(target, observers=[self.frames, *observers], **options)


class RecordedSyncClient(SyncClient):
    """A `modelwire.sync.Client` that keeps a record of its frames in ``frames``."""

    @like(SyncClient.__init__)
    def __init__(self, target: Any, *, observers: Sequence[Observer] = (), **options: Any) -> None:
        self.frames = Frames()
        """Every frame so far, from the opening on."""
        super().__init__(target, observers=[self.frames, *observers], **options)


def connected(
    target: Any, *, through: Callable[[MessageStream], MessageStream] | None = None, **options: Any
) -> RecordedClient:
    """Return an ``async with`` block with a client of a server, joined in memory, every frame recorded.

    Args:
        target: The `Server`; or whatever else a `Client` takes.
        through: Puts something between the two, such as a `FaultyStream`: called with the client's end of the
            connection, returns what the client is given instead. The target is a `Server` or a stream then.
        **options: For the `Client`, such as ``revision="2025-06-18"``.

    Example:
        ```
        async with connected(server) as client:
            assert await client.call("add", {"a": 1, "b": 2}, returns=int) == 3
        assert [call["params"]["name"] for call in client.frames.sent("tools/call")] == ["add"]
        ```
    """
    if through is not None:
        target = through(Served(target) if isinstance(target, Server) else target)
    return RecordedClient(target, **options)
