"""Values of results, and the JSON of arguments."""

from __future__ import annotations

import datetime
import enum
import uuid
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import msgspec
import pytest
from msgspec import UNSET

from modelwire import Audio, Client, ConfigError, Image, Server, Text, ToolError, WrongResult, types
from modelwire.client.values import arguments_json, prompt_arguments, reference, value_of


@dataclass
class Day:
    city: str
    degrees: float


class Point(msgspec.Struct):
    x: int


class Colour(enum.Enum):
    RED = "red"


def result(*texts: str, structured: Any = UNSET, **more: Any) -> types.CallToolResult:
    return types.CallToolResult([types.TextContent(text) for text in texts], structured, **more)


def test_structured_content_comes_before_the_text() -> None:
    assert value_of(result("in words", structured={"a": 1}), None) == {"a": 1}


def test_null_is_a_structured_value() -> None:
    assert value_of(result("null", structured=None), None) is None
    with pytest.raises(WrongResult):
        value_of(result("null", structured=None), int)


def test_a_structured_value_becomes_the_type_that_is_asked_for() -> None:
    days = [{"city": "Oslo", "degrees": -3}, {"city": "Rome", "degrees": 20.5}]
    assert value_of(result(structured=days), list[Day]) == [Day("Oslo", -3.0), Day("Rome", 20.5)]
    assert value_of(result(structured={"x": 1}), Point) == Point(1)
    assert value_of(result(structured="red"), Colour) is Colour.RED
    assert value_of(result(structured={"x": 1, "later": 2}), Point) == Point(1)


def test_a_structured_value_of_another_type_is_wrong_and_says_where() -> None:
    with pytest.raises(
        WrongResult, match=r"returns=list\[.*Day\] wants: result\[0\]\.degrees: missing; expected a number"
    ):
        value_of(result(structured=[{"city": "Oslo"}]), list[Day])


def test_a_value_is_taken_out_of_an_object_in_which_others_wrapped_it() -> None:
    """As servers on `mcp` and FastMCP do it, the one without a mark and the other with a mark of its own."""
    assert value_of(result(structured={"result": 3}), int) == 3
    assert value_of(result(structured={"result": None}), int | None) is None
    assert value_of(result(structured={"result": [{"x": 1}]}), list[Point]) == [Point(1)]
    assert value_of(result(structured={"result": "2026-01-31"}), datetime.date) == datetime.date(2026, 1, 31)


def test_an_object_that_is_what_was_asked_for_stays_whole() -> None:
    assert value_of(result(structured={"result": 3}), None) == {"result": 3}
    assert value_of(result(structured={"result": 3}), dict[str, int]) == {"result": 3}
    assert value_of(result(structured={"result": {"result": 3}}), dict[str, dict[str, int]]) == {
        "result": {"result": 3}
    }


def test_what_is_wrapped_with_something_beside_it_is_no_wrapping() -> None:
    for structured in ({"result": 3, "unit": "K"}, {"value": 3}, {"result": "three"}):
        with pytest.raises(WrongResult, match="returns=int wants: "):
            value_of(result(structured=structured), int)


def test_a_text_is_the_value_where_there_is_nothing_else() -> None:
    assert value_of(result("hello"), None) == "hello"
    assert value_of(result("5"), None) == "5"
    assert value_of(result("5"), str) == "5"
    assert value_of(result("one", "two"), None) == "one\ntwo"


def test_a_text_is_read_as_json_of_the_type() -> None:
    assert value_of(result("5"), int) == 5
    assert value_of(result('[{"city":"Oslo","degrees":1}]'), list[Day]) == [Day("Oslo", 1.0)]
    assert value_of(result("null"), int | None) is None


def test_a_text_that_is_no_json_may_still_be_of_the_type() -> None:
    assert value_of(result("hello"), str | None) == "hello"
    assert value_of(result("hello"), Any) == "hello"
    assert value_of(result("red"), Colour) is Colour.RED
    assert value_of(result("a"), Literal["a", "b"]) == "a"
    assert value_of(result("2026-01-02"), datetime.date) == datetime.date(2026, 1, 2)


def test_a_text_of_another_type_is_wrong() -> None:
    for text in ("hello", "{}", "[1]", ""):
        with pytest.raises(WrongResult, match="returns=int wants: text: expected an integer, got "):
            value_of(result(text), int)


def test_a_type_that_nothing_can_be_converted_to_is_named() -> None:
    class Odd:
        def __init__(self, a: int) -> None: ...

    for kind in (list[Odd], tuple[Odd], list[Odd] | None):
        for found in (result(structured=[{"a": 1}]), result('[{"a": 1}]')):
            with pytest.raises(ConfigError, match="no type that a result can be converted to"):
                value_of(found, kind)


def test_a_class_that_validates_itself_as_pydantics_models_do_is_made_by_itself() -> None:
    class Model:
        def __init__(self, a: int) -> None:
            self.a = a

        @classmethod
        def model_validate(cls, value: dict[str, int]) -> Model:
            if "a" not in value:
                raise ValueError("a is missing")
            return cls(value["a"])

    assert [model.a for model in value_of(result(structured=[{"a": 1}, {"a": 2}]), list[Model])] == [1, 2]
    assert value_of(result('{"a": 3}'), Model).a == 3
    with pytest.raises(WrongResult, match="a is missing"):
        value_of(result(structured={}), Model)


