"""Names that stand further down: what waits, until when, and what becomes of a name that never comes."""

from __future__ import annotations

import asyncio
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from modelwire import Client, ConfigError, Context, Server, SignatureError
from modelwire.transports.memory import memory_pair
from tests.wire import MODERN, every_revision, session_talk

PROGRAM = """
from __future__ import annotations
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple, TypedDict, Unpack
import msgspec
from modelwire import Context, Header, Server

server = Server("later")

@server.tool
def first(order: Order, ctx: Context) -> list[Order]:
    return [order]

@server.tool
async def quoted(order: "Order | None" = None, *, colour: "Colour" = "red") -> "Order":
    return order or Order(Item("none", 0))

@dataclass
class Basket:
    orders: list[Order]

@server.tool
def within(basket: Basket) -> int:
    return len(basket.orders)

@server.tool
def members(**more: Unpack[More]) -> str:
    return ",".join(sorted(more))

@server.tool
def ready(n: int) -> int:
    return n

@server.resource("shop://{colour}")
def by_colour(colour: Colour) -> str:
    return colour

@server.prompt
def ask(colour: Colour, size: Size = None) -> str:
    return f"{colour} {size}"

@server.complete("shop://{colour}", "colour")
def colours(typed: str) -> list[str]:
    return ["red", "green"]

@server.complete("later_prompt", "word")
def words(typed: str) -> list[str]:
    return ["word"]

@server.prompt
def later_prompt(word: Word) -> str:
    return word

@dataclass
class Order:
    item: Item
    count: Annotated[int, Header("Count")] = 1

class Item(NamedTuple):
    name: str
    price: Price

class More(TypedDict, total=False):
    a: Word
    b: Price

Colour = Literal["red", "green"]
Size = Literal["S", "L"]
Price = Annotated[int, msgspec.Meta(ge=0)]
Word = str
"""


@pytest.fixture
def program() -> Iterator[Callable[[str], types.ModuleType]]:
    made: list[str] = []

    def run(text: str) -> types.ModuleType:
        name = f"program_of_test_later_{len(made)}"
        module = sys.modules[name] = types.ModuleType(name)
        made.append(name)
        exec(compile(text, name, "exec", dont_inherit=True), module.__dict__)
        return module

    yield run
    for name in made:
        del sys.modules[name]


@every_revision
async def test_classes_may_stand_below_the_functions_that_name_them(revision: str, program: Any) -> None:
    server: Server = program(PROGRAM.replace('Annotated[int, Header("Count")]', "int")).server
    async with session_talk(server, revision) as talk:
        tools = (await talk.result("tools/list"))["tools"]
        assert [tool["name"] for tool in tools] == ["first", "quoted", "within", "members", "ready"]
        assert tools[0]["inputSchema"]["$defs"]["Item"]["properties"]["price"] == {"type": "integer", "minimum": 0}
        assert tools[3]["inputSchema"]["properties"] == {
            "a": {"type": "string"},
            "b": {"type": "integer", "minimum": 0},
        }
        order = {"item": {"name": "cup", "price": 3}}
        assert not (await talk.call("first", {"order": order})).get("isError")
        assert (await talk.text("within", {"basket": {"orders": [order, order]}})) == "2"
        assert (await talk.text("members", {"b": 1})) == "b"
        assert (await talk.call("quoted", {"colour": "blue"}))["isError"]
        (prompt, _) = (await talk.result("prompts/list"))["prompts"]
        assert [(about["name"], about["required"]) for about in prompt["arguments"]] == [
            ("colour", True),
            ("size", False),
        ]
        read = await talk.result("resources/read", {"uri": "shop://red"})
        assert read["contents"][0]["text"] == "red"


async def test_headers_of_later_classes_are_laid_open(program: Any) -> None:
    text = PROGRAM.replace(") -> list[Order]:", ") -> str:").replace("return [order]", "return 'x'")
    server: Server = program(
        text[: text.index("@dataclass\nclass Basket")] + text[text.index("@dataclass\nclass Order") :]
    ).server
    async with session_talk(server, MODERN) as talk:
        tool = (await talk.result("tools/list"))["tools"][0]
        assert tool["inputSchema"]["properties"]["order"]["properties"]["count"]["x-mcp-header"] == "Count"


