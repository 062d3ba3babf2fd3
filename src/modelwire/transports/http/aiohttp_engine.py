"""HTTP with aiohttp: with sessions of our own, or with one that somebody else has made and will close."""

from __future__ import annotations

import contextlib
import io
import socket
from typing import Any

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from modelwire.transports.http.endpoint import Endpoint, proxy_for
from modelwire.transports.http.engine import CONNECT_SECONDS, KEPT_SECONDS, MOST, Broken, HeaderList
from modelwire.transports.http.trouble import broken_by

_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
"""aiohttp's own 300 s would end every stream; the deadlines are kept by whoever waits for the answer."""
_BUFFER = 1 << 18
_LARGE = 1 << 20
"""Bytes of a body above which aiohttp wants to read it piece by piece."""
_DEAD_AFTER = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))
"""How TCP finds out that a server has gone without a word, while a stream is quiet."""

_CHECK_PROXY = "check proxy=, or HTTP_PROXY and HTTPS_PROXY; proxy=False goes without one"


class AiohttpEngine:
    """Sends requests with aiohttp.

    Args:
        endpoint: The server.
        session: Somebody else's session, which is left open; None for our own.
    """

    def __init__(self, endpoint: Endpoint, session: aiohttp.ClientSession | None = None) -> None:
        self._endpoint = endpoint
        self._given = session
        self._own: list[aiohttp.ClientSession] = []
        self._options: dict[str, Any] = {}
        if session is None:
            self._options = {"proxy": proxy_for(endpoint.url, endpoint.options.proxy)}
            verify = endpoint.options.tls or True
            jar = aiohttp.CookieJar(unsafe=True)  # "unsafe" is aiohttp's word for those of hosts that are addresses
            # What must not wait for others has connections of its own, but shares the cookies.
            self._own = [_session(verify, jar, most) for most in (MOST, 0)]

    async def send(self, method: str, url: str, headers: HeaderList, body: bytes | None, *, urgent: bool) -> _Reply:
        """Send a request; see `modelwire.transports.http.engine.Engine`."""
        session = self._given or self._own[1 if urgent else 0]
        try:
            response = await session.request(
                method,
                URL(url, encoded=True),
                data=body if body is None or len(body) <= _LARGE else io.BytesIO(body),
                headers=CIMultiDict(headers),
                allow_redirects=False,
                raise_for_status=False,
                timeout=_TIMEOUT,
                **self._options,
            )
        except (aiohttp.ClientError, OSError, ValueError, RuntimeError) as error:
            connecting = isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
            broken = broken_by(error, connecting=connecting)
            raise self._at_the_proxy(broken, error) from error
        return _Reply(response)

    def _at_the_proxy(self, broken: Broken, error: Exception) -> Broken:
        """Say so where it is the proxy that did not let us through, and not the server."""
        if not isinstance(error, aiohttp.ClientHttpProxyError):
            return broken
        return Broken(f"the proxy answered with HTTP {error.status}", unsent=True, hint=_CHECK_PROXY)

    async def aclose(self) -> None:
        """Close our own connections."""
        for session in self._own:
            await session.close()

    def release(self) -> None:
        """Close the sockets; the event loop has ended."""
        for session in self._own:
            connector = session.connector
            with contextlib.suppress(Exception):
                session.detach()
            with contextlib.suppress(Exception):
                getattr(connector, "_close_immediately")()  # noqa: B009 - there is no other way without a loop


class _Reply:
    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self._content = response.content
        self.status = response.status

    def header(self, name: str) -> str | None:
        return self._response.headers.get(name)

    async def chunk(self) -> bytes:
        try:
            return await self._content.readany()
        except (aiohttp.ClientError, OSError) as error:
            raise broken_by(error, connecting=False) from error

    def finish(self) -> None:
        self.close()

    def close(self) -> None:
        if self._content.at_eof():
            self._response.release()
        else:
            self._response.close()


def _session(verify: Any, jar: aiohttp.CookieJar, most: int) -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(
        ssl=verify, limit=most, keepalive_timeout=KEPT_SECONDS, socket_factory=_socket, ttl_dns_cache=10
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=jar,
        timeout=_TIMEOUT,
        read_bufsize=_BUFFER,
        skip_auto_headers=("User-Agent", "Accept-Encoding", "Accept"),
    )


def _socket(address: Any) -> socket.socket:
    found = socket.socket(*address[:3])
    found.setblocking(False)
    with contextlib.suppress(OSError):
        found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _DEAD_AFTER:
            if hasattr(socket, name):
                found.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return found
