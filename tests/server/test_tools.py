"""Tools over the wire: registering, listing and calling them, and everything that may go wrong inside one."""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import math
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Literal

import pytest

from modelwire import ConfigError, Context, InvalidParams, NotFound, RpcError, Server, SignatureError, ToolError, types
from tests.wire import MODERN, PREFIX, REVISIONS, every_revision, session_talk, stream_talk


def tool_names(result: dict[str, Any]) -> list[str]:
    return [tool["name"] for tool in result["tools"]]


# --------------------------------------------------------------------------------------------------- registering


@every_revision
async def test_a_function_becomes_a_tool_with_its_schema_and_words(revision: str) -> None:
    server = Server("s")

    @server.tool
    async def forecast(city: str, days: int = 3, unit: Literal["c", "f"] | None = None) -> str:
        """Forecast for a city.

        Args:
            city: City name.
            days: How many days.
        """
        return f"{city} {days} {unit}"

    async with session_talk(server, revision) as talk:
        (tool,) = (await talk.result("tools/list"))["tools"]
        assert tool["name"] == "forecast"
        assert tool["description"] == "Forecast for a city."
        assert tool["inputSchema"]["properties"]["city"] == {"type": "string", "description": "City name."}
        assert tool["inputSchema"]["properties"]["days"]["default"] == 3
        assert tool["inputSchema"]["required"] == ["city"]
        assert tool["inputSchema"]["additionalProperties"] is False
        assert "outputSchema" not in tool
        assert await talk.text("forecast", {"city": "Oslo"}) == "Oslo 3 None"
        assert await talk.text("forecast", {"city": "Oslo", "days": 1, "unit": "f"}) == "Oslo 1 f"


def test_the_decorated_function_stays_a_plain_function() -> None:
    server = Server("s")

    @server.tool
    def bare(a: int) -> int:
        return a + 1

    @server.tool(title="With parentheses")
    def dressed(a: int) -> int:
        return a + 2

    assert (bare(1), dressed(1)) == (2, 3)


@every_revision
async def test_what_is_said_of_a_tool_is_listed_where_the_revision_has_it(revision: str) -> None:
    server = Server("s")
    server.add_tool(
        lambda: "x",
        name="dressed",
        title="Dressed",
        description="Has everything",
        annotations=types.ToolAnnotations(read_only_hint=True, title="A"),
        icons=[types.Icon("https://example.com/i.png", mime_type="image/png")],
        meta={"com.example/k": {"v": [1, 2]}},
    )
    async with session_talk(server, revision) as talk:
        (tool,) = (await talk.result("tools/list"))["tools"]
    assert (tool["name"], tool["description"]) == ("dressed", "Has everything")
    assert tool.get("annotations") == (None if revision == "2024-11-05" else {"readOnlyHint": True, "title": "A"})
    assert tool.get("title") == ("Dressed" if revision >= "2025-06-18" else None)
    assert tool.get("_meta") == ({"com.example/k": {"v": [1, 2]}} if revision >= "2025-06-18" else None)
    icons = [{"src": "https://example.com/i.png", "mimeType": "image/png"}]
    assert tool.get("icons") == (icons if revision >= "2025-11-25" else None)


class Shop:
    def __init__(self, price: int) -> None:
        self.price = price

    def buy(self, count: int) -> str:
        """Buy something."""
        return str(self.price * count)

    async def abuy(self, count: int) -> str:
        return str(self.price * count + 1)

    @staticmethod
    def fixed(count: int) -> str:
        return str(count)

    @classmethod
    def named(cls, count: int) -> str:
        return f"{cls.__name__} {count}"

    def __call__(self, count: int) -> str:
        return f"called {self.price * count}"


class AsyncCallable:
    async def __call__(self, count: int) -> str:
        return f"async {count}"


def partially(count: int, factor: int) -> str:
    return str(count * factor)


@pytest.mark.parametrize(
    ("callable_", "name", "expected"),
    [
        (Shop(5).buy, None, "10"),
        (Shop(5).abuy, None, "11"),
        (Shop.fixed, None, "2"),
        (Shop.named, None, "Shop 2"),
        (Shop(5), "shop", "called 10"),
        (AsyncCallable(), "other", "async 2"),
        (functools.partial(partially, factor=7), "partial", "14"),
        (lambda count: str(count), "anonymous", "2"),
    ],
)
async def test_any_callable_may_be_a_tool_bound_methods_included(
    callable_: Callable[..., Any], name: str | None, expected: str
) -> None:
    server = Server("s")
    server.add_tool(callable_, name=name)
    async with session_talk(server, "2025-11-25") as talk:
        (listed,) = tool_names(await talk.result("tools/list"))
        assert await talk.text(listed, {"count": 2}) == expected


