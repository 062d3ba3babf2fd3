"""Calls that never wait: whichever way a request takes, its answer is the same to the byte.

A server with an observer takes the long way for everything, so it says what the short ways must answer.
"""

from __future__ import annotations

import contextvars
import json
from collections.abc import Mapping
from typing import Annotated, Any

import pytest

from modelwire import Header, RpcError, Server, ToolError
from modelwire.rpc.observer import Observer
from modelwire.server.http.heads import KEPT
from tests.server.http.asgi import serving
from tests.server.http.servers import Bench
from tests.server.http.servers import make as waiting_server
from tests.server.http.test_uvicorn import HERE, connected, posted
from tests.wire import MODERN, dumps, modern_meta, request_meta

seen: contextvars.ContextVar[str] = contextvars.ContextVar("seen", default="nobody")


def make(**options: Any) -> Server:
    server = Server("at once", **options)

    @server.tool
    async def add(a: int, b: int = 2) -> int:
        return a + b

    @server.tool
    async def say(text: str) -> str:
        return text

    @server.tool
    async def refuse() -> str:
        raise ToolError("no")

    @server.tool
    async def crash() -> str:
        raise ZeroDivisionError

    @server.tool
    async def error(code: int) -> str:
        raise RpcError(code, "said so")

    @server.tool
    async def region(name: Annotated[str, Header("Region")]) -> str:
        return name

    @server.tool
    async def leave(name: str) -> str:
        before, _ = seen.get(), seen.set(name)
        return before

    return server


def calling(tool: Any, arguments: Any = None, **changes: Any) -> dict[str, Any]:
    """A call; what is changed stands in the place of its members, or of its parameters'; ``...`` leaves it out."""
    params = {"name": tool, "arguments": arguments or {}, "_meta": modern_meta()}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    for key, value in changes.items():
        place = message if key in message else params
        place[key] = value
    message["params"] = _without(message["params"])
    return _without(message)


def _without(members: Any) -> Any:
    return members if members is None else {key: value for key, value in members.items() if value is not ...}


REQUESTS: dict[str, tuple[Any, dict[str, str | None]]] = {
    "a sum": (calling("add", {"a": 1, "b": 3}), {}),
    "a default": (calling("add", {"a": 1}), {}),
    "a wrong argument": (calling("add", {"a": "x"}), {}),
    "a missing argument": (calling("add"), {}),
    "no arguments": (calling("refuse", arguments=...), {}),
    "arguments that are null": (calling("refuse", arguments=None), {}),
    "arguments that are a list": (calling("add", arguments=[1]), {}),
    "text beyond ASCII": (calling("say", {"text": "Größe ✓ \U0001f600"}), {}),
    "a refusal": (calling("refuse"), {}),
    "a crash": (calling("crash"), {}),
    "an error with a status": (calling("error", {"code": -32602}), {}),
    "an error without one": (calling("error", {"code": 5}), {}),
    "an unknown tool": (calling("nothing"), {}),
    "a tool of a header": (calling("region", {"name": "north"}), {"Mcp-Param-Region": "north"}),
    "a tool of a header that lies": (calling("region", {"name": "north"}), {"Mcp-Param-Region": "south"}),
    "a tool of a header that is missing": (calling("region", {"name": "north"}), {}),
    "a header nobody wants": (calling("add", {"a": 1}), {"Mcp-Param-Region": "north"}),
    "another name": (calling("add", {"a": 1}), {"Mcp-Name": "say"}),
    "another method": (calling("add", {"a": 1}), {"Mcp-Method": "tools/list"}),
    "no name": (calling("add", {"a": 1}), {"Mcp-Name": None}),
    "a name in base64": (calling("add", {"a": 1}), {"Mcp-Name": "=?base64?YWRk?="}),
    "another revision": (calling("add", {"a": 1}), {"MCP-Protocol-Version": "2025-11-25"}),
    "an unknown revision": (calling("add", {"a": 1}), {"MCP-Protocol-Version": "2099-01-01"}),
    "an id that is text": (calling("add", {"a": 1}, id="x"), {}),
    "an id of nought": (calling("add", {"a": 1}, id=0), {}),
    "an id below nought": (calling("add", {"a": 1}, id=-1), {}),
    "an id that is no integer": (calling("add", {"a": 1}, id=1.5), {}),
    "no id": (calling("add", {"a": 1}, id=...), {}),
    "another JSON-RPC": (calling("add", {"a": 1}, jsonrpc="1.0"), {}),
    "a member nobody knows": ({**calling("add", {"a": 1}), "more": 1}, {}),
    "parameters that are null": (calling("add", params=None), {}),
    "no meta": (calling("add", {"a": 1}, _meta=...), {}),
    "meta without capabilities": (
        calling("add", {"a": 1}, _meta={"io.modelcontextprotocol/protocolVersion": MODERN}),
        {},
    ),
    "meta of another revision": (
        calling("add", {"a": 1}, _meta=request_meta("2025-11-25")),
        {"MCP-Protocol-Version": MODERN},
    ),
    "a progress token": (calling("add", {"a": 1}, _meta={**modern_meta(), "progressToken": "t"}), {}),
    "a token of a wrong kind": (calling("add", {"a": 1}, _meta={**modern_meta(), "progressToken": {}}), {}),
    "answers to nothing": (calling("add", {"a": 1}, inputResponses={}), {}),
    "state of nothing": (calling("add", {"a": 1}, requestState="x"), {}),
    "another method altogether": ({**calling("add"), "method": "tools/list"}, {"Mcp-Method": "tools/list"}),
}


