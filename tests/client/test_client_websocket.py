"""A client of a server behind a WebSocket: opening, eras, options, ends, signs of life, and coming back."""

from __future__ import annotations

import asyncio
import builtins
import json
import logging
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection

from modelwire import Client, ConfigError, ConnectionFailed, ConnectionLost, Context, Server
from modelwire import types as t
from modelwire.client.targets import Target
from modelwire.transports.websocket_stream import WebSocketStream
from tests import certificates
from tests.clock import Clock
from tests.leftovers import nothing_left
from tests.server.http.servers import make
from tests.transports.websockets_server import playing
from tests.wire import MODERN, PATIENCE, every_handshake, every_revision

DISCOVERED = {
    "resultType": "complete",
    "supportedVersions": [MODERN],
    "capabilities": {"tools": {}},
    "ttlMs": 0,
    "cacheScope": "private",
}
HERE = "ws://127.0.0.1:0/mcp"


async def legacy(connection: ServerConnection) -> None:
    """A server of 2025-06-18, which answers nothing but what it must."""
    async for message in connection:
        request = json.loads(message)
        if request["method"] == "initialize":
            info = {"name": "old", "version": "1"}
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
            await connection.send(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}))
        elif request["method"] == "server/discover":
            error = {"code": -32601, "message": "no such method"}
            await connection.send(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}))


@every_revision
async def test_every_revision_is_spoken(revision: str, caplog: pytest.LogCaptureFixture) -> None:
    progress: list[float] = []

    def note(now: float, total: float | None, message: str | None) -> None:
        progress.append(now)

    async with (
        nothing_left(caplog),
        make().server.serving(HERE) as serving,
        Client(serving.url, revision=revision) as client,
    ):
        assert await client.call("add", {"a": 1, "b": 2}, returns=int) == 3
        result = await client.call_tool("steps", {"count": 2}, on_progress=note)
        assert result.content[0].text == "2 steps"
    assert progress == [1, 2]


async def test_the_newest_revision_is_found_and_older_servers_are_met() -> None:
    async with make().server.serving(HERE) as serving, Client(serving.url) as client:
        assert client._contacts.opened.revision.name == MODERN  # pyright: ignore[reportPrivateUsage]
    async with playing(legacy) as url, Client(url) as client:
        assert client.server_info is not None
        assert client.server_info.name == "old"


@every_handshake
async def test_the_server_asks_the_client(revision: str) -> None:
    server = Server("asks")

    @server.tool
    async def roots(ctx: Context) -> str:
        return ", ".join(str(root.uri) for root in await ctx.roots())

    @server.tool
    async def poem(ctx: Context) -> str:
        return str((await ctx.sample("a poem", max_tokens=10)).content)

    async with (
        server.serving(HERE) as serving,
        Client(
            serving.url, revision=revision, roots=[t.Root("file:///a")], on_sample=lambda question: "roses"
        ) as client,
    ):
        assert await client.call("roots", returns=str) == "file:///a"
        assert "roses" in await client.call("poem", returns=str)


async def test_a_form_is_filled_in_whatever_the_revision() -> None:
    async with make().server.serving(HERE) as serving:
        for revision in ("2025-06-18", "2025-11-25", MODERN):
            async with Client(serving.url, revision=revision, on_elicit=lambda form: {"name": "Ann"}) as client:
                assert await client.call("ask_name", returns=str) == "hello Ann"


async def test_a_hundred_calls_at_once_each_get_their_answer(caplog: pytest.LogCaptureFixture) -> None:
    async with nothing_left(caplog), make().server.serving(HERE) as serving, Client(serving.url) as client:
        calls = [client.call("add", {"a": number, "b": 1}, returns=int) for number in range(100)]
        assert await asyncio.gather(*calls) == list(range(1, 101))


async def test_a_call_that_is_given_up_is_cancelled_there() -> None:
    bench = make()
    async with bench.server.serving(HERE) as serving, Client(serving.url) as client:
        call = asyncio.create_task(client.call("wait"))
        await bench.waiting.wait()
        call.cancel()
        async with asyncio.timeout(PATIENCE):
            await bench.cancelled.wait()


