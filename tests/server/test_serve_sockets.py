"""Serving over TCP and Unix sockets: every client a conversation of its own, and every way in which it can end."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import stat
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from modelwire import ConnectionFailed, Context, Server
from modelwire.rpc import stream as rpc_stream
from modelwire.server.serve import DRAIN, STOP
from modelwire.server.serving import Serving, serve
from modelwire.transports import socket_stream
from tests.clock import Clock
from tests.socket_talk import SocketTalk, socket_talk
from tests.transports.sockets import MiB, descriptors, tasks
from tests.wire import HANDSHAKE, MODERN, PATIENCE, ROOT, Pending, dumps, every_revision, modern_meta

KINDS = pytest.mark.parametrize("kind", ["tcp", "unix"])
PING = {"jsonrpc": "2.0", "id": "p", "method": "ping"}


class Gate:
    """Holds the tool `wait` until it is opened."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.waiting = 0
        self.ended = 0


def make_server(gate: Gate | None = None, **options: Any) -> Server:
    server = Server("sockets", version="1", **options)
    gate = gate or Gate()

    @server.tool
    async def echo(value: str) -> str:
        return value

    @server.tool
    async def large(size: int) -> str:
        return "x" * size

    @server.tool
    async def wait() -> str:
        gate.waiting += 1
        try:
            await gate.open.wait()
        finally:
            gate.ended += 1
        return "waited"

    @server.tool
    async def who(ctx: Context) -> str:
        return f"{ctx.peer.principal}"

    return server


def endpoint(kind: str, folder: Path) -> str:
    return "tcp://127.0.0.1:0" if kind == "tcp" else f"unix://{folder}/s"


@asynccontextmanager
async def served(server: Server, kind: str, folder: Path, **options: Any) -> AsyncIterator[Serving]:
    async with server.serving(endpoint(kind, folder), **options) as serving:
        yield serving


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0)


# --------------------------------------------------------------------------------------------------- conversations


@KINDS
@every_revision
async def test_a_conversation_is_as_over_any_other_transport(kind: str, revision: str, tmp_path: Path) -> None:
    async with (
        served(make_server(), kind, tmp_path) as serving,
        socket_talk(serving.url, revision, own=["acme/none"]) as talk,
    ):
        assert await talk.text("echo", {"value": "é\n\u2028"}) == "é\n\u2028"
        tools = await talk.result("tools/list")
        assert {tool["name"] for tool in tools["tools"]} == {"echo", "large", "wait", "who"}
        assert (await talk.error("acme/none"))["code"] == -32601
        await talk.raw(b"nope")
        assert await talk.text("echo", {"value": "goes on"}) == "goes on"
        talk.inbox.clear()


@KINDS
@every_revision
async def test_large_messages_cross_both_ways(kind: str, revision: str, tmp_path: Path) -> None:
    async with served(make_server(), kind, tmp_path) as serving, socket_talk(serving.url, revision) as talk:
        value = "y" * 2 * MiB
        assert await talk.text("echo", {"value": value}) == value
        assert len(await talk.text("large", {"size": 3 * MiB})) == 3 * MiB


async def test_the_url_says_where_clients_find_the_server(tmp_path: Path) -> None:
    server = make_server()
    assert server.serving("tcp://127.0.0.1:0").url is None
    async with server.serving("tcp://127.0.0.1:0") as serving:
        assert serving.url is not None
        assert serving.url.startswith("tcp://127.0.0.1:")
        assert not serving.url.endswith(":0")
    async with server.serving(f"unix://{tmp_path}/s") as serving:
        assert serving.url == f"unix://{tmp_path}/s"
        assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o600


async def test_who_the_client_is_is_known_for_unix_sockets_only(tmp_path: Path) -> None:
    for kind, principal in (("unix", f"uid:{os.getuid()}"), ("tcp", "None")):
        async with served(make_server(), kind, tmp_path) as serving:
            for revision in (MODERN, HANDSHAKE[-1]):
                async with socket_talk(serving.url, revision) as talk:
                    assert await talk.text("who") == principal


