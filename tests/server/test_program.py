"""A server as a whole program: what handlers do to the loop does not end it, and one signal does."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

PROGRAM = """
import asyncio, sys, time
from modelwire import Server

server = Server("program")

@server.tool
async def exit_in_a_task() -> str:
    async def leave() -> None:
        raise SystemExit(4)
    asyncio.get_running_loop().create_task(leave())
    await asyncio.sleep(0)
    return "answered"

@server.tool
async def exit_in_a_group() -> str:
    async def leave() -> None:
        raise SystemExit(4)
    async with asyncio.TaskGroup() as group:
        group.create_task(leave())
    return "never"

@server.tool
async def interrupt() -> str:
    raise KeyboardInterrupt

@server.tool(inline=True)
def hold() -> str:
    print("holding", file=sys.stderr, flush=True)
    time.sleep(60)
    return "never"

server.run()
"""

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


class Program:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.process, self.stdin, self.stdout, self.stderr = process, process.stdin, process.stdout, process.stderr
        self._last = 0

    def send(self, tool: str) -> None:
        self._last += 1
        params = {"name": tool, "_meta": META}
        message = {"jsonrpc": "2.0", "id": self._last, "method": "tools/call", "params": params}
        self.stdin.write(json.dumps(message).encode() + b"\n")

    async def call(self, tool: str) -> dict[str, object]:
        self.send(tool)
        answer = json.loads(await asyncio.wait_for(self.stdout.readline(), 30))
        assert answer["id"] == self._last
        return answer

    async def end(self) -> int:
        self.stdin.close()
        await asyncio.wait_for(self.process.communicate(), 30)
        assert self.process.returncode is not None
        return self.process.returncode


@asynccontextmanager
async def program() -> AsyncIterator[Program]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", PROGRAM, stdin=pipe, stdout=pipe, stderr=pipe)
    try:
        yield Program(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def test_a_system_exit_in_a_handlers_own_task_does_not_end_the_server() -> None:
    async with program() as server:
        assert "answered" in str(await server.call("exit_in_a_task"))
        assert "unknown tool" in str(await server.call("no_such_tool")).lower()
        assert await server.end() == 0


async def test_a_system_exit_in_a_handlers_task_group_fails_its_call_only() -> None:
    async with program() as server:
        assert "isError" in str(await server.call("exit_in_a_group"))
        assert "answered" in str(await server.call("exit_in_a_task"))
        assert await server.end() == 0


async def test_a_keyboard_interrupt_that_a_handler_raises_fails_its_call_only() -> None:
    async with program() as server:
        assert "isError" in str(await server.call("interrupt"))
        assert "answered" in str(await server.call("exit_in_a_task"))
        assert await server.end() == 0


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_one_signal_ends_a_server_whose_loop_a_tool_holds(number: signal.Signals, status: int) -> None:
    async with program() as server:
        server.send("hold")
        assert await asyncio.wait_for(server.stderr.readline(), 30) == b"holding\n"
        server.process.send_signal(number)
        assert await asyncio.wait_for(server.process.wait(), 30) == status
