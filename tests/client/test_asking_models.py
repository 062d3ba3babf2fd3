"""Models behind HTTP endpoints: what a stand-in on this machine is sent, and what its answers become."""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from modelwire import ConfigError, Reply, SampleQuestion, Unanswered, answers, types
from modelwire.client import asking_models
from tests.fake_server import talking

KEY = "sk-very-secret"


class StandIn:
    """An endpoint that answers as a test says."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.headers: list[Any] = []
        self.bodies: list[Any] = []
        self.status = 200
        self.reply: Any = {}
        self.extra: dict[str, str] = {}
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                stand_in.paths.append(self.path)
                stand_in.headers.append(self.headers)
                stand_in.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                body = stand_in.reply if isinstance(stand_in.reply, bytes) else json.dumps(stand_in.reply).encode()
                self.send_response(stand_in.status)
                for name, value in {"Content-Length": str(len(body)), **stand_in.extra}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    found = StandIn()
    thread = threading.Thread(target=found.server.serve_forever, args=(0.01,))
    thread.start()
    yield found
    found.server.shutdown()
    thread.join()
    found.server.server_close()


def question(*messages: types.SamplingMessage, **params: Any) -> SampleQuestion:
    said = list(messages) or [types.SamplingMessage("user", types.TextContent("6 times 7?"))]
    return SampleQuestion(types.CreateMessageRequestParams(said, 50, **params), "hotel")


def says(role: Any, *content: Any) -> types.SamplingMessage:
    return types.SamplingMessage(role, list(content) if len(content) != 1 else content[0])


TOOL = types.Tool("add", {"type": "object"}, description="Adds.")
USE = types.ToolUseContent("u1", "add", {"a": 1})
RESULT = types.ToolResultContent("u1", [types.TextContent("3"), types.ResourceLink("a:b", "x")], is_error=True)
WITH_TOOLS = question(
    says("user", types.TextContent("1 + 2?"), types.ImageContent("aGk=", "image/png")),
    says("assistant", types.TextContent("Let me see."), USE),
    says("user", RESULT),
    system_prompt="Be brief.",
    temperature=0.5,
    stop_sequences=["END"],
    tools=[TOOL],
    tool_choice=types.ToolChoice(mode="required"),
)


# --------------------------------------------------------------------------------------------------- chat completions


def chat(content: str | None = "42", finish: str = "stop", **message: Any) -> dict[str, Any]:
    choice = {"message": {"role": "assistant", "content": content, **message}, "finish_reason": finish}
    return {"model": "small-1", "choices": [choice]}


async def test_chat_completions_get_a_question_and_give_a_message(stand_in: StandIn) -> None:
    stand_in.reply = chat()
    model = answers.openai("small", base_url=f"{stand_in.url}/v1/", api_key=KEY)
    assert await model(question()) == types.CreateMessageResult(
        "assistant", types.TextContent("42"), "small-1", stop_reason="endTurn"
    )
    assert stand_in.paths == ["/v1/chat/completions"]
    assert stand_in.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert stand_in.bodies == [
        {"model": "small", "messages": [{"role": "user", "content": "6 times 7?"}], "max_tokens": 50}
    ]


async def test_chat_completions_get_tools_and_pictures(stand_in: StandIn) -> None:
    call = {"id": "u2", "type": "function", "function": {"name": "add", "arguments": '{"a": 3}'}}
    stand_in.reply = chat(None, "tool_calls", tool_calls=[call])
    answer = await answers.openai("small", base_url=stand_in.url)(WITH_TOOLS)
    assert answer is not None
    assert (answer.content, answer.stop_reason) == (types.ToolUseContent("u2", "add", {"a": 3}), "toolUse")
    [body] = stand_in.bodies
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    function = {"name": "add", "arguments": '{"a":1}'}
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "1 + 2?"}, picture]},
        {
            "role": "assistant",
            "content": "Let me see.",
            "tool_calls": [{"id": "u1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "u1", "content": "3\n[resource_link]"},
    ]
    described = {"name": "add", "description": "Adds.", "parameters": {"type": "object"}}
    assert body["tools"] == [{"type": "function", "function": described}]
    assert (body["tool_choice"], body["temperature"], body["stop"]) == ("required", 0.5, ["END"])
    assert "Authorization" not in stand_in.headers[0]


async def test_sounds_go_to_chat_completions_only(stand_in: StandIn) -> None:
    stand_in.reply = chat()
    heard = question(says("user", types.AudioContent("aGk=", "audio/mpeg")))
    await answers.openai("small", base_url=stand_in.url)(heard)
    [part] = stand_in.bodies[0]["messages"][0]["content"]
    assert part == {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "mp3"}}
    with pytest.raises(Unanswered, match="takes no content of the type 'audio'"):
        await answers.anthropic("small", base_url=stand_in.url)(heard)


# --------------------------------------------------------------------------------------------------- messages


async def test_messages_get_a_question_and_give_a_message(stand_in: StandIn) -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "I add."},
        {"type": "tool_use", "id": "u2", "name": "add", "input": {"a": 3}},
    ]
    stand_in.reply = {"model": "wise-1", "content": blocks, "stop_reason": "tool_use"}
    answer = await answers.anthropic("wise", base_url=stand_in.url, api_key=KEY)(WITH_TOOLS)
    assert answer == types.CreateMessageResult(
        "assistant",
        [types.TextContent("I add."), types.ToolUseContent("u2", "add", {"a": 3})],
        "wise-1",
        stop_reason="toolUse",
    )
    assert stand_in.paths == ["/v1/messages"]
    assert (stand_in.headers[0]["x-api-key"], stand_in.headers[0]["anthropic-version"]) == (KEY, "2023-06-01")
    source = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    use = {"type": "tool_use", "id": "u1", "name": "add", "input": {"a": 1}}
    result = {"type": "tool_result", "tool_use_id": "u1", "is_error": True}
    assert stand_in.bodies == [
        {
            "model": "wise",
            "max_tokens": 50,
            "system": "Be brief.",
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "1 + 2?"}, {"type": "image", "source": source}]},
                {"role": "assistant", "content": [{"type": "text", "text": "Let me see."}, use]},
                {"role": "user", "content": [{**result, "content": [{"type": "text", "text": "3\n[resource_link]"}]}]},
            ],
            "temperature": 0.5,
            "stop_sequences": ["END"],
            "tools": [{"name": "add", "description": "Adds.", "input_schema": {"type": "object"}}],
            "tool_choice": {"type": "any"},
        }
    ]


@pytest.mark.parametrize(
    ("stop", "reason"),
    [("end_turn", "endTurn"), ("max_tokens", "maxTokens"), ("stop_sequence", "stopSequence"), ("refusal", "refusal")],
)
async def test_the_reason_to_stop_is_the_protocols(stop: str, reason: str, stand_in: StandIn) -> None:
    stand_in.reply = {"content": [], "stop_reason": stop}
    answer = await answers.anthropic("wise", base_url=stand_in.url)(question())
    assert answer == types.CreateMessageResult("assistant", types.TextContent(""), "wise", stop_reason=reason)


# --------------------------------------------------------------------------------------------------- both


async def test_the_model_is_chosen_the_length_bounded_and_more_said(stand_in: StandIn) -> None:
    stand_in.reply = chat()
    hints = types.ModelPreferences(hints=[types.ModelHint(name="wise")])
    model = answers.openai(lambda asked: asked.model_hints[0], base_url=stand_in.url, max_tokens=7)
    await model(question(model_preferences=hints))
    extra = {"max_completion_tokens": 9, "seed": 1}
    await answers.openai("m", base_url=stand_in.url, extra=extra)(question())
    first, second = stand_in.bodies
    assert (first["model"], first["max_tokens"]) == ("wise", 7)
    assert {key: second[key] for key in second if key != "messages"} == {"model": "m", **extra}


async def test_nothing_is_sent_unless_it_is_approved(stand_in: StandIn) -> None:
    stand_in.reply = chat()
    asked: list[SampleQuestion] = []
    for approval in (False, None, Reply.CANCEL, "yes", 1, True):

        async def approve(question: SampleQuestion, approval: Any = approval) -> Any:
            asked.append(question)
            return approval

        told = await answers.openai("m", base_url=stand_in.url, approve=approve)(question())
        assert (told is None) is (approval is not True)
    assert len(asked) == 6
    assert len(stand_in.bodies) == 1


BAD: list[tuple[int, Any, str]] = [
    (401, {"error": f"wrong key {KEY}"}, r"answered 401: .*wrong key \*\*\*"),
    (500, b"oops", "answered 500: oops"),
    (200, b"<html>", "no JSON"),
    (200, {"choices": []}, "no message"),
    (200, {"content": 7}, "no message"),
    (200, [], "no message"),
]


@pytest.mark.parametrize(("status", "reply", "words"), BAD)
@pytest.mark.parametrize("make", [answers.openai, answers.anthropic])
async def test_what_goes_wrong_is_said_without_the_key(
    make: Any, status: int, reply: Any, words: str, stand_in: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    stand_in.status, stand_in.reply = status, reply
    model = make("m", base_url=stand_in.url, api_key=KEY)
    with pytest.raises(Unanswered, match=words) as caught:
        await model(question())
    assert KEY not in f"{caught.value}{caplog.text}{model!r}"


async def test_a_redirect_takes_the_key_nowhere(stand_in: StandIn) -> None:
    stand_in.status, stand_in.extra = 302, {"Location": f"{stand_in.url}/elsewhere"}
    with pytest.raises(Unanswered, match="answered 302"):
        await answers.openai("m", base_url=stand_in.url, api_key=KEY)(question())
    assert stand_in.paths == ["/chat/completions"]


async def test_an_answer_without_end_is_not_read(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking_models, "MAX_ANSWER", 100)
    stand_in.reply = b"x" * 101
    with pytest.raises(Unanswered, match="more than 100 bytes"):
        await answers.openai("m", base_url=stand_in.url)(question())


async def test_nobody_there_is_said() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        with pytest.raises(Unanswered, match="did not answer"):
            await answers.openai("m", base_url=f"http://127.0.0.1:{taken.getsockname()[1]}", timeout=5)(question())


@pytest.mark.parametrize(
    ("make", "variable", "header", "value"),
    [
        (answers.openai, "OPENAI_API_KEY", "Authorization", f"Bearer {KEY}"),
        (answers.anthropic, "ANTHROPIC_API_KEY", "x-api-key", KEY),
    ],
)
def test_the_key_of_the_environment_is_for_its_own_endpoint(
    make: Any, variable: str, header: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ConfigError, match=f"pass api_key=, or set {variable}"):
        make("m")
    monkeypatch.setenv(variable, KEY)
    model = make("m")
    assert model.headers(model._key)[header] == value
    assert make("m", base_url="http://localhost:1")._key is None


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://x", "localhost:8000"])
def test_a_base_url_is_one_of_http(url: str) -> None:
    with pytest.raises(ConfigError, match="base_url must begin with"):
        answers.openai("m", base_url=url)


async def test_a_server_gets_what_the_model_wrote(stand_in: StandIn) -> None:
    stand_in.reply = chat()
    said = {"messages": [{"role": "user", "content": {"type": "text", "text": "?"}}], "maxTokens": 5}
    async with talking(on_sample=answers.openai("m", base_url=stand_in.url)) as (_, fake):
        answer = await fake.ask(1, "sampling/createMessage", said)
        assert answer["result"]["content"]["text"] == "42"
        stand_in.status = 503
        assert (await fake.ask(2, "sampling/createMessage", said))["error"]["code"] == -32603
