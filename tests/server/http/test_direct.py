"""Requests that are answered without ASGI: what else comes over the connection, what fails, and what it may cost."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import random
import time
from collections.abc import Sequence
from typing import Any

import pytest

from modelwire import Context, Server
from modelwire.server.http.direct import Direct
from modelwire.server.http.guarded import MOST_READ
from tests.leftovers import nothing_left
from tests.server.http.both_ways import bench as bench_of_both_ways
from tests.server.http.both_ways import responses
from tests.server.http.raw import Connection, call, closed, connected, opened, request
from tests.server.http.servers import make
from tests.server.http.test_both_ways import KINDS, STAYING
from tests.server.http.test_uvicorn import HERE
from tests.wire import PATIENCE, dumps

ADD = {"a": 1, "b": 2}


def connections() -> list[Any]:
    """Those that are open in this process."""
    return [each for each in gc.get_objects() if isinstance(each, Direct) and not each.transport.is_closing()]


async def test_a_request_that_takes_long_keeps_its_connection_though_it_came_behind_one_that_did_not() -> None:
    bench = make()

    @bench.server.tool
    async def quick() -> str:
        return "quick"

    async with bench.server.serving(HERE) as serving, connected(serving.url) as http:
        http.writer.write(request("POST", *call("quick")) + request("POST", *call("wait")))
        assert (await http.whole())[0] == 200
        await bench.waiting.wait()
        assert connections()[0].timeout_keep_alive_task is None
        bench.go.set()
        assert (await http.whole())[0] == 200
        assert connections()[0].timeout_keep_alive_task is not None


async def test_a_connection_is_kept_as_long_whether_headers_and_body_came_together_or_not() -> None:
    whole = request("POST", *call("add", ADD))
    end = whole.index(b"\r\n\r\n") + 4
    async with make().server.serving(HERE) as serving:
        for at in (len(whole), end, end + 1):
            async with connected(serving.url) as http:
                http.writer.write(whole[:at])
                async with asyncio.timeout(PATIENCE):
                    while not connections() or connections()[0]._partial:
                        await asyncio.sleep(0.001)
                http.writer.write(whole[at:])
                assert (await http.whole())[0] == 200
                assert connections()[0]._patience is None  # which would end it long before
                assert connections()[0].timeout_keep_alive_task is not None
            async with asyncio.timeout(PATIENCE):
                while connections():
                    await asyncio.sleep(0.001)


@pytest.mark.parametrize("missing", [0, 3])
async def test_a_url_that_is_none_is_refused_also_while_the_body_is_awaited(
    missing: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with nothing_left(caplog), make().server.serving(HERE) as serving:
        for url in (b"http://[:/", b"http://localhost", b"http://a:99999999/", b"/m\xc3\xa9"):
            async with connected(serving.url) as http:
                whole = request("POST", *call("add", ADD)).replace(b"/mcp", url, 1)
                http.writer.write(whole[: len(whole) - missing])
                assert (await closed(http)).startswith(b"HTTP/1.1 400 ")


async def test_what_nobody_may_contain_ends_its_connection_as_a_failure_of_ours(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = make()

    @bench.server.tool
    async def interrupted() -> str:
        raise KeyboardInterrupt

    async with bench.server.serving(HERE) as serving:
        async with connected(serving.url) as http:
            http.writer.write(request("POST", *call("interrupted")) + request("POST", *call("note")))
            found = await closed(http)
            assert found.startswith(b"HTTP/1.1 500 ")
            assert found.count(b"HTTP/1.1 ") == 1
        assert bench.events == []
        async with connected(serving.url) as http:
            session = await opened(http)
        for status in (b"500", b"500", b"200"):
            tool = "interrupted" if status == b"500" else "note"
            params = {"name": tool, "arguments": {}}
            async with connected(serving.url) as http:
                await http.ask(
                    "POST", session, dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
                )
                assert (await http.reader.readline()).startswith(b"HTTP/1.1 " + status)
        errors = [record.exc_info for record in caplog.records if record.levelno == logging.ERROR]
        assert len(errors) == 3
        assert all(errors)
        async with connected(serving.url) as http:
            await http.ask("POST", *call("add", ADD))
            assert (await http.whole())[0] == 200


async def test_to_tell_of_progress_costs_no_more_the_more_was_told_of() -> None:
    server = Server("many")
    took: dict[int, float] = {}

    @server.tool
    async def many(ctx: Context, count: int) -> str:
        begun = time.process_time()
        for number in range(count):
            ctx.progress(number + 1)
        took[count] = min(took.get(count, 60.0), time.process_time() - begun)
        return "told"

    async with server.serving(HERE) as serving, connected(serving.url) as http:
        for count in (500, 500, 500, 8000, 8000):
            await http.ask("POST", *call("many", {"count": count}, progressToken=1))
            assert (await http.head())[0] == 200
            assert len(await http.messages()) == count + 1
    assert took[8000] < 60 * took[500]  # in proportion it is 16 times, and 256 times if each looked at all before


async def test_requests_that_wait_behind_another_are_not_read_without_end() -> None:
    bench = make()
    small = request("GET", {"X-Padding": "x" * 600})
    async with bench.server.serving(HERE) as serving, connected(serving.url) as http:
        await http.ask("POST", *call("wait"))
        await bench.waiting.wait()
        connection = connections()[0]
        http.writer.write(small * 10_000)
        async with asyncio.timeout(PATIENCE):
            while not connection.flow.read_paused:
                await asyncio.sleep(0)
        bench.go.set()
        assert (await http.whole())[0] == 200
        most = 0
        for _ in range(1000):
            assert (await http.whole())[0] == 400
            most = max(most, len(connection.pipeline))
        assert most < MOST_READ
        http.writer.transport.abort()


async def test_who_sends_more_tiny_requests_than_any_client_would_is_cut_off(caplog: pytest.LogCaptureFixture) -> None:
    bench = make()
    async with nothing_left(caplog), bench.server.serving(HERE) as serving, connected(serving.url) as http:
        await http.ask("POST", *call("wait"))
        await bench.waiting.wait()
        http.writer.write(b"GET / HTTP/1.1\r\n\r\n" * 10_000)
        assert await closed(http) == b""
        async with asyncio.timeout(PATIENCE):
            await bench.cancelled.wait()


async def test_many_requests_that_end_amid_the_headers_of_one_are_not_too_large() -> None:
    async with make().server.serving(HERE) as serving, connected(serving.url) as http:
        whole = request("POST", *call("add", ADD))
        count = (160 << 10) // len(whole)
        http.writer.write(whole * count + whole[:100])
        for _ in range(count):
            assert (await http.whole())[0] == 200
        http.writer.write(whole[100:])
        assert json.loads((await http.whole())[2])["result"]["structuredContent"] == 3


async def test_an_answer_of_a_server_that_is_ending_says_that_it_is_the_last() -> None:
    for tool in ("wait", "waits_and_tells"):
        bench = make()
        server = bench.server

        @server.tool
        async def waits_and_tells(ctx: Context) -> str:
            await bench.wait("it")  # noqa: B023
            ctx.progress(1)
            return "told"

        async with contextlib.AsyncExitStack() as stack:
            async with server.serving(HERE) as serving:
                http = await stack.enter_async_context(connected(serving.url))
                await http.ask("POST", *call(tool, progressToken=1))
                await bench.waiting.wait()
                (connection,) = connections()
                ending = asyncio.create_task(go_once_ending(connection, bench.go))
            await ending
            found = await closed(http)
            assert found.startswith(b"HTTP/1.1 200 ")
            assert b"connection: close\r\n" in found.partition(b"\r\n\r\n")[0] + b"\r\n"


async def go_once_ending(connection: Any, go: asyncio.Event) -> None:
    async with asyncio.timeout(PATIENCE):
        while connection.cycle.keep_alive:
            await asyncio.sleep(0.001)
    go.set()


@pytest.mark.slow
async def test_a_server_that_ends_amid_requests_tears_no_answer_and_keeps_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("modelwire.server.http.run.GRACE", 0.1)
    draw = random.Random(1)
    found = bench_of_both_ways()
    kinds = [kind for kind in sorted(KINDS | STAYING) if kind not in ("a failure", "expected", "a head")]

    asked = 0

    async def ask(http: Connection, sessions: Sequence[dict[str, str]]) -> None:
        nonlocal asked
        with contextlib.suppress(ConnectionError):
            while True:
                http.writer.write((KINDS | STAYING)[draw.choice(kinds)](sessions[0], sessions[1]))
                await http.writer.drain()
                await asyncio.sleep(0)
                asked += 1

    async def read(http: Connection) -> bytes:
        heard = b""
        with contextlib.suppress(ConnectionError):
            while chunk := await http.reader.read(1 << 16):
                heard += chunk
            return heard
        return b""  # reset, with what was not read yet

    async with nothing_left(caplog), contextlib.AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        readers: list[asyncio.Task[bytes]] = []
        async with found.server.serving(HERE) as serving:
            for _ in range(20):
                http = await stack.enter_async_context(connected(serving.url))
                group.create_task(ask(http, [await opened(http), await opened(http, "2025-03-26")]))
                readers.append(group.create_task(read(http)))
            async with asyncio.timeout(PATIENCE):
                while asked < 1000:
                    await asyncio.sleep(0.001)
        for reader in readers:
            last = responses(await reader, [])[-1:]
            assert not any("half a head" in answer for answer in last), last
            assert not any(isinstance(answer[-1], tuple) and "cut off" in answer[-1] for answer in last), last
    assert connections() == []
