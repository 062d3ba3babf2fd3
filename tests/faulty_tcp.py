"""A TCP proxy that spoils what crosses it, as a test says: in pieces, held up, stopped or cut in the middle.

Its words are those of `modelwire.testing.faults`, for bytes instead of frames. It has no clock: what it holds up waits
until the test lets it go. What crosses it is not looked at.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

from tests.wire import PATIENCE

How = Literal["reset", "close", "half", "stall"]
"""A reset of both sides, an orderly end of both, an end of this direction alone, or nothing more at all."""

TURNS = 3
"""Turns of the loop that whoever reads has, so that pieces are not read together."""
LINGER_NOT = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Fault:
    """What happens in one direction of a connection.

    Args:
        split: Bytes of the largest piece that is delivered at once; 0 for as they come.
        after: After how many bytes it is cut; None for never.
        how: How it is cut.
    """

    split: int = 0
    after: int | None = None
    how: How = "reset"


FINE = Fault()
Way = Literal["up", "down"]


class Trap:
    """A fault that strikes once: the first connection over which something goes its way, counted from there.

    Attributes:
        crossing: That connection, once there is one.
        begun: Set then.
    """

    def __init__(self, fault: Fault) -> None:
        self._fault = fault
        self._before = 0
        self._way: Way = "up"
        self.crossing: Crossing | None = None
        self.begun = asyncio.Event()

    def catch(self, crossing: Crossing, way: Way) -> None:
        self.crossing, self._way = crossing, way
        self._before = crossing.crossed[way]
        after = self._fault.after
        crossing.faults[way] = replace(self._fault, after=None if after is None else self._before + after)
        self.begun.set()

    @property
    def crossed(self) -> int:
        """How many bytes have gone that way since."""
        return 0 if self.crossing is None else self.crossing.crossed[self._way] - self._before


class Crossing:
    """One connection through the proxy.

    Attributes:
        up: Bytes that went to the server.
        down: Bytes that went to the client.
        cut: Set once a fault has struck.
    """

    def __init__(
        self, up: Fault, down: Fault, traps: dict[Way, Trap], client: asyncio.StreamWriter, server: asyncio.StreamWriter
    ) -> None:
        self.faults: dict[Way, Fault] = {"up": up, "down": down}
        self.crossed: dict[Way, int] = {"up": 0, "down": 0}
        self._traps = traps
        self.cut = asyncio.Event()
        self._writers = (client, server)
        self._open = asyncio.Event()
        self._open.set()

    @property
    def up(self) -> int:
        return self.crossed["up"]

    @property
    def down(self) -> int:
        return self.crossed["down"]

    def hold(self) -> None:
        """Hold up everything, in both directions, until `release`."""
        self._open.clear()

    def release(self) -> None:
        """Let go what is held up."""
        self._open.set()

    def reset(self) -> None:
        """Reset both sides."""
        for writer in self._writers:
            raw = writer.get_extra_info("socket")
            if raw is not None and raw.fileno() >= 0:
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
            writer.transport.abort()

    def close(self) -> None:
        """End both sides in order."""
        for writer in self._writers:
            writer.close()

    async def pump(self, name: Way, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one direction to its end."""
        while True:
            fault = self.faults[name]
            if fault.after is not None and self.crossed[name] >= fault.after:
                self.cut.set()
                await self._strike(fault.how, writer)
                return
            data = await reader.read(65536)
            if not data:
                break
            if name in self._traps:
                self._traps.pop(name).catch(self, name)
                fault = self.faults[name]
            if fault.after is not None:
                data = data[: fault.after - self.crossed[name]]
            most = fault.split or len(data) or 1
            for at in range(0, len(data), most):
                piece = data[at : at + most]
                await self._open.wait()
                writer.write(piece)
                await writer.drain()
                self.crossed[name] += len(piece)
                for _ in range(TURNS if fault.split else 1):
                    await asyncio.sleep(0)
        await self._open.wait()
        writer.write_eof()

    async def _strike(self, how: How, writer: asyncio.StreamWriter) -> None:
        if how == "reset":
            self.reset()
        elif how == "close":
            self.close()
        elif how == "half":
            writer.write_eof()
        else:
            await asyncio.Event().wait()


class FaultyTcp:
    """The proxy.

    Attributes:
        url: Where it listens, as a URL like that of the server behind it.
        up: What becomes of what clients send, on connections from now on.
        down: The same of what the server sends.
        crossings: The connections, in the order in which they came.
    """

    def __init__(self, url: str) -> None:
        self._target = urlsplit(url)
        self.url = url
        self.up = self.down = FINE
        self.crossings: list[Crossing] = []
        self._traps: dict[Way, Trap] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def trap(self, way: Way, fault: Fault) -> Trap:
        """Have the next connection that carries something spoilt, from there on; also one that is open already."""
        self._traps[way] = trap = Trap(fault)
        return trap

    def disarm(self) -> None:
        """Have no trap any more that nothing has gone into."""
        self._traps.clear()

    async def listen(self) -> asyncio.Server:
        listening = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        self.url = urlunsplit(self._target._replace(netloc=f"127.0.0.1:{port}"))
        return listening

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        to_server = None
        try:
            from_server, to_server = await asyncio.open_connection(self._target.hostname, self._target.port)
            crossing = Crossing(self.up, self.down, self._traps, writer, to_server)
            self.crossings.append(crossing)
            # One that ends does not end the other: that is what a half-closed connection is.
            await asyncio.gather(
                crossing.pump("up", reader, to_server),
                crossing.pump("down", from_server, writer),
                return_exceptions=True,
            )
        except (OSError, asyncio.CancelledError):
            pass  # nobody listens there, which the client sees by the end of its connection; or the proxy ends
        finally:
            for one in (writer, to_server):
                if one is not None:
                    one.close()

    async def aclose(self) -> None:
        """Cut every connection."""
        for crossing in self.crossings:
            crossing.reset()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=PATIENCE)


@contextlib.asynccontextmanager
async def faulty(url: str) -> AsyncIterator[FaultyTcp]:
    """A proxy before a server, for as long as a block runs."""
    proxy = FaultyTcp(url)
    listening = await proxy.listen()
    try:
        yield proxy
    finally:
        listening.close()
        await proxy.aclose()
        await listening.wait_closed()
