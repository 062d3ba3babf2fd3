"""What HTTP is spoken with: the same from each, however the bytes arrive."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import socket
import warnings
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from modelwire import Client, ConfigError, ConnectionFailed, ConnectionLost, HttpFailed, Server
from modelwire.transports.http import own_engine
from modelwire.transports.http.endpoint import HttpOptions, endpoint, proxy_for
from modelwire.transports.http.engines import engine_for
from modelwire.transports.http.own_engine import OwnEngine
from tests.transports.http import certificates
from tests.transports.http.scripted import SAID, Out, Request, Web, done, legacy, modern, web
from tests.transports.sockets import descriptors, tasks

ENGINES = pytest.mark.parametrize("kind", ["own", "aiohttp"])


@asynccontextmanager
async def client_of(server: Web, kind: str, **options: Any) -> AsyncIterator[Client]:
    if kind == "own":
        async with Client(server.url, **options) as client:
            yield client
        return
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        async with Client(server.url, http=session, **options) as client:
            yield client
        assert not session.closed


def answer(request: Request, text: str = "done") -> bytes:
    result = {**SAID, "content": [{"type": "text", "text": text}]}
    return json.dumps({"jsonrpc": "2.0", "id": request.message["id"], "result": result}).encode()


async def chunked(request: Request, out: Out) -> None:
    body = answer(request)
    await out.raw(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
    for at in range(0, len(body), 7):
        piece = body[at : at + 7]
        await out.raw(b"%x\r\n%s\r\n" % (len(piece), piece))
        await asyncio.sleep(0)
    await out.raw(b"0\r\n\r\n")


async def byte_by_byte(request: Request, out: Out) -> None:
    body = answer(request)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    for at in range(0, len(head) + len(body), 3):
        await out.raw((head + body)[at : at + 3])
        await asyncio.sleep(0)


async def until_the_end(request: Request, out: Out) -> None:
    out.keep = False
    await out.raw(b"HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n" + answer(request))


async def hints_first(request: Request, out: Out) -> None:
    await out.raw(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n")
    await out.send(200, answer(request), "application/json")


async def zipped(request: Request, out: Out) -> None:
    await out.send(200, gzip.compress(answer(request)), "application/json", content_encoding="gzip")


async def deflated(request: Request, out: Out) -> None:
    await out.send(200, zlib.compress(answer(request)), "application/json", content_encoding="deflate")


async def bare_deflated(request: Request, out: Out) -> None:
    packer = zlib.compressobj(wbits=-15)
    body = packer.compress(answer(request)) + packer.flush()
    await out.send(200, body, "application/json", content_encoding="deflate")


async def zipped_events(request: Request, out: Out) -> None:
    packer = zlib.compressobj(wbits=31)
    await out.events(content_encoding="gzip")
    for chunk in (b": hello\n\n", b"data: " + answer(request) + b"\n\n"):
        await out.raw(packer.compress(chunk) + packer.flush(zlib.Z_SYNC_FLUSH))
        await asyncio.sleep(0)


FORMS: list[Callable[[Request, Out], Any]] = [
    chunked, byte_by_byte, until_the_end, hints_first, zipped, deflated, bare_deflated, zipped_events,
]  # fmt: skip


@ENGINES
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
async def test_a_body_is_read_in_every_form(kind: str, form: Any) -> None:
    async with web(modern(form)) as server, client_of(server, kind) as client:
        assert [await client.call("t"), await client.call("t")] == ["done", "done"]


@ENGINES
async def test_large_messages_cross_in_both_directions(kind: str) -> None:
    async def on_call(request: Request, out: Out) -> None:
        text = request.message["params"]["arguments"]["text"]
        await out.send(200, answer(request, text), "application/json")

    text = "ä" * (3 << 20)
    async with web(modern(on_call)) as server, client_of(server, kind) as client:
        assert await client.call("t", {"text": text}) == text


@ENGINES
async def test_a_bomb_is_not_unpacked(kind: str) -> None:
    async def on_call(request: Request, out: Out) -> None:
        await out.send(200, gzip.compress(b" " * (64 << 20)), "application/json", content_encoding="gzip")

    async with web(modern(on_call)) as server, client_of(server, kind, max_message=1 << 20) as client:
        with pytest.raises(Exception, match="message longer than max_message=1048576"):
            await client.call("t")


@ENGINES
async def test_connections_are_used_again(kind: str) -> None:
    async def on_call(request: Request, out: Out) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        body = b"data: " + answer(request) + b"\n\n"
        await out.raw(head + b"%x\r\n%s\r\n" % (len(body), body))
        await asyncio.sleep(0)
        await out.raw(b"0\r\n\r\n")

    async with web(modern(on_call)) as server, client_of(server, kind) as client:
        for _ in range(5):
            await client.call("t")
            await client.list_tools()
        # Whether the end of a stream has come in time to use its connection again is for the engine to say.
        assert server.connections == 1 if kind == "own" else server.connections <= 6


async def test_a_connection_that_the_server_has_closed_is_not_used_again() -> None:
    async def on_call(request: Request, out: Out) -> None:
        await done(request, out)
        out.keep = False

    async with web(modern(on_call)) as server, Client(server.url) as client:
        for _ in range(3):
            assert await client.call("t") == "done"
            for _ in range(20):
                await asyncio.sleep(0)


async def test_two_answers_to_one_request_spoil_the_connection_and_nothing_else() -> None:
    async def on_call(request: Request, out: Out) -> None:
        body = answer(request)
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
        await out.raw((head + body) * 2)

    async with web(modern(on_call)) as server, Client(server.url) as client:
        assert [await client.call("t") for _ in range(3)] == ["done"] * 3
        assert server.connections == 3


async def test_what_waits_for_others_does_not_hold_up_what_they_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_engine, "MOST", 2)
    answered = asyncio.Event()

    async def on_call(request: Request, out: Out) -> None:
        if request.rpc == "tools/call":
            await out.events()
            question = {"jsonrpc": "2.0", "id": f"q{request.message['id']}", "method": "ping"}
            await out.event(question)
            await answered.wait()
            await out.raw(b"data: " + answer(request) + b"\n\n")
        else:
            answered.set()
            await out.send(202)

    async with web(legacy(on_call)) as server, Client(server.url) as client:
        async with asyncio.timeout(10):
            assert await asyncio.gather(*(client.call("t") for _ in range(6))) == ["done"] * 6


async def test_a_place_that_was_waited_for_in_vain_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_engine, "MOST", 1)
    go = asyncio.Event()

    async def on_call(request: Request, out: Out) -> None:
        await go.wait()
        await done(request, out)

    async with web(modern(on_call)) as server, Client(server.url) as client:
        calls = [asyncio.create_task(client.call("t")) for _ in range(4)]
        await server.wait_for("tools/call")
        calls[1].cancel()
        await asyncio.sleep(0)
        go.set()
        calls[2].cancel()
        assert await calls[3] == "done"
        assert await client.call("t") == "done"


async def test_headers_without_end_are_not_kept() -> None:
    async def on_call(request: Request, out: Out) -> None:
        out.keep = False
        await out.raw(b"HTTP/1.1 200 OK\r\n")
        for _ in range(400):
            await out.raw(b"x: " + b"y" * 1000 + b"\r\n")

    async with web(modern(on_call)) as server, Client(server.url) as client:
        with pytest.raises(HttpFailed, match="headers|no HTTP|reset"):
            await client.call("t")


# ------------------------------------------------------------------ TLS


@pytest.fixture(scope="module")
def pems(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pems")
    certificates.make(folder)
    return folder


async def test_a_certificate_is_looked_at_as_asked(pems: Path) -> None:
    async with web(modern(done), tls=certificates.server_side(pems)) as server:
        with pytest.raises(ConnectionFailed, match=r"its certificate is not accepted: .*verify='ca.pem'"):
            await Client(server.url).connect()
        for verify in (False, pems / "ca.pem", str(pems / "ca.pem")):
            async with Client(server.url, verify=verify) as client:
                assert await client.call("t") == "done"


async def test_a_client_shows_its_own_certificate(pems: Path) -> None:
    async with web(modern(done), tls=certificates.server_side(pems, mutual=True)) as server:
        async with Client(server.url, verify=pems / "ca.pem", cert=pems / "client.pem") as client:
            assert await client.call("t") == "done"
        with pytest.raises(ConnectionFailed):
            await Client(server.url, verify=pems / "ca.pem").connect()


# ------------------------------------------------------------------ proxies


@asynccontextmanager
async def proxy(seen: list[bytes]) -> AsyncIterator[str]:
    """A proxy for http:// that notes the first line and the headers of what it is asked, and hands it on."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        seen.append(head)
        first, rest = head.split(b"\r\n", 1)
        method, url, version = first.split(b" ")
        _, _, place = url.partition(b"://")
        authority, slash, path = place.partition(b"/")
        host, _, port = authority.partition(b":")
        upstream_reader, upstream = await asyncio.open_connection(host.decode(), int(port))
        upstream.write(b" ".join((method, slash + path, version)) + b"\r\n" + rest)

        async def hand_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            try:
                while data := await source.read(1 << 16):
                    sink.write(data)
            finally:
                sink.close()

        await asyncio.gather(hand_on(reader, upstream), hand_on(upstream_reader, writer), return_exceptions=True)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        gc.collect()


