"""2026-07-28: headers against the body in every form of either, and what is neither of this revision nor of another."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Annotated, Any

import pytest

from modelwire import Header, Server
from tests.server.http.asgi import BOTH, Exchange, Legacy, Modern, modern, serving
from tests.server.http.servers import make
from tests.wire import MODERN, PREFIX, dumps, modern_meta, opening

UNKNOWN = "2099-01-01"


def encoded(text: str | bytes) -> str:
    raw = text if isinstance(text, bytes) else text.encode()
    return f"=?base64?{base64.b64encode(raw).decode()}?="


async def outcome(exchange: Exchange) -> int:
    """The code of the error that a request is answered with, 0 for a result; the status is the one that goes with."""
    found = await exchange.json()
    code = found.get("error", {}).get("code", 0)
    assert exchange.status == {0: 200, -32601: 404}.get(code, 400), found
    assert "mcp-session-id" not in exchange.headers
    return code


def marked() -> Server:
    """A server whose tool has a header for each kind of argument."""
    server = Server("marked")
    deep = {"type": "object", "properties": {"zone": {"type": "string", "x-mcp-header": "Zone"}}}
    schema = {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": deep}}}}

    @server.tool
    def kinds(
        text: Annotated[str | None, Header("Text")] = None,
        number: Annotated[int | None, Header("Number")] = None,
        truth: Annotated[bool | None, Header("Truth")] = None,
    ) -> str:
        return f"{text!r} {number!r} {truth!r}"

    @server.tool(input_schema=schema)
    def nested(**arguments: Any) -> str:
        return json.dumps(arguments)

    @server.tool(name="名前 tool")
    def named() -> str:
        return "named"

    return server


async def called(client: Modern, arguments: str, headers: Mapping[str, str | None], tool: str = "kinds") -> int:
    """Call a tool with arguments that are written as they are given."""
    message = client.message("tools/call", {"name": tool, "arguments": {}})
    body = dumps(message).replace(b'"arguments":{}', b'"arguments":' + arguments.encode())
    return await outcome(client.http.post(body, {**client.headers(message), **headers}))


# ------------------------------------------------------------------ arguments


@pytest.mark.parametrize(
    ("arguments", "headers", "code"),
    [
        ('{"number":42}', {"Number": "42"}, 0),
        ('{"number":42}', {"Number": "42.0"}, 0),
        ('{"number":42.0}', {"Number": "42"}, 0),
        ('{"number":100}', {"Number": "1e2"}, 0),
        ('{"number":1e2}', {"Number": "100"}, 0),
        ('{"number":-0}', {"Number": "0"}, 0),
        ('{"number":0}', {"Number": "-0"}, 0),
        ('{"number":0}', {"Number": "-0.0e5"}, 0),
        ('{"number":9007199254740991}', {"Number": "9007199254740991"}, 0),
        ('{"number":9007199254740991}', {"Number": "9007199254740992"}, -32020),
        ('{"number":9007199254740993}', {"Number": "9007199254740992"}, -32020),
        ('{"number":42}', {"Number": "42.00000000000000000001"}, -32020),
        ('{"number":42}', {"Number": "042"}, 0),
        ('{"number":42}', {"Number": "+42"}, -32020),
        ('{"number":42}', {"Number": "42 "}, 0),
        ('{"number":42}', {"Number": "4 2"}, -32020),
        ('{"number":42}', {"Number": "42,42"}, -32020),
        ('{"number":42}', {"Number": "1e99999999999"}, -32020),
        ('{"number":42}', {"Number": "Infinity"}, -32020),
        ('{"number":42}', {"Number": encoded("42")}, 0),
        ('{"number":42}', {}, -32020),
        ('{"number":null}', {}, 0),
        ('{"number":null}', {"Number": "null"}, -32020),
        ("{}", {}, 0),
        ("{}", {"Number": "42"}, -32020),
        ('{"truth":true}', {"Truth": "true"}, 0),
        ('{"truth":true}', {"Truth": "True"}, -32020),
        ('{"truth":true}', {"Truth": "1"}, -32020),
        ('{"truth":false}', {"Truth": "false"}, 0),
        ('{"truth":false}', {"Truth": ""}, -32020),
        ('{"text":"42.0"}', {"Text": "42"}, -32020),
        ('{"text":"a"}', {"text": "a"}, 0),
        ('{"text":""}', {"Text": ""}, 0),
        ('{"text":""}', {}, -32020),
        ('{"text":" a "}', {"Text": " a "}, -32020),
        ('{"text":" a "}', {"Text": encoded(" a ")}, 0),
        ('{"text":"日本"}', {"Text": encoded("日本")}, 0),
        ('{"text":"ü"}', {"Text": "ü"}, -32020),
        ('{"text":"\\ud800"}', {"Text": encoded("\ufffd")}, 0),
        ('{"text":"a\\nb"}', {"Text": encoded("a\nb")}, 0),
        ('{"text":"a"}', {"Text": "=?BASE64?YQ==?="}, -32020),
        ('{"text":"a"}', {"Text": "=?base64?YQ?="}, -32020),
        ('{"text":"a"}', {"Text": "=?base64?YQ=?="}, -32020),
        ('{"text":"a"}', {"Text": encoded(b"\xff")}, -32020),
        ('{"text":"=?base64?YQ==?="}', {"Text": "=?base64?YQ==?="}, -32020),
        ('{"text":"=?base64?YQ==?="}', {"Text": encoded("=?base64?YQ==?=")}, 0),
        ('{"text":"a","text":"b"}', {"Text": "a"}, -32020),
        ('{"text":"a","text":"b"}', {"Text": "b"}, 0),
        ('{"te\\u0078t":"a"}', {"Text": "b"}, -32020),
    ],
)
async def test_an_argument_and_the_header_that_repeats_it(arguments: str, headers: dict[str, str], code: int) -> None:
    async with modern(marked()) as client:
        assert await called(client, arguments, {f"Mcp-Param-{key}": value for key, value in headers.items()}) == code


@pytest.mark.parametrize(
    ("arguments", "zone", "code"),
    [
        ('{"a":{"b":{"zone":"x"}}}', "x", 0),
        ('{"a":{"b":{"zone":"x"}}}', "y", -32020),
        ('{"a":{"b":{"zone":"x"}}}', None, -32020),
        ('{"a":{"b":{"zone":null}}}', None, 0),
        ('{"a":{"b":{}}}', None, 0),
        ('{"a":{}}', "x", -32020),
        ('{"zone":"x"}', None, 0),
        ('{"zone":"x"}', "x", -32020),
    ],
)
async def test_an_argument_deep_inside_is_found_at_its_path(arguments: str, zone: str | None, code: int) -> None:
    async with modern(marked()) as client:
        assert await called(client, arguments, {"Mcp-Param-Zone": zone}, "nested") == code


async def test_arguments_that_are_no_object_are_told_as_that() -> None:
    async with modern(marked()) as client:
        for arguments in ("[]", "5", '"x"', "null"):
            assert await called(client, arguments, {}) in (-32602, 0)


async def test_headers_of_parameters_that_no_tool_has_are_ignored() -> None:
    async with modern(marked()) as client:
        assert await called(client, "{}", {"Mcp-Param-Other": "\xff", "Mcp-Param-": "x", "Mcp-Paramx": "y"}) == 0
        assert await outcome(client.ask("tools/list", headers={"Mcp-Param-Number": "5"})) == 0


# ------------------------------------------------------------------ what a request is for


@pytest.mark.parametrize(
    ("name", "code"),
    [
        (encoded("名前 tool"), 0),
        ("名前 tool".encode().decode("latin-1"), -32020),
        ("%E5%90%8D%E5%89%8D tool", -32020),
        (encoded("名前 tool") + " ", 0),
        (encoded("名前 Tool"), -32020),
        (None, -32020),
    ],
)
async def test_a_name_of_any_letters(name: str | None, code: int) -> None:
    async with modern(marked()) as client:
        assert await called(client, "{}", {"Mcp-Name": name}, "名前 tool") == code


async def test_names_agree_whether_or_not_they_are_known() -> None:
    async with modern(marked()) as client:
        for method, params in (
            ("tools/call", {"name": "nothing"}),
            ("prompts/get", {"name": "nothing"}),
            ("resources/read", {"uri": "file:///nothing"}),
        ):
            assert await outcome(client.ask(method, params)) == -32602
            assert await outcome(client.ask(method, params, {"Mcp-Name": "kinds"})) == -32020
            assert await outcome(client.ask(method, params, {"Mcp-Name": None})) == -32020


async def test_a_method_that_is_not_here_is_not_found_whatever_it_is_for() -> None:
    async with modern(marked()) as client:
        for method in ("tasks/get", "no/such", "resources/subscribe", "logging/setLevel", "notifications/cancelled"):
            other = Modern(client.http)
            assert await outcome(other.ask(method, {"taskId": "x", "name": "y"}, {"Mcp-Name": "x"})) == -32601
            assert await outcome(other.ask(method, {}, {"Mcp-Method": "tools/list"})) == -32020


async def test_a_body_without_a_name_is_an_error_of_its_params() -> None:
    async with modern(marked()) as client:
        for params in ({}, {"name": None}, {"name": 5}, {"name": ["x"]}):
            other = Modern(client.http)
            message = other.message("tools/call", params)
            headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call"}
            for name in (None, "x"):
                assert await outcome(client.http.post(message, {**headers, "Mcp-Name": name})) == -32602


# ------------------------------------------------------------------ revisions


async def versions(http: Any, header: str | None, body: str | None, method: str = "tools/list", **more: Any) -> int:
    params = {} if body is None else {"_meta": {**modern_meta(), PREFIX + "protocolVersion": body}}
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, **more}}
    return await outcome(http.post(message, {"MCP-Protocol-Version": header, "Mcp-Method": method}))


@pytest.mark.parametrize(
    ("header", "body", "code"),
    [
        (MODERN, MODERN, 0),
        (MODERN, None, -32602),
        (None, MODERN, -32020),
        (MODERN, "2025-11-25", -32020),
        ("2025-11-25", MODERN, -32020),
        ("2024-11-05", MODERN, -32020),
        (MODERN, UNKNOWN, -32020),
        (UNKNOWN, MODERN, -32020),
        (UNKNOWN, "2098-01-01", -32020),
        (UNKNOWN, UNKNOWN, -32022),
        (UNKNOWN, None, -32022),
        ("", "", -32022),
        (None, UNKNOWN, -32020),
        (f"{MODERN},", MODERN, -32020),
        (f"{MODERN}x", MODERN, -32020),
    ],
)
async def test_the_revision_of_the_header_and_of_the_body(header: str | None, body: str | None, code: int) -> None:
    async with serving(marked()) as http:
        assert await versions(http, header, body) == code


async def test_nothing_is_opened_and_nothing_served_without_saying_who_asks() -> None:
    async with serving(marked()) as http:
        for method, params in (("initialize", opening("2025-11-25")), ("ping", {}), ("server/discover", {})):
            assert await versions(http, MODERN, None, method, **params) == -32602
        assert await versions(http, MODERN, MODERN, "initialize", **opening("2025-11-25")) == -32601
        assert await versions(http, MODERN, MODERN, "ping") == -32601
        for meta in ({}, {PREFIX + "protocolVersion": MODERN}, {PREFIX + "protocolVersion": 5}, None, 5, []):
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
            headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"}
            assert await outcome(http.post(message, headers)) == -32602


async def test_a_session_s_requests_may_not_say_another_revision_inside() -> None:
    async with serving(make().server) as http:
        old = await Legacy(http).open()
        message = Modern(http).message("tools/list")
        for version in ("2025-11-25", None):
            headers = old.headers({"MCP-Protocol-Version": version, "Mcp-Method": "tools/list"})
            assert await outcome(http.post(message, headers)) == -32020
        assert await old.ask("tools/list").done() == 200


@pytest.mark.parametrize("header", ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Param-Number"])
async def test_a_routing_header_twice_is_a_mismatch_even_where_both_agree(header: str) -> None:
    async with modern(marked()) as client:
        message = client.message("tools/call", {"name": "kinds", "arguments": {"number": 5}})
        pairs = [*client.headers(message).items(), ("Mcp-Param-Number", "5")]
        pairs += [("Content-Type", "application/json"), ("Accept", BOTH)]
        again = next((name.upper(), value) for name, value in pairs if name == header)
        assert await outcome(client.http.ask("POST", pairs, dumps(message))) == 0
        assert await outcome(client.http.ask("POST", [*pairs, again], dumps(message))) == -32020


# ------------------------------------------------------------------ ids and statuses


@pytest.mark.parametrize("id", ["x" * 600, "x" * 60_000, "", '","error":{"code":5,"', 0, -1, 10**400])
async def test_the_status_depends_on_the_answer_and_not_on_the_id(id: Any) -> None:
    async with serving(make().server) as http:
        client = Modern(http)
        assert await outcome(client.ask("no/such", id=id)) == -32601
        assert await outcome(client.call("nothing", id=id)) == -32602
        assert await outcome(client.call("add", {"a": 1, "b": 2}, id=id)) == 0
        failed = client.call("fails", id=id)
        assert (await failed.result())["isError"]
        assert failed.status == 200


async def test_a_result_that_looks_like_an_error_is_a_result() -> None:
    server = Server("odd")

    @server.tool
    def odd() -> dict[str, Any]:
        return {"error": {"code": -32601, "message": "no"}}

    async with modern(server) as client:
        assert await outcome(client.call("odd")) == 0
