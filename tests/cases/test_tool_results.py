"""What a tool's result becomes, and what a client makes of a list with bad tools in it."""

from __future__ import annotations

import asyncio
import collections
import datetime
import enum
import inspect
import json
import logging
import math
import pathlib
import uuid
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, Required, TypedDict

import jsonschema_rs
import msgspec
import pydantic
import pytest
import typing_extensions

from modelwire import Client, Server, ToolError, types
from modelwire.protocol.structured import WRAPPED
from tests.fake_server import MODERN, alive, talking
from tests.wire import REVISIONS, every_revision, session_talk

STRUCTURED = REVISIONS[2:]
"""The revisions that have structured content."""
MISSING: Any = inspect.Parameter.empty


def returning(value: Any, annotation: Any = MISSING) -> Server:
    """Return a server whose tool ``give`` returns that value, annotated so."""
    server = Server("s")

    async def give():  # type: ignore[no-untyped-def]
        return value

    if annotation is not MISSING:
        give.__annotations__["return"] = annotation
    server.add_tool(give)
    return server


async def given(server: Server, revision: str) -> tuple[dict[str, Any], Any, dict[str, Any]]:
    """Return the result of ``give``, its structured value without any wrapping, and the tool as it is listed.

    What the specification asks of a result is checked here: that it keeps its own output schema, and that the same
    value stands there as text (server/tools, Structured Content).
    """
    async with session_talk(server, revision) as talk:
        (tool,) = (await talk.result("tools/list"))["tools"]
        result = await talk.call("give")
    value = MISSING
    if "outputSchema" in tool and not result.get("isError"):
        jsonschema_rs.validator_for(tool["outputSchema"]).validate(result["structuredContent"])
        assert (WRAPPED in tool.get("_meta", {})) is (WRAPPED in result.get("_meta", {}))
    if "structuredContent" in result:
        value = result["structuredContent"]
        if WRAPPED in result.get("_meta", {}):
            value = value["result"]
        text = result["content"][0]["text"]
        assert (text if isinstance(value, str) else json.loads(text)) == value
    return result, value, tool


# --------------------------------------------------------------------------------------------------- keys left out


class Person(TypedDict):
    name: str
    age: NotRequired[int]


class PersonOfExtensions(typing_extensions.TypedDict):
    name: str
    age: typing_extensions.NotRequired[int]


class Loose(TypedDict, total=False):
    name: Required[str]
    age: int


class Inheriting(Person):
    city: NotRequired[str]


class Nullable(TypedDict):
    name: str
    age: NotRequired[Optional[int]]


class Described(TypedDict):
    name: str
    age: Annotated[NotRequired[int], msgspec.Meta(ge=0)]


class Household(TypedDict):
    head: Person
    others: NotRequired[list[Person]]


X = {"name": "x"}


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Person, X),
        (Person, {"name": "x", "age": 1}),
        (PersonOfExtensions, X),
        (Loose, X),
        (Inheriting, X),
        (Inheriting, {"name": "x", "city": "Oslo"}),
        (Nullable, X),
        (Nullable, {"name": "x", "age": None}),
        (Described, X),
        (Household, {"head": X}),
        (Household, {"head": X, "others": [X, {"name": "y", "age": 2}]}),
        (list[Person], [X, {"name": "y", "age": 2}]),
        (dict[str, Person], {"a": X}),
        (Optional[Person], X),
        (Person | PersonOfExtensions, X),
    ],
    ids=str,
)
@pytest.mark.parametrize("revision", STRUCTURED)
async def test_a_key_that_is_left_out_stays_out(revision: str, annotation: Any, value: Any) -> None:
    _, structured, _ = await given(returning(value, annotation), revision)
    assert structured == value


