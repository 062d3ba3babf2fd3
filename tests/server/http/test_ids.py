"""Fifty clients that all use the id 1, two hundred calls at once: no answer, and no notice, reaches a wrong client."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest

from benchmarks.child import BenchError
from benchmarks.crowd import Crowd
from benchmarks.programs import tools
from benchmarks.programs.modelwire_server import add_kit
from modelwire import Server


@contextlib.asynccontextmanager
async def crowd_at(server: Server, clients: int = 50) -> AsyncIterator[Crowd]:
    async with server.serving("http://127.0.0.1:0/mcp") as serving:
        port = urlsplit(str(serving.url)).port
        assert port is not None
        crowd = await asyncio.to_thread(Crowd, port, clients)
        try:
            yield crowd
        finally:
            crowd.close()


@pytest.mark.parametrize("calls", [1000, pytest.param(5000, marks=pytest.mark.slow)])
async def test_every_answer_reaches_whoever_asked(calls: int) -> None:
    server = Server("crowd")
    for function in tools.functions(tools.KIT):
        server.tool(function)
    add_kit(server)
    async with crowd_at(server) as crowd:
        await asyncio.to_thread(crowd.run, calls)


async def test_an_answer_to_somebody_else_would_be_seen() -> None:
    server = Server("mixing")
    last = "0-0"

    @server.tool
    async def echo(text: str) -> str:
        nonlocal last
        last, other = text, last
        return other

    async with crowd_at(server, 2) as crowd:
        with pytest.raises(BenchError, match="called echo and was answered 200"):
            await asyncio.to_thread(crowd.run, 20)
