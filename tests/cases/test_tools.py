"""Tools: what arrives in a parameter, which names and kinds of parameters and functions may be registered."""

from __future__ import annotations

import asyncio
import base64
import enum
import functools
import inspect
import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Optional, Union

import msgspec
import pytest

from modelwire import Server, SignatureError
from tests.wire import every_revision, session_talk

NEWEST_OF_EACH_ERA = pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
MISSING: Any = inspect.Parameter.empty


def taking(annotation: Any = MISSING, default: Any = MISSING) -> tuple[Server, list[Any]]:
    """Return a server whose tool ``take`` has one parameter of that type, and what it received."""
    server, received = Server("s"), []

    async def take(value) -> str:  # type: ignore[no-untyped-def]
        received.append(value)
        return "taken"

    if annotation is not MISSING:
        take.__annotations__["value"] = annotation
    if default is not MISSING:
        take.__defaults__ = (default,)
    server.add_tool(take)
    return server, received


# --------------------------------------------------------------------------------------------------- text that is JSON

JSON_TEXTS = ['{"a":1}', "[1]", "[]", "{}", "null", "123", "-1.5", "1e3", "true", "false", '"quoted"', "", " 1", "NaN"]


class Pick(enum.Enum):
    NOTHING = "null"
    ONE = "1"


@pytest.mark.parametrize("text", JSON_TEXTS)
@pytest.mark.parametrize(
    "annotation",
    [
        str,
        Optional[str],
        str | None,
        Any,
        object,
        MISSING,
        Union[str, int],
        Union[int, str],
        Union[None, bool, float, str],
        Union[list[int], str],
        Union[dict[str, Any], str, None],
        Annotated[Optional[str], msgspec.Meta(description="a text")],
    ],
    ids=str,
)
async def test_text_that_looks_like_json_arrives_as_the_same_text_wherever_text_is_allowed(
    annotation: Any, text: str
) -> None:
    server, received = taking(annotation)
    async with session_talk(server, "2025-11-25") as talk:
        await talk.text("take", {"value": text})
    assert received == [text]
    assert type(received[0]) is str


@pytest.mark.parametrize("text", JSON_TEXTS)
@every_revision
async def test_an_optional_text_is_never_read_as_json_on_any_revision(revision: str, text: str) -> None:
    server, received = taking(Optional[str], default=None)
    async with session_talk(server, revision) as talk:
        await talk.text("take", {"value": text})
        await talk.text("take", {"value": None})
        await talk.text("take")
    assert received == [text, None, None]


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (Literal["null", "1"], "null", "null"),
        (Literal["null", "1"], "1", "1"),
        (Literal["1", 1], "1", "1"),
        (Literal["1", 1], 1, 1),
        (Optional[Literal["null"]], "null", "null"),
        (Pick, "null", Pick.NOTHING),
        (Optional[Pick], "1", Pick.ONE),
        (bytes, base64.b64encode(b'{"a":1}').decode(), b'{"a":1}'),
        (bytes, "null", base64.b64decode("null")),
        (list[str], ["null", "1", "[2]"], ["null", "1", "[2]"]),
        (list[Optional[str]], ["null", None], ["null", None]),
        (dict[str, str], {"a": "{}", "b": "true"}, {"a": "{}", "b": "true"}),
        (dict[str, Any], {"a": '{"b":1}', "c": ["1"]}, {"a": '{"b":1}', "c": ["1"]}),
        (Any, {"a": '{"b":1}'}, {"a": '{"b":1}'}),
        (Any, [1, "1", None], [1, "1", None]),
    ],
    ids=str,
)
async def test_a_value_that_fits_as_it_came_is_not_touched(annotation: Any, value: Any, expected: Any) -> None:
    server, received = taking(annotation)
    async with session_talk(server, "2025-11-25") as talk:
        await talk.text("take", {"value": value})
    assert received == [expected]
    assert type(received[0]) is type(expected)


