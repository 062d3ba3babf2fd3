"""What a server asks of a client: forms made of classes, as they cross the wire."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass, field
from typing import Any, Literal, Optional

import pytest

from modelwire import Client, Context, Server, SignatureError, form_schema, types
from modelwire.protocol import wire
from modelwire.protocol.revisions import by_name
from modelwire.rpc.observer import Observer
from modelwire.server.forms import read_form
from tests import spec
from tests.wire import Ledger

CHOICE = {"type": "string", "enum": ["red", "blue"]}


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Wish:
    colour: Colour
    size: Literal["S", "L"] = "S"
    note: Optional[str] = None


@dataclass
class Wishes(Wish):
    toppings: list[Literal["salt", "oil"]] = field(default_factory=list)


@dataclass
class Tags:
    tags: list[str]


def test_enum_literal_optional_and_list_of_literals_make_a_form_without_null() -> None:
    schema = form_schema(Wishes)
    assert schema == {
        "type": "object",
        "properties": {
            "colour": CHOICE,
            "size": {"type": "string", "enum": ["S", "L"], "default": "S"},
            "note": {"type": "string"},
            "toppings": {"type": "array", "items": {"type": "string", "enum": ["salt", "oil"]}, "default": []},
        },
        "required": ["colour"],
    }
    assert "null" not in json.dumps(schema)
    assert "anyOf" not in json.dumps(schema)


def test_a_list_of_any_text_is_refused_by_name_and_with_what_to_write_instead() -> None:
    said = r"^Tags\.tags: list\[str\] is a list of what is no choice; make its items a Literal or an Enum whose values"
    with pytest.raises(SignatureError, match=said):
        form_schema(Tags)


# --------------------------------------------------------------------------------------------------- over the wire


class Watch(Observer):
    """Holds every frame against the official schema, from the client's side."""

    def __init__(self, revision: str) -> None:
        self.ledger = Ledger(revision)
        self.asked: list[dict[str, Any]] = []
        self.revision = revision

    def frame(self, direction: Literal["in", "out"], frame: bytes) -> None:
        message = json.loads(frame)
        if message.get("method") == "elicitation/create":
            self.asked.append(message["params"])
        if direction == "out":
            self.ledger.sent(frame)
            if "result" in message and spec.ABSENT is None:
                faults = spec.validate_message(self.revision, "client", message, "elicitation/create")
                self.ledger.faults += faults
        else:
            self.ledger.received(frame)


@pytest.fixture
def forms() -> Server:
    server = Server("forms")

    async def ask(form: type[Any], ctx: Context) -> str:
        answer = await ctx.request("elicitation/create", {"message": "Which?", "requestedSchema": form_schema(form)})
        assert isinstance(answer, types.ElicitResult)
        return repr(read_form(form, answer.content or {})) if answer.action == "accept" else answer.action

    @server.tool
    async def one(ctx: Context) -> str:
        return await ask(Wish, ctx)

    @server.tool
    async def several(ctx: Context) -> str:
        return await ask(Wishes, ctx)

    return server


def client_of(server: Server, watch: Watch, result: dict[str, Any]) -> Client:
    return Client(
        server,
        revision=watch.revision,
        handlers={"elicitation/create": lambda params: result},
        capabilities=types.ClientCapabilities(elicitation=types.ElicitationCapability()),
        observers=[watch],
    )


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
async def test_a_tool_asks_by_a_form_and_gets_an_instance(revision: str, forms: Server) -> None:
    watch = Watch(revision)
    result = {"action": "accept", "content": {"colour": "blue", "unknown": 1}}
    async with client_of(forms, watch, result) as client:
        assert await client.call("one") == repr(Wish(Colour.BLUE))
    expected = form_schema(Wish)
    if revision == "2025-06-18":  # where only a bool has a default
        del expected["properties"]["size"]["default"]
    assert [params["requestedSchema"] for params in watch.asked] == [expected]
    assert watch.ledger.faults == []


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_user_who_does_not_answer_is_no_error(revision: str, action: str, forms: Server) -> None:
    watch = Watch(revision)
    async with client_of(forms, watch, {"action": action}) as client:
        assert await client.call("one") == action
    assert watch.ledger.faults == []


async def test_several_choices_cross_the_wire_where_the_revision_has_them(forms: Server) -> None:
    watch = Watch("2025-11-25")
    result = {"action": "accept", "content": {"colour": "red", "toppings": ["oil", "salt"]}}
    async with client_of(forms, watch, result) as client:
        assert await client.call("several") == repr(Wishes(Colour.RED, toppings=["oil", "salt"]))
    assert watch.ledger.faults == []


async def test_several_choices_are_not_sent_where_the_revision_lacks_them(
    forms: Server, caplog: pytest.LogCaptureFixture
) -> None:
    watch = Watch("2025-06-18")
    async with client_of(forms, watch, {"action": "accept", "content": {}}) as client:
        assert (await client.call_tool("several")).is_error
    assert watch.asked == []
    assert "a multiple choice in a form cannot be said in revision 2025-06-18" in caplog.text


def test_several_choices_are_refused_for_a_revision_without_them() -> None:
    """As parameters of the protocol's own type, which is what adapts to a revision."""
    asked = json.dumps({"message": "Which?", "requestedSchema": form_schema(Wishes)}).encode()
    params = wire.decode(asked, types.ElicitRequestParams)
    older, newer = by_name("2025-06-18"), by_name("2025-11-25")
    assert older is not None
    assert newer is not None
    assert json.loads(wire.encode(params, newer)) == json.loads(asked)
    with pytest.raises(wire.WireError, match="a multiple choice in a form cannot be said in revision 2025-06-18"):
        wire.encode(params, older)