@pytest.mark.parametrize("annotation", [Person, PersonOfExtensions, Loose, Inheriting, Nullable])
async def test_a_key_that_is_left_out_of_an_argument_stays_out(annotation: Any) -> None:
    received = []

    async def take(person) -> str:  # type: ignore[no-untyped-def]
        received.append(person)
        return "taken"

    take.__annotations__["person"] = annotation
    server = Server("s")
    server.add_tool(take)
    async with session_talk(server, "2025-11-25") as talk:
        await talk.text("take", {"person": X})
        assert (await talk.call("take", {"person": {"age": 1}}))["isError"] is True
    assert received == [X]


# --------------------------------------------------------------------------------------------------- empty and nested


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (list[int], []),
        (list[Any], []),
        (list, []),
        (list[str], []),
        (list[list[int]], [[1], [2, 3]]),
        (list[list[int]], [[]]),
        (list[list[list[int]]], [[[1]], [], [[], [2]]]),
        (list[Any], [[1], "a", [], None, {}]),
        (list[Optional[int]], [None]),
        (list[str], [""]),
        (dict[str, Any], {}),
        (dict[str, list[int]], {"a": []}),
        (dict, {"a": [[]]}),
        (set[int], []),
        (tuple[int, ...], []),
        (tuple[list[int], int], [[1], 2]),
        (Optional[list[int]], []),
        (Optional[int], None),
        (int, 0),
        (bool, False),
    ],
    ids=str,
)
@every_revision
async def test_what_is_empty_or_nested_is_sent_as_it_is(revision: str, annotation: Any, value: Any) -> None:
    given_value = {set[int]: set, tuple[int, ...]: tuple, tuple[list[int], int]: tuple}.get(annotation, lambda v: v)
    result, structured, _ = await given(returning(given_value(value), annotation), revision)
    assert [json.loads(block["text"]) for block in result["content"]] == [value]
    assert structured == value if revision in STRUCTURED else structured is MISSING


@pytest.mark.parametrize(
    "value",
    [[], [[1], [2, 3]], [[]], [[], []], {}, {"a": []}, [1, 2], [None], 0, False, [["a"]], (), ((1,),)],
    ids=repr,
)
@pytest.mark.parametrize("annotation", [MISSING, Any])
@every_revision
async def test_without_an_annotation_what_is_empty_or_nested_is_json_as_text(
    revision: str, annotation: Any, value: Any
) -> None:
    result, structured, _ = await given(returning(value, annotation), revision)
    assert [json.loads(block["text"]) for block in result["content"]] == [json.loads(json.dumps(value))]
    assert structured is MISSING


@pytest.mark.parametrize("annotation", [MISSING, Any, None, str, Optional[str]])
@every_revision
async def test_none_has_nothing_to_say_and_an_empty_text_is_a_text(revision: str, annotation: Any) -> None:
    if annotation is not str:
        result, _, _ = await given(returning(None, annotation), revision)
        assert not result.get("isError")
        assert result["content"] == ([{"type": "text", "text": "null"}] if annotation == Optional[str] else [])
    if annotation is not None:
        result, _, tool = await given(returning("", annotation), revision)
        assert "outputSchema" in tool or result["content"] == [{"type": "text", "text": ""}]


@pytest.mark.parametrize("value", [[], [[1], [2, 3]], [[]], {}, {"a": []}, [None], None, "", 0, False], ids=repr)
@every_revision
async def test_a_client_gets_back_what_an_annotated_tool_returned(revision: str, value: Any) -> None:
    server = returning(value, type(value) if value is not None else Optional[int])
    async with Client(server, revision=revision) as client:
        assert await client.call("give", returns=type(value) if value is not None else Optional[int]) == value


# --------------------------------------------------------------------------------------------------- contradictions


@dataclass
class Point:
    x: int
    tags: list[str] = field(default_factory=list)


class Struct(msgspec.Struct):
    x: int


class Pair(NamedTuple):
    a: int
    b: str


class Model(pydantic.BaseModel):
    x: int


class Colour(enum.Enum):
    RED = "red"


class Markup(str):
    __slots__ = ()


