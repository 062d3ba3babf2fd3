"""What to tell people when a server ends, or keeps them waiting: in words, with what is most often the cause."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from modelwire.errors import ConnectionFailed, ConnectionLost, RequestTimeout, ServerExited
from modelwire.rpc.connection import Connection
from modelwire.rpc.message_stream import MessageStream
from modelwire.transports.process import ProcessStream, describe_exit

_SHOWN = 80
"""Bytes of an unfinished line that are shown."""
_MISSING_VARIABLE = re.compile(r"KeyError: '(\w+)'")


def how_it_ended(stream: MessageStream | None) -> ConnectionLost:
    """Return why there is nothing more to receive from a stream."""
    if isinstance(stream, ProcessStream):
        return stream.how_it_ended()
    return ConnectionLost("the server closed the connection")


def at_start(error: ConnectionLost, connection: Connection, strays: Sequence[str]) -> ConnectionLost:
    """Return the error for a request that was to open the conversation when the connection ended.

    Args:
        error: How it ended.
        connection: The connection.
        strays: Errors that had come and named no request, one clause each: a server that is full may say so.
    """
    if not isinstance(error, ServerExited):
        clauses = [*strays, *connection.noticed(connection.heard_count)]
        heard = f"; meanwhile: {'; '.join(clauses)}" if clauses else ""
        return ConnectionLost(f"while the conversation was being opened, {error}{heard}")
    noise = connection.noticed(connection.heard_count)
    if noise:
        error = error.hinted(f"on its stdout came {noise[0]}")
    if error.exit_code == 0:
        return error.hinted("it ended without serving: does it call server.run()?")
    for name in _MISSING_VARIABLE.findall(error.stderr):
        if name in os.environ:
            return error.hinted(f"a server gets a minimal environment; hand {name} on with pass_env=[{name!r}] or env=")
    return error


def refused_at(error: ConnectionFailed, place: str) -> ConnectionFailed:
    """Return the error for a conversation that was not opened, with where that was."""
    return error if place in str(error) else ConnectionFailed(f"{place}: {error}")


def still_waiting(late: RequestTimeout, stream: MessageStream | None, place: str = "") -> RequestTimeout:
    """Return the error for an answer that did not come, with what the server's process does, or where it was asked."""
    if not isinstance(stream, ProcessStream):
        return RequestTimeout(late.method, late.seconds, late.heard, late.setting, place=place) if place else late
    state = "the server's process is running"
    if stream.exit_code is not None:
        state = f"the server's process {describe_exit(stream.exit_code)}"
    beginning = stream.unfinished
    heard = late.heard
    if beginning:
        shown = beginning[:_SHOWN].decode("utf-8", "replace")
        heard = [*heard, f"the beginning of a line, {shown!r}, without its end"]
    return RequestTimeout(late.method, late.seconds, heard, late.setting, process=state, stderr=stream.stderr_tail())
