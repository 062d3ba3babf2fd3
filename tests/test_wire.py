"""`tests.wire` itself: what it must find fault with, since other tests rely on it."""

from __future__ import annotations

from typing import Any

import pytest

from tests import spec
from tests.wire import MODERN, Ledger, dumps, modern_meta, opening, strictly

pytestmark = spec.needs_spec

INITIALIZED = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening("2025-11-25")}


def answer(**result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": result}


def ledger(revision: str = "2025-11-25", **options: Any) -> Ledger:
    book = Ledger(revision, **options)
    book.sent(dumps({**INITIALIZED, "params": opening(revision if revision != MODERN else "2025-11-25")}))
    return book


def test_a_right_conversation_has_no_faults() -> None:
    book = ledger()
    book.received(
        dumps(answer(protocolVersion="2025-11-25", capabilities={}, serverInfo={"name": "s", "version": "1"}))
    )
    book.sent(dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
    book.received(dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))
    assert book.faults == []


@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc":"2.0","id":1,"result":{"x":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"id":1,"result":{}}',
        b'{"jsonrpc":"2.0",\n"id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"x":"\xff"}}',
        dumps(answer()),
        dumps({"jsonrpc": "2.0", "method": "notifications/nothing"}),
        dumps({"jsonrpc": "2.0", "id": 5, "method": "tools/list"}),
        dumps([answer()]),
    ],
)
def test_what_a_server_must_not_send_is_a_fault(frame: bytes) -> None:
    book = ledger()
    book.received(frame)
    assert book.faults != []


def test_what_a_client_must_not_send_is_a_fault_unless_the_test_means_it() -> None:
    book = ledger()
    book.sent(b'{"jsonrpc":"2.0","id":null,"method":"ping"}', valid=False)
    assert book.faults == []
    book.sent(b'{"jsonrpc":"2.0","id":null,"method":"ping"}')
    assert book.faults != []


def test_tolerated_and_own_methods_are_exempt_by_name() -> None:
    book = ledger(own=["com.example/x"])
    book.sent(dumps({"jsonrpc": "2.0", "method": "initialized"}))
    book.sent(dumps({"jsonrpc": "2.0", "id": 2, "method": "shutdown"}))
    book.sent(dumps({"jsonrpc": "2.0", "method": "exit"}))
    book.received(dumps({"jsonrpc": "2.0", "method": "tools/list"}))
    book.received(dumps({"jsonrpc": "2.0", "method": "notifications/root"}))
    book.received(dumps({"jsonrpc": "2.0", "method": "com.example/x"}))
    assert book.faults == []
    book.sent(dumps({"jsonrpc": "2.0", "id": 3, "method": "com.example/y"}))
    assert book.faults != []


def test_each_answer_is_held_against_the_revision_of_its_request() -> None:
    book = Ledger("2025-11-25")
    for id, params in [(1, {}), (2, {"_meta": modern_meta()})]:
        book.sent(dumps({"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": params}))
    book.received(dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}))
    assert book.faults == []
    book.received(dumps({"jsonrpc": "2.0", "id": 2, "result": {"tools": []}}))
    assert book.faults != []


def test_strictly_reads_what_is_json() -> None:
    assert strictly('{"a":"日本😀"}'.encode()) == {"a": "日本😀"}
