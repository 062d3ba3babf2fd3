"""A connection over a stream: reading, writing in order, slow peers, and the end."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from modelwire.errors import ConnectionLost, FrameTooLarge, ServerExited
from modelwire.protocol import types as t
from modelwire.protocol.types import ClientCapabilities, Implementation, InitializeRequestParams
from modelwire.rpc import batch as batch_module
from modelwire.rpc import stream as stream_module
from modelwire.rpc.call import Call
from modelwire.rpc.dispatcher import Dispatcher, Route
from modelwire.rpc.stream import Link
from modelwire.rules.session import Session
from modelwire.transports.memory import memory_pair
from tests.clock import Clock
from tests.rpc.desk import notification, request, response, route


class Hose:
    """A stream under the test's control: frames come when it says, and go out when it lets them."""

    def __init__(self) -> None:
        self.coming: deque[bytes | Exception | None] = deque()
        self.gone: list[Any] = []
        self.open = asyncio.Event()
        self.open.set()
        self.closed = 0
        self.broken: Exception | None = None
        self._arrival = asyncio.Event()

    def hand_in(self, *messages: Any) -> None:
        for message in messages:
            self.coming.append(json.dumps(message).encode() if isinstance(message, dict | list) else message)
        self._arrival.set()

    async def receive(self) -> bytes | None:
        while not self.coming:
            if self.closed:
                return None
            self._arrival.clear()
            await self._arrival.wait()
        found = self.coming.popleft()
        if isinstance(found, Exception):
            raise found
        return found

    async def send(self, frame: bytes) -> None:
        if self.broken is not None:
            raise self.broken
        await self.open.wait()
        self.gone.append(json.loads(frame))

    async def aclose(self) -> None:
        self.closed += 1
        self._arrival.set()


async def echo(call: Call) -> Any:
    return {"echo": call.key}


def dispatcher(*routes: Route) -> Dispatcher:
    return Dispatcher({each.method.name: each for each in routes}, lambda connection, note: None)


def link_over(stream: Any, *routes: Route, revision: str = "2025-11-25", **options: Any) -> Link:
    session = Session()
    session.open(InitializeRequestParams(revision, ClientCapabilities(), Implementation("me", "1")))
    return Link(stream, dispatcher(*routes), session=session, **options)


@asynccontextmanager
async def running(hose: Hose, *routes: Route, **options: Any) -> AsyncIterator[Link]:
    """A link that reads; it is closed at the end, and nothing of it may be left."""
    before = asyncio.all_tasks()
    link = link_over(hose, *routes, **options)
    reading = asyncio.create_task(link.run())
    try:
        yield link
    finally:
        hose.open.set()
        await link.aclose()
        await asyncio.wait([reading], timeout=5)
        if not reading.cancelled():
            reading.exception()
    await Clock().turn()
    assert asyncio.all_tasks() - before == set()


# --------------------------------------------------------------------------------------------------- answering


async def test_requests_are_answered_as_they_are_ready_and_each_once() -> None:
    gates = {key: asyncio.Event() for key in (1, 2, 3)}

    async def wait(call: Call) -> Any:
        await gates[int(call.key)].wait()
        return {}

    hose = Hose()
    async with running(hose, route("wait", wait)):
        hose.hand_in(*(request(key, "wait") for key in gates))
        for key in (2, 3, 1):
            await Clock().turn()
            gates[key].set()
        await Clock().turn()
        assert hose.gone == [response(key, {}) for key in (2, 3, 1)]


async def test_frames_of_one_read_are_handled_before_anything_is_answered() -> None:
    seen: list[Any] = []

    async def note(call: Call) -> Any:
        seen.append(len(hose.coming))
        return {}

    hose = Hose()
    async with running(hose, route("note", note)):
        hose.hand_in(*(request(key, "note") for key in range(1, 6)))
        await Clock().turn()
        assert seen == [0] * 5


async def test_a_batch_is_answered_with_one_frame() -> None:
    hose = Hose()
    async with running(hose, route("echo", echo), revision="2025-03-26"):
        hose.hand_in([request(1, "echo"), request(2, "echo"), request(3, "nothing"), notification("n")])
        await Clock().turn()
        assert len(hose.gone) == 1
        assert sorted(answer["id"] for answer in hose.gone[0]) == [1, 2, 3]


