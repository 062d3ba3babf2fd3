"""`server.run("ws://...")` under uvicorn: frames over TCP and TLS, peers that misbehave, and an end that is orderly."""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import gc
import json
import os
import ssl
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import InvalidStatus
from websockets.frames import Frame, Opcode

from modelwire import ConfigError, Server
from tests import certificates
from tests.clock import Clock
from tests.leftovers import nothing_left
from tests.server.http.raw import Connection, call, closed, connected
from tests.server.http.servers import make
from tests.server.http.sockets import RawSocket, raw_socket, talking
from tests.wire import MODERN, PATIENCE, dumps, every_revision, modern_meta

pytestmark = pytest.mark.slow  # over real sockets what test_websocket.py holds without

HERE = "ws://127.0.0.1:0/mcp"
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
KEY = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "x" * 22 + "==",
}


async def send_frame(socket: RawSocket, opcode: Opcode, data: bytes, *, fin: bool = True) -> None:
    """Send a frame as it is."""
    connection = socket.connection
    connection.transport.write(Frame(opcode, data, fin).serialize(mask=True))
    await asyncio.sleep(0)


def calling(tool: str) -> bytes:
    """A call of 2026-07-28."""
    params = {"name": tool, "arguments": {}, "_meta": modern_meta()}
    return dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})


async def refused(url: str, **options: Any) -> tuple[int, str]:
    with pytest.raises(InvalidStatus) as caught:
        async with raw_socket(url, **options):
            pass
    response = caught.value.response
    return response.status_code, (response.body or b"").decode()


async def answers(socket: RawSocket) -> bool:
    """Whether a ping of ours is answered."""
    await socket.send(PING)
    return json.loads(await socket.receive() or b"{}").get("result") == {}


# --------------------------------------------------------------------------------------------------- conversations


@every_revision
async def test_every_revision_is_spoken_over_tcp(revision: str, caplog: pytest.LogCaptureFixture) -> None:
    async with nothing_left(caplog), make().server.serving(HERE) as serving:
        assert serving.url is not None
        assert serving.url.startswith("ws://127.0.0.1:")
        async with raw_socket(serving.url) as socket, talking(socket, revision) as talk:
            assert socket.connection.subprotocol == "mcp"
            assert not socket.connection.protocol.extensions
            assert await talk.text("add", {"a": 1, "b": 2}) == "3"
            steps = await talk.begin_call("steps", {"count": 2}, progressToken=1)
            assert (await steps.result())["content"][0]["text"] == "2 steps"
            assert [message["method"] for message in talk.inbox] == ["notifications/progress"] * 2


@pytest.mark.parametrize("scheme", ["ws", "http"])
async def test_http_and_websockets_share_a_port_and_a_path(scheme: str) -> None:
    async with make().server.serving(f"{scheme}://127.0.0.1:0/here") as serving:
        place = serving.url.partition("://")[2]
        async with connected(serving.url) as http:
            headers, body = call("add", {"a": 1, "b": 2})
            await http.ask("POST", headers, body, path="/here")
            assert (await http.whole())[0] == 200
        for url in (f"ws://{place}", f"ws://{place.partition('/')[0]}/ws"):
            async with raw_socket(url) as socket:
                assert await answers(socket)


async def test_a_hundred_calls_at_once_are_answered_in_order(caplog: pytest.LogCaptureFixture) -> None:
    async with (
        nothing_left(caplog),
        make().server.serving(HERE) as serving,
        raw_socket(serving.url) as socket,
        talking(socket, "2025-11-25") as talk,
    ):
        calls = [await talk.begin("ping") for _ in range(100)]
        for one in calls:
            await one.result()
        came = [json.loads(frame.data)["id"] for frame in talk.frames if frame.direction == "in"][-100:]
        assert came == sorted(came)


async def test_a_message_in_fragments_with_pings_between_is_one_message() -> None:
    async with make().server.serving(HERE) as serving, raw_socket(serving.url) as socket:
        text = '{"jsonrpc":"2.0","id":"ä","method":"ping"}'.encode()
        await send_frame(socket, Opcode.TEXT, b"", fin=False)
        for at in range(len(text)):
            await send_frame(socket, Opcode.CONT, text[at : at + 1], fin=False)
            await send_frame(socket, Opcode.PING, b"still here?")
        await send_frame(socket, Opcode.CONT, b"")
        assert json.loads(await socket.receive() or b"")["id"] == "ä"


# --------------------------------------------------------------------------------------------------- refusals