def undefined_server() -> Server:
    server = Server("s")

    @server.tool
    def fine() -> str:
        return "x"

    @server.tool
    def broken(a: int, order: Nowhere) -> str:  # type: ignore[name-defined] # noqa: F821
        return "x"

    return server


SAID = "^broken: the annotation of parameter 'order' cannot be evaluated: name 'Nowhere' is not defined"


class Stream:
    """A stream that fails the test if anything is read or written."""

    async def receive(self) -> bytes | None:
        raise AssertionError

    async def send(self, frame: bytes) -> None:
        raise AssertionError

    async def aclose(self) -> None:
        raise AssertionError


async def connect(server: Server) -> None:
    async with Client(server):
        raise AssertionError


async def serve_block(server: Server) -> None:
    async with server.serving(Stream()):
        raise AssertionError


async def test_a_name_that_never_comes_is_told_by_whatever_needs_the_server() -> None:
    async def make_session(server: Server) -> None:
        server.session()

    async def settle(server: Server) -> None:
        server.settle()

    async def run(server: Server) -> None:
        await asyncio.to_thread(server.run)

    async def serve(server: Server) -> None:
        await server.serve(Stream())

    for way in (connect, serve, serve_block, make_session, settle, run):
        server = undefined_server()
        for _ in range(2):  # it does not get right by itself
            with pytest.raises(SignatureError, match=SAID):
                await way(server)


@pytest.mark.parametrize(
    ("annotations", "where"),
    [
        ({"order": "list[Nowhere]"}, "the annotation of parameter 'order' cannot be evaluated"),
        ({"return": "Nowhere"}, "the annotation of its result cannot be evaluated"),
        ({"order": list["Nowhere"]}, "the annotation of parameter 'order' cannot be evaluated"),  # noqa: F821
    ],
)
def test_the_message_names_tool_and_place(annotations: dict[str, Any], where: str) -> None:
    def tool(order: Any = None) -> Any: ...

    tool.__annotations__.update(annotations)
    server = Server("s")
    server.add_tool(tool, name="the_tool")
    with pytest.raises(SignatureError, match=f"^the_tool: {where}.*'Nowhere' is not defined"):
        server.settle()


def test_names_within_classes_wait_too() -> None:
    @dataclass
    class Outer:
        inner: Inner

    def result() -> Outer:
        raise NotImplementedError

    server = Server("s")
    server.add_tool(lambda x: x, name="parameter")
    server.remove_tool("parameter")

    @server.tool
    def parameter(x: list[Outer]) -> str:
        return x[0].inner.word

    server.add_tool(result)
    with pytest.raises(SignatureError, match="^parameter: parameter 'x': .*Outer.*'Inner' is not defined"):
        server.settle()

    @dataclass
    class Inner:
        word: str

    server.settle()
    tool = server.features.tools.registry.get("parameter")
    assert tool is not None
    assert tool.tool.input_schema["$defs"]["Inner"]["properties"] == {"word": {"type": "string"}}


async def test_a_function_that_has_returned_still_has_its_names() -> None:
    def make() -> Server:
        server = Server("s")

        @server.tool
        def local(item: Item) -> str:
            return item.name

        @dataclass
        class Item:
            name: str

        return server

    async with Client(make()) as client:
        assert await client.call("local", {"item": {"name": "cup"}}) == "cup"


def test_a_variable_that_has_no_value_yet_is_no_fault() -> None:
    server = Server("s")

    @server.tool
    def uses(n: int) -> str:
        return later[n]

    server.settle()
    later = ["a"]
    assert uses(0) == later[0]


def test_pydantic_models_may_refer_to_what_comes_later(program: Any) -> None:
    module = program(
        """
from __future__ import annotations
import pydantic
from modelwire import Server
server = Server("s")
class Outer(pydantic.BaseModel):
    inner: Inner
@server.tool
def f(x: Outer) -> str: return x.inner.word
class Inner(pydantic.BaseModel):
    word: str
"""
    )
    module.server.settle()
    tool = module.server.features.tools.registry.get("f")
    assert tool.tool.input_schema["$defs"]["Inner"]["required"] == ["word"]


