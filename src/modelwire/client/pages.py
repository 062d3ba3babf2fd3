"""The address of a page that a server wants opened: whether it is one, and what is suspicious about it.

Nothing is opened or fetched here.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import SplitResult, urlsplit


def web_page(url: str) -> SplitResult | None:
    """Return the parts of a page's address; None where it is none, such as a file, a script or half a URL."""
    if not url.isprintable() or " " in url or "\\" in url:
        return None
    try:
        address = urlsplit(url)
        address.port  # noqa: B018 - raises where it is no number
    except ValueError:
        return None
    return address if address.scheme in ("https", "http") and address.hostname else None


def is_protected(address: SplitResult) -> bool:
    """Whether what is done at a page is safe from others on the way there."""
    return address.scheme == "https" or is_loopback(address.hostname or "")


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    return host == "localhost" or (_is_ip(host) and ipaddress.ip_address(host).is_loopback)


def warnings_of(address: SplitResult) -> list[str]:
    """Return what is suspicious about the address of a page, one clause each."""
    host = address.hostname or ""
    found: list[str] = []
    if not is_protected(address):
        found.append("nothing protects what you do there from others on the way (no https)")
    if any(label.startswith("xn--") for label in host.split(".")) or not host.isascii():
        found.append("the host's name has letters that may look like others (Punycode)")
    if address.username is not None:
        found.append("what stands before the @ is not the host")
    if _is_ip(host) and not is_loopback(host):
        found.append("the host has no name, only a number")
    return found


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
