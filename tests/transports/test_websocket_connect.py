"""Opening a WebSocket: what is sent, whom it trusts, and why it did not work, in words that help."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection

from modelwire import ConfigError, ConnectionFailed
from modelwire.transports.tls import tls_context
from modelwire.transports.websocket_connect import connect_websocket
from modelwire.transports.websocket_stream import WebSocketStream
from tests import certificates
from tests.leftovers import nothing_left
from tests.transports.websockets_server import playing, proxy, saying
from tests.wire import PATIENCE

MiB = 1 << 20


async def opened(url: str, headers: dict[str, str] | None = None, tls: Any = None) -> WebSocketStream:
    async with asyncio.timeout(PATIENCE):
        return await connect_websocket(url, headers=headers or {}, tls=tls, max_message=MiB)


async def why_not(url: str, **options: Any) -> str:
    with pytest.raises(ConnectionFailed) as caught:
        await opened(url, **options)
    return str(caught.value)


async def echo(connection: ServerConnection) -> None:
    async for message in connection:
        await connection.send(message)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> certificates.Certificates:
    return certificates.make(tmp_path_factory.mktemp("tls"))


def server_tls(tls: certificates.Certificates) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tls.cert, tls.key)
    return context


async def test_the_request_offers_mcp_and_no_compression_and_has_the_headers(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Any] = []

    async def note(connection: ServerConnection) -> None:
        seen.append(connection.request)
        await echo(connection)

    async with nothing_left(caplog), playing(note) as url:
        stream = await opened(f"{url}?a=b", {"Authorization": "Bearer x"})
        await stream.send(b'"hi"')
        assert await stream.receive() == b'"hi"'
        await stream.aclose()
    (request,) = seen
    assert request.path == "/mcp?a=b"
    assert request.headers["Sec-WebSocket-Protocol"] == "mcp"
    assert request.headers["Authorization"] == "Bearer x"
    assert "Sec-WebSocket-Extensions" not in request.headers
    assert "Origin" not in request.headers


async def test_a_server_that_chooses_no_subprotocol_is_taken() -> None:
    async with playing(echo, subprotocols=None) as url:
        stream = await opened(url)
        await stream.send(b"1")
        assert await stream.receive() == b"1"
        await stream.aclose()


HTML = b"<html><head><style></style></head><body><h1>Sign  in</h1></body></html>"
REFUSAL = b'{"jsonrpc":"2.0","error":{"code":-32600,"message":"the Origin is not allowed"}}'


def answer(status: str, body: bytes = b"", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (answer("401 Unauthorized", b"who?"), "it answers 401 Unauthorized: who?. It wants to know who asks"),
        (answer("403 Forbidden", REFUSAL), "it answers 403 Forbidden: the Origin is not allowed"),
        (answer("404 Not Found"), "it answers 404 Not Found. There is nothing at this path"),
        (answer("200 OK", HTML), "it answers 200 OK: Sign in. Is it an HTTP endpoint?"),
        (answer("503 Service Unavailable", b"x" * 1000), "it answers 503 Service Unavailable: " + "x" * 300 + "..."),
        (answer("299 What", b"\xff\x00"), "it answers 299: "),
        (
            answer("302 Found", b"", "Location: https://u:p@other/x?token=1"),
            "are not followed; it names 'https://other/x'",
        ),
        (answer("302 Found", b"", "Location: http://[x"), "are not followed; it names 'http://[x'"),
        (answer("302 Found", b"", "Location: /other"), "are not followed; it names '/other'"),
        (b"SSH-2.0-OpenSSH\r\n", "it answers with something else than HTTP"),
        (b"HTTP/1.0 200 OK\r\n\r\n", "it answers with HTTP/1.0, which has no WebSockets. Is the address right?"),
        (b"", "it closed the connection before it had answered. Is the port right"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgr", "it closed the connection before it had answered"),
        (answer("101 Switching Protocols", b"", "Upgrade: websocket", "Connection: Upgrade"), "makes no WebSocket"),
    ],
    ids=[
        "401",
        "403",
        "404",
        "html",
        "503",
        "299",
        "redirect",
        "no place",
        "path",
        "ssh",
        "old",
        "nothing",
        "half",
        "101",
    ],
)
async def test_a_refusal_is_explained(said: bytes, told: str, caplog: pytest.LogCaptureFixture) -> None:
    async with nothing_left(caplog), saying(said) as url:
        why = await why_not(url.replace("ws://", "ws://user:secret@") + "?token=secret")
        assert told in why
        assert why.startswith(f"cannot connect to {url}: ")
        assert "secret" not in why
        assert "token" not in why


async def test_where_nobody_listens_it_says_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert await why_not(f"ws://127.0.0.1:{port}/x") == (
        f"cannot connect to ws://127.0.0.1:{port}/x: "
        "nothing listens there. Is the server running, and is the port right?"
    )


async def test_giving_up_while_the_server_says_nothing_leaves_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with nothing_left(caplog), saying(b"", close=False) as url:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await opened(url)


# --------------------------------------------------------------------------------------------------- TLS


async def test_over_tls_the_authority_is_trusted_that_was_named(
    tls: certificates.Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    async with nothing_left(caplog), playing(echo, ssl=server_tls(tls)) as url:
        for trusted in (tls.authority, Path(tls.authority), tls.trusted, False):
            stream = await opened(url, tls=tls_context(trusted))
            await stream.send(b"1")
            assert await stream.receive() == b"1"
            await stream.aclose()
        assert "its certificate is not trusted: " in await why_not(url, tls=tls_context(True))
    async with playing(echo) as url:
        why = await why_not(url.replace("ws:", "wss:"), tls=tls_context(True))
        assert "it closed the connection before it had answered. Is the port right, and is TLS" in why
    async with playing(echo, ssl=server_tls(tls)) as url:
        assert "is TLS (wss://) what it speaks?" in await why_not(url.replace("wss:", "ws:"))


# --------------------------------------------------------------------------------------------------- proxies


async def test_a_proxy_that_the_environment_names_is_used_but_not_for_this_machine(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with nothing_left(caplog), playing(echo) as url, proxy() as (through, asked):
        monkeypatch.setenv("http_proxy", through)
        monkeypatch.delenv("no_proxy", raising=False)
        stream = await opened(url.replace("127.0.0.1", "far.example"))
        await stream.send(b"1")
        assert await stream.receive() == b"1"
        await stream.aclose()
        assert asked == [f"CONNECT far.example:{url.rpartition(':')[2].partition('/')[0]} HTTP/1.1".encode()]
        direct = await opened(url)
        await direct.aclose()
        assert len(asked) == 1


async def test_a_proxy_that_refuses_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async with saying(answer("407 Proxy Authentication Required")) as url:
        monkeypatch.setenv("http_proxy", url.replace("ws://", "http://user:secret@").removesuffix("/mcp"))
        why = await why_not("ws://far.example/mcp")
        assert why.startswith("cannot connect to ws://far.example/mcp through the proxy http://127.0.0.1:")
        assert "407" in why
        assert "secret" not in why


async def test_a_proxy_that_makes_no_sense_is_told(monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    caplog.set_level(logging.CRITICAL)
    monkeypatch.setenv("http_proxy", "nonsense://user:secret@x")
    with pytest.raises(ConfigError) as caught:
        await opened("ws://far.example/mcp")
    assert "secret" not in str(caught.value)