async def test_a_proxy_is_used_as_given_and_as_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bytes] = []

    async def on_call(request: Request, out: Out) -> None:
        await done(request, out)
        out.keep = False

    async with web(modern(on_call)) as server, proxy(seen) as address:
        async with Client(server.url, proxy=f"http://me:secret@{address}") as client:
            assert await client.call("t") == "done"
        assert seen
        assert seen[0].startswith(b"POST http://127.0.0.1")
        assert b"proxy-authorization: basic" in seen[0].lower()
        seen.clear()
        monkeypatch.setenv("http_proxy", f"http://{address}")
        async with Client(server.url) as client:
            assert await client.call("t") == "done"
        assert seen
        seen.clear()
        async with Client(server.url, proxy=False) as client:
            assert await client.call("t") == "done"
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        async with Client(server.url) as client:
            assert await client.call("t") == "done"
        assert not seen


def test_which_proxy_is_for_which_url(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert proxy_for("http://x/", None) is None
    monkeypatch.setenv("HTTPS_PROXY", "proxy:3128")
    monkeypatch.setenv("NO_PROXY", "near.example,.inside")
    assert proxy_for("https://far.example/", None) == "http://proxy:3128"
    assert proxy_for("http://far.example/", None) is None
    assert proxy_for("https://near.example:8443/", None) is None
    assert proxy_for("https://a.inside/", None) is None
    assert proxy_for("https://far.example/", False) is None
    assert proxy_for("https://near.example/", "http://other:1") == "http://other:1"


def test_a_proxy_of_another_kind_in_the_environment_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "socks5://me:secret@127.0.0.1:1080")
    with pytest.raises(ConfigError, match=r"socks5://127.0.0.1:1080.*HTTP_PROXY.*is no HTTP proxy.*proxy=False"):
        proxy_for("http://far.example/", None)
    assert proxy_for("http://far.example/", False) is None


