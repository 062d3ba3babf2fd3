"""Where a server is reached over HTTP, and what is said about that: headers, certificates, a proxy, a given client.

Everything is checked when it is given, and no secret of it is ever shown. Nothing is opened here.
"""

from __future__ import annotations

import base64
import re
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from modelwire.errors import ConfigError
from modelwire.log import log as _log
from modelwire.protocol.revisions import Revision
from modelwire.rules.http_request import origin
from modelwire.rules.lines import DEFAULT_MAX_MESSAGE
from modelwire.rules.param_headers import Path

Said: TypeAlias = Mapping[str, str] | Callable[[], Awaitable[Mapping[str, str]]]
"""The headers that the user wants, or what is asked for them before each request."""

_LEFT_OUT = frozenset({"accept", "content-type"})
"""What many write into their configurations, and what the protocol leaves no choice about."""
_RESERVED = re.compile(r"(?:last-event-id|mcp-.*)\Z")
_FORM = "write http://HOST:PORT/PATH or https://HOST/PATH, such as http://127.0.0.1:8000/mcp"
_PLAIN = "/%:@!$&'()*+,;=?~"
"""What may stand in a path or a query as it is; `quote` leaves letters, digits and `_.-` alone by itself."""
_SHORTEST_SECRET = 6
_RECENT = 32


def is_http_url(target: str) -> bool:
    """Whether a target is meant as a URL of HTTP."""
    return target.startswith(("http://", "https://"))


@dataclass(frozen=True)
class HttpOptions:
    """What is said about a server behind HTTP.

    Attributes:
        headers: Headers of every request, checked.
        tls: Whom to trust over TLS; None for http://.
        proxy: The URL of a proxy; False for none, None for what the environment says.
        http: Somebody else's client of HTTP.
    """

    headers: Said = field(default_factory=dict[str, str])
    tls: ssl.SSLContext | None = None
    proxy: str | bool | None = None
    http: Any = None


@dataclass
class Known:
    """What an endpoint was found to be.

    Attributes:
        revision: The revision that was agreed on last.
        old: Whether it speaks HTTP+SSE.
    """

    revision: Revision | None = None
    old: bool = False


MOST_KNOWN = 1000
_KNOWN: dict[str, Known] = {}
"""What was found out in this process, by origin and path."""


@dataclass
class Endpoint:
    """One server, as its client sees it.

    Attributes:
        url: Where it is, without a user and a fragment.
        shown: What to call it, for people: the same without the query, or its name in a configuration.
        options: What was said about it.
        max_message: The longest message that is accepted, in bytes.
        tools: The headers that repeat arguments, by the tool's name; for whoever lists the tools to fill in.
        old: Whether it is said to speak HTTP+SSE.
    """

    url: str
    shown: str
    options: HttpOptions
    max_message: int = DEFAULT_MAX_MESSAGE
    tools: dict[str, dict[str, Path]] = field(default_factory=dict[str, dict[str, Path]])
    old: bool = False
    _static: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    _secrets: list[str] = field(default_factory=list[str])
    _recent: list[str] = field(default_factory=list[str])
    """Those of headers that a function has said, of which the last ones are known."""

    @property
    def known(self) -> Known:
        """What it was found to be, for everybody in this process."""
        found = _KNOWN.setdefault(shown_url(self.url), Known())
        if len(_KNOWN) > MOST_KNOWN:
            del _KNOWN[next(iter(_KNOWN))]
        if self.old:
            found.old = True
        return found

    def forget(self) -> None:
        """Find out anew what it is."""
        _KNOWN.pop(shown_url(self.url), None)

    async def headers(self) -> list[tuple[str, str]]:
        """Return the headers that the user wants, for one request.

        Raises:
            LocalError: The function that gives them has failed, or gives none that can be sent.
        """
        source = self.options.headers
        if not callable(source):
            return self._static
        headers = _fit(await source())
        self._recent = [*_secret(value for _, value in headers if value not in self._recent), *self._recent][:_RECENT]
        return [*self._static, *headers]

    def masked(self, text: str) -> str:
        """Return a text of the server's without the values of headers that it repeats."""
        for secret in sorted({*self._secrets, *self._recent}, key=len, reverse=True):
            text = text.replace(secret, "***")
        return text


