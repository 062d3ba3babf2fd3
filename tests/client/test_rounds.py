"""Requests that a server answers with questions: the rounds that a client goes, and where it stops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from modelwire import (
    ConfigError,
    ConnectionLost,
    FormQuestion,
    ProtocolViolation,
    Reply,
    RequestTimeout,
    Unanswered,
    UrlElicitationNeeded,
    UrlQuestion,
    types,
)
from tests.clock import Clock
from tests.fake_server import HANDSHAKE, MODERN, alive, talking, text

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "default": 2}}}
FORM = {"method": "elicitation/create", "params": {"mode": "form", "message": "How many?", "requestedSchema": SCHEMA}}
PAGE = {"method": "elicitation/create", "params": {"mode": "url", "message": "Sign", "url": "https://example.org/s"}}
MESSAGES = [{"role": "user", "content": {"type": "text", "text": "6 times 7?"}}]
SAMPLE = {"method": "sampling/createMessage", "params": {"messages": MESSAGES, "maxTokens": 5}}
ROOTS = {"method": "roots/list"}


def asks(state: str | None = None, **questions: Any) -> dict[str, Any]:
    result: dict[str, Any] = {"resultType": "input_required"}
    if questions:
        result["inputRequests"] = questions
    return result if state is None else {**result, "requestState": state}


def without_meta(request: Any) -> dict[str, Any]:
    return {key: value for key, value in request["params"].items() if key != "_meta"}


Ask = Callable[..., Any]
CALLS: dict[str, tuple[Ask, Any, Any]] = {
    "tools/call": (
        lambda client, **options: client.call_tool("book", {"hotel": "Ritz"}, **options),
        {"name": "book", "arguments": {"hotel": "Ritz"}},
        text("booked"),
    ),
    "prompts/get": (
        lambda client, **options: client.get_prompt("book", {"hotel": "Ritz"}, **options),
        {"name": "book", "arguments": {"hotel": "Ritz"}},
        {"messages": []},
    ),
    "resources/read": (
        lambda client, **options: client.read_resource("hotel://ritz", **options),
        {"uri": "hotel://ritz"},
        {"contents": [], "ttlMs": 0, "cacheScope": "private"},
    ),
}


# --------------------------------------------------------------------------------------------------- one round


@pytest.mark.parametrize("method", CALLS)
async def test_a_request_is_sent_again_with_the_answers_until_it_is_done(method: str) -> None:
    ask, params, result = CALLS[method]
    options: dict[str, Any] = {"on_elicit": lambda question: {"n": 3}, "on_sample": lambda question: "42"}
    async with talking(MODERN, roots=["/a"], **options) as (client, fake):
        call = asyncio.create_task(ask(client))
        first = await fake.expect(method)
        assert without_meta(first) == params
        state = 'opaque "state" \u0000 \u65e5'
        await fake.result(first, asks(state, how=FORM, what=SAMPLE, where=ROOTS))
        second = await fake.expect(method)
        assert second["id"] != first["id"]
        assert second["params"]["_meta"] == first["params"]["_meta"]
        assert without_meta(second) == {
            **params,
            "requestState": state,
            "inputResponses": {
                "how": {"action": "accept", "content": {"n": 3}},
                "what": {
                    "role": "assistant",
                    "content": {"type": "text", "text": "42"},
                    "model": "unnamed",
                    "stopReason": "endTurn",
                },
                "where": {"roots": [{"uri": "file:///a", "name": "a"}]},
            },
        }
        await fake.result(second, asks(more=FORM))
        third = await fake.expect(method)  # nothing of the earlier round
        assert without_meta(third) == {**params, "inputResponses": {"more": {"action": "accept", "content": {"n": 3}}}}
        await fake.result(third, result)
        await call


async def test_a_question_has_its_key_and_who_asks() -> None:
    asked: list[FormQuestion] = []
    async with talking(MODERN, on_elicit=lambda question: asked.append(question)) as (client, fake):
        call = asyncio.create_task(client.call("book"))
        await fake.result(await fake.expect("tools/call"), asks(how=FORM))
        again = await fake.expect("tools/call")
        assert again["params"]["inputResponses"] == {"how": {"action": "cancel"}}
        await fake.result(again, text("never mind"))
        assert await call == "never mind"
    assert (asked[0].key, asked[0].message, asked[0].schema) == ("how", "How many?", SCHEMA)
    assert asked[0].server.startswith("fake")


async def test_all_questions_of_a_round_are_answered_at_once() -> None:
    together = asyncio.Barrier(2)

    async def fill_in(question: FormQuestion) -> Any:
        async with asyncio.timeout(5):
            await together.wait()
        return True

    async with talking(MODERN, on_elicit=fill_in) as (client, fake):
        call = asyncio.create_task(client.call("book"))
        await fake.result(await fake.expect("tools/call"), asks(one=FORM, two=FORM))
        again = await fake.expect("tools/call")
        assert list(again["params"]["inputResponses"]) == ["one", "two"]
        await fake.result(again, text("done"))
        await call


async def test_functions_for_methods_answer_too() -> None:
    handlers = {"roots/list": lambda params: {"roots": [{"uri": "file:///x"}]}}
    declared = types.ClientCapabilities(roots=types.RootsCapability())
    async with talking(MODERN, handlers=handlers, capabilities=declared) as (client, fake):
        call = asyncio.create_task(client.call("book"))
        await fake.result(await fake.expect("tools/call"), asks(where=ROOTS))
        again = await fake.expect("tools/call")
        assert again["params"]["inputResponses"] == {"where": {"roots": [{"uri": "file:///x"}]}}
        await fake.result(again, text("done"))
        await call


# --------------------------------------------------------------------------------------------------- a state alone


async def test_a_state_alone_is_sent_back_after_a_pause_that_grows() -> None:
    clock = Clock(frozen=True)
    async with talking(MODERN) as (client, fake):
        call = asyncio.create_task(client.call("book"))
        request = await fake.expect("tools/call")
        for pause in (0.05, 0.1, 0.2):
            await fake.result(request, asks("s"))
            await clock.advance(pause * 0.9)
            assert fake.inbox == []
            await clock.advance(pause * 0.2)
            request = await fake.expect("tools/call")
            assert without_meta(request) == {"name": "book", "requestState": "s"}
        await fake.result(request, text("done"))
        await clock.turn()
        assert await call == "done"


@pytest.mark.parametrize("came", [asks(), {**asks(), "inputRequests": {}}, {**asks(), "requestState": None}])
async def test_neither_a_question_nor_a_state_is_a_violation(came: Any) -> None:
    async with talking(MODERN) as (client, fake):
        with pytest.raises(ProtocolViolation, match="neither says which nor gives a state"):
            await fake.answer(client.call("book"), "tools/call", came)
        await alive(client, fake)


# --------------------------------------------------------------------------------------------------- where it stops


async def test_a_server_that_asks_for_ever_is_stopped_and_the_error_says_what_it_asked() -> None:
    async with talking(MODERN, on_elicit=lambda question: True, max_rounds=2) as (client, fake):
        call = asyncio.create_task(client.call("book"))
        for _ in range(3):
            await fake.result(await fake.expect("tools/call"), asks(how=FORM))
        with pytest.raises(Unanswered, match=r"after 2 rounds .*max_rounds=2.*elicitation/create 'how': How many\?"):
            await call
        await alive(client, fake)


async def test_what_was_not_declared_is_a_violation_that_names_it_and_nobody_is_asked() -> None:
    def never(question: FormQuestion) -> Any:
        raise AssertionError

    async with talking(MODERN, on_elicit=never) as (client, fake):
        with pytest.raises(ProtocolViolation) as caught:
            await fake.answer(client.call("book"), "tools/call", asks(a=FORM, b=PAGE, c=SAMPLE, d=ROOTS))
        said = "must not ask for elicitation/create in URL mode, roots/list, sampling/createMessage"
        assert said in str(caught.value)
        assert "tools/call of 'book'" in str(caught.value)
        await alive(client, fake)


async def test_what_was_declared_without_anybody_to_answer_says_what_to_do() -> None:
    declared = types.ClientCapabilities(elicitation=types.ElicitationCapability())
    async with talking(MODERN, capabilities=declared) as (client, fake):
        with pytest.raises(ConfigError, match=r"Client\(\.\.\., on_elicit=.*rounds=False"):
            await fake.answer(client.call("book"), "tools/call", asks(how=FORM))


BAD_SCHEMA = {"type": "object", "properties": {"n": {"type": "odd"}}}
BAD: dict[str, Any] = {
    "a method that is no question": {"method": "tools/list"},
    "a schema that is none": {**FORM, "params": {"message": "?", "requestedSchema": BAD_SCHEMA}},
    "tools that were not declared": {**SAMPLE, "params": {**SAMPLE["params"], "toolChoice": {"mode": "auto"}}},
}


@pytest.mark.parametrize("question", BAD.values(), ids=BAD)
async def test_a_question_that_breaks_a_rule_costs_only_its_call(question: Any) -> None:
    async with talking(MODERN, on_elicit=lambda q: True, on_sample=lambda q: "x") as (client, fake):
        with pytest.raises(ProtocolViolation):
            await fake.answer(client.call("book"), "tools/call", asks(q=question))
        await alive(client, fake)


def fails(question: Any) -> Any:
    raise ZeroDivisionError("oh")


async def test_a_function_that_fails_is_told_to_the_caller_with_the_question_and_the_cause() -> None:
    cancelled = asyncio.Event()

    async def waits(question: Any) -> Any:
        try:
            await asyncio.sleep(1000)
        finally:
            cancelled.set()

    async with talking(MODERN, on_elicit=fails, on_sample=waits) as (client, fake):
        with pytest.raises(
            Unanswered, match=r"fails did not answer elicitation/create 'How many\?' \(of 'book'\): .*oh"
        ) as caught:
            await fake.answer(client.call("book"), "tools/call", asks(what=SAMPLE, how=FORM))
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
        assert cancelled.is_set()
        await alive(client, fake)


@pytest.mark.parametrize(
    ("options", "question", "words"),
    [
        ({"on_elicit": lambda question: {"n": "x"}}, FORM, "as the form wants it: n"),
        ({"on_sample": lambda question: None}, SAMPLE, "the user declined; 2026-07-28 has no answer for that"),
        ({"on_sample": lambda question: 7}, SAMPLE, "returned no message"),
        ({"roots": lambda: "http://x"}, ROOTS, "must be a file:// URI"),
    ],
)
async def test_an_answer_that_cannot_be_sent_is_told_to_the_caller(options: Any, question: Any, words: str) -> None:
    async with talking(MODERN, **options) as (client, fake):
        with pytest.raises(Unanswered, match=words):
            await fake.answer(client.call("book"), "tools/call", asks(q=question))
        await alive(client, fake)


async def test_a_caller_that_gives_up_while_its_user_thinks_ends_the_thinking() -> None:
    thinking, ended = asyncio.Event(), asyncio.Event()

    async def think(question: Any) -> Any:
        thinking.set()
        try:
            await asyncio.sleep(1000)
        finally:
            ended.set()

    async with talking(MODERN, on_elicit=think) as (client, fake):
        call = asyncio.create_task(client.call("book"))
        await fake.result(await fake.expect("tools/call"), asks(how=FORM))
        await thinking.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert ended.is_set()
        await alive(client, fake)


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_closing_the_client_ends_the_thinking_and_the_call(revision: str) -> None:
    thinking, ended = asyncio.Event(), asyncio.Event()

    async def think(question: Any) -> Any:
        thinking.set()
        try:
            await asyncio.sleep(1000)
        finally:
            ended.set()

    async with talking(revision, on_elicit=think) as (client, fake):
        call = asyncio.create_task(client.call("book"))
        asked = await fake.expect("tools/call")
        if revision == MODERN:
            await fake.result(asked, asks(how=FORM))
        else:
            await fake.send({"jsonrpc": "2.0", "id": 1, **FORM})
        await thinking.wait()
        await client.close()
        with pytest.raises(ConnectionLost, match="was closed"):
            await call
        await ended.wait()


async def test_who_is_asked_may_close_the_client() -> None:
    closed: list[bool] = []

    async def leave(question: Any) -> Any:
        await clients[0].close()
        closed.append(not clients[0].connected)
        return {"n": 1}

    clients: list[Any] = []
    async with talking(MODERN, on_elicit=leave) as (client, fake):
        clients.append(client)
        call = asyncio.create_task(client.call("book"))
        await fake.result(await fake.expect("tools/call"), asks(how=FORM))
        with pytest.raises(ConnectionLost, match="was closed"):
            await call
    assert closed == [True]


# --------------------------------------------------------------------------------------------------- time and progress


async def test_the_time_in_which_the_user_thinks_does_not_count() -> None:
    clock = Clock()
    thought = asyncio.Event()

    async def think(question: Any) -> Any:
        await thought.wait()
        return True

    async with talking(MODERN, on_elicit=think) as (client, fake):
        call = asyncio.create_task(client.call_tool("book", timeout=60, max_timeout=60))
        request = await fake.expect("tools/call")
        await clock.advance(50)
        await fake.result(request, asks(how=FORM))
        await clock.advance(1000)
        thought.set()
        await fake.expect("tools/call")
        await clock.advance(50)
        assert not call.done()
        await clock.advance(11)
        with pytest.raises(RequestTimeout, match="within 60 s"):
            await call


async def test_each_round_has_progress_of_its_own() -> None:
    told: list[float] = []
    async with talking(MODERN, on_elicit=lambda question: True) as (client, fake):
        call = asyncio.create_task(client.call("book", on_progress=lambda done, *rest: told.append(done)))
        tokens: list[Any] = []
        for step in (1, 2):
            request = await fake.expect("tools/call")
            tokens.append(request["params"]["_meta"]["progressToken"])
            await fake.progress(request, step)
            await fake.result(request, asks(how=FORM) if step == 1 else text("done"))
        assert await call == "done"
        assert told == [1, 2]
        assert tokens[0] != tokens[1]


# --------------------------------------------------------------------------------------------------- by hand


@pytest.mark.parametrize("method", CALLS)
async def test_questions_can_be_had_and_answered_by_hand(method: str) -> None:
    ask, params, result = CALLS[method]
    declared = types.ClientCapabilities(elicitation=types.ElicitationCapability(), roots=types.RootsCapability())
    async with talking(MODERN, capabilities=declared) as (client, fake):
        came = await fake.answer(ask(client, rounds=False), method, asks("s", how=FORM, where=ROOTS))
        assert isinstance(came, types.InputRequiredResult)
        assert came.request_state == "s"
        answers = {"how": types.ElicitResult("accept", {"n": 1}), "where": {"roots": []}}
        call = asyncio.create_task(ask(client, rounds=False, input_responses=answers, request_state=came.request_state))
        request = await fake.expect(method)
        assert without_meta(request) == {
            **params,
            "inputResponses": {"how": {"action": "accept", "content": {"n": 1}}, "where": {"roots": []}},
            "requestState": "s",
        }
        await fake.result(request, result)
        assert not isinstance(await call, types.InputRequiredResult)


@pytest.mark.parametrize("revision", HANDSHAKE[-1:])
async def test_answers_by_hand_do_not_exist_before_2026_07_28(revision: str) -> None:
    async with talking(revision) as (client, fake):
        with pytest.raises(ConfigError, match="do not exist in 2025-11-25"):
            await client.call_tool("book", request_state="s")
        await alive(client, fake)


# --------------------------------------------------------------------------------------------------- pages first


def needs(*ids: str) -> dict[str, Any]:
    pages = [{"mode": "url", "message": "Sign", "url": f"https://example.org/{i}", "elicitationId": i} for i in ids]
    return {"elicitations": pages}


async def refused(fake: Any, data: Any) -> None:
    await fake.error(await fake.expect("tools/call"), -32042, "sign in first", data)


async def test_a_call_is_sent_again_once_every_page_has_been_dealt_with() -> None:
    asked: list[UrlQuestion] = []
    ready = asyncio.Event()

    def consent(question: UrlQuestion) -> bool:
        asked.append(question)
        if len(asked) == 2:
            ready.set()
        return True

    async with talking(on_elicit_url=consent) as (client, fake):
        call = asyncio.create_task(client.call("book", {"hotel": "Ritz"}))
        await refused(fake, needs("a", "b"))
        await ready.wait()
        for id_ in ("unknown", "b", "a"):
            assert fake.inbox == []
            await fake.notify("notifications/elicitation/complete", {"elicitationId": id_})
        again = await fake.expect("tools/call")
        assert again["params"] == {"name": "book", "arguments": {"hotel": "Ritz"}}
        await fake.result(again, text("booked"))
        assert await call == "booked"
        assert {(page.url, page.elicitation_id, page.needed) for page in asked} == {
            ("https://example.org/a", "a", True),
            ("https://example.org/b", "b", True),
        }
        await fake.notify("notifications/elicitation/complete", {"elicitationId": "a"})
        await alive(client, fake)


async def test_a_page_may_be_done_before_its_user_says_so() -> None:
    told, go_on = asyncio.Event(), asyncio.Event()

    async def consent(question: UrlQuestion) -> bool:
        told.set()
        await go_on.wait()
        return True

    async with talking(on_elicit_url=consent) as (client, fake):
        call = asyncio.create_task(client.call("book"))
        await refused(fake, needs("a"))
        await told.wait()
        await fake.notify("notifications/elicitation/complete", {"elicitationId": "a"})
        assert await fake.ask(1, "ping")  # so that it has been heard
        go_on.set()
        await fake.result(await fake.expect("tools/call"), text("booked"))
        assert await call == "booked"


async def test_two_calls_may_wait_for_one_page_which_is_named_once_for_each() -> None:
    asked: list[UrlQuestion] = []

    def consent(question: UrlQuestion) -> bool:
        asked.append(question)
        return True

    async with talking(on_elicit_url=consent) as (client, fake):
        calls = [asyncio.create_task(client.call("book")) for _ in range(2)]
        for _ in calls:
            await refused(fake, {"elicitations": needs("a")["elicitations"] * 2})
        async with asyncio.timeout(5):
            while len(asked) < 2:
                await asyncio.sleep(0)
        calls[0].cancel()
        await asyncio.wait(calls[:1])
        await fake.notify("notifications/elicitation/complete", {"elicitationId": "a"})
        await fake.result(await fake.expect("tools/call"), text("booked"))
        assert await calls[1] == "booked"
        assert len(asked) == 2


async def test_nobody_waits_for_a_page_that_its_user_says_is_done() -> None:
    async with talking(on_elicit_url=lambda question: Reply.DONE) as (client, fake):
        call = asyncio.create_task(client.call("book"))
        await refused(fake, needs("a", "b"))
        await fake.result(await fake.expect("tools/call"), text("booked"))
        assert await call == "booked"


@pytest.mark.parametrize("answer", [False, None])
async def test_without_consent_the_error_is_the_servers(answer: Any) -> None:
    async with talking(on_elicit_url=lambda question: answer) as (client, fake):
        call = asyncio.create_task(client.call("book"))
        await refused(fake, needs("a"))
        with pytest.raises(UrlElicitationNeeded):
            await call
        await alive(client, fake)


@pytest.mark.parametrize(
    ("revision", "options", "data"),
    [
        ("2025-11-25", {}, needs("a")),
        ("2025-11-25", {"on_elicit_url": fails}, {"elicitations": [{"message": "?"}]}),
        ("2025-11-25", {"on_elicit_url": fails}, None),
        ("2025-11-25", {"on_elicit_url": fails}, {"elicitations": [{"url": "file:///x", "elicitationId": "a"}]}),
        ("2025-06-18", {"on_elicit_url": fails}, needs("a")),
        (MODERN, {"on_elicit_url": fails}, needs("a")),
    ],
)
async def test_where_nobody_can_be_asked_the_error_has_the_pages(revision: str, options: Any, data: Any) -> None:
    async with talking(revision, **options) as (client, fake):
        call = asyncio.create_task(client.call("book"))
        await refused(fake, data)
        with pytest.raises(UrlElicitationNeeded) as caught:
            await call
        assert caught.value.elicitations == ([] if data is None else data["elicitations"])


async def test_pages_that_are_never_enough_stop_the_call() -> None:
    async with talking(on_elicit_url=lambda question: Reply.DONE, max_rounds=1) as (client, fake):
        call = asyncio.create_task(client.call("book"))
        for _ in range(2):
            await refused(fake, needs("a"))
        with pytest.raises(Unanswered, match=r"after 1 rounds.*sign in first"):
            await call


async def test_a_page_that_is_never_done_ends_the_wait() -> None:
    clock = Clock()
    async with talking(on_elicit_url=lambda question: True, max_timeout=100) as (client, fake):
        call = asyncio.create_task(client.call("book"))
        await refused(fake, needs("a"))
        await clock.advance(99)
        assert not call.done()
        await clock.advance(2)
        with pytest.raises(Unanswered, match=r"within 100 s.*Reply\.DONE"):
            await call


async def test_by_hand_a_page_is_an_error() -> None:
    async with talking(on_elicit_url=fails) as (client, fake):
        call = asyncio.create_task(client.call_tool("book", rounds=False))
        await refused(fake, needs("a"))
        with pytest.raises(UrlElicitationNeeded):
            await call
