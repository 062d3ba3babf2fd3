"""The body of a request, as a whole, within bounds of bytes and time."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Generator, Mapping
from typing import Any, Final

from modelwire.log import log as _log
from modelwire.rules.http import Refusal
from modelwire.server.http.reply import Receive

SECONDS: Final = 30.0
"""Seconds that a body may take to arrive."""
MAX_ARRIVING = 1 << 28
"""Bytes that may be there of all bodies that have not arrived as a whole; one body alone may have more."""


class Arriving:
    """What is there of the bodies of an application that have not arrived as a whole.

    Attributes:
        bytes: How much.
    """

    __slots__ = ("bytes",)

    def __init__(self) -> None:
        self.bytes = 0


async def whole_body(receive: Receive, most: int, arriving: Arriving) -> bytes | Refusal:
    """Return the body of a request, or why it is not taken.

    Args:
        receive: ASGI's.
        most: The most bytes that it may have.
        arriving: What is there of the others.
    """
    # Most bodies are there already when they are asked for. Only for those that are not there is a timer.
    step = receive().__await__()
    try:
        waits = next(step)
    except StopIteration as done:
        part = done.value
        if part["type"] == "http.request" and not part.get("more_body", False):
            body = part.get("body", b"")
            return body if len(body) <= most else _too_large(most)
        waits = None
    else:
        part = None
    try:
        async with asyncio.timeout(SECONDS):
            first = part if part is not None else await _going_on(step, waits)
            return await _rest(receive, most, arriving, first)
    except TimeoutError:
        _log.warning("a request's body did not arrive within %g s", SECONDS)
        return _refusal(408, f"the body did not arrive within {SECONDS:g} s")


@types.coroutine
def _going_on(step: Generator[Any, Any, Any], waits: Any) -> Generator[Any, Any, Any]:
    """Go on with what was begun, which waits for something: what ``await`` does, from its middle on."""
    while True:
        try:
            sent = yield waits
        except BaseException as error:
            try:
                waits = step.throw(error)
            except StopIteration as done:
                return done.value
        else:
            try:
                waits = step.send(sent)
            except StopIteration as done:
                return done.value


async def _rest(receive: Receive, most: int, arriving: Arriving, part: Any) -> bytes | Refusal:
    chunks: list[bytes] = []
    size = 0
    try:
        while True:
            if part["type"] != "http.request":
                return _refusal(400, "the body did not arrive as a whole")
            chunks.append(part.get("body", b""))
            size += len(chunks[-1])
            arriving.bytes += len(chunks[-1])
            if size > most:
                return _too_large(most)
            if not part.get("more_body", False):
                return b"".join(chunks)
            if size < arriving.bytes > MAX_ARRIVING:
                return _refusal(503, "too many large bodies arrive at once; try again", {"retry-after": "5"})
            part = await receive()
    finally:
        arriving.bytes -= size


def _too_large(most: int) -> Refusal:
    return _refusal(413, f"the body is larger than max_message={most} bytes")


def _refusal(status: int, reason: str, headers: Mapping[str, str] | None = None) -> Refusal:
    """Return a refusal with which the connection ends, since the rest of the body is not read."""
    return Refusal(status, reason, headers={"connection": "close", **(headers or {})})
