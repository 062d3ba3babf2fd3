"""A function of the client's that fails to answer: what the caller, the log and the server are told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from modelwire import Client, Context, Server, ToolError, Unanswered, answers
from modelwire.client.failures import KEPT, Failure, Failures, WrongAnswer
from tests.client.test_answering import FORM, SAMPLE
from tests.fake_server import MODERN, alive, talking

HANDSHAKE = "2025-11-25"
FIELDS: Any = FORM["requestedSchema"]


def crash(question: Any) -> Any:
    raise ZeroDivisionError("secret 17")


def misfit(question: Any) -> Any:
    return {"count": "secret 17"}


def parrot(question: Any) -> Any:
    return 7


NOWHERE = answers.openai("m", base_url="http://127.0.0.1:9/v1")
FAILING: list[tuple[str, Any, str, str]] = [
    ("on_elicit", crash, "the client failed to answer", "crash did not answer elicitation/create 'How many?'"),
    ("on_elicit", misfit, "the answer did not fit", "misfit did not answer elicitation/create 'How many?'"),
    ("on_sample", parrot, "the answer did not fit", "parrot did not answer sampling/createMessage"),
    ("on_sample", NOWHERE, "no answer was to be had", "did not answer sampling/createMessage"),
]


def asking() -> Server:
    server = Server("asking")

    @server.tool
    async def elicit(ctx: Context) -> str:
        return str(await ctx.elicit("How many?", schema=FIELDS))

    @server.tool
    async def sample(ctx: Context) -> str:
        return str(await ctx.sample("6 times 7?", max_tokens=5))

    @server.tool
    async def forgiving(ctx: Context) -> str:
        try:
            return str(await ctx.elicit("How many?", schema=FIELDS))
        except Exception:
            raise ToolError("no guests, no room") from None

    @server.prompt
    async def greet(ctx: Context) -> str:
        return str(await ctx.elicit("How many?", schema=FIELDS))

    return server


@pytest.mark.parametrize(("setting", "function", "short", "logged"), FAILING)
async def test_the_server_is_told_in_short_and_the_log_in_one_line(
    setting: str, function: Any, short: str, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with talking(HANDSHAKE, **{setting: function}) as (client, fake):
        method, params = ("elicitation/create", FORM) if setting == "on_elicit" else ("sampling/createMessage", SAMPLE)
        error = (await fake.ask(1, method, params))["error"]
        assert error["code"] == -32603
        assert error["message"].startswith(short)
        assert "server" not in error["message"]
        assert "17" not in error["message"]
        [record] = [record for record in caplog.records if record.levelname == "ERROR"]
        assert logged in record.getMessage()
        assert record.exc_info is None
        assert "\n" not in record.getMessage()
        await alive(client, fake)


@pytest.mark.parametrize(("setting", "function", "short", "logged"), FAILING)
@pytest.mark.parametrize("revision", [HANDSHAKE, MODERN])
async def test_the_caller_gets_the_reason_whatever_the_revision(
    revision: str, setting: str, function: Any, short: str, logged: str
) -> None:
    options: dict[str, Any] = {setting: function}
    async with Client(asking(), revision=revision, **options) as client:
        tool = "elicit" if setting == "on_elicit" else "sample"
        with pytest.raises(Unanswered) as caught:
            await client.call(tool)
        assert logged in str(caught.value)
        assert f"(of {tool!r})" in str(caught.value)
        assert "elicit-" not in str(caught.value)
        assert str(caught.value).count("did not answer elicitation") == (setting == "on_elicit")
        cause = caught.value.__cause__
        assert isinstance(cause, ZeroDivisionError if function is crash else Unanswered)


async def test_a_prompt_that_fails_for_it_says_so_too() -> None:
    async with Client(asking(), revision=HANDSHAKE, on_elicit=misfit) as client:
        with pytest.raises(Unanswered, match=r"misfit did not answer .* \(of 'greet'\)"):
            await client.get_prompt("greet")


async def test_where_the_server_says_something_else_its_words_stay() -> None:
    async with Client(asking(), revision=HANDSHAKE, on_elicit=misfit) as client:
        with pytest.raises(ToolError, match="^no guests, no room$"):
            await client.call("forgiving")
        assert (await client.call_tool("elicit")).is_error  # the result as it is


async def test_the_place_of_a_crash_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with talking(HANDSHAKE, on_elicit=crash) as (_, fake):
        await fake.ask(1, "elicitation/create", FORM)
    assert "ZeroDivisionError: secret 17 (" in caplog.text
    assert f"{__file__}, line {crash.__code__.co_firstlineno + 1})" in caplog.text


@pytest.mark.parametrize("returned", [{1, 2}, [1]])
async def test_a_handler_of_dicts_that_returns_what_cannot_be_sent_is_named(
    returned: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def made_by_hand(params: dict[str, Any]) -> Any:
        return returned

    async with talking(HANDSHAKE, handlers={"x/ask": made_by_hand}) as (client, fake):
        message = (await fake.ask(1, "x/ask"))["error"]["message"]
        assert message.startswith("the client failed to answer")
        assert "made_by_hand did not answer x/ask" in caplog.text
        await alive(client, fake)


def failure(why: str) -> Failure:
    return Failure("f", "elicitation/create", "Who?", WrongAnswer(why))


def test_a_failure_is_only_blamed_where_that_is_sure() -> None:
    failures = Failures()
    old = failures.note(failure("a"))
    since = failures.count
    assert failures.behind(old.message, since) is None  # before the request was sent
    failures.note(failure("b"))
    assert failures.behind("something else", since) is None
    blamed = failures.behind(f"it said: {old.message}", since)
    assert blamed is not None
    assert "b" in blamed.words()
    failures.note(failure("b"))
    assert failures.behind(old.message, since) is not None  # asked twice, and the same came of it
    failures.note(failure("c"))
    assert failures.behind(old.message, since) is None  # one of two, nobody knows which


def test_failures_are_not_kept_for_ever() -> None:
    failures = Failures()
    for _ in range(3 * KEPT):
        failures.note(failure("a"))
    assert failures.count == 3 * KEPT
    assert failures.behind(failure("a").told, 0) is not None


async def test_a_declined_message_is_told_to_the_caller_where_the_protocol_has_no_word_for_it() -> None:
    def refuse(question: Any) -> bool:
        return False

    async with talking(MODERN, on_sample=refuse) as (client, fake):
        call = asyncio.create_task(client.call("book"))
        asks = {
            "resultType": "input_required",
            "inputRequests": {"q": {"method": "sampling/createMessage", "params": SAMPLE}},
        }
        await fake.result(await fake.expect("tools/call"), asks)
        with pytest.raises(Unanswered, match="the user declined; 2026-07-28 has no answer for that") as caught:
            await call
        assert "did not answer" not in str(caught.value)
