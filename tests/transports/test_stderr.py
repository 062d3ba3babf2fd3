"""A child's stderr: where its lines go, and that a broken target costs nothing else."""

from __future__ import annotations

import asyncio
import io
import logging
import os

import pytest

from modelwire.transports.stderr import TAIL_BYTES, StderrReader, StderrTarget


def read(data: bytes, target: StderrTarget | None, *more: bytes) -> StderrReader:
    """Everything a child wrote, in as many reads as pieces are given."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    reader = StderrReader(reading, target, ())
    for piece in (data, *more):
        os.write(writing, piece)
        reader.drain()
    os.close(writing)
    reader.close()
    return reader


async def test_a_text_file_takes_whole_lines() -> None:
    target = io.StringIO()
    assert read(b"one\nt", target, b"wo\n", b"end").tail == "one\ntwo\nend"
    assert target.getvalue() == "one\ntwo\nend\n"


async def test_a_binary_file_takes_utf8() -> None:
    target = io.BytesIO()
    read("日本\n".encode(), target)
    assert target.getvalue() == "日本\n".encode()


async def test_bytes_that_are_no_utf8_are_replaced() -> None:
    lines: list[str] = []
    assert read(b"caf\xe9\n\xe6\x97", lines.append).tail == "caf\ufffd\n\ufffd"
    assert lines == ["caf\ufffd", "\ufffd"]


async def test_a_line_without_end_is_forwarded_in_pieces() -> None:
    lines: list[str] = []
    piece = b"." * (TAIL_BYTES // 2)
    read(piece, lines.append, piece, piece, piece)
    assert "".join(lines) == "." * 2 * TAIL_BYTES
    assert len(lines) == 2


async def test_a_target_that_fails_is_logged_and_left_out(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[str] = []

    def broken(line: str) -> None:
        calls.append(line)
        raise OSError("disk full")

    with caplog.at_level(logging.ERROR, logger="modelwire"):
        assert read(b"one\ntwo\n", broken, b"three\n").tail == "one\ntwo\nthree\n"
    assert calls == ["one"]
    assert "only kept" in caplog.text


async def test_closing_twice_is_harmless() -> None:
    reader = read(b"x", None)
    reader.close()
    assert reader.tail == "x"


async def test_what_came_before_a_time_is_known() -> None:
    loop = asyncio.get_running_loop()
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    reader = StderrReader(reading, None, ())
    os.write(writing, "früh\n".encode())
    reader.drain()
    assert reader.before(loop.time() + 1) == 5
    asked = loop.time() + 1e-6
    while loop.time() < asked:
        pass
    os.write(writing, b"late\n")
    reader.drain()
    assert reader.before(asked) == 5
    assert reader.before(0) == 0
    os.write(writing, b"." * 60_000)
    reader.drain()
    os.write(writing, b"." * 60_000)
    reader.drain()
    assert reader.before(asked) == 0  # what had come before is not kept any more
    os.close(writing)
    reader.close()
