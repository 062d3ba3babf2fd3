"""Servers that others wrote, over HTTP, each a process for as long as a block runs; gives where it is.

What they say is known to the tests alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
from collections.abc import AsyncIterator, Sequence

from tests.interop.peers import PATIENCE, node_server, program


@contextlib.asynccontextmanager
async def python_server(library: str, kind: str) -> AsyncIterator[str]:
    """Start a server of `servers/over_http.py`.

    Args:
        library: ``mcp`` or ``fastmcp``.
        kind: ``http``, ``json`` or ``sse``.
    """
    async with _that_tells(program("servers/over_http.py", library, kind)) as url:
        yield url


@contextlib.asynccontextmanager
async def sdk_server() -> AsyncIterator[str]:
    """Start the server on version 2 of the JavaScript SDK."""
    async with _that_tells(program("node/sdk_server.mjs")) as url:
        yield url


@contextlib.asynccontextmanager
async def everything_server(kind: str) -> AsyncIterator[str]:
    """Start server-everything: ``streamableHttp`` or ``sse``."""
    port = _free_port()
    process = await asyncio.create_subprocess_exec(
        *node_server("everything", kind),
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(2 * PATIENCE):
            await _until_it_listens(port)
        yield f"http://127.0.0.1:{port}/{'sse' if kind == 'sse' else 'mcp'}"
    finally:
        await _ended(process)


@contextlib.asynccontextmanager
async def _that_tells(command: Sequence[str]) -> AsyncIterator[str]:
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        async with asyncio.timeout(2 * PATIENCE):
            url = (await process.stdout.readline()).decode().strip()
        yield url
    finally:
        await _ended(process)


async def _ended(process: asyncio.subprocess.Process) -> None:
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), PATIENCE)
    except TimeoutError:
        process.kill()
        await process.wait()


def _free_port() -> int:
    """It takes a port that it is told, and tells none; this one was free a moment ago."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


async def _until_it_listens(port: int) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.1)  # nothing tells when it is there
            continue
        writer.close()
        return