async def test_a_request_of_a_batch_that_is_cancelled_is_left_out() -> None:
    async def forever(call: Call) -> Any:
        await asyncio.sleep(10_000)

    hose = Hose()
    async with running(hose, route("echo", echo), route("slow", forever), revision="2025-03-26"):
        hose.hand_in([request(1, "slow"), request(2, "echo")])
        await Clock().turn()
        assert hose.gone == []
        hose.hand_in(notification("notifications/cancelled", {"requestId": 1}))
        await Clock().turn()
        assert hose.gone == [[response(2, {"echo": 2})]]
        hose.hand_in(
            [request(3, "slow"), notification("notifications/cancelled", {"requestId": 3}), request(4, "echo")]
        )
        await Clock().turn()
        assert hose.gone[1:] == [[response(4, {"echo": 4})]]


async def test_a_task_factory_of_the_users_own_is_used() -> None:
    made: list[asyncio.Task[Any]] = []

    def factory(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
        task = asyncio.Task(coroutine, loop=loop, **options)
        made.append(task)
        return task

    hose = Hose()
    async with running(hose, route("echo", echo)):
        loop = asyncio.get_running_loop()
        loop.set_task_factory(factory)
        hose.hand_in(request(1, "echo"))
        await Clock().turn()
        loop.set_task_factory(None)
        assert "echo" in [task.get_name() for task in made]
        assert hose.gone == [response(1, {"echo": 1})]


async def test_a_frame_that_is_too_large_is_refused_and_the_next_one_is_read() -> None:
    too_large = FrameTooLarge(10)
    too_large.frame = b'{"jsonrpc":"2.0","id":"big","method":"x","params":{'
    hose = Hose()
    async with running(hose, route("echo", echo)):
        hose.hand_in(too_large, request(1, "echo"))
        await Clock().turn()
        assert [message["id"] for message in hose.gone] == ["big", 1]
        assert "max_message" in hose.gone[0]["error"]["message"]


async def test_reading_can_be_stopped_before_the_next_frame() -> None:
    hose = Hose()
    link = link_over(hose, route("echo", echo))

    async def stop(call: Call) -> Any:
        link.stopping = True
        return {}

    link.connection.dispatcher.routes["stop"] = Route(route("stop", stop).method, stop, t.RequestParams)
    reading = asyncio.create_task(link.run())
    hose.hand_in(request(1, "stop"))
    await Clock().turn()
    hose.hand_in(request(2, "echo"), request(3, "echo"))
    await reading
    assert len(hose.coming) == 1
    await link.finish(1)
    await link.aclose()


async def test_the_end_of_the_stream_ends_the_reading_and_what_is_open_may_still_be_answered() -> None:
    gate = asyncio.Event()

    async def wait(call: Call) -> Any:
        await gate.wait()
        return {}

    hose = Hose()
    link = link_over(hose, route("wait", wait))
    hose.hand_in(request(1, "wait"), None)
    await link.run()
    asyncio.get_running_loop().call_soon(gate.set)
    await link.finish(5)
    assert hose.gone == [response(1, {})]
    await link.aclose()


async def test_a_broken_stream_is_a_lost_connection() -> None:
    hose = Hose()
    link = link_over(hose)
    hose.hand_in(ConnectionLost("the cable was cut"))
    with pytest.raises(ConnectionLost, match="the cable was cut"):
        await link.run()
    await link.aclose()


# --------------------------------------------------------------------------------------------------- writing


async def test_frames_leave_in_the_order_in_which_they_were_posted() -> None:
    for hose in (Hose(), Hose()):
        async with running(hose) as link:
            for number in range(50):
                link.connection.post(b"%d" % number)
                if number % 7 == 0:
                    await asyncio.sleep(0)
            await link.flushed()
            assert hose.gone == list(range(50))


async def test_a_pair_in_memory_keeps_the_order_too_when_it_is_crowded() -> None:
    ours, theirs = memory_pair()
    link = link_over(ours)
    reading = asyncio.create_task(link.run())
    for number in range(3000):
        link.connection.post(b"%d" % number)
    received: list[int] = []
    while len(received) < 3000:
        frame = await theirs.receive()
        assert frame is not None
        received.append(int(frame))
    assert received == list(range(3000))
    await link.aclose()
    await reading


async def test_a_slow_peer_makes_the_link_crowded_and_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    hose = Hose()
    hose.open.clear()
    async with running(hose) as link:
        called: list[str] = []
        link.connection.when_room(lambda: called.append("at once"))
        await Clock().turn()
        link.connection.post(b'"' + b"x" * (3 << 20) + b'"')
        assert link.connection.crowded()
        assert link.connection.crowded(2)
        assert not link.connection.crowded(4)
        link.connection.when_room(lambda: called.append("later"))
        await Clock().turn()
        assert called == ["at once"]
        hose.open.set()
        await link.flushed()
        await Clock().turn()
        assert called == ["at once", "later"]
        assert not link.connection.crowded()


async def test_nothing_more_is_read_while_too_much_waits_to_be_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "READ_PAUSE", 200)
    hose = Hose()
    hose.open.clear()
    async with running(hose, route("echo", echo)):
        hose.hand_in(*(request(f"{key}" * 30, "nothing") for key in range(10)))
        await Clock().turn()
        assert len(hose.coming) > 5
        hose.open.set()
        await Clock().turn()
        await Clock().turn()
        assert not hose.coming
        assert len(hose.gone) == 10


