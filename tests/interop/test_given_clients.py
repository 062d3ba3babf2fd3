"""Clients of httpx and httpx2 that are given to ours with ``http=``."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys

import pytest

from modelwire import Context, Server
from tests.interop.peers import HERE, LEGACY, MODERN, PATIENCE, PYTHON, ROOT, needs_python_peers

pytestmark = needs_python_peers


def make_server() -> Server:
    server = Server("s")

    @server.tool
    def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    async def slow(ctx: Context) -> str:
        ctx.progress(1, 2)
        return "done"

    @server.tool
    async def forever() -> str:
        await asyncio.Event().wait()
        return ""

    return server


@pytest.mark.parametrize("revision", [MODERN, LEGACY])
@pytest.mark.parametrize("library", ["httpx", "httpx2"])
async def test_a_client_that_was_given_is_used_and_left_open(library: str, revision: str) -> None:
    where = next(PYTHON.parent.parent.glob("lib/python3*/site-packages"))
    async with make_server().serving("http://127.0.0.1:0/mcp") as serving:
        assert serving.url is not None
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-W", "ignore", str(HERE / "given_client.py"), library, str(where), serving.url, revision),
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            stdout=subprocess.PIPE,
        )
        output, _ = await asyncio.wait_for(process.communicate(), 2 * PATIENCE)
    found = json.loads(output)
    assert "nothing listens there" in found.pop("error")
    assert found == {
        "revision": revision,
        "many": [1, 2, 3, 4, 5],
        "said": "done",
        "progress": [1.0],
        "given up": True,
        "left open": True,
    }
