"""`Ask`: parameters that the user fills before the function runs."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, Literal

import msgspec
import pytest

from modelwire import Ask, Context, Depends, Server, SignatureError
from tests.server.persons import MODERN, accepting, person
from tests.wire import REVISIONS

eliciting = pytest.mark.parametrize("revision", [name for name in REVISIONS if name >= "2025-06-18"])


@dataclasses.dataclass
class Guests:
    count: int


@eliciting
async def test_a_parameter_is_asked_for_and_is_in_no_schema(revision: str) -> None:
    server = Server("s")

    @server.tool
    def book(hotel: str, guests: Annotated[Guests, Ask("How many guests?")]) -> str:
        return f"{hotel}: {guests.count}"

    async with person(server, revision, accepting({"count": 2})) as user:
        (tool,) = (await user.talk.result("tools/list"))["tools"]
        assert list(tool["inputSchema"]["properties"]) == ["hotel"]
        assert await user.text("book", {"hotel": "Ritz"}) == "Ritz: 2"


@eliciting
async def test_a_question_may_be_made_of_arguments_and_of_what_was_asked_before(revision: str) -> None:
    server = Server("s")
    asked: list[str] = []

    @server.tool
    async def book(
        hotel: str,
        guests: Annotated[Guests, Ask(lambda hotel: f"How many at {hotel}?")],
        beds: Annotated[int, Ask(lambda guests: f"Beds for {guests.count}?")],
        nights: int = 1,
    ) -> str:
        return f"{hotel} {guests.count} {beds} {nights}"

    answers = iter([{"count": 2}, {"beds": 3}])

    def answer(method: str, params: dict[str, Any]) -> Any:
        asked.append(params["message"])
        return {"action": "accept", "content": next(answers)}

    async with person(server, revision, answer) as user:
        assert await user.text("book", {"hotel": "Ritz"}) == "Ritz 2 3 1"
    assert asked == ["How many at Ritz?", "Beds for 2?"]


async def test_one_plain_value_is_a_form_of_one_field_with_its_limits() -> None:
    server = Server("s")
    seen: list[Any] = []

    @server.tool
    def order(
        count: Annotated[int, msgspec.Meta(ge=1, description="How many"), Ask("How many?")],
        size: Annotated[Literal["small", "large"], Ask("What size?")] = "small",
    ) -> str:
        return f"{count} {size}"

    def answer(method: str, params: dict[str, Any]) -> Any:
        seen.append(params["requestedSchema"]["properties"])
        return {"action": "accept", "content": {"count": 2}} if "count" in seen[-1] else {"action": "decline"}

    async with person(server, MODERN, answer) as user:
        assert await user.text("order") == "2 small"
    assert seen[0] == {"count": {"type": "integer", "minimum": 1, "description": "How many"}}
    assert seen[1]["size"]["enum"] == ["small", "large"]


async def test_the_key_is_the_parameter_s_name_so_that_a_fresh_call_may_bring_the_answer() -> None:
    server = Server("s")

    @server.tool
    def book(guests: Annotated[Guests, Ask("How many guests?")]) -> int:
        return guests.count

    async with person(server, MODERN, accepting()) as user:
        brought = {"inputResponses": {"guests": {"action": "accept", "content": {"count": 4}}}}
        pending = await user.begin("tools/call", {"name": "book", "arguments": {}, **brought})
        assert (await pending.result())["structuredContent"] == 4


async def test_prompts_and_resources_have_parameters_asked_for_too() -> None:
    server = Server("s")
    asked: list[str] = []

    @server.prompt
    def greet(hotel: str, guests: Annotated[Guests, Ask(lambda hotel: f"How many greet {hotel}?")]) -> str:
        return f"{hotel} {guests.count}"

    @server.resource("rooms://{hotel}")
    def rooms(hotel: str, guests: Annotated[Guests, Ask(lambda hotel: f"How many at {hotel}?")]) -> str:
        return f"{hotel} {guests.count}"

    def answer(method: str, params: dict[str, Any]) -> Any:
        asked.append(params["message"])
        return {"action": "accept", "content": {"count": 2}}

    async with person(server, MODERN, answer) as user:
        prompt = await user.ask("prompts/get", {"name": "greet", "arguments": {"hotel": "Ritz"}})
        assert prompt["result"]["messages"][0]["content"]["text"] == "Ritz 2"
        read = await user.ask("resources/read", {"uri": "rooms://Ritz"})
        assert read["result"]["contents"][0]["text"] == "Ritz 2"
    assert asked == ["How many greet Ritz?", "How many at Ritz?"]


async def test_without_a_default_a_user_who_declines_ends_the_call() -> None:
    server = Server("s")

    @server.tool
    def book(guests: Annotated[Guests, Ask("How many guests?")]) -> int:
        return guests.count

    async with person(server, MODERN, lambda method, params: {"action": "decline"}) as user:
        assert await user.problem("book") == "The user declined to answer: How many guests?"


async def test_dependencies_are_made_once_however_often_is_asked() -> None:
    server = Server("s")
    made: list[str] = []

    async def connection() -> str:
        made.append("made")
        return "connection"

    @server.tool
    async def book(
        ctx: Context, db: Annotated[str, Depends(connection)], guests: Annotated[Guests, Ask("How many?")]
    ) -> str:
        await ctx.elicit("Sure?")
        return f"{db} {guests.count}"

    async with person(server, MODERN, accepting({"count": 2}, {})) as user:
        assert await user.text("book") == "connection 2"
    assert made == ["made"]


async def test_none_may_stand_for_a_user_who_declines() -> None:
    server = Server("s")

    @server.tool
    def book(
        guests: Annotated[Guests | None, Ask("How many guests?")] = None,
        children: Annotated[Guests, Ask("How many children?")] | None = None,
    ) -> str:
        return f"{guests} {children and children.count}"

    answers = iter([{"action": "decline"}, {"action": "accept", "content": {"count": 2}}])
    async with person(server, MODERN, lambda method, params: next(answers)) as user:
        assert await user.text("book") == "None 2"


def _ask_of(annotation: Any) -> Any:
    def tool(x: int, y: Any) -> None: ...

    tool.__annotations__ = {"x": int, "y": annotation, "return": None}
    return tool


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (Annotated[dict[str, int], Ask("What?")], "tool: parameter 'y' cannot be asked for"),
        (Annotated[int, Ask(lambda z: "What?")], "takes 'z', which is no other parameter; it may take x"),
    ],
)
def test_what_a_form_cannot_ask_is_refused_at_registration(annotation: Any, words: str) -> None:
    with pytest.raises(SignatureError, match=words):
        Server("s").tool(_ask_of(annotation))


@pytest.mark.parametrize("message", ["", None, 7])
def test_a_question_without_words_is_refused(message: Any) -> None:
    with pytest.raises(SignatureError, match="Ask takes a question"):
        Ask(message)
