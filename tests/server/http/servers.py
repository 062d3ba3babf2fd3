"""A server for the tests of HTTP: tools that answer at once, speak first, wait, ask, and say who asked them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Annotated, Any

from modelwire import Context, Header, Server


@dataclass
class Bench:
    """A server and what happens in it.

    Attributes:
        go: Set, what waits goes on.
        events: What its handlers have done.
        waiting: Set once a handler waits.
    """

    server: Server
    go: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    events: list[str] = field(default_factory=list)

    async def wait(self, name: str) -> None:
        """Wait for `go`, and note what comes of it."""
        self.waiting.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.events.append(f"{name} cancelled")
            self.cancelled.set()
            raise
        self.events.append(f"{name} finished")


def make(**options: Any) -> Bench:
    """Make one."""
    server = Server("http", **options)
    bench = Bench(server)
    _add_those_that_answer_at_once(server)
    _add_those_that_take_their_time(bench)
    server.add_resource("file:///a", lambda: "content", name="a")
    server.add_prompt(lambda: "say", name="prompt")
    return bench


def _add_those_that_answer_at_once(server: Server) -> None:
    @server.tool
    def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    async def where(ctx: Context) -> dict[str, Any]:
        found = ctx.http
        assert found is not None
        return {"client": found.client, "agent": found.headers.get("user-agent"), "path": found.scope["path"]}

    @server.tool
    def region(place: Annotated[str, Header("Region")], number: Annotated[int | None, Header("Number")] = None) -> str:
        return f"{place} {number}"

    @server.tool
    def fails() -> str:
        raise ValueError("no")

    @server.tool(name="größe")
    def size() -> str:
        return "big"


def _add_those_that_take_their_time(bench: Bench) -> None:
    server = bench.server

    @server.tool
    def note() -> str:
        bench.events.append("noted")
        return "noted"

    @server.tool
    async def wait(name: str = "wait") -> str:
        await bench.wait(name)
        return name

    @server.tool
    async def steps(ctx: Context, count: int = 2, then_wait: bool = False) -> str:
        for number in range(count):
            ctx.progress(number + 1, count)
            await asyncio.sleep(0)
        if then_wait:
            await bench.wait("steps")
            ctx.progress(count + 1, count + 1)
        return f"{count} steps"

    @server.tool
    async def ask_name(ctx: Context) -> str:
        form = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        return "hello " + (await ctx.elicit("Who?", schema=form))["name"]
