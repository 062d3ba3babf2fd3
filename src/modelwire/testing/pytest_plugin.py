"""Fixtures for pytest, which loads this file wherever modelwire is installed; hence it imports little.

- ``mcp_client(target, **options)`` connects a client and returns it; it is closed when the test ends. The target is a
  `Server` or whatever else a `Client` takes. Every frame is in ``client.frames``. It needs pytest-asyncio.
- ``mcp_sync_client(target, **options)`` is the same for tests that do not ``await``.
- ``mcp_revision`` runs a test once per revision of the protocol; hand it on as ``revision=``.

The frames of a test that fails are in its report.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from modelwire.protocol.revisions import REVISIONS

if TYPE_CHECKING:
    from modelwire.testing.frames import Frames
    from modelwire.testing.recorded import RecordedClient, RecordedSyncClient

try:
    from pytest_asyncio import fixture as async_fixture
except ImportError:
    async_fixture = None

_RECORDS = pytest.StashKey[list[tuple[str, "Frames"]]]()


async def _client(request: pytest.FixtureRequest) -> AsyncIterator[Callable[..., Awaitable[RecordedClient]]]:
    """Connect clients; they are closed when the test ends."""
    from modelwire.testing.recorded import connected

    clients: list[RecordedClient] = []

    async def connect(target: Any, **options: Any) -> RecordedClient:
        client = connected(target, **options)
        clients.append(client)
        _record(request, target, client.frames)
        await client.connect()
        return client

    yield connect
    for client in reversed(clients):
        await client.close()


def _no_client() -> None:
    """Say what ``mcp_client`` needs."""
    raise pytest.UsageError(
        "the fixture mcp_client needs pytest-asyncio: pip install pytest-asyncio; mcp_sync_client needs nothing"
    )


mcp_client: Any = (
    pytest.fixture(_no_client, name="mcp_client")
    if async_fixture is None
    else async_fixture(_client, name="mcp_client")
)


@pytest.fixture
def mcp_sync_client(request: pytest.FixtureRequest) -> Iterator[Callable[..., RecordedSyncClient]]:
    """Connect clients for tests that do not ``await``; they are closed when the test ends."""
    from modelwire.testing.recorded import RecordedSyncClient

    clients: list[RecordedSyncClient] = []

    def connect(target: Any, **options: Any) -> RecordedSyncClient:
        client = RecordedSyncClient(target, **options)
        clients.append(client)
        _record(request, target, client.frames)
        client.connect()
        return client

    yield connect
    for client in reversed(clients):
        client.close()


@pytest.fixture(params=[revision.name for revision in REVISIONS])
def mcp_revision(request: pytest.FixtureRequest) -> str:
    """Run the test once for every revision of the protocol."""
    return request.param


def _record(request: pytest.FixtureRequest, target: Any, frames: Frames) -> None:
    name = getattr(target, "name", None)
    records = request.node.stash.setdefault(_RECORDS, [])
    records.append((name if isinstance(name, str) else type(target).__name__, frames))


# The older way to write a hook, because pytest of any age may load this.
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    """Show the frames of a test that failed."""
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        nothing: list[tuple[str, Frames]] = []
        for name, frames in item.stash.get(_RECORDS, nothing):
            report.sections.append((f"MCP frames of {name}", frames.transcript()))