def given(message: Any, changed: dict[str, str | None]) -> tuple[dict[str, str], bytes]:
    headers, body = posted({**message, "params": message["params"] or calling("add")["params"]})
    for name, value in changed.items():
        headers.pop(name, None)
        if value is not None:
            headers[name] = value
    return headers, body if message["params"] else dumps(message)


def told(status: int | None, body: bytes, headers: Mapping[str, str]) -> Any:
    return status, json.loads(body) if body else None, headers.get("content-type")


async def test_every_way_gives_the_same_answer_also_when_it_remembers() -> None:
    differ: dict[str, Any] = {}
    long, mounted, direct = make(observers=[Observer()]), make(), make()
    async with (
        serving(long) as one,
        serving(mounted) as other,
        direct.serving(HERE) as here,
        connected(here.url) as http,
    ):
        for what, request in [*REQUESTS.items()] * 2:
            headers, body = given(*request)
            wanted, found = one.ask("POST", headers, body), other.ask("POST", headers, body)
            await wanted.done()
            await found.done()
            await http.ask("POST", headers, body)
            status, kinds, answer = await http.whole()
            answers = [
                told(wanted.status, wanted.body, wanted.headers),
                told(found.status, found.body, found.headers),
                told(status, answer, kinds),
            ]
            if answers != answers[:1] * 3:
                differ[what] = answers
    assert differ == {}


async def test_what_a_call_leaves_in_a_context_variable_no_other_call_finds() -> None:
    server = make()
    async with server.serving(HERE) as here, connected(here.url) as http:
        for name in ("one", "two"):
            await http.ask("POST", *posted(calling("leave", {"name": name})))
            _, _, answer = await http.whole()
            assert json.loads(answer)["result"]["content"][0]["text"] == "nobody"


async def test_requests_that_come_at_once_or_byte_by_byte_are_answered_in_order() -> None:
    async with make().serving(HERE) as here, connected(here.url) as http:
        sums = [posted(calling("add", {"a": a, "b": 0}, id=a)) for a in range(1, 6)]
        for headers, body in sums:
            await http.ask("POST", headers, body)
        assert [json.loads((await http.whole())[2])["id"] for _ in sums] == [1, 2, 3, 4, 5]
        headers, body = sums[0]
        lines = [f"{name}: {value}" for name, value in {"Host": "localhost", **headers}.items()]
        head = "\r\n".join(["POST /mcp HTTP/1.1", *lines, "Transfer-Encoding: chunked", "", ""])
        chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:10], body[10:]))
        for byte in head.encode() + chunks + b"0\r\n\r\n":
            http.writer.write(bytes([byte]))
            await http.writer.drain()
        assert json.loads((await http.whole())[2])["result"]["structuredContent"] == 1


async def test_one_that_waits_holds_up_those_that_come_after_it_on_its_connection_and_no_other() -> None:
    bench = with_waiting()
    async with bench.server.serving(HERE) as here, connected(here.url) as first, connected(here.url) as second:
        await first.ask("POST", *posted(calling("wait", {})))
        await bench.waiting.wait()
        await first.ask("POST", *posted(calling("quick", {}, id=2)))
        await second.ask("POST", *posted(calling("quick", {}, id=3)))
        assert json.loads((await second.whole())[2])["id"] == 3
        bench.go.set()
        assert [json.loads((await first.whole())[2])["id"] for _ in range(2)] == [1, 2]


def with_waiting() -> Bench:
    bench = waiting_server()

    @bench.server.tool
    async def quick() -> str:
        return "quick"

    return bench


@pytest.mark.parametrize("version", ["1.0", "1.1"])
async def test_who_keeps_no_connection_gets_an_answer_and_its_end(version: str) -> None:
    async with make().serving(HERE) as here, connected(here.url) as http:
        headers, body = posted(calling("add", {"a": 1}))
        pairs = {"Host": "localhost", "Connection": "close", "Content-Length": str(len(body)), **headers}
        lines = [f"POST /mcp HTTP/{version}", *(f"{name}: {value}" for name, value in pairs.items()), "", ""]
        http.writer.write("\r\n".join(lines).encode() + body)
        assert json.loads((await http.whole())[2])["result"]["structuredContent"] == 3
        assert await http.reader.read() == b""


async def test_who_asks_is_told_apart_and_a_principal_is_asked_for_each_time() -> None:
    server = make()
    asked: list[Any] = []

    def principal(scope: Any) -> str:
        asked.append(dict(scope["headers"]).get(b"authorization"))
        return "me"

    async with server.serving(HERE, principal=principal) as here, connected(here.url) as http:
        for _ in range(2):
            headers, body = posted(calling("add", {"a": 1}))
            await http.ask("POST", {**headers, "Authorization": "secret"}, body)
            assert (await http.whole())[0] == 200
    assert asked == [b"secret", b"secret"]


async def test_a_tool_that_is_taken_away_is_gone_at_once() -> None:
    server = make()
    async with server.serving(HERE) as here, connected(here.url) as http:
        statuses: list[int] = []
        for _ in range(2):
            await http.ask("POST", *posted(calling("add", {"a": 1})))
            statuses.append((await http.whole())[0])
            if len(statuses) == 1:
                server.remove_tool("add")
    assert statuses == [200, 400]


async def test_headers_that_are_all_different_are_not_kept_without_end() -> None:
    server = make()
    async with serving(server) as http:
        for number in range(1100):
            headers, body = posted(calling("add", {"a": 1}))
            exchange = http.ask("POST", {**headers, "X-Request-Id": str(number)}, body)
            assert await exchange.done() == 200
            http.open.clear()
        kept = http.app._heads._known
        assert sum(map(len, kept.values())) <= KEPT