@pytest.mark.parametrize(
    ("annotation", "text", "expected"),
    [
        (list[int], "[1,2]", [1, 2]),
        (Optional[list[int]], "[1,2]", [1, 2]),
        (list[str], '["null","1"]', ["null", "1"]),
        (dict[str, int], '{"a":1}', {"a": 1}),
        (dict[str, Any], '{"a":"{}"}', {"a": "{}"}),
        (int, "123", 123),
        (Optional[int], "123", 123),
        (float, "1.5", 1.5),
        (bool, "true", True),
    ],
    ids=str,
)
async def test_text_is_read_as_something_else_only_where_it_does_not_fit_itself(
    annotation: Any, text: str, expected: Any
) -> None:
    server, received = taking(annotation)
    async with session_talk(server, "2025-11-25") as talk:
        await talk.text("take", {"value": text})
    assert received == [expected]
    assert type(received[0]) is type(expected)


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (Optional[int], "null"),
        (Optional[list[int]], "null"),
        (Literal["null", "1"], "123"),
        (Literal["null", "1"], '"null"'),
        (Pick, '"null"'),
        (bytes, '{"a":1}'),
        (bytes, "[1]"),
        (list[int], '["x"]'),
        (list[int], "[1"),
        (list[int], '{"a":1}'),
        (dict[str, int], "[1]"),
        (int, "NaN"),
        (float, "NaN"),
        (float, "Infinity"),
        (int, "1.5"),
        (bool, "1"),
    ],
    ids=str,
)
@NEWEST_OF_EACH_ERA
async def test_text_that_fits_neither_as_it_came_nor_as_json_is_told_to_the_model(
    revision: str, annotation: Any, text: str
) -> None:
    server, received = taking(annotation)
    async with session_talk(server, revision) as talk:
        result = await talk.call("take", {"value": text})
        assert result["isError"] is True
        assert "value" in result["content"][0]["text"]
    assert received == []


# --------------------------------------------------------------------------------------------------- names

NAMES = [
    "_x", "_", "__", "__private", "schema", "copy", "json", "dict", "model_dump", "model_config", "model_fields",
    "model_validate", "validate", "construct", "fields", "self", "cls", "name", "arguments", "args", "kwargs", "params",
    "ctx", "context", "request", "type", "id", "input", "format", "properties", "required", "title", "result",
    "return_", "größe", "数量",
]  # fmt: skip


def function_of(*names: str, returns: Literal["dict[str, int]", "str"] = "dict[str, int]") -> Callable[..., Any]:
    """Return a function whose parameters have these names; it returns their values by name, or the first as text."""
    parameters = ", ".join(f"{name}: int" for name in names)
    value = f"str({names[0]})" if returns == "str" else f"{{{', '.join(f'{name!r}: {name}' for name in names)}}}"
    scope: dict[str, Any] = {}
    exec(f"def f({parameters}) -> '{returns}':\n    return {value}", scope)
    return scope["f"]


@pytest.mark.parametrize("name", NAMES)
async def test_a_parameter_may_have_any_name_that_python_has(name: str) -> None:
    server = Server("s")
    server.add_tool(function_of(name), inline=True)
    async with session_talk(server, "2025-11-25") as talk:
        (tool,) = (await talk.result("tools/list"))["tools"]
        assert tool["inputSchema"]["properties"] == {name: {"type": "integer"}}
        assert tool["inputSchema"]["required"] == [name]
        assert (await talk.call("f", {name: 1}))["structuredContent"] == {name: 1}
        refused = await talk.call("f", {name: "no number"})
        assert refused["isError"] is True
        assert name in refused["content"][0]["text"]


@every_revision
async def test_many_odd_names_go_together_on_every_revision(revision: str) -> None:
    server = Server("s")
    server.add_tool(function_of(*NAMES), inline=True)
    arguments = {name: number for number, name in enumerate(NAMES)}
    async with session_talk(server, revision) as talk:
        assert json.loads(await talk.text("f", arguments)) == arguments


async def test_a_method_keeps_its_self_and_its_parameters() -> None:
    class Desk:
        def add(self, copy: int, schema: int = 2) -> int:
            return copy + schema

        @classmethod
        def make(cls, self: int) -> int:  # noqa: PLW0211, RUF100
            return self

        @staticmethod
        def free(copy: int, cls: int) -> int:
            return copy - cls

    server, desk = Server("s"), Desk()
    for function in (desk.add, desk.make, desk.free):
        server.add_tool(function)
    async with session_talk(server, "2025-11-25") as talk:
        assert await talk.text("add", {"copy": 1}) == "3"
        assert await talk.text("make", {"self": 1}) == "1"
        assert await talk.text("free", {"copy": 3, "cls": 1}) == "2"


@pytest.mark.parametrize("name", ["_x", "schema", "copy", "json", "model_dump", "self", "größe"])
@every_revision
async def test_an_argument_of_a_prompt_may_have_any_name_too(revision: str, name: str) -> None:
    server = Server("s")
    server.add_prompt(function_of(name, returns="str"), name="ask")
    async with session_talk(server, revision) as talk:
        (prompt,) = (await talk.result("prompts/list"))["prompts"]
        assert [argument["name"] for argument in prompt["arguments"]] == [name]
        answer = await talk.result("prompts/get", {"name": "ask", "arguments": {name: "5"}})
        assert answer["messages"][0]["content"]["text"] == "5"


# --------------------------------------------------------------------------------------------------- kinds of parameter


