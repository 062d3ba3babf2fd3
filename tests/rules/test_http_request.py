"""What a client says in the headers of a request, and how it reads those of an answer."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelwire.rules.http import Headers, mismatch
from modelwire.rules.http_request import (
    argument_headers,
    header_value,
    media_type,
    origin,
    retry_after,
    routing_headers,
    said,
    session_id,
)

META = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}


def frame(method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


def test_a_request_is_known_by_method_name_and_revision() -> None:
    about = said(frame("tools/call", name="t", arguments={"name": "x"}, **META))
    assert (about.method, about.id, about.name, about.version) == ("tools/call", 1, "t", "2026-07-28")
    assert said(frame("resources/read", uri="a:b", name="c")).name == "a:b"
    assert said(frame("completion/complete", name="t")).name is None
    assert said(b'{"jsonrpc":"2.0","id":"q","result":{}}').method is None
    assert said(b'[{"jsonrpc":"2.0","id":"q","result":{}}]').method is None


@pytest.mark.parametrize(
    "params", [{"name": 5}, {"_meta": 5}, {"_meta": {"io.modelcontextprotocol/protocolVersion": 5}}]
)
def test_params_that_are_odd_leave_the_method(params: dict[str, Any]) -> None:
    about = said(frame("tools/call", **params))
    assert (about.method, about.id, about.name, about.version) == ("tools/call", 1, None, None)
    assert said(b'{"jsonrpc":"2.0","id":1,"method":"x","params":[1]}').method == "x"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        # 2026-07-28, basic/transports/streamable-http, Value Encoding
        ("us-west1", "us-west1"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("a b\tc", "a b\tc"),
        ("", ""),
        ("=?base64?", "=?base64?"),
    ],
)
def test_values_are_encoded_as_in_the_specification(value: str, written: str) -> None:
    assert header_value(value) == written


@given(st.text())
def test_every_value_can_be_sent_and_read_back(value: str) -> None:
    written = header_value(value)
    assert all(character == "\t" or " " <= character <= "~" for character in written)
    assert written == written.strip(" \t")
    if written != value:
        assert base64.b64decode(written[9:-2]).decode() == value.encode("utf-8", "replace").decode()


@given(st.text(min_size=1), st.text() | st.booleans() | st.integers(-(2**53), 2**53))
def test_our_own_server_takes_what_is_sent(name: str, value: Any) -> None:
    try:
        name.encode()
        str(value).encode()
    except UnicodeEncodeError:
        return  # a lone surrogate is in no JSON
    body = frame("tools/call", name=name, arguments={"a": {"b": value}}, **META)
    about = said(body)
    headers = [*routing_headers(about, "2026-07-28"), *argument_headers(body, {"X": ("a", "b")})]
    found = Headers([(key.lower().encode(), text.encode()) for key, text in headers])
    assert mismatch(found, "2026-07-28", "tools/call", name, {"X": value}) is None


def test_arguments_are_mirrored_where_they_are() -> None:
    paths = {"S": ("s",), "N": ("deep", "n"), "B": ("b",), "Z": ("z",), "L": ("l",), "F": ("f",)}
    arguments = {"s": "x", "deep": {"n": 42}, "b": False, "z": None, "l": [1], "f": 7.0}
    found = dict(argument_headers(frame("tools/call", arguments=arguments), paths))
    assert found == {"Mcp-Param-S": "x", "Mcp-Param-N": "42", "Mcp-Param-B": "false", "Mcp-Param-F": "7"}
    assert argument_headers(frame("tools/call"), paths) == []


@pytest.mark.parametrize(
    ("given_", "kind"),
    [
        (None, ""),
        ("Application/JSON; Charset=UTF-8", "application/json"),
        ("text/event-stream", "text/event-stream"),
        ("text/plain; a=application/json", "text/plain"),
        (" text/html ;", "text/html"),
    ],
)
def test_media_types_are_compared_without_case_and_parameters(given_: str | None, kind: str) -> None:
    assert media_type(given_) == kind


@pytest.mark.parametrize(
    ("given_", "seconds"),
    [
        (None, None),
        ("5", 5.0),
        (" 0 ", 0.0),
        ("Thu, 01 Jan 1970 00:02:00 GMT", 20.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("soon", None),
        ("-1", None),
        ("1.5", None),
        ("9" * 400, 999999999.0),
    ],
)
def test_when_to_come_back_is_seconds_or_a_date(given_: str | None, seconds: float | None) -> None:
    assert retry_after(given_, 100.0) == seconds


def test_sessions_are_visible_ascii() -> None:
    assert session_id("a-1.~") == "a-1.~"
    assert [session_id(text) for text in (None, "", "a b", "ä", "a\n")] == [None] * 5


def test_origins_are_scheme_host_and_port() -> None:
    assert origin("https://X.example/a?b") == ("https", "x.example", 443) == origin("https://x.example:443")
    assert origin("http://x") != origin("https://x")
    with pytest.raises(ValueError):
        origin("http://x:port/")