def test_types_are_read_as_servers_write_them() -> None:
    class Row(NamedTuple):
        a: int

    either = dict[int, Day] | dict[str, Row]

    assert value_of(result(structured=[{"a": 1}]), list[Row]) == [Row(1)]
    assert value_of(result(structured={"x": {"a": 1}}), either) == {"x": Row(1)}
    assert value_of(result("3f2b8a52-6c1d-4e8e-9d2a-0c5b7f9e1a64"), uuid.UUID | int).version == 4
    with pytest.raises(WrongResult, match=r"result\[0\]\.a: missing"):
        value_of(result(structured=[{"b": 1}]), list[Row])


def test_content_that_is_not_all_text_is_returned_as_it_is() -> None:
    image = types.ImageContent("aGk=", "image/png")
    mixed = types.CallToolResult([types.TextContent("look"), image])
    assert value_of(mixed, None) == [types.TextContent("look"), image]

    only = types.CallToolResult([image])
    assert value_of(only, Image) == image
    assert value_of(only, types.ImageContent) == image
    assert value_of(only, list[Image]) == [image]
    assert value_of(mixed, list[Image | Text]) == mixed.content
    assert value_of(mixed, list) == mixed.content
    for kind in (int, Audio, list[Image], str, Text):
        with pytest.raises(WrongResult, match=r"it is content of 2 blocks \(text, image\)"):
            value_of(mixed, kind)


def test_nothing_is_none() -> None:
    assert value_of(result(), None) is None
    assert value_of(result(), int | None) is None
    assert value_of(result(), Any) is None
    with pytest.raises(WrongResult, match="returns=int wants: the empty result: expected an integer, got null"):
        value_of(result(), int)


def test_a_wrong_result_says_all_that_there_is_to_know_and_holds_the_result() -> None:
    whole = result("[1]", structured={"result": [{"city": "Oslo", "degrees": "cold"}]})
    with pytest.raises(WrongResult) as caught:
        value_of(whole, list[Day], "forecast")

    wrong = caught.value
    assert (wrong.tool, wrong.expected, wrong.result) == ("forecast", str(list[Day]), whole)
    assert wrong.why == 'result.result[0].degrees: expected a number, got "cold"'
    assert str(wrong) == (
        f"the tool 'forecast' did not return what returns={list[Day]} wants: {wrong.why}; "
        "the error's `result` is the whole of it"
    )


def test_a_wrong_result_repeats_no_secret() -> None:
    with pytest.raises(WrongResult) as caught:
        value_of(result(structured={"api_token": "hunter2"}), dict[str, int])

    assert "hunter2" not in str(caught.value)


def test_a_failure_says_what_the_tool_said() -> None:
    with pytest.raises(ToolError, match="one\ntwo") as caught:
        value_of(result("one", "two", structured={"a": 1}, is_error=True), list[Day])
    assert caught.value.content == [types.TextContent("one"), types.TextContent("two")]


def test_arguments_are_written_as_json() -> None:
    assert arguments_json(None) is None
    assert arguments_json({}) == b"{}"
    assert arguments_json({"d": datetime.date(2026, 1, 2), "p": Day("Oslo", 1.5)}) == (
        b'{"d":"2026-01-02","p":{"city":"Oslo","degrees":1.5}}'
    )
    with pytest.raises(ConfigError, match="the arguments cannot be sent: x is nan"):
        arguments_json({"x": float("nan")})


def test_prompt_arguments_are_strings() -> None:
    assert prompt_arguments(None) is None
    assert prompt_arguments({"s": "5", "n": 5}) == {"s": "5", "n": "5"}
    assert prompt_arguments({"s": "5", "left out": None, "inside": [None]}) == {"s": "5", "inside": "[null]"}
    assert prompt_arguments({"c": Colour.RED, "d": datetime.date(2026, 1, 2)}) == {"c": "red", "d": "2026-01-02"}
    with pytest.raises(ConfigError, match="cannot be sent"):
        prompt_arguments({"x": object()})


def test_a_reference_is_a_resource_where_it_looks_like_one() -> None:
    assert reference("greet") == types.PromptReference("greet")
    assert reference("file:///a") == types.ResourceTemplateReference("file:///a")
    assert reference("a{b}") == types.ResourceTemplateReference("a{b}")
    given = types.PromptReference("http://x")
    assert reference(given) is given


async def test_a_pydantic_model_is_sent_as_it_says_itself() -> None:
    import pydantic

    user = pydantic.create_model("User", name=(str, ...), age=(int | None, None))
    server = Server("s")

    @server.tool
    def seen(given: dict[str, Any]) -> dict[str, Any]:
        return given

    async with Client(server) as client:
        assert await client.call("seen", {"given": {"user": user(name="Al")}}) == {"user": {"name": "Al", "age": None}}
