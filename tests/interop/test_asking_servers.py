"""A modelwire client that answers servers which ask, written with the official Python library and with FastMCP.

The same client answers in both eras: requests on the connection, and questions inside results.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from modelwire import FormQuestion, Unanswered, UrlElicitationNeeded, UrlQuestion, types
from tests.interop.peers import LEGACY, MODERN, PATIENCE, connected, needs_python_peers, program

pytestmark = needs_python_peers


class Person:
    """Who answers, and what was asked."""

    def __init__(self, **content: Any) -> None:
        self.content = content
        self.forms: list[FormQuestion] = []
        self.pages: list[UrlQuestion] = []

    def fill_in(self, question: FormQuestion) -> dict[str, Any]:
        self.forms.append(question)
        return self.content

    def consent(self, question: UrlQuestion) -> bool:
        self.pages.append(question)
        return True

    def connected(self, library: str, revision: str) -> Any:
        return connected(
            program(f"servers/{library}_asking_server.py"),
            revision=revision,
            on_elicit=self.fill_in,
            on_elicit_url=self.consent,
            on_sample=lambda question: types.CreateMessageResult("assistant", types.TextContent("peace"), "dove"),
            roots=["/home/ada"],
        )


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
async def test_mcp_has_its_resolvers_answered_in_both_eras(revision: str) -> None:
    person = Person(count=3)
    async with person.connected("mcp", revision) as client:
        assert await client.call("plan", returns=str) == "3 at file:///home/ada: peace (dove)"
    assert {question.message for question in person.forms} == {"How many guests?"}
    assert person.forms[0].server == "asks-with-mcp (python mcp_asking_server.py)"
    assert person.forms[0].fields["count"].schema["maximum"] == 9


async def test_mcp_has_pages_opened() -> None:
    person = Person()
    async with person.connected("mcp", LEGACY) as client:
        assert await client.call("open_page", returns=str) == "accept"
        assert (person.pages[0].url, person.pages[0].elicitation_id) == ("https://example.org/sign", "e1")
        with pytest.raises(UrlElicitationNeeded, match="elicitation required"):
            await client.call_tool("members_only", rounds=False)
        entering = asyncio.create_task(client.call("members_only", returns=str))
        async with asyncio.timeout(PATIENCE):
            while len(person.pages) < 2:
                await asyncio.sleep(0)
        assert (person.pages[1].elicitation_id, person.pages[1].needed) == ("e2", True)
        await client.call("sign")
        assert await entering == "welcome"


async def test_fastmcp_has_choices_made_in_handshake_revisions() -> None:
    person = Person(value=["oil", "salt"])
    async with person.connected("fastmcp", LEGACY) as client:
        assert await client.call("toppings", returns=str) == "oil and salt"
        [field] = person.forms[0].fields.values()
        assert [(choice.value, choice.title) for choice in field.choices] == [
            ("oil", "Olive oil"),
            ("salt", "Sea salt"),
        ]
        person.content = {"value": "l"}
        assert await client.call("size", returns=str) == "l"
        assert (person.forms[1].fields["value"].kind, len(person.forms[1].fields["value"].choices)) == ("choice", 2)
        person.content = {"value": "xl"}
        with pytest.raises(Unanswered, match="not as the form wants it"):
            await client.call("size")


async def test_fastmcp_has_everything_answered_that_a_result_asks() -> None:
    person = Person(count=3)
    async with person.connected("fastmcp", MODERN) as client:
        said = await client.call("plan", returns=str)
        assert said == "{'count': 3, 'tea': True} accept peace file:///home/ada after round one"
    assert (person.forms[0].key, person.pages[0].key) == ("guests", "page")
