"""Whatever is posted, with whatever headers: an answer that the schema allows, no status 500, no failure in the log."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import spec
from tests.clock import Clock
from tests.robustness.frames import frames, torn
from tests.server.http.asgi import BOTH, Exchange, Http, Legacy, Modern, serving
from tests.server.http.raw import connected
from tests.server.http.servers import make
from tests.wire import MODERN, PATIENCE, dumps

SENT = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"}
STATUSES = {200, 202, 204, 400, 403, 404, 405, 406, 413, 415}
VALUES = st.one_of(
    st.sampled_from(
        [
            "",
            "*/*",
            BOTH,
            "application/json",
            "*;q=0",
            MODERN,
            "2025-11-25",
            "localhost",
            "null",
            "=?base64?!?=",
            "1-1",
            "\xb2",
            "9" * 30,
        ]
    ),
    st.text(st.characters(max_codepoint=255, exclude_characters="\r\n\0"), max_size=30),
)
NAMES = st.sampled_from(
    [
        "Host", "Origin", "Accept", "Content-Type", "Content-Encoding", "Content-Length", "MCP-Protocol-Version",
        "Mcp-Method", "Mcp-Name", "Mcp-Param-Region", "Mcp-Session-Id", "Last-Event-ID",
        "Access-Control-Request-Method", "Access-Control-Request-Headers", "X-Any",
    ]
)  # fmt: skip
METHODS = st.sampled_from(["POST", "POST", "GET", "DELETE", "OPTIONS", "HEAD", "PUT"])
PATHS = st.sampled_from(["/mcp", "/mcp", "/mcp/", "/sse", "/messages", "/", "", "/x\x00"])


class Heard(logging.Handler):
    """What the log says of failures."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def running(test: Callable[[Http], Awaitable[None]], **options: Any) -> None:
    """Run a test against a server of its own, of which nothing may be left and the log may say nothing bad."""

    async def run() -> None:
        async with serving(make().server, **options) as http:
            await test(http)

    heard = Heard()
    logging.getLogger().addHandler(heard)
    try:
        asyncio.run(run())
    finally:
        logging.getLogger().removeHandler(heard)
    assert heard.lines == []


async def settled(exchange: Exchange, revision: str) -> None:
    """Hold an answer against the schema; what takes its time is left."""
    await Clock().turn()
    if not exchange.task.done():
        await exchange.leave()
    exchange.task.result()
    assert exchange.status is None or exchange.status in STATUSES, exchange.body
    for name, value in exchange.headers.items():
        assert (name + value).isprintable()
    if exchange.over and exchange.body and not exchange.streams:
        found = json.loads(exchange.body)
        for message in found if isinstance(found, list) else [found]:
            if "error" in message:
                # What says that it is of 2026-07-28 is answered as that, whoever posts it.
                spoken = MODERN if message["error"]["code"] in (-32020, -32021, -32022) else revision
                assert spec.validate_message(spoken, "server", message) == []


@pytest.mark.parametrize("revision", [MODERN, "2025-11-25", "2025-03-26", None])
@given(bodies=st.lists(frames(), min_size=5, max_size=10))
def test_no_body_is_too_much(revision: str | None, bodies: list[bytes]) -> None:
    async def post_them(http: Http) -> None:
        headers: dict[str, Any] = dict(SENT) if revision == MODERN else {}
        if revision is not None and revision != MODERN:
            headers = (await Legacy(http, revision).open()).headers()
        for body in bodies:
            await settled(http.post(body, headers), revision or "2025-11-25")

    running(post_them)


ASKED = st.tuples(METHODS, PATHS, st.lists(st.tuples(NAMES, VALUES), max_size=8))


@given(asked=st.lists(ASKED, min_size=3, max_size=10))
def test_no_headers_are_too_much(asked: list[tuple[str, str, list[tuple[str, str]]]]) -> None:
    async def ask_for_them(http: Http) -> None:
        session = (await Legacy(http).open()).session
        for method, path, pairs in asked:
            usual = [("Content-Type", "application/json"), ("Mcp-Session-Id", session), *SENT.items()]
            headers = [*pairs, *((name, value) for name, value in usual if name not in dict(pairs))]
            body = dumps(Modern(http).message("tools/list"))
            await settled(http.ask(method, headers, body, path=path), MODERN)

    running(ask_for_them, sse=True, allowed_origins=["*"])


BODY = dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
HEAD = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: */*\r\n"
WHOLE = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\nX-T: 1\r\n\r\n" % (len(BODY), BODY)
OFFERED = WHOLE.replace(b"Accept", b"Connection: Upgrade\r\nUpgrade: h2c\r\nAccept")
SAID = st.sampled_from([WHOLE, CHUNKED, OFFERED, WHOLE + CHUNKED + OFFERED]).flatmap(torn)


async def answered(port: int, said: bytes) -> bytes:
    """What comes back for bytes, after which nothing more is said."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        with contextlib.suppress(ConnectionError):
            writer.write(said)
            writer.write_eof()
            async with asyncio.timeout(PATIENCE):
                return await reader.read()
        return b""
    finally:
        writer.transport.abort()


@pytest.mark.slow
@settings(max_examples=10)
@given(said=st.lists(SAID, min_size=20, max_size=40))
def test_no_bytes_are_too_much(said: list[bytes]) -> None:
    async def run() -> None:
        async with make().server.serving("http://127.0.0.1:0/mcp") as serving:
            port = urlsplit(serving.url or "").port
            assert port is not None
            for found in await asyncio.gather(*(answered(port, one) for one in said)):
                assert b"HTTP/1.1 5" not in found
            async with connected(serving.url or "") as http:
                http.writer.write(WHOLE)
                assert (await http.whole())[0] == 400  # there is no session, and everything else is well

    heard = Heard()
    logging.getLogger().addHandler(heard)
    try:
        asyncio.run(run())
    finally:
        logging.getLogger().removeHandler(heard)
    assert heard.lines == []
