"""`Header` on parameters and fields: the schema that clients read it from, what is enforced, and what is refused."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass, field
from datetime import date
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, Optional, TypedDict, Union
from uuid import UUID

import annotated_types
import attrs
import msgspec
import pydantic
import pytest

from modelwire import Client, ConfigError, Header, Name, Server, SignatureError
from modelwire import types as t
from modelwire.rules.param_headers import MAX_INTEGER, param_headers
from modelwire.server.signature import ArgumentErrors, Signature, compile_signature
from tests.wire import every_revision, session_talk

UserId = NewType("UserId", int)
LIMITS = {"minimum": -MAX_INTEGER, "maximum": MAX_INTEGER}
OUTSIDE = [MAX_INTEGER + 1, -MAX_INTEGER - 1, 10**40, str(MAX_INTEGER + 1)]


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Zone:
    id: Annotated[int, Header("Zone")]
    name: str = "main"


@dataclass
class Place:
    zone: Zone
    planet: Annotated[Literal["earth", "mars"], Header("Planet")] = "earth"


@dataclass
class Tree:
    label: Annotated[str, Header("Label")]
    children: list[Tree] = field(default_factory=list)


class Dict(TypedDict):
    region: Annotated[str, Header("Region")]
    count: NotRequired[Annotated[int, Header("Count")]]


class Row(NamedTuple):
    region: Annotated[str, Header("Region")]
    count: Annotated[int, Header("Count")] = 1


class Struct(msgspec.Struct):
    region: Annotated[str, Header("Region")]
    count: Annotated[int | None, Header("Count")] = None


@attrs.define
class Attrs:
    region: Annotated[str, Header("Region")]
    count: Annotated[int, Header("Count"), annotated_types.Ge(1)] = 1


class Model(pydantic.BaseModel):
    region: Annotated[str, Header("Region")]
    count: Annotated[int | None, Header("Count")] = None


def taking(annotation: Any, default: Any = ...) -> Any:
    def function(p: Any) -> None: ...

    function.__annotations__["p"] = annotation
    function.__defaults__ = None if default is ... else (default,)
    return function


def compiled(annotation: Any, default: Any = ...) -> Signature:
    return compile_signature(taking(annotation, default), name="f")


def schema(annotation: Any, default: Any = ...) -> dict[str, Any]:
    signature = compiled(annotation, default)
    assert "$defs" not in signature.input_schema
    return signature.input_schema["properties"]["p"]


def refused(annotation: Any) -> str:
    with pytest.raises(SignatureError) as caught:
        compiled(annotation)
    return str(caught.value)


P = Header("P")


@pytest.mark.parametrize(
    ("annotation", "default", "expected"),
    [
        (Annotated[str, P], ..., {"type": "string"}),
        (Annotated[bool, P], False, {"type": "boolean", "default": False}),
        (Annotated[int, P], ..., {"type": "integer", **LIMITS}),
        (Annotated[Optional[str], P], None, {"type": "string"}),
        (Optional[Annotated[str, P]], None, {"type": "string"}),
        (Annotated[Optional[str], P], ..., {"type": "string"}),
        (Annotated[str | None, P], "x", {"type": "string", "default": "x"}),
        (Annotated[str, P], None, {"type": "string"}),
        (Annotated[Optional[int], P], None, {"type": "integer", **LIMITS}),
        (Annotated[UserId, P], ..., {"type": "integer", **LIMITS}),
        (Annotated[int, msgspec.Meta(ge=0, lt=9), P], ..., {"type": "integer", "minimum": 0, "exclusiveMaximum": 9}),
        (Annotated[int, P, annotated_types.Gt(0)], ...,
         {"type": "integer", "exclusiveMinimum": 0, "maximum": MAX_INTEGER}),
        (Annotated[Annotated[int, msgspec.Meta(le=5)] | None, P], 1,
         {"type": "integer", "minimum": -MAX_INTEGER, "maximum": 5, "default": 1}),
        (Annotated[Literal["a", "b"], P], ..., {"type": "string", "enum": ["a", "b"]}),
        (Annotated[Literal["a", None], P], ..., {"type": "string", "enum": ["a"]}),
        (Annotated[Literal[1, 2], P], 1, {"type": "integer", "enum": [1, 2], "default": 1}),
        (Annotated[Literal[True], P], ..., {"type": "boolean", "enum": [True]}),
        (Annotated[Colour, P], Colour.RED, {"type": "string", "enum": ["red", "blue"], "default": "red"}),
        (Annotated[Optional[Colour], P], ..., {"type": "string", "enum": ["red", "blue"]}),
        (Annotated[Level, P], ..., {"type": "integer", "enum": [1, 2]}),
        (Annotated[date, P], ..., {"type": "string", "format": "date"}),
        (Annotated[UUID, P], ..., {"type": "string", "format": "uuid"}),
        (Annotated[str, "what it is", P, Name("from")], ..., {"type": "string", "description": "what it is"}),
        (Annotated[pydantic.conint(strict=True, ge=2), P], ...,
         {"type": "integer", "minimum": 2, "maximum": MAX_INTEGER}),
        (Annotated[str, pydantic.Field(max_length=3), P], ..., {"type": "string", "maxLength": 3}),
    ],
    ids=str,
)  # fmt: skip
def test_a_parameter_says_its_header_beside_one_type(annotation: Any, default: Any, expected: dict[str, Any]) -> None:
    found = compiled(annotation, default).input_schema
    assert "$defs" not in found
    (name,) = found["properties"]
    assert found["properties"][name] == {**expected, "x-mcp-header": "P"}
    assert param_headers(found) == {"P": (name,)}


@pytest.mark.parametrize(
    "annotation",
    [
        int,
        Optional[int],
        UserId,
        Annotated[int, msgspec.Meta(ge=-(2**60), le=2**60)],
        Annotated[int, msgspec.Meta(gt=-(2**60))],
        pydantic.conint(strict=True),
        Annotated[int, annotated_types.Predicate(bool)],
    ],
    ids=str,
)
def test_integers_are_limited_to_what_every_peer_can_hold(annotation: Any) -> None:
    signature = compiled(Annotated[annotation, P])
    for value in (MAX_INTEGER, -MAX_INTEGER):
        assert signature.bind(json.dumps({"p": value}).encode())[0] == [value]
    for value in OUTSIDE:
        with pytest.raises(ArgumentErrors, match="p: expected an integer"):
            signature.bind(json.dumps({"p": value}).encode())


def test_the_plain_decoder_still_does_it() -> None:
    assert compiled(Annotated[int, P]).values is not None
    assert compiled(Annotated[Optional[str], P], None).bind(b'{"p":null}')[0] == [None]


@pytest.mark.parametrize("cls", [Dict, Row, Struct, Attrs, Model])
def test_every_kind_of_class_may_have_headers_on_its_fields(cls: Any) -> None:
    found = schema(cls)
    assert found["properties"]["region"]["x-mcp-header"] == "Region"
    assert found["properties"]["count"]["x-mcp-header"] == "Count"
    signature = compiled(cls)
    assert signature.bind(b'{"p":{"region":"eu","count":3}}')
    for value in OUTSIDE[:3]:
        with pytest.raises(ArgumentErrors, match="count: expected an integer"):
            signature.bind(json.dumps({"p": {"region": "eu", "count": value}}).encode())


def test_classes_within_classes_are_laid_open() -> None:
    for annotation, default in ((Place, ...), (Optional[Place], None)):
        signature = compiled(annotation, default)
        assert param_headers(signature.input_schema) == {"Zone": ("p", "zone", "id"), "Planet": ("p", "planet")}
        assert "$defs" not in signature.input_schema
        assert signature.bind(b'{"p":{"zone":{"id":7}}}')[0] == [Place(Zone(7))]


def test_what_has_no_header_is_still_referred_to() -> None:
    @dataclass
    class Plain:
        x: int

    def function(zone: Zone, plain: list[Plain], other: Plain) -> Place:
        raise NotImplementedError

    signature = compile_signature(function, name="f")
    assert list(signature.input_schema["$defs"]) == ["Plain"]
    assert signature.input_schema["properties"]["other"] == {"$ref": "#/$defs/Plain"}
    assert "x-mcp-header" not in json.dumps(signature.output_schema)


@pytest.mark.parametrize(
    ("annotation", "said"),
    [
        (Annotated[float, P], "f: parameter 'p': its Header marks a parameter of type number"),
        (Annotated[list[str], P], "f: parameter 'p': its Header marks a parameter of type array"),
        (Annotated[dict[str, str], P], "type object"),
        (Annotated[Any, P], "type any"),
        (Annotated[None, P], "type null alone"),
        (Annotated[Zone, P], "f: parameter 'p': its Header marks a parameter of type object"),
        (Annotated[Union[str, int], P], "type integer or string"),
        (Annotated[Union[int, float], P], "type integer or number"),
        (Annotated[Literal["a", 1], P], "type integer or string"),
        (Annotated[Literal[9007199254740993], P], "beyond"),
        (Annotated[str, Header("")], "f: parameter 'p': its Header is empty"),
        (Annotated[str, Header("a b")], "f: parameter 'p': its Header is 'a b', which is no name of a header"),
        (Annotated[str, Header("a\r\nX-Evil: 1")], "no name of a header"),
        (Annotated[str, Header("Région")], "no name of a header"),
        (Annotated[str, Header(None)], "f: parameter 'p': its Header is no text"),  # type: ignore[arg-type]
        (list[Annotated[str, P]], "f: parameter 'p': Header('P') marks a field"),
        (dict[str, Annotated[str, P]], "Header('P') marks a field"),
        (Union[Annotated[str, P], list[Annotated[int, P]]], "Header('P') marks a field"),
        (list[Zone], "f: parameter 'p' (Zone.id): its Header stands where no client looks for it"),
        (Zone | int, "f: parameter 'p' (Zone.id): its Header stands where no client looks for it"),
        (Optional[Zone], "f: parameter 'p' (Zone.id): its Header stands"),
        (dict[str, Place], "f: parameter 'p' (Place.planet): its Header stands"),
        (Tree, "f: parameter 'p' (Tree.label): its Header stands"),
    ],
    ids=str,
)
def test_a_rule_that_is_broken_is_told_at_registration(annotation: Any, said: str) -> None:
    assert said in refused(annotation)


def test_two_parameters_of_one_header_are_refused_in_whatever_case() -> None:
    def function(a: Annotated[str, Header("Region")], b: Annotated[str, Header("REGION")]) -> None: ...

    with pytest.raises(SignatureError, match="^f: parameter 'b': its Header is 'REGION', which 'a' has already"):
        compile_signature(function, name="f")

    def twice(a: Zone, b: Zone) -> None: ...

    with pytest.raises(SignatureError, match=r"^f: parameter 'b\.id': its Header is 'Zone', which 'a\.id' has already"):
        compile_signature(twice, name="f")


def test_only_tools_have_parameters_that_headers_repeat() -> None:
    server = Server("s")
    with pytest.raises(SignatureError, match="parameter 'p' has a Header, and only a tool's"):
        server.add_prompt(taking(Annotated[str, P]), name="f")
    with pytest.raises(SignatureError, match="parameter 'p' has a Header, and only a tool's"):
        server.add_resource("x://{p}", taking(Annotated[str, P]), name="f")


def test_a_result_and_a_form_are_not_marked() -> None:
    def function() -> Zone:
        return Zone(1)

    signature = compile_signature(function, name="f")
    assert "x-mcp-header" not in json.dumps(signature.output_schema)
    assert signature.check_result(Zone(2**60)) == b'{"id":1152921504606846976,"name":"main"}'


GIVEN = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}


@pytest.mark.parametrize(
    "mark",
    [
        {"type": "number", "x-mcp-header": "A"},
        {"type": "string", "x-mcp-header": "a b"},
        {"items": {"x-mcp-header": "A"}},
    ],
)
def test_schemas_given_by_hand_keep_the_same_rules(mark: dict[str, Any]) -> None:
    server = Server("s")
    given = {"type": "object", "properties": {"ok": {"type": "string"}, "bad": mark}}
    with pytest.raises(ConfigError, match="tool 'f': inputSchema: x-mcp-header at #/properties/bad"):
        server.add_tool(t.Tool("f", given), lambda arguments: "")
    with pytest.raises(ConfigError, match="tool 'f': inputSchema: x-mcp-header at #/properties/bad"):
        server.add_tool(lambda bad: "", name="f", input_schema=given)


def test_a_marker_beside_a_schema_given_by_hand_is_refused() -> None:
    with pytest.raises(SignatureError, match='"x-mcp-header"'):
        Server("s").add_tool(taking(Annotated[str, P]), name="f", input_schema=GIVEN)


async def test_integers_of_a_schema_given_by_hand_are_limited_too() -> None:
    server = Server("s")
    number = {"type": "integer", "x-mcp-header": "N"}
    given = {"type": "object", "properties": {"n": number, "in": {"type": "object", "properties": {"m": {**number, "x-mcp-header": "M"}}}}}  # noqa: E501  # fmt: skip
    server.add_tool(t.Tool("low", given), lambda arguments: "ok")
    server.add_tool(lambda **rest: "ok", name="high", input_schema=given)
    async with session_talk(server, "2026-07-28") as talk:
        for tool in ("low", "high"):
            for good in ({"n": MAX_INTEGER, "in": {"m": -MAX_INTEGER}}, {}, {"in": {}}):
                assert not (await talk.call(tool, good)).get("isError")
            for bad in ({"n": MAX_INTEGER + 1}, {"in": {"m": -MAX_INTEGER - 1}}):
                result = await talk.call(tool, bad)
                assert result["isError"]
                assert "expected an integer from -9007199254740991 to 9007199254740991" in result["content"][0]["text"]


@every_revision
async def test_lists_carry_the_marks_on_every_revision(revision: str) -> None:
    server = Server("s")

    @server.tool
    def where(region: Annotated[str, Header("Region")], place: Place) -> str:
        return f"{region} {place.zone.id}"

    async with session_talk(server, revision) as talk:
        (tool,) = (await talk.result("tools/list"))["tools"]
        assert param_headers(tool["inputSchema"]) == {
            "Region": ("region",), "Zone": ("place", "zone", "id"), "Planet": ("place", "planet")
        }  # fmt: skip
        result = await talk.call("where", {"region": "eu", "place": {"zone": {"id": 3}}})
        assert result["content"][0]["text"] == "eu 3"


async def test_a_client_without_http_leaves_no_tool_out() -> None:
    """ "Clients using other transports (e.g., stdio) MAY ignore `x-mcp-header` annotations entirely"."""
    server = Server("s")
    server.add_tool(lambda p: "", name="plain")
    tool = server.features.tools.registry.get("plain")
    assert tool is not None
    tool.tool.input_schema = {"type": "object", "properties": {"p": {"type": "number", "x-mcp-header": "not a token"}}}
    async with Client(server) as client:
        assert [tool.name for tool in await client.list_tools()] == ["plain"]