async def test_strangers_pages_and_hosts_and_other_places_are_refused_before_the_upgrade(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with nothing_left(caplog), make().server.serving(HERE) as serving:
        status, body = await refused(serving.url, origin="http://evil.example")
        assert status == 403
        assert "allowed_origins=" in json.loads(body)["error"]["message"]
        assert (await refused(serving.url, additional_headers={"Host": "evil.example"}))[0] in (400, 403)
        assert (await refused(serving.url.replace("/mcp", "/other")))[0] == 404
        assert (await refused(serving.url, subprotocols=["other"]))[0] == 400
        async with raw_socket(serving.url, subprotocols=None) as socket:
            assert await answers(socket)


async def test_there_are_only_so_many_connections() -> None:
    async with make().server.serving(HERE, max_connections=2) as serving:
        async with raw_socket(serving.url) as one, raw_socket(serving.url):
            assert await refused(serving.url) == (503, "there are too many connections")
            assert await answers(one)
        for _ in range(100):  # until both are gone
            with contextlib.suppress(InvalidStatus):
                async with raw_socket(serving.url) as again:
                    assert await answers(again)
                    return
        raise AssertionError("no room was made")


@pytest.mark.parametrize("large", ["all", "one", "many"])
async def test_headers_of_an_upgrade_are_bounded(large: str, caplog: pytest.LogCaptureFixture) -> None:
    more = {
        "all": {"X-Large": "x" * (100 << 10)},
        "one": {"X-Large": "x" * (20 << 10)},
        "many": {f"X-{number}": "x" for number in range(150)},
    }[large]
    async with nothing_left(caplog), make().server.serving(HERE) as serving, connected(serving.url) as http:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await http.ask("GET", {**KEY, **more})
            assert (await http.head())[0] == 431
        await closed(http)


async def test_an_upgrade_that_makes_no_sense_is_refused() -> None:
    async with make().server.serving(HERE) as serving:
        for wrong in ({"Sec-WebSocket-Version": "8"}, {"Sec-WebSocket-Key": "short"}):
            async with connected(serving.url) as http:
                await http.ask("GET", {**KEY, **wrong})
                assert (await http.head())[0] in (400, 426)
                await closed(http)


async def test_a_websocket_lives_on_although_no_headers_come() -> None:
    async with make().server.serving(HERE) as serving, raw_socket(serving.url) as socket:
        await Clock().advance(60)  # longer than the next headers may take over HTTP
        assert await answers(socket)


async def test_an_upgrade_behind_a_request_that_is_not_answered_yet_ends_the_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = make()
    async with nothing_left(caplog), bench.server.serving(HERE) as serving, connected(serving.url) as http:
        await http.ask("POST", *call("wait"))
        await bench.waiting.wait()
        await http.ask("GET", KEY)
        assert await closed(http) == b""
        async with asyncio.timeout(PATIENCE):
            await bench.cancelled.wait()


async def test_an_upgrade_after_a_request_that_was_answered_is_fine() -> None:
    async with make().server.serving(HERE) as serving, connected(serving.url) as http:
        await http.ask("POST", *call("add", {"a": 1, "b": 2}))
        assert (await http.whole())[0] == 200
        await http.ask("GET", KEY)
        status, headers = await http.head()
        assert (status, headers["upgrade"]) == (101, "websocket")


async def test_without_websockets_an_upgrade_is_told_and_http_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **options: Any) -> Any:
        if name == "modelwire.server.http.guarded_websocket":  # which is the one that needs it
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConfigError, match=r"pip install 'modelwire\[http,ws\]'"):
        async with make().server.serving(HERE):
            pass
    async with make().server.serving("http://127.0.0.1:0/mcp") as serving, connected(serving.url) as http:
        await http.ask("GET", KEY)
        status, _, body = await http.whole()
        assert status == 501
        assert "modelwire[http,ws]" in json.loads(body)["error"]["message"]
    async with make().server.serving("http://127.0.0.1:0/mcp") as serving, connected(serving.url) as http:
        await http.ask("POST", *call("add", {"a": 1, "b": 2}))
        assert (await http.whole())[0] == 200


# --------------------------------------------------------------------------------------------------- what ends it


