"""`modelwire.protocol.pruning`: leaving out what a revision lacks, and copying only where something is left out."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from modelwire.protocol import types as t
from modelwire.protocol import wire
from modelwire.protocol.pruning import prune
from modelwire.protocol.revisions import REVISIONS

V2024, V202503, V202506, V202511, V2026 = REVISIONS


def written(value: Any, revision: Any) -> Any:
    return json.loads(wire.encode(value, revision))


def test_what_needs_no_change_is_not_copied() -> None:
    result = t.CallToolResult([t.TextContent("a")], structured_content={"a": 1})
    assert all(prune(result, revision) is result for revision in (V202506, V202511, V2026))
    bare = t.CallToolResult([t.TextContent("a"), t.ImageContent("x", "image/png")])
    assert all(prune(bare, revision) is bare for revision in REVISIONS)


def test_only_the_parts_that_change_are_copied() -> None:
    kept, changed = t.Tool("a", {"type": "object"}), t.Tool("b", {"type": "object"}, title="B")
    tools = t.ListToolsResult([kept, changed])
    pruned = prune(tools, V2024)
    assert pruned.tools[0] is kept
    assert pruned.tools[1] == t.Tool("b", {"type": "object"})
    assert tools.tools == [kept, changed]
    assert changed.title == "B"


def test_values_without_revisions_pass_untouched() -> None:
    class Mine(msgspec.Struct):
        title: str

    for value in (Mine("x"), {"title": Mine("x")}, [1, (2, 3)], None, "text", 5):
        assert prune(value, V2024) is value


def test_fields_are_left_out_wherever_they_stand() -> None:
    contents = t.TextResourceContents("u:x", "t", meta={"a": 1})
    block = t.EmbeddedResource(contents, annotations=t.Annotations(priority=0.5, last_modified="x"), meta={"a": 1})
    old = {"uri": "u:x", "text": "t"}
    assert written(t.CallToolResult([block]), V2024) == {
        "content": [{"type": "resource", "resource": old, "annotations": {"priority": 0.5}}]
    }
    assert written(t.ReadResourceResult([contents]), V202503) == {"contents": [old]}
    assert written(t.ReadResourceResult([contents]), V202506) == {"contents": [{**old, "_meta": {"a": 1}}]}


def test_a_subclass_is_treated_like_its_base() -> None:
    class MyAudio(t.AudioContent, tag="audio"):
        pass

    assert written(MyAudio("AAAA", "audio/wav", meta={"a": 1}), V2024)["type"] == "text"
    assert written(MyAudio("AAAA", "audio/wav", meta={"a": 1}), V202503) == {
        "type": "audio",
        "data": "AAAA",
        "mimeType": "audio/wav",
    }


def test_a_field_that_one_revision_demands_cannot_be_forgotten() -> None:
    params = t.ElicitRequestURLParams("m", "https://example.com")
    with pytest.raises(wire.WireError, match='ElicitRequestURLParams needs "elicitationId" in revision 2025-11-25'):
        wire.encode(params, V202511)
    assert "elicitationId" not in written(params, V2026)