@pytest.mark.parametrize(
    ("annotations", "said"),
    [
        ({"b": Callable[[], int]}, "f: parameter 'b'"),
        ({"b": "1 +"}, "f: the annotation of parameter 'b' cannot be evaluated"),
        ({"return": Callable[[], int]}, "f: its result cannot be checked"),
        ({"b": Context, "c": Context}, "f: parameters 'b' and 'c' both take the context"),
    ],
)
@pytest.mark.parametrize("undefined", ["a", "d"])
def test_all_else_is_refused_at_once(annotations: dict[str, Any], said: str, undefined: str) -> None:
    def f(a: int, b: int, c: int, d: int) -> str: ...

    f.__annotations__.update(annotations, **{undefined: "Nowhere"})
    server = Server("s")
    with pytest.raises(SignatureError, match=f"^{said}"):
        server.add_tool(f)
    assert server.features.tools.registry.keys() == []


def test_stars_settings_and_schemas_are_refused_at_once() -> None:
    server = Server("s")

    def rows(a: Nowhere, *rest: int) -> str: ...  # type: ignore[name-defined] # noqa: F821

    def fine(a: Nowhere) -> str: ...  # type: ignore[name-defined] # noqa: F821

    with pytest.raises(SignatureError, match="'rest'"):
        server.add_tool(rows)
    with pytest.raises(ConfigError, match="timeout"):
        server.add_tool(fine, timeout=-1)
    with pytest.raises(ConfigError, match="inputSchema"):
        server.add_tool(fine, input_schema={"type": "array"})
    with pytest.raises(ConfigError, match="enabled="):
        server.add_tool(fine, enabled="x")  # type: ignore[arg-type]
    with pytest.raises(ConfigError):
        server.add_resource("x://{", fine)
    server.add_tool(fine)
    for again in (fine, lambda: ""):
        with pytest.raises(ConfigError, match="there is already a tool 'fine'"):
            server.add_tool(again, name="fine")


def test_what_waits_can_be_removed_switched_and_replaced() -> None:
    server = undefined_server()
    server.disable("broken")
    server.remove_tool("broken")
    server.settle()
    server = undefined_server()
    server.remove_tool("broken")
    server.add_tool(lambda: "new", name="broken")
    server.settle()


async def test_it_keeps_its_place_and_its_switch() -> None:
    server = Server("s")

    def waits(x: Later) -> str:
        return "x"

    server.add_tool(waits, name="a")
    server.add_tool(lambda: "", name="b")
    server.add_tool(waits, name="c", enabled=False)
    server.add_tool(waits, name="d", tags={"t"})
    server.disable(tags={"t"})
    Later = int
    assert Later is int
    async with session_talk(server, MODERN) as talk:
        assert [tool["name"] for tool in (await talk.result("tools/list"))["tools"]] == ["a", "b"]
        server.enable("c", "d")
        assert [tool["name"] for tool in (await talk.result("tools/list"))["tools"]] == ["a", "b", "c", "d"]


async def test_nothing_waits_while_there_is_a_client() -> None:
    server = Server("s")

    def late(x: Nowhere) -> str: ...  # type: ignore[name-defined] # noqa: F821

    async with session_talk(server, MODERN):
        with pytest.raises(SignatureError, match="^late: the annotation of parameter 'x'"):
            server.add_tool(late)
        assert server.features.tools.registry.keys() == []
    server.add_tool(late)
    with pytest.raises(SignatureError, match="^late"):
        server.settle()


