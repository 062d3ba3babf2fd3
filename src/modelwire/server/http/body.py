"""The body of a request, as a whole, within bounds of bytes and time."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Generator
from typing import Any, Final

from modelwire.log import log as _log
from modelwire.rules.http import Refusal
from modelwire.server.http.reply import Receive

SECONDS: Final = 30.0
"""Seconds that a body may take to arrive."""


async def whole_body(receive: Receive, most: int) -> bytes | Refusal:
    """Return the body of a request, or why it is not taken.

    Args:
        receive: ASGI's.
        most: The most bytes that it may have.
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
            return await _rest(receive, most, part if part is not None else await _going_on(step, waits))
    except TimeoutError:
        _log.warning("a request's body did not arrive within %g s", SECONDS)
        return Refusal(408, f"the body did not arrive within {SECONDS:g} s")


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


async def _rest(receive: Receive, most: int, part: Any) -> bytes | Refusal:
    chunks: list[bytes] = []
    size = 0
    while True:
        if part["type"] != "http.request":
            return Refusal(400, "the body did not arrive as a whole")
        chunks.append(part.get("body", b""))
        size += len(chunks[-1])
        if size > most:
            return _too_large(most)
        if not part.get("more_body", False):
            return b"".join(chunks)
        part = await receive()


def _too_large(most: int) -> Refusal:
    return Refusal(413, f"the body is larger than max_message={most} bytes")
