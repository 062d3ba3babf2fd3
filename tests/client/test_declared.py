"""What a client declares, by what it was given, on each revision."""

from __future__ import annotations

import json
from typing import Any

import pytest

from modelwire import types
from modelwire.client.answering import Answering
from modelwire.client.declared import in_revision
from modelwire.protocol import wire
from modelwire.protocol.revisions import REVISIONS

FORM = {"on_elicit": print}
PAGE = {"on_elicit_url": print}
ALL = {**FORM, **PAGE, "on_sample": print, "roots": []}
ROOTS = {"roots": {"listChanged": True}}


def declared(revision: str, options: dict[str, Any]) -> Any:
    [found] = [each for each in REVISIONS if each.name == revision]
    return json.loads(wire.encode(in_revision(Answering(**options).capabilities, found), found))


@pytest.mark.parametrize(
    ("revision", "options", "expected"),
    [
        ("2025-11-25", {}, {}),
        ("2024-11-05", ALL, {"sampling": {}, **ROOTS}),
        ("2025-06-18", ALL, {"elicitation": {}, "sampling": {}, **ROOTS}),
        ("2025-11-25", ALL, {"elicitation": {"form": {}, "url": {}}, "sampling": {}, **ROOTS}),
        ("2026-07-28", ALL, {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}),
        ("2026-07-28", FORM, {"elicitation": {"form": {}}}),
        ("2026-07-28", PAGE, {"elicitation": {"url": {}}}),
        ("2025-06-18", PAGE, {}),
    ],
)
def test_what_is_given_is_declared_and_each_revision_gets_what_it_has(
    revision: str, options: Any, expected: Any
) -> None:
    assert declared(revision, options) == expected


def test_capabilities_are_added_to() -> None:
    given = types.ClientCapabilities(
        experimental={"x": {}},
        sampling=types.SamplingCapability(tools={}),
        elicitation=types.ElicitationCapability(),
    )
    assert declared("2025-11-25", {"capabilities": given, **PAGE, "on_sample": print}) == {
        "experimental": {"x": {}},
        "sampling": {"tools": {}},
        "elicitation": {"form": {}, "url": {}},  # an empty one means forms
    }
    assert given.elicitation == types.ElicitationCapability()