async def test_answers_wait_for_a_peer_that_reads_slowly_however_much_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "READ_PAUSE", 1000)
    hose = Hose()
    hose.open.clear()
    async with running(hose) as link:
        for _ in range(100):
            link.connection.post(b'"' + b"x" * 1000 + b'"')
        await Clock().turn()
        assert link.connection.ended is None
        hose.open.set()
        await Clock().turn()
        await Clock().turn()
        assert len(hose.gone) == 100


@pytest.mark.parametrize("error", [ServerExited("it died", exit_code=4), ConnectionLost("cut"), OSError("cut")])
async def test_a_failure_to_send_fails_what_waits_and_ends_the_reading(error: Exception) -> None:
    hose = Hose()
    async with running(hose) as link:
        hose.broken = error
        waiting = asyncio.create_task(link.connection.request("x", None, timeout=None))
        with pytest.raises(ServerExited if isinstance(error, ServerExited) else ConnectionLost, match="died|cut"):
            await waiting
        await Clock().turn()
        assert hose.closed
        link.connection.post(b"late")
        await link.flushed()


# --------------------------------------------------------------------------------------------------- the end


async def test_a_link_can_be_closed_twice_and_from_many_tasks() -> None:
    hose = Hose()
    async with running(hose) as link:
        await asyncio.gather(*(link.aclose() for _ in range(3)))
        await link.aclose()
        assert hose.closed == 1


async def test_closing_fails_what_waits_and_cancels_what_runs() -> None:
    cancelled = asyncio.Event()

    async def wait(call: Call) -> Any:
        try:
            await asyncio.sleep(10_000)
        finally:
            cancelled.set()

    hose = Hose()
    async with running(hose, route("wait", wait)) as link:
        hose.hand_in(request(1, "wait"))
        waiting = asyncio.create_task(link.connection.request("x", None, timeout=None))
        await Clock().turn()
        await link.aclose(ConnectionLost("we are leaving"))
        with pytest.raises(ConnectionLost, match="before x was answered: we are leaving"):
            await waiting
        await cancelled.wait()


async def test_finishing_waits_for_what_is_open_but_not_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    ended: list[str] = []

    async def wait(call: Call) -> Any:
        try:
            await asyncio.sleep(10_000)
        finally:
            ended.append("cancelled")

    clock = Clock()
    hose = Hose()
    async with running(hose, route("wait", wait)) as link:
        hose.hand_in(request(1, "wait"))
        await clock.turn()
        hose.open.clear()
        link.connection.post(b"1")
        finishing = asyncio.create_task(link.finish(5))
        await clock.advance(4)
        assert not finishing.done()
        await clock.advance(2)
        await clock.advance(6)
        await finishing
        assert ended == ["cancelled"]
    assert "1 bytes could not be sent" in caplog.text


@pytest.mark.parametrize("by_peer", [True, False])
async def test_finishing_lets_cancelled_requests_clean_up_but_not_for_ever(by_peer: bool) -> None:
    ended: list[str] = []

    async def wait(call: Call) -> Any:
        try:
            await asyncio.sleep(10_000)
        finally:
            ended.append("cancelled")
            await asyncio.sleep(0.5 if call.key == 1 else 10_000)
            ended.append("cleaned up")

    clock = Clock()
    hose = Hose()
    async with running(hose, route("wait", wait)) as link:
        for id_ in (1, 2):
            hose.hand_in(request(id_, "wait"))
            await clock.turn()
            if by_peer:
                hose.hand_in(notification("notifications/cancelled", {"requestId": id_}))
                await clock.turn()
            tasks = list(link.connection._leaving or ()) or [call.task for call in link.connection.calls.values()]
            finishing = asyncio.create_task(link.finish(0.1))
            await clock.advance(0.2)
            assert ended.pop() == "cancelled"
            assert not finishing.done()
            await clock.advance(0.6)
            assert ended == (["cleaned up"] if id_ == 1 else [])
            assert finishing.done() is (id_ == 1)
            ended.clear()
            await clock.advance(1)
            await finishing
        assert (link.connection._leaving or set()) == set(tasks)
        for task in list(link.connection._leaving or ()):
            task.cancel()


