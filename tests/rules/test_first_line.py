"""Which connections are worth serving: what their first line must be, however the bytes arrive."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelwire.rules.first_line import FirstLine, Refusal

LIMIT = 200
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'

WELCOME = {
    "a request": PING + b"\n",
    "a line that ends with CRLF": PING + b"\r\n",
    "more than one line": PING + b"\n" + PING + b"\nGET / HTTP/1.1\n",
    "blank lines first": b"\n \r\n\t\n" + PING + b"\n",
    "a byte order mark first": b"\xef\xbb\xbf" + PING + b"\n",
    "a byte order mark on a line of its own": b"\xef\xbb\xbf\r\n" + PING + b"\n",
    "a batch": b"[" + PING + b"]\n",
    "JSON that is no message": b'{"a":1}\n',
    "an empty batch": b"[]\n",
    "a message just short enough": b'{"a":"' + b"x" * (LIMIT - 8) + b'"}\r\n',
}
OTHER_PROTOCOLS = {
    "a GET": b"GET / HTTP/1.1\r\nHost: localhost:9000\r\n\r\n",
    "a POST of a message": b"POST /mcp HTTP/1.1\r\nContent-Length: 41\r\n\r\n" + PING + b"\n",
    "a method that nobody knows": b"BREW /pot HTTP/1.1\r\n\r\n",
    "a request line alone": b"GET /\r\n",
    "an HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a TLS handshake": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(48)),
    "SSH": b"SSH-2.0-OpenSSH_9.6\r\n",
    "words": b"hello\n",
    "a number": b"5\n",
    "a string": b'"' + PING + b'"\n',
    "UTF-16": PING.decode().encode("utf-16") + b"\n\x00",
    "zeros": bytes(8) + b"\n",
    "a post behind blank lines": b"\r\n\r\nPOST / HTTP/1.1\r\n\r\n",
    "a post behind a byte order mark": b"\xef\xbb\xbfPOST / HTTP/1.1\r\n\r\n",
}
NO_MESSAGE = {
    "a brace and more": b"{hello}\n",
    "an object that is cut": PING[:-1] + b"\n",
    "JSON and more": PING + b" GET\n",
    "no UTF-8": b'{"a":"\xff"}\n',
    "an object without an end": b'{"a":"' + b"x" * 3 * LIMIT,
    "a line that is too long": b'{"a":"' + b"x" * LIMIT + b'"}\n',
    "brackets without an end": b"[" * 400,
}


def judged(chunks: Iterable[bytes]) -> tuple[FirstLine, Refusal | None]:
    """What becomes of a connection that sends these pieces, and then nothing more."""
    line = FirstLine(LIMIT)
    for chunk in chunks:
        refusal = line.feed(chunk)
        if refusal is not None or line.complete:
            return line, refusal
    return line, line.finish()


def single_bytes(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


@pytest.mark.parametrize("name", WELCOME)
def test_a_first_line_that_is_json_is_served_and_nothing_of_it_is_lost(name: str) -> None:
    data = WELCOME[name]
    for chunks in ([data], single_bytes(data)):
        line, refusal = judged(chunks)
        assert refusal is None
        assert line.complete
        assert data.endswith(line.taken) or len(chunks) > 1
        assert line.taken.startswith((b"{", b"["))


@pytest.mark.parametrize("name", OTHER_PROTOCOLS)
def test_what_speaks_another_protocol_is_refused_without_a_word(name: str) -> None:
    data = OTHER_PROTOCOLS[name]
    for chunks in ([data], single_bytes(data)):
        line, refusal = judged(chunks)
        assert refusal is not None
        assert refusal.frame is None
        assert not line.complete


@pytest.mark.parametrize("name", NO_MESSAGE)
def test_a_first_line_that_is_no_message_is_refused_and_told_why(name: str) -> None:
    data = NO_MESSAGE[name]
    for chunks in ([data], single_bytes(data)):
        line, refusal = judged(chunks)
        assert refusal is not None
        assert refusal.frame is not None
        told = json.loads(refusal.frame)
        assert told["error"]["code"] in (-32700, -32600)
        assert "The first line of a connection must be a message" in told["error"]["message"]
        assert not line.complete


def test_another_protocol_is_refused_at_its_first_byte() -> None:
    for data in OTHER_PROTOCOLS.values():
        begun = data.lstrip(b"\r\n\xef\xbb\xbf")
        assert FirstLine(LIMIT).feed(begun[:1]) is not None


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a GET", "an HTTP request"),
        ("a POST of a message", "an HTTP request"),
        ("a method that nobody knows", "an HTTP request"),
        ("an HTTP/2 preface", "an HTTP request"),
        ("a TLS handshake", "a TLS handshake"),
        ("words", "no JSON"),
    ],
)
def test_the_log_is_told_what_came(name: str, said: str) -> None:
    _, refusal = judged([OTHER_PROTOCOLS[name]])
    assert refusal is not None
    assert f"it sent {said};" in refusal.reason


def test_nothing_of_what_came_is_repeated() -> None:
    secret = b"s3cret"
    for data in (
        b"GET /?token=s3cret HTTP/1.1\r\n\r\n",
        b"s3cret\n",
        b"{s3cret\n",
        b'{"a":"s3cret"',
        b"{" + secret * 99,
    ):
        _, refusal = judged([data])
        assert refusal is not None
        assert "s3cret" not in refusal.reason
        assert secret not in (refusal.frame or b"")


def test_the_id_of_a_request_that_cannot_be_read_is_in_the_answer() -> None:
    for data in (b'{"jsonrpc":"2.0","id":"seven","method":"x","a":NaN}\n', b'{"id":"seven","method":"' + b"x" * LIMIT):
        _, refusal = judged([data])
        assert refusal is not None
        assert json.loads(refusal.frame or b"")["id"] == "seven"


def test_a_line_that_the_end_of_the_stream_completes_counts() -> None:
    line, refusal = judged([PING])
    assert refusal is None
    assert line.complete
    assert line.taken == PING


@pytest.mark.parametrize("data", [b"", b"\n", b" \r\n\t", b"\xef\xbb\xbf"[:2]])
def test_a_stream_that_ends_before_it_began_is_never_served(data: bytes) -> None:
    line, _ = judged(single_bytes(data))
    assert not line.complete


def test_blank_lines_take_no_memory() -> None:
    line = FirstLine(LIMIT)
    for _ in range(1000):
        assert line.feed(b" \r\n" * 100) is None
    assert line.taken == b""
    assert line.feed(PING + b"\n") is None
    assert line.complete


@given(
    data=st.sampled_from([*WELCOME.values(), *OTHER_PROTOCOLS.values(), *NO_MESSAGE.values()])
    | st.binary(max_size=300),
    cuts=st.lists(st.integers(0, 300), max_size=10),
)
def test_the_outcome_does_not_depend_on_how_the_bytes_arrive(data: bytes, cuts: list[int]) -> None:
    marks = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[start:end] for start, end in itertools.pairwise(marks)]
    whole, refused_whole = judged([data])
    cut, refused_cut = judged(pieces)
    assert whole.complete == cut.complete
    assert (refused_whole is None) == (refused_cut is None)
    if refused_whole is not None and refused_cut is not None:
        assert (refused_whole.frame is None) == (refused_cut.frame is None)
    first = cut.taken.partition(b"\n")[0]
    assert not cut.complete or whole.taken.startswith(first)