def test_a_name_that_is_taken_is_refused_at_registration() -> None:
    server = Server("s")
    server.add_tool(lambda: "a", name="same")
    with pytest.raises(ConfigError, match="same"):
        server.add_tool(lambda: "b", name="same")
    with pytest.raises(ConfigError, match="same"):
        server.add_tool(types.Tool("same", {"type": "object"}), lambda arguments: "c")


def test_a_signature_that_cannot_become_a_schema_is_refused_and_names_the_parameter() -> None:
    def bad(where: threading.Lock) -> str:  # type: ignore[valid-type]
        return ""

    with pytest.raises(SignatureError, match="where"):
        Server("s").tool(bad)


def test_removing_a_tool_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match="nobody"):
        Server("s").remove_tool("nobody")


def test_a_tool_of_the_low_level_needs_a_handler_and_a_valid_schema_of_an_object() -> None:
    server = Server("s")
    with pytest.raises(ConfigError, match="handler"):
        server.add_tool(types.Tool("t", {"type": "object"}))
    with pytest.raises(ConfigError, match="object"):
        server.add_tool(types.Tool("t", {"type": "string"}), lambda arguments: "")
    with pytest.raises(ConfigError, match="JSON Schema"):
        server.add_tool(types.Tool("t", {"type": "object", "properties": {"a": {"type": "no"}}}), lambda arguments: "")


@every_revision
async def test_tools_come_and_go_at_run_time(revision: str) -> None:
    server = Server("s", declare=["tools"])
    async with session_talk(server, revision) as talk:
        server.add_tool(lambda: "here", name="late")
        assert await talk.text("late") == "here"
        server.remove_tool("late")
        assert (await talk.error("tools/call", {"name": "late"}))["code"] == -32602
        server.add_tool(lambda: "again", name="late")
        assert await talk.text("late") == "again"


# --------------------------------------------------------------------------------------------------- the low level

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 1}, "tag": {"pattern": "^[a-z]+$"}},
    "required": ["n"],
    "x-mine": [1, {"a": None}],
}


@pytest.mark.parametrize("kind", ["async", "sync"])
@every_revision
async def test_a_tool_of_the_low_level_sends_its_schema_verbatim_and_checks_arguments_against_it(
    revision: str, kind: str
) -> None:
    server = Server("s")

    async def asynchronous(arguments: dict[str, Any], ctx: Context) -> Any:
        return f"{arguments} {ctx.method}"

    def synchronous(arguments: dict[str, Any]) -> Any:
        return f"{arguments} tools/call"

    server.add_tool(types.Tool("low", SCHEMA), asynchronous if kind == "async" else synchronous)
    async with session_talk(server, revision) as talk:
        (tool,) = (await talk.result("tools/list"))["tools"]
        assert tool["inputSchema"] == SCHEMA
        assert list(tool["inputSchema"]) == list(SCHEMA)
        assert await talk.text("low", {"n": 1, "tag": "a"}) == "{'n': 1, 'tag': 'a'} tools/call"
        result = await talk.call("low", {"n": 0, "tag": "A"})
        assert result["isError"] is True
        assert "n" in result["content"][0]["text"]
        assert "tag" in result["content"][0]["text"]
        assert (await talk.call("low"))["isError"] is True


@every_revision
async def test_a_tool_of_the_low_level_may_return_a_whole_result(revision: str) -> None:
    server = Server("s")
    result = types.CallToolResult(
        [types.TextContent("a"), types.ImageContent(b"\x89PNG", "image/png")], is_error=False, meta={"com.example/k": 1}
    )
    server.add_tool(types.Tool("low", {"type": "object"}), lambda arguments: result)
    async with session_talk(server, revision) as talk:
        sent = await talk.call("low")
        assert [block["type"] for block in sent["content"]] == ["text", "image"]
        assert sent["_meta"]["com.example/k"] == 1


