"""What a result that is only content may be, by its annotation."""

from __future__ import annotations

import collections
import datetime
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Never, Optional

import msgspec
import pydantic
import pytest

from modelwire import Audio, EmbeddedResource, Image, ResourceLink, Server, Text, types
from tests.cases.test_tool_results import returning
from tests.wire import every_revision, session_talk

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
PICTURE = Image(PNG)
WORDS = Text("a")
LINK = ResourceLink("x://y", "y")
HELD = EmbeddedResource("x://y", "held")


class Loose(pydantic.BaseModel):
    x: Any


class Strange:
    """Nothing that JSON knows, nor any converter."""


@pytest.mark.parametrize(
    ("annotation", "value", "words"),
    [
        (str, None, "result: expected text, got None; does every way through it return something?"),
        (str, 5, "result: expected text, got a value of type int"),
        (str, b"x", "result: expected text, got a value of type bytes"),
        (Annotated[str, msgspec.Meta(max_length=2)], "abc", 'result: expected text of at most 2 characters, got "abc"'),
        (None, "x", "result: expected None, got a value of type str"),
        (Never, 1, "result: expected that it never returns, got a value of type int"),
        (Image, "x.png", "result: expected Image, got a value of type str"),
        (Image, Audio(b"OggS"), "result: expected Image, got a value of type AudioContent"),
        (Audio, PICTURE, "result: expected Audio"),
        (Text, "a", "result: expected Text"),
        (ResourceLink, "x://y", "result: expected ResourceLink"),
        (EmbeddedResource, LINK, "result: expected EmbeddedResource"),
        (types.ImageContent, WORDS, "result: expected ImageContent"),
        (list[Image], PICTURE, "result: expected a list, got a value of type ImageContent"),
        (list[Image], [PICTURE, "x"], "result[1]: expected Image, got a value of type str"),
        (Image | str, 5, "result: expected Image or text, got a value of type int"),
        (Optional[Image], 5, "result: expected Image or None, got a value of type int"),
        (Image | list[Image], [1], "result[0]: expected Image, got a value of type int"),
        (list[Image | dict[str, int]], [{"n": "x"}], 'result[0].n: expected an integer, got "x"'),
        (tuple[Image, str], [PICTURE], "result: expected a list of exactly 2 items"),
        (tuple[Image, str], (PICTURE, 1), "result[1]: expected text"),
        (Sequence[Image], [None], "result[0]: expected Image, got None"),
        (Image | Strange, 5, "result: expected Image or Strange, got a value of type int"),
    ],
    ids=str,
)
async def test_content_that_contradicts_its_annotation_is_a_failed_call(
    annotation: Any, value: Any, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with session_talk(returning(value, annotation), "2025-11-25") as talk:
        result = await talk.call("give")

    assert result["isError"] is True
    assert result["content"] == [
        {"type": "text", "text": "The tool 'give' returned something it should not have; its log says more."}
    ]
    assert f"give returned what its annotation does not allow: {words}" in caplog.text


@pytest.mark.parametrize(
    ("annotation", "value", "blocks"),
    [
        (str, "", ["text"]),
        (None, None, []),
        (Annotated[str, "said"], "x", ["text"]),
        (Image, PICTURE, ["image"]),
        (Image | None, None, []),
        (Text, WORDS, ["text"]),
        (list[Image], [PICTURE, PICTURE], ["image", "image"]),
        (list[Image], (PICTURE,), ["image"]),
        (list[Image | str | dict[str, int]], [PICTURE, "x", {"n": 1}], ["image", "text", "text"]),
        (list[list[Image]], [[PICTURE], [PICTURE]], ["image", "image"]),
        (tuple[Image, ...], [PICTURE], ["image"]),
        (collections.deque[Image], collections.deque([PICTURE]), ["image"]),
        (tuple[str, Image], ("x", PICTURE), ["text", "image"]),
        (Image | datetime.date, datetime.date(2026, 1, 31), ["text"]),
        (Image, types.CallToolResult([PICTURE]), ["image"]),
        (types.CallToolResult, types.CallToolResult([WORDS]), ["text"]),
    ],
    ids=str,
)
async def test_content_that_keeps_its_promise_is_sent(annotation: Any, value: Any, blocks: list[str]) -> None:
    async with session_talk(returning(value, annotation), "2025-11-25") as talk:
        result = await talk.call("give")

    assert "isError" not in result
    assert [block["type"] for block in result["content"]] == blocks
    assert "structuredContent" not in result


async def test_text_for_which_structured_false_asks_is_held_against_its_annotation_too() -> None:
    server = Server("s")

    @server.tool(structured=False)
    def number(text: bool) -> int:
        return "x" if text else 5  # type: ignore[return-value]

    @server.tool(structured=False)
    def strange() -> Strange:
        return {"anything": 1}  # type: ignore[return-value]

    async with session_talk(server, "2025-11-25") as talk:
        assert (await talk.call("number", {"text": False}))["content"][0]["text"] == "5"
        assert (await talk.call("number", {"text": True}))["isError"] is True
        assert (await talk.call("strange"))["isError"] is True


async def test_the_items_of_a_generator_are_held_against_what_it_yields() -> None:
    server = Server("s")

    @server.tool
    def pictures(wrong: bool) -> Iterator[Image]:
        yield PICTURE
        yield "x" if wrong else PICTURE  # type: ignore[misc]

    async with session_talk(server, "2025-11-25") as talk:
        assert len((await talk.call("pictures", {"wrong": False}))["content"]) == 2
        assert (await talk.call("pictures", {"wrong": True}))["isError"] is True


async def test_what_was_not_awaited_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async def inner() -> str:
        return "x"

    server = Server("s")

    @server.tool
    async def text() -> str:
        return inner()  # type: ignore[return-value]

    async with session_talk(server, "2025-11-25") as talk:
        assert (await talk.call("text"))["isError"] is True
    assert "text returned a coroutine; did you forget to await it?" in caplog.text


# --------------------------------------------------------------------------------------------------- unsaid types

MIXED = ["first", PICTURE, {"n": 1}, [HELD]]


@pytest.mark.parametrize(
    "annotation", [list, list[Any], list[object], tuple, Sequence[Any], collections.deque, list | None, Any]
)
@every_revision
async def test_a_list_of_unsaid_items_with_blocks_in_it_is_content_in_order_and_nothing_else(
    revision: str, annotation: Any
) -> None:
    value = collections.deque(MIXED) if annotation is collections.deque else MIXED
    async with session_talk(returning(value, annotation), revision) as talk:
        (tool,) = (await talk.result("tools/list"))["tools"]
        result = await talk.call("give")

    assert "outputSchema" not in tool
    assert [block["type"] for block in result["content"]] == ["text", "image", "text", "resource"]
    assert "structuredContent" not in result


@every_revision
async def test_a_list_of_unsaid_items_without_blocks_is_structured_all_the_same(revision: str) -> None:
    async with session_talk(returning([1, ["a"]], list), revision) as talk:
        result = await talk.call("give")

    assert result["content"] == [{"type": "text", "text": '[1,["a"]]'}]
    whole = {"2026-07-28": [1, ["a"]], "2025-11-25": {"result": [1, ["a"]]}, "2025-06-18": {"result": [1, ["a"]]}}
    assert result.get("structuredContent") == whole.get(revision)


@pytest.mark.parametrize(
    ("annotation", "value", "place"),
    [
        (dict, {"chart": PICTURE}, "result.chart"),
        (dict[str, Any], {"a": [PICTURE]}, "result.a[0]"),
        (Any, {"a": {"b": WORDS}}, "result.a.b"),
        (list[dict], [{"a": LINK}], "result[0].a"),  # type: ignore[type-arg]
        (list, [{"a": HELD}, WORDS], "result[0].a"),
        (Loose, Loose(x=PICTURE), "result.x"),
        (str | dict[str, Any], {"a": PICTURE}, "result.a"),
    ],
    ids=str,
)
@every_revision
async def test_a_block_inside_an_object_is_refused_and_the_log_says_what_to_return(
    revision: str, annotation: Any, value: Any, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with session_talk(returning(value, annotation), revision) as talk:
        result = await talk.call("give")

    assert result["isError"] is True
    assert f"inside an object, at {place}; " in caplog.text
    assert "return a list, such as [Image(...), {...}]" in caplog.text


@pytest.mark.parametrize("annotation", [dict[str, Image], list[dict[str, Audio | int]], set[Image]])
def test_blocks_inside_objects_are_refused_at_registration_where_the_annotation_says_so(annotation: Any) -> None:
    with pytest.raises(
        Exception, match=r"^give: its result has content inside an object or a set; return a list"
    ) as caught:
        returning({}, annotation)

    assert type(caught.value).__name__ == "SignatureError"


async def test_an_object_that_looks_like_a_block_is_an_object() -> None:
    value = {"a": {"type": "image", "data": "", "mimeType": "image/png"}}
    async with session_talk(returning(value, dict), "2026-07-28") as talk:
        assert (await talk.call("give"))["structuredContent"] == value


async def test_a_class_that_declares_a_block_as_its_field_has_it_in_its_json() -> None:
    class Page(msgspec.Struct):
        picture: types.ImageContent

    async with session_talk(returning(Page(PICTURE), Page), "2026-07-28") as talk:
        assert (await talk.call("give"))["structuredContent"]["picture"]["type"] == "image"


@pytest.mark.parametrize(
    ("annotation", "value", "options", "place"),
    [
        (dict, PICTURE, {}, "result"),
        (list[list], [[PICTURE]], {}, "result[0][0]"),  # type: ignore[type-arg]
        (list, [PICTURE], {"structured": True}, "result[0]"),
        (Any, ["a", PICTURE], {"output_schema": {"type": "array"}}, "result[1]"),
    ],
    ids=str,
)
async def test_a_block_where_a_schema_was_promised_is_refused(
    annotation: Any, value: Any, options: Any, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server("s")

    def give() -> Any:
        return value

    give.__annotations__["return"] = annotation
    server.add_tool(give, **options)
    async with session_talk(server, "2026-07-28") as talk:
        assert (await talk.call("give"))["isError"] is True
    assert f"give returned content at {place}, where JSON of a schema was promised; annotate" in caplog.text


async def test_an_object_that_leads_to_many_others_is_refused_in_no_time(caplog: pytest.LogCaptureFixture) -> None:
    class Link:
        def __init__(self, left: Any, right: Any) -> None:
            self.left, self.right = left, right

    value: Any = None
    for _ in range(100):
        value = Link(value, value)
    async with session_talk(returning(value, dict[str, list[Loose]]), "2025-11-25") as talk:
        assert (await talk.call("give"))["isError"] is True
    assert "give returned what its annotation does not allow: result: expected an object, got" in caplog.text
