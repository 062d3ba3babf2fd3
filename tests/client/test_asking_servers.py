"""A client that answers, and a server of ours that asks: the same client, whatever the revision."""

from __future__ import annotations

import asyncio
import enum
import json
import threading
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from modelwire import (
    Client,
    Context,
    FormQuestion,
    Group,
    Reply,
    SampleQuestion,
    Server,
    ToolError,
    Unanswered,
    UrlElicitationRequired,
    UrlQuestion,
    types,
)
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

    class Model:
        async def __call__(self, question: SampleQuestion) -> str:
            return await sample(question)

    def fails(question: FormQuestion) -> Any:
        raise ZeroDivisionError

    answering: Any = {"on_elicit": fails, "on_sample": Model(), "roots": ["/home/ada"]}
    failure = pytest.raises(Unanswered, match=r"fails did not answer elicitation/create 'How many\?' \(of 'book'\)")
    with SyncClient(hotel, revision=MODERN, **answering) as client, failure:
        client.call("book")
    make: Any = lambda name, target: SyncClient(target, revision=revision, **ANSWERING)  # noqa: E731
    with SyncGroup({"hotel": hotel}, client=make) as group:
        check(group.call("hotel__book"), revision)


# --------------------------------------------------------------------------------------------------- straight-line code


class Diet(enum.Enum):
    ANY = "any"
    VEGAN = "vegan"


@dataclass
class Guests:
    count: int
    diet: Diet = Diet.ANY
    extras: list[Literal["tea", "cake"]] = field(default_factory=list)


@pytest.fixture
def inn() -> Server:
    """A server that asks in straight-line code, and counts what it does before it asks."""
    server = Server("inn")
    begun: list[str] = []
    signed: set[str] = set()

    @server.tool
    async def book(ctx: Context) -> str:
        begun.append("book")
        guests, wish = await asyncio.gather(
            ctx.elicit("Who comes?", Guests, key="guests"), ctx.sample("A wish?", max_tokens=9, key="wish")
        )
        [root] = await ctx.roots()
        return f"{guests.count} {guests.diet.value} {guests.extras} {wish.content.text} {root.uri} {len(begun)}"

    @server.tool
    async def sign(ctx: Context) -> str:
        return await ctx.elicit_url("Sign", "https://example.org/sign", elicitation_id="p1")

    @server.tool
    async def visit(ctx: Context) -> str:
        signed.add("page")
        ctx.elicitation_complete("page")
        return "visited"

    @server.tool
    async def enter() -> str:
        if "page" not in signed:
            page = types.ElicitRequestURLParams("Sign", "https://example.org/sign", elicitation_id="page")
            raise UrlElicitationRequired([page])
        return "welcome"

    return server


@pytest.mark.parametrize("revision", REVISIONS[-2:])
async def test_straight_line_code_is_answered_and_what_it_does_is_done_once(revision: str, inn: Server) -> None:
    forms: list[FormQuestion] = []

    async def elicit(question: FormQuestion) -> Guests:
        forms.append(question)
        return Guests(2, Diet.VEGAN, ["cake"])

    async with Client(inn, revision=revision, on_elicit=elicit, on_sample=wish, roots=["/home/ada"]) as client:
        assert await client.call("book") == "2 vegan ['cake'] A wish?: peace file:///home/ada 1"
    [asked] = forms
    assert {name: one.kind for name, one in asked.fields.items()} == {
        "count": "integer", "diet": "choice", "extras": "choices",
    }  # fmt: skip
    assert asked.key == (None if revision != MODERN else "guests")


@pytest.mark.parametrize("revision", REVISIONS[-2:])
@pytest.mark.parametrize("answer", [False, None])
async def test_who_does_not_answer_has_the_tool_fail_in_words(answer: Any, revision: str, inn: Server) -> None:
    settings: dict[str, Any] = {"on_elicit": lambda question: answer, "on_sample": wish, "roots": ["/a"]}
    async with Client(inn, revision=revision, **settings) as client:
        with pytest.raises(ToolError):
            await client.call("book")


@pytest.mark.parametrize("revision", REVISIONS[-2:])
async def test_a_page_is_consented_to_on_both_eras(revision: str, inn: Server) -> None:
    async with Client(inn, revision=revision, on_elicit_url=lambda question: True) as client:
        assert await client.call("sign") == "p1"


async def test_a_page_that_is_needed_first_is_waited_for(inn: Server) -> None:
    asked: list[UrlQuestion] = []

    async def consent(question: UrlQuestion) -> bool:
        asked.append(question)
        return True

    async with Client(inn, revision="2025-11-25", on_elicit_url=consent) as client:
        entering = asyncio.create_task(client.call("enter"))
        async with asyncio.timeout(5):
            while not asked:
                await asyncio.sleep(0)
        assert await client.call("visit") == "visited"
        assert await entering == "welcome"
    async with Client(inn, revision="2025-11-25", on_elicit_url=lambda question: Reply.DONE) as client:
        assert await client.call("enter") == "welcome"