# --------------------------------------------------------------------------------------------------- results


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        ("plain", ["plain"]),
        ("", [""]),
        ("日本😀\u0000\u2028\r\n", ["日本😀\u0000\u2028\r\n"]),
        (None, []),
        (types.TextContent("block"), ["block"]),
        ([types.TextContent("a"), "b"], ["a", "b"]),
        ([], ["[]"]),
    ],
    ids=repr,
)
@every_revision
async def test_text_and_content_become_content_blocks(revision: str, value: Any, texts: list[str]) -> None:
    server = Server("s")

    @server.tool
    async def give():  # type: ignore[no-untyped-def]
        return value

    async with session_talk(server, revision) as talk:
        result = await talk.call("give")
        assert [block["text"] for block in result["content"]] == texts
        assert "structuredContent" not in result
        assert not result.get("isError")


@pytest.mark.parametrize("value", [[1, 2], {"a": 1}, 5, True, None, "x", 1.5], ids=repr)
@every_revision
async def test_an_annotated_result_is_structured_and_wrapped_where_the_revision_wants_objects(
    revision: str, value: Any
) -> None:
    server = Server("s")

    async def give() -> Any:
        return value

    give.__annotations__["return"] = {list: list[int], dict: dict[str, int]}.get(type(value), type(value) | None)
    server.add_tool(give, structured=True)
    async with session_talk(server, revision) as talk:
        (tool,) = (await talk.result("tools/list"))["tools"]
        result = await talk.call("give")
    text = value if type(value) is str else json.dumps(value, separators=(",", ":"))
    assert result["content"] == [{"type": "text", "text": text}]
    if revision < "2025-06-18":
        assert "outputSchema" not in tool
        assert "structuredContent" not in result
    elif revision == MODERN or isinstance(value, dict):
        assert result["structuredContent"] == value
    else:
        assert tool["outputSchema"]["type"] == "object"
        assert result["structuredContent"] == {"result": value}


@pytest.mark.parametrize(
    ("kind", "inline", "same_thread"), [("async", False, True), ("sync", False, False), ("sync", True, True)]
)
async def test_sync_functions_run_in_a_thread_unless_inline(kind: str, inline: bool, same_thread: bool) -> None:
    server = Server("s")

    async def coroutine() -> int:
        return threading.get_ident()

    def plain() -> int:
        return threading.get_ident()

    server.add_tool(coroutine if kind == "async" else plain, name="where", inline=inline)
    async with session_talk(server, "2025-11-25") as talk:
        assert (await talk.text("where") == str(threading.get_ident())) is same_thread


@pytest.mark.parametrize(("inline", "same_thread"), [(False, False), (True, True)])
async def test_sync_handlers_of_the_low_level_run_in_a_thread_unless_inline(inline: bool, same_thread: bool) -> None:
    server = Server("s")
    server.add_tool(
        types.Tool("where", {"type": "object"}), lambda arguments: str(threading.get_ident()), inline=inline
    )
    async with session_talk(server, "2025-11-25") as talk:
        assert (await talk.text("where") == str(threading.get_ident())) is same_thread


async def test_a_sync_function_may_return_something_to_await() -> None:
    server = Server("s")

    async def coroutine() -> str:
        return "awaited"

    @server.tool
    def wrapper() -> str:
        return coroutine()  # type: ignore[return-value]

    async with session_talk(server, "2025-11-25") as talk:
        assert await talk.text("wrapper") == "awaited"


async def test_generators_are_run_to_their_end() -> None:
    server = Server("s")

    @server.tool
    def sync() -> Iterator[str]:
        yield from "ab"

    @server.tool
    async def asynchronous() -> AsyncIterator[str]:
        yield "a"
        yield "b"

    async with session_talk(server, "2025-11-25") as talk:
        for name in ("sync", "asynchronous"):
            assert "b" in json.dumps((await talk.call(name))["content"])


# --------------------------------------------------------------------------------------------------- what goes wrong


def crash() -> Any:
    raise ZeroDivisionError("secret internals at /etc/passwd")


def leave() -> Any:
    sys.exit(3)


def system_exit_none() -> Any:
    raise SystemExit


def cancelled() -> Any:
    raise asyncio.CancelledError("a library's own")


def generator_exit() -> Any:
    raise GeneratorExit


def base() -> Any:
    raise BaseException("no Exception at all")


def stop() -> Any:
    raise StopIteration("x")


def astop() -> Any:
    raise StopAsyncIteration("x")


def group() -> Any:
    raise BaseExceptionGroup("g", [KeyError("x"), SystemExit(1)])


def recursion() -> Any:
    return recursion()


def memory() -> Any:
    raise MemoryError