async def test_a_proxy_that_refuses_is_named() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 407 x\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        with pytest.raises(
            ConnectionFailed, match=rf"the proxy http://127.0.0.1:{port}: the proxy answered with HTTP 407"
        ):
            await Client("https://far.example/mcp", proxy=f"http://127.0.0.1:{port}").connect()


async def test_nothing_but_a_given_client_or_a_proxy_needs_aiohttp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    engine = engine_for(endpoint("http://127.0.0.1:1/", HttpOptions()))
    assert isinstance(engine, OwnEngine)
    await engine.aclose()


# ------------------------------------------------------------------ the end


@pytest.mark.parametrize("era", [modern, legacy])
async def test_nothing_is_left_of_a_client(era: Any) -> None:
    async def on_call(request: Request, out: Out) -> None:
        if request.message.get("params", {}).get("name") == "t":
            await done(request, out)
        else:
            await asyncio.Event().wait()

    async with web(era(on_call)) as server:
        before, running = descriptors(), tasks()
        async with Client(server.url) as client:
            await asyncio.gather(*(client.call("t") for _ in range(20)))
            waiting = asyncio.create_task(client.call("other"))
            await server.wait_for("tools/call", 21)
        with pytest.raises(ConnectionLost):
            await waiting
        async with asyncio.timeout(10):
            while descriptors() != before or tasks() != running:  # the server's side ends a moment later
                await asyncio.sleep(0.01)


def test_a_client_whose_loop_has_ended_connects_in_another() -> None:
    server = Server("x")
    server.add_tool(lambda: "done", name="t")

    async def once(client: Client | None) -> tuple[Client, str]:
        async with server.serving(f"http://127.0.0.1:{port}/mcp"):
            client = client or Client(f"http://127.0.0.1:{port}/mcp")
            await client.connect()
            text = await client.call("t")
            if text == "done" and len(clients) == 1:
                await client.close()
            return client, text

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    clients: list[Client] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # of the first loop, which nobody has tidied up
        client, text = asyncio.run(once(None))
        clients.append(client)
        assert text == "done"
        assert asyncio.run(once(client))[1] == "done"
        del client
        gc.collect()


def test_it_runs_in_the_loops_of_others() -> None:
    import uvloop

    async def call() -> Any:
        async with web(modern(chunked)) as server, Client(server.url) as client:
            return await client.call("t")

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(call()) == "done"


async def test_a_connection_that_is_given_up_at_any_moment_leaves_no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")

        async def looked_up(*_: Any, **__: Any) -> list[Any]:
            return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", listening.getsockname())]

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", looked_up)
        url = f"http://some.test:{listening.getsockname()[1]}/mcp"  # a name, which may have several addresses
        for turns in range(20):
            engine = OwnEngine(endpoint(url, HttpOptions()))
            asked = asyncio.create_task(engine.send("GET", url, [], None, urgent=True))
            for _ in range(turns):
                await asyncio.sleep(0)
            asked.cancel()
            await asyncio.wait([asked])
            await engine.aclose()
            del asked
        gc.collect()
    assert [str(warning.message) for warning in told] == []