async def test_both_eras_and_every_revision_at_once(tmp_path: Path) -> None:
    async with served(make_server(), "tcp", tmp_path) as serving:
        talks = [socket_talk(serving.url, revision) for revision in (*HANDSHAKE, MODERN)]
        opened = [await talk.__aenter__() for talk in talks]
        texts = await asyncio.gather(*(talk.text("echo", {"value": talk.revision}) for talk in opened))
        assert texts == [*HANDSHAKE, MODERN]
        for talk in talks:
            await talk.__aexit__(None, None, None)


async def test_one_server_may_serve_at_many_places_at_once(tmp_path: Path) -> None:
    server = make_server()
    async with (
        served(server, "tcp", tmp_path) as one,
        served(server, "tcp", tmp_path) as two,
        served(server, "unix", tmp_path) as three,
    ):
        for serving in (one, two, three):
            async with socket_talk(serving.url, MODERN) as talk:
                assert await talk.text("echo", {"value": "x"}) == "x"


async def test_an_endpoint_that_is_taken_is_refused(tmp_path: Path) -> None:
    for kind in ("tcp", "unix"):
        async with served(make_server(), kind, tmp_path) as serving:
            with pytest.raises(ConnectionFailed, match="cannot listen on"):
                await make_server().serve(serving.url)
            async with socket_talk(serving.url, MODERN) as talk:
                assert await talk.text("echo", {"value": "still there"}) == "still there"


# --------------------------------------------------------------------------------------------------- apart


@KINDS
async def test_requests_of_two_clients_with_one_id_never_meet(kind: str, tmp_path: Path) -> None:
    gate = Gate()
    async with (
        served(make_server(gate), kind, tmp_path) as serving,
        socket_talk(serving.url, MODERN) as one,
        socket_talk(serving.url, MODERN) as two,
    ):
        slow = await one.begin_call("wait", id=7)
        await until(lambda: gate.waiting == 1)
        assert (await two.call("echo", {"value": "two"}, id=7))["content"][0]["text"] == "two"
        await two.notify("notifications/cancelled", {"requestId": 7})
        await two.settle()
        assert gate.ended == 0
        assert not slow.done
        gate.open.set()
        assert (await slow.result())["content"][0]["text"] == "waited"


@KINDS
async def test_opening_one_conversation_opens_no_other(kind: str, tmp_path: Path) -> None:
    async with (
        served(make_server(), kind, tmp_path) as serving,
        socket_talk(serving.url, "2025-11-25"),
        socket_talk(serving.url, "2025-11-25", opened=False) as other,
    ):
        error = await other.error("tools/list")
        assert "not open yet" in error["message"]


@every_revision
async def test_what_changed_is_told_to_who_asked(revision: str, tmp_path: Path) -> None:
    server = make_server()
    async with (
        served(server, "tcp", tmp_path) as serving,
        socket_talk(serving.url, revision) as told,
        socket_talk(serving.url, MODERN) as other,
    ):
        if revision == MODERN:
            await told.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
            await told.hear("notifications/subscriptions/acknowledged")
        await told.settle()
        server.add_tool(lambda: "x", name="late")
        await told.hear("notifications/tools/list_changed")
        assert await other.quiet()


async def test_goodbye_of_one_client_ends_its_connection_only(tmp_path: Path) -> None:
    async with (
        served(make_server(), "tcp", tmp_path) as serving,
        socket_talk(serving.url, "2025-11-25") as one,
        socket_talk(serving.url, "2025-11-25") as two,
    ):
        await one.result("shutdown")
        await one.notify("exit")
        await one.ended()
        assert await two.text("echo", {"value": "still here"}) == "still here"


@pytest.mark.slow
async def test_200_clients_that_come_and_go_in_any_order_leave_nothing(tmp_path: Path) -> None:
    order = random.Random(11)
    before = descriptors(), tasks()
    async with served(make_server(), "tcp", tmp_path) as serving:
        talks: list[SocketTalk] = []
        for number in range(200):
            async with socket_talk(
                serving.url, order.choice([*HANDSHAKE, MODERN]), opened=order.random() < 0.5
            ) as talk:
                if order.random() < 0.3:
                    continue
                if talk.revision == MODERN or talk.ledger.frames:
                    assert await talk.text("echo", {"value": str(number)}) == str(number)
                if order.random() < 0.5:
                    await talk.begin("server/discover", revision=MODERN)
            talks.append(talk)
        await until(lambda: tasks() == before[1] + 1)
    assert (descriptors(), tasks()) == before


