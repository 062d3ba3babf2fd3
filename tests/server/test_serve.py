"""`run`, `serve`, `serving` and `session`: the ways to serve, as a program, inside a loop and frame by frame."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from modelwire import ConfigError, ConnectionLost, Context, Observer, Server
from modelwire.server import serve as serve_module
from modelwire.transports.memory import memory_pair
from tests.clock import Clock
from tests.wire import MODERN, PATIENCE, ROOT, child_talk, dumps, every_revision, modern_meta, opening, stream_talk

INITIALIZE = dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening("2025-11-25")})
PING = dumps({"jsonrpc": "2.0", "id": "p", "method": "ping"})


def make_server(**options: Any) -> Server:
    server = Server("serve", **options)

    @server.tool
    async def echo(value: str) -> str:
        return value

    return server


def call(id: Any, tool: str = "echo", **arguments: Any) -> bytes:
    return dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})


def text(frame: bytes | None) -> str:
    assert frame is not None
    return json.loads(frame)["result"]["content"][0]["text"]


# --------------------------------------------------------------------------------------------------- programs

HEAD = """
import asyncio
import sys
from modelwire import Server
server = Server("program")
@server.tool
async def echo(value: str) -> str:
    return value
"""
PROGRAMS = {
    "run": "server.run()",
    "serve": "asyncio.run(server.serve())",
    "serving": """
async def main():
    async with server.serving() as s:
        await s.wait()
asyncio.run(main())
""",
    "run after another loop": """
async def before():
    await asyncio.sleep(0)
asyncio.run(before())
server.run()
""",
    "tools added after a loop ran": """
async def before():
    server.add_tool(lambda: "x", name="late")
asyncio.run(before())
asyncio.run(server.serve())
""",
    "serve beside other tasks": """
async def main():
    other = asyncio.create_task(asyncio.sleep(3600))
    await server.serve()
    other.cancel()
asyncio.run(main())
""",
    "in a thread": """
import threading
thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
thread.start()
thread.join()
""",
    "run in a thread": """
