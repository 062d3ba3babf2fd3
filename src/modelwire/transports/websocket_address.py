"""The address of a WebSocket: what is one, and what of it may be shown. It imports nothing that has to be installed."""

from __future__ import annotations

from urllib.parse import urlsplit

from modelwire.errors import ConfigError
from modelwire.transports.http.endpoint import shown_url

_FORM = "write ws://HOST:PORT/PATH or wss://HOST/PATH"


def is_websocket_url(text: str) -> bool:
    """Whether a text is meant as the address of a WebSocket, well written or not."""
    return text.partition(":")[0] in ("ws", "wss") and ":" in text


def is_secure(url: str) -> bool:
    """Whether there is TLS."""
    return url.startswith("wss:")


def checked(url: str) -> str:
    """Return an address that can be connected to.

    Raises:
        ConfigError: It cannot.
    """
    try:
        found = urlsplit(url)
        port, name = found.port, shown_url(url)
    except ValueError as error:
        raise ConfigError(f"cannot use the address of a WebSocket: {error}; {_FORM}") from None
    if not found.hostname or port == 0 or found.fragment or not url.isprintable() or " " in url:
        raise ConfigError(f"cannot use the address {name!r}: {_FORM}")
    return url