# --------------------------------------------------------------------------------------------------- slow clients


@KINDS
async def test_a_client_that_does_not_read_makes_the_server_stop_reading(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rpc_stream, "READ_PAUSE", MiB)
    handled = 0
    server = make_server()

    @server.tool
    async def counted(padding: str) -> str:
        nonlocal handled
        handled += 1
        return "x" * 100_000

    async with served(server, kind, tmp_path) as serving, socket_talk(serving.url, MODERN) as talk:

        async def ask() -> list[Pending]:
            # Padded, so that few requests come with one read: all of these are begun before any is answered.
            return [await talk.begin_call("counted", {"padding": "y" * 5000}) for _ in range(count)]

        await talk.stop_reading()
        count = 400
        asking = asyncio.create_task(ask())
        before = -1
        while before != handled:
            before = handled
            for _ in range(500):
                await asyncio.sleep(0)
        assert handled < count / 2
        async with socket_talk(serving.url, MODERN) as other:
            assert await other.text("echo", {"value": "not held up"}) == "not held up"
        talk.read_on()
        for answer in await asking:
            assert len((await answer.result())["content"][0]["text"]) == 100_000
        assert handled == count


@KINDS
async def test_a_client_that_goes_while_a_large_answer_is_written_leaves_nothing(kind: str, tmp_path: Path) -> None:
    before = descriptors(), tasks()
    async with served(make_server(), kind, tmp_path) as serving:
        for leave in ("close", "reset") if kind == "tcp" else ("close",):
            async with socket_talk(serving.url, MODERN) as talk:
                await talk.stop_reading()
                await talk.begin_call("large", {"size": 20 * MiB})
                for _ in range(50):
                    await asyncio.sleep(0)
                getattr(talk.client, leave)()
            await until(lambda: tasks() == before[1] + 1)
    assert (descriptors(), tasks()) == before


async def test_a_client_that_vanishes_has_its_requests_ended(tmp_path: Path) -> None:
    gate = Gate()
    async with served(make_server(gate), "tcp", tmp_path) as serving:
        clock = Clock()
        async with socket_talk(serving.url, MODERN) as talk:
            await talk.begin_call("wait")
            await until(lambda: gate.waiting == 1)
            talk.client.reset()
        await clock.turn()
        await clock.advance(DRAIN + 1)
        await until(lambda: gate.ended == 1)


# --------------------------------------------------------------------------------------------------- half-close


@KINDS
@every_revision
async def test_a_client_that_closes_its_side_gets_the_answers_to_what_it_asked(
    kind: str, revision: str, tmp_path: Path
) -> None:
    gate = Gate()
    async with served(make_server(gate), kind, tmp_path) as serving, socket_talk(serving.url, revision) as talk:
        slow = await talk.begin_call("wait")
        quick = await talk.begin_call("echo", {"value": "quick"})
        talk.close_side()
        assert (await quick.result())["content"][0]["text"] == "quick"
        await until(lambda: gate.waiting == 1)
        assert not slow.done
        gate.open.set()
        assert (await slow.result())["content"][0]["text"] == "waited"
        await talk.ended()


async def test_after_a_half_close_answers_are_waited_for_only_so_long(tmp_path: Path) -> None:
    gate = Gate()
    async with served(make_server(gate), "tcp", tmp_path) as serving, socket_talk(serving.url, MODERN) as talk:
        clock = Clock()
        await talk.begin_call("wait")
        talk.close_side()
        await until(lambda: gate.waiting == 1)
        await clock.advance(DRAIN - 1)
        assert gate.ended == 0
        await clock.advance(2)
        await talk.ended()
        assert gate.ended == 1


@KINDS
async def test_an_open_subscription_ends_with_the_clients_side(kind: str, tmp_path: Path) -> None:
    async with served(make_server(), kind, tmp_path) as serving, socket_talk(serving.url, MODERN) as talk:
        listening = await talk.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        await talk.hear("notifications/subscriptions/acknowledged")
        talk.close_side()
        assert (await listening.result())["resultType"] == "complete"
        await talk.hear("notifications/cancelled")
        await talk.ended()


# --------------------------------------------------------------------------------------------------- the server's end


