"""A client of a server behind a TCP or Unix socket: opening, eras, ends, and signs of life."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from modelwire import Client, ConfigError, ConnectionFailed, ConnectionLost, Observer, RequestTimeout, Server
from modelwire.transports import socket_stream
from modelwire.transports.socket_address import TcpAddress
from modelwire.transports.socket_listener import listen
from modelwire.transports.socket_stream import SocketStream
from tests.clock import Clock
from tests.transports.sockets import MiB, descriptors, tasks
from tests.wire import HANDSHAKE, MODERN, REVISIONS

KINDS = pytest.mark.parametrize("kind", ["tcp", "unix"])
Script = Callable[[SocketStream], Awaitable[None]]


def make_server(started: list[str] | None = None) -> Server:
    server = Server("behind", version="2")

    @server.tool
    async def echo(value: str) -> str:
        return value

    @server.tool
    async def wait() -> str:
        if started is not None:
            started.append("wait")
        await asyncio.Event().wait()
        return ""

    return server


def endpoint(kind: str, folder: Path) -> str:
    return "tcp://127.0.0.1:0" if kind == "tcp" else f"unix://{folder}/s"


@asynccontextmanager
async def scripted(*scripts: Script) -> AsyncIterator[str]:
    """A listener that plays one script to each connection, the last one to all further ones; yields its URL."""
    count = 0

    async def serve(stream: SocketStream) -> None:
        nonlocal count
        script = scripts[min(count, len(scripts) - 1)]
        count += 1
        try:
            await script(stream)
        except ConnectionLost:
            pass
        finally:
            await stream.aclose()

    listener = await listen(TcpAddress("127.0.0.1", 0), serve)
    listener.start()
    try:
        yield str(listener.address)
    finally:
        await listener.aclose()


async def legacy(stream: SocketStream) -> None:
    """A server of 2025-06-18, which answers nothing but what it must."""
    while (frame := await stream.receive()) is not None:
        request = json.loads(frame)
        if request["method"] == "initialize":
            result: dict[str, Any] = {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "serverInfo": {"name": "old", "version": "1"},
            }
        elif request["method"] == "ping":
            result = {}
        else:
            continue
        await stream.send(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode())


CACHED = {"ttlMs": 0, "cacheScope": "private"}


async def modern(stream: SocketStream, answers: int = 1000) -> None:
    """A server of 2026-07-28 without tools, which answers so many requests."""
    for _ in range(answers):
        frame = await stream.receive()
        if frame is None:
            return
        request = json.loads(frame)
        result: dict[str, Any] = {"resultType": "complete", **CACHED}
        if request["method"] == "server/discover":
            result |= {"supportedVersions": [MODERN], "capabilities": {"tools": {}}}
        else:
            result["tools"] = []
        await stream.send(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode())


async def hang_up(stream: SocketStream) -> None:
    await stream.receive()


# --------------------------------------------------------------------------------------------------- opening


@KINDS
@pytest.mark.parametrize("revision", [None, *REVISIONS])
async def test_a_conversation_is_opened_and_closed_on_every_revision(
    kind: str, revision: str | None, tmp_path: Path
) -> None:
    before = descriptors(), tasks()
    async with make_server().serving(endpoint(kind, tmp_path)) as serving:
        async with Client(serving.url, revision=revision) as client:
            assert client.revision.name == (revision or MODERN)
            assert client.server_info is not None
            assert client.server_info.name == "behind"
            assert await client.call("echo", {"value": "x" * 2 * MiB}) == "x" * 2 * MiB
            await client.ping()
            assert client.stderr == ""
            assert client.exit_code is None
        assert not client.connected
    assert (descriptors(), tasks()) == before


@KINDS
async def test_a_client_can_connect_again_and_again(kind: str, tmp_path: Path) -> None:
    async with make_server().serving(endpoint(kind, tmp_path)) as serving:
        client = Client(serving.url)
        for _ in range(3):
            async with client:
                assert await client.call("echo", {"value": "x"}) == "x"


async def test_many_clients_of_one_server_do_not_meet(tmp_path: Path) -> None:
    async with make_server().serving("tcp://127.0.0.1:0") as serving:
        clients = [Client(serving.url, revision=revision) for revision in REVISIONS * 4]
        await asyncio.gather(*(client.connect() for client in clients))
        values = await asyncio.gather(*(client.call("echo", {"value": str(id(client))}) for client in clients))
        assert values == [str(id(client)) for client in clients]
        await asyncio.gather(*(client.close() for client in clients))


async def test_a_server_that_is_not_there_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"tcp://127.0.0.1:{closed.getsockname()[1]}"
    before = descriptors(), tasks()
    for target, why in ((url, "nothing listens there"), (f"unix://{tmp_path}/s", "there is no such file")):
        with pytest.raises(ConnectionFailed, match=re.escape(f"cannot connect to {target}: {why}")):
            await Client(target).connect()
    assert (descriptors(), tasks()) == before


async def test_port_0_is_no_target() -> None:
    with pytest.raises(ConfigError, match="port 0 is for servers"):
        await Client("tcp://127.0.0.1:0").connect()


async def test_connecting_takes_no_longer_than_it_may(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as full, socket.socket(socket.AF_UNIX) as first:
        full.bind(str(tmp_path / "s"))
        full.listen(0)
        first.connect(str(tmp_path / "s"))
        clock = Clock()
        connecting = asyncio.create_task(Client(f"unix://{tmp_path}/s", connect_timeout=7).connect())
        for _ in range(8):
            await clock.advance(1)
        with pytest.raises(ConnectionFailed, match="could not be reached within 7 s; pass connect_timeout="):
            await connecting


async def test_what_connecting_has_taken_is_missing_from_the_opening() -> None:
    async def mute(stream: SocketStream) -> None:
        while await stream.receive() is not None:
            pass

    async with scripted(mute) as url:
        clock = Clock()
        client = Client(url, connect_timeout=7, revision=MODERN)
        connecting = asyncio.create_task(client.connect())
        await clock.advance(6)
        assert not connecting.done()
        await clock.advance(2)
        with pytest.raises(RequestTimeout, match=f"no answer to server/discover from {url} within 7 s"):
            await connecting


async def test_closing_while_it_connects_stops_that(tmp_path: Path) -> None:
    async with make_server().serving("tcp://127.0.0.1:0") as serving:
        before = descriptors(), tasks()
        client = Client(serving.url)
        connecting = asyncio.create_task(client.connect())
        await asyncio.sleep(0)
        await client.close()
        await asyncio.gather(connecting, return_exceptions=True)
        await client.close()
        while tasks() > before[1]:
            await asyncio.sleep(0)
        assert descriptors() == before[0]


# --------------------------------------------------------------------------------------------------- eras


async def test_a_server_that_hangs_up_on_the_probe_is_connected_to_anew_and_initialized() -> None:
    async with scripted(hang_up, legacy) as url, Client(url) as client:
        assert client.revision.name == "2025-06-18"
        await client.ping()


async def test_a_server_that_resets_the_connection_on_the_probe_is_connected_to_anew() -> None:
    async def crash(stream: SocketStream) -> None:
        stream.release()  # with the probe unread, which resets the connection

    async with scripted(crash, legacy) as url, Client(url) as client:
        assert client.revision.name == "2025-06-18"


async def test_a_server_that_ignores_the_probe_is_initialized_on_the_same_connection() -> None:
    async with scripted(legacy, hang_up) as url, Client(url, probe_wait=0.01) as client:
        assert client.revision.name == "2025-06-18"


async def test_a_server_that_always_hangs_up_is_told() -> None:
    async with scripted(hang_up) as url:
        with pytest.raises(ConnectionLost, match="while the conversation was being opened"):
            await Client(url).connect()


async def test_what_something_that_speaks_another_protocol_said_is_told() -> None:
    async def http(stream: SocketStream) -> None:
        await stream.receive()
        await stream.send(b"HTTP/1.1 400 Bad Request")

    async with scripted(http) as url:
        with pytest.raises(ConnectionLost, match=r"closed the connection; .* unreadable message.*HTTP/1\.1 400"):
            await Client(url).connect()


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_pinned_client_does_not_connect_twice(revision: str) -> None:
    connections = 0

    async def count(stream: SocketStream) -> None:
        nonlocal connections
        connections += 1
        await stream.receive()

    async with scripted(count) as url:
        with pytest.raises(ConnectionLost):
            await Client(url, revision=revision).connect()
        assert connections == 1


async def test_a_server_that_is_full_says_so() -> None:
    async with (
        make_server().serving("tcp://127.0.0.1:0", max_connections=1) as serving,
        Client(serving.url),
    ):
        with pytest.raises(ConnectionLost, match="1 connections are open, and max_connections allows no more"):
            await Client(serving.url).connect()


# --------------------------------------------------------------------------------------------------- ends


@KINDS
async def test_what_waits_fails_when_the_server_ends(kind: str, tmp_path: Path) -> None:
    started: list[str] = []
    async with (
        make_server(started).serving(endpoint(kind, tmp_path)) as serving,
        Client(serving.url, reconnect=False) as client,
    ):
        waiting = asyncio.create_task(client.call("wait"))
        while not started:
            await asyncio.sleep(0)
        await serving.aclose()
        with pytest.raises(ConnectionLost, match="it may have run or not, .*: the server closed the connection"):
            await waiting
        with pytest.raises(ConnectionLost):
            await client.call("echo", {"value": "x"})
        assert not client.connected


@KINDS
@pytest.mark.slow
async def test_a_server_that_was_started_again_is_found_again(kind: str, tmp_path: Path) -> None:
    server = make_server()
    async with contextlib.AsyncExitStack() as stack:
        serving = await stack.enter_async_context(server.serving(endpoint(kind, tmp_path)))
        reasons: list[ConnectionLost] = []
        client = await stack.enter_async_context(Client(serving.url, on_reconnect=reasons.append))
        for _ in range(3):
            await serving.aclose()
            serving = await stack.enter_async_context(server.serving(serving.url))
            assert await client.call("echo", {"value": "again"}) == "again"
        assert len(reasons) == 3


async def test_a_request_without_effects_is_sent_again_to_the_server_that_came_back(tmp_path: Path) -> None:
    async def lose_the_second(stream: SocketStream) -> None:
        await modern(stream, 1)
        await stream.receive()

    async with scripted(lose_the_second, modern) as url, Client(url) as client:
        assert await client.request("tools/list") == {"resultType": "complete", "tools": [], **CACHED}


async def test_a_client_that_closes_has_its_requests_ended_and_waits_for_nobody(tmp_path: Path) -> None:
    started: list[str] = []
    async with make_server(started).serving("tcp://127.0.0.1:0") as serving:
        client = await Client(serving.url).connect()
        waiting = asyncio.create_task(client.call("wait"))
        while not started:
            await asyncio.sleep(0)
        clock = Clock()
        closing = asyncio.create_task(client.close())
        await clock.advance(0.1)
        await clock.advance(1)
        await closing
        with pytest.raises(ConnectionLost):
            await waiting


async def test_a_client_hangs_up_with_the_server_so_that_the_server_need_not_linger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_stream, "LINGER_SECONDS", 3600.0)
    async with make_server().serving(f"unix://{tmp_path}/s") as serving, Client(serving.url) as client:
        await serving.aclose()
        assert not client.connected


async def test_a_reset_is_connection_lost() -> None:
    async def answer_and_crash(stream: SocketStream) -> None:
        await modern(stream, 1)
        await stream.receive()
        stream._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        stream.release()

    async with scripted(answer_and_crash) as url, Client(url, reconnect=False) as client:
        with pytest.raises(ConnectionLost, match=f"cannot read from {url}: Connection reset by peer"):
            await client.request("anything")


# --------------------------------------------------------------------------------------------------- heartbeat


@pytest.mark.parametrize("target", [["python", "server.py"], Server("here")])
def test_a_heartbeat_is_for_sockets(target: Any) -> None:
    with pytest.raises(ConfigError, match="heartbeat= is for tcp:// and unix:// targets"):
        Client(target, heartbeat=5)


@pytest.mark.parametrize("heartbeat", [0, -1, "5"])
def test_a_heartbeat_is_a_number_of_seconds(heartbeat: Any) -> None:
    with pytest.raises(ConfigError, match="heartbeat must be a number of seconds above 0"):
        Client("tcp://127.0.0.1:1", heartbeat=heartbeat)


class Frames(Observer):
    """The methods that a client has sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def frame(self, direction: str, frame: bytes) -> None:
        if direction == "out":
            self.sent.append(json.loads(frame)["method"])


