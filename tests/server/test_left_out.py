"""What comes in for a dataclass is as Python would have made it: every field is on the instance, defaults as well."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
import pytest

from modelwire import Client, Server
from modelwire.server.converters import converter
from modelwire.server.signature import compile_signature
from tests.wire import every_revision, session_talk


@dataclass
class Base:
    a: int
    b: int = 1


@dataclass
class Derived(Base):
    c: str = "c"


@dataclass(frozen=True)
class Frozen:
    a: int
    b: str = "b"


@dataclass(slots=True)
class Slotted:
    a: int
    b: str = "b"


@dataclass
class Tree:
    kids: list[Tree] = field(default_factory=list)
    name: str = "leaf"


class Held(msgspec.Struct):
    inside: Base
    also: Base | None = None


@dataclass
class Seeing:
    a: int
    b: int = 1

    def __post_init__(self) -> None:
        self.b += self.a


def bound(annotation: Any, text: bytes, **options: Any) -> Any:
    def take(value) -> None: ...  # type: ignore[no-untyped-def]

    take.__annotations__["value"] = annotation
    args, _ = compile_signature(take, name="take", **options).bind(b'{"value":%s}' % text)
    return args[0]


@pytest.mark.parametrize(
    ("annotation", "text", "expected"),
    [
        (Base, b'{"a":2}', b'{"a":2,"b":1}'),
        (Base, b'{"a":2,"b":3}', b'{"a":2,"b":3}'),
        (Derived, b'{"a":2}', b'{"a":2,"b":1,"c":"c"}'),
        (Frozen, b'{"a":2}', b'{"a":2,"b":"b"}'),
        (Slotted, b'{"a":2}', b'{"a":2,"b":"b"}'),
        (Seeing, b'{"a":2}', b'{"a":2,"b":3}'),
        (list[Base], b'[{"a":2}]', b'[{"a":2,"b":1}]'),
        (dict[str, tuple[Base, int]], b'{"x":[{"a":2},3]}', b'{"x":[{"a":2,"b":1},3]}'),
        (Base | None, b'{"a":2}', b'{"a":2,"b":1}'),
        (Held, b'{"inside":{"a":2},"also":{"a":3}}', b'{"inside":{"a":2,"b":1},"also":{"a":3,"b":1}}'),
        (
            Tree,
            b'{"kids":[{"name":"a"},{}]}',
            b'{"kids":[{"name":"a","kids":[]},{"kids":[],"name":"leaf"}],"name":"leaf"}',
        ),
    ],
    ids=str,
)
def test_a_default_that_was_not_given_is_on_the_instance(annotation: Any, text: bytes, expected: bytes) -> None:
    assert msgspec.json.decode(msgspec.json.encode(bound(annotation, text))) == msgspec.json.decode(expected)


def test_a_schema_by_hand_changes_nothing_of_it() -> None:
    value = bound(list[Base], b'[{"a":2}]', input_schema={"type": "object"})
    assert vars(value[0]) == {"a": 2, "b": 1}


def test_an_argument_that_was_coerced_has_its_defaults_too() -> None:
    assert vars(bound(Base, b'"{\\"a\\":2.0}"')) == {"a": 2, "b": 1}


def test_inside_what_is_converted_member_by_member_it_is_the_same() -> None:
    node = converter(dict[Literal["x"], Base])
    assert vars(node.read(b'{"x":{"a":2}}', "value")["x"]) == {"a": 2, "b": 1}


@every_revision
async def test_a_tool_that_returns_what_it_got_returns_all_of_it(revision: str) -> None:
    server = Server("s")

    @server.tool
    async def same(value: Base) -> Base:
        return value

    async with session_talk(server, revision) as talk:
        assert await talk.text("same", {"value": {"a": 2}}) == '{"a":2,"b":1}'


async def test_a_client_gets_instances_that_have_everything() -> None:
    server = Server("s")

    @server.tool
    async def short() -> dict[str, int]:
        return {"a": 2}

    async with Client(server) as client:
        assert vars(await client.call("short", {}, returns=Base)) == {"a": 2, "b": 1}
