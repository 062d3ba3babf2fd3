"""One connection: servers that are stuck, servers that end, and who watches."""

from __future__ import annotations

import asyncio

import pytest

from modelwire import Client, ConnectionLost, Observer, RequestTimeout, ServerExited
from modelwire.client import contact
from tests.clock import Clock
from tests.fake_server import (
    FakeServer,
    child,
    fake_server,
    talking,
)

STUCK = 'opened(); signal.signal(signal.SIGTERM, signal.SIG_IGN); complain("stuck"); wait()'
"""Neither the end of its input nor SIGTERM ends it."""
DIES_IN_CALL = "opened(); read(); complain('out of memory'); os._exit(7)"


# --------------------------------------------------------------------------------------------------- stuck servers


async def test_a_server_that_ignores_every_request_to_end_is_killed(short_waits: None) -> None:
    client = Client(child(STUCK))
    await client.connect()
    await client.close()
    assert client.exit_code == -9


async def test_closing_does_not_wait_for_a_server_that_does_not_read(short_waits: None) -> None:
    client = Client(child("opened(); complain('opened'); wait()"))
    await client.connect()
    calls = [asyncio.create_task(client.call("t", {"text": "x" * (1 << 20)})) for _ in range(8)]
    await Clock().turn()
    await client.close()
    for call in calls:
        with pytest.raises(ConnectionLost):
            await call
    assert client.exit_code is not None


async def test_a_call_to_a_server_that_does_not_read_has_its_deadline(short_waits: None) -> None:
    async with Client(child("opened(); wait()")) as client:
        with pytest.raises(RequestTimeout):
            await client.call("t", {"text": "x" * (4 << 20)}, timeout=0.1)


async def test_a_stream_that_does_not_let_itself_be_closed_is_left(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    async with talking() as (client, fake):
        let_go = asyncio.Event()
        close = fake.stream.aclose

        async def stuck() -> None:
            await let_go.wait()
            await close()

        monkeypatch.setattr(fake.stream, "aclose", stuck)
        closing = asyncio.create_task(client.close())
        await clock.advance(contact.CLOSE_SECONDS + 1)
        await closing
        let_go.set()
        await fake.closed()
    assert "did not let itself be closed within 10 s" in caplog.text


async def test_a_stream_that_fails_to_close_is_logged_and_nothing_is_left(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before = asyncio.all_tasks()
    async with talking() as (client, fake):
        close = fake.stream.aclose

        async def fail() -> None:
            await close()
            raise OSError("the lid is stuck")

        monkeypatch.setattr(fake.stream, "aclose", fail)
        await client.close()
        assert not client.connected
    assert "the lid is stuck" in caplog.text
    await Clock().turn()
    assert asyncio.all_tasks() == before


async def test_a_caller_of_close_that_is_cancelled_does_not_stop_the_closing(short_waits: None) -> None:
    client = Client(child(STUCK))
    await client.connect()
    closing = asyncio.create_task(client.close())
    await Clock().turn()
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    await client.close()
    assert client.exit_code is not None


# --------------------------------------------------------------------------------------------------- servers that end


async def test_a_server_that_dies_in_a_call_gives_its_exit_code_and_stderr() -> None:
    async with Client(child(DIES_IN_CALL), reconnect=False) as client:
        with pytest.raises(
            ServerExited, match=r"before tools/call was answered[^$]*code 7[^$]*out of memory"
        ) as exited:
            await client.call("x")
        assert exited.value.exit_code == 7
        assert not client.connected
        with pytest.raises(ServerExited, match="tools/call was not sent"):
            await client.call("x")


async def test_a_server_that_exits_as_it_should_at_the_end_is_no_error() -> None:
    async with Client(child("opened(); read(); sys.exit(0)")) as client:
        pass
    assert client.exit_code == 0


async def test_a_server_that_is_killed_in_a_call_names_the_signal() -> None:
    async with Client(child("opened(); read(); os.kill(os.getpid(), signal.SIGSEGV)")) as client:
        with pytest.raises(ServerExited, match="signal 11"):
            await client.call("x")


async def test_the_last_answer_counts_although_its_line_has_no_end() -> None:
    script = r"""
opened()
request = read()
write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {"content": []}}).encode())
"""
    async with Client(child(script)) as client:
        assert await client.call("x") is None


async def test_half_an_answer_before_the_end_is_no_answer() -> None:
    script = r"""opened(); request = read(); write(b'{"jsonrpc":"2.0","id":%d,"result":{"cont' % request["id"])"""
    async with Client(child(script)) as client:
        with pytest.raises(ServerExited, match="code 0"):
            await client.call("x")


class Failing:
    """A stream of the user's own whose cable is cut."""

    def __init__(self, fake: FakeServer, where: str) -> None:
        self.inner, self.where, self.cut = fake.stream, where, False

    async def receive(self) -> bytes | None:
        frame = await self.inner.receive()
        self._work("receive")
        return frame

    async def send(self, frame: bytes) -> None:
        self._work("send")
        await self.inner.send(frame)

    async def aclose(self) -> None:
        await self.inner.aclose()

    def _work(self, where: str) -> None:
        if self.cut and self.where == where:
            raise OSError("the cable was cut")


@pytest.mark.parametrize("where", ["receive", "send"])
async def test_a_failure_of_a_stream_is_a_lost_connection(where: str) -> None:
    async with fake_server() as fake:
        stream = Failing(fake, where)
        client = Client(stream, timeout=None)
        opening = asyncio.create_task(client.connect())
        await fake.open("2025-11-25")
        await opening
        stream.cut = True
        call = asyncio.create_task(client.call("t"))
        if where == "receive":
            await fake.expect("tools/call")
            await fake.notify("acme/x")
        with pytest.raises(ConnectionLost, match="the cable was cut"):
            await call
        await client.close()


# --------------------------------------------------------------------------------------------------- who watches


async def test_observers_see_every_frame_the_stderr_and_the_exit() -> None:
    class Watching(Observer):
        def __init__(self) -> None:
            self.frames: list[tuple[str, bytes]] = []
            self.said = b""
            self.codes: list[int] = []

        def frame(self, direction: str, frame: bytes) -> None:
            self.frames.append((direction, frame))

        def stderr(self, chunk: bytes) -> None:
            self.said += chunk

        def exited(self, exit_code: int) -> None:
            self.codes.append(exit_code)

    watching = Watching()
    script = "opened(); complain('hello'); serve()"
    async with Client(child(script), revision="2025-11-25", observers=[watching]) as client:
        await client.call("x")
    assert [direction for direction, _ in watching.frames] == ["out", "in", "out", "out", "in"]
    assert b'"initialize"' in watching.frames[0][1]
    assert watching.said == b"hello\n"
    assert watching.codes == [0]


async def test_an_observer_that_fails_costs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Observer):
        def frame(self, direction: str, frame: bytes) -> None:
            raise ZeroDivisionError

    async with talking(observers=[Failing()]) as (client, fake):
        call = asyncio.create_task(client.call("t"))
        await fake.result(await fake.expect("tools/call"), {"content": []})
        await call
    assert "the observer" in caplog.text
