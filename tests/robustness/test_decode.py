"""The decoder of frames against a simple reference: the same verdict on everything, ids byte for byte."""

from __future__ import annotations

import json

from hypothesis import assume, example, given
from hypothesis import strategies as st

from modelwire.protocol import jsonrpc
from modelwire.protocol.jsonrpc import Batch, ErrorResponse, InvalidFrame, Notification, Request, Response
from tests.robustness.frames import IDS, frames, messages, near_messages, spelled
from tests.robustness.malformed import depth_of
from tests.robustness.reference import Spelled, Verdict, judge, spelling, verdict

KINDS = {
    Request: "request", Notification: "notification", Response: "response", ErrorResponse: "error", Batch: "batch",
}  # fmt: skip


def decoded(frame: bytes) -> Verdict:
    """What the real decoder makes of a frame, as the reference would put it."""
    message: object
    try:
        message = jsonrpc.decode(frame)
    except InvalidFrame as invalid:
        message = invalid
    if isinstance(message, InvalidFrame):
        assert message.code in (-32700, -32600)
        assert message.reason
        return Verdict("unparsable" if message.code == -32700 else "invalid", _respelled(message.id))
    return Verdict(KINDS[type(message)], _respelled(getattr(message, "id", None)))


def _respelled(id_: bytes | None) -> str | None:
    return None if id_ is None else spelling(json.loads(id_, parse_int=Spelled, parse_float=Spelled))


def differing_numbers(frame: bytes) -> bool:
    """Whether the frame holds what Python's parser lets through and ours need not: numbers beyond a double's range."""
    numbers: list[str] = []
    try:
        json.loads(frame, parse_float=numbers.append, parse_int=numbers.append)
    except (ValueError, RecursionError):
        return False
    return any(float(number) in (float("inf"), float("-inf")) for number in numbers)


def too_deep(frame: bytes) -> bool:
    try:
        return depth_of(json.loads(frame)) > jsonrpc.MAX_DEPTH
    except (ValueError, RecursionError):
        return False


@given(frame=frames())
@example(frame=b'{"jsonrpc":"2.0","id":1,"method":"x","id":2}')
@example(frame=b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"\\ud800"}}')
@example(frame=b"")
@example(frame=b"[]")
@example(frame=b"\xef\xbb\xbf{}")
def test_a_frame_is_what_the_reference_says_it_is(frame: bytes) -> None:
    found, expected = decoded(frame), verdict(frame)
    if too_deep(frame) or differing_numbers(frame):
        assert found.kind in ("unparsable", expected.kind)
        return
    assert found.kind == expected.kind
    if expected.kind != "unparsable" and expected.id is not None and expected.kind != "error":
        assert (
            found.id == expected.id
            or "\ud800" <= max(json.loads(expected.id) if expected.id[0] == '"' else "") < "\ue000"
        )


@given(frame=st.binary(max_size=60))
def test_bytes_raise_nothing_but_an_invalid_frame(frame: bytes) -> None:
    decoded(frame)


@given(id_=IDS, data=st.data())
def test_an_id_is_kept_byte_for_byte(id_: int | str, data: st.DataObject) -> None:
    message = data.draw(messages())
    raw = data.draw(spelled(id_))
    assume(b"\\ud" not in raw and verdict(raw) != Verdict("unparsable"))
    frame = data.draw(spelled(message | {"id": "HERE"})).replace(b'"HERE"', raw)
    decoded_message = jsonrpc.decode(frame)
    if not isinstance(decoded_message, ErrorResponse):
        assert decoded_message.id == raw
    assert decoded_message.key == json.loads(raw)
    assert type(decoded_message.key) is type(id_)


@given(items=st.lists(near_messages(), min_size=1, max_size=5))
def test_the_items_of_a_batch_are_judged_one_by_one(items: list[object]) -> None:
    frame = json.dumps(items).encode()
    assume(not too_deep(frame) and not differing_numbers(frame))
    batch = jsonrpc.decode(frame)
    assert isinstance(batch, Batch)
    kinds = [KINDS.get(type(item), "invalid") for item in batch.items]
    assert kinds == [judge(item).kind for item in json.loads(frame, parse_int=Spelled, parse_float=Spelled)]


@given(message=messages(), data=st.data())
def test_white_space_and_escapes_change_nothing(message: dict[str, object], data: st.DataObject) -> None:
    plain = json.dumps(message).encode()
    assume(not too_deep(plain) and not differing_numbers(plain))
    other = b" \r\n" + data.draw(spelled(message)) + b"\t"
    assume(verdict(other).kind != "unparsable")  # a lone surrogate, written as if it were UTF-8
    assert decoded(plain).kind == decoded(other).kind
