"""Pipes and readers for tests, closed when the test ends."""

from __future__ import annotations

import os
from contextlib import ExitStack

from modelwire.transports.line_reader import LineReader

MiB = 1024 * 1024


def open_pipe(stack: ExitStack, *, blocking_writes: bool = True) -> tuple[int, int]:
    reading, writing = os.pipe()
    for fd in (reading, writing):
        stack.callback(close_if_open, fd)
    os.set_blocking(writing, blocking_writes)
    return reading, writing


def close_if_open(fd: int) -> None:
    try:
        os.close(fd)
    except OSError:
        pass


def reader(stack: ExitStack, fd: int, *, max_message: int = 8 * MiB, polled: bool = True) -> LineReader:
    line_reader = LineReader(fd, max_message=max_message, name="the test's input", polled=polled)
    stack.callback(line_reader.close)
    return line_reader
