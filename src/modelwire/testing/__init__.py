"""For the tests of servers and clients: both in one process, every frame recorded, and everything that can go wrong.

- `connected` joins a `Server` and a client in memory and records the frames.
- `FakeServer` and `FakeClient` are the other end of a conversation, moved frame by frame by a test.
- `FaultyStream` stands between the two and loses, delays, cuts, doubles and spoils what crosses it.
- `differences` holds a message against a pattern; `Absent`, `Exactly` and ``...`` are parts of patterns.

It all works under plain asyncio. With pytest there are the fixtures ``mcp_client``, ``mcp_sync_client`` and
``mcp_revision`` besides; see `modelwire.testing.pytest_plugin`. Each name is loaded when it is first used, because
pytest loads the plugin whatever is tested.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modelwire.testing.fake_client import FakeClient, Pending
    from modelwire.testing.fake_server import FakeServer
    from modelwire.testing.faults import FaultyStream, Lane
    from modelwire.testing.frames import Frame, Frames
    from modelwire.testing.patterns import Absent, Exactly, differences
    from modelwire.testing.recorded import RecordedClient, RecordedSyncClient, connected
    from modelwire.testing.scripted import REVISIONS
    from modelwire.testing.served import Served

__all__ = [
    "REVISIONS",
    "Absent",
    "Exactly",
    "FakeClient",
    "FakeServer",
    "FaultyStream",
    "Frame",
    "Frames",
    "Lane",
    "Pending",
    "RecordedClient",
    "RecordedSyncClient",
    "Served",
    "connected",
    "differences",
]

_WHERE = {
    "REVISIONS": "scripted",
    "Absent": "patterns",
    "Exactly": "patterns",
    "FakeClient": "fake_client",
    "FakeServer": "fake_server",
    "FaultyStream": "faults",
    "Frame": "frames",
    "Frames": "frames",
    "Lane": "faults",
    "Pending": "fake_client",
    "RecordedClient": "recorded",
    "RecordedSyncClient": "recorded",
    "Served": "served",
    "connected": "recorded",
    "differences": "patterns",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
