"""A client that answers servers: what its functions get, what they may return, and what is sent of it.

On handshake revisions, where questions are requests; `test_rounds` has those inside results.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from modelwire import Client, ConfigError, FormQuestion, Reply, RpcError, SampleQuestion, UrlQuestion, types
from modelwire.client.answering import Answering
from tests.fake_server import HANDSHAKE, MODERN, REVISIONS, alive, talking

FORM = {
    "message": "How many?",
    "requestedSchema": {
        "type": "object",
        "properties": {"count": {"type": "integer", "minimum": 1}, "tea": {"type": "boolean", "default": True}},
        "required": ["count"],
    },
}
PAGE = {"mode": "url", "message": "Sign in", "url": "https://example.org/sign", "elicitationId": "e1"}
SAMPLE = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "6 times 7?"}}],
    "maxTokens": 5,
    "systemPrompt": "Be brief.",
    "modelPreferences": {"hints": [{"name": "small"}]},
}
FORMS = ["2025-06-18", "2025-11-25"]


@dataclass
class Guests:
    count: int
    tea: bool = False
    secret: str = "mine"


def sampling(**options: Any) -> dict[str, Any]:
    return {"on_sample": lambda question: "42", **options}


# --------------------------------------------------------------------------------------------------- forms


@pytest.mark.parametrize("revision", FORMS)
async def test_a_form_is_filled_in(revision: str) -> None:
    asked: list[FormQuestion] = []

    def fill_in(question: FormQuestion) -> dict[str, Any]:
        asked.append(question)
        return {"count": 2}

    async with talking(revision, on_elicit=fill_in) as (_, fake):
        answer = await fake.ask(1, "elicitation/create", FORM)
        assert answer["result"] == {"action": "accept", "content": {"count": 2, "tea": True}}
        [question] = asked
        assert (question.message, question.schema) == ("How many?", FORM["requestedSchema"])
        assert question.server.startswith("fake")
        assert question.fields["count"].required
        assert question.defaults == {"tea": True}
        assert question.problems({"count": 0})
        assert question.key is None


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (Guests(3), {"action": "accept", "content": {"count": 3, "tea": False}}),
        (
            types.ElicitResult("accept", {"count": 3, "tea": False}),
            {"action": "accept", "content": {"count": 3, "tea": False}},
        ),
        (types.ElicitResult("cancel"), {"action": "cancel"}),
        (False, {"action": "decline"}),
        (None, {"action": "cancel"}),
        (Reply.DECLINE, {"action": "decline"}),
        (Reply.CANCEL, {"action": "cancel"}),
    ],
)
async def test_what_a_function_returns_for_a_form_is_what_the_user_did(answer: Any, result: Any) -> None:
    async with talking(on_elicit=lambda question: answer) as (_, fake):
        assert (await fake.ask(1, "elicitation/create", FORM))["result"] == result


@pytest.mark.parametrize("answer", [True, Reply.ACCEPT, types.ElicitResult("accept")])
async def test_a_form_may_be_accepted_as_it_stands(answer: Any) -> None:
    schema = {"type": "object", "properties": {"tea": {"type": "boolean", "default": True}}, "required": ["tea"]}
    async with talking(on_elicit=lambda question: answer) as (_, fake):
        got = await fake.ask(1, "elicitation/create", {"message": "Tea?", "requestedSchema": schema})
        assert got["result"] == {"action": "accept", "content": {"tea": True}}
        without = await fake.ask(2, "elicitation/create", FORM)
        assert without["error"]["code"] == -32603  # nothing says how many


@pytest.mark.parametrize("answer", [{"count": 0}, {"count": "2"}, {}, {"count": 2, "coffee": True}, 7])
async def test_what_does_not_fit_is_never_sent_and_told_in_the_log(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with talking(on_elicit=lambda question: answer) as (client, fake):
        got = await fake.ask(1, "elicitation/create", FORM)
        assert got["error"]["code"] == -32603
        assert "did not answer elicitation/create 'How many?': the answer is not as the form wants it" in caplog.text
        await alive(client, fake)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"message": "?"}, "requestedSchema"),
        ({"message": "?", "requestedSchema": {"type": "object", "properties": {"n": {"type": "odd"}}}}, "the form"),
        ({"message": "?", "mode": "fax", "requestedSchema": {"type": "object", "properties": {}}}, "mode"),
    ],
)
async def test_a_form_that_is_none_is_refused_before_anybody_sees_it(params: Any, words: str) -> None:
    def never(question: FormQuestion) -> Any:
        raise AssertionError

    async with talking(on_elicit=never) as (_, fake):
        error = (await fake.ask(1, "elicitation/create", params))["error"]
        assert error["code"] == -32602
        assert words in error["message"]


# --------------------------------------------------------------------------------------------------- pages


@pytest.mark.parametrize(
    ("answer", "action"),
    [
        (True, "accept"),
        (Reply.DONE, "accept"),
        (types.ElicitResult("accept", {"never": "sent"}), "accept"),
        (False, "decline"),
        (None, "cancel"),
    ],
)
async def test_consent_to_open_a_page(answer: Any, action: str) -> None:
    asked: list[UrlQuestion] = []

    async def consent(question: UrlQuestion) -> Any:
        asked.append(question)
        return answer

    async with talking(on_elicit_url=consent) as (_, fake):
        assert (await fake.ask(1, "elicitation/create", PAGE))["result"] == {"action": action}
        assert (asked[0].url, asked[0].elicitation_id, asked[0].needed) == (PAGE["url"], "e1", False)
        assert (asked[0].host, asked[0].warnings) == ("example.org", [])


async def test_what_is_no_web_page_is_refused_before_anybody_sees_it() -> None:
    def never(question: UrlQuestion) -> Any:
        raise AssertionError

    async with talking(on_elicit_url=never) as (_, fake):
        for url in ("file:///etc/passwd", "javascript:alert(1)"):
            assert (await fake.ask(url, "elicitation/create", {**PAGE, "url": url}))["error"]["code"] == -32602


@pytest.mark.parametrize("answer", ["accept", {"ok": True}, 1])
async def test_what_is_no_clear_word_is_no_consent(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    async with talking(on_elicit_url=lambda question: answer) as (_, fake):
        assert (await fake.ask(1, "elicitation/create", PAGE))["error"]["code"] == -32603
        assert "True is consent" in caplog.text


# --------------------------------------------------------------------------------------------------- messages


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_model_writes_a_message(revision: str) -> None:
    asked: list[SampleQuestion] = []

    async def sample(question: SampleQuestion) -> str:
        asked.append(question)
        return "42"

    async with talking(revision, on_sample=sample) as (_, fake):
        assert (await fake.ask(1, "sampling/createMessage", SAMPLE))["result"] == {
            "role": "assistant",
            "content": {"type": "text", "text": "42"},
            "model": "unnamed",
            "stopReason": "endTurn",
        }
    [question] = asked
    assert question.messages == [types.SamplingMessage("user", types.TextContent("6 times 7?"))]
    assert (question.max_tokens, question.system_prompt, question.model_hints) == (5, "Be brief.", ["small"])
    assert (question.tools, question.stop_sequences, question.temperature) == ([], [], None)


@pytest.mark.parametrize("answer", [None, False, Reply.DECLINE])
async def test_a_user_may_reject_a_message(answer: Any) -> None:
    async with talking(on_sample=lambda question: answer) as (_, fake):
        error = (await fake.ask(1, "sampling/createMessage", SAMPLE))["error"]
        assert error == {"code": -1, "message": "User rejected sampling request"}


TOOL = {"name": "add", "inputSchema": {"type": "object"}}
USE = {"role": "assistant", "content": {"type": "tool_use", "id": "1", "name": "add", "input": {}}}


async def test_tools_are_refused_unless_they_were_declared() -> None:
    with_tools = {**SAMPLE, "tools": [TOOL]}
    async with talking(**sampling()) as (_, fake):
        error = (await fake.ask(1, "sampling/createMessage", with_tools))["error"]
        assert (error["code"], "sampling.tools was not declared" in error["message"]) == (-32602, True)
    declared = types.ClientCapabilities(sampling=types.SamplingCapability(tools={}))
    async with talking(**sampling(capabilities=declared)) as (_, fake):
        assert "result" in await fake.ask(1, "sampling/createMessage", with_tools)
        error = (await fake.ask(2, "sampling/createMessage", {**with_tools, "messages": [USE]}))["error"]
        assert (error["code"], "tool result missing" in error["message"]) == (-32602, True)


# --------------------------------------------------------------------------------------------------- roots


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_roots_are_listed_and_their_changes_told(revision: str) -> None:
    places = ["/a"]
    async with talking(revision, roots=lambda: places) as (client, fake):
        assert (await fake.ask(1, "roots/list"))["result"] == {"roots": [{"uri": "file:///a", "name": "a"}]}
        places.append("file:///b")
        await client.roots_changed()
        await fake.expect("notifications/roots/list_changed")
        assert (await fake.ask(2, "roots/list"))["result"]["roots"][1] == {"uri": "file:///b"}


async def test_where_servers_ask_when_they_need_roots_no_change_is_told() -> None:
    async with talking(MODERN, roots=["/a"]) as (client, fake):
        await client.roots_changed()
        await alive(client, fake)
        assert fake.methods[-1] == "tools/call"


async def test_without_roots_there_is_no_change_to_tell() -> None:
    async with talking() as (client, _):
        with pytest.raises(ConfigError, match="roots="):
            await client.roots_changed()


async def test_a_function_that_returns_no_roots_is_told_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with talking(roots=lambda: "https://example.org") as (_, fake):
        assert (await fake.ask(1, "roots/list"))["error"]["code"] == -32603
        assert "must be a file:// URI" in caplog.text


# --------------------------------------------------------------------------------------------------- who may ask what


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_what_was_not_declared_is_a_method_that_is_not_there(revision: str) -> None:
    async with talking(revision) as (client, fake):
        for method, params in [("elicitation/create", FORM), ("sampling/createMessage", SAMPLE), ("roots/list", {})]:
            assert (await fake.ask(method, method, params))["error"]["code"] == -32601
        await alive(client, fake)


@pytest.mark.parametrize(
    ("revision", "options", "params", "code"),
    [
        ("2025-11-25", {"on_elicit": print}, PAGE, -32602),
        ("2025-11-25", {"on_elicit_url": print}, FORM, -32602),
        ("2025-06-18", {"on_elicit": print}, PAGE, -32602),
        ("2025-03-26", {"on_elicit": print}, FORM, -32601),
        ("2025-06-18", {"on_elicit_url": print, "revision": "2025-06-18"}, FORM, -32601),
    ],
)
async def test_a_mode_that_was_not_declared_is_refused(revision: str, options: Any, params: Any, code: int) -> None:
    async with talking(revision, **options) as (_, fake):
        assert (await fake.ask(1, "elicitation/create", params))["error"]["code"] == code


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_client_that_answers_says_so_when_it_opens(revision: str) -> None:
    async with talking(revision, on_sample=print, roots=[]) as (client, fake):
        await alive(client, fake)
        [opening] = fake.frames.received({"method": "server/discover" if revision == MODERN else "initialize"})
        params = opening["params"]
        key = "io.modelcontextprotocol/clientCapabilities"
        said = params["_meta"][key] if revision == MODERN else params["capabilities"]
        assert said == {"sampling": {}, "roots": {} if revision == MODERN else {"listChanged": True}}


def test_two_answers_to_one_question_are_refused() -> None:
    with pytest.raises(ConfigError, match="both answer roots/list"):
        Client(["x"], roots=["/a"], handlers={"roots/list": print})
    with pytest.raises(ConfigError, match="on_sample= is a function"):
        Client(["x"], on_sample="gpt")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="max_rounds"):
        Client(["x"], max_rounds=-1)


# --------------------------------------------------------------------------------------------------- at the same time


async def test_several_questions_are_answered_at_once_and_one_may_be_taken_back() -> None:
    thinking: dict[str, asyncio.Event] = {}
    cancelled: list[str] = []

    async def fill_in(question: FormQuestion) -> Any:
        thought = thinking[question.message] = asyncio.Event()
        try:
            await thought.wait()
        except asyncio.CancelledError:
            cancelled.append(question.message)
            raise
        return {"count": int(question.message)}

    async with talking(on_elicit=fill_in) as (client, fake):
        for n in (1, 2, 3):
            params = {**FORM, "message": str(n)}
            await fake.send({"jsonrpc": "2.0", "id": n, "method": "elicitation/create", "params": params})
        async with asyncio.timeout(5):
            while len(thinking) < 3:
                await asyncio.sleep(0)
        await fake.notify("notifications/cancelled", {"requestId": 2})
        for n in (3, 1):
            thinking[str(n)].set()
            answer = await fake.next()
            assert (answer["id"], answer["result"]["content"]["count"]) == (n, n)
        assert cancelled == ["2"]
        await alive(client, fake)


async def test_a_function_that_fails_is_an_error_answer_and_costs_nothing_else() -> None:
    def fail(question: Any) -> Any:
        raise ZeroDivisionError

    def refuse(question: Any) -> Any:
        raise RpcError(7, "not today")

    async with talking(on_elicit=fail, on_sample=refuse) as (client, fake):
        assert (await fake.ask(1, "elicitation/create", FORM))["error"]["code"] == -32603
        assert (await fake.ask(2, "sampling/createMessage", SAMPLE))["error"] == {"code": 7, "message": "not today"}
        await alive(client, fake)


@pytest.mark.parametrize(
    ("who", "target", "name"),
    [
        (types.Implementation("studio", "1"), "python studio.py", "studio (python studio.py)"),
        (types.Implementation("studio", "1", title="The Studio"), "python studio.py", "The Studio (python studio.py)"),
        (types.Implementation("studio", "1"), "the server 'studio'", "the server 'studio'"),
        (types.Implementation("studio", "1"), "", "studio"),
        (None, "python studio.py", "python studio.py"),
        (None, "", "the server"),
    ],
)
def test_who_asks_is_called_as_it_calls_itself_beside_what_is_connected_to(who: Any, target: str, name: str) -> None:
    answering = Answering()
    answering.target = target
    assert answering.named(who) == name
