"""`modelwire.protocol.types`: how the types look from Python."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import msgspec
import pytest

from modelwire.protocol import types as t
from modelwire.protocol.types.base import Choice, Model, is_choice


def test_required_fields_come_first_and_by_position() -> None:
    assert t.TextContent("hi").text == "hi"
    assert t.Tool("add", {"type": "object"}, title="Add").title == "Add"
    assert t.CallToolResult([t.TextContent("hi")]).content[0] == t.TextContent("hi")


def test_a_block_says_its_type_as_on_the_wire() -> None:
    blocks = (t.TextContent, t.ImageContent, t.AudioContent, t.ResourceLink, t.EmbeddedResource, t.ToolUseContent)
    assert [block.type for block in blocks] == ["text", "image", "audio", "resource_link", "resource", "tool_use"]


def test_names_are_camel_case_on_the_wire_and_unset_fields_are_absent() -> None:
    tool = t.Tool("t", {}, annotations=t.ToolAnnotations(read_only_hint=False))
    assert msgspec.json.encode(tool) == b'{"name":"t","inputSchema":{},"annotations":{"readOnlyHint":false}}'


def _public_structs() -> list[type[Any]]:
    found: list[type[Any]] = []
    for module in pkgutil.iter_modules(t.__path__):
        members = vars(importlib.import_module(f"{t.__name__}.{module.name}")).values()
        found += [kind for kind in members if isinstance(kind, type) and kind.__module__.startswith(t.__name__)]
    return [kind for kind in dict.fromkeys(found) if issubclass(kind, Model) or is_choice(kind)]


def test_every_public_type_can_be_imported_from_the_package() -> None:
    names = {kind.__name__ for kind in _public_structs() if not kind.__name__.startswith("_")}
    assert names - {"Model", "Choice"} <= set(t.__all__)
    assert all(hasattr(t, name) for name in t.__all__)


@pytest.mark.parametrize("kind", _public_structs(), ids=lambda kind: kind.__name__)
def test_every_public_type_has_a_docstring_of_its_own(kind: type[Any]) -> None:
    assert kind.__name__.startswith("_") or kind.__dict__.get("__doc__")


def test_the_members_of_a_choice_count_as_instances_but_are_no_choices() -> None:
    contents = t.TextResourceContents("u:x", "text")
    assert isinstance(contents, t.ResourceContents)
    assert is_choice(t.ResourceContents)
    assert not is_choice(t.TextResourceContents)
    assert issubclass(t.TextResourceContents, Choice)


def test_unknown_content_compares_by_what_came() -> None:
    block = t.UnknownContent({"type": "video"})
    assert block == t.UnknownContent({"type": "video"})
    assert block != t.UnknownContent({"type": "smell"})
    assert block != {"type": "video"}
    assert repr(block) == "UnknownContent({'type': 'video'})"
    assert block.type == "video"
