"""Opening a WebSocket to a server, through a proxy where the environment names one, and why it did not work.

The stream over it is `modelwire.transports.websocket_stream`'s business. A redirect is not followed: headers may be
secrets, and are for the address that they were given with.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import msgspec
from websockets.asyncio.client import connect
from websockets.exceptions import (
    InvalidHeader,
    InvalidMessage,
    InvalidProxy,
    InvalidStatus,
    NegotiationError,
    WebSocketException,
)
from websockets.http11 import Response
from websockets.proxy import get_proxy, parse_proxy
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from modelwire.errors import ConfigError, ConnectionFailed
from modelwire.rules.http import is_loopback
from modelwire.transports.http.endpoint import shown_url
from modelwire.transports.socket_address import TcpAddress
from modelwire.transports.socket_connect import connect_tcp
from modelwire.transports.socket_stream import tune
from modelwire.transports.websocket_stream import CLOSE_SECONDS, WRITE_LIMIT, WebSocketStream, Wire

SUBPROTOCOL = "mcp"
_EXCERPT = 300
HINTS = {
    200: "Is it an HTTP endpoint? Then use http:// or https://",
    400: "Does it speak MCP over WebSocket, with the subprotocol 'mcp'?",
    401: "It wants to know who asks: pass headers={'Authorization': '...'}",
    403: "It does not let this client in: are headers=, host and origin as it wants them?",
    404: "There is nothing at this path",
    405: "Is it an HTTP endpoint? Then use http:// or https://",
    407: "The proxy wants credentials: name it with them, as in http://user:password@proxy:3128",
    426: "It speaks another version of WebSocket",
    501: "It serves no WebSockets; use http:// or https://",
}


class _Connect(connect):
    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


async def connect_websocket(
    url: str, *, headers: Mapping[str, str], tls: ssl.SSLContext | None, max_message: int
) -> WebSocketStream:
    """Open a WebSocket, and return the stream.

    Args:
        url: ``ws://host:port/path`` or ``wss://...``.
        headers: More headers of the request.
        tls: Whom to trust; None for ``ws://``.
        max_message: The longest message that is accepted, in bytes.

    Raises:
        ConnectionFailed: It did not work; the message says why and what to do.
        ConfigError: The proxy that the environment names makes no sense, or needs what is not installed.
    """
    name = shown_url(url)
    proxy = _proxy(url)
    try:
        wire = await _opened(url, headers, tls, max_message, proxy, name)
    except (WebSocketException, OSError, EOFError, ImportError) as error:
        raise _failed(name, error, proxy) from error
    return WebSocketStream(wire, name=name, max_message=max_message)


async def _opened(
    url: str, headers: Mapping[str, str], tls: ssl.SSLContext | None, max_message: int, proxy: str | None, name: str
) -> Wire:
    connection = None if proxy is not None else await _connection(url, name)
    options: dict[str, Any] = {"ssl": tls, "sock": connection}
    try:
        wire = await _Connect(
            url,
            subprotocols=[Subprotocol(SUBPROTOCOL)],
            compression=None,
            additional_headers=dict(headers),
            proxy=proxy,
            open_timeout=None,
            ping_interval=None,
            close_timeout=CLOSE_SECONDS,
            max_size=max_message,
            write_limit=WRITE_LIMIT,
            create_connection=Wire,
            **{key: value for key, value in options.items() if value is not None},
        )
    except BaseException:
        if connection is not None:
            connection.close()
        raise
    assert isinstance(wire, Wire)
    return wire


async def _connection(url: str, name: str) -> socket.socket:
    target = parse_uri(url)
    connection = await connect_tcp(TcpAddress(target.host, target.port), name)
    tune(connection)
    return connection


def _proxy(url: str) -> str | None:
    """Return the proxy that the environment names, but for this machine's own servers, which nobody else reaches."""
    if is_loopback(urlsplit(url).hostname or ""):
        return None
    try:
        proxy = get_proxy(parse_uri(url))
        if proxy is not None:
            parse_proxy(proxy)
        return proxy
    except InvalidProxy as error:
        name = shown_url(url)
        raise ConfigError(f"the environment names a proxy for {name} that cannot be used: {error.msg}") from None


# ------------------------------------------------------------------ why it did not work


def _failed(name: str, error: Exception, proxy: str | None) -> ConnectionFailed | ConfigError:
    if isinstance(error, ImportError):
        return ConfigError(f"cannot connect to {name} through a SOCKS proxy: {error}: pip install python-socks")
    return ConnectionFailed(f"cannot connect to {name}{_through(proxy)}: {_why(error)}")


def _through(proxy: str | None) -> str:
    return "" if proxy is None else f" through the proxy {shown_url(proxy).rstrip('/')}"


def _why(error: Exception) -> str:
    if isinstance(error, InvalidStatus):
        return _refused(error.response)
    if isinstance(error, ssl.SSLError):
        return no_tls(error)
    if isinstance(error, ConnectionError | EOFError) or isinstance(error.__cause__, EOFError):
        return "it closed the connection before it had answered. Is the port right, and is TLS (wss://) what it speaks?"
    if isinstance(error, InvalidMessage):
        if "HTTP/1.0" in _chain(error):
            return "it answers with HTTP/1.0, which has no WebSockets. Is the address right?"
        return f"it answers with something else than HTTP ({_chain(error)}). Is the port right?"
    if isinstance(error, InvalidHeader | NegotiationError):
        return f"its answer makes no WebSocket: {error}"
    if isinstance(error, WebSocketException):
        return _chain(error)
    return str(error) or type(error).__name__


def no_tls(error: ssl.SSLError) -> str:
    """Return why TLS came to nothing, and what to do."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not trusted: {error.verify_message or error.reason}. "
            "Pass verify= a file with the authority that signed it"
        )
    return f"TLS failed ({error.reason or error}). Does it speak TLS? Without it, write ws://"


def _chain(error: BaseException) -> str:
    parts = [str(error)]
    while error.__cause__ is not None:
        error = error.__cause__
        parts.append(str(error))
    return ": ".join(part for part in parts if part)


def _refused(response: Response) -> str:
    status = response.status_code
    try:
        said = f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        said = str(status)
    where = response.headers.get("Location")
    if 300 <= status < 400 and where is not None:
        return f"it answers {said}, and redirects are not followed; it names {shown_url(where)!r}"
    body = bytes(response.body or b"")
    try:
        return f"it answers {said}: {msgspec.json.decode(body, type=_Refusal).error.message[:_EXCERPT]}"
    except (msgspec.MsgspecError, UnicodeDecodeError):
        pass
    excerpt, hint = _excerpt(body.decode("utf-8", "replace")), HINTS.get(status)
    return f"it answers {said}{f': {excerpt}' if excerpt else ''}{f'. {hint}' if hint else ''}"


def _excerpt(text: str) -> str:
    if "<html" in text[:1000].lower():
        text = re.sub(r"<[^>]*>", " ", text)
    text = " ".join(text.split())
    return f"{text[:_EXCERPT]}..." if len(text) > _EXCERPT else text


class _Error(msgspec.Struct):
    message: str


class _Refusal(msgspec.Struct):
    error: _Error
