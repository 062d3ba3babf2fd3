"""A handler asks the client in straight-line code, on every revision: what is asked, and what comes of the answers."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from contextvars import ContextVar
from typing import Any

import pytest

from modelwire import (
    CapabilityRequired,
    ConfigError,
    Context,
    Declined,
    Dismissed,
    Parking,
    Server,
    ToolError,
    UrlElicitationRequired,
    types,
)
from tests.server.persons import EVERYTHING, MODERN, accepting, person, session_talk, stream_talk
from tests.wire import HANDSHAKE, REVISIONS, every_revision

ELICITING = [name for name in REVISIONS if name >= "2025-06-18"]
VISITING = [name for name in REVISIONS if name >= "2025-11-25"]
eliciting = pytest.mark.parametrize("revision", ELICITING)
visiting = pytest.mark.parametrize("revision", VISITING)
over_both = pytest.mark.parametrize("over", [stream_talk, session_talk])


@dataclasses.dataclass
class Guests:
    count: int
    smoking: bool = False


def hotel(**options: Any) -> tuple[Server, list[str]]:
    """A server whose tools ask, and what their functions did, in order."""
    server = Server("hotel", **options)
    done: list[str] = []

    @server.tool
    async def book(hotel: str, ctx: Context) -> str:
        done.append("begun")
        guests = await ctx.elicit("How many guests?", Guests)
        done.append(f"{guests.count} guests")
        breakfast = await ctx.elicit(
            "Breakfast?", schema={"type": "object", "properties": {"yes": {"type": "boolean"}}}
        )
        done.append("booked")
        return f"{hotel}: {guests.count}, {guests.smoking}, {breakfast['yes']}"

    @server.tool
    async def survey(ctx: Context) -> str:
        first, second = await asyncio.gather(ctx.elicit("First?", Guests), ctx.elicit("Second?", Guests))
        return f"{first.count} {second.count}"

    return server, done


# --------------------------------------------------------------------------------------------------- forms


@over_both
@eliciting
async def test_a_handler_goes_on_behind_each_question_and_what_stands_before_runs_once(
    revision: str, over: Any
) -> None:
    server, done = hotel()
    async with person(server, revision, accepting({"count": 2}, {"yes": True}), over=over) as user:
        assert await user.text("book", {"hotel": "Ritz"}) == "Ritz: 2, False, True"
    assert done == ["begun", "2 guests", "booked"]
    assert user.rounds == [["elicitation/create"]] * 2


@eliciting
async def test_what_is_asked_side_by_side_is_asked_together(revision: str) -> None:
    server, _ = hotel()
    counts = {"First?": 1, "Second?": 2}

    def answer(method: str, params: dict[str, Any]) -> Any:
        return {"action": "accept", "content": {"count": counts[params["message"]]}}

    async with person(server, revision, answer) as user:
        assert await user.text("survey") == "1 2"
    assert user.rounds == ([["elicitation/create"] * 2] if revision == MODERN else [["elicitation/create"]] * 2)


@eliciting
@pytest.mark.parametrize(("action", "words"), [("decline", "declined"), ("cancel", "closed the question")])
async def test_a_user_who_says_no_is_an_error_of_the_tool(revision: str, action: str, words: str) -> None:
    server, done = hotel()
    async with person(server, revision, lambda method, params: {"action": action}) as user:
        assert words in await user.problem("book", {"hotel": "Ritz"})
    assert done == ["begun"]


@eliciting
async def test_a_handler_may_catch_what_the_user_refuses(revision: str) -> None:
    server = Server("s")
    answers = iter(["decline", "cancel"])

    @server.tool
    async def careful(ctx: Context) -> list[str]:
        found: list[str] = []
        for number in range(2):
            try:
                await ctx.elicit(f"Shall we? {number}")
            except (Declined, Dismissed) as error:
                found.append(type(error).__name__)
        return found

    async with person(server, revision, lambda method, params: {"action": next(answers)}) as user:
        result = await user.call("careful")
    assert result["content"][0]["text"] == '["Declined","Dismissed"]'


@eliciting
async def test_a_schema_by_hand_is_sent_as_it_is(revision: str) -> None:
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string", "title": "Name", "minLength": 1}},
        "required": ["name"],
    }
    seen: list[Any] = []
    server = Server("s")

    @server.tool
    async def ask(ctx: Context) -> str:
        return (await ctx.elicit("Who?", schema=schema))["name"]

    def answer(method: str, params: dict[str, Any]) -> Any:
        seen.append(params["requestedSchema"])
        return {"action": "accept", "content": {"name": "Ada"}}

    async with person(server, revision, answer) as user:
        assert await user.text("ask") == "Ada"
    assert seen == [schema]


@pytest.mark.parametrize("content", [{"count": "many"}, {}, {"count": True}])
async def test_an_answer_that_does_not_fit_is_the_client_s_error_and_may_be_given_again(content: Any) -> None:
    server, done = hotel()
    async with person(server, MODERN, accepting({"count": 2}, {"yes": False})) as user:
        params = {"name": "book", "arguments": {"hotel": "Ritz"}}
        first = await (await user.begin("tools/call", params)).result()
        (key,) = first["inputRequests"]
        wrong = {
            "requestState": first["requestState"],
            "inputResponses": {key: {"action": "accept", "content": content}},
        }
        error = await (await user.begin("tools/call", {**params, **wrong})).error()
        assert error["code"] == -32602
        assert key in error["message"]
        right = {
            "requestState": first["requestState"],
            "inputResponses": {key: {"action": "accept", "content": {"count": 2}}},
        }
        second = await (await user.begin("tools/call", {**params, **right})).result()
        assert second["resultType"] == "input_required"
    assert done == ["begun", "2 guests"]


@pytest.mark.parametrize("revision", [name for name in ELICITING if name != MODERN])
async def test_an_answer_that_does_not_fit_fails_the_tool_on_handshake_revisions(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    server, _ = hotel()
    async with person(server, revision, accepting({"count": "many"})) as user:
        assert "its log says more" in await user.problem("book", {"hotel": "Ritz"})
    assert "does not fit the form" in caplog.text


# ----------------------------------------------------------------------------------- rounds of 2026-07-28


async def test_what_is_not_answered_is_asked_again_and_what_nobody_asked_is_ignored() -> None:
    server, _ = hotel()
    asked: list[str] = []

    def answer(method: str, params: dict[str, Any]) -> Any:
        asked.append(params["message"])
        return None if asked.count(params["message"]) == 1 and params["message"] == "Second?" else {
            "action": "accept", "content": {"count": len(asked)},
        }  # fmt: skip

    async with person(server, MODERN, answer) as user:
        user.answers = lambda result, plain=user.answers: _with_noise(plain(result))  # type: ignore[method-assign]
        assert await user.text("survey") == "1 3"
    assert asked == ["First?", "Second?", "Second?"]


def _with_noise(found: dict[str, Any]) -> dict[str, Any]:
    return {
        **found,
        "inputResponses": {**found["inputResponses"], "unknown": {"action": "accept"}, "odd": {"roots": []}},
    }


async def test_answers_without_a_state_answer_a_fresh_call_by_key() -> None:
    server = Server("s")

    @server.tool
    async def ask(ctx: Context) -> str:
        return f"{(await ctx.elicit('How many?', Guests, key='guests')).count}"

    async with person(server, MODERN, accepting()) as user:
        params = {"name": "ask", "arguments": {}}
        brought = {"guests": {"action": "accept", "content": {"count": 3}}, "other": {"action": "accept"}}
        result = await (await user.begin("tools/call", {**params, "inputResponses": brought})).result()
        assert result["content"][0]["text"] == "3"
        wrong = {"another": {"action": "accept", "content": {"count": 3}}}
        result = await (await user.begin("tools/call", {**params, "inputResponses": wrong})).result()
        assert list(result["inputRequests"]) == ["guests"]
        for malformed in ({"roots": []}, {"action": "accept", "content": {"count": "many"}}):
            brought = {"inputResponses": {"guests": malformed}}
            error = await (await user.begin("tools/call", {**params, **brought})).error()
            assert error["code"] == -32602


async def test_of_two_requests_with_one_state_one_goes_on() -> None:
    server, _ = hotel()
    async with person(server, MODERN, accepting({"count": 2}, {"yes": True})) as user:
        params = {"name": "survey", "arguments": {}}
        first = await (await user.begin("tools/call", params)).result()
        brought = {
            "requestState": first["requestState"],
            "inputResponses": {key: {"action": "accept", "content": {"count": 1}} for key in first["inputRequests"]},
        }
        pending = [await user.begin("tools/call", {**params, **brought}) for _ in range(2)]
        answers = [await one.answer() for one in pending]
    assert sorted("error" in answer for answer in answers) == [False, True]
    (refused,) = [answer["error"] for answer in answers if "error" in answer]
    assert refused["code"] == -32602


REFUSED = {"code": -32602, "message": "This requestState cannot be used; start the call again without it"}


@pytest.mark.parametrize(
    "change",
    [
        {"requestState": "garbage"},
        {"requestState": ""},
        {"arguments": {"hotel": "Savoy"}},
        {"name": "survey", "arguments": {}},
    ],
    ids=["made up", "empty", "other arguments", "another tool"],
)
@pytest.mark.parametrize("keys", [None, ["k" * 32]], ids=["parked", "sealed"])
async def test_a_state_that_is_wrong_here_is_refused_in_the_same_words_and_stays_good_where_it_is_right(
    change: dict[str, Any], keys: Any
) -> None:
    server, done = hotel(state_keys=keys)
    async with person(server, MODERN, accepting({"count": 2}, {"yes": True})) as user:
        params = {"name": "book", "arguments": {"hotel": "Ritz"}}
        first = await (await user.begin("tools/call", params)).result()
        brought = {**params, **user.answers(first)}
        assert await (await user.begin("tools/call", {**brought, **change})).error() == REFUSED
        second = await (await user.begin("tools/call", brought)).result()
        assert second["resultType"] == "input_required"
    assert done == ["begun", "2 guests"]


async def test_the_same_arguments_in_another_order_and_other_metadata_are_the_same_request() -> None:
    server = Server("s")

    @server.tool
    async def ask(a: int, b: int, ctx: Context) -> int:
        return a + b + (await ctx.elicit("More?", Guests)).count

    async with person(server, MODERN, accepting({"count": 3})) as user:
        first = await (await user.begin("tools/call", {"name": "ask", "arguments": {"a": 1, "b": 2}})).result()
        again = {"arguments": {"b": 2, "a": 1}, "name": "ask", **user.answers(first)}
        pending = await user.talk.begin("tools/call", again, clientCapabilities=EVERYTHING, progressToken="later")
        assert (await pending.result())["structuredContent"] == 6


async def test_a_resumed_handler_speaks_to_the_request_that_brought_the_answer() -> None:
    server = Server("s")
    seen: list[Any] = []

    @server.tool
    async def ask(ctx: Context) -> str:
        seen.append((ctx.request_id, ctx.peer.log_level))
        ctx.progress(1)
        await ctx.elicit("Go on?")
        seen.append((ctx.request_id, ctx.peer.log_level))
        ctx.progress(1)
        ctx.log.info("resumed")
        return "done"

    async with person(server, MODERN, accepting({})) as user:
        params = {"name": "ask", "arguments": {}}
        meta: dict[str, Any] = {"clientCapabilities": EVERYTHING}
        first = await (await user.talk.begin("tools/call", params, id=70, progressToken="a", **meta)).result()
        meta["logLevel"] = "info"
        second = await user.talk.begin(
            "tools/call", {**params, **user.answers(first)}, id=71, progressToken="b", **meta
        )
        assert (await second.result())["content"][0]["text"] == "done"
        tokens = [heard["progressToken"] for heard in user.talk.heard("notifications/progress")]
        assert len(user.talk.heard("notifications/message")) == 1
    assert tokens == ["a", "b"]
    assert seen == [(70, None), (71, "info")]


tenant: ContextVar[str] = ContextVar("tenant", default="nobody")
mood: ContextVar[str] = ContextVar("mood", default="calm")


async def test_context_variables_are_those_of_the_request_that_brought_the_answer() -> None:
    server = Server("s")

    @server.tool
    async def ask(ctx: Context) -> list[str]:
        mood.set("busy")
        before = tenant.get()
        await ctx.elicit("Go on?")
        return [before, tenant.get(), mood.get()]

    async with person(server, MODERN, accepting({}), over=session_talk) as user:
        params = {"name": "ask", "arguments": {}}
        tenant.set("first")
        first = await (await user.begin("tools/call", params)).result()
        tenant.set("second")
        second = await (await user.begin("tools/call", {**params, **user.answers(first)})).result()
    assert second["structuredContent"] == ["first", "second", "busy"]


async def test_cancelling_the_request_that_brought_an_answer_ends_the_handler() -> None:
    server = Server("s")
    ended = asyncio.Event()
    going_on = asyncio.Event()

    @server.tool
    async def ask(ctx: Context) -> str:
        await ctx.elicit("Go on?")
        going_on.set()
        try:
            await asyncio.Event().wait()
        finally:
            assert ctx.cancelled
            ended.set()
        return "never"

    async with person(server, MODERN, accepting({})) as user:
        params = {"name": "ask", "arguments": {}}
        first = await (await user.begin("tools/call", params)).result()
        second = await user.begin("tools/call", {**params, **user.answers(first)})
        await going_on.wait()
        await user.talk.cancel(second)
        await ended.wait()
        await user.talk.settle()
        assert not second.done


async def test_a_parked_handler_that_ends_meanwhile_answers_the_next_request() -> None:
    server = Server("s")
    release = asyncio.Event()

    @server.tool
    async def impatient(ctx: Context) -> str:
        asking = asyncio.create_task(ctx.elicit("Go on?"))
        await release.wait()
        asking.cancel()
        return "without an answer"

    async with person(server, MODERN, accepting({})) as user:
        params = {"name": "impatient", "arguments": {}}
        first = await (await user.begin("tools/call", params)).result()
        release.set()
        await user.talk.settle()
        second = await (await user.begin("tools/call", {**params, **user.answers(first)})).result()
        assert second["content"][0]["text"] == "without an answer"


# --------------------------------------------------------------------------------------------------- bounds


async def test_what_is_not_answered_in_time_is_cleaned_up_and_refused() -> None:
    server = Server("s", parking=Parking(seconds=0))
    ended = asyncio.Event()

    @server.tool
    async def ask(ctx: Context) -> str:
        try:
            await ctx.elicit("Go on?")
        finally:
            ended.set()
        return "never"

    async with person(server, MODERN, accepting({})) as user:
        params = {"name": "ask", "arguments": {}}
        first = await (await user.begin("tools/call", params)).result()
        await ended.wait()
        assert await (await user.begin("tools/call", {**params, **user.answers(first)})).error() == REFUSED


@pytest.mark.parametrize("limits", [Parking(calls=1), Parking(bytes=5000)], ids=["calls", "bytes"])
async def test_above_the_bound_a_call_fails_and_those_that_wait_do_not(limits: Parking) -> None:
    server, _ = hotel(parking=limits)
    async with person(server, MODERN, accepting({"count": 1}, {"count": 2})) as user:
        params = {"name": "survey", "arguments": {}}
        first = await (await user.begin("tools/call", params)).result()
        error = await (await user.begin("tools/call", params)).error()
        assert "wait for answers" in error["message"]
        second = await (await user.begin("tools/call", {**params, **user.answers(first)})).result()
        assert second["content"][0]["text"] == "1 2"


async def test_parked_handlers_end_with_the_server() -> None:
    server = Server("s")
    ended = asyncio.Event()

    @server.tool
    async def ask(ctx: Context) -> str:
        try:
            await ctx.elicit("Go on?")
        finally:
            ended.set()
        return "never"

    async with person(server, MODERN, accepting({})) as user:
        await (await user.begin("tools/call", {"name": "ask", "arguments": {}})).result()
        assert not ended.is_set()
    assert ended.is_set()


@eliciting
async def test_a_tool_s_time_stands_still_while_a_person_thinks(revision: str) -> None:
    server = Server("s")
    loop = asyncio.get_running_loop()
    real, ahead = loop.time, 0.0
    loop.time = lambda: real() + ahead  # type: ignore[method-assign]

    @server.tool(timeout=5)
    async def ask(ctx: Context) -> str:
        await ctx.elicit("Go on?")
        return "done"

    def answer(method: str, params: dict[str, Any]) -> Any:
        nonlocal ahead
        ahead += 6
        return {"action": "accept", "content": {}}

    async with person(server, revision, answer) as user:
        assert await user.text("ask") == "done"


# --------------------------------------------------------------------------------------------------- sealed states


async def test_with_keys_another_process_runs_the_handler_again_with_the_answers_so_far() -> None:
    first_server, first_done = hotel(state_keys=["a" * 32])
    second_server, second_done = hotel(state_keys=["b" * 32, "a" * 32])
    params = {"name": "book", "arguments": {"hotel": "Ritz"}}
    async with person(first_server, MODERN, accepting({"count": 2})) as user:
        first = await (await user.begin("tools/call", params)).result()
        brought = user.answers(first)
    async with person(second_server, MODERN, accepting({"yes": True})) as user:
        second = await (await user.begin("tools/call", {**params, **brought})).result()
        last = await (await user.begin("tools/call", {**params, **user.answers(second)})).result()
        assert last["content"][0]["text"] == "Ritz: 2, False, True"
    assert first_done == ["begun"]
    assert second_done == ["begun", "2 guests", "booked"]


@pytest.mark.parametrize("keys", [["c" * 32], None], ids=["other keys", "no keys"])
async def test_a_process_without_the_key_refuses(keys: Any) -> None:
    first_server, _ = hotel(state_keys=["a" * 32])
    other, done = hotel(state_keys=keys)
    params = {"name": "book", "arguments": {"hotel": "Ritz"}}
    async with person(first_server, MODERN, accepting({"count": 2})) as user:
        brought = user.answers(await (await user.begin("tools/call", params)).result())
    async with person(other, MODERN, accepting()) as user:
        assert await (await user.begin("tools/call", {**params, **brought})).error() == REFUSED
    assert done == []


async def test_what_is_done_once_is_done_once_also_when_it_is_run_again() -> None:
    charges: list[str] = []

    def shop() -> Server:
        server = Server("shop", state_keys=["a" * 32])

        @server.tool
        async def buy(ctx: Context) -> str:
            receipt = await ctx.once("charge", lambda: charges.append("charged") or {"number": len(charges)}, dict)
            address = await ctx.elicit("Where to?", schema={"type": "object", "properties": {"to": {"type": "string"}}})
            return f"{receipt['number']} to {address['to']}"

        return server

    params = {"name": "buy", "arguments": {}}
    async with person(shop(), MODERN, accepting({"to": "Rome"})) as user:
        brought = user.answers(await (await user.begin("tools/call", params)).result())
    async with person(shop(), MODERN, accepting()) as user:
        result = await (await user.begin("tools/call", {**params, **brought})).result()
        assert result["content"][0]["text"] == "1 to Rome"
        assert await (await user.begin("tools/call", {**params, **brought})).error() == REFUSED
    assert charges == ["charged"]


async def test_a_tool_that_must_not_be_run_again_is_refused_where_it_is_no_longer_in_memory() -> None:
    def made() -> Server:
        server = Server("s", state_keys=["a" * 32])

        @server.tool(replay=False)
        async def ask(ctx: Context) -> str:
            await ctx.elicit("Go on?")
            return "done"

        return server

    params = {"name": "ask", "arguments": {}}
    async with person(made(), MODERN, accepting({})) as user:
        first = await (await user.begin("tools/call", params)).result()
        brought = user.answers(first)
        result = await (await user.begin("tools/call", {**params, **brought})).result()
        assert result["content"][0]["text"] == "done"
    async with person(made(), MODERN, accepting({})) as user:
        assert await (await user.begin("tools/call", {**params, **brought})).error() == REFUSED


async def test_with_keys_calls_above_the_bound_are_not_kept_but_run_again() -> None:
    server, done = hotel(state_keys=["a" * 32], parking=Parking(calls=0))
    async with person(server, MODERN, accepting({"count": 2}, {"yes": True})) as user:
        assert await user.text("book", {"hotel": "Ritz"}) == "Ritz: 2, False, True"
    assert done == ["begun", "begun", "2 guests", "begun", "2 guests", "booked"]


async def test_a_sealed_state_expires() -> None:
    server, _ = hotel(state_keys=["a" * 32], parking=Parking(calls=0, seconds=0))
    params = {"name": "book", "arguments": {"hotel": "Ritz"}}
    async with person(server, MODERN, accepting({"count": 2})) as user:
        brought = user.answers(await (await user.begin("tools/call", params)).result())
        assert await (await user.begin("tools/call", {**params, **brought})).error() == REFUSED


async def test_answers_too_large_to_be_sealed_fail_the_call_and_say_so() -> None:
    server = Server("s", state_keys=["a" * 32])

    @server.tool
    async def ask(ctx: Context) -> str:
        schema = {"type": "object", "properties": {"text": {"type": "string"}}}
        await ctx.elicit("First?", schema=schema)
        await ctx.elicit("Second?", schema=schema)
        return "never"

    async with person(server, MODERN, accepting({"text": "x" * 70_000})) as user:
        assert "65536 is the most" in await user.problem("ask")


@pytest.mark.parametrize("keys", [[], "a" * 32, ["short"], [7]])
def test_keys_that_are_none_are_refused(keys: Any) -> None:
    with pytest.raises(ConfigError, match="state"):
        Server("s", state_keys=keys)


# --------------------------------------------------------------------------------------------------- other questions


@every_revision
async def test_the_client_s_model_writes_and_roots_are_listed(revision: str) -> None:
    server = Server("s")

    @server.tool
    async def ask(ctx: Context) -> str:
        written = await ctx.sample(["Hello", types.SamplingMessage("assistant", types.TextContent("Hi"))], max_tokens=9)
        assert isinstance(written.content, types.TextContent)
        places = await ctx.roots()
        return f"{written.content.text} {written.model} {places[0].uri}"

    def answer(method: str, params: dict[str, Any]) -> Any:
        if method == "roots/list":
            return {"roots": [{"uri": "file:///home"}]}
        assert [message["role"] for message in params["messages"]] == ["user", "assistant"]
        return {"role": "assistant", "content": {"type": "text", "text": "Written"}, "model": "m"}

    async with person(server, revision, answer) as user:
        assert await user.text("ask") == "Written m file:///home"


async def test_a_conversation_that_breaks_a_rule_about_tools_is_not_sent() -> None:
    server = Server("s")

    @server.tool
    async def ask(ctx: Context) -> str:
        use = types.SamplingMessage("assistant", types.ToolUseContent("1", "add", {}))
        with pytest.raises(ConfigError, match="tool result missing") as caught:
            await ctx.sample([use, "And?"], max_tokens=9)
        return str(caught.value)

    async with person(server, MODERN, accepting()) as user:
        assert "ctx.sample" in await user.text("ask")


@visiting
async def test_a_user_is_sent_to_a_url(revision: str) -> None:
    server = Server("s")
    seen: list[dict[str, Any]] = []

    @server.tool
    async def log_in(ctx: Context) -> str:
        name = await ctx.elicit_url("Please log in.", "https://example.com/login?once=7")
        ctx.elicitation_complete(name)
        return "logged in"

    def answer(method: str, params: dict[str, Any]) -> Any:
        seen.append(params)
        return {"action": "accept"}

    async with person(server, revision, answer) as user:
        assert await user.text("log_in") == "logged in"
        complete = user.talk.heard("notifications/elicitation/complete")
    assert (seen[0]["mode"], seen[0]["url"]) == ("url", "https://example.com/login?once=7")
    if revision == MODERN:
        assert "elicitationId" not in seen[0]
        assert complete == []
    else:
        assert complete == [{"elicitationId": seen[0]["elicitationId"]}]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_visit_that_is_required_first_has_its_error_in_2025_11_25(revision: str) -> None:
    server = Server("s")

    @server.tool
    async def locked() -> str:
        visit = types.ElicitRequestURLParams("Please log in.", "https://example.com/login", elicitation_id="7")
        raise UrlElicitationRequired([visit])

    async with person(server, revision, accepting()) as user:
        error = (await user.ask("tools/call", {"name": "locked", "arguments": {}}))["error"]
    if revision == "2025-11-25":
        assert error["code"] == -32042
        assert error["data"]["elicitations"][0]["elicitationId"] == "7"
    else:
        assert error["code"] == -32603


@pytest.mark.parametrize(
    "url", ["", "example.com", "://x", "https://", "https://a b", "https://é.com", "https://a/%zz", 7]
)
async def test_a_user_is_sent_to_nothing_but_a_url(url: Any) -> None:
    server = Server("s")

    @server.tool
    async def login(ctx: Context) -> str:
        with pytest.raises(ConfigError, match="a URL to be visited is one like") as caught:
            await ctx.elicit_url("Please log in.", url)
        return str(caught.value)

    async with person(server, MODERN, accepting()) as user:
        assert "https://example.com/login" in await user.text("login")


@pytest.mark.parametrize("visits", [[], [types.ElicitRequestURLParams("Please.", "https://example.com")]])
def test_a_visit_that_is_required_first_has_an_id(visits: Any) -> None:
    with pytest.raises(ConfigError, match="elicitation_id"):
        UrlElicitationRequired(visits)


async def test_a_visit_is_told_to_be_complete_from_any_thread() -> None:
    server = Server("s")

    @server.tool
    async def login(ctx: Context) -> str:
        name = await ctx.elicit_url("Please log in.", "https://example.com/login")
        await asyncio.to_thread(ctx.elicitation_complete, name)
        return name

    async with person(server, "2025-11-25", lambda method, params: {"action": "accept"}) as user:
        name = await user.text("login")
        told = await user.talk.take(lambda found: found.get("method") == "notifications/elicitation/complete")
        assert told["params"]["elicitationId"] == name


async def test_a_user_who_rejects_the_model_s_use_has_declined() -> None:
    server = Server("s")

    @server.tool
    async def ask(ctx: Context) -> str:
        try:
            await ctx.sample("Hello", max_tokens=9)
        except Declined as declined:
            return f"declined: {declined}"
        return "never"

    @server.tool
    async def broken(ctx: Context) -> list[str]:
        with pytest.raises(ToolError, match="could not answer sampling/createMessage: no model") as caught:
            await ctx.sample("Hello", max_tokens=9)
        return [str(caught.value)]

    async with person(server, "2025-11-25", accepting()) as user:
        for tool, code, message in [("ask", -1, "User rejected"), ("broken", -32603, "no model")]:
            pending = await user.begin("tools/call", {"name": tool, "arguments": {}})
            question = await user.talk.take(lambda found: found.get("method") == "sampling/createMessage")
            await user.talk.send({"jsonrpc": "2.0", "id": question["id"], "error": {"code": code, "message": message}})
            assert message in (await pending.result())["content"][0]["text"]


# --------------------------------------------------------------------------------------------------- who can be asked

QUESTIONS: dict[str, Any] = {
    "elicitation.form": lambda ctx: ctx.elicit("Who?", Guests),
    "elicitation.url": lambda ctx: ctx.elicit_url("Please log in.", "https://example.com"),
    "sampling": lambda ctx: ctx.sample("Hello", max_tokens=9),
    "sampling.tools": lambda ctx: ctx.sample("Hello", max_tokens=9, tool_choice="auto"),
    "sampling.context": lambda ctx: ctx.sample("Hello", max_tokens=9, include_context="thisServer"),
    "roots": lambda ctx: ctx.roots(),
}
ALMOST = {
    "elicitation.form": {"elicitation": {"url": {}}},
    "elicitation.url": {"elicitation": {"form": {}}},
    "sampling": {"roots": {}},
    "sampling.tools": {"sampling": {}},
    "sampling.context": {"sampling": {}},
    "roots": {"sampling": {}},
}


@pytest.mark.parametrize("capability", QUESTIONS)
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_a_client_is_never_asked_what_it_did_not_declare(revision: str, capability: str) -> None:
    server = Server("s")

    @server.tool
    async def ask(ctx: Context) -> str:
        assert not ctx.peer.supports(capability)
        await QUESTIONS[capability](ctx)
        return "never"

    async with person(server, revision, accepting(), ALMOST[capability]) as user:
        response = await user.ask("tools/call", {"name": "ask", "arguments": {}})
    assert user.rounds == []
    if revision == MODERN:
        # "-32021 [...] data MUST include requiredCapabilities"
        assert response["error"]["code"] == -32021
        required = response["error"]["data"]["requiredCapabilities"]
        for part in capability.split("."):
            required = required[part]
        assert required == {}
    else:
        assert capability in response["result"]["content"][0]["text"]
        assert response["result"]["isError"]


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_an_empty_capability_for_elicitation_means_forms(revision: str) -> None:
    server = Server("s")
    seen: list[bool] = []

    @server.tool
    async def look(ctx: Context) -> None:
        seen.extend(ctx.peer.supports(name) for name in ("elicitation", "elicitation.form", "elicitation.url"))

    async with person(server, revision, accepting(), {"elicitation": {}}) as user:
        await user.call("look")
    assert seen == ([True, True, False] if revision >= "2025-06-18" else [False, False, False])


async def test_nobody_is_asked_while_a_completion_is_made() -> None:
    server = Server("s")
    server.add_prompt(lambda city: city, name="city")
    raised: list[str] = []

    @server.complete("city", "city")
    async def cities(prefix: str, ctx: Context) -> list[str]:
        with pytest.raises(ConfigError, match="completion/complete") as caught:
            await ctx.roots()
        raised.append(str(caught.value))
        return []

    async with person(server, "2025-11-25", accepting()) as user:
        reference = {"ref": {"type": "ref/prompt", "name": "city"}, "argument": {"name": "city", "value": ""}}
        await user.ask("completion/complete", reference)
    assert raised


@eliciting
async def test_prompts_and_resources_ask_as_tools_do(revision: str) -> None:
    server = Server("s")

    @server.prompt
    async def greet(ctx: Context) -> str:
        return f"Greet {(await ctx.elicit('How many?', Guests)).count} people."

    @server.resource("guests://list")
    async def listed(ctx: Context) -> str:
        return f"{(await ctx.elicit('How many?', Guests)).count}"

    async with person(server, revision, accepting({"count": 2}, {"count": 3})) as user:
        prompt = await user.ask("prompts/get", {"name": "greet"})
        assert prompt["result"]["messages"][0]["content"]["text"] == "Greet 2 people."
        read = await user.ask("resources/read", {"uri": "guests://list"})
        assert read["result"]["contents"][0]["text"] == "3"


@pytest.mark.parametrize("wrong", ["", "   ", None, 7])
async def test_a_question_without_words_is_refused(wrong: Any, caplog: pytest.LogCaptureFixture) -> None:
    server = Server("s")

    @server.tool
    async def ask(ctx: Context) -> str:
        await ctx.elicit(wrong, Guests)
        return "never"

    with caplog.at_level(logging.ERROR):
        async with person(server, MODERN, accepting()) as user:
            await user.problem("ask")
    assert "is a sentence for the user" in caplog.text


def test_an_error_for_a_missing_capability_names_it() -> None:
    error = CapabilityRequired("elicitation.url")
    assert error.data == {"requiredCapabilities": {"elicitation": {"url": {}}}}
