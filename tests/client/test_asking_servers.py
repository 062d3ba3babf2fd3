"""A client that answers, and a server of ours that asks: the same client, whatever the revision."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from modelwire import Client, Context, FormQuestion, Group, SampleQuestion, Server
from modelwire.sync import Client as SyncClient
from modelwire.sync import Group as SyncGroup
from tests.fake_server import MODERN, REVISIONS

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
MESSAGES = [{"role": "user", "content": {"type": "text", "text": "a wish"}}]
QUESTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "where": ("roots/list", {}),
    "wish": ("sampling/createMessage", {"messages": MESSAGES, "maxTokens": 9}),
    "guests": ("elicitation/create", {"message": "How many?", "requestedSchema": SCHEMA}),
}


@pytest.fixture
def hotel() -> Server:
    """A server whose tool asks for everything that the revision has, and says what it was answered."""
    server = Server("hotel")

    @server.tool
    def book() -> str:
        raise AssertionError

    @server.method("tools/call")
    async def call(params: dict[str, Any], ctx: Context) -> Any:
        asked = {key: one for key, one in QUESTIONS.items() if key != "guests" or ctx.peer.capabilities.elicitation}
        if ctx.peer.revision.server_requests:
            answers = {key: (await ctx.request(*question)).raw for key, question in asked.items()}
        elif (answers := params.get("inputResponses")) is None:
            inputs = {key: {"method": method, "params": given} for key, (method, given) in asked.items()}
            return {"resultType": "input_required", "inputRequests": inputs, "requestState": "s"}
        return {"content": [{"type": "text", "text": json.dumps(answers)}]}

    return server


def fill_in(question: FormQuestion) -> dict[str, Any]:
    assert question.server == "the server 'hotel'"
    return {"n": 2}


def wish(question: SampleQuestion) -> str:
    return f"{question.messages[0].content.text}: peace"  # type: ignore[union-attr]


ANSWERING: dict[str, Any] = {"on_elicit": fill_in, "on_sample": wish, "roots": ["/home/ada"]}


def check(said: str, revision: str) -> None:
    answers = json.loads(said)
    assert answers["where"]["roots"] == [{"uri": "file:///home/ada", "name": "ada"}]
    assert answers["wish"]["content"]["text"] == "a wish: peace"
    assert answers.get("guests", {}).get("content") == (None if revision in REVISIONS[:2] else {"n": 2})


@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_same_client_answers_on_every_revision(revision: str, hotel: Server) -> None:
    async with Client(hotel, revision=revision, **ANSWERING) as client:
        check(await client.call("book"), revision)


@pytest.mark.parametrize("revision", [REVISIONS[-2], MODERN])
async def test_the_servers_of_a_group_are_answered_by_their_clients(revision: str, hotel: Server) -> None:
    group = Group({"hotel": hotel}, client=lambda name, target: Client(target, revision=revision, **ANSWERING))
    async with group:
        check(await group.call("hotel__book"), revision)


@pytest.mark.parametrize("revision", [REVISIONS[-2], MODERN])
def test_without_await_functions_answer_in_worker_threads(revision: str, hotel: Server) -> None:
    threads: set[str] = set()

    def elicit(question: FormQuestion) -> dict[str, Any]:
        threads.add(threading.current_thread().name)
        return fill_in(question)

    def roots() -> list[str]:
        threads.add(threading.current_thread().name)
        return ["/home/ada"]

    async def sample(question: SampleQuestion) -> str:
        assert threading.current_thread().name == "modelwire.sync"
        return wish(question)

    with SyncClient(hotel, revision=revision, on_elicit=elicit, on_sample=sample, roots=roots) as client:
        check(client.call("book"), revision)
        client.roots_changed()
        assert "modelwire.sync" not in threads
    make: Any = lambda name, target: SyncClient(target, revision=revision, **ANSWERING)  # noqa: E731
    with SyncGroup({"hotel": hotel}, client=make) as group:
        check(group.call("hotel__book"), revision)
