"""Opening and closing: from any task, in any order, twice; and nothing is left afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import threading
from typing import Any

import pytest

from modelwire import Client, ConfigError, ConnectionLost, Server, ServerExited
from modelwire.client import contacts
from modelwire.transports.socket_address import parse_address
from modelwire.transports.socket_connect import connect_socket
from tests.clock import Clock
from tests.fake_server import (
    HANDSHAKE,
    MODERN,
    REVISIONS,
    Comings,
    FakeServer,
    child,
    coming_back,
    fake_server,
    talking,
)
from tests.leftovers import nothing_left

STUCK = 'opened(); signal.signal(signal.SIGTERM, signal.SIG_IGN); complain("stuck"); wait()'
"""Neither the end of its input nor SIGTERM ends it."""
DIES_IN_CALL = "opened(); read(); complain('out of memory'); os._exit(7)"


# --------------------------------------------------------------------------------------------------- nothing is left


@pytest.mark.usefixtures("quiet_loop")
@pytest.mark.parametrize("revision", REVISIONS)
async def test_an_ordinary_conversation_in_memory_leaves_nothing(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server("here")
    server.add_tool(lambda: "hi", name="greet")
    async with nothing_left(caplog), Client(server, revision=revision) as client:
        assert await client.call("greet") == "hi"
        async with client.listen(tools=True):
            server.add_tool(lambda: "ho", name="other")


@pytest.mark.usefixtures("quiet_loop")
async def test_an_ordinary_conversation_with_a_process_leaves_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with nothing_left(caplog):
        async with Client(child("opened(); serve()")) as client:
            assert await client.call("x") == "done"
        assert client.exit_code == 0


FAILED_STARTS: dict[str, tuple[str, dict[str, Any]]] = {
    "exits": ("sys.exit(1)", {}),
    "exits after the probe": ("read(); sys.exit(1)", {}),
    "answers garbage": ("request = read(); result(request); read(); wait()", {"connect_timeout": 0.4}),
    "refuses": ("\nwhile (request := read()) is not None: error(request)", {}),
    "says nothing": ("wait()", {"connect_timeout": 0.3, "probe_wait": 0.05}),
    "closes its output": ("os.close(1); wait()", {"revision": MODERN}),
    "closes its input": ("os.close(0); wait()", {"revision": MODERN, "connect_timeout": 0.5}),
}


@pytest.mark.usefixtures("quiet_loop", "short_waits")
@pytest.mark.parametrize(("script", "options"), FAILED_STARTS.values(), ids=FAILED_STARTS)
async def test_a_failed_start_leaves_nothing(
    script: str, options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    async with nothing_left(caplog):
        client = Client(child(script), **options)
        with pytest.raises(Exception, match="."):
            await client.connect()
        assert not client.connected
        assert client.exit_code is not None


@pytest.mark.usefixtures("quiet_loop", "short_waits")
@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 8])
async def test_a_start_that_is_cancelled_leaves_nothing(turns: int, caplog: pytest.LogCaptureFixture) -> None:
    async with nothing_left(caplog):
        client = Client(child("wait()"))
        opening = asyncio.create_task(client.connect())
        for _ in range(turns):
            await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        assert not client.connected


@pytest.mark.usefixtures("quiet_loop", "short_waits")
async def test_a_start_that_is_cancelled_again_while_it_cleans_up_leaves_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with nothing_left(caplog):
        client = Client(child(STUCK))
        opening = asyncio.create_task(client.connect())
        await Clock().turn()
        for _ in range(3):
            opening.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await opening
        await client.close()


@pytest.mark.usefixtures("quiet_loop")
async def test_a_deadline_of_the_callers_own_around_the_start_leaves_nothing(
    short_waits: None, caplog: pytest.LogCaptureFixture
) -> None:
    async with nothing_left(caplog):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(Client(child("wait()")).connect(), 0.1)


# --------------------------------------------------------------------------------------------------- closing


async def test_a_client_can_be_closed_before_it_was_opened_and_twice() -> None:
    async with fake_server() as fake:
        client = Client(fake.stream)
        await client.close()
        opening = asyncio.create_task(client.connect())
        await fake.open("2025-11-25")
        await opening
        await client.close()
        await client.close()
        await fake.closed()


async def test_a_client_can_be_closed_from_many_tasks_at_once() -> None:
    async with talking() as (client, fake):
        await asyncio.gather(*(client.close() for _ in range(5)))
        await fake.closed()
        assert not client.connected


@pytest.mark.parametrize("revision", REVISIONS)
async def test_closing_from_another_task_fails_what_is_open(revision: str) -> None:
    async with talking(revision) as (client, fake):
        calls = [asyncio.create_task(client.call("t")) for _ in range(3)]
        for _ in calls:
            await fake.expect("tools/call")
        await asyncio.create_task(client.close())
        for call in calls:
            with pytest.raises(ConnectionLost, match="before tools/call was answered: the client was closed"):
                await call
        with pytest.raises(ConnectionLost, match="tools/call was not sent"):
            await client.call("t")


@pytest.mark.parametrize("answered", [True, False])
async def test_closing_while_it_is_being_opened_ends_the_opening(answered: bool) -> None:
    async with fake_server() as fake:
        client = Client(fake.stream)
        opening = asyncio.create_task(client.connect())
        request = await fake.expect("server/discover")
        if answered:
            await fake.error(request, -32601)
            await fake.expect("initialize")
        await client.close()
        with pytest.raises(ConnectionLost, match="while the conversation was being opened"):
            await opening
        await fake.closed()


async def test_closing_at_once_after_connect_was_begun_ends_the_opening(short_waits: None) -> None:
    for turns in range(4):
        client = Client(child("wait()"))
        opening = asyncio.create_task(client.connect())
        for _ in range(turns):
            await asyncio.sleep(0)
        await client.close()
        if turns == 0:
            opening.cancel()
        with pytest.raises((ConnectionLost, asyncio.CancelledError)):
            await opening


async def test_a_callback_may_close_the_client() -> None:
    closed = asyncio.Event()

    async def close(method: str, params: Any) -> None:
        await clients[0].close()
        closed.set()

    clients: list[Client] = []
    async with talking(on_notification=close) as (client, fake):
        clients.append(client)
        await fake.notify("acme/enough")
        await fake.closed()
        await closed.wait()
        assert not client.connected


async def test_a_handler_may_close_the_client() -> None:
    async def close(params: Any) -> Any:
        await clients[0].close()

    clients: list[Client] = []
    async with talking(handlers={"roots/list": close}) as (client, fake):
        clients.append(client)
        await fake.send({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})
        await fake.closed()
        assert not client.connected


async def test_a_progress_callback_may_close_the_client() -> None:
    async def close(done: float, total: float | None, message: str | None) -> None:
        await clients[0].close()

    clients: list[Client] = []
    async with talking() as (client, fake):
        clients.append(client)
        call = asyncio.create_task(client.call("t", on_progress=close))
        await fake.progress(await fake.expect("tools/call"), 1)
        with pytest.raises(ConnectionLost, match="the client was closed"):
            await call
        await fake.closed()


async def test_a_callback_for_the_return_of_the_connection_may_close_the_client() -> None:
    async def close(why: ConnectionLost) -> None:
        await clients[0].close()

    clients: list[Client] = []
    async with coming_back(on_reconnect=close) as (client, fake, comings):
        clients.append(client)
        await fake.hang_up()
        call = asyncio.create_task(client.call("t"))
        fake = await comings.opened("2025-11-25")
        with pytest.raises(ConnectionLost):
            await call
        await fake.closed()
        assert comings.tried == 2


async def test_an_exception_inside_the_block_leaves_it_as_itself_while_the_connection_comes_back() -> None:
    calls: list[asyncio.Task[Any]] = []

    async def use(client: Client, fake: FakeServer, comings: Comings) -> None:
        async with contextlib.AsyncExitStack() as block:
            block.push_async_exit(client)  # which is open already
            await fake.hang_up()
            calls.append(asyncio.create_task(client.call("t")))
            await comings.next()
            raise ZeroDivisionError("mine")

    async with coming_back() as (client, fake, comings):
        with pytest.raises(ZeroDivisionError, match="^mine$"):
            await use(client, fake, comings)
        with pytest.raises(ConnectionLost):
            await calls[0]


# --------------------------------------------------------------------------------------------------- other event loops


def test_a_client_of_a_loop_that_runs_elsewhere_says_where_to_use_it() -> None:
    """And goes on there as if nothing had happened."""
    ready, done = threading.Event(), threading.Event()
    client = Client(child("opened(); serve()"))
    found: list[Any] = []

    async def there() -> None:
        async with client:
            ready.set()
            await asyncio.to_thread(done.wait)
            found.append(await client.call("t"))

    async def here() -> None:
        loop_of_it = "the client was connected in another event loop"
        with pytest.raises(ConfigError, match=rf"{loop_of_it}; close it there: asyncio\.run_coroutine_threadsafe"):
            await client.close()
        for use in (
            client.connect,
            lambda: client.call("t"),
            lambda: client.notify("x"),
            client.listen(tools=True).__aenter__,
        ):
            with pytest.raises(ConfigError, match=loop_of_it):
                await use()

    thread = threading.Thread(target=lambda: asyncio.run(there()))
    thread.start()
    ready.wait()
    try:
        asyncio.run(here())
    finally:
        done.set()
        thread.join()
    assert found == ["done"]


@pytest.mark.slow
@pytest.mark.parametrize("then", ["close", "connect"])
def test_a_client_whose_loop_has_ended_is_let_go_of_and_can_be_used_in_another(then: str) -> None:
    """Whoever forgets to close leaves no process behind the next time."""
    client = Client(child("opened(); signal.signal(15, signal.SIG_IGN); serve(); wait()"))

    async def forget_to_close() -> int:
        await client.connect()
        assert client._process is not None
        return os.pidfd_open(client._process.pid)

    async def later() -> str:
        if then == "close":
            await client.close()
            await client.close()
        async with client:
            return await client.call("t")

    forgotten = asyncio.run(forget_to_close())
    assert asyncio.run(later()) == "done"
    assert select.select([forgotten], [], [], 10)[0], "the process of the first loop still runs"
    os.close(forgotten)


@pytest.mark.parametrize("ends", ["cancelled", "closed"])
def test_a_client_of_a_socket_whose_loop_has_ended_begins_nothing_there_and_is_let_go_of(
    ends: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither a second process nor a task that nobody ends; and another loop can use it."""
    server = Server("behind")
    server.add_tool(lambda: "hi", name="greet")
    urls: list[str] = []
    opened: list[Any] = []

    async def dial() -> Any:
        opened.append(await connect_socket(parse_address(urls[0])))
        return opened[-1]

    ready, done = threading.Event(), threading.Event()

    async def serve() -> None:
        async with server.serving("tcp://127.0.0.1:0") as serving:
            urls.append(serving.url or "")
            ready.set()
            await asyncio.to_thread(done.wait)

    client = Client(dial)

    async def forget_to_close() -> None:
        await client.connect()
        if ends == "cancelled":
            await client.listen(tools=True).__aenter__()

    async def later() -> str:
        async with client:
            return await client.call("greet")

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    ready.wait()
    try:
        if ends == "cancelled":
            asyncio.run(forget_to_close())
            assert "is opened again" not in caplog.text
            assert len(opened) == 1
        else:
            loop = asyncio.new_event_loop()
            loop.run_until_complete(forget_to_close())
            left = asyncio.all_tasks(loop)
            loop.close()
            for task in left:  # asyncio would say that they are left, which is what this is about
                task._log_destroy_pending = False  # pyright: ignore
        assert asyncio.run(later()) == "hi"
        assert opened[0]._socket.fileno() == -1, "the connection of the first loop is still open"
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("revision", REVISIONS)
async def test_an_exception_inside_the_block_leaves_it_as_itself(revision: str) -> None:
    async with fake_server() as fake:

        async def use() -> None:
            async with Client(fake.stream):
                raise ZeroDivisionError("mine")

        using = asyncio.create_task(use())
        await fake.open(revision)
        with pytest.raises(ZeroDivisionError, match="^mine$") as caught:
            await using
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None