def timeout() -> Any:
    raise TimeoutError


def cruel() -> Any:
    class Cruel(Exception):
        def __str__(self) -> str:
            raise RuntimeError("not even a message")

        __repr__ = __str__

    raise Cruel


def unserialisable() -> Any:
    return object()


def cyclic() -> Any:
    loop: list[Any] = []
    loop.append(loop)
    return {"loop": loop}


def nan() -> Any:
    return {"n": [math.nan]}


def infinity() -> Any:
    return {"n": -math.inf}


def keys() -> Any:
    return {(1, 2): "tuple key"}


def deep() -> Any:
    value: Any = []
    for _ in range(100_000):
        value = [value]
    return {"deep": value}


BREAKERS = (
    crash,
    leave,
    system_exit_none,
    cancelled,
    generator_exit,
    base,
    stop,
    astop,
    group,
    recursion,
    memory,
    timeout,
    cruel,
    unserialisable,
    cyclic,
    nan,
    infinity,
    keys,
    deep,
)


def broken_server() -> Server:
    server = Server("broken")

    @server.tool
    async def fine() -> str:
        return "fine"

    def register(function: Callable[..., Any]) -> None:
        name = function.__name__

        @functools.wraps(function)
        async def asynchronous() -> Any:
            return function()

        server.add_tool(asynchronous, name=f"async {name}")
        server.add_tool(function, name=f"sync {name}")
        server.add_tool(function, name=f"inline {name}", inline=True)
        server.add_tool(types.Tool(f"low {name}", {"type": "object"}), lambda arguments, ctx: function())

    for function in BREAKERS:
        register(function)
    return server


BROKEN = broken_server()