async def test_changes_are_heard_while_it_listens() -> None:
    server = make().server
    async with server.serving(HERE) as serving, Client(serving.url) as client, client.listen(tools=True) as changes:
        server.add_tool(lambda: "x", name="another")
        async with asyncio.timeout(PATIENCE):
            assert type(await anext(aiter(changes))).__name__ == "ToolsChanged"


# --------------------------------------------------------------------------------------------------- options


async def test_headers_are_sent_fixed_or_made_anew_each_time() -> None:
    count = 0

    async def fresh() -> dict[str, str]:
        nonlocal count
        count += 1
        return {"User-Agent": f"agent {count}"}

    async with make().server.serving(HERE) as serving:
        async with Client(serving.url, headers={"User-Agent": "fixed"}) as client:
            assert (await client.call("where", returns=dict))["agent"] == "fixed"
        client = Client(serving.url, headers=fresh)
        for number in (1, 2):
            async with client:
                assert (await client.call("where", returns=dict))["agent"] == f"agent {number}"


async def test_an_entry_of_a_configuration_file_may_be_a_websocket_with_headers() -> None:
    async with (
        make().server.serving(HERE) as serving,
        Client({"url": serving.url, "headers": {"User-Agent": "entry"}}) as client,
    ):
        assert (await client.call("where", returns=dict))["agent"] == "entry"
    with pytest.raises(ConfigError, match="no address that this version can open") as caught:
        Client({"url": "ws://u:secret@"})
    assert "secret" not in str(caught.value)


async def test_over_tls_it_trusts_whom_it_is_told_to(
    tmp_path_factory: pytest.TempPathFactory, caplog: pytest.LogCaptureFixture
) -> None:
    tls = certificates.make(tmp_path_factory.mktemp("tls"))
    async with (
        nothing_left(caplog),
        make().server.serving("wss://localhost:0/mcp", cert=tls.cert, key=tls.key) as serving,
    ):
        for verify in (tls.authority, tls.trusted, False):
            async with Client(serving.url, verify=verify) as client:
                assert await client.call("add", {"a": 1, "b": 2}, returns=int) == 3
        with pytest.raises(ConnectionFailed, match="its certificate is not trusted: .* Pass verify="):
            await Client(serving.url).connect()


@pytest.mark.parametrize(
    ("target", "options", "told"),
    [
        ("ws://", {}, "cannot use the address 'ws://': write ws://HOST:PORT/PATH"),
        ("ws://host:99999/", {}, "write ws://HOST:PORT/PATH"),
        ("ws://host/#part", {}, "write ws://HOST:PORT/PATH"),
        ("ws://ho st/", {}, "write ws://HOST:PORT/PATH"),
        ("ws://host/", {"verify": False}, "verify= is for https:// and wss:// targets"),
        ("wss://host/", {"verify": "/no/such/file.pem"}, "verify='/no/such/file.pem' cannot be used: No such file"),
        ("wss://host/", {"verify": 3}, "verify= is True, False, the path of a file"),
        ("ws://host/", {"headers": {"Host": "x"}}, "Host is the connection's own"),
        ("ws://host/", {"headers": {"A": "secret\r\nB: c"}}, "the value of A is no string that a header can have"),
        ("ws://host/", {"headers": {"a b": "x"}}, "'a b' can be no name of one"),
        ("ws://host/", {"headers": ["a"]}, "headers= is a dict of headers"),
        ("tcp://host:1", {"headers": {"a": "x"}}, "headers= is for http:// and ws:// targets"),
        ("ws://host/", {"heartbeat": 0}, "heartbeat"),
    ],
)
def test_what_makes_no_sense_is_told_at_once(target: str, options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Client(target, **options)
    assert told in str(caught.value)
    assert "secret" not in str(caught.value)


async def test_a_function_of_headers_that_fails_says_so() -> None:
    def fails() -> dict[str, str]:
        raise RuntimeError("no token")

    with pytest.raises(ConnectionFailed, match="the function of headers= failed: RuntimeError\\('no token'\\)"):
        await Client("ws://127.0.0.1:1/", headers=fails).connect()
    with pytest.raises(ConfigError, match="headers= is a dict"):
        await Client("ws://127.0.0.1:1/", headers=lambda: "x").connect()  # type: ignore[arg-type, return-value]


def test_a_name_shows_no_secret() -> None:
    target = Target(
        "ws://user:secret@host:1/path?token=secret",
        env=None,
        pass_env=(),
        cwd=None,
        stderr=None,
        max_message=1,
    )
    assert str(target) == target.name == "ws://host:1/path"
    assert target.elsewhere


async def test_without_websockets_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **options: Any) -> Any:
        if "websocket_connect" in name:
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConfigError, match=r"needs websockets: pip install 'modelwire\[ws\]'"):
        await Client("ws://127.0.0.1:1/").connect()


