"""JSON-RPC 2.0 envelopes: what is a message, what is not, and which id could be read."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from modelwire.protocol import jsonrpc
from modelwire.protocol.jsonrpc import (
    MAX_DEPTH,
    MAX_ITEMS,
    Batch,
    ErrorResponse,
    InvalidFrame,
    Notification,
    Request,
    Response,
    decode,
    peek,
)

PARSE, INVALID = -32700, -32600


def frame(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def refused(text: bytes) -> InvalidFrame:
    with pytest.raises(InvalidFrame) as caught:
        decode(text)
    return caught.value


def outcome(text: bytes) -> bool:
    """Whether bytes become a message, or are refused with a code; anything else is raised."""
    try:
        decode(text)
    except InvalidFrame as invalid:
        return invalid.code in (PARSE, INVALID)
    return True


# --------------------------------------------------------------------------------------------------- messages


def test_each_kind_of_message_is_told_by_its_members() -> None:
    assert decode(frame(id=1, method="a", params={"b": 1})) == Request(b"1", 1, "a", Raw(b'{"b": 1}'))
    assert decode(frame(method="a")) == Notification("a")
    assert decode(frame(id=1, result={})) == Response(b"1", 1, Raw(b"{}"))
    assert decode(frame(id=1, error={"code": -5, "message": "x", "data": [1]})) == ErrorResponse(1, -5, "x", [1])


def test_absent_params_are_no_empty_params() -> None:
    assert decode(frame(id=1, method="a")).params is UNSET  # type: ignore[union-attr]
    assert decode(frame(id=1, method="a", params={})).params == Raw(b"{}")  # type: ignore[union-attr]


def test_params_of_null_are_none_which_some_peers_write() -> None:
    assert decode(frame(id=1, method="a", params=None)) == Request(b"1", 1, "a")
    assert decode(frame(method="a", params=None)) == Notification("a")


def test_params_may_stand_by_position() -> None:
    assert decode(frame(method="a", params=[1])) == Notification("a", Raw(b"[1]"))


@pytest.mark.parametrize("params", [0, "x", True, False])
def test_params_that_are_neither_are_refused(params: Any) -> None:
    invalid = refused(frame(id=7, method="a", params=params))
    assert (invalid.code, invalid.id) == (INVALID, b"7")


def test_unknown_members_and_any_order_are_fine() -> None:
    assert decode(b'{"later":[{}],"result":{"a":1},"id":"x","jsonrpc":"2.0"}') == Response(b'"x"', "x", Raw(b'{"a":1}'))
    assert decode(b' { "method" : "a" , "id" : 3 , "jsonrpc" : "2.0" } \r\n') == Request(b"3", 3, "a")


@pytest.mark.parametrize("result", [None, 5, "x", [], True])
def test_any_value_is_a_result(result: Any) -> None:
    assert decode(frame(id=1, result=result)) == Response(b"1", 1, Raw(json.dumps(result).encode()))


def test_data_of_an_error_may_be_anything_and_may_be_absent() -> None:
    assert decode(frame(id=1, error={"code": 1, "message": "x"})) == ErrorResponse(1, 1, "x", None)
    assert decode(frame(id=1, error={"code": 1, "message": "x", "data": {"a": 1}})).data == {"a": 1}  # type: ignore[union-attr]


@pytest.mark.parametrize("id_", [{"id": None}, {}])
def test_an_error_may_belong_to_no_request(id_: dict[str, Any]) -> None:
    assert decode(frame(**id_, error={"code": 1, "message": "x"})) == ErrorResponse(None, 1, "x")


# --------------------------------------------------------------------------------------------------- ids


@pytest.mark.parametrize(
    ("id_", "key"),
    [
        (b"0", 0), (b"1", 1), (b"-1", -1), (b"-0", 0), (b'"1"', "1"), (b'""', ""), (b'"a\\u0000"', "a\0"),
        (b'"\\u0061"', "a"), (b'"caf\xc3\xa9"', "café"), (b"9007199254740993", 9007199254740993),
        (b"1" + b"0" * 300, 10**300), (b'"' + b"x" * 5000 + b'"', "x" * 5000),
    ],
    ids=repr,
)  # fmt: skip
def test_an_id_keeps_its_bytes_and_has_a_value(id_: bytes, key: Any) -> None:
    message = decode(b'{"jsonrpc":"2.0","id":' + id_ + b',"method":"ping"}')
    assert isinstance(message, Request)
    assert (message.id, message.key) == (id_, key)
    answer = decode(b'{"jsonrpc":"2.0","id":' + id_ + b',"result":{}}')
    assert isinstance(answer, Response)
    assert (answer.id, answer.key) == (id_, key)


def test_an_id_with_more_digits_than_python_converts_is_told_from_any_other() -> None:
    digits = b"7" * 10_000
    ids = (digits, b"-" + digits, digits[:-1] + b"8", b'"' + digits + b'"', b"7" * 4000)
    messages = [decode(b'{"jsonrpc":"2.0","id":' + id_ + b',"method":"ping"}') for id_ in ids]
    assert tuple(message.id for message in messages if isinstance(message, Request)) == ids
    keys = {message.key for message in messages if isinstance(message, Request)}
    assert len(keys) == len(ids)  # == would print them when it fails, which Python refuses to do


@pytest.mark.parametrize("id_", [b"null", b"1.0", b"1.5", b"1e3", b"true", b"[]", b"{}", b"[1]"])
def test_any_other_id_is_refused_and_the_message_is_no_notification(id_: bytes) -> None:
    invalid = refused(b'{"jsonrpc":"2.0","id":' + id_ + b',"method":"ping"}')
    assert (invalid.code, invalid.id, invalid.key, invalid.answerable) == (INVALID, None, None, True)
    invalid = refused(b'{"jsonrpc":"2.0","id":' + id_ + b',"result":{}}')
    assert (invalid.code, invalid.key, invalid.answerable) == (INVALID, None, False)


def test_a_result_without_an_id_is_refused() -> None:
    assert not refused(frame(result={})).answerable


@given(st.one_of(st.integers(), st.text()))
def test_every_id_that_can_be_written_is_read_back(id_: int | str) -> None:
    try:
        encoded = json.dumps(id_).encode()
        id_.encode() if isinstance(id_, str) else None
    except UnicodeEncodeError:
        return
    message = decode(b'{"jsonrpc":"2.0","id":' + encoded + b',"method":"ping"}')
    assert isinstance(message, Request)
    assert message.id == encoded
    assert message.key == id_


# --------------------------------------------------------------------------------------------------- no messages

RESULT, ERROR = {"result": {}}, {"error": {"code": 1, "message": "x"}}


@pytest.mark.parametrize(
    ("members", "answerable", "request_"),
    [
        ({"method": "a", **RESULT}, True, False),
        ({"method": "a", **ERROR}, True, False),
        ({"method": "a", **RESULT, **ERROR}, True, False),
        ({**RESULT, **ERROR}, False, False),
        ({**RESULT, "error": None}, False, False),
        ({}, True, False),
        ({"params": {}}, True, False),
        ({"method": 5}, True, True),
        ({"method": None}, True, True),
        ({"error": "x"}, False, False),
        ({"error": None}, False, False),
        ({"error": {"code": 1}}, False, False),
        ({"error": {"code": "1", "message": "x"}}, False, False),
        ({"error": {"code": 1.5, "message": "x"}}, False, False),
        ({"error": {"code": 1, "message": None}}, False, False),
    ],
    ids=str,
)
def test_members_that_exclude_each_other_or_are_odd_are_refused_with_the_id(
    members: dict[str, Any], answerable: bool, request_: bool
) -> None:
    invalid = refused(frame(id=9, **members))
    assert (invalid.code, invalid.id, invalid.key) == (INVALID, b"9", 9)
    assert (invalid.answerable, invalid.request) == (answerable, request_)
    assert invalid.reason


@pytest.mark.parametrize("version", ['"1.0"', '"2"', "2.0", "2", "null", "[]"])
def test_another_version_is_refused_with_the_id(version: str) -> None:
    invalid = refused(b'{"jsonrpc":' + version.encode() + b',"id":9,"method":"a"}')
    assert (invalid.code, invalid.id, invalid.reason) == (INVALID, b"9", 'the member "jsonrpc" must be "2.0"')
    assert refused(b'{"id":9,"method":"a"}').id == b"9"


@pytest.mark.parametrize("text", [b"1", b'"x"', b"null", b"true", b"1.5", b"  {} ", b"-1"])
def test_json_that_is_no_message_is_an_invalid_request(text: bytes) -> None:
    invalid = refused(text)
    assert (invalid.code, invalid.id) == (INVALID, None)


@pytest.mark.parametrize(
    "text",
    [
        b"", b" ", b"nope", b"{", b"}", b'{"jsonrpc":"2.0",}', b"{'a':1}", b'{"jsonrpc":"2.0","id":1,"method":',
        b'{"jsonrpc":"2.0","id":1,"method":"a"} x', b'{"jsonrpc":"2.0","id":1,"method":"a"}{}', b"[1,", b"truex",
        b"\xff\xfe", b'"\xe9"', b"NaN", b"\x00",
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_no_json_is_a_parse_error(text: bytes) -> None:
    invalid = refused(text)
    assert (invalid.code, invalid.id) == (PARSE, None)


DEEP = b"[" * (MAX_DEPTH + 50) + b"]" * (MAX_DEPTH + 50)


@pytest.mark.parametrize(
    "value", [b"NaN", b"Infinity", b"-Infinity", b'"caf\xe9"', b"01", b"DEEP", b'"\x01"'], ids=repr
)
def test_a_message_that_breaks_off_inside_still_has_its_id_where_that_can_be_trusted(value: bytes) -> None:
    value = DEEP if value == b"DEEP" else value
    request = refused(b'{"jsonrpc":"2.0","id":"x","method":"a","params":{"v":' + value + b"}}")
    answer = refused(b'{"jsonrpc":"2.0","id":"x","result":{"v":' + value + b"}}")
    assert request.code == answer.code == PARSE
    if value in (b"01", b'"\x01"'):
        assert request.id is None  # who cannot parse it cannot know what the rest would have said
    else:
        assert (request.id, request.key, request.answerable) == (b'"x"', "x", True)
        assert (answer.id, answer.key, answer.answerable) == (b'"x"', "x", False)


def test_a_parse_error_says_where() -> None:
    assert "at character 8" in refused(b'{"a": 1 "b"}').reason
    assert "byte 0xe9 at position 4" in refused(b'"caf\xe9"').reason
    assert refused(b'{"a":NaN}').reason == "not JSON: NaN is not JSON"
    assert refused(DEEP).reason == f"nested more than {MAX_DEPTH} deep"


def test_brackets_inside_strings_are_no_depth() -> None:
    assert decode(frame(method="a", params={"text": "[{" * 1000})) is not None
    assert decode(frame(method="a", params={"text": '\\"[' * 1000})) is not None


def test_as_deep_as_allowed_is_fine() -> None:
    inside = b"[" * (MAX_DEPTH - 1) + b"]" * (MAX_DEPTH - 1)
    assert isinstance(decode(b'{"jsonrpc":"2.0","method":"a","params":' + inside + b"}"), Notification)
    assert refused(b'{"jsonrpc":"2.0","method":"a","params":[' + inside + b"]}").code == PARSE


@pytest.mark.parametrize("pair", [(b'{"a":', b"}"), (b'[{"a":', b"}]"), (b'{"a":[', b"]}")])
def test_objects_and_lists_count_alike(pair: tuple[bytes, bytes]) -> None:
    levels = pair[0].count(b"[") + pair[0].count(b"{")
    for depth, fine in ((MAX_DEPTH - 2 * levels, True), (MAX_DEPTH + levels, False)):
        inside = pair[0] * (depth // levels) + b"1" + pair[1] * (depth // levels)
        text = b'{"jsonrpc":"2.0","method":"a","params":{"v":' + inside + b"}}"
        assert isinstance(decode(text), Notification) if fine else refused(text).code == PARSE


def test_many_brackets_side_by_side_are_no_depth() -> None:
    assert decode(frame(method="a", params={"list": [[]] * 5000})) is not None


def test_a_very_deep_frame_is_refused_and_not_recursed_into() -> None:
    assert refused(b"[" * 100_000).code == PARSE
    assert refused(b'{"a":' * 100_000).code == PARSE


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_refused(text: bytes) -> None:
    assert outcome(text)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=8,
    ),
    st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error"]),
)
def test_any_value_in_any_member_is_a_message_or_refused(value: Any, member: str) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "a", member: value}
    assert outcome(json.dumps(message).encode())


# --------------------------------------------------------------------------------------------------- surrogates


@pytest.mark.parametrize(
    ("escaped", "text"),
    [
        (rb"\ud83d", "\ufffd"), (rb"\ude00", "\ufffd"), (rb"a\ud83db", "a\ufffdb"), (rb"\ud83d\ude00", "😀"),
        (rb"\uD83D\uDE00", "😀"), (rb"\ud83d\ud83d\ude00", "\ufffd😀"), (rb"\ude00\ud83d", "\ufffd\ufffd"),
        (rb"\ud83d\\ude00", "\ufffd\\ude00"), (rb"\\ud83d", r"\ud83d"), (rb"\ud83d\n\ude00", "\ufffd\n\ufffd"),
        (rb"\ud83dx\ude00", "\ufffdx\ufffd"), (rb"\ud7ff\ue000", "\ud7ff\ue000"),
    ],
)  # fmt: skip
def test_half_a_surrogate_pair_becomes_the_replacement_character(escaped: bytes, text: str) -> None:
    message = decode(b'{"jsonrpc":"2.0","id":1,"result":{"t":"' + escaped + b'"}}')
    assert isinstance(message, Response)
    assert msgspec.json.decode(message.result) == {"t": text}


# --------------------------------------------------------------------------------------------------- batches


def test_a_batch_holds_messages_and_what_is_none() -> None:
    batch = decode(b'[{"jsonrpc":"2.0","id":1,"method":"a"},5,{"jsonrpc":"2.0","method":"b"},[],{"id":2,"method":"c"}]')
    assert isinstance(batch, Batch)
    kinds = [type(item) for item in batch.items]
    assert kinds == [Request, InvalidFrame, Notification, InvalidFrame, InvalidFrame]
    nested, unversioned = batch.items[3:]
    assert isinstance(nested, InvalidFrame)
    assert nested.reason == "a batch must not contain another batch"
    assert isinstance(unversioned, InvalidFrame)
    assert unversioned.id == b"2"


def test_an_empty_batch_is_a_batch() -> None:
    assert decode(b"[]") == Batch([])
    assert decode(b" [ ] ") == Batch([])


def test_a_broken_batch_is_a_parse_error() -> None:
    assert refused(b'[{"jsonrpc":"2.0","id":1,"method":"a"}').code == PARSE


# --------------------------------------------------------------------------------------------------- the head


@pytest.mark.parametrize(
    ("head", "found"),
    [
        (b'{"jsonrpc":"2.0","id":5,"result":{"a', {"id": b"5", "key": 5, "answerable": False}),
        (b'{"id":"x","jsonrpc":"2.0","result":"aaaa', {"id": b'"x"', "key": "x", "answerable": False}),
        (b'{"jsonrpc":"2.0","id":5,"error":{"co', {"id": b"5", "key": 5, "answerable": False}),
        (b'{"jsonrpc":"2.0","id":5,"method":"a","params":{"id":7', {"id": b"5", "key": 5}),
        (b'{"params":{"id":7,"x":[{"id":8}]},"id":9,"method":"', {"id": b"9", "key": 9}),
        (b'{"jsonrpc":"2.0","method":"a","params":{"id":7', {}),
        (b'{"jsonrpc":"2.0","id":1.5,"result":{"a', {}),
        (b"Listening on 3000", {}),
        (b"", {}),
    ],
)
def test_the_head_of_a_frame_tells_the_id_of_the_message_itself(head: bytes, found: dict[str, Any]) -> None:
    assert peek(head) == found


# --------------------------------------------------------------------------------------------------- encoding


def test_what_is_encoded_is_decoded_to_the_same() -> None:
    assert decode(jsonrpc.encode_request(b'"a"', "m", None)) == Request(b'"a"', "a", "m")
    assert decode(jsonrpc.encode_request(b"1", "m", b'{"x":1}')) == Request(b"1", 1, "m", Raw(b'{"x":1}'))
    assert decode(jsonrpc.encode_notification("m")) == Notification("m")
    assert decode(jsonrpc.encode_notification("m", b"{}")) == Notification("m", Raw(b"{}"))
    assert decode(jsonrpc.encode_result(b"5", b"[1]")) == Response(b"5", 5, Raw(b"[1]"))
    assert decode(jsonrpc.encode_error(b"5", -1, "x", b'{"a":1}')) == ErrorResponse(5, -1, "x", {"a": 1})
    assert decode(jsonrpc.encode_batch([jsonrpc.encode_notification("m")])) == Batch([Notification("m")])
    assert jsonrpc.encode_id("ü") == '"ü"'.encode()
    assert jsonrpc.encode_id(5) == b"5"


@pytest.mark.parametrize("id", [b"1", b'""', b'"' + b"x" * 5000 + b'"', b'",\\"error\\":{\\"code\\":5,"', b"9" * 6000])
def test_the_code_of_an_answer_of_ours_is_found_whatever_its_id(id: bytes) -> None:
    assert jsonrpc.code_of(jsonrpc.encode_error(id, -32601, "x"), id) == -32601
    assert jsonrpc.code_of(jsonrpc.encode_error(id, 7, "x", b'{"code":1}'), id) == 7
    assert jsonrpc.code_of(jsonrpc.encode_result(id, b'{"error":{"code":5,"message":"m"}}'), id) is None


def test_an_error_without_an_id_has_none_or_null() -> None:
    assert json.loads(jsonrpc.encode_error(None, 1, "x")) == {"jsonrpc": "2.0", "error": {"code": 1, "message": "x"}}
    assert json.loads(jsonrpc.encode_error(b"null", 1, "x"))["id"] is None


@pytest.mark.parametrize("text", ['"quoted"', "a\nb\0c", "ü日😀", "\ud800 half", "</script>"])
def test_names_and_messages_are_escaped(text: str) -> None:
    readable = text.encode("utf-8", "replace").decode()
    assert json.loads(jsonrpc.encode_error(b"1", 1, text))["error"]["message"] == readable
    if readable == text:
        assert decode(jsonrpc.encode_request(b"1", text, None)) == Request(b"1", 1, text)
        assert decode(jsonrpc.encode_notification(text)) == Notification(text)


# --------------------------------------------------------------------------------------------------- much of it


@pytest.mark.parametrize("item", [b"1", b"{}", b'{"a":[1,2],"b":"],[,"}', b"[]"])
def test_a_batch_of_too_many_is_refused_before_its_items_are_looked_at(item: bytes) -> None:
    least, most = (b"[" + b",".join([item] * count) + b"]" for count in (MAX_ITEMS + 1, 100_000))
    for text in (least, most, b" " * 100 + least):
        found = refused(text)
        assert (found.code, found.id) == (INVALID, None)
        assert str(MAX_ITEMS) in found.reason
    exact = decode(b" " * 100 + b"[" + b",".join([item] * MAX_ITEMS) + b"]")
    assert isinstance(exact, Batch)
    assert len(exact.items) == MAX_ITEMS


def test_what_is_inside_the_items_of_a_batch_is_not_counted() -> None:
    inner = b"[" + b",".join([b'{"a":1,"b":[1,2,3]}'] * 2000) + b"]"
    found = decode(b'[{"jsonrpc":"2.0","method":"m","params":{"x":' + inner + b"}}]")
    assert isinstance(found, Batch)
    assert len(found.items) == 1


def test_what_is_no_json_and_large_is_refused_without_being_read_again() -> None:
    found = refused(b"[" + b"{}," * 1_000_000)
    assert found.code in (PARSE, INVALID)
    assert refused(b'{"a":[' + b"1," * 1_000_000).code == PARSE
