"""`modelwire.protocol.downgrade`: what peers get whose revision lacks a kind of thing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from modelwire.protocol import types as t
from modelwire.protocol import wire
from modelwire.protocol.revisions import REVISIONS

V2024, V202503, V202506, V202511, V2026 = REVISIONS

AUDIO = t.AudioContent("AAAA", "audio/wav", annotations=t.Annotations(priority=1.0))
LINK = t.ResourceLink("file:///a", "a", title="A", description="what it is", size=3)
USE = t.ToolUseContent("1", "add", {"a": 1})
ANSWER = t.ToolResultContent("1", [t.TextContent("3"), LINK], is_error=True)


def written(value: Any, revision: Any) -> Any:
    return json.loads(wire.encode(value, revision))


@pytest.mark.parametrize(
    ("block", "last_without", "text"),
    [
        (AUDIO, V2024, "[audio left out: audio/wav, 3 bytes]"),
        (LINK, V202503, "[resource: A, file:///a - what it is]"),
        (USE, V202506, '[tool call 1: add {"a":1}]'),
        (ANSWER, V202506, "[tool error 1: 3\n[resource: A, file:///a - what it is]]"),
    ],
)
def test_a_block_becomes_a_text_that_says_so_where_its_kind_is_unknown(
    block: Any, last_without: Any, text: str
) -> None:
    for revision in REVISIONS:
        found = written(block, revision)
        if revision.covers(None, last_without.name):
            assert (found["type"], found["text"]) == ("text", text)
        else:
            assert found["type"] == block.type


def test_annotations_stay_on_the_text() -> None:
    assert written(AUDIO, V2024)["annotations"] == {"priority": 1.0}


def test_blocks_are_replaced_wherever_they_stand() -> None:
    prompt = t.GetPromptResult([t.PromptMessage("user", AUDIO)])
    assert written(prompt, V2024)["messages"][0]["content"]["type"] == "text"
    sampling = t.CreateMessageRequestParams([t.SamplingMessage("user", AUDIO)], 5)
    assert written(sampling, V2024)["messages"][0]["content"]["type"] == "text"
    assert written({"any": [t.CallToolResult([AUDIO])]}, V2024)["any"][0]["content"][0]["type"] == "text"


def test_a_message_of_several_blocks_becomes_several_messages() -> None:
    params = t.CreateMessageRequestParams([t.SamplingMessage("user", [t.TextContent("a"), USE])], 5)
    assert written(params, V202506)["messages"] == [
        {"role": "user", "content": {"type": "text", "text": "a"}},
        {"role": "user", "content": {"type": "text", "text": '[tool call 1: add {"a":1}]'}},
    ]
    assert len(written(params, V202511)["messages"][0]["content"]) == 2


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ([t.TextContent("a")], {"type": "text", "text": "a"}),
        ([t.ImageContent("AAAA", "image/png")], {"type": "image", "data": "AAAA", "mimeType": "image/png"}),
        (
            [t.TextContent("a"), t.ImageContent("AAAA", "image/png"), t.UnknownContent({"type": "video"})],
            {"type": "text", "text": "a\n\n[image left out: image/png, 3 bytes]\n\n[video left out]"},
        ),
        ([], {"type": "text", "text": ""}),
    ],
)
def test_an_answer_of_several_blocks_becomes_one(content: Any, expected: Any) -> None:
    assert written(t.CreateMessageResult("assistant", content, "m"), V202506)["content"] == expected


def _form(field: Any) -> t.ElicitRequestFormParams:
    return t.ElicitRequestFormParams("m", t.RequestedSchema({"f": field}))


def test_a_titled_choice_becomes_the_form_that_the_older_revision_knows() -> None:
    options = [t.TitledOption("r", "Red"), t.TitledOption("g", "Green")]
    form = _form(t.TitledSingleSelectEnumSchema(options, title="Colour", default="r"))
    assert written(form, V202506)["requestedSchema"]["properties"]["f"] == {
        "type": "string",
        "enum": ["r", "g"],
        "enumNames": ["Red", "Green"],
        "title": "Colour",
    }
    assert "oneOf" in written(form, V202511)["requestedSchema"]["properties"]["f"]


@pytest.mark.parametrize(
    "params",
    [
        _form(t.UntitledMultiSelectEnumSchema(t.UntitledOptions(["a"]))),
        _form(t.TitledMultiSelectEnumSchema(t.TitledOptions([t.TitledOption("a", "A")]))),
        t.ElicitRequestURLParams("m", "https://example.com", elicitation_id="1"),
    ],
)
def test_what_has_no_older_form_is_refused(params: Any) -> None:
    with pytest.raises(wire.WireError, match="cannot be said in revision 2025-06-18"):
        wire.encode(params, V202506)
    assert wire.encode(params, V202511)


def test_a_form_field_that_says_more_than_foreseen_is_kept_as_it_came() -> None:
    odd = {"type": "string", "pattern": "^a"}
    data = json.dumps({"message": "m", "requestedSchema": {"type": "object", "properties": {"f": odd}}}).encode()
    params = wire.decode(data, t.ElicitRequestParams)
    assert params.requested_schema.properties == {"f": odd}
    assert written(params, V2026) == json.loads(data)


@pytest.mark.parametrize(
    "schema",
    [
        t.StringSchema(format="email", min_length=1),
        t.NumberSchema("integer", minimum=1),
        t.NumberSchema("number", maximum=1.5),
        t.BooleanSchema(default=False),
        t.UntitledSingleSelectEnumSchema(["a"]),
        t.LegacyTitledEnumSchema(["a"], ["A"]),
        t.TitledSingleSelectEnumSchema([t.TitledOption("a", "A")]),
        t.UntitledMultiSelectEnumSchema(t.UntitledOptions(["a"]), min_items=1),
        t.TitledMultiSelectEnumSchema(t.TitledOptions([t.TitledOption("a", "A")]), default=["a"]),
    ],
)
def test_every_kind_of_form_field_is_read_as_what_it_was(schema: Any) -> None:
    params = wire.decode(wire.encode(_form(schema), V2026), t.ElicitRequestParams)
    assert params.requested_schema.properties == {"f": schema}
