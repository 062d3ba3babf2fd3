"""Networks that break: whatever is cut or comes in crumbs, nothing hangs, nothing is left, no bystander suffers.

Real HTTP over real TCP, through the proxy of `tests.faulty_tcp`.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from modelwire.rpc.call import Call
from modelwire.rpc.connection import Connection as RpcConnection
from modelwire.server.http.reply import Reply
from modelwire.server.http.sessions import HttpSession, Stream
from modelwire.server.subscriptions import Subscriber
from tests.faulty_tcp import FINE, Crossing, Fault, FaultyTcp, How, faulty
from tests.leftovers import nothing_left
from tests.server.http.events import Event
from tests.server.http.raw import Connection, call, connected, heard, opened, posted, request
from tests.server.http.servers import Bench, make
from tests.wire import PATIENCE, dumps, modern_meta

pytestmark = pytest.mark.slow
HERE = "http://127.0.0.1:0/mcp"
KEPT = (Call, Reply, Stream, HttpSession, RpcConnection, Subscriber)

Meanwhile = Callable[[Crossing, bytearray], Awaitable[Any]]

every_how = pytest.mark.parametrize(
    "how", ["reset", *(pytest.param(how, marks=pytest.mark.slow) for how in ("close", "half", "stall"))]
)


def kept() -> Counter[str]:
    """What a server may keep of requests, wherever it keeps it."""
    gc.collect()
    return Counter(type(found).__name__ for found in gc.get_objects() if isinstance(found, KEPT))


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that nobody tells of."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.001)


@contextlib.asynccontextmanager
async def broken(bench: Bench, caplog: pytest.LogCaptureFixture) -> AsyncIterator[FaultyTcp]:
    """A proxy before a server, beside which others go on; at the end nothing may be left of what crossed it."""
    async with (
        nothing_left(caplog),
        bench.server.serving(HERE, sse=True) as serving,
        faulty(str(serving.url)) as proxy,
        bystanders(bench, str(serving.url)),
    ):
        before = kept()
        yield proxy
        await proxy.aclose()
        bench.go.set()
        async with asyncio.timeout(PATIENCE):
            while kept() - before:
                await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def bystanders(bench: Bench, url: str) -> AsyncIterator[None]:
    """Others who use the server meanwhile: calls one after another, a session with a stream, a subscription."""
    async with connected(url) as calls, connected(url) as old, connected(url) as listens:
        session = await opened(old)
        await old.ask("GET", {**session, "Accept": "text/event-stream"})
        assert (await old.head())[0] == 200
        await old.chunk()
        params = {"notifications": {"toolsListChanged": True}, "_meta": modern_meta()}
        await listens.ask(
            "POST", *posted({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params})
        )
        assert (await listens.head())[0] == 200
        await listens.chunk()
        over = asyncio.Event()
        count = 0

        async def go_on() -> None:
            nonlocal count
            while not over.is_set() or not count:
                await calls.ask("POST", *call("add", {"a": count, "b": 1}))
                status, _, body = await calls.whole()
                assert (status, json.loads(body)["result"]["structuredContent"]) == (200, count + 1)
                count += 1
                await asyncio.sleep(0)

        going = asyncio.create_task(go_on())
        await until(lambda: count > 1)  # what serves all of them is made for the first
        try:
            yield
        finally:
            over.set()
            await going
        bench.server.add_tool(lambda: "x", name="told")
        for stream in (old, listens):
            while b"notifications/tools/list_changed" not in (chunk := await stream.chunk()):
                assert chunk.startswith(b":")


def places(whole: int, count: int = 12) -> list[int]:
    """Where to cut: the ends, their neighbours, and some in between."""
    return sorted({0, 1, whole - 1, *(whole * step // count for step in range(count))})


async def sent(proxy: FaultyTcp, data: bytes, meanwhile: Meanwhile | None = None) -> bytes:
    """Send bytes through the proxy; return what comes until the connection ends, or nothing more will come.

    Args:
        proxy: The proxy.
        data: The bytes.
        meanwhile: What is done while the connection is open, with what came so far; by default it is waited.
    """
    before = len(proxy.crossings)
    found = bytearray()
    async with connected(proxy.url) as http:
        reading = asyncio.create_task(_read(http, found))
        http.writer.write(data)
        await until(lambda: len(proxy.crossings) > before)
        crossing = proxy.crossings[before]
        if meanwhile is not None:
            await meanwhile(crossing, found)
        if unheard(crossing):
            # No end of the connection comes, and the client gives up.
            await until(lambda: reading.done() or (crossing.cut.is_set() and len(found) >= crossing.down))
            http.writer.close()
        await reading
    return bytes(found)


async def _read(http: Connection, found: bytearray) -> None:
    async with asyncio.timeout(PATIENCE):
        with contextlib.suppress(ConnectionError):
            while chunk := await http.reader.read(65536):
                found += chunk


def unheard(crossing: Crossing) -> bool:
    """Whether a client does not hear of the fault."""
    up, down = crossing.faults["up"], crossing.faults["down"]
    return (up.after is not None and up.how in ("half", "stall")) or (down.after is not None and down.how == "stall")


# ------------------------------------------------------------------ requests


@every_how
async def test_a_request_that_is_cut_anywhere_leaves_nothing(how: How, caplog: pytest.LogCaptureFixture) -> None:
    async with broken(make(), caplog) as proxy:
        data = request("POST", *call("steps", {"count": 2}, progressToken=1))
        for place in places(len(data)):
            proxy.up = Fault(after=place, how=how)
            found = await sent(proxy, data)
            assert not found.startswith(b"HTTP/1.1 2")


@pytest.mark.parametrize("how", ["close", "half"])  # nobody can know of one that stalls
async def test_a_client_that_is_lost_while_it_waits_is_not_waited_for(
    how: How, caplog: pytest.LogCaptureFixture
) -> None:
    bench = make()
    async with broken(bench, caplog) as proxy:
        data = request("POST", *call("wait"))
        proxy.up = Fault(after=len(data), how=how)
        await sent(proxy, data)
        async with asyncio.timeout(PATIENCE):
            await bench.cancelled.wait()
        assert bench.events == ["wait cancelled"]


async def test_requests_and_answers_may_come_in_crumbs(caplog: pytest.LogCaptureFixture) -> None:
    async with broken(make(), caplog) as proxy:
        proxy.up, proxy.down = Fault(split=1), Fault(split=1)
        async with connected(proxy.url) as http:
            await http.ask("POST", *call("steps", {"count": 1}, progressToken=1))
            assert (await http.head())[0] == 200
            assert len(await http.messages()) == 2
            session = await opened(http)
            message = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
            await http.ask("POST", session, dumps(message))
            assert (await http.whole())[0] == 200
            await http.ask("DELETE", session)
            assert (await http.head())[0] == 204


async def test_what_is_cut_among_requests_that_wait_for_each_other_leaves_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with broken(make(), caplog) as proxy:
        one = request("POST", *call("add", {"a": 1, "b": 2}))
        for place in (len(one) // 2, len(one) * 3 // 2, len(one) * 3):
            proxy.up = Fault(after=place)
            await sent(proxy, one * 3)


# ------------------------------------------------------------------ responses


@every_how
async def test_a_response_that_is_cut_anywhere_leaves_nothing(how: How, caplog: pytest.LogCaptureFixture) -> None:
    async with broken(make(), caplog) as proxy:
        data = request("POST", {**call("steps")[0], "Connection": "close"}, call("steps", progressToken=1)[1])
        proxy.down = FINE
        whole = await sent(proxy, data)
        wanted = heard(whole)
        assert len(wanted) == 3
        for place in places(len(whole)):
            proxy.down = Fault(after=place, how=how)
            found = heard(await sent(proxy, data))
            assert found == wanted[: len(found)]


@every_how
async def test_a_subscription_that_is_cut_anywhere_is_no_more(how: How, caplog: pytest.LogCaptureFixture) -> None:
    bench = make()
    async with broken(bench, caplog) as proxy:
        params = {"notifications": {"toolsListChanged": True}, "_meta": modern_meta()}
        data = request("POST", *posted({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}))
        for place in places(300, 5):
            proxy.down = Fault(after=place, how=how)
            await sent(proxy, data)


async def test_a_client_that_takes_nothing_more_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    bench = make()

    @bench.server.tool
    def large() -> str:
        return "x" * (4 << 20)

    async with broken(bench, caplog) as proxy:
        proxy.down = Fault(after=1000, how="stall")
        await sent(proxy, request("POST", *call("large")))


async def test_what_was_held_up_is_answered_once_it_is_let_go(caplog: pytest.LogCaptureFixture) -> None:
    async with broken(make(), caplog) as proxy, connected(proxy.url) as http:
        await http.ask("POST", *call("add", {"a": 1, "b": 1}))
        assert (await http.whole())[0] == 200
        [crossing] = proxy.crossings
        crossing.hold()
        came = crossing.down
        await http.ask("POST", *call("steps", {"count": 1}, progressToken=1))
        async with connected(proxy.url) as other:
            await other.ask("POST", *call("add", {"a": 1, "b": 2}))
            assert (await other.whole())[0] == 200
        assert crossing.down == came
        crossing.release()
        assert (await http.head())[0] == 200
        assert len(await http.messages()) == 2


@every_how
async def test_a_stream_of_http_with_sse_that_is_cut_anywhere_is_no_more(
    how: How, caplog: pytest.LogCaptureFixture
) -> None:
    bench = make()
    async with broken(bench, caplog) as proxy, connected(proxy.url) as http:
        data = request("GET", {"Accept": "text/event-stream"}, path="/sse")
        params = {"name": "steps", "arguments": {"count": 200}, "_meta": {"progressToken": 1}}
        message = dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})

        async def ask_until_cut(crossing: Crossing, found: bytearray) -> None:
            """Ask for something, once it is known where, until the stream is cut."""
            await until(lambda: b"\n\n" in found or crossing.cut.is_set())
            while not crossing.cut.is_set():
                path = heard(bytes(found))[0].data
                await http.ask("POST", {"Content-Type": "application/json"}, message, path=path)
                assert (await http.whole())[0] in (202, 404)

        await until(lambda: bool(proxy.crossings))
        for place in (1, 250, 400, 1000):
            proxy.down = Fault(after=place, how=how)
            await sent(proxy, data, ask_until_cut)


# ------------------------------------------------------------------ sessions


async def resumed(http: Any, session: dict[str, str], events: list[Event]) -> list[Event]:
    """What comes when a stream is taken up again after the last of these events that has an id."""
    last = [event.id for event in events if event.id][-1]
    await http.ask("GET", {**session, "Accept": "text/event-stream", "Last-Event-ID": last})
    assert (await http.head())[0] == 200
    raw = b""
    while chunk := await http.chunk():
        raw += b"%x\r\n%s\r\n" % (len(chunk), chunk)
    return heard(b"\r\n\r\n" + raw)


@pytest.mark.parametrize("how", ["reset", pytest.param("close", marks=pytest.mark.slow)])
async def test_a_stream_that_is_cut_anywhere_is_taken_up_again_and_nothing_is_lost_or_told_twice(
    how: How, caplog: pytest.LogCaptureFixture
) -> None:
    async with broken(make(), caplog) as proxy, connected(proxy.url) as http:
        session = await opened(http)
        params = {"name": "steps", "arguments": {"count": 3}, "_meta": {"progressToken": 1}}
        message = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
        data = request("POST", {**session, "Connection": "close"}, dumps(message))
        whole = await sent(proxy, data)
        wanted = [event.data for event in heard(whole)]
        assert len(wanted) == 4
        taken_up = 0
        for place in places(len(whole)):
            proxy.down = Fault(after=place, how=how)
            events = heard(await sent(proxy, data))
            proxy.down = FINE
            if any(event.id for event in events):
                taken_up += 1
                events += await resumed(http, session, events)
                assert [event.data for event in events] == wanted
        assert taken_up >= 4
        await http.ask("DELETE", session)
        assert (await http.head())[0] == 204


async def test_a_stream_that_is_cut_again_and_again_comes_through_in_the_end(caplog: pytest.LogCaptureFixture) -> None:
    bench = make()
    async with broken(bench, caplog) as proxy, connected(proxy.url) as http:
        session = await opened(http)
        params = {"name": "steps", "arguments": {"count": 20, "then_wait": True}, "_meta": {"progressToken": 1}}
        message = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
        proxy.down = Fault(after=500)  # a head, and an event or two
        events = heard(await sent(proxy, request("POST", session, dumps(message))))
        cuts = 0
        while len(events) < 16:  # as long as there is enough left to be cut
            last = {"Last-Event-ID": [event.id for event in events if event.id][-1], "Connection": "close"}
            events += heard(await sent(proxy, request("GET", {**session, "Accept": "text/event-stream", **last})))
            cuts += 1
        assert cuts > 4
        bench.go.set()
        proxy.down = FINE
        events += await resumed(http, session, events)
        told = [json.loads(event.data) for event in events]
        assert [message["params"]["progress"] for message in told[:-1]] == [*range(1, 22)]
        assert "result" in told[-1]
        await http.ask("DELETE", session)
        assert (await http.head())[0] == 204


@every_how
async def test_a_stream_of_its_own_that_is_cut_anywhere_is_taken_up_again(
    how: How, caplog: pytest.LogCaptureFixture
) -> None:
    bench = make()
    async with broken(bench, caplog) as proxy, connected(proxy.url) as http, connected(proxy.url) as again:
        session = await opened(http)
        data = request("GET", {**session, "Accept": "text/event-stream"})

        async def told(crossing: Crossing, found: bytearray) -> None:
            """Have the server tell something, until the stream is cut."""
            await until(lambda: crossing.down > 0 or crossing.cut.is_set())
            while not crossing.cut.is_set():
                bench.server.changed("tools")
                await asyncio.sleep(0.001)

        for place in (1, 150, 250, 333, 400):
            proxy.down = Fault(after=place, how=how)
            await sent(proxy, data, told)
        proxy.down = FINE
        await again.ask("GET", {**session, "Accept": "text/event-stream"})
        assert (await again.head())[0] == 200
        bench.server.add_tool(lambda: "x", name="last")
        while b"list_changed" not in await again.chunk():
            pass
        await http.ask("DELETE", session)
        assert (await http.head())[0] == 204


@every_how
async def test_a_session_outlives_every_connection_that_is_lost(how: How, caplog: pytest.LogCaptureFixture) -> None:
    bench = make()
    async with broken(bench, caplog) as proxy, connected(proxy.url) as http:
        session = await opened(http)
        params = {"name": "wait", "arguments": {}}
        data = request("POST", session, dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}))
        for place in places(len(data), 4):
            proxy.up = Fault(after=place, how=how)
            await sent(proxy, data)
        proxy.up = Fault(after=len(data), how=how)
        await sent(proxy, data, lambda *_: bench.waiting.wait())
        proxy.up = FINE
        await http.ask("POST", session, dumps({"jsonrpc": "2.0", "id": 3, "method": "ping"}))
        assert (await http.whole())[0] == 200
        assert bench.events == []
        bench.go.set()
        await until(lambda: bench.events == ["wait finished"])
        await http.ask("DELETE", session)
        assert (await http.head())[0] == 204