async def test_positional_only_parameters_are_passed_by_position() -> None:
    server = Server("s")

    @server.tool
    def f(a: int, b: int = 2, /, c: int = 3, *, d: int = 4) -> list[int]:
        return [a, b, c, d]

    async with session_talk(server, "2026-07-28") as talk:
        assert (await talk.call("f", {"a": 1}))["structuredContent"] == [1, 2, 3, 4]
        assert (await talk.call("f", {"a": 5, "b": 6, "d": 8}))["structuredContent"] == [5, 6, 3, 8]
        assert (await talk.call("f", {"a": 5, "c": 7}))["structuredContent"] == [5, 2, 7, 4]
        assert (await talk.call("f", {"b": 1}))["isError"] is True
        assert (await talk.call("f", {"a": 1, "e": 1}))["isError"] is True


async def _async_numbers(*numbers: int) -> int:
    return sum(numbers)


OPEN_ENDED: dict[str, tuple[Callable[..., Any], str]] = {
    "*args": (lambda *numbers: 0, "numbers"),
    "**kwargs": (lambda **options: 0, "options"),
    "both": (lambda first, *rest, key, **more: 0, "rest"),
    "async": (_async_numbers, "numbers"),
}


@pytest.mark.parametrize(("function", "parameter"), OPEN_ENDED.values(), ids=OPEN_ENDED)
@pytest.mark.parametrize("register", [Server.add_tool, Server.add_prompt])
def test_open_ended_parameters_are_refused_at_registration_by_name(
    register: Callable[..., None], function: Callable[..., Any], parameter: str
) -> None:
    server = Server("s")
    with pytest.raises(SignatureError, match=rf"\b{parameter}\b"):
        register(server, function, name="f")


# --------------------------------------------------------------------------------------------------- callable objects


class Doubler:
    """Doubles."""

    def __call__(self, x: int) -> int:
        return x * 2


class AsyncDoubler:
    async def __call__(self, x: int) -> int:
        await asyncio.sleep(0)
        return x * 2


@dataclass
class Times:
    factor: int

    async def __call__(self, x: int) -> int:
        return x * self.factor


class Static:
    @staticmethod
    def __call__(x: int) -> int:
        return x * 2


class Inherited(AsyncDoubler):
    pass


class Named:
    """What a wrapper or a mock may look like: it has a name of its own, which is no text."""

    __name__ = 5  # type: ignore[assignment]

    def __call__(self, x: int) -> int:
        return x * 2


async def multiply(x: int, factor: int) -> int:
    return x * factor


def later(x: int) -> Any:
    """A plain function that returns something to await."""
    return multiply(x, 2)


OBJECTS: dict[str, Any] = {
    "Doubler": Doubler(),
    "AsyncDoubler": AsyncDoubler(),
    "Times": Times(2),
    "Static": Static(),
    "Inherited": Inherited(),
}
CALLABLES: dict[str, Any] = {
    **OBJECTS,
    "an object whose __name__ is no text": Named(),
    "a bound __call__": Doubler().__call__,
    "a bound async __call__": AsyncDoubler().__call__,
    "a partial of a coroutine function": functools.partial(multiply, factor=2),
    "a partial of an object": functools.partial(AsyncDoubler()),
    "a partial of a partial": functools.partial(functools.partial(multiply), factor=2),
    "a function that returns something to await": later,
    "a lambda": lambda x: x * 2,
}


@pytest.mark.parametrize("name", OBJECTS)
@every_revision
async def test_an_object_is_a_tool_under_the_name_of_its_class(revision: str, name: str) -> None:
    server = Server("s")
    server.add_tool(OBJECTS[name])
    async with session_talk(server, revision) as talk:
        assert [tool["name"] for tool in (await talk.result("tools/list"))["tools"]] == [name]
        assert await talk.text(name, {"x": 1}) == "2"


@pytest.mark.parametrize("kind", CALLABLES)
@NEWEST_OF_EACH_ERA
async def test_whatever_can_be_called_is_called_and_awaited_under_a_given_name(revision: str, kind: str) -> None:
    server = Server("s")
    server.add_tool(CALLABLES[kind], name="double")
    async with session_talk(server, revision) as talk:
        (tool,) = (await talk.result("tools/list"))["tools"]
        assert (tool["name"], next(iter(tool["inputSchema"]["properties"]))) == ("double", "x")
        assert await talk.text("double", {"x": 1}) == "2"


async def test_a_decorator_takes_objects_and_says_what_the_class_says() -> None:
    server = Server("s")
    doubler = Doubler()
    assert server.tool(doubler) is doubler
    async with session_talk(server, "2025-11-25") as talk:
        assert (await talk.result("tools/list"))["tools"][0]["description"] == "Doubles."


