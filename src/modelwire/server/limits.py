"""How large a result may be, and what is said instead of one that is larger.

The size of a result is that of its JSON, without the JSON-RPC envelope: what the client would have to take in.
"""

from __future__ import annotations

from typing import Any

from modelwire.errors import INTERNAL_ERROR, RpcError
from modelwire.log import log as _log
from modelwire.protocol import wire
from modelwire.rpc.call import Call

_UNITS = ((1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"))


def too_large(what: str, size: int, limit: int) -> str:
    """Return the message for a result above the limit, and tell the log what the server's author can do.

    Args:
        what: What gave the result, such as "tool 'search'".
        size: Its size in bytes.
        limit: The most that is sent, in bytes.
    """
    said = f"The result of the {what} is too large: {_bytes(size)}, where at most {_bytes(limit)} are sent."
    _log.error("%s Return less at a time, or raise max_result of the Server.", said)
    return f"{said} Ask for less, such as a page, a range or a filter, if there is a way to."


def oversized(what: str, size: int, limit: int) -> RpcError:
    """Return the error that goes in place of a result above the limit; the arguments are those of `too_large`."""
    return RpcError(INTERNAL_ERROR, too_large(what, size, limit), {"size": size, "limit": limit})


def limited(call: Call, result: Any, what: str, limit: int | None) -> Any:
    """Return the result of a resource or prompt, as JSON where there is a limit to keep.

    Args:
        call: The request.
        result: Its result.
        what: What gave it, for the message.
        limit: The most bytes that it may have; None for any number.

    Raises:
        RpcError: It is larger; the message says how large.
        WireError: It cannot be written as JSON.
    """
    if limit is None:
        return result
    encoded = wire.encode_result(result, call.method, call.peer.revision, call.connection.dispatcher.server_info)
    if len(encoded) > limit:
        raise oversized(what, len(encoded), limit)
    return encoded


def _bytes(count: int) -> str:
    for unit, name in _UNITS:
        if count >= unit:
            return f"{count} bytes ({count / unit:.1f} {name})"
    return f"{count} bytes"