async def test_each_wrong_frame_closes_with_its_own_code(caplog: pytest.LogCaptureFixture) -> None:
    big = b"x" * 5000
    async with nothing_left(caplog), make(max_message=1000).server.serving(HERE) as serving:
        wrong: list[tuple[list[tuple[Opcode, bytes, bool]], int]] = [
            ([(Opcode.BINARY, PING, True)], 1003),
            ([(Opcode.TEXT, b'"\xff"', True)], 1007),
            ([(Opcode.TEXT, b'"\xc3', False), (Opcode.CONT, b'"', True)], 1007),
            ([(Opcode.TEXT, big, True)], 1009),
            ([(Opcode.TEXT, big[:900], False), (Opcode.CONT, big[:900], True)], 1009),
            ([(Opcode.CONT, PING, True)], 1002),
            ([(Opcode.TEXT, PING, False), (Opcode.TEXT, PING, True)], 1002),
        ]
        async with raw_socket(serving.url) as bystander:
            for frames, code in wrong:
                async with raw_socket(serving.url) as socket:
                    for opcode, data, fin in frames:
                        await send_frame(socket, opcode, data, fin=fin)
                    assert (await socket.closed())[0] == code, frames
            assert await answers(bystander)


async def test_a_client_that_is_still_sending_learns_why_it_was_cut_off() -> None:
    async with make(max_message=1000).server.serving(HERE) as serving, raw_socket(serving.url) as socket:
        await socket.connection.send("x" * (4 << 20))
        assert (await socket.closed())[0] == 1009


async def test_unmasked_frames_close_it() -> None:
    async with make().server.serving(HERE) as serving, raw_socket(serving.url) as socket:
        socket.connection.transport.write(Frame(Opcode.TEXT, PING).serialize(mask=False))
        assert (await socket.closed())[0] == 1002


async def test_the_end_of_the_serving_says_going_away(caplog: pytest.LogCaptureFixture) -> None:
    bench = make()
    async with nothing_left(caplog), contextlib.AsyncExitStack() as stack:
        async with bench.server.serving(HERE) as serving:
            socket = await stack.enter_async_context(raw_socket(serving.url))
            talk = await stack.enter_async_context(talking(socket, MODERN))
            listening = await talk.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
            await talk.expect("notifications/subscriptions/acknowledged")
            running = await talk.begin_call("wait")
            await bench.waiting.wait()
            asyncio.get_running_loop().call_later(0.3, bench.go.set)  # longer than uvicorn takes to look around
        assert (await listening.result())["resultType"] == "complete"
        assert (await running.result())["content"][0]["text"] == "wait"
        assert (await socket.closed()) == (1001, "the server is ending")


async def test_a_client_that_vanishes_ends_what_it_has_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    bench = make()
    async with (
        nothing_left(caplog),
        bench.server.serving(HERE) as serving,
        raw_socket(serving.url) as socket,
        talking(socket, "2025-11-25") as talk,
    ):
        await talk.begin_call("wait")
        await bench.waiting.wait()
        socket.connection.transport.abort()
        async with asyncio.timeout(PATIENCE):
            await bench.cancelled.wait()


# --------------------------------------------------------------------------------------------------- stuck peers


class Deaf(ClientConnection):
    """A client that takes nothing and answers nothing, once it is told so."""

    def data_received(self, data: bytes) -> None:
        if self.response is None:
            super().data_received(data)


async def test_a_peer_that_gives_no_sign_of_life_is_cut_off(caplog: pytest.LogCaptureFixture) -> None:
    bench = make()
    async with nothing_left(caplog), bench.server.serving(HERE, heartbeat=0.05) as serving:
        async with raw_socket(serving.url, create_connection=Deaf, ping_interval=None) as socket:
            await socket.send(calling("wait"))
            async with asyncio.timeout(PATIENCE):
                await bench.cancelled.wait()
        assert "no sign of life" in caplog.text


async def test_a_peer_that_reads_slowly_but_reads_is_not_cut_off() -> None:
    server = Server("large")
    size = 24 << 20

    @server.tool
    def large() -> str:
        return "x" * size

    async with (
        server.serving(HERE, heartbeat=10) as serving,
        raw_socket(serving.url, create_connection=Slow, ping_interval=None) as socket,
    ):
        slow = socket.connection
        assert isinstance(slow, Slow)
        clock = Clock()
        await socket.send(calling("large"))
        receiving = asyncio.create_task(socket.receive())
        for _ in range(6):
            await slow.takes(1 << 20)
            await clock.advance(8)
        slow.goes_on()
        assert len(await receiving or b"") > size


