"""The TCP proxy of the tests does to bytes what it was told, and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from tests.faulty_tcp import Fault, FaultyTcp, faulty
from tests.leftovers import nothing_left
from tests.wire import PATIENCE


class Echo:
    """A server that sends back what it gets, and notes how that came and how it ended."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.ends: list[str] = []
        self.ended = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while piece := await reader.read(100):
                self.pieces.append(piece)
                writer.write(piece)
            self.ends.append("eof")
        except ConnectionResetError:
            self.ends.append("reset")
        self.ended.set()
        writer.close()


@contextlib.asynccontextmanager
async def echoing() -> AsyncIterator[tuple[Echo, FaultyTcp]]:
    echo = Echo()
    server = await asyncio.start_server(echo.serve, "127.0.0.1", 0)
    async with faulty(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp") as proxy:
        yield echo, proxy
    server.close()
    await server.wait_closed()


async def talk(proxy: FaultyTcp, said: bytes = b"hello", *, finish: bool = True) -> bytes | str:
    """Say something; return what comes back, or "reset"."""
    port = int(proxy.url.split(":")[2].split("/")[0])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(said)
        if finish:
            writer.write_eof()
        async with asyncio.timeout(PATIENCE):
            return await reader.read()
    except ConnectionResetError:
        return "reset"
    finally:
        writer.close()


async def test_what_it_was_not_told_to_spoil_crosses_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    async with nothing_left(caplog), echoing() as (echo, proxy):
        assert proxy.url.endswith("/mcp")
        assert await talk(proxy) == b"hello"
        assert echo.ends == ["eof"]


async def test_bytes_come_one_by_one() -> None:
    async with echoing() as (echo, proxy):
        proxy.up = Fault(split=1)
        assert await talk(proxy) == b"hello"
        assert b"".join(echo.pieces) == b"hello"
        assert len(echo.pieces) > 2  # a busy machine may read two together


async def test_a_connection_is_cut_after_so_many_bytes() -> None:
    async with echoing() as (echo, proxy):
        proxy.up = Fault(after=2)
        assert await talk(proxy) == "reset"
        await asyncio.wait_for(echo.ended.wait(), PATIENCE)
        assert (echo.pieces, echo.ends) == ([b"he"], ["reset"])
        proxy.up, proxy.down = Fault(), Fault(after=3, how="close")
        assert await talk(proxy, finish=False) == b"hel"
        proxy.up, proxy.down = Fault(after=3, how="half"), Fault()
        assert await talk(proxy, finish=False) == b"hel"


async def test_what_stalls_or_is_held_up_does_not_come_until_it_is_let_go() -> None:
    async with echoing() as (_, proxy):
        proxy.down = Fault(after=1, how="stall")
        talking = asyncio.create_task(talk(proxy))
        while not proxy.crossings:
            await asyncio.sleep(0)
        await asyncio.wait_for(proxy.crossings[0].cut.wait(), PATIENCE)
        assert not talking.done()
        proxy.crossings[0].close()
        assert await talking == b"h"
        proxy.down = Fault()
        talking = asyncio.create_task(talk(proxy))
        while len(proxy.crossings) < 2:
            await asyncio.sleep(0)
        proxy.crossings[1].hold()
        for _ in range(20):
            await asyncio.sleep(0)
        assert proxy.crossings[1].down == 0
        proxy.crossings[1].release()
        assert await talking == b"hello"


async def test_where_nobody_listens_the_connection_ends() -> None:
    async with faulty("http://127.0.0.1:1/mcp") as proxy:
        assert await talk(proxy) in (b"", "reset")


async def test_a_trap_strikes_one_connection_once_and_counts_from_there() -> None:
    async with echoing() as (_, proxy):
        assert await talk(proxy) == b"hello"
        trap = proxy.trap("down", Fault(after=2, how="close"))
        assert await talk(proxy) == b"he"
        assert trap.crossed == 2
        assert await talk(proxy) == b"hello"


async def test_a_trap_strikes_a_connection_that_is_open_already() -> None:
    async with echoing() as (_, proxy):
        port = int(proxy.url.split(":")[2].split("/")[0])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"one")
        assert await reader.readexactly(3) == b"one"
        proxy.trap("down", Fault(after=1, how="close"))
        writer.write(b"two")
        assert await reader.read() == b"t"
        writer.close()