import threading
thread = threading.Thread(target=server.run)
thread.start()
thread.join()
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
async def test_every_way_to_serve_stdio_answers_and_ends_with_its_input(name: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(HEAD + PROGRAMS[name] + '\nsys.stderr.write("after\\n")\nprint("printed at the end")\n')
    async with child_talk(program, python=["-W", "error"]) as talk:
        assert await talk.text("echo", {"value": "x"}) == "x"
        output = len(talk.output)
        talk.close_stdin()
        assert await talk.ended() == 0
        assert talk.stderr == b"after\n"
        assert talk.output[output:] == b"printed at the end\n"  # stdout is the program's own again
        talk.ledger.faults.clear()


async def test_run_inside_a_running_loop_says_what_to_call_instead() -> None:
    with pytest.raises(ConfigError, match="serve"):
        make_server().run()


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:8000/mcp?a=1", "tcp://127.0.0.1", "nonsense"])
def test_an_endpoint_that_cannot_be_served_is_refused(endpoint: str) -> None:
    with pytest.raises(ConfigError):
        make_server().run(endpoint)


def test_two_servers_on_one_stdio_are_refused() -> None:
    code = HEAD + (
        "async def main():\n"
        "    async with server.serving():\n"
        "        await Server('second').serve()\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
    )
    assert done.returncode == 1
    assert b"ConfigError" in done.stderr


# --------------------------------------------------------------------------------------------------- streams


@every_revision
async def test_serving_serves_while_its_block_runs(revision: str) -> None:
    async with stream_talk(make_server(), revision) as talk:
        assert await talk.text("echo", {"value": "x"}) == "x"
        await talk.serving.aclose()
        await talk.serving.aclose()
        await talk.closed()


async def test_wait_returns_when_the_client_has_left() -> None:
    mine, theirs = memory_pair()
    async with make_server().serving(theirs) as serving:
        waiting = asyncio.create_task(serving.wait())
        await mine.send(PING)
        assert await mine.receive() is not None
        assert not waiting.done()
        await mine.aclose()
        await asyncio.wait_for(waiting, 5)


async def test_serve_returns_when_the_client_has_left_after_answering_what_it_asked() -> None:
    server = make_server()
    gate = asyncio.Event()

    @server.tool
    async def wait() -> str:
        await gate.wait()
        return "waited"

    class HalfClosed:
        """A stream whose client sends no more but still reads."""

        def __init__(self, frames: list[bytes]) -> None:
            self.frames, self.sent, self.closed = frames, list[bytes](), 0

        async def receive(self) -> bytes | None:
            return self.frames.pop(0) if self.frames else None

        async def send(self, frame: bytes) -> None:
            self.sent.append(frame)

        async def aclose(self) -> None:
            self.closed += 1

    stream = HalfClosed([INITIALIZE, call(1, "wait"), call(2, value="x")])
    serving = asyncio.create_task(server.serve(stream))
    while len(stream.sent) < 2:
        await asyncio.sleep(0)
    assert not serving.done()
    gate.set()
    await asyncio.wait_for(serving, 5)
    assert [json.loads(frame)["id"] for frame in stream.sent] == [0, 2, 1]
    assert stream.closed


async def test_a_stream_that_breaks_ends_the_serving_and_not_the_program(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        async def receive(self) -> bytes | None:
            raise ConnectionLost("the cable was pulled")

        async def send(self, frame: bytes) -> None:
            raise ConnectionLost("the cable was pulled")

        async def aclose(self) -> None:
            pass

    await asyncio.wait_for(make_server().serve(Broken()), 5)
    assert "cable" in caplog.text


async def test_an_error_inside_the_block_leaves_it_as_itself() -> None:
    _, theirs = memory_pair()
    with pytest.raises(KeyError, match="mine"):
        async with make_server().serving(theirs):
            raise KeyError("mine")


async def test_one_server_serves_many_clients_at_once() -> None:
    server = make_server()
    async with stream_talk(server, "2024-11-05") as one, stream_talk(server, MODERN) as two:
        async with stream_talk(server, "2025-11-25") as three:
            texts = await asyncio.gather(*(talk.text("echo", {"value": talk.revision}) for talk in (one, two, three)))
        assert texts == ["2024-11-05", MODERN, "2025-11-25"]
        assert await one.text("echo", {"value": "after one has left"}) == "after one has left"


async def test_what_runs_is_cancelled_when_the_serving_is_cancelled() -> None:
    server = make_server()
    started, ended = asyncio.Event(), asyncio.Event()

    @server.tool
    async def wait() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    mine, theirs = memory_pair()
    serving = asyncio.create_task(server.serve(theirs))
    await mine.send(INITIALIZE)
    await mine.send(call(1, "wait"))
    await asyncio.wait_for(started.wait(), 5)
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(serving, 5)
    assert ended.is_set()


async def test_observers_see_every_frame_and_their_faults_go_no_further() -> None:
    seen: list[tuple[str, bytes]] = []

    class Good(Observer):
        def frame(self, direction: Any, frame: bytes) -> None:
            seen.append((direction, frame))

    class Bad(Observer):
        def frame(self, direction: Any, frame: bytes) -> None:
            raise ValueError("an observer's own")

    async with stream_talk(make_server(observers=[Bad(), Good()]), "2025-11-25") as talk:
        await talk.text("echo", {"value": "x"})
        await talk.raw(b"nope")
        await talk.settle()
        expected = [("in" if sender == "client" else "out", frame) for sender, frame in talk.ledger.frames]
        assert sorted(seen) == sorted(expected)


# --------------------------------------------------------------------------------------------------- sessions


async def test_handle_returns_the_frame_that_answers_or_none() -> None:
    session = make_server().session()
    assert json.loads(await session.handle(INITIALIZE) or b"")["result"]["protocolVersion"] == "2025-11-25"
    assert await session.handle(dumps({"jsonrpc": "2.0", "method": "notifications/initialized"})) is None
    assert text(await session.handle(call(1, value="x"))) == "x"
    assert json.loads(await session.handle(b"nope") or b"")["error"]["code"] == -32700
    assert await session.handle(dumps({"jsonrpc": "2.0", "id": 77, "result": {}})) is None
    await session.aclose()
    await session.aclose()


async def test_frames_may_be_bytearrays_and_views_and_are_not_changed() -> None:
    session = make_server().session()
    frame = bytearray(PING)
    assert json.loads(await session.handle(bytes(frame)) or b"")["id"] == "p"
    assert frame == PING
    await session.aclose()


async def test_without_send_a_session_serves_all_the_same() -> None:
    server = make_server()

    @server.tool
    async def noisy(ctx: Context) -> str:
        ctx.progress(1)
        ctx.log.error("x")
        return "done"

    session = server.session()
    await session.handle(INITIALIZE)
    assert text(await session.handle(call(1, "noisy"))) == "done"
    server.changed("tools")
    await asyncio.sleep(0)
    await session.aclose()


async def test_a_cancelled_request_is_answered_with_none_and_the_caller_goes_on() -> None:
    server = make_server()
    started = asyncio.Event()

    @server.tool
    async def wait() -> str:
        started.set()
        await asyncio.Event().wait()
        return ""

    async def caller() -> list[bytes | None]:
        first = await session.handle(call(1, "wait"))
        return [first, await session.handle(call(2, value="went on"))]

    session = server.session()
    await session.handle(INITIALIZE)
    task = asyncio.create_task(caller())
    await asyncio.wait_for(started.wait(), 5)
    await session.handle(dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}))
    first, second = await asyncio.wait_for(task, 5)
    assert first is None
    assert text(second) == "went on"
    await session.aclose()


