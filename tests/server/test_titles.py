"""Choices of a form with names for people: how they are written on each revision, and what is refused."""

from __future__ import annotations

import dataclasses
import enum
from typing import Annotated, Any, Literal

import pytest

from modelwire import Context, Server, SignatureError, Titles
from modelwire.server.forms import form_schema, read_form
from tests import spec
from tests.server.persons import person
from tests.wire import REVISIONS

TITLED = [{"const": "S", "title": "Small"}, {"const": "L", "title": "Large"}]


class Size(enum.Enum):
    SMALL = "S"
    LARGE = "L"


Named = Annotated[Literal["S", "L"], Titles(S="Small", L="Large")]
KINDS: list[tuple[Any, dict[str, Any], Any, Any]] = [
    (Named, {"type": "string", "oneOf": TITLED}, "L", "L"),
    (Annotated[Size, Titles({"S": "Small"}, L="Large")], {"type": "string", "oneOf": TITLED}, "L", Size.LARGE),
    (Named | None, {"type": "string", "oneOf": TITLED}, "L", "L"),
    (list[Named], {"type": "array", "items": {"anyOf": TITLED}}, ["L"], ["L"]),
    (
        Annotated[list[Size], Titles(S="Small", L="Large")],
        {"type": "array", "items": {"anyOf": TITLED}},
        ["S"],
        [Size.SMALL],
    ),
    (
        Annotated[Literal["S", "M"], Titles(S="Small")],
        {"type": "string", "oneOf": [TITLED[0], {"const": "M", "title": "M"}]},
        "M",
        "M",
    ),
]


def one(annotation: Any) -> type[Any]:
    return dataclasses.make_dataclass("Form", [("size", annotation)])


@pytest.mark.parametrize(("annotation", "schema", "answer", "value"), KINDS, ids=lambda item: str(item)[-40:])
def test_choices_are_written_with_their_titles_and_answered_by_their_values(
    annotation: Any, schema: dict[str, Any], answer: Any, value: Any
) -> None:
    form = one(annotation)
    assert form_schema(form)["properties"] == {"size": schema}
    assert read_form(form, {"size": answer}).size == value


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (Annotated[Literal["S"], Titles(X="Extra")], "names 'X', which is none of the choices: S"),
        (Annotated[str, Titles(S="Small")], "Titles are for choices, which str has none of"),
    ],
)
def test_titles_of_what_is_no_choice_are_refused(annotation: Any, words: str) -> None:
    with pytest.raises(SignatureError, match=words):
        form_schema(one(annotation))


@pytest.mark.parametrize("wrong", [{}, {"S": ""}, {"S": 1}])
def test_titles_are_texts(wrong: Any) -> None:
    with pytest.raises(SignatureError, match="Titles takes"):
        Titles(wrong)


@dataclasses.dataclass
class Order:
    size: Named = "S"


@dataclasses.dataclass
class Menu:
    dishes: list[Literal["soup", "fish"]]


@spec.needs_spec
@pytest.mark.parametrize("revision", [name for name in REVISIONS if name >= "2025-06-18"])
async def test_each_revision_gets_what_it_can_carry(revision: str) -> None:
    server = Server("s")

    @server.tool
    async def order(ctx: Context) -> str:
        return (await ctx.elicit("Which size?", Order)).size

    @server.tool
    async def menu(ctx: Context) -> list[str]:
        return (await ctx.elicit("Which dishes?", Menu)).dishes

    seen: list[dict[str, Any]] = []

    def answer(method: str, params: dict[str, Any]) -> Any:
        seen.append(params["requestedSchema"]["properties"])
        return {"action": "accept", "content": {"size": "L"} if "size" in seen[-1] else {"dishes": ["fish"]}}

    async with person(server, revision, answer) as user:
        assert await user.text("order") == "L"
        if revision == "2025-06-18":
            assert "log says more" in await user.problem("menu")
        else:
            assert (await user.call("menu"))["structuredContent"]
    if revision == "2025-06-18":
        assert seen == [{"size": {"type": "string", "enum": ["S", "L"], "enumNames": ["Small", "Large"]}}]
    else:
        assert seen[0] == {"size": {"type": "string", "oneOf": TITLED, "default": "S"}}