@pytest.mark.parametrize(
    "name", [f"{way} {f.__name__}" for f in BREAKERS for way in ("async", "sync", "inline", "low")]
)
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25", MODERN])
async def test_nothing_that_a_tool_does_or_returns_costs_more_than_its_own_call(
    revision: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with stream_talk(BROKEN, revision) as talk:
        result = await talk.call(name)
        assert result["isError"] is True
        text = result["content"][0]["text"]
        assert name in text
        assert "secret" not in text
        assert "Traceback" not in text
        assert await talk.text("fine") == "fine"
        assert talk.inbox == []
    if "crash" in name:
        assert "secret internals" in caplog.text  # the log has what the client must not see


async def test_a_task_that_cancels_itself_fails_alone() -> None:
    server = broken_server()

    @server.tool
    async def suicide() -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel("of its own will")
        await asyncio.sleep(0)
        return "survived"

    @server.tool
    async def inner() -> str:
        task = asyncio.create_task(asyncio.sleep(60))
        task.cancel()
        await task
        return "never"

    @server.tool
    async def scoped() -> str:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await asyncio.sleep(60)
        return "timed out inside"

    for over in (session_talk, stream_talk):
        async with over(server, "2025-11-25") as talk:
            assert (await talk.call("suicide"))["isError"] is True
            assert (await talk.call("inner"))["isError"] is True
            assert await talk.text("scoped") == "timed out inside"
            assert await talk.text("fine") == "fine"


@every_revision
async def test_lone_surrogates_become_something_that_can_be_sent(revision: str) -> None:
    server = Server("s")

    @server.tool
    async def text() -> str:
        return "a\ud800b"

    @server.tool
    async def structured() -> dict[str, str]:
        return {"k": "a\udfffb", "\ud83d": "x"}

    @server.tool
    async def error() -> str:
        raise ToolError("bad \ud800 name")

    @server.tool
    async def rpc() -> str:
        raise RpcError(5, "bad \ud800 name", {"x": "\ud800"})

    @server.tool
    async def fine(ctx: Context) -> str:
        ctx.log.error("log \ud800")
        ctx.progress(1, 2, "progress \ud800")
        return "fine"

    async with stream_talk(server, revision) as talk:
        assert (await talk.call("text"))["content"][0]["type"] == "text"
        assert "content" in await talk.call("structured")
        assert (await talk.call("error"))["isError"] is True
        assert "error" in await talk.request("tools/call", {"name": "rpc", "arguments": {}})
        assert (
            await talk.text("fine", progressToken="t", **({"logLevel": "debug"} if revision == MODERN else {}))
            == "fine"
        )


@every_revision
async def test_a_tool_error_is_what_the_model_reads(revision: str) -> None:
    server = Server("s")

    @server.tool
    async def said() -> str:
        raise ToolError("The city is closed. Try Bergen.")

    @server.tool
    async def shown() -> str:
        raise ToolError("x", [types.TextContent("one"), types.TextContent("two")])

    async with session_talk(server, revision) as talk:
        result = await talk.call("said")
        assert result["isError"] is True
        assert result["content"] == [{"type": "text", "text": "The city is closed. Try Bergen."}]
        assert [block["text"] for block in (await talk.call("shown"))["content"]] == ["one", "two"]


@pytest.mark.parametrize(
    ("raised", "code", "data"),
    [
        (RpcError(-31000, "mine", {"a": [1]}), -31000, {"a": [1]}),
        (RpcError(42, "mine"), 42, None),
        (RpcError(-32602, "invalid"), -32602, None),
        (NotFound("gone"), None, None),
    ],
)
@every_revision
async def test_a_handler_may_answer_with_an_error_of_the_protocol(
    revision: str, raised: RpcError, code: int | None, data: Any
) -> None:
    server = Server("s")

    @server.tool
    async def refuse() -> str:
        raise raised

    async with session_talk(server, revision) as talk:
        error = await talk.error("tools/call", {"name": "refuse", "arguments": {}})
        if code is not None:
            assert error["code"] == code
        assert error.get("data") == data
        assert error["message"] == raised.message


DEFINED = {"2025-11-25": {-32042}, MODERN: {-32020, -32021, -32022}}
RESERVED = [-32000, -32001, -32019, -32002, -32042, -32020, -32021, -32022, -32023, -32050, -32099]


@pytest.mark.parametrize(
    ("revision", "code"),
    [(revision, code) for revision in REVISIONS for code in RESERVED if code not in DEFINED.get(revision, ())],
)
async def test_a_code_that_the_specification_keeps_for_itself_is_never_sent(revision: str, code: int) -> None:
    server = Server("s")

    @server.tool
    async def refuse() -> str:
        raise RpcError(code, "reserved")

    async with session_talk(server, revision) as talk:
        # The frame is held against the revision's schema and its list of codes when the conversation ends.
        error = await talk.error("tools/call", {"name": "refuse", "arguments": {}})
        assert error["code"] == (-32603 if code != -32002 else -32602 if revision == MODERN else -32002)


async def test_a_large_code_of_the_users_own_is_sent() -> None:
    server = Server("s")

    @server.tool
    async def refuse() -> str:
        raise RpcError(2**40, "mine")

    async with session_talk(server, MODERN) as talk:
        assert (await talk.error("tools/call", {"name": "refuse", "arguments": {}}))["code"] == 2**40


async def test_an_error_of_another_server_is_no_answer_of_ours() -> None:
    server = Server("s")

    @server.tool
    async def relay() -> str:
        raise InvalidParams(-32602, "of another server")

    async with session_talk(server, "2025-11-25") as talk:
        assert (await talk.call("relay"))["isError"] is True


@every_revision
async def test_an_unknown_tool_is_invalid_params_and_names_the_nearest(revision: str) -> None:
    server = Server("s")
    server.add_tool(lambda: "x", name="forecast")
    async with session_talk(server, revision) as talk:
        error = await talk.error("tools/call", {"name": "forcast"})
        assert error["code"] == -32602
        assert "forecast" in error["message"]
        assert (await talk.error("tools/call", {"name": "x" * 100_000}))["code"] == -32602


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, ["city", "missing"]),
        ({"city": 5}, ["city"]),
        ({"city": "Oslo", "days": "many"}, ["days", "integer"]),
        ({"city": "Oslo", "dais": 2}, ["dais", "days"]),
        ({"city": None}, ["city"]),
    ],
)
@every_revision
async def test_a_bad_argument_is_a_result_that_a_model_can_act_on(
    revision: str, arguments: dict[str, Any], words: list[str]
) -> None:
    server = Server("s")

    @server.tool
    async def forecast(city: str, days: int = 1) -> str:
        return city

    async with session_talk(server, revision) as talk:
        result = await talk.call("forecast", arguments)
        assert result["isError"] is True
        for word in words:
            assert word in result["content"][0]["text"]


@every_revision
async def test_arguments_may_be_left_out(revision: str) -> None:
    server = Server("s")
    server.add_tool(lambda n=7: str(n), name="seven")
    async with session_talk(server, revision) as talk:
        assert (await talk.result("tools/call", {"name": "seven"}))["content"][0]["text"] == "7"


