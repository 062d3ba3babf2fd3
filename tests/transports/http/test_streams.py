"""Sessions of the handshake revisions: their end, and streams that break and are taken up again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from modelwire import (
    Client,
    HttpFailed,
    Missed,
    ToolsChanged,
)
from modelwire.rules import restarts
from tests.transports.http.scripted import (
    SAID,
    Out,
    Request,
    done,
    legacy,
    modern,
    web,
)

# ------------------------------------------------------------------ sessions that end


async def test_a_session_that_is_gone_is_made_anew_and_the_call_sent_again() -> None:
    # Case 43.
    sessions = iter(["one", "two"])
    calls: list[str] = []

    async def play(request: Request, out: Out) -> None:
        session = request.headers.get("mcp-session-id")
        if request.rpc == "tools/call":
            calls.append(session or "")
            if session == "one":
                await out.send(404, b"Session not found", "text/plain")
                return
        script = legacy(done, session=next(sessions)) if request.rpc == "initialize" else legacy(done)
        await script(request, out)

    async with web(play) as server, Client(server.url) as client:
        assert await client.call("t") == "done"
        assert await client.call("t") == "done"
        assert calls == ["one", "two", "two"]
        assert [request.headers.get("mcp-session-id") for request in server.asked("initialize")] == [None, None]
        assert len(server.asked("notifications/initialized")) == 2


async def test_a_second_404_surfaces() -> None:
    async def on_call(request: Request, out: Out) -> None:
        await out.send(404, b"Session not found", "text/plain")

    async with web(legacy(on_call)) as server, Client(server.url) as client:
        with pytest.raises(HttpFailed, match=r"does not know the session any more \(HTTP 404\)") as caught:
            await client.call("t")
        assert caught.value.status == 404
        assert len(server.asked("initialize")) == 2


@pytest.mark.parametrize("status", [204, 200, 500, 0])
async def test_odd_answers_to_notifications_break_nothing(status: int) -> None:
    # Case 51.
    async def play(request: Request, out: Out) -> None:
        if request.rpc != "notifications/initialized":
            await legacy(done)(request, out)
        elif status:
            await out.send(status, b"{}" if status == 200 else b"", "application/json")
        else:
            await out.events()

    async with web(play) as server, Client(server.url) as client:
        assert await client.call("t") == "done"


# ------------------------------------------------------------------ streams that break and are taken up again


async def test_a_stream_is_taken_up_again_after_the_last_event() -> None:
    async def on_call(request: Request, out: Out) -> None:
        await out.events()
        await out.event("", id="e1")
        await out.raw(b"retry: 10\n\n")
        answers.append(request.message["id"])

    async def get(request: Request, out: Out) -> None:
        last = request.headers.get("last-event-id")
        if last is None:
            await out.send(405)
            return
        lasts.append(last)
        await out.events()
        if last == "e1":
            await out.event(
                {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}}, id="e2"
            )
        elif len(lasts) == 2:
            pass  # nothing yet
        else:
            await out.event({"jsonrpc": "2.0", "id": answers[0], "result": SAID}, id="e3")

    answers: list[int] = []
    lasts: list[str] = []
    logs: list[Any] = []
    async with web(legacy(on_call, get=get)) as server, Client(server.url, on_log=logs.append) as client:
        assert await client.call("t") == "done"
    assert lasts == ["e1", "e2", "e2"]
    assert [log.data for log in logs] == [1]


async def test_a_stream_that_cannot_be_taken_up_fails_its_request() -> None:
    async def on_call(request: Request, out: Out) -> None:
        await out.events()
        await out.event("", id="e1")
        await out.raw(b"retry: 0\n\n")

    async def get(request: Request, out: Out) -> None:
        await out.send(400, b"unknown event", "text/plain")

    async with web(legacy(on_call, get=get)) as server, Client(server.url) as client:
        with pytest.raises(HttpFailed, match="HTTP 400.*unknown event"):
            await client.call("t")


async def test_the_stream_for_news_is_opened_again_and_goes_on_where_it_was() -> None:
    # Case 49: a server that refuses the second stream at first is asked again.
    gets = 0

    async def get(request: Request, out: Out) -> None:
        nonlocal gets
        gets += 1
        if gets == 2:
            await out.send(503)
            return
        assert request.headers.get("last-event-id") == (None if gets == 1 else "n1")
        await out.events()
        await out.raw(b"retry: 10\n\n")
        if gets == 1:
            await out.event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}, id="n1")
            return
        await out.event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}, id="n2")
        await asyncio.Event().wait()

    news: list[str] = []
    told = asyncio.Event()

    def note(method: str, params: Any) -> None:
        news.append(method)
        if len(news) == 2:
            told.set()

    async with web(legacy(done, get=get)) as server, Client(server.url, on_notification=note) as client:
        async with asyncio.timeout(10):
            await told.wait()
        assert await client.call("t") == "done"
    assert gets == 3


async def test_a_listening_hears_that_it_may_have_missed_something() -> None:
    gets = 0

    async def get(request: Request, out: Out) -> None:
        nonlocal gets
        gets += 1
        await out.events()
        if gets == 1:
            await go.wait()
            return
        await asyncio.Event().wait()

    go = asyncio.Event()
    async with (
        web(legacy(done, get=get)) as server,
        Client(server.url) as client,
        client.listen(tools=True) as events,
    ):
        go.set()
        async with asyncio.timeout(10):
            assert await anext(events) == Missed()


async def test_a_listening_goes_on_where_the_session_is_gone_with_the_stream_and_nobody_calls() -> None:
    # A server that was started again does not know the session: nothing but the stream would ever find out.
    sessions = iter(["one", "two"])
    go = asyncio.Event()

    async def get(request: Request, out: Out) -> None:
        if request.headers["mcp-session-id"] == "one" and go.is_set():
            await out.send(404, b"Session not found", "text/plain")
            return
        await out.events()
        await out.raw(b": hello\n\n")
        if request.headers["mcp-session-id"] == "one":
            await go.wait()
        else:
            await out.event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            await out.gone()

    async def play(request: Request, out: Out) -> None:
        script = legacy(done, session=next(sessions), get=get) if request.rpc == "initialize" else legacy(done, get=get)
        await script(request, out)

    async with web(play) as server, Client(server.url) as client, client.listen(tools=True) as events:
        go.set()
        async with asyncio.timeout(10):
            assert {await anext(events), await anext(events)} == {Missed(), ToolsChanged()}
        assert len(server.asked("initialize")) == 2
        assert server.asked("tools/call") == []


async def test_a_server_that_never_had_a_stream_for_news_loses_no_session_over_it() -> None:
    async def get(request: Request, out: Out) -> None:
        await out.send(404, b"no such route", "text/plain")

    async with web(legacy(done, get=get)) as server, Client(server.url) as client:
        await server.wait_for("GET")
        assert await client.call("t") == "done"
        assert len(server.asked("initialize")) == 1


@pytest.mark.parametrize("status", [404, 400])
async def test_a_listening_hears_of_a_session_that_is_gone_without_a_request(status: int) -> None:
    # A server that was started anew knows none of its sessions; some say so with 400.
    sessions = iter(["one", "two"])
    body = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Session not found"}}'

    async def get(request: Request, out: Out) -> None:
        if len(server.asked("initialize")) == 1 and len(server.asked("GET")) > 1:
            await out.send(status, body, "application/json")
            return
        await out.events()
        await out.event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}, id="n1")
        if len(server.asked("GET")) > 1:
            await asyncio.Event().wait()

    async def play(request: Request, out: Out) -> None:
        session = next(sessions) if request.rpc == "initialize" else None
        await legacy(done, session=session, get=get)(request, out)

    async with (
        web(play) as server,
        Client(server.url) as client,
        client.listen(tools=True) as events,
    ):
        async with asyncio.timeout(10):
            while await anext(events) != Missed():
                pass
        assert await client.call("t") == "done"
    assert server.asked("DELETE")[0].headers["mcp-session-id"] == "two"


async def test_a_listening_comes_back_also_when_a_proxy_says_for_a_while_that_nothing_is_behind_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(restarts, "DELAYS", (0.0,) * restarts.MOST)

    async def get(request: Request, out: Out) -> None:
        await out.events()
        if len(server.asked("initialize")) == 1:
            await go.wait()
        else:
            await asyncio.Event().wait()

    async def play(request: Request, out: Out) -> None:
        if go.is_set() and request.rpc in ("GET", "server/discover") and len(server.asked("initialize")) == 1:
            await out.send(404, b"Session not found", "text/plain")
        elif 2 <= len(server.asked("initialize")) <= 3 and request.rpc == "initialize":
            await out.send(502, b"<html>Bad Gateway</html>", "text/html")
        else:
            await legacy(done, get=get)(request, out)

    go = asyncio.Event()
    async with web(play) as server, Client(server.url) as client, client.listen(tools=True) as events:
        go.set()
        async with asyncio.timeout(10):
            assert await anext(events) == Missed()
        assert await client.call("t") == "done"


async def test_a_listening_of_2026_07_28_comes_back_after_its_stream_broke() -> None:
    async def on_call(request: Request, out: Out) -> None:
        tag = {"_meta": {"io.modelcontextprotocol/subscriptionId": request.message["id"]}}
        await out.events()
        await out.event(
            {
                "jsonrpc": "2.0",
                "method": "notifications/subscriptions/acknowledged",
                "params": {"notifications": {"toolsListChanged": True}, **tag},
            }
        )
        if len(server.asked("subscriptions/listen")) == 1:
            await go.wait()
            return
        await out.event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": tag})
        await asyncio.Event().wait()

    go = asyncio.Event()
    async with web(modern(on_call)) as server, Client(server.url) as client:
        async with client.listen(tools=True) as events:
            go.set()
            async with asyncio.timeout(10):
                assert [await anext(events), await anext(events)] == [Missed(), ToolsChanged()]
        async with asyncio.timeout(10):
            await server.hung_up.wait()
