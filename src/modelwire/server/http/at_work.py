"""The requests of 2026-07-28 that are being answered at this moment, so that an end can wait for them, and end them.

Those of sessions are their sessions' business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

from modelwire.errors import INTERNAL_ERROR
from modelwire.protocol import jsonrpc
from modelwire.rpc.call import Call
from modelwire.rpc.stream import CLEAN_UP
from modelwire.server.http.answers import Response

WHY = "the server is ending"


async def finish(serving: Collection[asyncio.Future[None]], grace: float) -> None:
    """Wait for what serves whole connections, and cancel what takes too long.

    Args:
        serving: What has been told to end already.
        grace: Seconds that this may take.
    """
    if serving:
        _, late = await asyncio.wait(serving, timeout=grace)
        for task in late:
            task.cancel()
        await asyncio.wait(serving)


class AtWork:
    """What is being answered, and what cleans up after its client has gone."""

    def __init__(self) -> None:
        self._responses: dict[Call, Response] = {}
        self._leaving: set[asyncio.Task[Any]] = set()

    def begin(self, call: Call, response: Response) -> None:
        """Note a request that takes its time."""
        self._responses[call] = response

    def end(self, call: Call) -> None:
        """Note that its response is over."""
        self._responses.pop(call, None)
        if call.cancelled and call.task is not None and not call.task.done():
            self._leaving.add(call.task)
            call.task.add_done_callback(self._leaving.discard)

    def calls(self) -> list[Call]:
        """Return those that are not answered yet."""
        return [call for call in self._responses if call.open]

    async def close(self) -> None:
        """Cancel what is not answered yet, with an error for whoever waits; handlers get a moment to clean up."""
        leaving = set(self._leaving)
        for call, response in list(self._responses.items()):
            if call.open:
                call.cancel(WHY)
                response.finish(jsonrpc.encode_error(call.id, INTERNAL_ERROR, WHY), 503)
                if call.task is not None:
                    leaving.add(call.task)
        if leaving:
            await asyncio.wait(leaving, timeout=CLEAN_UP)