async def test_what_came_after_the_session_was_made_is_told_before_the_first_answer() -> None:
    server = Server("s")
    session = server.session()

    def late(x: Nowhere) -> str: ...  # type: ignore[name-defined] # noqa: F821

    server.add_tool(late)
    with pytest.raises(SignatureError, match="^late"):
        await session.handle(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')


def test_the_decorated_function_stays_itself() -> None:
    server = Server("s")

    def f(x: Nowhere) -> str:  # type: ignore[name-defined] # noqa: F821
        return "x"

    assert server.tool(f) is f
    assert server.prompt(name="p")(f) is f
    assert server.resource("x://{x}")(f) is f
    assert f(1) == "x"


async def test_a_stream_is_untouched_until_all_is_there() -> None:
    server = undefined_server()
    ours, theirs = memory_pair()
    with pytest.raises(SignatureError):
        await server.serve(theirs)
    await theirs.send(b"still open")
    assert await ours.receive() == b"still open"


# --------------------------------------------------------------------------------------------------- completion


def completing(name: str, argument: str) -> Server:
    server = Server("s")
    server.complete(name, argument)(lambda typed: [])
    server.add_prompt(lambda tone, id: "", name="advertise")
    server.add_prompt(lambda: "", name="plain")
    server.add_resource("shop://{item}{?size}", lambda item, size="": "", name="item")
    server.add_resource("shop://all", lambda: "", name="all")
    return server


@pytest.mark.parametrize(
    ("name", "argument", "said"),
    [
        ("advertize", "tone", r"there is no prompt or resource template 'advertize'; did you mean 'advertise'\?"),
        ("shop://{itm}{?size}", "item", "there is no .*; did you mean 'shop://{item}{.size}'"),
        ("nothing", "tone", "there is no prompt or resource template 'nothing'$"),
        ("shop://all", "x", "there is no prompt or resource template 'shop://all'"),
        ("advertise", "tune", r"the prompt 'advertise' has no argument 'tune'; did you mean 'tone'\?"),
        ("plain", "tone", "the prompt 'plain' has no argument 'tone'$"),
        ("shop://{item}{?size}", "sise", "the resource template .* has no argument 'sise'; did you mean 'size'"),
    ],
)
async def test_completion_of_what_does_not_exist_is_told_when_the_server_is_needed(
    name: str, argument: str, said: str
) -> None:
    server = completing(name, argument)
    with pytest.raises(ConfigError, match=r"^complete\(.*\): " + said):
        server.settle()
    with pytest.raises(ConfigError, match=said):
        await connect(server)


@pytest.mark.parametrize(
    ("name", "argument"), [("advertise", "tone"), ("advertise", "id"), ("shop://{item}{?size}", "size")]
)
async def test_completion_may_be_registered_before_what_it_is_of(name: str, argument: str) -> None:
    server = completing(name, argument)
    async with session_talk(server, MODERN):
        pass
    server.remove_prompt("advertise")  # it was there once; a client that comes now is no worse off
    async with session_talk(server, MODERN):
        pass


async def test_completion_of_a_prompt_that_is_switched_off_is_right() -> None:
    server = completing("advertise", "tone")
    server.disable("advertise")
    server.settle()


async def test_while_there_is_a_client_completion_must_be_of_something() -> None:
    server = completing("advertise", "tone")
    async with session_talk(server, MODERN) as talk:
        with pytest.raises(ConfigError, match="has no argument 'tune'"):
            server.complete("advertise", "tune")(lambda typed: [])
        server.complete("advertise", "id")(lambda typed: ["7"])
        params = {"ref": {"type": "ref/prompt", "name": "advertise"}, "argument": {"name": "id", "value": ""}}
        assert (await talk.result("completion/complete", params))["completion"]["values"] == ["7"]


async def test_completers_and_dependencies_may_name_what_comes_later(program: Any) -> None:
    module = program(
        """
from __future__ import annotations
from dataclasses import dataclass
from typing import Annotated
from modelwire import Context, Depends, Server
server = Server("s")

@server.complete("p", "x")
def words(typed: str, store: Annotated[Store, Depends(open_store)], ctx: Context) -> list[str]:
    return store.words

def open_store_for(ctx: Context, setting: Setting = None) -> Store:
    return Store(["a"])

@server.tool
def take(n: int, store: Annotated[Store, Depends(open_store_for)]) -> int:
    return n + len(store.words)

@server.prompt
def p(x: str) -> str:
    return x

def open_store() -> Store:
    return Store(["b"])

@dataclass
class Store:
    words: list[str]

Setting = str
"""
    )
    async with session_talk(module.server, MODERN) as talk:
        params = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "x", "value": ""}}
        assert (await talk.result("completion/complete", params))["completion"]["values"] == ["b"]
        assert await talk.text("take", {"n": 2}) == "3"
    for line, said in (
        ("def words(typed: str, other: int)", "nothing fills parameter 'other'"),
        ("def words(typed: Nowhere)", "'Nowhere' is not defined"),
    ):
        text = f"from modelwire import Server\nserver = Server('s')\n@server.complete('p', 'x')\n{line}: ...\n"
        with pytest.raises(SignatureError, match=f"^completion of 'x' of 'p': .*{said}"):
            program("from __future__ import annotations\n" + text).server.settle()