async def test_a_caller_that_is_cancelled_ends_its_request() -> None:
    server = make_server()
    started, ended = asyncio.Event(), asyncio.Event()

    @server.tool
    async def wait() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    session = server.session()
    await session.handle(INITIALIZE)
    task = asyncio.create_task(session.handle(call(1, "wait")))
    await asyncio.wait_for(started.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(ended.wait(), 5)
    assert text(await session.handle(call(1, value="the id is free"))) == "the id is free"
    await session.aclose()


async def test_a_caller_may_put_a_timeout_around_handle() -> None:
    server = make_server()

    @server.tool
    async def wait() -> str:
        await asyncio.Event().wait()
        return ""

    session = server.session()
    await session.handle(INITIALIZE)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await session.handle(call(1, "wait"))
    assert text(await session.handle(call(2, value="x"))) == "x"
    await session.aclose()


async def test_a_batch_is_one_frame_in_and_one_out() -> None:
    session = make_server().session()
    await session.handle(dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening("2025-03-26")}))
    frame = await session.handle(b"[" + call(1, value="a") + b"," + call(2, value="b") + b"]")
    assert {answer["id"] for answer in json.loads(frame or b"")} == {1, 2}
    note = dumps({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
    assert await session.handle(b"[" + note + b"]") is None
    await session.aclose()


async def test_what_runs_when_a_session_is_closed_is_cancelled_and_later_frames_are_refused() -> None:
    server = make_server()
    ended = asyncio.Event()
    started = asyncio.Event()

    @server.tool
    async def wait() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    session = server.session()
    await session.handle(INITIALIZE)
    task = asyncio.create_task(session.handle(call(1, "wait")))
    await asyncio.wait_for(started.wait(), 5)
    await session.aclose()
    await asyncio.wait_for(ended.wait(), 5)
    await asyncio.wait([task], timeout=PATIENCE)
    assert task.done()


async def test_a_send_that_raises_harms_no_request(caplog: pytest.LogCaptureFixture) -> None:
    server = make_server()

    @server.tool
    async def noisy(ctx: Context) -> str:
        ctx.progress(1)
        ctx.log.error("x")
        return "done"

    def send(frame: bytes) -> None:
        raise OSError("the user's own")

    session = server.session(send=send)
    await session.handle(INITIALIZE)
    frame = {"name": "noisy", "arguments": {}, "_meta": {"progressToken": 1}}
    answer = await session.handle(dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": frame}))
    assert text(answer) == "done"
    await session.aclose()


async def test_a_subscription_ends_with_its_session() -> None:
    sent: list[Any] = []
    session = make_server().session(send=lambda frame: sent.append(json.loads(frame)))
    params = {"notifications": {"toolsListChanged": True}, "_meta": modern_meta()}
    frame = dumps({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params})
    listening = asyncio.create_task(session.handle(frame))
    while not sent:
        await asyncio.sleep(0)
    assert sent[0]["method"] == "notifications/subscriptions/acknowledged"
    await session.aclose()
    result = json.loads(await asyncio.wait_for(listening, 5) or b"")
    assert result["result"]["resultType"] == "complete"
    assert sent[-1]["method"] == "notifications/cancelled"


# --------------------------------------------------------------------------------------------------- clients that leave


@pytest.mark.parametrize("asked", [False, True])
async def test_a_client_that_leaves_while_the_lifespan_starts_is_not_waited_for(
    asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve_module, "START", 0.05)
    journal: list[str] = []

    async def lifespan(server: Server) -> AsyncIterator[None]:
        journal.append("starts")
        try:
            await asyncio.Event().wait()
            yield
        finally:
            journal.append("is cancelled")

    ours, theirs = memory_pair()
    serving = asyncio.create_task(Server("it", version="1", lifespan=lifespan).serve(theirs))
    if asked:
        await ours.send(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    await Clock().turn()
    await ours.aclose()
    async with asyncio.timeout(10):
        await serving
    assert journal == ["starts", "is cancelled"]


async def test_a_handler_does_not_wait_for_an_answer_of_a_client_that_has_closed_its_side(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(serve_module, "DRAIN", 60)
    server = make_server()
    caught: list[str] = []

    @server.tool
    async def wonder(ctx: Context) -> str:
        await ctx.request("ping")
        return "never"

    @server.tool
    async def ask(ctx: Context) -> str:
        for _ in range(2):
            try:
                await ctx.request("ping")
            except ConnectionLost as error:
                caught.append(str(error))
        return "done"

    stream = HalfClosed([INITIALIZE, call(1, "ask"), call(2, "wonder")])
    async with asyncio.timeout(10):
        await server.serve(stream)
    assert caught == [
        "the connection ended before ping was answered: the client has closed its side",
        "ping was not sent: the client has closed its side",
    ]
    answers = {json.loads(frame)["id"]: frame for frame in stream.sent if b'"result"' in frame}
    assert text(answers[1]) == "done"
    assert text(answers[2]).endswith("the client has closed its side")
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


class HalfClosed:
    """A stream whose other end has sent something, closed its side, and waits for the answers."""

    def __init__(self, coming: list[bytes]) -> None:
        self.coming = coming
        self.sent: list[bytes] = []

    async def receive(self) -> bytes | None:
        return self.coming.pop(0) if self.coming else None

    async def send(self, frame: bytes) -> None:
        self.sent.append(frame)

    async def aclose(self) -> None:
        pass


async def test_a_stream_that_breaks_while_the_lifespan_starts_ends_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(HalfClosed):
        async def receive(self) -> bytes | None:
            raise ConnectionLost("cut")

    async def lifespan(server: Server) -> AsyncIterator[None]:
        await asyncio.Event().wait()
        yield

    async with asyncio.timeout(10):
        await Server("it", version="1", lifespan=lifespan).serve(Broken([]))


async def test_what_is_asked_while_the_lifespan_starts_is_answered_even_if_the_input_ends_meanwhile() -> None:
    start = asyncio.Event()

    async def lifespan(server: Server) -> AsyncIterator[None]:
        await start.wait()
        yield

    stream = HalfClosed([b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % number for number in range(300)])
    serving = asyncio.create_task(Server("it", version="1", lifespan=lifespan).serve(stream))
    await Clock().turn()
    assert stream.sent == []
    assert 0 < len(stream.coming) < 100, "some of it was read already"
    start.set()
    await serving
    assert [json.loads(frame)["id"] for frame in stream.sent] == list(range(300))
