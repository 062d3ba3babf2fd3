"""What browsers ask before a page of another origin may call us, and what we say for origins that were allowed.

Only for those: without a word from us a browser keeps pages of other origins out (Fetch standard, "CORS protocol").
Whether an origin is allowed is `modelwire.rules.http`'s business.
"""

from __future__ import annotations

import re
from typing import Final

from modelwire.rules.http import Headers

METHODS: Final = b"POST, GET, DELETE"
_EXPOSED: Final = b"Mcp-Session-Id, WWW-Authenticate, Retry-After"
_HOUR: Final = b"3600"
_NAMES: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~, -]{1,2000}\Z")


def shared_with(origin: str) -> list[tuple[bytes, bytes]]:
    """Return the headers that let a page read a response.

    Args:
        origin: The page's origin, which was allowed.
    """
    return [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-expose-headers", _EXPOSED),
        (b"vary", b"origin"),
    ]


def preflight(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Return what else the answer to a browser's question before a request has; nothing where it is no such question.

    Any header may be sent: which ones repeat parameters of tools, only those tools know.

    Args:
        headers: The headers of the OPTIONS request.
    """
    if headers.one("access-control-request-method") is None:
        return []
    found = [(b"access-control-allow-methods", METHODS), (b"access-control-max-age", _HOUR)]
    wanted = headers.one("access-control-request-headers")
    if wanted is not None and _NAMES.match(wanted):
        found.append((b"access-control-allow-headers", wanted.encode()))
    return found