@KINDS
async def test_when_the_serving_ends_subscriptions_end_first_then_what_runs_is_answered(
    kind: str, tmp_path: Path
) -> None:
    gate = Gate()
    async with (
        served(make_server(gate), kind, tmp_path) as serving,
        socket_talk(serving.url, MODERN) as talk,
        socket_talk(serving.url, "2025-11-25") as idle,
    ):
        listening = await talk.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        await talk.hear("notifications/subscriptions/acknowledged")
        running = await talk.begin_call("wait")
        await until(lambda: gate.waiting == 1)
        closing = asyncio.create_task(serving.aclose())
        assert (await listening.result())["resultType"] == "complete"
        assert not running.done
        gate.open.set()
        assert (await running.result())["content"][0]["text"] == "waited"
        await asyncio.gather(talk.ended(), idle.ended())
        talk.client.close()
        idle.client.close()
        await closing


async def test_what_does_not_end_in_a_moment_is_cancelled(tmp_path: Path) -> None:
    gate = Gate()
    async with served(make_server(gate), "tcp", tmp_path) as serving, socket_talk(serving.url, MODERN) as talk:
        await talk.begin_call("wait")
        await until(lambda: gate.waiting == 1)
        clock = Clock()
        closing = asyncio.create_task(serving.aclose())
        await clock.advance(STOP / 2)
        assert gate.ended == 0
        await clock.advance(STOP)
        await talk.ended()
        assert gate.ended == 1
        talk.client.close()
        await closing


@KINDS
async def test_the_end_leaves_nothing_whatever_the_clients_do(kind: str, tmp_path: Path) -> None:
    before = descriptors(), tasks()
    server = make_server()
    async with served(server, kind, tmp_path) as serving:
        mute = [await socket_talk(serving.url, MODERN, opened=False).__aenter__() for _ in range(3)]
        idle = [await socket_talk(serving.url, revision).__aenter__() for revision in (*HANDSHAKE, MODERN)]
        busy = await socket_talk(serving.url, MODERN).__aenter__()
        await busy.stop_reading()
        await busy.begin_call("large", {"size": 20 * MiB})
        await busy.begin_call("wait")
        await serving.aclose()
        await serving.aclose()
        for talk in (*mute, *idle, busy):
            await talk.aclose()
    assert (descriptors(), tasks()) == before
    assert list(tmp_path.iterdir()) == []


async def test_serve_goes_on_until_it_is_cancelled(tmp_path: Path) -> None:
    before = descriptors(), tasks()
    url = f"unix://{tmp_path}/s"
    serving = asyncio.create_task(make_server().serve(url))
    await until((tmp_path / "s").exists)
    for _ in range(2):
        async with socket_talk(url, MODERN) as talk:
            assert await talk.text("echo", {"value": "x"}) == "x"
    assert not serving.done()
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving
    assert (descriptors(), tasks()) == before
    assert list(tmp_path.iterdir()) == []


async def test_wait_waits_for_the_end_of_the_serving(tmp_path: Path) -> None:
    async with served(make_server(), "tcp", tmp_path) as serving:
        waiting = asyncio.create_task(serving.wait())
        async with socket_talk(serving.url, MODERN):
            pass
        await asyncio.sleep(0)
        assert not waiting.done()
    with pytest.raises(asyncio.CancelledError):
        await waiting


@pytest.mark.parametrize("turns", range(4))
async def test_a_serving_may_end_as_soon_as_it_began(turns: int, tmp_path: Path) -> None:
    before = descriptors(), tasks()
    for kind in ("tcp", "unix"):
        async with served(make_server(), kind, tmp_path):
            for _ in range(turns):
                await asyncio.sleep(0)
    assert (descriptors(), tasks()) == before
    assert list(tmp_path.iterdir()) == []


# --------------------------------------------------------------------------------------------------- lifespan


