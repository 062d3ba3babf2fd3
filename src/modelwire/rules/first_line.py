"""Whether the first line of a connection is one to serve. For listeners that anybody may connect to.

A web page can have a browser post to any port of this machine, and the body of such a post could be lines of JSON-RPC.
But before it come a request line and headers. So a connection whose first line is no JSON is never served: a request of
HTTP, an HTTP/2 preface and a TLS handshake do not even begin like a message. Nothing is read, written or awaited here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from modelwire.errors import INVALID_REQUEST, PARSE_ERROR, FrameTooLarge
from modelwire.protocol import jsonrpc
from modelwire.protocol.jsonrpc import InvalidFrame
from modelwire.rules.lines import BOM

_BLANK = b" \t\r\n"
_OPENING = (b"{", b"[")
_HEAD = 1024
_HTTP = re.compile(rb"(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|CONNECT|TRACE|PRI) |[A-Z]+ \S+ HTTP/")
_TLS_HANDSHAKE = b"\x16\x03"


@dataclass(frozen=True)
class Refusal:
    """Why a connection is not served.

    Attributes:
        reason: For the log. It repeats nothing of what came, which may be a secret meant for somebody else.
        frame: What the client is told; None for who speaks another protocol.
    """

    reason: str
    frame: bytes | None = None


class FirstLine:
    """Looks at the first bytes of a connection until they make a line.

    What the framer tolerates before a message (blank lines, a byte order mark) is passed over.

    Args:
        max_message: The longest message in bytes.

    Attributes:
        complete: Whether the first line has come, and is to be served.
    """

    def __init__(self, max_message: int) -> None:
        self.complete = False
        self._limit = max_message
        self._begun = False
        self._taken = bytearray()

    @property
    def taken(self) -> bytes:
        """Everything that came, without what stood before the first message."""
        return bytes(self._taken)

    def feed(self, chunk: bytes) -> Refusal | None:
        """Take in a piece of the stream, cut anywhere.

        Returns:
            Why the connection is to be closed; None when it is not, or when that is still to be seen.
        """
        known = len(self._taken) if self._begun else 0
        self._taken += chunk
        if not self._begun:
            refusal = self._begin()
            if not self._begun:
                return refusal
        end = self._taken.find(b"\n", known)
        if end >= 0:
            return self._judge(self._taken[:end])
        return self._too_long() if len(self._taken) > self._limit + len(b"\r") else None

    def finish(self) -> Refusal | None:
        """Take in the end of the stream, where the last line counts without its LF."""
        return self._judge(self._taken) if self._taken else None

    def _begin(self) -> Refusal | None:
        begun = self._taken.lstrip(_BLANK)
        if begun.startswith(BOM):
            begun = begun[len(BOM) :].lstrip(_BLANK)
        self._taken = begun
        self._begun = begun.startswith(_OPENING)
        if self._begun or BOM.startswith(begun):
            return None
        return Refusal(f"it sent {_what(begun)}; only JSON-RPC messages, one per line, are taken here")

    def _judge(self, line: bytearray) -> Refusal | None:
        message = bytes(line.removesuffix(b"\r"))
        if len(message) > self._limit:
            return self._too_long()
        try:
            jsonrpc.decode(message)
        except InvalidFrame as invalid:
            if invalid.code == PARSE_ERROR:
                return _told(invalid)
            # It is JSON, and will be answered as any other message that breaks a rule.
        self.complete = True
        return None

    def _too_long(self) -> Refusal:
        reason = str(FrameTooLarge(self._limit))
        return _told(InvalidFrame(INVALID_REQUEST, reason, **jsonrpc.peek(bytes(self._taken[:_HEAD]))))


def _told(invalid: InvalidFrame) -> Refusal:
    told = f"{invalid.reason}. The first line of a connection must be a message, so the connection was closed"
    return Refusal(
        f"its first line is no message: {invalid.reason}", jsonrpc.encode_error(invalid.id, invalid.code, told)
    )


def _what(begun: bytearray) -> str:
    if _HTTP.match(begun[:_HEAD]):
        return "an HTTP request"
    if begun.startswith(_TLS_HANDSHAKE):
        return "a TLS handshake"
    return "no JSON"
