"""A person at a terminal answers a server: a real one, of which the test is the person."""

from __future__ import annotations

import asyncio
import io
import os
import pty
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from modelwire import FormQuestion, Reply, SampleQuestion, UrlQuestion, answers, types
from modelwire.client.asking_terminal import Terminal, Unreadable, parsed, shown
from modelwire.client.forms import Form

FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Full name", "description": "As on the passport", "minLength": 2},
        "count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 2},
        "tea": {"type": "boolean"},
        "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
        "mail": {"type": "string", "format": "email"},
    },
    "required": ["name", "size"],
}


class Screen(io.StringIO):
    """What the person sees; waits for prompts."""

    encoding = "utf-8"  # type: ignore[assignment]


@dataclass
class Desk:
    """A terminal with a person before it."""

    keys: int
    screen: Screen
    asks: Terminal
    opened: list[str] = field(default_factory=list)

    def types(self, *lines: str) -> None:
        """Type lines ahead; a terminal hands them over one by one."""
        os.write(self.keys, "".join(f"{line}\n" for line in lines).encode())

    async def answer(self, question: Any, *lines: str) -> Any:
        self.types(*lines)
        async with asyncio.timeout(10):
            return await self.asks(question)

    @property
    def seen(self) -> str:
        return self.screen.getvalue()


@pytest.fixture
def desk() -> Iterator[Desk]:
    keys, terminal = pty.openpty()
    screen, opened = Screen(), []
    with os.fdopen(terminal) as reads:
        yield Desk(keys, screen, answers.terminal(reads, screen, open_page=opened.append), opened)
    os.close(keys)


def form(message: str = "Who comes?", **schema: Any) -> FormQuestion:
    return FormQuestion(message, "hotel (python hotel.py)", Form({**FORM, **schema}))


# --------------------------------------------------------------------------------------------------- forms


async def test_a_form_is_filled_in_reviewed_and_sent(desk: Desk) -> None:
    content = await desk.answer(form(), "Ada Lovelace", "", "yes", "2", "", "y")
    assert content == {"name": "Ada Lovelace", "count": 2, "tea": True, "size": "l", "mail": None}
    assert form().form.content(content) == {"name": "Ada Lovelace", "count": 2, "tea": True, "size": "l"}
    for words in (
        "hotel (python hotel.py) asks:\n  Who comes?",
        "give it no password",
        "Full name (text, at least 2 characters, required)\n  As on the passport",
        "count (a whole number, at least 1, at most 9, may be left out)\n[2] > ",
        "1. Small (s)\n    2. Large (l)",
        "mail (an e-mail address, may be left out)",
        "Your answer:\n  Full name: Ada Lovelace\n  count: 2\n  tea: yes\n  size: Large\n  mail: (left out)",
        "Send this? (y)es, (e)dit, (d)ecline, (c)ancel [y]: ",
    ):
        assert words in desk.seen


async def test_what_does_not_fit_is_asked_again(desk: Desk) -> None:
    lines = ["", "A", "Ada", "12", "x", "3", "perhaps", "n", "7", "small", "me", "me@example.org", ""]
    content = await desk.answer(form(), *lines)
    assert content == {"name": "Ada", "count": 3, "tea": False, "size": "s", "mail": "me@example.org"}
    for words in (
        "It must be filled in.",
        "at least 2 characters",
        "'x' is not a whole number.",
        "Type yes or no.",
        "'7' is none of them; type a number from 1 to 2, or a name.",
        "e-mail",
    ):
        assert words in desk.seen


async def test_a_review_may_lead_back_and_keeps_what_was_typed(desk: Desk) -> None:
    lines = ["Ada", "3", "", "s", "", "e", "Grace", "", "y", "", "", "y"]
    content = await desk.answer(form(), *lines)
    assert content == {"name": "Grace", "count": 3, "tea": True, "size": "s", "mail": None}
    assert "[Ada] > " in desk.seen
    assert "[Small] > " in desk.seen


async def test_a_field_with_a_default_may_be_left_out(desk: Desk) -> None:
    content = await desk.answer(form(), "Ada", "!none", "", "s", "", "y")
    assert content["count"] is None
    assert "count" not in form().form.content(content)


@pytest.mark.parametrize(
    ("lines", "reply"),
    [
        (["!decline"], Reply.DECLINE),
        (["Ada", "!cancel"], Reply.CANCEL),
        (["Ada", "\x04"], Reply.CANCEL),
        (["Ada", "", "", "s", "", "d"], Reply.DECLINE),
        (["Ada", "", "", "s", "", "what", "c"], Reply.CANCEL),
    ],
)
async def test_declining_and_going_away_are_always_possible(lines: list[str], reply: Reply, desk: Desk) -> None:
    if lines[-1] == "\x04":
        os.write(desk.keys, b"Ada\n\x04")
        lines = []
    assert await desk.answer(form(), *lines) is reply


