"""`modelwire.protocol.methods`: the gate. That the rows are right is shown in test_schemas.py."""

from __future__ import annotations

from typing import Any

import pytest

from modelwire.protocol.methods import METHODS, lookup
from modelwire.protocol.revisions import LATEST, LATEST_HANDSHAKE, REVISIONS

OLDEST = REVISIONS[0]


@pytest.mark.parametrize(
    ("name", "revision", "sender"),
    [
        ("tools/call", OLDEST, "client"),
        ("tools/call", LATEST, "client"),
        ("initialize", LATEST_HANDSHAKE, "client"),
        ("server/discover", LATEST, "client"),
        ("ping", OLDEST, "server"),
        ("ping", OLDEST, "client"),
        ("tasks/get", LATEST_HANDSHAKE, "server"),
        ("notifications/cancelled", LATEST, "server"),
        ("notifications/progress", LATEST, "server"),
    ],
)
def test_what_a_side_may_send_is_found(name: str, revision: Any, sender: Any) -> None:
    assert lookup(name, revision, sender) is METHODS[name]


@pytest.mark.parametrize(
    ("name", "revision", "sender"),
    [
        ("tools/call", LATEST, "server"),
        ("initialize", LATEST, "client"),
        ("initialize", OLDEST, "server"),
        ("server/discover", LATEST_HANDSHAKE, "client"),
        ("ping", LATEST, "client"),
        ("elicitation/create", OLDEST, "server"),
        ("elicitation/create", LATEST, "server"),
        ("notifications/progress", LATEST, "client"),
        ("tasks/get", LATEST, "client"),
        ("tasks/get", OLDEST, "client"),
    ],
)
def test_what_a_side_may_not_send_is_not_found(name: str, revision: Any, sender: Any) -> None:
    assert lookup(name, revision, sender) is None


@pytest.mark.parametrize("name", ["shutdown", "exit", "initialized", "notifications/root", "", "tools/List"])
def test_what_no_revision_has_is_not_found(name: str) -> None:
    assert not any(lookup(name, revision, sender) for revision in REVISIONS for sender in ("client", "server"))


def test_the_name_of_what_a_request_is_for_is_a_field_of_its_params() -> None:
    named = {name: row.name_field for name, row in METHODS.items() if row.name_field}
    assert named == {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
    assert all(field in METHODS[name].params.__struct_fields__ for name, field in named.items())


def test_notifications_have_no_result_and_are_called_so() -> None:
    for name, row in METHODS.items():
        assert row.notification == name.startswith("notifications/") == (row.result is None)


def test_only_what_may_change_something_is_not_repeated() -> None:
    asked = {name for name, row in METHODS.items() if row.sender != "server" and not row.notification}
    assert {name for name in asked if METHODS[name].effects} == {"tools/call", "tasks/cancel"}
