"""One node for each type, for as long as something has it: what is known, when it is forgotten, when made anew."""

from __future__ import annotations

import enum
import gc
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, make_dataclass
from typing import Any, Generic, Literal, Optional, TypedDict, TypeVar, Union

import pydantic
import pytest

from modelwire import Client, Server, SignatureError
from modelwire.server import pydantic_types
from modelwire.server.annotations import Scope
from modelwire.server.converters import Unsupported, converter
from modelwire.server.json_values import is_list, is_object, members_of
from modelwire.server.known import key_of
from modelwire.server.plain import Plain

T = TypeVar("T")


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: int = 0


@dataclass
class Line:
    start: Point
    end: Point
    colour: Colour = Colour.RED


class Person(pydantic.BaseModel):
    name: str
    home: Optional[Point] = None


@dataclass
class Tree:
    value: int
    inner: list[Tree]


class Options(TypedDict, total=False):
    size: int


@dataclass
class Page(Generic[T]):
    items: list[T]


@pytest.mark.parametrize(
    "annotation",
    [Colour, Point, Line, Person, Tree, Options, Page[int], list[Point], Optional[Person], dict[str, Line], list[str]],
)
def test_a_type_has_one_node_whoever_asks(annotation: Any) -> None:
    first = converter(annotation, closed=True)

    assert converter(annotation, Scope(lambda: None), closed=True) is first
    assert converter(annotation) is converter(annotation) is not first


def test_a_class_inside_another_is_known_by_itself_afterwards() -> None:
    line: Any = converter(Line)
    start, end, colour = line.parts.fields

    assert converter(Point) is start.node is end.node
    assert converter(Colour) is colour.node


def test_what_would_be_equal_for_python_is_told_apart() -> None:
    assert key_of(Union[int, str], False) != key_of(Union[str, int], False)
    assert key_of(Literal[1], False) != key_of(Literal[True], False)
    assert key_of(list[Literal[0]], False) != key_of(list[Literal[False]], False)
    assert key_of(Page[int], False) != key_of(Page[bool], False)
    assert key_of(Point, False) != key_of(Point, True)


def described(of: Callable[[], type]) -> tuple[Server, weakref.ref[type]]:
    server, cls = Server("s"), of()

    def take(value: Any) -> Any:
        return value

    take.__annotations__ = {"value": cls, "return": cls}
    server.tool(take)
    return server, weakref.ref(cls)


def tree() -> type:
    @dataclass
    class Node:
        inner: Any

    Node.__annotations__["inner"] = list[Node]
    Node.__dataclass_fields__["inner"].type = list[Node]
    return Node


@pytest.mark.parametrize(
    "of",
    [
        lambda: make_dataclass("Made", [("x", int)]),
        lambda: enum.Enum("Made", {"A": "a"}),
        lambda: pydantic.create_model("Made", x=(int, 1)),
        tree,
    ],
)
def test_a_class_may_go_with_the_last_tool_that_names_it(of: Callable[[], type]) -> None:
    server, cls = described(of)
    gc.collect()
    assert cls() is not None

    server.remove_tool("take")
    gc.collect()

    assert cls() is None


def test_a_model_is_compiled_once_for_all_that_take_or_return_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    generated = pydantic_types._generated  # pyright: ignore[reportPrivateUsage]

    def counted(adapter: Any, mode: str, kind: Any) -> dict[str, Any]:
        made.append(mode)
        return generated(adapter, mode, kind)

    monkeypatch.setattr(pydantic_types, "_generated", counted)
    model = pydantic.create_model("Made", x=(int, 1))
    server = Server("s")
    for number in range(3):

        def take(value: Any) -> Any:
            return value

        take.__annotations__ = {"value": model, "return": list[model]}
        server.tool(name=f"take{number}")(take)

    assert len(made) == 1


@pytest.fixture
def module() -> Iterator[types.ModuleType]:
    module = types.ModuleType("known_by_name")
    module.__dict__.update(dataclass=dataclass)
    sys.modules[module.__name__] = module
    yield module
    del sys.modules[module.__name__]


