"""HTTP with a client of httpx or httpx2 that somebody else has made, and will close."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from modelwire.transports.http.engine import CONNECT_SECONDS, HeaderList
from modelwire.transports.http.trouble import broken_by

_TIMEOUT = {"timeout": {"connect": CONNECT_SECONDS, "read": None, "write": None, "pool": None}}
"""The deadlines are kept by whoever waits for the answer; a stream may be quiet for long."""
_CONNECTING = ("ConnectError", "ConnectTimeout", "PoolTimeout")
"""The names of what httpx and httpx2 raise before a request has left."""


class HttpxEngine:
    """Sends requests with a client that was given.

    Args:
        client: The client.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    async def send(self, method: str, url: str, headers: HeaderList, body: bytes | None, *, urgent: bool) -> _Reply:
        """Send a request; see `modelwire.transports.http.engine.Engine`."""
        client = self._client
        try:
            request = client.build_request(method, url, headers=list(headers), content=body, extensions=_TIMEOUT)
            return _Reply(await client.send(request, stream=True, follow_redirects=False))
        except Exception as error:  # httpx and httpx2 have each their own, and a transport of somebody's may have more
            raise broken_by(error, connecting=type(error).__name__ in _CONNECTING) from error

    async def aclose(self) -> None:
        """Leave the client as it is: it is not ours."""

    def release(self) -> None:
        """Leave the client as it is."""


class _Reply:
    def __init__(self, response: Any) -> None:
        self._response = response
        self._chunks: AsyncIterator[bytes] = response.aiter_bytes()
        self.status: int = response.status_code
        self._over = False

    def header(self, name: str) -> str | None:
        return self._response.headers.get(name)

    async def chunk(self) -> bytes:
        try:
            async for chunk in self._chunks:
                if chunk:
                    return chunk
        except Exception as error:
            raise broken_by(error, connecting=False) from error
        self._over = True
        return b""

    def finish(self) -> None:
        self.close()

    def close(self) -> None:
        if not self._over:
            self._over = True
            _closing(self._response)


def _closing(response: Any) -> None:
    import asyncio

    task = asyncio.ensure_future(response.aclose())
    _CLOSING.add(task)
    task.add_done_callback(_closed)


def _closed(task: Any) -> None:
    _CLOSING.discard(task)
    if not task.cancelled():
        task.exception()


_CLOSING: set[Any] = set()
"""What is being let go of, kept from the garbage collector."""
