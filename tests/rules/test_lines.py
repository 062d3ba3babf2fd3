"""How bytes become messages: line ends, marks, limits, and any cutting of the stream."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelwire.errors import FrameTooLarge
from modelwire.rules.lines import LineFramer, frame_line

BOM = b"\xef\xbb\xbf"


def framed(chunks: Iterable[bytes], max_message: int = 1000) -> list[bytes | tuple[str, int, bytes | None]]:
    """All frames of a whole stream; a frame above the limit as a tuple, so that results compare."""
    framer = LineFramer(max_message)
    frames = [frame for chunk in chunks for frame in framer.feed(chunk)] + framer.finish()
    return [("too large", f.limit, f.frame) if isinstance(f, FrameTooLarge) else f for f in frames]


def test_many_lines_in_one_chunk_are_as_many_frames() -> None:
    assert framed([b'{"a":1}\n{"b":2}\n[3]\n']) == [b'{"a":1}', b'{"b":2}', b"[3]"]


def test_a_line_may_arrive_in_pieces() -> None:
    framer = LineFramer()
    assert framer.feed(b'{"a"') == []
    assert framer.feed(memoryview(b':1}\n{"b":')) == [b'{"a":1}']
    assert framer.feed(b"2}\n") == [b'{"b":2}']


def test_the_last_line_counts_without_its_line_feed() -> None:
    assert framed([b'{"a":1}\n{"b":2}']) == [b'{"a":1}', b'{"b":2}']
    assert framed([b'{"a":1}\r']) == [b'{"a":1}']
    assert framed([b""]) == []


def test_carriage_return_before_the_line_feed_is_no_part_of_the_message() -> None:
    assert framed([b'{"a":1}\r\n{"b":2}\r\n']) == [b'{"a":1}', b'{"b":2}']


def test_a_bare_carriage_return_ends_nothing() -> None:
    assert framed([b'{"a":1}\r{"b":2}\n']) == [b'{"a":1}\r{"b":2}']


def test_other_unicode_line_ends_end_nothing() -> None:
    text = '{"a":"x\u2028y\u0085z\x0b\x0c"}'.encode()
    assert framed([text + b"\n"]) == [text]


@pytest.mark.parametrize("blank", [b"\n", b"\r\n", b"  \t \n", BOM + b"\n", BOM + b" \r\n", b"\n\n\n"])
def test_blank_lines_are_skipped(blank: bytes) -> None:
    assert framed([blank + b'{"a":1}\n' + blank + blank]) == [b'{"a":1}']


def test_a_byte_order_mark_before_any_message_is_skipped() -> None:
    assert framed([BOM + b'{"a":1}\n' + BOM + b'{"b":2}\r\n']) == [b'{"a":1}', b'{"b":2}']


def test_a_byte_order_mark_inside_a_message_is_kept() -> None:
    line = b'{"a":"' + BOM + b'"}'
    assert framed([line + b"\n", b"x" + BOM + b"\n"]) == [line, b"x" + BOM]


def test_bytes_that_are_no_utf8_are_handed_on() -> None:
    assert framed([b"\xff\xfe bad\n"]) == [b"\xff\xfe bad"]


def test_characters_survive_one_byte_at_a_time() -> None:
    line = '{"text":"日本😀"}'.encode()
    assert framed(bytes([byte]) for byte in BOM + line + b"\n") == [line]


@pytest.mark.parametrize("piece", [1, 7, 10_000])
def test_a_line_above_max_message_costs_only_itself(piece: int) -> None:
    stream = b'{"a":1}\n' + b"x" * 5000 + b'\n{"b":2}\n'
    chunks = [stream[at : at + piece] for at in range(0, len(stream), piece)]
    assert framed(chunks) == [b'{"a":1}', ("too large", 1000, b"x" * 1000), b'{"b":2}']


def test_the_limit_counts_the_message_alone() -> None:
    assert framed([BOM + b"x" * 10 + b"\r\n"], max_message=10) == [b"x" * 10]
    assert framed([b"x" * 11 + b"\n"], max_message=10) == [("too large", 10, b"x" * 10)]
    assert framed([b"x" * 11], max_message=10) == [("too large", 10, b"x" * 10)]


def test_what_is_too_long_is_told_once_and_not_kept() -> None:
    framer = LineFramer(max_message=100_000)
    frames = list(itertools.chain.from_iterable(framer.feed(b"y" * 60_000) for _ in range(100)))
    assert [type(frame) for frame in frames] == [FrameTooLarge]
    assert len(framer._held) == 0
    assert "raise max_message" in str(frames[0])
    assert framer.feed(b"\n[]\n") == [b"[]"]


def test_the_beginning_of_what_is_too_long_is_told() -> None:
    framer = LineFramer(max_message=2000)
    (error,) = framer.feed(BOM + b'{"id":7,"x":"' + b"y" * 4000)
    assert isinstance(error, FrameTooLarge)
    assert error.frame is not None
    assert error.frame.startswith(b'{"id":7,')
    assert len(error.frame) == 1024


@pytest.mark.slow
def test_five_mebibytes_one_byte_at_a_time_are_one_frame() -> None:
    # Quadratic work would take hours here, not a second: the test's own time limit judges.
    framer = LineFramer()
    line = b"{" + b"z" * (5 * 1024 * 1024) + b"}"
    feed = framer.feed
    assert not any(feed(line[at : at + 1]) for at in range(len(line)))
    assert feed(b"\n") == [line]


pieces_of_a_stream = st.lists(
    st.sampled_from([b"\n", b"\r", b"\r\n", BOM, b" ", b"{}", b'{"k":1}', b"x" * 30, b"\xef", b"\xbb\xbf", b"[1]"]),
    max_size=30,
)


@given(pieces_of_a_stream, st.lists(st.integers(0, 400), max_size=12), st.integers(1, 40))
def test_any_cutting_of_the_stream_gives_the_same_frames(parts: list[bytes], cuts: list[int], limit: int) -> None:
    stream = b"".join(parts)
    at = sorted({0, len(stream), *(min(cut, len(stream)) for cut in cuts)})
    chunks = [stream[a:b] for a, b in itertools.pairwise(at)]
    assert framed(chunks, limit) == framed([stream], limit) == framed((bytes([b]) for b in stream), limit)


@given(st.lists(st.binary(min_size=1).filter(lambda b: b"\n" not in b and b.strip(b" \t\r") and b[-1:] != b"\r")))
def test_what_was_framed_comes_back(messages: list[bytes]) -> None:
    expected = [message.removeprefix(BOM) for message in messages]
    expected = [message for message in expected if message.strip(b" \t\r")]
    assert framed([frame_line(message) for message in messages]) == expected


def test_a_frame_becomes_one_line() -> None:
    assert frame_line(b'{"a":1}') == b'{"a":1}\n'
    assert frame_line(b'{\n  "a": 1\n}') == b'{   "a": 1 }\n'
