"""What the notifications carry that a connection handles itself: a cancellation, in both directions, and progress."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct


class Cancelled(Struct):
    """The parameters of ``notifications/cancelled``; the id stays as it came."""

    requestId: Raw
    reason: str | None = None


class Progress(Struct):
    """The parameters of ``notifications/progress``."""

    progressToken: int | str
    progress: float
    total: float | None = None
    message: str | None = None


decode_cancelled = msgspec.json.Decoder(Cancelled).decode
decode_progress = msgspec.json.Decoder(Progress).decode


def cancelled(key: int, reason: str) -> bytes:
    """Return the parameters of the cancellation of a request of ours."""
    words = reason[:200].encode("utf-8", "replace").decode() or "the caller gave up"
    return b'{"requestId":%d,"reason":%s}' % (key, msgspec.json.encode(words))
