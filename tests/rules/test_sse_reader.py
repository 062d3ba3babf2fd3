"""Bytes to events: the WHATWG algorithm, against a second reading of it that is slow and plain."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelwire.errors import FrameTooLarge
from modelwire.rules import sse
from modelwire.rules.sse_reader import MAX_RETRY, Event, EventReader

Read = tuple[list[Any], str, int | None]


def read(*chunks: bytes, limit: int = 1 << 20) -> Read:
    reader = EventReader(limit)
    found: list[Any] = []
    for chunk in chunks:
        found += reader.feed(chunk)
    return found, reader.last_id, reader.retry


def data(*chunks: bytes) -> list[bytes]:
    return [event.data for event in read(*chunks)[0]]


def by_the_book(stream: bytes) -> Read:  # noqa: C901 - as the standard has it, in one piece
    """HTML, 9.2.6, as it is written: over the whole stream, character by character."""
    text = stream.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    lines: list[str] = []
    line = ""
    at = 0
    while at < len(text):
        if text[at] in "\r\n":
            lines.append(line)
            line = ""
            at += 2 if text[at : at + 2] == "\r\n" else 1
        else:
            line += text[at]
            at += 1
    events: list[Any] = []
    buffer, name, id_, last_id, retry = "", "", "", "", None
    for line in lines:
        if line == "":
            last_id = id_
            if buffer:
                events.append(Event(buffer[:-1].encode("utf-8", "surrogateescape"), name or "message"))
            buffer = name = ""
            continue
        if line[0] == ":":
            continue
        field, colon, value = line.partition(":")
        value = value[1:] if colon and value[:1] == " " else value
        if field == "data":
            buffer += value + "\n"
        elif field == "event":
            name = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        elif field == "id" and "\0" not in value:
            id_ = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        elif field == "retry" and value and all(digit in "0123456789" for digit in value):
            retry = min(int(value), MAX_RETRY)
    return events, last_id, retry


PIECES = st.sampled_from(
    [
        *(b"data", b"event", b"id", b"retry", b":", b" ", b"\r", b"\n", b"\r\n", b"\0", b"\xef\xbb\xbf", b"\xff", b"x"),
        *(b"data: {}\n\n", b"id: 1\n", b"retry: 10\n", b"\xef", b"\xbb", b"\xbf", b"event: endpoint\r", b"7"),
    ]
)


@given(st.lists(PIECES, max_size=24).map(b"".join), st.lists(st.integers(0, 60), max_size=6))
def test_it_reads_what_the_standard_says_however_the_bytes_arrive(stream: bytes, cuts: list[int]) -> None:
    places = sorted({0, len(stream), *(min(cut, len(stream)) for cut in cuts)})
    chunks = [stream[one:other] for one, other in pairwise(places)]
    assert read(*chunks) == by_the_book(stream)
    assert read(*(stream[at : at + 1] for at in range(len(stream)))) == by_the_book(stream)


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_all_three_line_ends_end_lines(end: bytes) -> None:
    assert data(b"data: 1" + end + end + b"data: 2" + end + end) == [b"1", b"2"]


def test_crlf_may_be_cut_in_two() -> None:
    # Case 55.
    assert data(b"data: 1\r", b"\ndata: 2\r", b"\n\r", b"\n") == [b"1\n2"]
    assert data(b"data:1\r", b"\n\r", b"\ndata:2\r", b"", b"\n\r") == [b"1", b"2"]


def test_one_byte_order_mark_is_taken_off_the_beginning() -> None:
    # Case 57.
    assert data(b"\xef\xbb\xbfdata: 1\n\n") == [b"1"]
    assert data(b"\xef", b"\xbb", b"\xbf", b"data: 1\n\n") == [b"1"]
    assert data(b"\xef\xbb\xbf\xef\xbb\xbfdata: 1\n\n") == []
    assert data(b"data: \xef\xbb\xbf1\n\n") == [b"\xef\xbb\xbf1"]


def test_what_was_written_is_read_back() -> None:
    stream = sse.event(b'{"a":1}', id="7") + sse.COMMENT + sse.retry(250) + sse.event(b"/messages", name="endpoint")
    assert read(stream) == ([Event(b'{"a":1}'), Event(b"/messages", "endpoint")], "7", 250)


def test_an_event_without_data_still_has_an_id() -> None:
    assert read(b"id: 3\n\n") == ([], "3", None)
    assert read(b"id: 3\ndata\n\n") == ([Event(b"")], "3", None)


def test_an_event_that_the_stream_breaks_off_in_does_not_count() -> None:
    assert read(b"id: 1\ndata: 1\n\nid: 2\ndata: 2\n") == ([Event(b"1")], "1", None)


def test_a_further_stream_goes_on_after_the_last_event() -> None:
    reader = EventReader()
    reader.feed(b"id: 1\nretry: 5\ndata: 1\n\nid: 2\ndata: 2\r")
    reader.restart()
    assert reader.feed(b"\xef\xbb\xbfdata: 3\n\n") == [Event(b"3")]
    assert (reader.last_id, reader.retry) == ("1", 5)


@pytest.mark.parametrize("value", [b"", b"1.5", b"-1", b"soon", b"\xc2\xb2", b" 7"])
def test_only_digits_say_when_to_come_back(value: bytes) -> None:
    assert read(b"retry: " + value + b"\n\n")[2] is None


def test_an_event_above_the_limit_costs_only_itself() -> None:
    big = b"data: {" + b"x" * 5000 + b"\n"
    for stream in (big, b"data: {\n" + b"data: xxxx\n" * 100, b"id: 9\n" + big + b"data: y\n"):
        for size in (1, 7, 100_000):
            chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
            found, _, _ = read(*chunks, b"\ndata: 1\n\n", limit=100)
            assert isinstance(found[0], FrameTooLarge)
            assert found[0].limit == 100
            assert (found[0].frame or b"").startswith(b"{")
            assert found[1:] == [Event(b"1")]


def test_the_limit_is_that_of_the_data() -> None:
    for stream in (b"data: 12345\n\n", b"data:12\ndata: 45\n\n"):
        assert len(read(stream, limit=5)[0][0].data) == 5
        assert isinstance(read(stream, limit=4)[0][0], FrameTooLarge)


def test_a_long_line_that_is_no_data_is_skipped() -> None:
    assert read(b":" + b"x" * 500 + b"\ndata: 1\n\n", limit=100)[0] == [Event(b"1")]
    assert read(b":" + b"x" * 500, b"x\n", b"data: 1\n\n", limit=100)[0] == [Event(b"1")]


@pytest.mark.slow
def test_the_time_for_a_large_event_grows_no_faster_than_the_event() -> None:
    def seconds(size: int) -> float:
        reader = EventReader(size + 100)
        stream = b"data: " + b"x" * size + b"\n\n"
        began = time.process_time()
        for at in range(0, len(stream), 1024):
            reader.feed(stream[at : at + 1024])
        return time.process_time() - began

    # Noise only adds: both sides are given by the least of three.
    small = max(min(seconds(4 << 20) for _ in range(3)), 0.002)
    assert min(seconds(32 << 20) for _ in range(3)) < 8 * small * 4