def endpoint(
    url: str,
    options: HttpOptions,
    *,
    max_message: int = DEFAULT_MAX_MESSAGE,
    old: bool = False,
    called: str | None = None,
) -> Endpoint:
    """Return the endpoint of a URL.

    Args:
        url: The URL.
        options: What is said about it.
        max_message: The longest message that is accepted, in bytes.
        old: Whether it is said to speak HTTP+SSE.
        called: What to call it instead of its address, which may have secrets in it.

    Raises:
        ConfigError: The URL, or something that is said about it, makes no sense.
    """
    shown = called or repr(shown_url(url))
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ConfigError(f"cannot connect to {shown}: {called or error}; {_FORM}") from None
    if not parts.hostname or any(character <= " " for character in url):
        raise ConfigError(f"cannot connect to {shown}: {_FORM}")
    try:
        name = parts.hostname if parts.hostname.isascii() else parts.hostname.encode("idna").decode()
    except UnicodeError:
        raise ConfigError(f"cannot connect to {shown}: its host is no name; {_FORM}") from None
    host = f"[{name}]" if ":" in name else name
    netloc = host if port is None else f"{host}:{port}"
    clean = urlunsplit((parts.scheme, netloc, quote(parts.path or "/", _PLAIN), quote(parts.query, _PLAIN), ""))
    _check(options)
    # Many a token stands in a query; the name of what was given one is no secret.
    secrets = _secret(part for pair in parts.query.split("&") for part in _both(pair.partition("=")[2]))
    if called is not None:
        secrets += _secret((parts.path, host, parts.query))
    static = [] if callable(options.headers) else _fit(options.headers)
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        static.insert(0, ("Authorization", f"Basic {base64.b64encode(user).decode()}"))
        secrets += [secret for secret in _both(parts.password or "") if secret]
    secrets += _secret(value for _, value in static)
    return Endpoint(clean, called or shown_url(clean), options, max_message, old=old, _static=static, _secrets=secrets)


def _both(value: str) -> tuple[str, str]:
    """Return a part of a URL as it is written and as it is meant."""
    return value, unquote(value)


def _secret(values: Iterable[str]) -> list[str]:
    """Return what of these values nobody is to see: each, and what comes after its first word, as in ``Bearer ...``."""
    parts = [part for value in values for part in (value, *value.split(" ", 1)[1:])]
    return [part for part in parts if len(part) >= _SHORTEST_SECRET]


def shown_url(url: str) -> str:
    """Return a URL for people: without user, query and fragment, where secrets are."""
    scheme, mark, rest = url.partition("://")
    rest = re.split(r"[?#]", rest, maxsplit=1)[0]
    authority, slash, path = rest.partition("/")
    return f"{scheme}{mark}{authority.rpartition('@')[2]}{slash}{path}"


def sendable(url: str) -> str:
    """Return a URL that a server gave as a request can name it: without user and fragment, and quoted."""
    parts = urlsplit(url)
    netloc = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, netloc, quote(parts.path or "/", _PLAIN), quote(parts.query, _PLAIN), ""))


def _check(options: HttpOptions) -> None:
    if options.proxy is True or not isinstance(cast(Any, options.proxy), str | bool | None):
        raise ConfigError(
            "proxy= is a URL such as 'http://proxy:3128', or False for none whatever the environment says"
        )
    if isinstance(options.proxy, str) and not is_http_url(options.proxy):
        raise ConfigError(f"proxy={shown_url(options.proxy)!r} is no URL of an HTTP proxy, such as 'http://proxy:3128'")
    if options.http is not None and options.proxy is not None:
        raise ConfigError("proxy= does nothing beside http=: the client that was given has its own")


def proxy_for(url: str, proxy: str | bool | None) -> str | None:
    """Return the proxy to use: the one given, or else that of HTTP_PROXY, HTTPS_PROXY and NO_PROXY.

    Args:
        url: Where to.
        proxy: What was given; False for none.

    Raises:
        ConfigError: The environment names a proxy of another kind.
    """
    if proxy is not None:
        return proxy if isinstance(proxy, str) else None
    from urllib.request import getproxies, proxy_bypass

    scheme, host, _ = origin(url)
    found = getproxies()
    if proxy_bypass(urlsplit(url).netloc) or proxy_bypass(host or ""):
        return None
    chosen = found.get(scheme) or found.get("all")
    if chosen and "://" not in chosen:
        chosen = f"http://{chosen}"
    if chosen and not is_http_url(chosen):
        raise ConfigError(
            f"{shown_url(chosen)!r}, which {scheme.upper()}_PROXY or ALL_PROXY names, is no HTTP proxy; "
            "give proxy='http://HOST:PORT', or proxy=False for none"
        )
    return chosen or None


def _fit(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return headers as a list, without those about which the protocol leaves no choice; no message shows a value."""
    found: list[tuple[str, str]] = []
    for name, value in headers.items():
        if _RESERVED.match(name.lower()):
            hint = "; revision= chooses the revision" if name.lower() == "mcp-protocol-version" else ""
            raise ConfigError(f"headers=: {name} is the library's to set{hint}")
        if name.lower() in _LEFT_OUT:
            _log.debug("headers=: %s is left out; the protocol says what it is", name)
            continue
        found.append((name, value.strip(" \t")))
    return found
