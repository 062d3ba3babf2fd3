"""What goes wrong over HTTP, in words: what happened, to what, and what to do next. No secret is in them."""

from __future__ import annotations

import errno
import html
import os
import re
import socket
import ssl
from collections.abc import Callable, Iterator

from modelwire.errors import HttpFailed
from modelwire.rules.http_request import media_type
from modelwire.transports.http.endpoint import Endpoint, proxy_for, shown_url
from modelwire.transports.http.engine import Broken

EXCERPT = 500
"""Characters of a body that are shown."""
BODY = 1 << 16
"""Bytes of the body of a refusal that are read."""
PASSING = frozenset({429, 502, 503, 504})
"""Statuses of machines that are overloaded, or have lost the server behind them."""

_HINTS = {
    400: "the server does not take the request as it is",
    401: "the server wants to know who asks: give it headers={'Authorization': 'Bearer ...'}",
    403: "the server does not let this client in: check the token in headers=, or whom the server lets in",
    404: "there is no MCP endpoint here: check the path, often /mcp or /sse",
    405: "such requests are not taken here: check the path, often /mcp or /sse",
    406: "the server cannot answer in a form that the protocol knows",
    407: "the proxy wants to know who asks: proxy='http://USER:PASSWORD@HOST:PORT'",
    408: "the server had to wait too long for the request",
    413: "the request is too large for the server",
    415: "the server does not take JSON here: it may be no MCP endpoint",
    421: "the server does not serve this host name",
    429: "there were too many requests; ask more slowly",
    500: "the server failed; its log says why",
    501: "POST is not known there: it may be no MCP endpoint",
    502: "a proxy in between cannot reach the server behind it",
    503: "the server is not available at the moment",
    504: "a proxy in between got no answer from the server behind it",
}


_OPENING = ("server/discover ", "initialize ")
"""How what opens a conversation is told of."""
_TAGS = re.compile(r"(?is)<(style|script)\b.*?(?:</\1\s*>|\Z)|<[^>]*(?:>|\Z)")


def broken_by(error: BaseException, *, connecting: bool) -> Broken:
    """Return what an exception of an HTTP library means.

    Args:
        error: The exception.
        connecting: Whether it came before anything of the request could be sent.
    """
    for cause in _causes(error):
        found = _of_cause(cause)
        if found is not None:
            found.unsent = found.unsent and connecting
            return found
    name = type(error).__name__
    if name == "ClientResponseError":  # its own words show the URL, with the query
        return Broken(f"what it answered is no HTTP: {getattr(error, 'message', '')}")
    return Broken(f"{name}: {_plain(error)}" if str(error) else name, unsent=connecting)


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    for _ in range(8):
        if seen is None:
            return
        yield seen
        inner = getattr(seen, "os_error", None) or getattr(seen, "certificate_error", None)
        seen = inner if isinstance(inner, BaseException) else seen.__cause__ or seen.__context__


def _of_cause(error: BaseException) -> Broken | None:
    if isinstance(error, ssl.SSLCertVerificationError):
        return Broken(
            f"its certificate is not accepted: {getattr(error, 'verify_message', None) or _plain(error)}",
            unsent=True,
            hint="for one of your own, give verify='ca.pem'",
        )
    if isinstance(error, ssl.SSLError):
        reason = getattr(error, "reason", None) or _plain(error)
        return Broken(f"TLS failed: {reason}", unsent=True, hint="is it http:// perhaps?")
    if isinstance(error, socket.gaierror):
        return Broken(f"the host name is not known: {error.strerror}", unsent=True, hint="check its spelling")
    if isinstance(error, ConnectionRefusedError):
        return Broken("nothing listens there", unsent=True, hint="is the server running, and on this port?")
    if isinstance(error, ConnectionResetError):
        return Broken("the connection was reset")
    if isinstance(error, OSError) and error.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ETIMEDOUT):
        return Broken(os.strerror(error.errno or 0), unsent=True, hint="is it behind a firewall?")
    return _BY_NAME.get(type(error).__name__, _nothing)()


def _nothing() -> None:
    return None


