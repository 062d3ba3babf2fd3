"""Strategies: frames, right ones and what becomes of them on bad lines."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tests.robustness.malformed import GOOD_META, JUNK, TEXT

Draw = Callable[[st.SearchStrategy[Any]], Any]

IDS = st.one_of(st.integers(-(2**70), 2**70), st.sampled_from([0, 1, "1", "", "a\0b", "😀", 10**30]), TEXT.filter(len))
ODD_IDS = st.sampled_from([None, 1.0, 1e3, -0.5, True, [], {}, [1], {"id": 1}])
CALLS: list[tuple[str, Any]] = [
    ("ping", {}),
    ("tools/list", {}),
    ("tools/call", {"name": "add", "arguments": {"a": 1}}),
    ("tools/call", {"name": "anything", "arguments": {"value": "日本😀\u2028\0"}}),
    ("tools/call", {"name": "upper", "arguments": {"text": "x"}, "_meta": {"progressToken": 1}}),
    ("tools/call", {"name": "add", "arguments": {"a": 1}, "_meta": dict(GOOD_META)}),
    ("server/discover", {"_meta": dict(GOOD_META)}),
    ("resources/read", {"uri": "note://fixed"}),
    ("logging/setLevel", {"level": "debug"}),
    ("acme/none", {"deep": [[[{}]]]}),
]
NOTES: list[tuple[str, Any]] = [
    ("notifications/initialized", {}),
    ("notifications/progress", {"progressToken": 1, "progress": 0.5}),
    ("acme/none", {}),
]


@st.composite
def messages(draw: Draw) -> dict[str, Any]:
    """Draw a message that is right: a request, a notification, a response or an error."""
    kind = draw(st.sampled_from(["request", "request", "notification", "response", "error"]))
    message: dict[str, Any] = {"jsonrpc": "2.0"}
    if kind in ("request", "notification"):
        method, params = draw(st.sampled_from(CALLS if kind == "request" else NOTES))
        message |= {"method": method, "params": params}
    if kind != "notification":
        message["id"] = draw(IDS)
    if kind == "response":
        message["result"] = draw(st.dictionaries(TEXT, JUNK, max_size=2))
    if kind == "error":
        message["error"] = {"code": draw(st.integers(-33000, 5)), "message": draw(TEXT)}
    return message


@st.composite
def near_messages(draw: Draw) -> dict[str, Any]:
    """Draw a message of which some members are missing, odd, or too many."""
    message = draw(messages())
    for _ in range(draw(st.integers(0, 2))):
        name = draw(st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "extra"]))
        if draw(st.booleans()):
            message.pop(name, None)
        else:
            message[name] = draw(ODD_IDS if name == "id" else JUNK)
    return message


@st.composite
def spelled(draw: Draw, value: Any) -> bytes:
    """Draw a spelling of a JSON value: with or without escapes and white space."""
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", "\r: ")]))
    text = json.dumps(value, ensure_ascii=draw(st.booleans()), separators=separators)
    return text.encode("utf-8", "surrogatepass") if draw(st.integers(0, 9)) == 0 else text.encode("utf-8", "replace")


@st.composite
def frames(draw: Draw) -> bytes:
    """Draw a frame: a message near the border, a batch, or bytes that are neither."""
    kind = draw(st.sampled_from(["message", "message", "message", "batch", "torn", "torn", "bytes", "value"]))
    if kind == "bytes":
        return draw(st.binary(max_size=40))
    if kind == "value":
        return draw(spelled(draw(JUNK)))
    if kind == "batch":
        return draw(spelled(draw(st.lists(near_messages() | JUNK, max_size=4))))
    frame = draw(spelled(draw(near_messages())))
    return draw(torn(frame)) if kind == "torn" else frame


INSERTED = [
    b"\0", b"\r", b"\n", b"\xff", b"\xef\xbb\xbf", b"\\ud800", b"\\u0000", b"{", b"[", b"]", b"}", b'"', b",", b"NaN",
    b"-Infinity", b"1e999", b"-", b"01", b"9" * 400, b"9" * 5000, b"[" * 300, b'{"a":' * 300, b'"id":7,', b'"id":"z",',
    b'"method":"ping",', b'"jsonrpc":"2.0",', b"\xc0\x80", b"\xed\xa0\x80", b"\xf5", b"/**/", b"\x1f", b"\xe2\x80\xa8",
]  # fmt: skip


@st.composite
def torn(draw: Draw, frame: bytes) -> bytes:
    """Draw what happens to bytes on a bad line: cut, flipped, doubled, with something in between."""
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(frame)))
        how = draw(st.sampled_from(["insert", "insert", "cut head", "cut tail", "flip", "double", "swap"]))
        if how == "insert":
            # After "{" or "," a member fits in, so that members come twice.
            at = draw(st.sampled_from([at, *(n + 1 for n, byte in enumerate(frame[:200]) if byte in b"{,")]))
            frame = frame[:at] + draw(st.sampled_from(INSERTED)) + frame[at:]
        elif how == "cut head":
            frame = frame[at:]
        elif how == "cut tail":
            frame = frame[:at]
        elif how == "flip" and at < len(frame):
            frame = frame[:at] + bytes([frame[at] ^ (1 << draw(st.integers(0, 7)))]) + frame[at + 1 :]
        elif how == "double":
            frame = frame[:at] + frame
        else:
            frame = frame[at:] + frame[:at]
    return frame


@st.composite
def cut_up(draw: Draw, data: bytes) -> list[bytes]:
    """Draw the chunks in which bytes arrive."""
    if not data or draw(st.booleans()):
        return [data]
    if len(data) < 2000 and draw(st.integers(0, 5)) == 0:
        return [data[n : n + 1] for n in range(len(data))]
    cuts = sorted({0, len(data), *draw(st.lists(st.integers(0, len(data)), max_size=6))})
    return [data[start:end] for start, end in itertools.pairwise(cuts)]
