"""Prompts and completion over the wire."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from enum import Enum, IntEnum
from typing import Any, Literal

import pytest

from modelwire import ConfigError, Context, RpcError, Server, types
from tests.wire import every_revision, session_talk


def texts(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]["text"]) for message in result["messages"]]


# --------------------------------------------------------------------------------------------------- prompts


async def test_the_log_says_which_prompt_or_resource_gave_what_cannot_be_sent(caplog: pytest.LogCaptureFixture) -> None:
    server = Server("s")

    @server.prompt
    def forgetful() -> Any:
        return None

    @server.resource("half://a", name="half")
    def half() -> str:
        return "\ud800"

    async with session_talk(server, "2025-11-25") as talk:
        assert (await talk.error("prompts/get", {"name": "forgetful"}))["code"] == -32603
        assert (await talk.error("resources/read", {"uri": "half://a"}))["code"] == -32603
    assert "prompts/get of 'forgetful' failed" in caplog.text
    assert "resources/read of 'half://a' failed" in caplog.text


@every_revision
async def test_a_function_becomes_a_prompt_with_its_arguments(revision: str) -> None:
    server = Server("s")

    @server.prompt
    def code_review(pr_number: int, focus: str | None = None) -> str:
        """Review a pull request.

        Args:
            pr_number: Its number.
            focus: What to look at.
        """
        return f"Review PR #{pr_number + 1} for {focus}"

    assert code_review(1) == "Review PR #2 for None"
    async with session_talk(server, revision) as talk:
        (prompt,) = (await talk.result("prompts/list"))["prompts"]
        assert prompt["name"] == "code_review"
        assert prompt["description"] == "Review a pull request."
        first, second = prompt["arguments"]
        assert (first["name"], first["required"]) == ("pr_number", True)
        assert first["description"].startswith("Its number.")
        assert (second["name"], second.get("required", False)) == ("focus", False)
        result = await talk.result("prompts/get", {"name": "code_review", "arguments": {"pr_number": "41"}})
        assert texts(result) == [("user", "Review PR #42 for None")]
        assert result.get("description") == "Review a pull request."
        result = await talk.result(
            "prompts/get", {"name": "code_review", "arguments": {"pr_number": "1", "focus": "x"}}
        )
        assert texts(result) == [("user", "Review PR #2 for x")]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("one", [("user", "one")]),
        (["one", "two"], [("user", "one"), ("user", "two")]),
        ([types.TextContent("block")], [("user", "block")]),
        (types.PromptMessage("assistant", types.TextContent("said")), [("assistant", "said")]),
        (
            [types.PromptMessage("assistant", types.TextContent("said")), "asked"],
            [("assistant", "said"), ("user", "asked")],
        ),
    ],
    ids=["string", "strings", "block", "message", "mixed"],
)
@every_revision
async def test_what_a_prompt_returns_becomes_messages(
    revision: str, value: Any, expected: list[tuple[str, str]]
) -> None:
    server = Server("s")
    server.add_prompt(lambda: value, name="p")
    async with session_talk(server, revision) as talk:
        assert texts(await talk.result("prompts/get", {"name": "p"})) == expected


@every_revision
async def test_what_is_said_of_a_prompt_is_listed_where_the_revision_has_it(revision: str) -> None:
    server = Server("s")
    server.add_prompt(
        lambda: "x",
        name="p",
        title="T",
        description="D",
        icons=[types.Icon("https://example.com/i.png")],
        meta={"com.example/k": 1},
    )
    async with session_talk(server, revision) as talk:
        (prompt,) = (await talk.result("prompts/list"))["prompts"]
    assert prompt["description"] == "D"
    assert prompt.get("title") == ("T" if revision >= "2025-06-18" else None)
    assert prompt.get("_meta") == ({"com.example/k": 1} if revision >= "2025-06-18" else None)
    assert ("icons" in prompt) is (revision >= "2025-11-25")


async def test_arguments_are_strings_and_converted_to_the_parameters_types() -> None:
    server = Server("s")
    got: list[Any] = []

    @server.prompt
    async def typed(
        ctx: Context, n: int, ratio: float, on: bool, many: list[int], text: str, maybe: int | None = None
    ) -> str:
        got.append((n, ratio, on, many, text, maybe))
        return ctx.method

    arguments = {"n": "5", "ratio": "1.5", "on": "true", "many": "[1,2]", "text": "5", "maybe": "7"}
    async with session_talk(server, "2025-11-25") as talk:
        (prompt,) = (await talk.result("prompts/list"))["prompts"]
        assert [argument["name"] for argument in prompt["arguments"]] == ["n", "ratio", "on", "many", "text", "maybe"]
        assert texts(await talk.result("prompts/get", {"name": "typed", "arguments": arguments})) == [
            ("user", "prompts/get")
        ]
    assert got == [(5, 1.5, True, [1, 2], "5", 7)]


@pytest.mark.parametrize(
    ("name", "arguments", "word"),
    [
        ("asc", {"n": "1"}, "ask"),
        ("ask", {}, "n"),
        ("ask", {"n": "x"}, "n"),
        ("ask", {"n": "1", "nn": "2"}, "nn"),
        ("ask", {"n": ""}, "n"),
    ],
)
@every_revision
async def test_what_does_not_fit_is_invalid_params_and_says_what(
    revision: str, name: str, arguments: dict[str, str], word: str
) -> None:
    server = Server("s")
    server.add_prompt(lambda n: str(n), name="other")

    @server.prompt
    def ask(n: int) -> str:
        return str(n)

    async with session_talk(server, revision) as talk:
        error = await talk.error("prompts/get", {"name": name, "arguments": arguments})
        assert error["code"] == -32602
        assert word in error["message"]


@pytest.mark.parametrize(
    "fault", [ValueError("secret"), SystemExit(1), asyncio.CancelledError(), BaseException("secret")]
)
@pytest.mark.parametrize("kind", ["async", "sync", "inline"])
@every_revision
async def test_a_crash_is_an_internal_error_without_internals(revision: str, kind: str, fault: BaseException) -> None:
    server = Server("s")

    async def asynchronous() -> str:
        raise fault

    def sync() -> str:
        raise fault

    server.add_prompt(asynchronous if kind == "async" else sync, name="p", inline=kind == "inline")
    async with session_talk(server, revision) as talk:
        error = await talk.error("prompts/get", {"name": "p"})
        assert error["code"] == -32603
        assert "secret" not in json.dumps(error)
        assert len((await talk.result("prompts/list"))["prompts"]) == 1


@pytest.mark.parametrize(
    "value", [object(), [object()], 5, None, [[]], "\ud800"], ids=lambda value: type(value).__name__
)
async def test_what_is_no_message_costs_at_most_its_own_request(value: Any) -> None:
    server = Server("s")
    server.add_prompt(lambda: value, name="p")
    async with session_talk(server, "2025-11-25") as talk:
        answer = await talk.request("prompts/get", {"name": "p"})
        assert "result" in answer or answer["error"]["code"] == -32603
        assert await talk.quiet()


async def test_a_prompt_may_answer_with_an_error_of_the_protocol_and_has_a_timeout() -> None:
    server = Server("s")

    async def refuse() -> str:
        raise RpcError(-31000, "closed")

    def slow(ctx: Context) -> str:
        while not ctx.cancelled:
            time.sleep(0.001)
        return ""

    server.add_prompt(refuse)
    server.add_prompt(slow, timeout=0.02)
    async with session_talk(server, "2025-11-25") as talk:
        assert (await talk.error("prompts/get", {"name": "refuse"})) == {"code": -31000, "message": "closed"}
        assert (await talk.error("prompts/get", {"name": "slow"}))["code"] != -32602


async def test_prompts_come_and_go_at_run_time() -> None:
    server = Server("s", declare=["prompts"])
    async with session_talk(server, "2025-11-25") as talk:
        server.add_prompt(lambda: "x", name="p")
        with pytest.raises(ConfigError, match="p"):
            server.add_prompt(lambda: "y", name="p")
        assert texts(await talk.result("prompts/get", {"name": "p"})) == [("user", "x")]
        server.remove_prompt("p")
        assert (await talk.error("prompts/get", {"name": "p"}))["code"] == -32602
        with pytest.raises(ConfigError, match="p"):
            server.remove_prompt("p")


# --------------------------------------------------------------------------------------------------- completion

PROMPT = {"type": "ref/prompt", "name": "trip"}
TEMPLATE = {"type": "ref/resource", "uri": "geo://{country}/{city}"}


def completing_server() -> Server:
    server = Server("s")
    server.add_prompt(lambda country, city, other="": f"{country} {city}", name="trip")
    server.add_resource("geo://{country}/{city}", lambda country, city: city, name="geo")
    towns = {"no": ["Oslo", "Odda", "Bergen"], "jp": ["Osaka"]}

    @server.complete("trip", "country")
    def countries(value: str) -> list[str]:
        return [code for code in towns if code.startswith(value)]

    @server.complete("trip", "city")
    @server.complete("geo://{country}/{city}", "city")
    async def cities(prefix: str, arguments: dict[str, str], ctx: Context) -> list[str]:
        known = towns.get(arguments.get("country", ""), [town for found in towns.values() for town in found])
        return [town for town in known if town.startswith(prefix)]

    return server


async def complete(talk: Any, ref: Any, argument: str, value: str, **context: Any) -> dict[str, Any]:
    params = {"ref": ref, "argument": {"name": argument, "value": value}, **context}
    return (await talk.result("completion/complete", params))["completion"]


@every_revision
async def test_suggestions_come_from_the_function_of_that_argument(revision: str) -> None:
    async with session_talk(completing_server(), revision) as talk:
        assert (await complete(talk, PROMPT, "country", ""))["values"] == ["no", "jp"]
        assert (await complete(talk, PROMPT, "country", "j"))["values"] == ["jp"]
        assert (await complete(talk, PROMPT, "city", "O"))["values"] == ["Oslo", "Odda", "Osaka"]
        assert (await complete(talk, TEMPLATE, "city", "B"))["values"] == ["Bergen"]


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
async def test_the_values_chosen_already_are_handed_over(revision: str) -> None:
    async with session_talk(completing_server(), revision) as talk:
        found = await complete(talk, PROMPT, "city", "O", context={"arguments": {"country": "jp"}})
        assert found["values"] == ["Osaka"]
        found = await complete(talk, TEMPLATE, "city", "O", context={"arguments": {"country": "no"}})
        assert found["values"] == ["Oslo", "Odda"]


async def test_a_sync_function_suggests_from_a_thread_and_blocks_nobody() -> None:
    server = completing_server()
    server.complete("trip", "other")(lambda value: [str(threading.get_ident())])
    async with session_talk(server, "2025-11-25") as talk:
        assert (await complete(talk, PROMPT, "other", ""))["values"] != [str(threading.get_ident())]


@every_revision
async def test_an_argument_without_a_function_has_no_suggestions(revision: str) -> None:
    async with session_talk(completing_server(), revision) as talk:
        assert (await complete(talk, PROMPT, "other", ""))["values"] == []
        assert (await complete(talk, TEMPLATE, "country", ""))["values"] == []


@pytest.mark.parametrize(
    ("count", "sent", "more"), [(0, 0, False), (100, 100, False), (101, 100, True), (5000, 100, True)]
)
@every_revision
async def test_at_most_a_hundred_suggestions_are_sent_and_the_rest_is_counted(
    revision: str, count: int, sent: int, more: bool
) -> None:
    server = completing_server()
    server.complete("trip", "other")(lambda value: [f"v{index}" for index in range(count)])
    async with session_talk(server, revision) as talk:
        found = await complete(talk, PROMPT, "other", "")
        assert found["values"] == [f"v{index}" for index in range(sent)]
        assert found.get("hasMore", False) is more
        if more:
            assert found["total"] == count


@pytest.mark.parametrize(
    "ref", [{"type": "ref/prompt", "name": "nobody"}, {"type": "ref/resource", "uri": "x://{nobody}"}]
)
@every_revision
async def test_an_unknown_reference_is_invalid_params(revision: str, ref: dict[str, str]) -> None:
    async with session_talk(completing_server(), revision) as talk:
        params = {"ref": ref, "argument": {"name": "city", "value": ""}}
        assert (await talk.error("completion/complete", params))["code"] == -32602


@every_revision
async def test_a_crash_while_completing_is_an_internal_error(revision: str) -> None:
    server = completing_server()

    @server.complete("trip", "other")
    async def crash(value: str) -> list[str]:
        raise ValueError("secret")

    async with session_talk(server, revision) as talk:
        params = {"ref": PROMPT, "argument": {"name": "other", "value": ""}}
        error = await talk.error("completion/complete", params)
        assert error["code"] == -32603
        assert "secret" not in json.dumps(error)


class Size(Enum):
    small = "Small"
    medium = "Medium"
    mega = "mega"


class Level(IntEnum):
    low = 1
    high = 12


def choosing_server() -> Server:
    server = Server("s")

    @server.prompt
    def order(
        size: Size,
        level: Level,
        again: Size | None = None,
        code: Literal["a-1", "A-2", "b", 7, True] | None = None,
        free: str = "",
        either: Literal["x"] | int = 1,
    ) -> str:
        return f"{size} {level!r} {again} {code}"

    @server.resource("shop://{size}/{item}{?level}")
    def shop(size: Size, item: str, level: Level = Level.low, kind: Literal["k"] = "k") -> str:
        return f"{size.value} {item} {level}"

    return server


ORDER = {"type": "ref/prompt", "name": "order"}
SHOP = {"type": "ref/resource", "uri": "shop://{size}/{item}{?level}"}


@pytest.mark.parametrize(
    ("ref", "argument", "typed", "values"),
    [
        (ORDER, "size", "", ["Small", "Medium", "mega"]),
        (ORDER, "size", "m", ["Medium", "mega"]),
        (ORDER, "size", "MEG", ["mega"]),
        (ORDER, "size", "x", []),
        (ORDER, "level", "1", ["1", "12"]),
        (ORDER, "again", "s", ["Small"]),
        (ORDER, "code", "a", ["a-1", "A-2"]),
        (ORDER, "code", "", ["a-1", "A-2", "b", "7", "true"]),
        (ORDER, "free", "", []),
        (ORDER, "either", "", []),
        (ORDER, "nobody", "", []),
        (SHOP, "size", "m", ["Medium", "mega"]),
        (SHOP, "level", "", ["1", "12"]),
        (SHOP, "item", "", []),
        (SHOP, "kind", "", []),
    ],
)
@every_revision
async def test_the_values_of_literals_and_enums_are_suggested_by_themselves(
    revision: str, ref: dict[str, str], argument: str, typed: str, values: list[str]
) -> None:
    async with session_talk(choosing_server(), revision) as talk:
        found = await complete(talk, ref, argument, typed)
        assert sorted(found["values"]) == sorted(values)


async def test_what_is_suggested_is_accepted() -> None:
    async with session_talk(choosing_server(), "2025-11-25") as talk:
        for size, level, code in [("mega", "12", "7"), ("Small", "1", "A-2")]:
            arguments = {"size": size, "level": level, "code": code}
            await talk.result("prompts/get", {"name": "order", "arguments": arguments})
        assert (await talk.result("resources/read", {"uri": "shop://mega/hat?level=12"}))["contents"]


async def test_a_function_for_the_argument_goes_before_its_type() -> None:
    server = choosing_server()
    server.complete("order", "size")(lambda value: ["mine"])
    async with session_talk(server, "2025-11-25") as talk:
        assert (await complete(talk, ORDER, "size", "m"))["values"] == ["mine"]


async def test_more_than_a_hundred_choices_are_counted() -> None:
    server = Server("s")
    many = Enum("many", {f"n{index}": f"v{index}" for index in range(150)})

    def pick(which: Any) -> str:
        return str(which)

    pick.__annotations__["which"] = many
    server.add_prompt(pick)
    async with session_talk(server, "2025-11-25") as talk:
        found = await complete(talk, {"type": "ref/prompt", "name": "pick"}, "which", "V")
        assert (len(found["values"]), found["total"], found["hasMore"]) == (100, 150, True)


@pytest.mark.parametrize("gone", ["order", "shop"])
async def test_completion_is_declared_while_there_is_a_choice(gone: str) -> None:
    server = choosing_server()
    if gone == "order":
        server.remove_prompt("order")
    else:
        server.remove_resource("shop://{size}/{item}{?level}")
    for expected in (True, False):
        async with session_talk(server, "2025-11-25", opened=False) as talk:
            assert ("completions" in (await talk.open())["capabilities"]) is expected
        if expected and gone == "order":
            server.remove_resource("shop://{size}/{item}{?level}")
        elif expected:
            server.remove_prompt("order")


@every_revision
async def test_a_server_without_completions_has_no_such_method(revision: str) -> None:
    server = Server("s")
    server.add_prompt(lambda city: city, name="trip")
    async with session_talk(server, revision) as talk:
        answer = await talk.request("completion/complete", {"ref": PROMPT, "argument": {"name": "city", "value": ""}})
        assert "result" in answer or answer["error"]["code"] == -32601
