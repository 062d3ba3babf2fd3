"""A server and a client joined in memory, with a record of their frames."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from modelwire import ConfigError, ConnectionLost, Observer, Server
from modelwire.testing import REVISIONS, FaultyStream, Frames, RecordedClient, RecordedSyncClient, Served, connected
from tests.fake_server import child


def shop() -> Server:
    server = Server("shop")
    server.add_tool(lambda: "hello", name="hello")
    return server


@pytest.mark.parametrize("revision", REVISIONS)
async def test_frames_are_recorded_from_the_opening_on(revision: str) -> None:
    async with connected(shop(), revision=revision) as client:
        assert isinstance(client, RecordedClient)
        assert client.revision.name == revision
        assert await client.call("hello") == "hello"
        methods = [message["method"] for message in client.frames.sent()]
        assert methods[0] == ("server/discover" if revision == REVISIONS[-1] else "initialize")
        assert methods[-1] == "tools/call"
        [call] = client.frames.sent("tools/call")
        assert client.frames.answer_to(call)["result"]["content"][0]["text"] == "hello"


async def test_observers_of_ones_own_are_told_too() -> None:
    class Mine(Observer):
        count = 0

        def frame(self, direction: Any, frame: bytes) -> None:
            self.count += 1

    mine = Mine()
    async with connected(shop(), observers=[mine]) as client:
        await client.call("hello")
        assert mine.count == len(client.frames)


async def test_a_process_can_be_recorded_as_well() -> None:
    async with connected(child("opened(); serve()")) as client:
        assert await client.call("x") == "done"
        assert len(client.frames.sent("tools/call")) == 1


async def test_options_are_those_of_the_client() -> None:
    with pytest.raises(ConfigError, match="unknown revision"):
        connected(shop(), revision="1999-01-01")


def test_the_same_without_await() -> None:
    with RecordedSyncClient(shop(), observers=[Frames()], revision="2025-06-18") as client:
        assert client.call("hello") == "hello"
        assert [call["params"]["name"] for call in client.frames.sent("tools/call")] == ["hello"]


async def test_a_served_stream_ends_with_its_server() -> None:
    served = Served(shop())
    await served.send(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    assert await served.receive() == b'{"jsonrpc":"2.0","id":1,"result":{}}'
    await served.aclose()
    await served.aclose()
    assert await served.receive() is None
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


@pytest.mark.parametrize("failure", [ValueError("no database"), SystemExit("no key")])
async def test_a_server_behind_something_that_fails_is_told_to_the_log_and_harms_nobody(
    failure: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    @contextlib.asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[None]:
        raise failure
        yield

    with pytest.raises(ConnectionLost):
        await connected(Server("frail", lifespan=lifespan), through=FaultyStream).connect()
    assert "the server 'frail' failed" in caplog.text
    assert str(failure) in caplog.text