@pytest.mark.parametrize("annotation", [MISSING, str, Any, str | None, list[str], dict[str, str]])
async def test_a_class_that_inherits_from_text_is_text(annotation: Any) -> None:
    text = Markup("<b>")
    value: Any = [text] if annotation == list[str] else {text: text} if annotation == dict[str, str] else text
    result, structured, _ = await given(returning(value, annotation), "2026-07-28")
    assert "isError" not in result
    assert structured in (MISSING, value)
    assert "<b>" in result["content"][0]["text"]


@pytest.mark.parametrize("value", [pathlib.PurePosixPath("a"), collections.deque(["a"])])
async def test_what_has_a_json_form_has_it_without_an_annotation_too(value: Any) -> None:
    result, _, _ = await given(returning(value), "2025-11-25")
    assert result["content"][0]["text"] in ('"a"', '["a"]')


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, "notint"),
        (int, "1"),
        (int, 1.5),
        (int, True),
        (int, None),
        (float, "1.0"),
        (float, math.nan),
        (float, math.inf),
        (bool, 1),
        (bool, "true"),
        (list[str], {"a": "b"}),
        (list[str], "text"),
        (list[str], [1]),
        (list[str], ["a", None]),
        (list[list[int]], [1]),
        (list[float], [math.nan]),
        (dict[str, int], [("a", 1)]),
        (dict[str, int], {"a": "x"}),
        (dict[str, Any], []),
        (set[int], {"a"}),
        (tuple[int, str], (1,)),
        (tuple[int, str], (1, 2)),
        (Optional[int], "x"),
        (int | list[int], "x"),
        (Literal["a", "b"], "c"),
        (Colour, "blue"),
        (Colour, 1),
        (datetime.datetime, "yesterday"),
        (uuid.UUID, "no uuid"),
        (Annotated[int, msgspec.Meta(ge=1)], 0),
        (Annotated[list[int], msgspec.Meta(min_length=1)], []),
        (Person, {}),
        (Person, {"name": 5}),
        (Person, {"name": "x", "age": "old"}),
        (Person, []),
        (list[Person], [{"name": "x"}, {"age": 1}]),
        (Point, {"x": "1"}),
        (Point, Point("a")),  # type: ignore[arg-type]
        (Point, Point(1, [2])),  # type: ignore[list-item]
        (Point, 5),
        (Struct, Struct("a")),  # type: ignore[arg-type]
        (Struct, None),
        (Pair, Pair("a", "b")),  # type: ignore[arg-type]
        (Model, Model.model_construct(x="a")),
        (Model, {"x": "a"}),
        (Model, Model.model_construct()),
    ],
    ids=repr,
)
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25", MODERN])
async def test_a_result_that_contradicts_its_annotation_is_a_failed_call(
    revision: str, annotation: Any, value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with session_talk(returning(value, annotation), revision) as talk:
        for _ in range(2):
            result = await talk.call("give")
            assert result["isError"] is True
            assert "structuredContent" not in result
            assert result["content"][0]["text"]
    assert "give" in caplog.text


@pytest.mark.parametrize("revision", STRUCTURED)
@pytest.mark.parametrize("value", ["notint", {"n": "notint"}, {}, [1], None, {"n": 1, "more": 2}], ids=repr)
async def test_a_schema_given_by_hand_holds_results_too(revision: str, value: Any) -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    server = Server("s")
    server.add_tool(types.Tool("give", {"type": "object"}, output_schema=schema), lambda arguments: value)
    server.add_tool(types.Tool("right", {"type": "object"}, output_schema=schema), lambda arguments: {"n": 1})
    whole = types.CallToolResult([], structured_content=value)
    server.add_tool(types.Tool("whole", {"type": "object"}, output_schema=schema), lambda arguments: whole)
    async with session_talk(server, revision) as talk:
        for name in ("give", "whole"):
            result = await talk.call(name)
            assert result["isError"] is True
            assert "structuredContent" not in result
        assert (await talk.call("right"))["structuredContent"] == {"n": 1}


@every_revision
async def test_a_caller_hears_of_a_contradiction_as_a_failed_tool_and_goes_on(revision: str) -> None:
    server = returning("notint", int)

    @server.tool
    async def right() -> int:
        return 1

    async with Client(server, revision=revision) as client:
        with pytest.raises(ToolError):
            await client.call("give", returns=int)
        assert await client.call("right", returns=int) == 1


# --------------------------------------------------------------------------------------------------- bad tools in lists

GOOD: dict[str, Any] = {"inputSchema": {"type": "object"}}
BAD: dict[str, Any] = {
    "schema-null": {"inputSchema": None},
    "schema-missing": {},
    "schema-any-of": {"inputSchema": {"anyOf": [{"type": "object"}, {"type": "array"}]}},
    "schema-array": {"inputSchema": {"type": "array"}},
    "schema-list": {"inputSchema": []},
    "schema-text": {"inputSchema": "object"},
    "schema-boolean": {"inputSchema": False},
    "title-number": {**GOOD, "title": 5},
    "description-list": {**GOOD, "description": ["a"]},
    "annotations-text": {**GOOD, "annotations": "x"},
    "meta-list": {**GOOD, "_meta": []},
}
FINE: dict[str, Any] = {
    "booleans": {"inputSchema": {"type": "object", "properties": {"x": True, "y": False}}},
    "extra": {**GOOD, "later": {"a": [1]}, "x-vendor": None},
    "references": {"inputSchema": {"type": "object", "$defs": {"a": True}, "properties": {"x": {"$ref": "#/$defs/a"}}}},
    "any-of-inside": {"inputSchema": {"type": "object", "anyOf": [{"required": ["a"]}, True]}},
    "draft-07": {"inputSchema": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}},
    "additional": {"inputSchema": {"type": "object", "additionalProperties": True, "default": {}}},
    "": GOOD,
    "Name with spaces, dots. and 日本": GOOD,
}