@KINDS
@pytest.mark.parametrize("revision", [*HANDSHAKE, MODERN])
async def test_a_silent_server_is_asked_as_the_revision_has_it(kind: str, revision: str, tmp_path: Path) -> None:
    frames: Any = Frames()
    async with (
        make_server().serving(endpoint(kind, tmp_path)) as serving,
        Client(serving.url, revision=revision, heartbeat=10, observers=[frames]) as client,
    ):
        frames.sent.clear()
        clock = Clock()
        for _ in range(6):
            await clock.advance(10.1)
        ping = "server/discover" if revision == MODERN else "ping"
        assert set(frames.sent) == {ping}
        assert len(frames.sent) >= 2
        assert await client.call("echo", {"value": "alive"}) == "alive"


async def test_a_server_that_gives_no_sign_of_life_is_lost() -> None:
    async def then_mute(stream: SocketStream) -> None:
        answered = 0
        while (frame := await stream.receive()) is not None:
            request = json.loads(frame)
            if request["method"] == "initialize" and not answered:
                answered += 1
                result = {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {},
                    "serverInfo": {"name": "x", "version": "1"},
                }
                await stream.send(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode())

    async with (
        scripted(then_mute) as url,
        Client(url, revision="2025-11-25", heartbeat=10, reconnect=False) as client,
    ):
        waiting = asyncio.create_task(client.request("acme/slow", timeout=None))
        clock = Clock()
        for _ in range(3):
            await clock.advance(10.1)
        with pytest.raises(ConnectionLost, match=r"no sign of life for 20 s \(heartbeat=10\)"):
            await waiting
        assert not client.connected


async def test_without_a_heartbeat_nobody_is_asked(tmp_path: Path) -> None:
    frames: Any = Frames()
    async with (
        make_server().serving(f"unix://{tmp_path}/s") as serving,
        Client(serving.url, observers=[frames]),
    ):
        frames.sent.clear()
        clock = Clock()
        for _ in range(3):
            await clock.advance(1000)
        assert frames.sent == []


async def test_the_heartbeat_ends_with_the_conversation() -> None:
    before = tasks()
    async with (
        make_server().serving("tcp://127.0.0.1:0") as serving,
        Client(serving.url, heartbeat=10),
    ):
        pass
    assert tasks() == before
