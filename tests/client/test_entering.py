"""A client or group is entered once at a time: whoever leaves a block closes it for everybody."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from modelwire import Client, ConfigError, Group, Server
from modelwire.sync import Client as SyncClient
from modelwire.sync import Group as SyncGroup


def _server() -> Server:
    server = Server("s")

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    return server


async def _works(opened: Any) -> None:
    name = "add" if isinstance(opened, Client) else "s__add"
    assert await opened.call(name, {"a": 1, "b": 2}) == 3


def _sync_group(server: Server) -> SyncGroup:
    return SyncGroup({"s": server})


def _either() -> list[Any]:
    return [Client(_server()), Group({"s": _server()})]


@pytest.mark.parametrize("which", [0, 1])
async def test_what_is_open_cannot_be_entered_again_and_stays_open(which: int) -> None:
    one = _either()[which]
    async with one:
        with pytest.raises(ConfigError, match=r"is open already.*for everybody.*use it as it is"):
            async with one:
                raise AssertionError
        await _works(one)
        await one.connect()  # opens what is not open
        await _works(one)
    async with one:  # after the end, again
        await _works(one)


@pytest.mark.parametrize("which", [0, 1])
async def test_what_was_connected_cannot_be_entered(which: int) -> None:
    one = _either()[which]
    await one.connect()
    with pytest.raises(ConfigError, match="is open already"):
        await one.__aenter__()
    await _works(one)
    await one.close()
    async with one:
        await _works(one)


@pytest.mark.parametrize("which", [0, 1])
async def test_of_two_that_enter_at_once_one_is_refused(which: int) -> None:
    one = _either()[which]
    entering: list[Any] = [one.__aenter__(), one.__aenter__()]
    outcomes = await asyncio.gather(*entering, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [type(one), ConfigError]
    await _works(one)
    await one.close()


async def test_a_client_that_a_group_has_opened_cannot_be_entered() -> None:
    client = Client(_server())
    async with Group({"s": client}) as group:
        with pytest.raises(ConfigError, match="the client is open already"):
            await client.__aenter__()
        await _works(group)


async def test_a_client_that_failed_to_open_can_be_entered() -> None:
    async def fails() -> Any:
        raise OSError("not today")

    client = Client(fails)
    for _ in range(2):
        with pytest.raises(Exception, match="not today"):
            await client.__aenter__()


def test_a_client_whose_loop_has_ended_can_be_entered() -> None:
    client = Client(_server())
    asyncio.run(client.connect())  # and never closed

    async def again() -> None:
        async with client:
            await _works(client)

    asyncio.run(again())


@pytest.mark.parametrize("kind", [SyncClient, _sync_group])
def test_without_await_it_is_the_same(kind: Any) -> None:
    with kind(_server()) as one:
        with pytest.raises(ConfigError, match="is open already"), one:
            raise AssertionError
        assert one.list_tools()
    with one:
        assert one.list_tools()