async def test_a_cancelled_block_is_left_as_cancelled() -> None:
    async with fake_server() as fake:
        inside = asyncio.Event()

        async def use() -> None:
            async with Client(fake.stream):
                inside.set()
                await asyncio.sleep(1000)

        using = asyncio.create_task(use())
        await fake.open("2025-11-25")
        await inside.wait()
        using.cancel()
        with pytest.raises(asyncio.CancelledError):
            await using
        await fake.closed()


async def test_a_client_can_connect_again_after_the_end() -> None:
    client = Client(child("opened(); request = read(); text(request, str(os.getpid()))"))
    pids: set[str] = set()
    for _ in range(2):
        async with client:
            pids.add(await client.call("x"))
        assert not client.connected
    assert len(pids) == 2


async def test_a_client_can_connect_again_after_its_server_died(caplog: pytest.LogCaptureFixture) -> None:
    async with nothing_left(caplog):
        client = Client(child(DIES_IN_CALL), revision="2025-11-25")
        for _ in range(2):
            await client.connect()
            with pytest.raises(ServerExited):
                await client.call("x")
        await client.close()


async def test_connecting_twice_opens_once() -> None:
    async with talking() as (client, fake):
        await client.connect()
        await client.connect()
        assert fake.methods.count("initialize") == 1


