"""Resources, prompts and lists: odd URIs, cursors, arguments that are no strings, and the codes of what is wrong."""

from __future__ import annotations

import asyncio
import datetime
import decimal
import enum
import json
import uuid
from dataclasses import dataclass
from typing import Any, Literal, Optional

import pytest

from modelwire import Client, InvalidParams, ProtocolViolation, ResourceNotFound, Server
from modelwire.client import lists
from tests.fake_server import talking
from tests.wire import MODERN, every_revision, modern_meta, session_talk

# --------------------------------------------------------------------------------------------------- codes


class Colour(enum.Enum):
    RED = "red"


class Size(enum.StrEnum):
    LARGE = "l"


@dataclass
class Point:
    x: int


def strict_server() -> Server:
    server = Server("s")

    @server.prompt
    def ask(
        n: int,
        ratio: float = 1.0,
        sure: bool = False,
        size: Literal["s", "l"] = "s",
        colour: Colour = Colour.RED,
        numbers: list[int] = [],  # noqa: B006
        point: Optional[Point] = None,
        word: str = "",
    ) -> str:
        return str(n)

    @server.resource("c://q/{n}")
    def number(n: int) -> str:
        return str(n)

    @server.resource("c://f/{ratio}/{sure}")
    def several(ratio: float, sure: bool) -> str:
        return f"{ratio} {sure}"

    @server.resource("c://c/{colour}")
    def choice(colour: Colour) -> str:
        return colour.name

    @server.resource("c://w/{size}{?page}")
    def window(size: Literal["s", "l"], page: int = 1) -> str:
        return f"{size} {page}"

    return server


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (None, "n"),
        ({}, "n"),
        ({"word": "x"}, "n"),
        ({"n": "x"}, "n"),
        ({"n": ""}, "n"),
        ({"n": "1.5"}, "n"),
        ({"n": "null"}, "n"),
        ({"n": "[1]"}, "n"),
        ({"n": "NaN"}, "n"),
        ({"n": "1", "ratio": "much"}, "ratio"),
        ({"n": "1", "ratio": "NaN"}, "ratio"),
        ({"n": "1", "sure": "perhaps"}, "sure"),
        ({"n": "1", "size": "m"}, "size"),
        ({"n": "1", "colour": "blue"}, "colour"),
        ({"n": "1", "numbers": "1"}, "numbers"),
        ({"n": "1", "numbers": '["x"]'}, "numbers"),
        ({"n": "1", "numbers": "[1"}, "numbers"),
        ({"n": "1", "point": "{}"}, "point"),
        ({"n": "1", "point": '{"x":"a"}'}, "point"),
        ({"n": "1", "surplus": "2"}, "surplus"),
        ({"n": "1", "N": "2"}, "N"),
    ],
    ids=str,
)
@every_revision
async def test_a_bad_argument_of_a_prompt_is_invalid_params_and_named(
    revision: str, arguments: dict[str, str] | None, named: str
) -> None:
    params = {"name": "ask"} | ({} if arguments is None else {"arguments": arguments})
    async with session_talk(strict_server(), revision) as talk:
        error = await talk.error("prompts/get", params)
        assert error["code"] == -32602
        assert named in error["message"]
        assert await talk.result("prompts/get", {"name": "ask", "arguments": {"n": "5"}})


@pytest.mark.parametrize("name", ["nobody", "", "ASK", "ask ", "../ask", "日本", "x" * 5000])
@every_revision
async def test_an_unknown_prompt_is_invalid_params(revision: str, name: str) -> None:
    async with session_talk(strict_server(), revision) as talk:
        assert (await talk.error("prompts/get", {"name": name}))["code"] == -32602


@pytest.mark.parametrize(
    "uri",
    [
        "c://q/abc", "c://q/1.5", "c://q/null", "c://q/NaN", "c://q/%5B1%5D", "c://q/1%20x",
        "c://f/much/true", "c://f/1.0/perhaps", "c://c/blue", "c://c/RED", "c://w/m", "c://w/s?page=x", "c://w/s?page=",
    ],
)  # fmt: skip
@every_revision
async def test_a_variable_that_does_not_fit_is_invalid_params(revision: str, uri: str) -> None:
    async with session_talk(strict_server(), revision) as talk:
        assert (await talk.error("resources/read", {"uri": uri}))["code"] == -32602


