"""One response as ASGI has it: whether its client was there to the end, as whoever answers must know."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest

from modelwire.server.http import reply
from modelwire.server.http.reply import Reply
from modelwire.server.http.silences import Silences


async def responded(monkeypatch: pytest.MonkeyPatch, disconnect: asyncio.Future[None]) -> tuple[Reply, Any]:
    """A response that is being sent, and whose client somebody watches already."""
    monkeypatch.setattr(reply, "SOON_GONE", 0)
    watched = asyncio.Event()

    async def receive() -> MutableMapping[str, Any]:
        watched.set()
        await disconnect
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        pass

    response = Reply(send, Silences())
    running = asyncio.create_task(response.run(receive))
    await watched.wait()
    return response, running


async def test_a_client_that_was_watched_and_stayed_has_stayed(monkeypatch: pytest.MonkeyPatch) -> None:
    response, running = await responded(monkeypatch, asyncio.get_running_loop().create_future())
    response.finish(b"{}")
    assert await running is True


async def test_a_client_that_went_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    disconnect = asyncio.get_running_loop().create_future()
    _, running = await responded(monkeypatch, disconnect)
    disconnect.set_result(None)
    assert await running is False


async def test_a_client_that_nobody_can_tell_of_is_taken_for_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    disconnect = asyncio.get_running_loop().create_future()
    _, running = await responded(monkeypatch, disconnect)
    disconnect.set_exception(RuntimeError("no such connection"))
    assert await running is False
