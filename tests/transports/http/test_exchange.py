"""One request over HTTP: answers in every form, answers that are none, redirects, and what is sent again."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from modelwire import (
    Client,
    ConnectionFailed,
    FrameTooLarge,
    HttpFailed,
    PeerError,
    ProtocolViolation,
    RequestTimeout,
    Server,
)
from modelwire.transports.http import exchange
from modelwire.transports.http.own_engine import OwnEngine
from modelwire.transports.http.trouble import broken_by
from tests.transports.http.scripted import (
    SAID,
    Out,
    Request,
    done,
    legacy,
    modern,
    web,
)

# ------------------------------------------------------------------ answers in every form


@pytest.mark.parametrize("kind", ["Application/JSON; Charset=UTF-8", "application/json;"])
async def test_json_is_json_however_it_is_spelt(kind: str) -> None:
    # Case 41.
    async def on_call(request: Request, out: Out) -> None:
        answer = {"jsonrpc": "2.0", "id": request.message["id"], "result": SAID}
        await out.send(200, json.dumps(answer).encode(), kind)

    async with web(modern(on_call)) as server, Client(server.url) as client:
        assert await client.call("t") == "done"


STREAMS = {
    "lf": b"data: %s\n\n",
    "crlf": b"data: %s\r\n\r\n",
    "cr": b"data: %s\r\r",
    "cut crlf": b"event: message\r|\ndata: %s\r|\n\r|\n",
    "without a space": b"data:%s\n\n",
    "mark": b"\xef\xbb\xbfdata: %s\n\n",
    "cut mark": b"\xef|\xbb|\xbfdata: %s\n\n",
    "comments": b": hello\n\n:\n\nevent: other\ndata: x\n\ndata\n\ndata: %s\n\n: bye\n\n",
}


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS.keys())
async def test_an_answer_comes_on_any_stream_of_events(stream: bytes) -> None:
    # Cases 55 and 57.
    async def on_call(request: Request, out: Out) -> None:
        await out.events("Text/Event-Stream; charset=UTF-8")
        answer = json.dumps({"jsonrpc": "2.0", "id": request.message["id"], "result": SAID}).encode()
        for chunk in stream.replace(b"%s", answer).split(b"|"):
            await out.raw(chunk)
            await asyncio.sleep(0)

    async with web(modern(on_call)) as server, Client(server.url) as client:
        assert await client.call("t") == "done"


async def test_an_answer_may_have_many_lines() -> None:
    async def on_call(request: Request, out: Out) -> None:
        await out.events()
        answer = json.dumps({"jsonrpc": "2.0", "id": request.message["id"], "result": SAID}, indent=1)
        await out.raw("".join(f"data: {line}\n" for line in answer.splitlines()).encode() + b"\n")

    async with web(modern(on_call)) as server, Client(server.url) as client:
        assert await client.call("t") == "done"


async def test_a_stream_that_stays_open_after_the_answer_holds_up_nobody() -> None:
    async def on_call(request: Request, out: Out) -> None:
        await out.events()
        await out.event({"jsonrpc": "2.0", "id": request.message["id"], "result": SAID})
        await asyncio.Event().wait()

    async with web(modern(on_call)) as server, Client(server.url) as client:
        assert await client.call("t") == "done"
        async with asyncio.timeout(10):
            await server.hung_up.wait()


# ------------------------------------------------------------------ one bad answer harms no other


def page(status: int, body: bytes = b"<html><h1>Gateway</h1></html>", type: str = "text/html") -> Any:
    async def play(request: Request, out: Out) -> None:
        await out.send(status, body, type)

    return play


async def _reset(request: Request, out: Out) -> None:
    out.reset()


async def _truncated(request: Request, out: Out) -> None:
    out.keep = False
    await out.raw(b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{"jsonrpc"')


async def _half_closed(request: Request, out: Out) -> None:
    out.keep = False


async def _no_http(request: Request, out: Out) -> None:
    out.keep = False
    await out.raw(b"220 smtp.example ESMTP\r\n")


async def _no_answer(request: Request, out: Out) -> None:
    await out.events()
    await out.event({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}})


async def _wrong_id(request: Request, out: Out) -> None:
    await out.json({"jsonrpc": "2.0", "id": 999, "result": SAID})


async def _broken_json(request: Request, out: Out) -> None:
    await out.send(200, b'{"jsonrpc": "2.0", ', "application/json")


async def _error_without_id(request: Request, out: Out) -> None:
    await out.error(None, -32600, "no such thing", 400)


BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "500": (
        page(500),
        HttpFailed,
        r"answered with HTTP 500; the server failed.*It said \(text/html\): Gateway",
    ),
    "502": (page(502), HttpFailed, "HTTP 502; a proxy in between"),
    "403": (
        page(403, b'{"jsonrpc":"2.0","error":{"code":-32600,"message":"Host"}}', "application/json"),
        HttpFailed,
        "403",
    ),
    "401": (page(401), HttpFailed, "HTTP 401; the server wants to know who asks"),
    "a page": (page(200), HttpFailed, "HTTP 200 and text/html, which is no answer.*login page"),
    "nothing": (page(202, b"", "text/plain"), HttpFailed, "HTTP 202 and nothing else"),
    "reset": (_reset, HttpFailed, "was reset|without an answer"),
    "truncated": (_truncated, HttpFailed, "the answer broke off"),
    "half-closed": (_half_closed, HttpFailed, "closed the connection without an answer"),
    "no http": (_no_http, HttpFailed, "tools/call was not answered"),
    "no answer": (_no_answer, HttpFailed, "ended the stream of events without an answer"),
    "wrong id": (_wrong_id, ProtocolViolation, "is no answer to it"),
    "broken json": (_broken_json, ProtocolViolation, "is no answer to it"),
    "an error": (_error_without_id, PeerError, "no such thing"),
}


@pytest.mark.parametrize("fault", BAD.values(), ids=BAD.keys())
@pytest.mark.parametrize("era", [modern, legacy])
async def test_a_bad_answer_fails_its_request_alone(era: Any, fault: tuple[Any, type[Exception], str]) -> None:
    bad, kind, words = fault
    waiting = asyncio.Event()

    async def on_call(request: Request, out: Out) -> None:
        if request.message["params"].get("name") == "bad":
            await bad(request, out)
            return
        await waiting.wait()
        await done(request, out)

    async with web(era(on_call)) as server, Client(server.url) as client:
        other = asyncio.create_task(client.call("t"))
        await server.wait_for("tools/call")
        with pytest.raises(kind, match=words):
            await client.call("bad")
        waiting.set()
        assert await other == "done"
        assert await client.call("t") == "done"


async def test_an_error_has_status_and_body_and_shows_no_secret() -> None:
    async def on_call(request: Request, out: Out) -> None:
        await out.send(403, b"who is " + request.headers["authorization"].encode(), "text/plain")

    async with (
        web(modern(on_call)) as server,
        Client(f"{server.url}?key=hidden", headers={"Authorization": "Bearer s3cr3t-token"}) as client,
    ):
        with pytest.raises(HttpFailed) as caught:
            await client.call("t")
    assert caught.value.status == 403
    assert caught.value.body == "who is ***"
    assert caught.value.url == server.url
    assert "s3cr3t" not in str(caught.value)
    assert "hidden" not in str(caught.value)


async def test_a_body_above_max_message_is_not_read_to_its_end() -> None:
    async def on_call(request: Request, out: Out) -> None:
        if request.message["params"]["name"] == "small":
            await done(request, out)
        elif request.message["params"]["name"] == "json":
            await out.send(200, b'{"jsonrpc":"2.0","id":%d,' % request.message["id"] + b" " * 5000, "application/json")
        else:
            await out.events()
            await out.raw(b'data: {"jsonrpc":"2.0","id":%d,"result":' % request.message["id"] + b" " * 5000 + b"\n\n")

    async with web(modern(on_call)) as server, Client(server.url, max_message=2000) as client:
        for name in ("json", "events"):
            with pytest.raises(FrameTooLarge):
                await client.call(name)
        assert await client.call("small") == "done"


async def test_nothing_there_says_so() -> None:
    with pytest.raises(ConnectionFailed, match=r"http://127.0.0.1:1/mcp: nothing listens there; is the server running"):
        await Client("http://127.0.0.1:1/mcp").connect()
    with pytest.raises(ConnectionFailed, match="the host name is not known"):
        await Client("http://no-such-host.invalid/mcp").connect()


async def test_tls_where_there_is_none_says_so() -> None:
    async with Server("x").serving("http://127.0.0.1:0/mcp") as serving:
        assert serving.url is not None
        with pytest.raises(ConnectionFailed, match="TLS failed"):
            await Client(serving.url.replace("http://", "https://")).connect()


@pytest.mark.parametrize("fault", [_reset, _half_closed], ids=["reset", "closed"])
async def test_a_server_that_hangs_up_at_once_may_speak_tls_and_one_that_has_answered_does_not(fault: Any) -> None:
    async with web(fault) as server:
        with pytest.raises(ConnectionFailed, match=r"http://.*; does it speak TLS \(https://\) perhaps\?"):
            await Client(server.url).connect()
    async with web(modern(fault)) as server, Client(server.url) as client:
        with pytest.raises(HttpFailed) as caught:
            await client.call("t")
        assert "TLS" not in str(caught.value)


async def test_what_a_web_page_says_is_told_without_its_tags() -> None:
    said = b"<html><style>p {color: red}</style><p>Error code: 501</p><p>Unsupported method &amp; more</p></html>"
    async with web(page(501, said)) as server:
        with pytest.raises(ConnectionFailed) as caught:
            await Client(server.url).connect()
    text = str(caught.value)
    assert "HTTP 501; POST is not known there: it may be no MCP endpoint" in text
    assert text.endswith("It said (text/html): Error code: 501 Unsupported method & more")


async def test_a_refusal_to_open_says_where_it_came_from() -> None:
    async def play(request: Request, out: Out) -> None:
        await out.error(None, -32601, "there is nothing here", 404)

    async with web(play) as server:
        with pytest.raises(ConnectionFailed) as caught:
            await Client(server.url).connect()
    assert f"{server.url}: the server refuses to open a conversation: there is nothing here" in str(caught.value)


async def test_a_proxy_that_is_not_there_is_named_without_its_password() -> None:
    with pytest.raises(ConnectionFailed, match=r"/mcp through the proxy http://127.0.0.1:1: nothing listens") as caught:
        await Client("http://127.0.0.1:2/mcp", proxy="http://me:secret@127.0.0.1:1").connect()
    assert "secret" not in str(caught.value)


async def test_a_server_that_never_answers_is_named() -> None:
    async def play(request: Request, out: Out) -> None:
        await out.gone()

    async with web(play) as server:
        with pytest.raises(RequestTimeout, match=f"no answer to server/discover from {server.url} within 0.05 s"):
            await Client(server.url, connect_timeout=0.05).connect()


async def test_who_may_not_ask_is_told_so_at_once() -> None:
    async with web(page(401, b"token expired", "text/plain")) as server:
        with pytest.raises(ConnectionFailed, match=r"HTTP 401; .*headers=.*token expired") as caught:
            await Client(server.url).connect()
    assert isinstance(caught.value.__cause__, HttpFailed)
    assert [request.rpc for request in server.requests] == ["server/discover"]


# ------------------------------------------------------------------ again


@pytest.mark.parametrize("fault", [_reset, _half_closed, _truncated, page(502)], ids=["reset", "closed", "cut", "502"])
async def test_a_request_without_effects_is_sent_again_once(fault: Any) -> None:
    count = 0

    async def on_call(request: Request, out: Out) -> None:
        nonlocal count
        count += 1
        if count == 1 or request.message["params"].get("uri") == "x:never":
            await fault(request, out)
        else:
            await out.result(request, {"contents": [], "ttlMs": 0, "cacheScope": "private", "resultType": "complete"})

    async with web(modern(on_call)) as server, Client(server.url) as client:
        await client.read_resource("x:once")
        assert count == 2
        with pytest.raises(HttpFailed, match="resources/read was sent twice"):
            await client.read_resource("x:never")
        assert count == 4


async def test_a_server_that_is_gone_for_a_moment_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Away:
        """Refuses to be reached, so many times."""

        def __init__(self, engine: OwnEngine, times: int) -> None:
            self.engine = engine
            self.times = times

        async def __call__(self) -> Any:
            if self.times:
                self.times -= 1
                raise broken_by(ConnectionRefusedError(), connecting=True)
            return await OwnEngine._connect(self.engine)

    monkeypatch.setattr(exchange, "PAUSES", (0.0, 0.0, 0.0))
    engines: list[OwnEngine] = []
    monkeypatch.setattr(OwnEngine, "_kept", lambda self: engines.append(self))
    async with web(modern(done)) as server, Client(server.url) as client:
        for times, error in ((3, None), (4, "nothing listens there")):
            engines[-1]._connect = Away(engines[-1], times)  # type: ignore[method-assign]
            if error is None:
                assert await client.call("t") == "done"
            else:
                with pytest.raises(HttpFailed, match=error) as caught:
                    await client.call("t")
                assert caught.value.unsent


async def test_a_call_that_may_have_run_is_not_sent_again() -> None:
    async with web(modern(_reset)) as server, Client(server.url) as client:
        with pytest.raises(HttpFailed, match="it may have run or not, and was not sent again"):
            await client.call("t")
    assert len(server.asked("tools/call")) == 1


async def test_a_server_that_asks_to_wait_is_waited_for_within_the_deadline() -> None:
    waits = ["0", "0", "60"]

    async def on_call(request: Request, out: Out) -> None:
        if waits:
            await out.send(429, b"slowly", "text/plain", retry_after=waits.pop(0))
        else:
            await done(request, out)

    async with web(modern(on_call)) as server, Client(server.url) as client:
        with pytest.raises(HttpFailed, match=r"HTTP 429.*in 60 s it says") as caught:
            await client.call("t", timeout=5)
        assert caught.value.retry_after == 60
        assert await client.call("t") == "done"


# ------------------------------------------------------------------ redirects


@pytest.mark.parametrize("status", [307, 308])
async def test_a_redirect_on_the_same_server_keeps_method_body_and_headers(status: int) -> None:
    # Case 47.
    async def play(request: Request, out: Out) -> None:
        if request.path == "/mcp":
            await out.send(status, location="/mcp/")
        else:
            await modern(done)(request, out)

    async with web(play) as server, Client(server.url, headers={"Authorization": "Bearer abc"}) as client:
        assert await client.call("t") == "done"
    final = server.asked("tools/call")[-1]
    assert (final.method, final.path, final.headers["authorization"]) == ("POST", "/mcp/", "Bearer abc")
    assert len(server.asked("tools/call")) == (1 if status == 308 else 2)


@pytest.mark.parametrize(
    ("status", "place", "words"),
    [
        (302, "/other", "it would turn the message into a GET"),
        (
            307,
            "http://127.0.0.1:9/mcp",
            "it leads to another server; if that is right, connect to http://127.0.0.1:9/mcp",
        ),
        (307, "/mcp", "there were 5 redirects before it"),
        (308, "", "it names no place"),
        (307, "http://[x", r"it leads to another server; if that is right, connect to http://\[x"),
    ],
)
async def test_other_redirects_are_refused(status: int, place: str, words: str) -> None:
    async def play(request: Request, out: Out) -> None:
        await out.send(status, location=place)

    async with web(play) as server:
        with pytest.raises(ConnectionFailed, match=words):
            await Client(server.url, headers={"Authorization": "Bearer abc"}).connect()
