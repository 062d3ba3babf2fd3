"""A conversation with a server over HTTP, in this process, frame by frame as `tests.wire` has it over everything else.

Each frame is a POST of its own with the headers that its revision wants; a handshake revision has a session, and a
stream of GET once it is open. Whatever comes on any of them is put where the test looks for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterable
from typing import Any

from modelwire import Server
from modelwire.testing.fake_client import Pending, key_of
from tests.server.http.asgi import Exchange, Http, Modern
from tests.wire import MODERN, PREFIX, Talk

_HEADERLESS = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"}
"""What goes with a frame of 2026-07-28 that cannot be read."""


class HttpTalk(Talk):
    """Over HTTP."""

    def __init__(self, server: Server, revision: str, own: Iterable[str] = ()) -> None:
        super().__init__(None, revision, own)
        self.http = Http(server.asgi())
        self._opening: Exchange | None = None
        self._listening: Exchange | None = None
        self._asked: dict[str, Exchange] = {}

    def received(self, frame: bytes) -> None:
        """Take in what came; exchanges call it, as they would a ledger."""
        self.arrived(frame)

    async def write(self, frame: bytes) -> None:
        message = _read(frame)
        exchange = self.http.post(frame, self._headers(message), ledger=self)  # type: ignore[arg-type]
        if _method(message) == "initialize" and self._opening is None:
            self._opening = exchange
        if _method(message) is not None and "id" in message:
            self._asked.setdefault(key_of(message["id"]), exchange)
        opened = _method(message) in ("notifications/initialized", "initialized") and "result" not in message
        if opened and self._listening is None and self.revision != MODERN:
            given = {**self._session(), "Accept": "text/event-stream"}
            self._listening = self.http.ask("GET", given, ledger=self)  # type: ignore[arg-type]
        await asyncio.sleep(0)

    async def cancel(self, request: Pending, reason: str | None = None) -> None:
        if self.revision == MODERN:
            await self._asked[key_of(request.id)].leave()
        else:
            await super().cancel(request, reason)

    def _headers(self, message: Any) -> dict[str, Any]:
        named = _revision_of(message)
        if named is None and (self.revision != MODERN or _method(message) == "initialize"):
            return self._session()
        if _method(message) is None:
            return _HEADERLESS
        try:
            return {**Modern.headers(message), "MCP-Protocol-Version": named or MODERN}
        except (KeyError, TypeError, AttributeError):  # without a name, or with one that is none
            return {"MCP-Protocol-Version": named or MODERN, "Mcp-Method": message["method"]}

    def _session(self) -> dict[str, Any]:
        found = None if self._opening is None else self._opening.headers.get("mcp-session-id")
        later = found is not None and self.revision >= "2025-06-18"
        return {"Mcp-Session-Id": found, "MCP-Protocol-Version": self.revision if later else None}

    async def aclose(self) -> None:
        await self.http.aclose()


def _read(frame: bytes) -> Any:
    try:
        return json.loads(frame)
    except (ValueError, RecursionError):
        return None


def _method(message: Any) -> str | None:
    found = message.get("method") if isinstance(message, dict) else None
    return found if isinstance(found, str) else None


def _revision_of(message: Any) -> str | None:
    params = message.get("params") if isinstance(message, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta.get(PREFIX + "protocolVersion") if isinstance(meta, dict) else None


@contextlib.asynccontextmanager
async def http_talk(
    server: Server, revision: str, *, own: Iterable[str] = (), opened: bool = True
) -> AsyncIterator[HttpTalk]:
    """Hold a conversation over HTTP; at the end every frame must have been right."""
    talk = HttpTalk(server, revision, own)
    try:
        if opened:
            await talk.open()
        yield talk
    finally:
        await talk.aclose()
    talk.check()