class Slow(ClientConnection):
    """A client that takes a part at a time."""

    taken = wanted = 0

    def data_received(self, data: bytes) -> None:
        self.taken += len(data)
        if self.taken > self.wanted and self.response is not None:
            self.transport.pause_reading()
        super().data_received(data)

    async def takes(self, count: int) -> None:
        """Take that many bytes more."""
        self.goes_on(self.taken + count)
        while self.taken < self.wanted:
            await asyncio.sleep(0)

    def goes_on(self, wanted: int = 1 << 60) -> None:
        """Take everything."""
        self.wanted = wanted
        self.transport.resume_reading()


async def test_a_flood_of_pings_that_nobody_reads_the_answers_to_takes_no_memory(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from modelwire.server.http.guarded_websocket import GuardedWebSocket

    most = 0
    real = GuardedWebSocket.data_received

    def watched(self: GuardedWebSocket, data: bytes) -> None:
        nonlocal most
        real(self, data)
        most = max(most, self.transport.get_write_buffer_size())

    monkeypatch.setattr(GuardedWebSocket, "data_received", watched)
    flood = Frame(Opcode.PING, b"x" * 125).serialize(mask=True) * 1000
    async with (
        nothing_left(caplog),
        make().server.serving(HERE) as serving,
        raw_socket(serving.url) as socket,
        raw_socket(serving.url) as bystander,
    ):
        transport = socket.connection.transport
        transport.pause_reading()
        for _ in range(60):
            transport.write(flood)
            await asyncio.sleep(0)
        assert await answers(bystander)
        async with asyncio.timeout(PATIENCE):
            while transport.get_write_buffer_size():
                await asyncio.sleep(0.001)
        assert most < 2 << 20
        transport.resume_reading()
        assert await answers(socket)


async def test_empty_fragments_without_end_take_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    from modelwire.server.http.guarded_websocket import GuardedWebSocket

    kept = 0
    real = GuardedWebSocket.data_received

    def watched(self: GuardedWebSocket, data: bytes) -> None:
        nonlocal kept
        real(self, data)
        kept = max(kept, len(gc.get_referents(self.frames)))

    monkeypatch.setattr(GuardedWebSocket, "data_received", watched)
    async with make().server.serving(HERE) as serving, raw_socket(serving.url) as socket:
        await send_frame(socket, Opcode.TEXT, PING, fin=False)
        socket.connection.transport.write(Frame(Opcode.CONT, b"", False).serialize(mask=True) * 1000)
        await send_frame(socket, Opcode.CONT, b"")
        assert json.loads(await socket.receive() or b"")["result"] == {}
        assert kept < 10


async def test_a_client_that_does_not_read_holds_up_no_end_of_the_serving(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("modelwire.server.http.run.LINGER", 0.05)
    monkeypatch.setattr("modelwire.server.http.websocket.CLOSE_SECONDS", 0.05)
    monkeypatch.setattr("modelwire.server.http.run.GRACE", 0.1)
    monkeypatch.setattr("modelwire.server.serve.STOP", 0.05)
    server = Server("large")
    returned = asyncio.Event()

    @server.tool
    async def large() -> str:
        returned.set()
        return "x" * (24 << 20)

    async with nothing_left(caplog), contextlib.AsyncExitStack() as stack, server.serving(HERE) as serving:
        socket = await stack.enter_async_context(raw_socket(serving.url, create_connection=Deaf, close_timeout=0.1))
        socket.connection.transport.pause_reading()
        await socket.send(calling("large"))
        await returned.wait()


async def test_a_client_that_does_not_close_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("modelwire.server.http.guarded_websocket.CLOSE_SECONDS", 0.05)
    async with (
        make().server.serving(HERE) as serving,
        raw_socket(serving.url, create_connection=Deaf, close_timeout=0.1) as socket,
    ):
        await send_frame(socket, Opcode.BINARY, b"")
        async with asyncio.timeout(PATIENCE):
            await socket.connection.wait_closed()


PROGRAM = """
import asyncio
from modelwire import Context, Server
from modelwire.server.http import run

run.GRACE = 0.1
server = Server("it", version="1")

@server.tool
async def wait(ctx: Context) -> str:
    ctx.progress(1)
    await asyncio.Event().wait()

server.run("ws://127.0.0.1:0/mcp")
"""


@pytest.mark.slow
async def test_a_signal_ends_a_program_that_has_websockets_open(tmp_path: Path) -> None:
    file = tmp_path / "it.py"
    file.write_text(PROGRAM)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-W", "error", str(file), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        assert process.stderr is not None
        said = (await process.stderr.readline()).decode()
        url = said.partition("listening on ")[2].partition(";")[0].strip()
        async with raw_socket(url) as socket, talking(socket, MODERN) as talk, raw_socket(url) as idle:
            listening = await talk.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
            await talk.expect("notifications/subscriptions/acknowledged")
            await talk.begin_call("wait", progressToken=1)
            await talk.expect("notifications/progress")
            process.terminate()
            assert (await listening.result())["resultType"] == "complete"
            assert await idle.closed() == (1001, "the server is ending")
            async with asyncio.timeout(PATIENCE):
                out, err = await process.communicate()
        assert (process.returncode, out, err) == (0, b"", b"")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


# --------------------------------------------------------------------------------------------------- TLS


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> certificates.Certificates:
    return certificates.make(tmp_path_factory.mktemp("tls"))


@contextlib.asynccontextmanager
async def secure(url: str, tls: certificates.Certificates) -> AsyncIterator[Connection]:
    port = int(url.rpartition(":")[2].partition("/")[0])
    reader, writer = await asyncio.open_connection("localhost", port, ssl=tls.trusted)
    try:
        yield Connection(reader, writer)
    finally:
        writer.close()
        with contextlib.suppress(OSError, ssl.SSLError):
            await writer.wait_closed()


@pytest.mark.parametrize("scheme", ["https", "wss"])
async def test_https_and_wss_are_one_server(
    scheme: str, tls: certificates.Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        nothing_left(caplog),
        make().server.serving(f"{scheme}://localhost:0/mcp", cert=tls.cert, key=tls.key) as serving,
    ):
        assert serving.url.startswith(f"{scheme}://localhost:")
        async with secure(serving.url, tls) as http:
            await http.ask("POST", *call("add", {"a": 1, "b": 2}))
            assert (await http.whole())[0] == 200
        url = serving.url.replace("https", "wss")
        async with raw_socket(url, ssl=tls.trusted) as socket, talking(socket, MODERN) as talk:
            assert await talk.text("add", {"a": 1, "b": 2}) == "3"
        async with raw_socket(url, ssl=tls.trusted) as socket:
            await send_frame(socket, Opcode.BINARY, b"")
            assert (await socket.closed())[0] == 1003


async def test_the_end_of_a_secure_serving_is_orderly_too(
    tls: certificates.Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    async with nothing_left(caplog), contextlib.AsyncExitStack() as stack:
        async with make().server.serving("wss://localhost:0/mcp", cert=tls.cert, key=tls.key) as serving:
            socket = await stack.enter_async_context(raw_socket(serving.url, ssl=tls.trusted))
            large = await stack.enter_async_context(raw_socket(serving.url, ssl=tls.trusted))
            assert await answers(large)
        assert await socket.closed() == (1001, "the server is ending")


async def test_who_does_not_trust_the_certificate_or_speaks_no_tls_harms_nobody(
    tls: certificates.Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        nothing_left(caplog),
        make().server.serving("wss://localhost:0/mcp", cert=tls.cert, key=tls.key) as serving,
    ):
        with pytest.raises(ssl.SSLCertVerificationError):
            async with raw_socket(serving.url):
                pass
        async with connected(serving.url) as plain:
            await plain.ask("GET", KEY)
            assert b"200" not in await closed(plain)
        async with raw_socket(serving.url, ssl=tls.trusted) as socket:
            assert await answers(socket)


async def test_wrong_certificates_are_refused_at_the_start(tls: certificates.Certificates, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cert="):
        async with make().server.serving("wss://localhost:0/mcp"):
            pass
    with pytest.raises(ConfigError, match="cert="):
        async with make().server.serving(HERE, cert=tls.cert, key=tls.key):
            pass
    missing, nonsense = os.fspath(tmp_path / "none.pem"), tmp_path / "nonsense.pem"
    nonsense.write_text("this is no certificate")
    for cert, key, why in (
        (missing, tls.key, f"^cert='{missing}' cannot be read: No such file or directory; cert= and key= are files"),
        (tls.cert, missing, f"^key='{missing}' cannot be read: No such file"),
        (tls.cert, tls.authority, "^cert=.* and key=.* are no certificate and its key in PEM form"),
        (os.fspath(nonsense), tls.key, "^cert=.* and key=.* are no certificate and its key in PEM form"),
    ):
        with pytest.raises(ConfigError, match=why):
            async with make().server.serving("wss://localhost:0/mcp", cert=cert, key=key):
                pass