def test_a_name_that_is_defined_later_is_looked_up_again(module: types.ModuleType) -> None:
    exec("@dataclass\nclass Order:\n    item: 'Item'", module.__dict__)
    with pytest.raises(Unsupported, match="Item"):
        converter(module.Order)

    exec("@dataclass\nclass Item:\n    size: int", module.__dict__)

    assert converter(module.Order).load({"item": {"size": 1}}, "v") == module.Order(module.Item(1))


def test_a_name_that_comes_to_mean_something_else_is_followed(module: types.ModuleType) -> None:
    exec("@dataclass\nclass Item:\n    size: int\n@dataclass\nclass Order:\n    item: 'Item'", module.__dict__)
    before = converter(list[module.Order])
    assert converter(list[module.Order]) is before

    exec("@dataclass\nclass Item:\n    label: str", module.__dict__)

    after = converter(list[module.Order])
    assert after is not before
    assert after.load([{"item": {"label": "x"}}], "v") == [module.Order(module.Item("x"))]


def test_a_name_means_what_it_means_where_the_function_stands() -> None:
    def size() -> Any:
        @dataclass
        class Item:
            size: int

        @dataclass
        class Order:
            item: Item

        def take(order: Order) -> int:
            return order.item.size

        return take

    first, second = size(), size()
    servers = Server("a"), Server("b")
    servers[0].tool(first)
    servers[1].tool(second)
    gone = weakref.ref(first)
    del first, servers
    gc.collect()

    assert gone() is None
    Server("c").tool(second)


def test_a_class_that_failed_leaves_nothing_half_made(module: types.ModuleType) -> None:
    exec(
        "@dataclass\nclass Outer:\n    inner: 'Inner'\n    rest: 'Missing'\n"
        "@dataclass\nclass Inner:\n    outer: 'list[Outer]'",
        module.__dict__,
    )
    for cls in (module.Outer, module.Inner):
        with pytest.raises(Unsupported, match="Missing"):
            converter(cls)

    exec("Missing = int", module.__dict__)

    assert converter(module.Inner).load({"outer": []}, "v") == module.Inner([])
    assert converter(module.Outer).load({"inner": {"outer": []}, "rest": 1}, "v").rest == 1


def test_a_class_that_nothing_can_enforce_is_refused_each_time() -> None:
    class Opaque:
        pass

    def take(value: Opaque) -> None: ...

    for _ in range(2):
        with pytest.raises(SignatureError, match="parameter 'value'"):
            Server("s").tool(take)


@pytest.mark.parametrize("annotation", [Person, Line, Colour, list[Person], Optional[Line]])
def test_no_tool_shares_a_part_of_its_schema_with_another(annotation: Any) -> None:
    def schemas() -> list[Any]:
        server, _ = described(lambda: annotation)
        (tool,) = server.features.tools.registry.definitions()
        return [tool.input_schema, tool.output_schema]

    ours, others = schemas(), schemas()
    assert ours == others

    shared = parts(ours) & parts(others)

    assert not shared


def parts(value: Any) -> set[int]:
    """The ids of all objects and arrays inside."""
    inner = [part for item in members_of(value) for part in parts(item)]
    return {id(value), *inner} if is_object(value) or is_list(value) else set()


async def test_tools_that_share_a_type_convert_alike() -> None:
    server = Server("s")

    @server.tool
    def first(line: Line) -> Line:
        return line

    @server.tool
    def second(line: Line, point: Point, person: Person) -> list[Any]:
        return [line.start.x, point.x, person.name]

    line = {"start": {"x": 1, "y": 2}, "end": {"x": 3, "y": 4}, "colour": "red"}
    async with Client(server) as client:
        assert (await client.call_tool("first", {"line": line})).structured_content == line
        called = {"line": line, "point": {"x": 5}, "person": {"name": "Ada"}}
        assert (await client.call_tool("second", called)).structured_content == [1, 5, "Ada"]


def test_types_that_most_parameters_have_are_nobodys() -> None:
    assert converter(str) is converter(str, closed=True)
    assert isinstance(converter(int), Plain)