class Life:
    """A lifespan that notes what happens, and fails when it is told to."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.fails: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.may_start = asyncio.Event()
        self.may_start.set()

    async def __call__(self) -> AsyncIterator[Life]:
        await self.may_start.wait()
        self.events.append("began")
        failing = asyncio.ensure_future(self.watch(asyncio.current_task()))
        try:
            yield self
        finally:
            failing.cancel()
            self.events.append("ended")

    async def watch(self, task: asyncio.Task[Any] | None) -> None:
        await asyncio.wait([self.fails])
        assert task is not None
        task.cancel()


@KINDS
async def test_one_lifespan_holds_from_before_the_first_client_to_after_the_last(kind: str, tmp_path: Path) -> None:
    life = Life()
    server = make_server(lifespan=life)
    async with served(server, kind, tmp_path) as serving:
        assert life.events == ["began"]
        for _ in range(2):
            async with socket_talk(serving.url, MODERN) as talk:
                assert await talk.text("echo", {"value": "x"}) == "x"
        async with socket_talk(serving.url, MODERN) as talk:
            closing = asyncio.create_task(serving.aclose())
            await talk.ended()
            talk.client.close()
            await closing
    assert life.events == ["began", "ended"]


async def test_nobody_is_answered_before_the_lifespan_has_begun(tmp_path: Path) -> None:
    life = Life()
    life.may_start.clear()
    url = f"unix://{tmp_path}/s"
    serving = asyncio.create_task(make_server(lifespan=life).serve(url))
    await until((tmp_path / "s").exists)
    async with socket_talk(url, MODERN, opened=False) as talk:
        asked = await talk.begin_call("echo", {"value": "x"})
        for _ in range(50):
            await asyncio.sleep(0)
        assert not asked.done
        life.may_start.set()
        assert (await asked.result())["content"][0]["text"] == "x"
    serving.cancel()
    await asyncio.wait([serving])
    assert life.events == ["began", "ended"]


async def test_a_lifespan_that_cannot_begin_leaves_nothing(tmp_path: Path) -> None:
    async def broken() -> AsyncIterator[None]:
        raise ZeroDivisionError
        yield

    before = descriptors(), tasks()
    for kind in ("tcp", "unix"):
        with pytest.raises(ZeroDivisionError):
            async with served(make_server(lifespan=broken), kind, tmp_path):
                pass
        with pytest.raises(ZeroDivisionError):
            await make_server(lifespan=broken).serve(endpoint(kind, tmp_path))
    assert (descriptors(), tasks()) == before
    assert list(tmp_path.iterdir()) == []


@KINDS
async def test_a_lifespan_that_fails_ends_every_connection_and_is_told_once(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = descriptors(), tasks()
    life = Life()
    opened: list[str] = []
    serving = asyncio.create_task(serve(make_server(lifespan=life), endpoint(kind, tmp_path), {}, opened.append))
    await until(lambda: bool(opened))
    async with socket_talk(opened[0], MODERN) as one, socket_talk(opened[0], "2025-11-25") as two:
        await two.begin_call("wait")
        life.fails.set_result(None)
        await asyncio.gather(one.ended(), two.ended())
    with pytest.raises(RuntimeError, match="came to its end while the server served"):
        await serving
    assert caplog.text == ""
    assert (descriptors(), tasks()) == before


# --------------------------------------------------------------------------------------------------- strangers


@KINDS
async def test_a_post_from_a_web_page_never_reaches_the_server(kind: str, tmp_path: Path) -> None:
    calls = 0
    server = make_server()

    @server.tool
    async def danger() -> str:
        nonlocal calls
        calls += 1
        return "done"

    call = {"name": "danger", "arguments": {}, "_meta": modern_meta()}
    body = dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}) + b"\n"
    head = f"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: https://evil.example\r\nContent-Length: {len(body)}\r\n\r\n"
    async with served(server, kind, tmp_path) as serving, socket_talk(serving.url, MODERN, opened=False) as talk:
        await talk.client.write(head.encode() + body)
        await talk.ended()
        assert talk.ledger.frames == []
        assert calls == 0


@KINDS
async def test_a_first_line_that_is_no_json_is_answered_and_closed(kind: str, tmp_path: Path) -> None:
    async with (
        served(make_server(), kind, tmp_path) as serving,
        socket_talk(serving.url, MODERN, opened=False) as talk,
    ):
        await talk.client.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"\n' + dumps(PING) + b"\n")
        await talk.ended()
        (told,) = talk.inbox
        assert told["error"]["code"] == -32700


async def test_max_connections_is_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with (
        served(make_server(), "tcp", tmp_path, max_connections=2) as serving,
        socket_talk(serving.url, MODERN) as one,
        socket_talk(serving.url, MODERN),
    ):
        async with socket_talk(serving.url, MODERN, opened=False) as third:
            await third.ended()
            assert third.inbox[0]["error"]["code"] == 429
        assert await one.text("echo", {"value": "x"}) == "x"
    assert "max_connections allows no more" in caplog.text


# --------------------------------------------------------------------------------------------------- heartbeat


@KINDS
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_silent_client_is_pinged_and_kept_while_it_answers(kind: str, revision: str, tmp_path: Path) -> None:
    async with (
        served(make_server(), kind, tmp_path, heartbeat=10) as serving,
        socket_talk(serving.url, revision) as talk,
    ):
        await talk.settle()
        clock = Clock()
        for _ in range(3):
            await clock.advance(10.1)
            await clock.advance(10.1)
            ping = await talk.take(lambda message: message.get("method") == "ping")
            await talk.raw({"jsonrpc": "2.0", "id": ping["id"], "result": {}}, valid=True)
            await clock.turn()
        assert await talk.text("echo", {"value": "alive"}) == "alive"


@KINDS
async def test_a_client_that_answers_no_ping_is_given_up(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        served(make_server(), kind, tmp_path, heartbeat=10) as serving,
        socket_talk(serving.url, "2025-11-25") as talk,
    ):
        await talk.settle()
        clock = Clock()
        for _ in range(3):
            await clock.advance(10.1)
        for _ in range(3):
            await clock.advance(socket_stream.LINGER_SECONDS + 0.1)
        await talk.ended()
        talk.inbox.clear()
    assert "the other end gave no sign of life for 20 s (heartbeat=10)" in caplog.text


@KINDS
async def test_a_client_of_2026_07_28_is_never_asked_and_may_be_silent(kind: str, tmp_path: Path) -> None:
    # "Servers do not initiate JSON-RPC requests" (basic/transports), and there is no ping.
    async with (
        served(make_server(), kind, tmp_path, heartbeat=10) as serving,
        socket_talk(serving.url, MODERN) as talk,
    ):
        clock = Clock()
        for _ in range(10):
            await clock.advance(10.1)
        assert await talk.quiet()


@KINDS
@every_revision
async def test_a_client_that_takes_nothing_of_what_waits_for_it_is_given_up(
    kind: str, revision: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        served(make_server(), kind, tmp_path, heartbeat=10) as serving,
        socket_talk(serving.url, revision) as talk,
    ):
        await talk.stop_reading()
        await talk.begin_call("large", {"size": 20 * MiB})
        clock = Clock()
        for _ in range(10):
            if "the other end gave no sign of life" in caplog.text:
                break
            await clock.advance(10.1)
        assert "the other end gave no sign of life for 20 s" in caplog.text


# --------------------------------------------------------------------------------------------------- programs

PROGRAM = """
import sys
from modelwire import Server
server = Server("program")
@server.tool
async def echo(value: str) -> str:
    return value
