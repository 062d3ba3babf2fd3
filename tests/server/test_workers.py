"""The bounded pool of threads that sync functions run in."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import subprocess
import sys
import threading
import weakref
from typing import Any

import pytest

from modelwire import Client, Server
from modelwire.server.workers import WorkerPool
from tests.wire import session_talk, stream_talk


def test_a_function_gives_its_result_or_its_error() -> None:
    pool = WorkerPool(1)
    assert pool.submit(divmod, 7, 2).result(5) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        pool.submit(divmod, 7, 0).result(5)
    with pytest.raises(SystemExit):
        pool.submit(sys.exit, 1).result(5)
    assert pool.submit(str, 1).result(5) == "1"  # the thread has survived


def test_threads_are_started_as_needed_and_no_more_than_the_size() -> None:
    pool = WorkerPool(3)
    seen: set[int] = set()
    barrier = threading.Barrier(4)

    def work() -> None:
        seen.add(threading.get_ident())
        barrier.wait(5)

    futures = [pool.submit(work) for _ in range(3)]
    waiting = pool.submit(lambda: seen.add(-1))
    barrier.wait(5)
    for future in [*futures, waiting]:
        future.result(5)
    assert len(seen - {-1}) == 3


def test_an_idle_thread_is_used_again() -> None:
    pool = WorkerPool(8)
    seen = set()
    for _ in range(20):
        seen.add(pool.submit(threading.get_ident).result(5))
    assert len(seen) <= 8
    assert pool.submit(threading.active_count).result(5) < threading.active_count() + 8


def test_work_that_is_cancelled_before_it_starts_is_never_done() -> None:
    pool = WorkerPool(1)
    gate = threading.Event()
    done: list[int] = []
    running = pool.submit(gate.wait, 5)
    waiting = pool.submit(done.append, 1)
    assert waiting.cancel()
    gate.set()
    running.result(5)
    pool.submit(int).result(5)
    assert done == []


def test_a_result_is_not_kept_alive_by_the_thread_that_made_it() -> None:
    class Thing:
        pass

    pool = WorkerPool(1)
    future = pool.submit(Thing)
    gone = weakref.ref(future.result(5))
    del future
    pool.submit(int).result(5)
    gc.collect()
    assert gone() is None


def test_the_threads_end_once_nobody_holds_the_pool_any_more() -> None:
    pool = WorkerPool(3)
    barrier = threading.Barrier(4)
    threads: list[threading.Thread] = []

    def work() -> None:
        threads.append(threading.current_thread())
        barrier.wait(5)

    futures = [pool.submit(work) for _ in range(3)]
    barrier.wait(5)
    for future in futures:
        future.result(5)
    del pool
    gc.collect()
    for thread in threads:
        thread.join(5)
    assert not any(thread.is_alive() for thread in threads)


async def test_a_server_that_is_gone_leaves_no_threads() -> None:
    threads: list[threading.Thread] = []

    async def use_a_server() -> None:
        server = Server("s")
        server.add_tool(lambda: threads.append(threading.current_thread()), name="t")
        async with Client(server) as client:
            await client.call("t")

    await use_a_server()
    for _ in range(5):  # what has just run may still be held by the loop's next turn
        await asyncio.sleep(0)
    gc.collect()
    threads[0].join(5)
    assert not threads[0].is_alive()


def test_threads_that_block_for_ever_do_not_keep_the_process_from_ending() -> None:
    code = "import threading; from modelwire.server.workers import WorkerPool as P; P(2).submit(threading.Event().wait)"
    assert subprocess.run([sys.executable, "-c", code], timeout=20).returncode == 0


async def test_max_workers_bounds_how_many_sync_tools_run_at_once() -> None:
    server = Server("s", max_workers=2)
    gate = threading.Event()
    lock = threading.Lock()
    running = most = 0

    @server.tool
    def block() -> str:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        gate.wait(10)
        with lock:
            running -= 1
        return "done"

    @server.tool
    async def quick() -> str:
        return "quick"

    async with stream_talk(server, "2025-11-25") as talk:
        calls = [await talk.begin_call("block") for _ in range(6)]
        assert await talk.text("quick") == "quick"  # a full pool stops no async tool
        gate.set()
        for call in calls:
            await call.result()
    assert most == 2


async def test_a_call_that_is_cancelled_while_it_waits_for_a_thread_never_runs() -> None:
    server = Server("s", max_workers=1)
    gate, started = threading.Event(), threading.Event()
    ran: list[str] = []

    @server.tool
    def work(name: str) -> str:
        started.set()
        gate.wait(10)
        ran.append(name)
        return name

    async with stream_talk(server, "2025-11-25") as talk:
        first = await talk.begin_call("work", {"name": "first"})
        assert await asyncio.to_thread(started.wait, 5)
        second = await talk.begin_call("work", {"name": "second"})
        third = await talk.begin_call("work", {"name": "third"})
        await talk.cancel(second)
        await talk.settle()
        gate.set()
        await first.result()
        await third.result()
        assert not second.done
    assert ran == ["first", "third"]


async def test_a_sync_tool_sees_the_context_variables_of_its_request() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")
    server = Server("s")

    @server.tool
    def read() -> str:
        before = variable.get()
        variable.set("changed by a call")
        return before

    async with session_talk(server, "2025-11-25") as talk:
        variable.set("of the caller")
        assert await talk.text("read") == "of the caller"
        assert await talk.text("read") == "of the caller"  # what one call sets, no other sees


@pytest.mark.parametrize("size", [1, 5])
async def test_many_calls_share_few_threads(size: int) -> None:
    server = Server("s", max_workers=size)

    @server.tool
    def echo(value: int) -> str:
        return str(value)

    async with stream_talk(server, "2025-11-25") as talk:
        calls: list[Any] = [await talk.begin_call("echo", {"value": number}) for number in range(100)]
        texts = [(await call.result())["content"][0]["text"] for call in calls]
    assert texts == [str(number) for number in range(100)]


async def test_functions_that_run_on_after_their_cancellation_do_not_use_up_the_pool() -> None:
    server = Server("s", max_workers=2)
    release = threading.Event()
    started = threading.Barrier(3)

    @server.tool
    def blocked() -> str:
        started.wait(30)
        release.wait(30)
        return "late"

    @server.tool
    def quick() -> str:
        return "quick"

    async with Client(server) as client:
        calls = [asyncio.create_task(client.call("blocked")) for _ in range(2)]
        await asyncio.to_thread(started.wait, 30)
        for call in calls:
            call.cancel()
        await asyncio.wait(calls)
        assert await client.call("quick") == "quick"
        release.set()