@pytest.mark.parametrize(
    "uri",
    ["", "nothing", "c:", "c://q", "c://q/", "c://q/1/2", "C://q/1x", "file:///etc/passwd", "x" * 5000, "c://q/%"],
)
@every_revision
async def test_an_unknown_resource_is_not_found_and_named(revision: str, uri: str) -> None:
    async with session_talk(strict_server(), revision) as talk:
        error = await talk.error("resources/read", {"uri": uri})
        assert error["code"] == (-32602 if revision == MODERN else -32002)
        assert error["data"] == {"uri": uri}


@every_revision
async def test_a_client_tells_an_unknown_resource_from_a_bad_argument(revision: str) -> None:
    async with Client(strict_server(), revision=revision) as client:
        with pytest.raises(ResourceNotFound):
            await client.read_resource("c://nothing")
        with pytest.raises(InvalidParams) as refused:
            await client.get_prompt("ask", {"n": "x"})
        assert not isinstance(refused.value, ResourceNotFound)
        with pytest.raises(InvalidParams):
            await client.get_prompt("nobody")


# --------------------------------------------------------------------------------------------------- templates

TEMPLATES = [
    "file:///docs/café/{name}",
    "file:///docs/caf%C3%A9/{name}",
    "file:///docs/caf%c3%a9/{name}",
]
SPELLINGS = ["file:///docs/caf%C3%A9/", "file:///docs/caf%c3%a9/", "file:///docs/café/"]


def reading(template: str) -> Server:
    server = Server("s")

    @server.resource(template)
    def read(name: str) -> str:
        return name

    return server


async def read(talk: Any, uri: str) -> str:
    (content,) = (await talk.result("resources/read", {"uri": uri}))["contents"]
    assert content["uri"] == uri
    return content["text"]


@pytest.mark.parametrize("template", TEMPLATES)
@every_revision
async def test_a_template_is_read_in_every_spelling_of_its_literals(revision: str, template: str) -> None:
    async with session_talk(reading(template), revision) as talk:
        (listed,) = (await talk.result("resources/templates/list"))["resourceTemplates"]
        assert listed["uriTemplate"] == template
        for spelling in SPELLINGS:
            assert await read(talk, spelling + "a.txt") == "a.txt"


@pytest.mark.parametrize(
    ("template", "uris"),
    [
        ("x://my docs/{name}", ["x://my%20docs/a.txt", "x://my docs/a.txt"]),
        ("x://日本/{name}", ["x://%E6%97%A5%E6%9C%AC/a.txt", "x://日本/a.txt", "x://%e6%97%a5本/a.txt"]),
        ("x://a/{name}/日 本", ["x://a/a.txt/%E6%97%A5%20%E6%9C%AC", "x://a/a.txt/日 本"]),
        ("x://é/{name}.é", ["x://%C3%A9/a.txt.%C3%A9", "x://é/a.txt.é"]),
        ("x://a~b/{name}", ["x://a~b/a.txt", "x://a%7Eb/a.txt", "x://a%7eb/a.txt"]),
        ("x://a%7Eb/{name}", ["x://a~b/a.txt", "x://a%7Eb/a.txt"]),
        ("x://docs/%41/{name}", ["x://docs/A/a.txt", "x://docs/%41/a.txt"]),
        ("x://docs/A/{name}", ["x://docs/A/a.txt", "x://docs/%41/a.txt"]),
        ('x://"quoted"/{name}', ["x://%22quoted%22/a.txt", 'x://"quoted"/a.txt']),
        ("x://a😀/{+name}", ["x://a%F0%9F%98%80/a.txt", "x://a😀/a.txt"]),
        ("x://é{?name}", ["x://%C3%A9?name=a.txt", "x://é?name=a.txt"]),
    ],
)
async def test_equivalent_uris_are_one_uri_to_a_template(template: str, uris: list[str]) -> None:
    async with session_talk(reading(template), "2025-11-25") as talk:
        for uri in uris:
            assert await read(talk, uri) == "a.txt"


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("x://a/{name}", "x://a%2Fa.txt"),  # an encoded delimiter is data (RFC 3986, 2.2)
        ("x://a%2Fb/{name}", "x://a/b/a.txt"),
        ("x://caf%C3%A9/{name}", "x://caf%E9/a.txt"),  # Latin-1 is another name
        ("x://café/{name}", "x://cafe%CC%81/a.txt"),  # and so is another normal form
        ("x://café/{name}", "x://caf%25C3%25A9/a.txt"),
        ("x://A/{name}", "x://a/a.txt"),
    ],
)
@every_revision
async def test_what_is_no_spelling_of_the_same_uri_is_not_found(revision: str, template: str, uri: str) -> None:
    async with session_talk(reading(template), revision) as talk:
        error = await talk.error("resources/read", {"uri": uri})
        assert (error["code"], error["data"]) == (-32602 if revision == MODERN else -32002, {"uri": uri})