async def test_what_a_server_says_cannot_drive_the_terminal(desk: Desk) -> None:
    evil = "\x1b[2J\x07Your bank asks:\r\u202egnp.exe"
    schema = {"properties": {"n": {"type": "string", "title": evil, "default": evil}}, "required": []}
    await desk.answer(form(evil, **schema), "", "")
    assert not [character for character in desk.seen if character != "\n" and not character.isprintable()]
    assert "\\x1b[2J" in desk.seen


async def test_one_question_at_a_time_and_one_that_is_taken_back_stops_reading(desk: Desk) -> None:
    small = {"properties": {"n": {"type": "integer"}}, "required": ["n"]}
    first = asyncio.create_task(desk.asks(form("First?", **small)))
    second = asyncio.create_task(desk.asks(form("Second?", **small)))
    async with asyncio.timeout(10):
        while "First?" not in desk.seen:
            await asyncio.sleep(0)
        assert "Second?" not in desk.seen
        first.cancel()
        await asyncio.wait([first])
        while "Second?" not in desk.seen:
            await asyncio.sleep(0)
        desk.types("7", "y")
        assert await second == {"n": 7}


async def test_without_a_terminal_the_question_is_dismissed_politely(caplog: pytest.LogCaptureFixture) -> None:
    with open(os.devnull) as nowhere:
        assert await answers.terminal(nowhere, Screen())(form()) is Reply.CANCEL
    assert "hotel (python hotel.py) asks, and nobody can answer: stdin is no terminal" in caplog.text


# --------------------------------------------------------------------------------------------------- values


def fields(**properties: Any) -> Any:
    [found] = Form({"type": "object", "properties": properties}).fields.values()
    return found


@pytest.mark.parametrize(
    ("schema", "typed", "value"),
    [
        ({"type": "string"}, "7", "7"),
        ({"type": "number"}, "2.5", 2.5),
        ({"type": "boolean"}, "N", False),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, "2, a, b", ["b", "a"]),
        ({"type": "array", "items": {"enum": ["1", "0"]}}, "1,0", ["1", "0"]),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
    ],
)
def test_what_is_typed_becomes_a_value(schema: Any, typed: str, value: Any) -> None:
    assert parsed(fields(n=schema), typed) == value


@pytest.mark.parametrize(
    ("schema", "typed"),
    [
        ({"type": "integer"}, "two"),
        ({"type": "number"}, "true"),
        ({"type": "number"}, "NaN"),
        ({"type": "string", "enum": ["a"]}, "0"),
        ({"type": "object"}, "{"),
    ],
)
def test_what_is_no_value_is_said(schema: Any, typed: str) -> None:
    with pytest.raises(Unreadable):
        parsed(fields(n=schema), typed)


# --------------------------------------------------------------------------------------------------- pages


def page(url: str, *, needed: bool = False) -> UrlQuestion:
    return UrlQuestion("Sign in", url, "hotel", needed=needed)


async def test_a_page_is_opened_on_consent_only(desk: Desk) -> None:
    assert await desk.answer(page("https://example.org/sign?x=1"), "o") is Reply.ACCEPT
    assert desk.opened == ["https://example.org/sign?x=1"]
    assert "Host:  example.org\n  Page:  https://example.org/sign?x=1" in desk.seen
    assert await desk.answer(page("https://example.org"), "m") is Reply.ACCEPT
    assert await desk.answer(page("https://example.org"), "d") is Reply.DECLINE
    assert await desk.answer(page("https://example.org"), "") is Reply.CANCEL
    assert len(desk.opened) == 1


async def test_where_a_call_waits_for_a_page_the_person_says_when_it_is_done(desk: Desk) -> None:
    assert await desk.answer(page("https://example.org", needed=True), "o", "") is Reply.DONE


async def test_an_address_that_is_not_protected_is_not_opened_from_here(desk: Desk) -> None:
    assert await desk.answer(page("http://example.org"), "o", "m") is Reply.ACCEPT
    assert desk.opened == []
    assert "no https" in desk.seen
    assert await desk.answer(page("http://127.0.0.1:8000/x"), "o") is Reply.ACCEPT
    assert desk.opened == ["http://127.0.0.1:8000/x"]


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "file:///etc/passwd", "https://", "https://a b", "https://[", "x"]
)
async def test_what_is_no_web_page_is_declined(url: str, desk: Desk) -> None:
    assert await desk.answer(page(url)) is Reply.DECLINE
    assert desk.opened == []


# --------------------------------------------------------------------------------------------------- messages


async def test_a_message_is_written_only_if_the_person_lets_it(desk: Desk) -> None:
    said = [types.SamplingMessage("user", types.TextContent("6 times 7?\nNow."))]
    said += [types.SamplingMessage("user", types.ImageContent("", "image/png"))]
    question = SampleQuestion(types.CreateMessageRequestParams(said, 5, system_prompt="Be brief."), "hotel")
    assert await desk.answer(question, "y") is True
    assert "system: Be brief.\n  user: 6 times 7?\n    Now.\n  user: [image]" in desk.seen
    assert await desk.answer(question, "") is False


def test_line_ends_are_kept_and_indented() -> None:
    assert shown("a\nb\tc", "  ") == "a\n  b\\tc"