def page(items: dict[str, Any], **more: Any) -> dict[str, Any]:
    tools = [{"name": name, **tool} for name, tool in items.items()]
    return {"tools": tools, "ttlMs": 0, "cacheScope": "private", **more}


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", "2025-11-25", MODERN])
async def test_bad_tools_are_left_out_by_name_and_every_good_one_stays(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    mixed = {"first": GOOD, **BAD, **FINE, "last": GOOD}
    async with talking(revision) as (client, fake):
        listing = asyncio.create_task(client.list_tools())
        await fake.result(await fake.expect("tools/list"), page(mixed))
        assert [tool.name for tool in await listing] == ["first", *FINE, "last"]
        await alive(client, fake)
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    for name in BAD:
        assert any(name in warning for warning in warnings), name
    assert len(warnings) <= len(BAD)


async def test_schemas_of_good_tools_come_as_they_were_sent() -> None:
    async with talking() as (client, fake):
        listing = asyncio.create_task(client.list_tools())
        await fake.result(await fake.expect("tools/list"), page(FINE))
        schemas = {tool.name: tool.input_schema for tool in await listing}
    assert schemas == {name: tool["inputSchema"] for name, tool in FINE.items()}


async def test_three_hundred_good_tools_are_not_lost_to_one_on_another_page() -> None:
    async with talking() as (client, fake):
        listing = asyncio.create_task(client.list_tools())
        many = {f"tool{number}": GOOD for number in range(311)}
        await fake.result(await fake.expect("tools/list"), page(many, nextCursor="c"))
        await fake.result(await fake.expect("tools/list"), page({"bad": {"inputSchema": None}}))
        assert len(await listing) == 311


async def test_a_page_of_bad_tools_only_is_an_empty_list() -> None:
    async with talking() as (client, fake):
        listing = asyncio.create_task(client.list_tools())
        await fake.result(await fake.expect("tools/list"), page(BAD))
        assert await listing == []


async def test_a_tool_that_is_left_out_of_the_list_may_still_be_called() -> None:
    async with talking() as (client, fake):
        listing = asyncio.create_task(client.list_tools())
        await fake.result(await fake.expect("tools/list"), page({"x": {"inputSchema": None}}))
        assert await listing == []
        await alive(client, fake)
