"""What the answer to a POST says besides its message."""

from __future__ import annotations

import json
from typing import Any

import pytest

from modelwire.rules.http_answer import agreed, error_in, is_modern, session_is_gone


def error(code: int, message: str = "no", **more: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "error": {"code": code, "message": message}, **more}).encode()


@pytest.mark.parametrize("more", [{}, {"id": None}, {"id": "server-error"}, {"id": 7}])
def test_an_error_is_one_whatever_it_says_it_answers(more: dict[str, Any]) -> None:
    found = error_in(error(-32600, **more))
    assert found is not None
    assert (found.code, found.message) == (-32600, "no")


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"{}", b"[]", b'{"error": "no"}', b'{"jsonrpc":"2.0","id":1,"result":{}}', b"\xff"]
)
def test_anything_else_is_none(body: bytes) -> None:
    assert error_in(body) is None


def test_servers_of_2026_07_28_are_known_by_their_errors() -> None:
    codes = (-32700, -32600, -32601, -32020, -32021, -32022, -32000)
    assert [code for code in codes if is_modern(error_in(error(code)))] == [-32601, -32020, -32021, -32022]
    assert not is_modern(None)


@pytest.mark.parametrize(
    ("status", "body", "gone"),
    [
        (404, b"", True),
        (404, error(-32600), True),
        (404, error(-32601), False),
        (400, error(-32000, "Bad Request: No valid session ID provided"), True),
        (400, error(-32000, "Bad Request"), False),
        (400, error(-32602, "no such session"), False),
        (400, b"session", False),
        (500, error(-32000, "session"), False),
    ],
)
def test_a_session_that_is_gone_is_told_from_other_refusals(status: int, body: bytes, gone: bool) -> None:
    assert session_is_gone(status, error_in(body)) is gone


def test_what_was_agreed_is_read_off_the_answer() -> None:
    assert (
        agreed(b'{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}') == "2025-11-25"
    )
    for frame in (b"", b"[]", error(-32600), b'{"result":{}}', b'{"result":{"protocolVersion":5}}'):
        assert agreed(frame) is None