_BY_NAME: dict[str, Callable[[], Broken | None]] = {
    "ConnectionTimeoutError": lambda: Broken("it could not be reached in time", unsent=True, hint="is it up?"),
    "ConnectTimeout": lambda: Broken("it could not be reached in time", unsent=True, hint="is it up?"),
    "ClientPayloadError": lambda: Broken("the answer broke off"),
    "ServerDisconnectedError": lambda: Broken("the server closed the connection without an answer"),
    "RemoteProtocolError": lambda: Broken("the server closed the connection without an answer"),
}


def _plain(error: BaseException) -> str:
    """Return an exception's own words, in one short line."""
    return " ".join(str(error).split())[:200]


def failed(endpoint: Endpoint, what: str, broken: Broken) -> HttpFailed:
    """Return the error for a request that came to no reply, or whose reply broke off."""
    hint = f"; {broken.hint}" if broken.hint else ""
    if not broken.unsent and what.startswith(_OPENING) and endpoint.options.tls is None:
        hint = "; does it speak TLS (https://) perhaps?"
    return HttpFailed(
        f"{what}: {endpoint.shown}{_through(endpoint)}: {endpoint.masked(str(broken))}{hint}",
        url=endpoint.shown,
        unsent=broken.unsent,
        broken=True,
    )


def _through(endpoint: Endpoint) -> str:
    """Return what is in between, where that is known: what fails may be there."""
    options = endpoint.options
    proxy = proxy_for(endpoint.url, options.proxy) if options.http is None else None
    return "" if proxy is None else f" through the proxy {shown_url(proxy).rstrip('/')}"


def refused(
    endpoint: Endpoint, what: str, status: int, content_type: str | None, body: bytes, wait: float | None = None
) -> HttpFailed:
    """Return the error for a status that is no success."""
    hint = _HINTS.get(status) or ("the server failed" if status >= 500 else "the server does not take the request")
    if wait is not None:
        hint += f", in {wait:g} s it says"
    return _told(
        endpoint, f"{what}: {endpoint.shown} answered with HTTP {status}; {hint}", status, content_type, body, wait
    )


def no_answer(endpoint: Endpoint, what: str, status: int, content_type: str | None, body: bytes) -> HttpFailed:
    """Return the error for a success that is no answer: a page, or nothing at all."""
    kind = media_type(content_type)
    if not body.strip():
        why = f"answered with HTTP {status} and nothing else; a request wants a result"
    else:
        why = f"answered with HTTP {status} and {kind or 'no Content-Type'}, which is no answer of MCP"
        why += "; a proxy or a login page may be in between, or the path is another" if kind == "text/html" else ""
    return _told(endpoint, f"{what}: {endpoint.shown} {why}", status, content_type, body)


def redirected(endpoint: Endpoint, what: str, status: int, location: str, why: str) -> HttpFailed:
    """Return the error for a redirect that is not followed."""
    location = endpoint.masked(location)
    return HttpFailed(
        f"{what}: {endpoint.shown} redirects (HTTP {status}) to {location or 'nowhere'}, which is not followed: {why}",
        status=status,
        url=endpoint.shown,
        unsent=True,
    )


def _told(
    endpoint: Endpoint, text: str, status: int, content_type: str | None, body: bytes, wait: float | None = None
) -> HttpFailed:
    excerpt = excerpt_of(endpoint, body)
    kind = media_type(content_type)
    words = _words_of(excerpt_of(endpoint, body, 8 * EXCERPT)) if kind == "text/html" else excerpt
    shown = f". It said ({kind or 'no type'}): {words}" if words else ""
    return HttpFailed(
        f"{text}{shown}",
        status=status,
        body=excerpt,
        url=endpoint.shown,
        broken=status in PASSING,
        retry_after=wait,
    )


def _words_of(page: str) -> str:
    """Return what people would read of a page, from its beginning."""
    return _cut(" ".join(html.unescape(_TAGS.sub(" ", page)).split()), EXCERPT)


def excerpt_of(endpoint: Endpoint, body: bytes, most: int = EXCERPT) -> str:
    """Return the beginning of a body in one line, without secrets that it repeats."""
    text = endpoint.masked(body[: 8 * EXCERPT].decode("utf-8", "replace"))
    text = "".join(character if character.isprintable() else " " for character in text)
    return _cut(" ".join(text.split()), most)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]} ..."
