"""Deadlines, calls that are given up, and progress."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from modelwire import Client, ConnectionFailed, ConnectionLost, RequestTimeout, ServerExited
from tests.clock import Clock
from tests.fake_server import HANDSHAKE, REVISIONS, alive, child, fake_server, talking, text

# --------------------------------------------------------------------------------------------------- deadlines


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_call_without_an_answer_is_given_up_and_the_server_told(revision: str) -> None:
    async with talking(revision) as (client, fake):
        with pytest.raises(RequestTimeout, match=r"no answer to tools/call within 0\.01 s; nothing was heard") as late:
            await client.call("slow", timeout=0.01)
        assert late.value.method == "tools/call"
        request = await fake.expect("tools/call")
        told = await fake.expect("notifications/cancelled")
        assert told["params"] == {"requestId": request["id"], "reason": "no answer within 0.01 s"}
        await fake.result(request, text("too late"))
        await alive(client, fake)


async def test_the_deadline_of_the_client_holds_for_every_request() -> None:
    async with talking(timeout=0.01) as (client, fake):
        requests = [client.list_tools, client.ping, lambda: client.read_resource("a:b"), lambda: client.call("x")]
        requests += [lambda: client.complete("p", "a"), lambda: client.get_prompt("p"), lambda: client.request("ping")]
        requests += [lambda: client.subscribe("a:b"), lambda: client.set_log_level("info"), client.list_prompts]
        for request in requests:
            with pytest.raises(RequestTimeout):
                await request()
            sent = await fake.next()
            assert (await fake.expect("notifications/cancelled"))["params"]["requestId"] == sent["id"]


async def test_a_late_error_names_what_was_heard_meanwhile() -> None:
    clock = Clock()
    async with talking() as (client, fake):
        call = asyncio.create_task(client.call("t", on_progress=lambda *told: None))
        request = await fake.expect("tools/call")
        await fake.progress(request, 3, total=7)
        await fake.notify("notifications/tools/list_changed")
        await fake.send(b"a banner")
        await clock.advance(61)
        with pytest.raises(RequestTimeout) as late:
            await call
        words = str(late.value)
        assert "progress 3 of 7" in words
        assert "2 notifications (notifications/progress, notifications/tools/list_changed)" in words
        assert "1 unreadable message, the last one 'a banner'" in words


async def test_progress_moves_the_deadline() -> None:
    clock = Clock()
    async with talking() as (client, fake):
        call = asyncio.create_task(client.call("t", on_progress=lambda *told: None))
        request = await fake.expect("tools/call")
        for step in range(5):
            await clock.advance(50)
            await fake.progress(request, step)
        await clock.advance(50)
        await fake.result(request, text("done"))
        assert await call == "done"


async def test_progress_does_not_move_the_deadline_past_the_maximum() -> None:
    clock = Clock()
    async with talking() as (client, fake):
        call = asyncio.create_task(client.call("t", max_timeout=100, on_progress=lambda *told: None))
        request = await fake.expect("tools/call")
        for step in range(3):
            await clock.advance(40)
            await fake.progress(request, step)
        with pytest.raises(RequestTimeout, match=r"within 100 s.*progress.*Pass max_timeout= to wait longer"):
            await call
        await fake.expect("notifications/cancelled")


async def test_without_progress_the_deadline_stays() -> None:
    clock = Clock()
    async with talking() as (client, fake):
        call = asyncio.create_task(client.call("t", on_progress=lambda *told: None))
        await fake.expect("tools/call")
        await clock.advance(59)
        assert not call.done()
        await clock.advance(2)
        with pytest.raises(RequestTimeout, match="within 60 s"):
            await call


async def test_the_maximum_holds_without_any_progress() -> None:
    clock = Clock()
    async with talking() as (client, fake):
        call = asyncio.create_task(client.call_tool("t", timeout=None, max_timeout=20))
        await fake.expect("tools/call")
        await clock.advance(21)
        with pytest.raises(RequestTimeout, match=r"within 20 s.*max_timeout="):
            await call


@pytest.mark.parametrize("timeout", [None, 5000])
async def test_a_longer_timeout_of_a_call_is_not_cut_short_by_the_clients_maximum(timeout: float | None) -> None:
    clock = Clock()
    async with talking() as (client, fake):
        call = asyncio.create_task(client.call("t", timeout=timeout, on_progress=lambda *told: None))
        request = await fake.expect("tools/call")
        await clock.advance(1000)
        await fake.progress(request, 1)
        await clock.advance(3000)
        await fake.result(request, text("done"))
        assert await call == "done"


async def test_each_of_many_calls_has_its_own_deadline() -> None:
    clock = Clock()
    async with talking() as (client, fake):
        calls = {seconds: asyncio.create_task(client.call("t", timeout=seconds)) for seconds in (300, 100, 200)}
        for _ in calls:
            await fake.expect("tools/call")
        for seconds in (100, 200, 300):
            await clock.advance(90)
            assert not calls[seconds].done()
            await clock.advance(10)
            with pytest.raises(RequestTimeout, match=f"within {seconds} s"):
                await calls[seconds]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_caller_that_gives_up_has_the_server_told(revision: str) -> None:
    async with talking(revision) as (client, fake):
        call = asyncio.create_task(client.call("t"))
        request = await fake.expect("tools/call")
        call.cancel("the user pressed stop")
        with pytest.raises(asyncio.CancelledError):
            await call
        told = await fake.expect("notifications/cancelled")
        assert told["params"] == {"requestId": request["id"], "reason": "the user pressed stop"}
        await fake.result(request, text("too late"))
        await alive(client, fake)


async def test_a_timeout_of_the_callers_own_is_told_too() -> None:
    async with talking() as (client, fake):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.call("t"), 0.01)
        await fake.expect("tools/call")
        assert (await fake.expect("notifications/cancelled"))["params"]["reason"]


async def test_fifty_abandoned_calls_leave_nothing_that_waits() -> None:
    async with talking() as (client, fake):
        calls = [asyncio.create_task(client.call("t")) for _ in range(50)]
        requests = [await fake.expect("tools/call") for _ in calls]
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        told = [await fake.expect("notifications/cancelled") for _ in calls]
        assert {note["params"]["requestId"] for note in told} == {request["id"] for request in requests}
        await alive(client, fake)


# --------------------------------------------------------------------------------------------------- each its own


EACH: dict[str, Callable[[Client], Any]] = {
    "set_log_level": lambda client: client.set_log_level("info", timeout=5),
    "subscribe": lambda client: client.subscribe("a:b", timeout=5),
    "unsubscribe": lambda client: client.unsubscribe("a:b", timeout=5),
    "ping": lambda client: client.ping(timeout=5),
    "list_tools": lambda client: client.list_tools(timeout=5),
    "listen": lambda client: client.listen(uris=["a:b"], timeout=5).__aenter__(),
}


@pytest.mark.parametrize("ask", EACH.values(), ids=EACH)
async def test_every_request_takes_a_deadline_of_its_own(ask: Callable[[Client], Any]) -> None:
    clock = Clock()
    async with talking() as (client, fake):
        asking = asyncio.ensure_future(ask(client))
        await fake.next()
        await clock.advance(4)
        assert not asking.done()
        await clock.advance(2)
        with pytest.raises(RequestTimeout, match="within 5 s"):
            await asking


async def test_connecting_takes_a_deadline_of_its_own() -> None:
    clock = Clock()
    async with fake_server() as fake:
        connecting = asyncio.create_task(Client(fake.stream).connect(timeout=7))
        await fake.next()
        await clock.advance(4)
        assert not connecting.done()
        await clock.advance(4)
        with pytest.raises(RequestTimeout, match=r"within 7 s.*Pass connect_timeout= to wait longer"):
            await connecting


async def test_the_opening_of_a_stream_counts_towards_the_deadline_of_connecting() -> None:
    clock = Clock()
    async with fake_server() as fake:

        async def slowly() -> Any:
            await asyncio.sleep(20)
            return fake.stream

        connecting = asyncio.create_task(Client(slowly, probe_wait=1000).connect())
        await clock.advance(21)
        await fake.next()
        assert not connecting.done()
        await clock.advance(10)
        with pytest.raises(RequestTimeout, match="no answer to server/discover within 30 s"):
            await connecting


async def test_a_stream_that_does_not_open_is_given_up() -> None:
    clock = Clock()

    async def never() -> Any:
        await asyncio.sleep(10_000)

    connecting = asyncio.create_task(Client(never).connect())
    await clock.advance(31)
    with pytest.raises(ConnectionFailed, match="never could not be reached within 30 s; pass connect_timeout="):
        await connecting


async def test_closing_while_a_stream_does_not_open_ends_the_opening() -> None:
    async def never() -> Any:
        await asyncio.sleep(10_000)

    client = Client(never)
    connecting = asyncio.create_task(client.connect())
    await Clock().turn()
    await client.close()
    with pytest.raises(ConnectionLost, match="the client was closed while the conversation was being opened"):
        await connecting


# --------------------------------------------------------------------------------------------------- who keeps whom


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_no_deadline_passes_while_the_server_waits_for_our_user(revision: str) -> None:
    clock = Clock()
    thought = asyncio.Event()

    async def think(params: Any) -> Any:
        await thought.wait()
        return {"roots": []}

    async with talking(revision, handlers={"roots/list": think}) as (client, fake):
        call = asyncio.create_task(client.call("t", max_timeout=60))
        request = await fake.expect("tools/call")
        await clock.advance(50)
        await fake.send({"jsonrpc": "2.0", "id": "q", "method": "roots/list"})
        await clock.turn()
        await clock.advance(1000)
        assert not call.done()
        thought.set()
        assert (await fake.next())["id"] == "q"
        await clock.advance(9)
        assert not call.done()
        await fake.result(request, text("well thought"))
        assert await call == "well thought"


async def test_what_is_left_of_the_time_goes_on_once_the_server_has_its_answer() -> None:
    clock = Clock()
    thought = asyncio.Event()

    async def think(params: Any) -> Any:
        await thought.wait()
        raise ZeroDivisionError

    async with talking(handlers={"roots/list": think}) as (client, fake):
        call = asyncio.create_task(client.call("t"))
        await fake.expect("tools/call")
        await clock.advance(50)
        await fake.send({"jsonrpc": "2.0", "id": "q", "method": "roots/list"})
        await clock.advance(1000)
        thought.set()
        assert "error" in await fake.next()
        await clock.advance(11)
        with pytest.raises(RequestTimeout, match="within 60 s"):
            await call


async def test_a_ping_of_the_server_gives_it_no_more_time() -> None:
    clock = Clock()
    async with talking() as (client, fake):
        call = asyncio.create_task(client.call("t"))
        await fake.expect("tools/call")
        await clock.advance(50)
        await fake.ask(1, "ping")
        await clock.advance(11)
        with pytest.raises(RequestTimeout, match="within 60 s"):
            await call


# --------------------------------------------------------------------------------------------------- what is told


async def late(script: str, sign: str) -> str:
    """Return what people read when a server of this script does not answer a call, once it has said the sign."""
    clock = Clock()
    said = asyncio.Event()
    command = child("opened(); request = read(); " + script)

    def hear(line: str) -> None:
        if line == sign:
            said.set()

    async with Client(command, revision="2025-11-25", stderr=hear) as client:
        call = asyncio.create_task(client.call("t"))
        await said.wait()
        await clock.turn()
        await clock.advance(61)
        with pytest.raises(RequestTimeout) as raised:
            await call
    return str(raised.value)


async def test_a_late_error_says_that_the_process_runs_and_what_it_wrote_last() -> None:
    words = await late(
        "complain('\\n'.join(f'line {n}' for n in range(10))); complain('waiting for a lock'); read(); read()",
        "waiting for a lock",
    )
    assert "no answer to tools/call within 60 s; nothing was heard meanwhile; the server's process is running" in words
    assert words.endswith("\n  stderr: (6 lines before) ...\nline 6\nline 7\nline 8\nline 9\nwaiting for a lock")


async def test_a_late_error_shows_the_beginning_of_a_line_that_was_never_ended() -> None:
    words = await late(
        """write(b'{"jsonrpc":"2.0","id":'); time.sleep(0.05); complain("half way"); read(); read()""", "half way"
    )
    assert """meanwhile: the beginning of a line, '{"jsonrpc":"2.0","id":', without its end; the server's""" in words


