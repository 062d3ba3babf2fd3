"""Clients of 2025-11-25 over HTTP that hang up while the work goes on, and come back for the rest of the stream."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator
from typing import Any

import pytest

from modelwire import Client, Context, Server
from modelwire.server.http import handshake
from modelwire.server.http.app import App


class Job:
    """A server with one tool, that closes its stream and then goes on when it is told to."""

    def __init__(self) -> None:
        self.go_on = asyncio.Semaphore(0)
        self.server = Server("jobs")
        self.server.add_tool(self.work)
        self.app = self.server.asgi()

    async def work(self, ctx: Context, closes: int = 1, waits: int = 0) -> str:
        for _ in range(waits):
            await self.go_on.acquire()
        for step in range(1, closes + 1):
            ctx.progress(step)
            ctx.close_stream(retry=0.25)
            await self.go_on.acquire()
        ctx.progress(closes + 1)
        return "done"


@pytest.fixture
async def job() -> AsyncIterator[Job]:
    job = Job()
    yield job
    await job.app.aclose()


async def ask(
    app: App, method: str, headers: dict[str, str], message: Any = None, begun: asyncio.Event | None = None
) -> tuple[int, dict[str, str], str]:
    """Send one HTTP request, and return the whole response: its status, its headers and its body.

    ``begun`` is set as soon as the response begins.
    """
    body = b"" if message is None else json.dumps(message).encode()
    given = {"accept": "application/json, text/event-stream", "content-type": "application/json", **headers}
    sent: list[Any] = []
    requests = [{"type": "http.request", "body": body}]

    async def receive() -> Any:
        return requests.pop() if requests else await asyncio.Event().wait()

    async def send(part: Any) -> None:
        sent.append(part)
        if begun is not None:
            begun.set()

    raw = [(name.encode(), value.encode()) for name, value in given.items()]
    await app({"type": "http", "method": method, "path": "/mcp", "headers": raw}, receive, send)
    answered = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], answered, b"".join(part.get("body", b"") for part in sent[1:]).decode()


async def opened(app: App, revision: str = "2025-11-25") -> dict[str, str]:
    """Begin a session, and return the headers of what belongs to it."""
    info = {"name": "test", "version": "1"}
    params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": info}
    _, headers, _ = await ask(app, "POST", {}, {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
    session = {"mcp-session-id": headers["mcp-session-id"], "mcp-protocol-version": revision}
    await ask(app, "POST", session, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    return session


def call(progress: bool = False, **arguments: Any) -> dict[str, Any]:
    params: dict[str, Any] = {"name": "work", "arguments": arguments}
    if progress:
        params["_meta"] = {"progressToken": "t"}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def events(body: str) -> list[tuple[str, Any]]:
    """Return ids and data of the events of a stream; an event without data as None."""
    found: list[tuple[str, Any]] = []
    for block in body.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if line and not line.startswith(":"))
        if "id" in fields:
            found.append((fields["id"], json.loads(fields["data"]) if fields["data"] else None))
    return found


async def test_the_stream_ends_with_an_id_to_come_back_with_and_the_time_to_do_so(job: Job) -> None:
    session = await opened(job.app)
    status, headers, body = await ask(job.app, "POST", session, call())
    assert (status, headers["content-type"]) == (200, "text/event-stream")
    assert [data for _, data in events(body)] == [None]
    assert body.endswith("retry: 250\n\n")


async def test_what_is_said_meanwhile_is_heard_by_whoever_comes_back(job: Job) -> None:
    session = await opened(job.app)
    _, _, before = await ask(job.app, "POST", session, call(progress=True))
    heard = events(before)
    assert [data["params"]["progress"] for _, data in heard if data] == [1]
    job.go_on.release()
    _, _, after = await ask(job.app, "GET", session | {"last-event-id": heard[-1][0]})
    progress, result = (data for _, data in events(after))
    assert progress["params"]["progress"] == 2
    assert (result["id"], result["result"]["content"][0]["text"]) == (1, "done")


async def test_who_came_back_may_be_let_go_again(job: Job) -> None:
    session = await opened(job.app)
    _, _, first = await ask(job.app, "POST", session, call(closes=2, progress=True))
    back = asyncio.Event()
    coming = asyncio.ensure_future(ask(job.app, "GET", session | {"last-event-id": events(first)[-1][0]}, begun=back))
    await back.wait()
    job.go_on.release()
    _, _, second = await coming
    assert second.endswith("retry: 250\n\n")
    assert [data["params"]["progress"] for _, data in events(second)] == [2]
    job.go_on.release()
    _, _, third = await ask(job.app, "GET", session | {"last-event-id": events(second)[-1][0]})
    assert [data.get("method", "result") for _, data in events(third)] == ["notifications/progress", "result"]


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18"])
async def test_where_clients_cannot_be_sure_to_come_back_the_stream_stays(job: Job, revision: str) -> None:
    session = await opened(job.app, revision)
    job.go_on.release()
    _, _, body = await ask(job.app, "POST", session, call(progress=True))
    assert "retry:" not in body
    assert "done" in body


async def test_a_request_that_stands_alone_is_answered_on_its_own_response(job: Job) -> None:
    message = call()
    message["params"]["_meta"] = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    job.go_on.release()
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "work"}
    status, _, body = await ask(job.app, "POST", headers, message)
    assert (status, json.loads(body)["result"]["content"][0]["text"]) == (200, "done")


async def test_a_stream_that_begins_because_nothing_is_said_has_an_id_to_come_back_with(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handshake, "SOON", 0.01)
    session = await opened(job.app)
    begun = asyncio.Event()
    calling = asyncio.ensure_future(ask(job.app, "POST", session, call(closes=0, waits=1), begun))
    await begun.wait()
    job.go_on.release()
    _, _, body = await calling
    (_, nothing), (_, answer) = events(body)
    assert nothing is None
    assert answer["result"]["content"][0]["text"] == "done"
    assert body.startswith("id: ")


async def test_other_transports_have_no_stream_to_close(job: Job) -> None:
    job.go_on.release()
    async with Client(job.server, revision="2025-11-25") as client:
        assert await client.call("work") == "done"


@pytest.mark.parametrize("retry", [-1, math.inf, math.nan])
async def test_a_time_that_is_none_is_refused(retry: float) -> None:
    server = Server("jobs")

    @server.tool
    async def work(ctx: Context) -> str:
        with pytest.raises(ValueError, match="retry= is a number of seconds"):
            ctx.close_stream(retry=retry)
        return "refused"

    async with Client(server) as client:
        assert await client.call("work") == "refused"