@every_revision
async def test_objects_are_prompts_and_resources_too(revision: str) -> None:
    class Says:
        async def __call__(self, word: str = "nothing") -> str:
            return f"says {word}"

    server = Server("s")
    server.add_prompt(Says())
    server.add_resource("x://said", Says())
    server.add_resource("x://said/{word}", Says(), name="said of a word")
    async with session_talk(server, revision) as talk:
        answer = await talk.result("prompts/get", {"name": "Says", "arguments": {"word": "a"}})
        assert answer["messages"][0]["content"]["text"] == "says a"
        for uri, said in [("x://said", "says nothing"), ("x://said/b", "says b")]:
            assert (await talk.result("resources/read", {"uri": uri}))["contents"][0]["text"] == said


# --------------------------------------------------------------------------------------------------- generators


async def letters():  # type: ignore[no-untyped-def]
    yield "a"
    await asyncio.sleep(0)
    yield "b"


async def typed_letters() -> AsyncIterator[str]:
    yield "a"
    yield "b"


def sync_letters():  # type: ignore[no-untyped-def]
    yield "a"
    yield "b"


def typed_sync_letters() -> Iterator[str]:
    yield "a"
    yield "b"


def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


class Letters:
    async def __call__(self) -> AsyncIterator[str]:
        yield "a"
        yield "b"


GENERATORS: dict[str, Any] = {
    "async": letters,
    "async, annotated": typed_letters,
    "sync": sync_letters,
    "sync, annotated": typed_sync_letters,
    "object": Letters(),
    "partial": functools.partial(letters),
    "decorated": decorated(letters),
    "sync, decorated": decorated(sync_letters),
}


def said(result: dict[str, Any]) -> str:
    """Return everything that a result says in text."""
    return "\n".join(block["text"] for block in result["content"])


@pytest.mark.parametrize("kind", GENERATORS)
@every_revision
async def test_what_a_generator_yields_is_collected_into_one_result(revision: str, kind: str) -> None:
    server = Server("s")
    server.add_tool(GENERATORS[kind], name="letters")
    async with session_talk(server, revision) as talk:
        result = await talk.call("letters")
        assert not result.get("isError"), result
        assert [letter for letter in said(result) if letter in "ab"] == ["a", "b"]
        assert "object" not in said(result)


@every_revision
async def test_a_generator_that_nobody_said_would_come_is_never_sent_as_the_name_of_an_object(revision: str) -> None:
    async def surprise() -> Any:
        return letters()

    server = Server("s")
    server.add_tool(surprise)
    async with session_talk(server, revision) as talk:
        result = await talk.call("surprise")
        assert result["isError"] is True
        assert "object" not in said(result)


@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_a_generator_that_fails_halfway_is_a_failed_call(kind: str) -> None:
    async def halfway() -> AsyncIterator[int]:
        yield 1
        raise ValueError("halfway")

    def halfway_in_a_thread() -> Iterator[int]:
        yield 1
        raise ValueError("halfway")

    server = Server("s")
    server.add_tool(halfway if kind == "async" else halfway_in_a_thread, name="fail")
    async with session_talk(server, "2025-11-25") as talk:
        assert (await talk.call("fail"))["isError"] is True
        assert (await talk.call("fail"))["isError"] is True


def joined(function: Callable[[], Iterator[str]]) -> Callable[[], str]:
    @functools.wraps(function)
    def wrapper() -> str:
        return "".join(function())

    return wrapper


def joined_later(function: Callable[[], AsyncIterator[str]]) -> Callable[[], Any]:
    async def gathered() -> str:
        return "".join([letter async for letter in function()])

    @functools.wraps(function)
    def wrapper() -> Any:
        return gathered()

    return wrapper


@pytest.mark.parametrize("function", [joined(sync_letters), joined_later(letters)], ids=["sync", "async"])
async def test_what_a_decorator_made_of_a_generator_is_the_result(function: Callable[[], Any]) -> None:
    server = Server("s")
    server.add_tool(function, name="letters")
    async with session_talk(server, "2025-11-25") as talk:
        assert await talk.text("letters") == "ab"


@NEWEST_OF_EACH_ERA
async def test_a_generator_of_numbers_is_a_list_of_numbers(revision: str) -> None:
    async def count(to: int) -> AsyncIterator[int]:
        for number in range(to):
            yield number

    server = Server("s")
    server.add_tool(count)
    async with session_talk(server, revision) as talk:
        assert "object" not in said(await talk.call("count", {"to": 3}))
        assert [character for character in said(await talk.call("count", {"to": 3})) if character.isdigit()] == [
            "0", "1", "2",
        ]  # fmt: skip
        assert not (await talk.call("count", {"to": 0})).get("isError")
