"""The addresses of TCP and Unix sockets, written as URLs: ``tcp://host:port`` and ``unix:///path``.

Nothing is resolved or opened here.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from typing import TypeAlias

from modelwire.errors import ConfigError

SCHEMES = ("tcp", "unix")
MAX_PATH = 107 if sys.platform == "linux" else 103
"""Bytes of the longest path that the system can bind or connect a Unix socket to."""

_MAX_PORT = 65535
_TCP_FORM = "write tcp://HOST:PORT, such as tcp://127.0.0.1:9000, or tcp://[::1]:9000 with an IPv6 address"
_UNIX_FORM = "write unix:// and a path from the root, with three slashes in all, such as unix:///run/mcp.sock"
_TCP = re.compile(r"//(?:\[(?P<ipv6>[^\[\]@]*)\]|(?P<host>[^\x00-\x20\x7f\s:/?#@\\\[\]%]*))(?::(?P<port>[0-9]*))?/?")


@dataclass(frozen=True)
class TcpAddress:
    """A host and a port.

    Attributes:
        host: A name or an address; an IPv6 address stands here without its brackets.
        port: The port; 0 has a listener take a free one.
    """

    host: str
    port: int

    def __str__(self) -> str:
        return f"tcp://[{self.host}]:{self.port}" if ":" in self.host else f"tcp://{self.host}:{self.port}"


@dataclass(frozen=True)
class UnixAddress:
    """The path of a Unix socket."""

    path: str

    def __str__(self) -> str:
        return f"unix://{self.path}"


Address: TypeAlias = TcpAddress | UnixAddress


def is_socket_url(text: str) -> bool:
    """Whether a text is meant as the address of a socket, well written or not."""
    return text.partition(":")[0] in SCHEMES and ":" in text


def parse_address(url: str) -> Address:
    """Return the address that a URL names.

    A path is everything after ``unix://``, as it is: nothing is percent-decoded, so that any path can be written behind
    it. Abstract sockets have no permissions, any user may connect to them, and there is no way to name one.

    Args:
        url: ``tcp://host:port`` or ``unix:///path``.

    Raises:
        ConfigError: It is neither; the message shows the right form.
    """
    scheme, _, rest = url.partition(":")
    if scheme == "tcp":
        return _tcp(url, rest)
    if scheme == "unix":
        return _unix(url, rest)
    raise ConfigError(f"{url!r} is no address of a socket: write tcp://HOST:PORT or unix:///PATH")


def _tcp(url: str, rest: str) -> TcpAddress:
    found = _TCP.fullmatch(rest)
    if found is None:
        raise _wrong("tcp:..." if "@" in rest else url, _TCP_FORM)  # what stands before an @ may be a secret
    ipv6, host, port = found["ipv6"], found["host"], found["port"]
    if ipv6 is not None and not _is_ipv6(ipv6):
        raise _wrong(url, f"{ipv6!r} is no IPv6 address; {_TCP_FORM}")
    if not (ipv6 or host):
        raise _wrong(url, f"the host is missing; {_TCP_FORM}")
    if not port:
        raise _wrong(url, f"the port is missing; {_TCP_FORM}")
    if len(port) > len(str(_MAX_PORT)) or int(port) > _MAX_PORT:
        raise _wrong(url, f"ports are numbers up to {_MAX_PORT}; {_TCP_FORM}")
    return TcpAddress(ipv6 or host, int(port))


def _is_ipv6(text: str) -> bool:
    import ipaddress  # costs more than the rest of this file, and few addresses need it

    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def _unix(url: str, rest: str) -> UnixAddress:
    path = rest.removeprefix("//")
    if not rest.startswith("///"):
        meant = os.path.abspath(path) if path and "\0" not in path else "/run/mcp.sock"
        raise _wrong(url, f"{_UNIX_FORM}; is unix://{meant} meant?")
    size = _size(path)
    if size is None or path.endswith("/"):
        raise _wrong(url, f"{path!r} can be no file; {_UNIX_FORM}")
    if size > MAX_PATH:
        raise _wrong(
            url, f"its path has {size} bytes, and the system takes {MAX_PATH} for a socket; choose a shorter one"
        )
    return UnixAddress(path)


def _size(path: str) -> int | None:
    """How many bytes a path has; None when no file can have it."""
    try:
        encoded = os.fsencode(path)
    except UnicodeEncodeError:
        return None
    return None if b"\0" in encoded else len(encoded)


def _wrong(url: str, why: str) -> ConfigError:
    return ConfigError(f"cannot use the address {url!r}: {why}")