async def test_two_tasks_that_connect_at_once_share_the_opening() -> None:
    async with fake_server() as fake:
        client = Client(fake.stream)
        openings = [asyncio.create_task(client.connect()) for _ in range(3)]
        await fake.open("2025-11-25")
        assert await asyncio.gather(*openings) == [client] * 3
        await client.close()
        assert fake.methods.count("initialize") == 1


# --------------------------------------------------------------------------------------------------- polite shutdown


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_polite_shutdown_says_goodbye(revision: str) -> None:
    async with talking(revision, polite_shutdown=True) as (client, fake):
        closing = asyncio.create_task(client.close())
        request = await fake.expect("shutdown")
        assert request == {"jsonrpc": "2.0", "id": request["id"], "method": "shutdown"}
        await fake.result(request, {})
        assert await fake.expect("exit") == {"jsonrpc": "2.0", "method": "exit"}
        await closing
        await fake.closed()


@pytest.mark.parametrize("answer", ["an error", "null", "nonsense"])
async def test_a_polite_shutdown_that_is_not_understood_still_exits(answer: str) -> None:
    async with talking(polite_shutdown=True) as (client, fake):
        closing = asyncio.create_task(client.close())
        request = await fake.expect("shutdown")
        if answer == "an error":
            await fake.error(request, -32601)
        elif answer == "null":
            await fake.result(request, None)
        else:
            await fake.send({"jsonrpc": "2.0", "id": request["id"], "result": 1, "error": 1})
        await fake.expect("exit")
        await closing


async def test_a_polite_shutdown_that_is_not_answered_ends_all_the_same() -> None:
    clock = Clock()
    async with talking(polite_shutdown=True) as (client, fake):
        closing = asyncio.create_task(client.close())
        await fake.expect("shutdown")
        await clock.advance(contacts.SHUTDOWN_SECONDS + 1)
        await fake.expect("exit")
        await closing


async def test_a_server_that_is_gone_is_not_said_goodbye_to() -> None:
    async with talking(polite_shutdown=True) as (client, fake):
        await fake.hang_up()
        await Clock().turn()
        await client.close()
        assert "shutdown" not in fake.methods


async def test_a_server_that_leaves_at_the_goodbye_is_gone() -> None:
    async with talking(polite_shutdown=True) as (client, fake):
        closing = asyncio.create_task(client.close())
        await fake.expect("shutdown")
        await fake.hang_up()
        await closing


async def test_no_revision_of_the_per_request_era_has_a_goodbye() -> None:
    async with talking(MODERN, polite_shutdown=True) as (client, fake):
        await client.close()
        assert fake.inbox == []


async def test_nothing_but_the_protocol_is_said_without_being_asked_to() -> None:
    async with talking() as (client, fake):
        await client.close()
        assert fake.inbox == []
