"""`tests.spec` itself: what it must find fault with, since other tests rely on it."""

from __future__ import annotations

from typing import Any

import pytest

from tests import spec

pytestmark = spec.needs_spec

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x"}}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
RESULT = {"jsonrpc": "2.0", "id": 1, "result": {"content": []}}
NEW_RESULT = {"jsonrpc": "2.0", "id": 1, "result": {"content": [], "resultType": "complete"}}
ASKING = {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "input_required", "requestState": "s"}}


def error(code: int, **members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "error": {"code": code, "message": "m", **members.pop("more", {})}, **members}


@pytest.mark.parametrize(
    ("revision", "sender", "message", "method"),
    [
        ("2024-11-05", "client", CALL, None),
        ("2026-07-28", "client", {**CALL, "params": {"name": "x", "_meta": META}}, None),
        ("2025-11-25", "server", RESULT, "tools/call"),
        ("2026-07-28", "server", NEW_RESULT, "tools/call"),
        ("2026-07-28", "server", ASKING, "tools/call"),
        ("2025-11-25", "server", {"jsonrpc": "2.0", "id": 1, "result": {}}, "ping"),
        ("2025-11-25", "server", {"jsonrpc": "2.0", "id": 1, "result": {"any": 1}}, "com.example/own"),
        ("2025-03-26", "client", [CALL, {"jsonrpc": "2.0", "method": "notifications/initialized"}], None),
        ("2025-06-18", "server", error(-32700, id=None), None),
        ("2025-11-25", "server", error(-32700), None),
        ("2025-11-25", "server", error(-32002, id=1), None),
        ("2026-07-28", "server", error(-32022, id=1, more={"data": {"requested": "x", "supported": []}}), None),
    ],
)
def test_a_right_message_passes(revision: str, sender: str, message: Any, method: str | None) -> None:
    assert spec.validate_message(revision, sender, message, method) == []


@pytest.mark.parametrize(
    ("revision", "sender", "message", "method"),
    [
        ("2026-07-28", "client", CALL, None),
        ("2024-11-05", "server", CALL, None),
        ("2024-11-05", "client", {**CALL, "id": None}, None),
        ("2024-11-05", "client", {"jsonrpc": "2.0", "method": "tools/list"}, None),
        ("2024-11-05", "client", {**CALL, "method": "shutdown"}, None),
        ("2024-11-05", "client", {**CALL, "method": "notifications/initialized"}, None),
        ("2025-11-25", "server", NEW_RESULT | {"result": {"content": 1}}, "tools/call"),
        ("2026-07-28", "server", RESULT, "tools/call"),
        ("2026-07-28", "server", ASKING, "tools/list"),
        ("2025-06-18", "client", [CALL], None),
        ("2025-06-18", "server", error(-32700), None),
        ("2025-11-25", "server", error(-32700, id=None), None),
        ("2026-07-28", "server", error(-32002, id=1), None),
        ("2025-11-25", "server", error(-32000, id=1), None),
        ("2025-11-25", "server", error(-32022, id=1, more={"data": {"requested": "x", "supported": []}}), None),
        ("2026-07-28", "server", error(-32022, id=1), None),
    ],
)
def test_a_wrong_message_does_not(revision: str, sender: str, message: Any, method: str | None) -> None:
    assert spec.validate_message(revision, sender, message, method) != []