async def test_a_late_error_tells_of_a_process_that_has_ended_and_left_its_stdout_to_another() -> None:
    """A wrapper that ends before the server it started is the usual case; then the stream ends with it."""
    script = "import subprocess; subprocess.Popen(['sleep', '100']); os._exit(4)"
    async with Client(child("opened(); request = read(); " + script), reconnect=False) as client:
        with pytest.raises(ServerExited, match="code 4"):
            await client.call("t")


# --------------------------------------------------------------------------------------------------- progress


@pytest.mark.parametrize("revision", REVISIONS)
async def test_all_progress_before_the_result_is_delivered_before_the_call_returns(revision: str) -> None:
    told: list[Any] = []
    async with talking(revision) as (client, fake):
        call = asyncio.create_task(client.call("t", on_progress=lambda *news: told.append(news)))
        request = await fake.expect("tools/call")
        await fake.progress(request, 1)
        await fake.progress(request, 2, total=4)
        await fake.progress(request, 2.5, total=4, message="nearly")
        await fake.result(request, text("x"))
        await fake.progress(request, 4)
        await call
        assert told == [(1, None, None), (2, 4, None), (2.5, 4, "nearly")]
        await alive(client, fake)
        assert len(told) == 3


async def test_async_progress_is_finished_before_the_call_returns() -> None:
    told: list[float] = []

    async def tell(done: float, total: float | None, message: str | None) -> None:
        for _ in range(5):
            await asyncio.sleep(0)
        told.append(done)

    async with talking() as (client, fake):
        call = asyncio.create_task(client.call("t", on_progress=tell))
        request = await fake.expect("tools/call")
        await fake.progress(request, 1)
        await fake.result(request, text("x"))
        await call
        assert told == [1]