# --------------------------------------------------------------------------------------------------- ends


async def test_a_refusal_is_the_reason_that_it_could_not_be_opened() -> None:
    async with make().server.serving(HERE) as serving:
        with pytest.raises(ConnectionFailed, match="404 Not Found: there is nothing here; the MCP endpoint is /mcp"):
            await Client(serving.url + "/no").connect()
        with pytest.raises(ConnectionFailed, match="TLS failed .* Without it, write ws://"):
            await Client(serving.url.replace("ws:", "wss:")).connect()
        with pytest.raises(ConnectionFailed, match="403 Forbidden: the Origin .* add it to allowed_origins="):
            await Client(serving.url, headers={"Origin": "http://evil.example"}).connect()


async def test_a_message_too_large_for_the_server_says_so_to_who_sent_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    async with make(max_message=10_000).server.serving(HERE) as serving, Client(serving.url, reconnect=False) as client:
        with pytest.raises(ConnectionLost, match="the server closed the WebSocket: 1009 \\(too large\\): .*10000"):
            await client.call("wait", {"name": "x" * 20_000})


async def test_an_answer_too_large_for_the_client_says_what_to_raise() -> None:
    server = Server("large")

    @server.tool
    async def large() -> str:
        return "x" * 20_000

    async with server.serving(HERE) as serving, Client(serving.url, max_message=10_000, reconnect=False) as client:
        with pytest.raises(ConnectionLost, match="a message that is larger than max_message=10000 bytes"):
            await client.call("large")


async def test_the_end_of_the_server_is_told_with_its_reason() -> None:
    bench = make()
    async with bench.server.serving(HERE) as serving:
        client = await Client(serving.url, reconnect=False).connect()
    with pytest.raises(ConnectionLost, match="1001 \\(going away\\): the server is ending"):
        await client.call("add", {"a": 1, "b": 2})
    await client.close()


async def test_it_comes_back_when_the_server_does(caplog: pytest.LogCaptureFixture) -> None:
    async with nothing_left(caplog):
        async with make().server.serving(HERE) as serving:
            url = serving.url
            client = await Client(url, on_reconnect=lambda why: None).connect()
        call = asyncio.create_task(client.call("add", {"a": 1, "b": 2}, returns=int))
        await Clock().turn()
        async with make().server.serving(url):
            assert await call == 3
            await client.close()


async def test_a_server_that_gives_no_sign_of_life_is_given_up() -> None:
    async def stuck(connection: ServerConnection) -> None:
        message = json.loads(await connection.recv())
        await connection.send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": DISCOVERED}))
        await connection.recv()
        connection.transport.pause_reading()
        await asyncio.Event().wait()

    async with playing(stuck, ping_interval=None) as url, Client(url, heartbeat=0.05, reconnect=False) as client:
        with pytest.raises(ConnectionLost, match="gave no sign of life for 0.1 s"):
            await client.call("anything")


async def test_a_silent_server_that_answers_pings_is_not_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, answered = asyncio.Event(), asyncio.Event()

    async def ping(self: WebSocketStream) -> None:
        asked.set()
        await (await self._wire.ping())  # pyright: ignore[reportPrivateUsage]
        answered.set()

    monkeypatch.setattr(WebSocketStream, "ping", ping)

    async def silent(connection: ServerConnection) -> None:
        message = json.loads(await connection.recv())
        await connection.send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": DISCOVERED}))
        async for _ in connection:
            pass

    async with playing(silent, ping_interval=None) as url, Client(url, reconnect=False) as client:
        call = asyncio.create_task(client.call_tool("anything", timeout=None))
        clock = Clock()
        for _ in range(3):
            while not asked.is_set():
                await clock.advance(20)
            await answered.wait()
            asked.clear()
            answered.clear()
        assert not call.done()
        call.cancel()
        await asyncio.wait([call])
