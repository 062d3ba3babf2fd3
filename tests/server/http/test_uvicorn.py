"""`server.run("http://...")` and `server.serving`, under uvicorn: bytes over TCP, and an end that waits for nobody."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from pathlib import Path

import pytest

from modelwire import ConfigError, ConnectionFailed, Server
from tests.leftovers import nothing_left
from tests.server.http.asgi import BOTH
from tests.server.http.raw import call, closed, connected, posted
from tests.server.http.servers import make
from tests.wire import MODERN, PATIENCE, dumps, modern_meta, opening

HERE = "http://127.0.0.1:0/mcp"
PROGRAM = """
import asyncio
from modelwire import Context, Server
from modelwire.server.http import run

run.GRACE = 0.1
server = Server("it", version="1")

@server.tool
async def wait(ctx: Context) -> str:
    ctx.progress(1)
    await asyncio.Event().wait()

server.run("http://127.0.0.1:0/mcp")
"""


async def test_answers_of_both_forms_come_over_one_connection(caplog: pytest.LogCaptureFixture) -> None:
    async with (
        nothing_left(caplog),
        make().server.serving(HERE) as serving,
        connected(serving.url) as http,
    ):
        assert serving.url.endswith("/mcp")
        await http.ask("POST", *call("add", {"a": 1, "b": 2}))
        status, headers, body = await http.whole()
        assert (status, headers["content-type"]) == (200, "application/json")
        assert json.loads(body)["result"]["content"][0]["text"] == "3"
        await http.ask("POST", *call("steps", {"count": 2}, progressToken=1))
        status, headers = await http.head()
        assert (status, headers["content-type"]) == (200, "text/event-stream")
        assert "server" not in headers
        assert [message.get("method", "answer") for message in await http.messages()] == [
            "notifications/progress",
            "notifications/progress",
            "answer",
        ]
        await http.ask("HEAD", {"MCP-Protocol-Version": MODERN})
        assert (await http.head())[0] == 405
        await http.ask("POST", *call("add", {"a": "x"}))
        assert json.loads((await http.whole())[2])["result"]["isError"]


async def test_a_request_that_comes_byte_by_byte_is_answered() -> None:
    async with make().server.serving(HERE) as serving, connected(serving.url) as http:
        headers, body = call("add", {"a": 1, "b": 2})
        lines = ["POST /mcp HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        for byte in "\r\n".join([*lines, "", ""]).encode() + body:
            http.writer.write(bytes([byte]))
            await http.writer.drain()
            await asyncio.sleep(0)
        assert (await http.whole())[0] == 200


async def test_a_client_that_resets_its_connection_cancels_its_request_and_harms_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = make()
    async with nothing_left(caplog):
        async with bench.server.serving(HERE) as serving, connected(serving.url) as stays:
            async with connected(serving.url) as goes:
                await goes.ask("POST", *call("wait", {"name": "gone"}))
                await bench.waiting.wait()
                await stays.ask("POST", *call("wait", {"name": "stays"}))
                goes.writer.transport.abort()
            async with asyncio.timeout(PATIENCE):
                await bench.cancelled.wait()
            bench.go.set()
            assert json.loads((await stays.whole())[2])["result"]["content"][0]["text"] == "stays"
        assert bench.events == ["gone cancelled", "stays finished"]


async def test_a_stranger_s_page_and_host_are_refused() -> None:
    async with make().server.serving(HERE) as serving, connected(serving.url) as http:
        for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
            own, body = call("add", {"a": 1, "b": 2})
            await http.ask("POST", {**own, **headers}, body)
            assert (await http.whole())[0] == 403


async def test_the_end_of_the_serving_ends_every_open_stream(caplog: pytest.LogCaptureFixture) -> None:
    bench = make()
    async with nothing_left(caplog), contextlib.AsyncExitStack() as stack:
        async with bench.server.serving(HERE) as serving:
            listening = await stack.enter_async_context(connected(serving.url))
            params = {"notifications": {"toolsListChanged": True}, "_meta": modern_meta()}
            await listening.ask(
                "POST", *posted({"jsonrpc": "2.0", "id": 5, "method": "subscriptions/listen", "params": params})
            )
            assert (await listening.head())[0] == 200
            await listening.chunk()
            old = await stack.enter_async_context(connected(serving.url))
            message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening("2025-11-25")}
            await old.ask("POST", {"Content-Type": "application/json", "Accept": BOTH}, dumps(message))
            _, headers, _ = await old.whole()
            await old.ask("GET", {"Accept": "text/event-stream", "Mcp-Session-Id": headers["mcp-session-id"]})
            assert (await old.head())[0] == 200
        last = (await listening.messages())[-1]
        assert last["id"] == 5
        assert "result" in last
        assert await old.messages() == []


async def test_a_client_that_does_not_read_holds_up_no_end(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("modelwire.server.http.run.LINGER", 0.05)
    server = Server("large")
    returned = asyncio.Event()

    @server.tool
    async def large() -> str:
        returned.set()
        return "x" * (24 << 20)

    async with nothing_left(caplog), contextlib.AsyncExitStack() as stack, server.serving(HERE) as serving:
        http = await stack.enter_async_context(connected(serving.url))
        await http.ask("POST", *call("large"))
        await returned.wait()
        assert (await http.head())[0] == 200


@pytest.mark.parametrize("said", [b"", b"POST /mcp HTTP/1.1\r\nHost: loc"])
async def test_who_sends_no_headers_or_half_of_them_is_cut_off_and_others_are_not(
    said: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("modelwire.server.http.guarded.HEADER_SECONDS", 0.1)
    bench = make()
    async with bench.server.serving(HERE) as serving, connected(serving.url) as slow, connected(serving.url) as fine:
        await fine.ask("POST", *call("wait"))
        slow.writer.write(said)
        assert await closed(slow) == b""
        bench.go.set()
        assert (await fine.whole())[0] == 200
        await fine.ask("POST", *call("add", {"a": 1, "b": 2}))
        assert (await fine.whole())[0] == 200


@pytest.mark.parametrize("pieces", [1, 50])
@pytest.mark.parametrize("count", [1, 300])
async def test_headers_that_are_too_large_or_too_many_are_refused(count: int, pieces: int) -> None:
    async with make().server.serving(HERE) as serving, connected(serving.url) as http:
        headers, body = call("add", {"a": 1, "b": 2})
        more = {"X-Large": "x" * (100 << 10)} if count == 1 else {f"X-{n}": "x" for n in range(count)}
        given = {"Host": "localhost", "Content-Length": str(len(body)), **headers, **more}
        lines = ["POST /mcp HTTP/1.1", *(f"{name}: {value}" for name, value in given.items()), "", ""]
        whole = "\r\n".join(lines).encode() + body
        size = len(whole) // pieces + 1
        with contextlib.suppress(ConnectionError):
            for start in range(0, len(whole), size):
                http.writer.write(whole[start : start + size])
                await http.writer.drain()
                await asyncio.sleep(0)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):  # it may be reset while we still write
            assert (await http.head())[0] == 431
        await closed(http)
    async with make().server.serving(HERE) as serving, connected(serving.url) as http:
        own, body = call("add", {"a": 1, "b": 2})
        await http.ask("POST", {**own, "X-Large": "x" * (48 << 10)}, body)
        assert (await http.whole())[0] == 200


async def test_a_body_that_does_not_come_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("modelwire.server.http.body.SECONDS", 0.05)
    async with make().server.serving(HERE) as serving, connected(serving.url) as http:
        own, body = call("add", {"a": 1, "b": 2})
        await http.ask("POST", {**own, "Content-Length": "5000"}, body)
        status, headers, _ = await http.whole()
        assert (status, headers["connection"]) == (408, "close")
        assert await closed(http) == b""


async def test_bytes_that_are_no_http_are_answered_and_cut_off() -> None:
    async with make().server.serving(HERE) as serving, connected(serving.url) as http:
        http.writer.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        assert (await closed(http)).startswith(b"HTTP/1.1 400 ")


async def test_an_endpoint_that_makes_no_sense_is_refused() -> None:
    server = Server("s")
    for endpoint in ("http://", "http://127.0.0.1:x/mcp", "http://127.0.0.1:0/mcp?a=1", "http://a@127.0.0.1:0/mcp"):
        with pytest.raises(ConfigError):
            async with server.serving(endpoint):
                pass
    with pytest.raises(ConfigError, match="cert="):
        async with server.serving("https://127.0.0.1:0/mcp"):
            pass


async def test_what_is_not_ours_to_take_is_named_as_it_was_given() -> None:
    server = Server("s")
    async with server.serving("http://127.0.0.1:0/mcp") as serving:
        with pytest.raises(ConnectionFailed, match=f"^cannot listen on {serving.url}: the port is taken"):
            await server.serve(serving.url)
    with pytest.raises(ConnectionFailed, match="^cannot use http://nowhere.invalid:1/mcp: the name 'nowhere.invalid'"):
        await server.serve("http://nowhere.invalid:1/mcp")


@pytest.mark.parametrize("signal_", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_a_program_that_has_a_stream_open(signal_: signal.Signals, tmp_path: Path) -> None:
    file = tmp_path / "it.py"
    file.write_text(PROGRAM)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-W", "error", str(file), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        async with asyncio.timeout(PATIENCE):
            said = (await process.stderr.readline()).decode()
        url = said.partition("listening on ")[2].partition(";")[0].strip()
        async with connected(url) as http, connected(url) as listening:
            await http.ask("POST", *call("wait", progressToken=1))
            assert (await http.head())[0] == 200
            await http.chunk()
            params = {"notifications": {}, "_meta": modern_meta()}
            await listening.ask(
                "POST", *posted({"jsonrpc": "2.0", "id": 5, "method": "subscriptions/listen", "params": params})
            )
            await listening.head()
            await listening.chunk()
            process.send_signal(signal_)
            assert (await listening.messages())[-1]["id"] == 5
            assert (await http.messages())[-1]["error"]["message"] == "the server is ending"
            async with asyncio.timeout(PATIENCE):
                out, err = await process.communicate()
        assert (out, err) == (b"", b"")
        assert process.returncode == (0 if signal_ is signal.SIGTERM else 130)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