async def test_a_progress_callback_may_itself_call_the_server() -> None:
    found: list[str] = []
    async with talking() as (client, fake):

        async def tell(done: float, total: float | None, message: str | None) -> None:
            found.append(await client.call("inner"))

        call = asyncio.create_task(client.call("outer", on_progress=tell))
        outer = await fake.expect("tools/call")
        await fake.progress(outer, 1)
        await fake.progress(outer, 2)
        inner = [await fake.expect("tools/call") for _ in range(2)]
        await fake.result(outer, text("x"))
        for request in inner:
            await fake.result(request, text("y"))
        assert await call == "x"
        assert found == ["y", "y"]


@pytest.mark.parametrize(
    "params",
    [
        None, {}, {"progressToken": None, "progress": 1}, {"progressToken": [1], "progress": 1}, {"progress": 1},
        {"progressToken": "TOKEN", "progress": "1"}, {"progressToken": "TOKEN"}, {"progressToken": 4711, "progress": 1},
        {"progressToken": "TOKEN", "progress": 1, "total": "2"}, {"progressToken": True, "progress": 1},
        [1, 2], {"progressToken": "STRING", "progress": 1},
    ],
    ids=str,
)  # fmt: skip
async def test_malformed_and_foreign_progress_is_dropped(params: Any) -> None:
    told: list[Any] = []
    async with talking() as (client, fake):
        call = asyncio.create_task(client.call("t", on_progress=lambda *news: told.append(news)))
        request = await fake.expect("tools/call")
        token = request["params"]["_meta"]["progressToken"]
        if isinstance(params, dict) and params.get("progressToken") in ("TOKEN", "STRING"):
            params = {**params, "progressToken": token if params["progressToken"] == "TOKEN" else str(token)}
        await fake.notify("notifications/progress", params)
        await fake.result(request, text("x"))
        assert await call == "x"
        assert told == []


async def test_progress_callbacks_that_fail_are_logged_and_cost_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def fail(*news: Any) -> None:
        raise ZeroDivisionError

    async def fail_later(*news: Any) -> None:
        raise LookupError

    async with talking() as (client, fake):
        for callback in (fail, fail_later):
            call = asyncio.create_task(client.call("t", on_progress=callback))
            request = await fake.expect("tools/call")
            await fake.progress(request, 1)
            await fake.result(request, text("x"))
            assert await call == "x"
    assert "ZeroDivisionError" in caplog.text
    assert "LookupError" in caplog.text


async def test_progress_that_nobody_asked_for_is_ignored() -> None:
    async with talking() as (client, fake):
        call = asyncio.create_task(client.call("t"))
        request = await fake.expect("tools/call")
        assert "_meta" not in request["params"]
        await fake.notify("notifications/progress", {"progressToken": request["id"], "progress": 1})
        await fake.result(request, text("x"))
        assert await call == "x"
