"""Drive a server over a TCP or Unix socket, frame by frame; see `tests.wire`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable

from modelwire.transports.socket_address import parse_address
from tests.transports.sockets import RawClient
from tests.wire import PATIENCE, Talk


class SocketTalk(Talk):
    """Over one connection to a server that listens."""

    def __init__(self, client: RawClient, revision: str, own: Iterable[str] = ()) -> None:
        super().__init__(None, revision, own)
        self.client = client
        self._reading = asyncio.create_task(self._read())

    async def write(self, frame: bytes) -> None:
        await self.client.write(frame + b"\n")

    def close_side(self) -> None:
        """Close the client's side of the connection; it still reads."""
        self.client.write_eof()

    async def stop_reading(self) -> None:
        """Leave what the server sends where it is, until `read_on`."""
        self._reading.cancel()
        await asyncio.wait([self._reading])

    def read_on(self) -> None:
        """Read again."""
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        while True:
            line = await self.client.line()
            if not line:
                self.over()
                return
            if not line.endswith(b"\n"):
                self.ledger.faults.append(f"a line without its end: {line[:300]!r}")
            self.arrived(line.removesuffix(b"\n"))

    async def ended(self) -> None:
        """Wait until the server has closed and everything that it sent has come."""
        async with asyncio.timeout(PATIENCE):
            await self._reading

    async def aclose(self) -> None:
        await self.stop_reading()
        self.client.close()


@contextlib.asynccontextmanager
async def socket_talk(
    url: str | None, revision: str, *, own: Iterable[str] = (), opened: bool = True
) -> AsyncIterator[SocketTalk]:
    """Hold a conversation with the server that listens there; at the end every frame must have been right."""
    assert url is not None
    talk = SocketTalk(await RawClient.to(parse_address(url)), revision, own)
    try:
        if opened:
            await talk.open()
        yield talk
    finally:
        await talk.aclose()
    talk.check()