async def test_finishing_does_not_wait_for_requests_that_last() -> None:
    async def listen(call: Call) -> Any:
        call.lasting = True
        await asyncio.sleep(10_000)

    hose = Hose()
    async with running(hose, route("listen", listen)) as link:
        hose.hand_in(request(1, "listen"))
        await Clock().turn()
        await link.finish(1000)
        assert hose.gone == []


async def test_nothing_is_logged_at_error_at_an_ordinary_end(caplog: pytest.LogCaptureFixture) -> None:
    hose = Hose()
    async with running(hose, route("echo", echo)) as link:
        hose.hand_in(request(1, "echo"), None)
        await Clock().turn()
        await link.finish(1)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


# --------------------------------------------------------------------------------------------------- memory


async def large(call: Call) -> Any:
    return {"text": "x" * 1000}


async def test_no_answer_is_kept_for_a_peer_that_does_not_read_once_enough_wait(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(stream_module, "SEND_LIMIT", 5000)
    hose = Hose()
    hose.open.clear()
    async with running(hose, route("large", large)) as link:
        hose.hand_in(*(request(key, "large") for key in range(20)))
        await Clock().turn()
        assert link.backlog < 10_000
        hose.open.set()
        await link.flushed()
    assert [frame["id"] for frame in hose.gone] == list(range(20))
    kept = [frame["id"] for frame in hose.gone if "result" in frame]
    assert kept == list(range(len(kept)))
    assert 5 <= len(kept) <= 7
    assert {frame["error"]["code"] for frame in hose.gone[len(kept) :]} == {429}
    assert [record.levelno for record in caplog.records if "does not read" in record.message].count(
        logging.WARNING
    ) == 1


async def test_no_notification_is_kept_either_but_our_own_requests_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "SEND_LIMIT", 1000)
    hose = Hose()
    hose.open.clear()
    async with running(hose) as link:
        for number in range(100):
            link.connection.notify("told", b'{"number":%d,"text":"%s"}' % (number, b"x" * 100))
        asked = link.connection.ask("ours", None, timeout=None)
        assert link.backlog < 2000
        hose.open.set()
        await link.flushed()
        told = [frame["params"]["number"] for frame in hose.gone if frame["method"] == "told"]
        assert told == list(range(len(told)))
        assert len(told) < 10
        assert hose.gone[-1]["method"] == "ours"
        hose.hand_in(response(asked.key, {}))
        await link.connection.answer(asked)


async def test_what_needs_no_waiting_is_answered_when_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "READ_PAUSE", 3000)
    asked: list[Any] = []

    def at_once(call: Call) -> bytes:
        asked.append(call.key)
        return b'{"text":"' + b"x" * 1000 + b'"}'

    hose = Hose()
    hose.open.clear()
    async with running(hose, route("large", large, now=lambda call: at_once)) as link:
        hose.hand_in(*(request(key, "large") for key in range(20)))
        await Clock().turn()
        assert len(asked) < 6
        hose.hand_in(notification("notifications/cancelled", {"requestId": 19}))
        hose.open.set()
        for _ in range(10):
            await Clock().turn()
        await link.flushed()
    assert [frame["id"] for frame in hose.gone] == list(range(19))


async def test_the_end_waits_for_what_is_to_be_answered_when_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "READ_PAUSE", 3000)
    hose = Hose()
    hose.open.clear()
    at_once = route("large", large, now=lambda call: lambda call: b'{"text":"' + b"x" * 1000 + b'"}')
    async with running(hose, at_once) as link:
        hose.hand_in(*(request(key, "large") for key in range(20)))
        await Clock().turn()
        ending = asyncio.create_task(link.finish(60))
        await Clock().turn()
        hose.open.set()
        await ending
    assert [frame["id"] for frame in hose.gone] == list(range(20))


async def test_a_batch_of_answers_is_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_module, "MAX_BATCH", 5000)
    hose = Hose()
    async with running(hose, route("large", large), revision="2025-03-26"):
        hose.hand_in([request(key, "large") for key in range(20)])
        await Clock().turn()
    (answers,) = hose.gone
    assert len([answer for answer in answers if "result" in answer]) == 5
    assert sorted(answer["id"] for answer in answers) == list(range(20))


async def test_who_waits_for_room_is_let_go_when_the_connection_ends() -> None:
    hose = Hose()
    hose.open.clear()
    async with running(hose) as link:
        link.connection.post(b'"' + b"x" * (3 << 20) + b'"')
        waiting = asyncio.create_task(link.connection.room())
        await Clock().turn()
        assert not waiting.done()
        await link.aclose()
        await waiting