@pytest.mark.parametrize(
    ("encoded", "value"),
    [
        ("a%20b", "a b"), ("a b", "a b"), ("%E6%97%A5%E6%9C%AC.txt", "日本.txt"), ("日本.txt", "日本.txt"),
        ("100%25", "100%"), ("%2541", "%41"), ("a+b", "a+b"), ("a%2Bb", "a+b"), ("%F0%9F%98%80", "😀"),
        ("a%3Fb%23c", "a?b#c"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("template", ["x://docs/{name}", "x://café/{name}", "x://docs/{+name}"])
async def test_a_value_is_decoded_exactly_once(template: str, encoded: str, value: str) -> None:
    async with session_talk(reading(template), "2025-11-25") as talk:
        assert await read(talk, template.partition("{")[0] + encoded) == value


# --------------------------------------------------------------------------------------------------- odd URIs

ODD = [
    "users/me", "urn:x:y", "HTTP://Ex.com", "http://ex.com", "http://ex.com/", "weird uri", "日本", "a", "?", "#", " ",
    "HTTPS://EXAMPLE.com:443/%7Euser/./a/../b", "mailto:a@b.c", "file:relative", "x://h/%41", "x://h/A", "//host/path",
    "x:y z", "data:text/plain,a%20b", "tag:a,2020:b", "X-Scheme://UPPER", "http://[::1]:80/", "x://h/a//b/", "../up",
]  # fmt: skip


@every_revision
async def test_uris_are_kept_as_they_were_written(revision: str) -> None:
    server = Server("s")
    for number, uri in enumerate(ODD):
        server.add_resource(uri, lambda number=number: str(number), name=f"n{number}")
    async with session_talk(server, revision) as talk:
        listed = (await talk.result("resources/list"))["resources"]
        assert [item["uri"] for item in listed] == ODD
        for number, uri in enumerate(ODD):
            assert await read(talk, uri) == str(number)


@every_revision
async def test_a_client_keeps_uris_as_they_are_both_ways(revision: str) -> None:
    server = Server("s")
    for uri in ODD:
        server.add_resource(uri, lambda uri=uri: uri, name="n")
    async with Client(server, revision=revision) as client:
        assert [item.uri for item in await client.list_resources()] == ODD
        for uri in ODD:
            (content,) = (await client.read_resource(uri)).contents
            assert (content.uri, content.text) == (uri, uri)  # type: ignore[union-attr]


async def test_a_client_sends_the_uri_that_it_is_given() -> None:
    async with talking() as (client, fake):
        for uri in ODD:
            reads = asyncio.create_task(client.read_resource(uri))
            request = await fake.expect("resources/read")
            assert request["params"]["uri"] == uri
            await fake.result(request, {"contents": [{"uri": uri, "text": "x"}]})
            assert (await reads).contents[0].uri == uri


@every_revision
async def test_an_update_names_the_uri_as_it_was_subscribed_to(revision: str) -> None:
    server = Server("s")
    for uri in ODD:
        server.add_resource(uri, lambda: "", name="n")
    async with Client(server, revision=revision) as client, client.listen(uris=ODD) as changes:
        for uri in ODD:
            server.changed(uri)
            assert getattr(await anext(aiter(changes)), "uri", None) == uri


# --------------------------------------------------------------------------------------------------- cursors

LISTS: list[tuple[str, str, Any]] = [
    ("tools/list", "tools", Client.list_tools),
    ("resources/list", "resources", Client.list_resources),
    ("resources/templates/list", "resourceTemplates", Client.list_resource_templates),
    ("prompts/list", "prompts", Client.list_prompts),
]
EACH_LIST = pytest.mark.parametrize(("method", "field", "list_them"), LISTS, ids=[row[0] for row in LISTS])


@pytest.mark.parametrize(
    "cursors",
    [
        [""],
        ["", ""],
        ["c", "c"],
        ["c", "c", "c", "c"],
        ["a", "b", "a", "b"],
        ["", "c", ""],
        ["null", "0", "false", " "],
        ["x" * 10_000],
        ["日本\u0000"],
    ],
    ids=lambda cursors: "-".join(cursors)[:20],
)
@EACH_LIST
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_pages_are_followed_whatever_the_cursors_are(
    revision: str, method: str, field: str, list_them: Any, cursors: list[str]
) -> None:
    """Clients must not "make any determination based on cursor value other than whether a non-null value was provided"
    (2026-07-28, server/utilities/pagination)."""
    async with talking(revision) as (client, fake):
        listing = asyncio.create_task(list_them(client))
        for number, (asked, following) in enumerate(zip([None, *cursors], [*cursors, None])):
            request = await fake.expect(method)
            assert request.get("params", {}).get("cursor") == asked
            assert ("cursor" in request.get("params", {})) is (asked is not None)
            item = {"name": f"n{number}", "inputSchema": {"type": "object"}, "uri": "a:b", "uriTemplate": "a:b"}
            more = {} if following is None else {"nextCursor": following}
            await fake.result(request, {field: [item], "ttlMs": 0, "cacheScope": "private", **more})
        assert [found.name for found in await listing] == [f"n{number}" for number in range(len(cursors) + 1)]


@EACH_LIST
async def test_a_cursor_of_null_is_the_end(method: str, field: str, list_them: Any) -> None:
    async with talking() as (client, fake):
        listing = asyncio.create_task(list_them(client))
        await fake.result(await fake.expect(method), {field: [], "nextCursor": None})
        assert await listing == []


@pytest.mark.parametrize("cursor", [lambda number: str(number), lambda number: "c", lambda number: ""])
@EACH_LIST
async def test_a_list_without_an_end_is_an_error_and_not_a_shorter_list(
    method: str, field: str, list_them: Any, cursor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "MAX_PAGES", 5)
    async with talking() as (client, fake):
        listing = asyncio.create_task(list_them(client))
        for number in range(5):
            await fake.result(await fake.expect(method), {field: [], "nextCursor": cursor(number)})
        with pytest.raises(ProtocolViolation, match="more than 5 pages"):
            await listing


@pytest.mark.parametrize("page_size", [None, 1])
@pytest.mark.parametrize(
    "cursor", ["garbage", "", "0", "1", "-1", "null", "MQ==", "eyJwYWdlIjogM30=", "日本", "x" * 5000, "\u0000", " "]
)
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_a_cursor_that_was_never_given_out_is_invalid_params(
    revision: str, cursor: str, page_size: int | None
) -> None:
    server = Server("s", page_size=page_size)
    for number in range(3):
        server.add_tool(lambda: "", name=f"t{number}")
        server.add_prompt(lambda: "", name=f"p{number}")
        server.add_resource(f"x://{number}", lambda: "", name="r")
        server.add_resource(f"x://{number}/{{id}}", lambda id: "", name="t")
    async with session_talk(server, revision) as talk:
        for method, _, _ in LISTS:
            assert (await talk.error(method, {"cursor": cursor}))["code"] == -32602


@pytest.mark.parametrize("cursor", [5, True, [], {}, 1.5], ids=str)
@every_revision
async def test_a_cursor_that_is_no_text_is_invalid_params(revision: str, cursor: Any) -> None:
    async with session_talk(strict_server(), revision) as talk:
        params = {"cursor": cursor} | ({"_meta": modern_meta()} if revision == MODERN else {})
        answer = await talk.answer_to({"jsonrpc": "2.0", "id": 1, "method": "prompts/list", "params": params})
        assert answer["error"]["code"] == -32602


@every_revision
async def test_our_client_walks_our_pages(revision: str) -> None:
    server = Server("s", page_size=2)
    for number in range(7):
        server.add_prompt(lambda: "", name=f"p{number}")
    async with Client(server, revision=revision) as client:
        assert [prompt.name for prompt in await client.list_prompts()] == [f"p{number}" for number in range(7)]


# --------------------------------------------------------------------------------------------------- prompt arguments


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("text", "text"), ("", ""), ("5", "5"), ("null", "null"), ('{"a":1}', '{"a":1}'), ("日本 é", "日本 é"),
        (5, "5"), (-1, "-1"), (2.5, "2.5"), (10**30, str(10**30)), (True, "true"), (False, "false"),
        ([1, 2], "[1,2]"), ([], "[]"), (["a", None], '["a",null]'), ({"a": [1]}, '{"a":[1]}'), ({}, "{}"),
        ((1, 2), "[1,2]"), (Point(1), '{"x":1}'), (["日"], '["日"]'), (Colour.RED, "red"),
        (datetime.date(2026, 1, 2), "2026-01-02"), (decimal.Decimal("1.50"), "1.50"),
        (uuid.UUID(int=0), str(uuid.UUID(int=0))), (Size.LARGE, "l"), ([Colour.RED], '["red"]'),
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_a_client_writes_every_prompt_argument_as_a_string(revision: str, value: Any, written: str) -> None:
    async with talking(revision) as (client, fake):
        getting = asyncio.create_task(client.get_prompt("p", {"n": value, "other": "x"}))
        request = await fake.expect("prompts/get")
        assert request["params"]["arguments"] == {"n": written, "other": "x"}
        await fake.result(request, {"messages": []})
        assert (await getting).messages == []


def typed_prompts() -> tuple[Server, list[Any]]:
    server, received = Server("s"), []

    @server.prompt
    def typed(
        n: int = 0,
        ratio: float = 0.0,
        sure: bool = False,
        numbers: list[int] = [],  # noqa: B006
        table: dict[str, Any] = {},  # noqa: B006
        point: Optional[Point] = None,
        colour: Colour = Colour.RED,
        size: Literal["1", "l"] = "l",
        word: str = "",
        perhaps: Optional[str] = None,
        either: int | str = 0,
        anything: Any = None,
    ) -> str:
        received.append((n, ratio, sure, numbers, table, point, colour, size, word, perhaps, either, anything))
        return "asked"

    return server, received


NAMES = "n ratio sure numbers table point colour size word perhaps either anything".split()


@pytest.mark.parametrize(
    ("name", "written", "expected"),
    [
        ("n", "5", 5), ("n", "-5", -5), ("ratio", "2.5", 2.5), ("ratio", "2", 2.0), ("sure", "true", True),
        ("sure", "false", False), ("numbers", "[1,2]", [1, 2]), ("numbers", "[]", []),
        ("table", '{"a":[1]}', {"a": [1]}),
        ("point", '{"x":1}', Point(1)), ("colour", "red", Colour.RED), ("size", "1", "1"), ("word", "5", "5"),
        ("word", "[1]", "[1]"), ("word", "null", "null"), ("word", "", ""), ("perhaps", "null", "null"),
        ("perhaps", '{"a":1}', '{"a":1}'), ("perhaps", "5", "5"), ("either", "x", "x"), ("anything", "[1]", "[1]"),
    ],
    ids=str,
)  # fmt: skip
@every_revision
async def test_a_server_converts_the_strings_to_the_parameters_types(
    revision: str, name: str, written: str, expected: Any
) -> None:
    server, received = typed_prompts()
    async with session_talk(server, revision) as talk:
        await talk.result("prompts/get", {"name": "typed", "arguments": {name: written}})
    value = received[0][NAMES.index(name)]
    assert value == expected
    assert type(value) is type(expected)


@every_revision
async def test_typed_values_come_through_from_client_to_server(revision: str) -> None:
    server, received = typed_prompts()
    values = {
        "n": 5, "ratio": 2.5, "sure": True, "numbers": [1, 2], "table": {"a": [1]}, "point": Point(1),
        "colour": Colour.RED, "size": "1", "word": "5", "perhaps": "null", "either": "x", "anything": "y",
    }  # fmt: skip
    async with Client(server, revision=revision) as client:
        await client.get_prompt("typed", values)
    assert received == [tuple(values.values())]


@every_revision
async def test_arguments_are_listed_with_what_must_be_given(revision: str) -> None:
    async with session_talk(strict_server(), revision) as talk:
        (prompt,) = (await talk.result("prompts/list"))["prompts"]
        assert [item["name"] for item in prompt["arguments"] if item.get("required")] == ["n"]
        assert json.dumps(prompt["arguments"]).count('"name"') == 8