server.run(sys.argv[1])
print("after", file=sys.stderr)
"""


@asynccontextmanager
async def program(*arguments: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """A server as a program of its own, and the URL that it says."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", "-c", PROGRAM, *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(PATIENCE * 3):
            said = (await process.stderr.readline()).decode()
        assert said.startswith("program: an MCP server, listening on ")
        assert said.endswith("; Ctrl-C ends it\n")
        yield process, said.removeprefix("program: an MCP server, listening on ").partition(";")[0]
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
async def test_one_signal_ends_a_program_its_connections_and_its_file(
    kind: str, number: signal.Signals, code: int, tmp_path: Path
) -> None:
    async with program(endpoint(kind, tmp_path)) as (process, url):
        async with socket_talk(url, MODERN) as one, socket_talk(url, "2025-11-25") as two:
            assert await one.text("echo", {"value": "x"}) == "x"
            process.send_signal(number)
            await asyncio.gather(one.ended(), two.ended())
        out, err = await process.communicate()
        assert process.returncode == code
        assert out == b""
        assert err == (b"after\n" if code == 0 else b"")
    assert list(tmp_path.iterdir()) == []


async def test_a_killed_program_leaves_a_file_that_the_next_one_replaces(tmp_path: Path) -> None:
    url = f"unix://{tmp_path}/s"
    async with program(url) as (process, _):
        process.kill()
        await process.wait()
    assert (tmp_path / "s").exists()
    async with make_server().serving(url), socket_talk(url, MODERN) as talk:
        assert await talk.text("echo", {"value": "again"}) == "again"