@every_revision
async def test_what_comes_back_and_contradicts_its_annotation_is_not_sent(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server("s")

    @server.tool
    async def lies() -> list[int]:
        return ["secret"]  # type: ignore[list-item]

    async with session_talk(server, revision) as talk:
        result = await talk.call("lies")
        assert result["isError"] is True
        assert "secret" not in json.dumps(result)
        assert "structuredContent" not in result
    assert "lies" in caplog.text


# --------------------------------------------------------------------------------------------------- timeouts


@every_revision
async def test_a_tool_that_takes_too_long_is_ended_and_says_so(revision: str) -> None:
    server = Server("s")
    ended = asyncio.Event()
    noticed = threading.Event()

    @server.tool(timeout=0.02)
    async def slow() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    @server.tool(timeout=0.02)
    def blocking(ctx: Context) -> str:
        while not ctx.cancelled:
            noticed.wait(0.001)
        noticed.set()
        return ""

    async def low(arguments: dict[str, Any]) -> str:
        await asyncio.Event().wait()
        return ""

    def low_blocking(arguments: dict[str, Any], ctx: Context) -> str:
        while not ctx.cancelled:
            seen.wait(0.001)
        seen.set()
        return ""

    seen = threading.Event()
    server.add_tool(types.Tool("low", {"type": "object"}), low, timeout=0.02)
    server.add_tool(types.Tool("low_blocking", {"type": "object"}), low_blocking, timeout=0.02)
    async with session_talk(server, revision) as talk:
        for name in ("slow", "blocking", "low", "low_blocking"):
            result = await talk.call(name)
            assert result["isError"] is True
            assert name in result["content"][0]["text"]
            assert "0.02" in result["content"][0]["text"]
        await asyncio.wait_for(ended.wait(), 5)
        assert await asyncio.to_thread(noticed.wait, 5)
        assert await asyncio.to_thread(seen.wait, 5)


async def test_a_tool_that_is_quick_enough_never_meets_its_timeout() -> None:
    server = Server("s")
    server.add_tool(lambda: "sync", name="sync", timeout=60)

    @server.tool(timeout=60)
    async def quick() -> str:
        return "async"

    server.add_tool(types.Tool("low", {"type": "object"}), lambda arguments: "low", timeout=60)
    async with session_talk(server, "2025-11-25") as talk:
        assert await talk.text("sync") == "sync"
        assert await talk.text("quick") == "async"
        assert await talk.text("low") == "low"


async def test_a_tool_that_refuses_to_be_cancelled_is_answered_all_the_same() -> None:
    server = Server("s")
    release = asyncio.Event()

    @server.tool(timeout=0.02)
    async def stubborn() -> str:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                release.set()
        return "late"

    async with session_talk(server, "2025-11-25") as talk:
        assert "content" in await talk.call("stubborn")


@pytest.mark.parametrize("over", [session_talk, stream_talk])
async def test_one_slow_call_delays_no_other(over: Any) -> None:
    server = Server("s")
    gate = threading.Event()

    @server.tool
    def block() -> str:
        gate.wait(10)
        return "released"

    server.add_tool(types.Tool("low block", {"type": "object"}), lambda arguments: block())

    @server.tool
    async def quick() -> str:
        return "quick"

    async with over(server, "2025-11-25") as talk:
        slow = [await talk.begin_call(name) for name in ("block", "block", "low block")]
        assert await talk.text("quick") == "quick"
        assert not any(call.done for call in slow)
        gate.set()
        for call in slow:
            assert (await call.result())["content"][0]["text"] == "released"


def test_logging_is_left_as_the_program_has_it() -> None:
    Server("s")
    assert logging.getLogger("modelwire").level == logging.NOTSET
    assert not [
        handler for handler in logging.getLogger("modelwire").handlers if type(handler) is not logging.NullHandler
    ]


@every_revision
async def test_per_request_metadata_reaches_the_tool(revision: str) -> None:
    server = Server("s")

    @server.tool
    async def meta(ctx: Context) -> str:
        return json.dumps({key: value for key, value in ctx.meta.items() if not key.startswith(PREFIX)})

    async with session_talk(server, revision) as talk:
        assert json.loads(await talk.text("meta", **{"com.example/trace": {"a": [1]}})) == {
            "com.example/trace": {"a": [1]}
        }
        assert json.loads(await talk.text("meta")) == {}
