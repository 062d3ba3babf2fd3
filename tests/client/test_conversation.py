"""What becomes of requests whose connection is lost: what is sent again, what fails, and with which words."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from typing import Any

import pytest

from modelwire import Client, ConnectionLost, RequestTimeout, ServerExited
from tests.clock import Clock
from tests.fake_server import (
    MODERN,
    REVISIONS,
    FakeServer,
    alive,
    child,
    coming_back,
    talking,
    text,
)

TOOL = {"name": "t", "inputSchema": {"type": "object"}}
READ = {"contents": [{"uri": "a:b", "text": "x"}], "ttlMs": 0, "cacheScope": "private"}
DISCOVERED = {"supportedVersions": [MODERN], "capabilities": {}, "ttlMs": 0, "cacheScope": "private"}

Ask = Callable[[Client], Any]
WITHOUT_EFFECTS: dict[str, tuple[Ask, Any]] = {
    "tools/list": (lambda client: client.list_tools(), {"tools": []}),
    "resources/list": (lambda client: client.list_resources(), {"resources": []}),
    "resources/templates/list": (lambda client: client.list_resource_templates(), {"resourceTemplates": []}),
    "prompts/list": (lambda client: client.list_prompts(), {"prompts": []}),
    "resources/read": (lambda client: client.read_resource("a:b"), READ),
    "prompts/get": (lambda client: client.get_prompt("p"), {"messages": []}),
    "completion/complete": (lambda client: client.complete("p", "a"), {"completion": {"values": []}}),
}


def kept(revision: str, result: Any) -> Any:
    """Return a list's result as the revision wants it."""
    return {**result, "ttlMs": 0, "cacheScope": "private"} if revision == MODERN else result


async def list_tools(client: Client, fake: FakeServer, **annotations: bool) -> None:
    result = kept(str(client.revision), {"tools": [{**TOOL, "annotations": annotations} if annotations else TOOL]})
    await fake.answer(client.list_tools(), "tools/list", result)


# --------------------------------------------------------------------------------------------------- in flight


@pytest.mark.parametrize("method", WITHOUT_EFFECTS)
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25", MODERN])
async def test_a_request_without_effects_is_sent_again(revision: str, method: str) -> None:
    ask, result = WITHOUT_EFFECTS[method]
    async with coming_back(revision) as (client, fake, comings):
        asking = asyncio.create_task(ask(client))
        first = await fake.expect(method)
        await fake.hang_up()
        fake = await comings.opened(revision)
        again = await fake.expect(method)
        assert again["params"] == first["params"] if "params" in first else "params" not in again
        await fake.result(again, kept(revision, result) if method.endswith("list") else result)
        await asking
        await alive(client, fake)


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_a_ping_is_sent_again(revision: str) -> None:
    async with coming_back(revision) as (client, fake, comings):
        pinging = asyncio.create_task(client.ping())
        await fake.next()
        await fake.hang_up()
        fake = await comings.opened(revision)
        await fake.result(await fake.next(), DISCOVERED if revision == MODERN else {})
        await pinging


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_call_that_may_have_run_fails_at_once_and_says_so(revision: str) -> None:
    async with coming_back(revision) as (client, fake, comings):
        calls = [
            asyncio.create_task(client.call("t")),
            asyncio.create_task(client.request("tools/call", {"name": "t"})),
        ]
        for _ in calls:
            await fake.expect("tools/call")
        await fake.hang_up()
        for call in calls:
            with pytest.raises(ConnectionLost, match="tools/call was answered; it may have run or not, and was not"):
                await call
        assert comings.tried == 1
        call = asyncio.create_task(client.call("t"))
        fake = await comings.opened(revision)
        await fake.result(await fake.expect("tools/call"), text("next"))
        assert await call == "next"
        assert fake.methods.count("tools/call") == 1


async def test_what_is_in_no_revision_counts_as_having_effects() -> None:
    async with coming_back(own=["acme/do"]) as (client, fake, _):
        call = asyncio.create_task(client.request("acme/do"))
        await fake.expect("acme/do")
        await fake.hang_up()
        with pytest.raises(ConnectionLost, match="acme/do was answered; it may have run or not"):
            await call


HINTS: list[tuple[dict[str, bool], bool]] = [
    ({"readOnlyHint": True}, True),
    ({"idempotentHint": True}, True),
    ({"idempotentHint": True, "destructiveHint": True}, True),
    ({"readOnlyHint": False}, False),
    ({"destructiveHint": False}, False),
    ({"openWorldHint": False}, False),
    ({}, False),
]


@pytest.mark.parametrize(("hints", "again"), HINTS, ids=str)
@pytest.mark.parametrize("revision", ["2025-03-26", MODERN])
async def test_a_tool_that_the_list_has_shown_as_harmless_is_called_again(
    revision: str, hints: dict[str, bool], again: bool
) -> None:
    async with coming_back(revision) as (client, fake, comings):
        await list_tools(client, fake, **hints)
        call = asyncio.create_task(client.call("t"))
        raw = asyncio.create_task(client.request("tools/call", {"name": "t"}))
        other = asyncio.create_task(client.call("other"))
        for _ in range(3):
            await fake.expect("tools/call")
        await fake.hang_up()
        with pytest.raises(ConnectionLost, match="may have run"):
            await other
        if not again:
            for lost in (call, raw):
                with pytest.raises(ConnectionLost, match="may have run"):
                    await lost
            return
        fake = await comings.opened(revision)
        for _ in range(2):
            request = await fake.expect("tools/call")
            assert request["params"]["name"] == "t"
            await fake.result(request, text("again"))
        assert await call == "again"
        assert (await raw)["content"] == text("again")["content"]


async def test_a_tool_that_was_never_listed_is_not_called_again_whatever_it_is() -> None:
    async with coming_back() as (client, fake, _):
        call = asyncio.create_task(client.call("t"))
        await fake.expect("tools/call")
        await fake.hang_up()
        with pytest.raises(ConnectionLost, match="may have run"):
            await call


async def test_lists_of_the_server_that_is_gone_are_forgotten() -> None:
    """The one that is there now may have other tools, or others of the same name."""
    async with coming_back() as (client, fake, comings):
        await list_tools(client, fake, readOnlyHint=True)
        await fake.answer(client.list_resources(), "resources/list", {"resources": []})
        await fake.hang_up()
        call = asyncio.create_task(client.call("t"))
        fake = await comings.opened("2025-11-25")
        await fake.expect("tools/call")
        assert (client.tools, client.resources) == (None, None)
        await fake.hang_up()
        with pytest.raises(ConnectionLost, match="may have run"):
            await call


async def test_what_was_never_written_is_sent_even_if_it_has_effects() -> None:
    """The server is gone, and the client has not noticed yet: nobody has taken the call."""
    async with coming_back() as (client, fake, comings):
        await fake.hang_up()
        call = asyncio.create_task(client.call("t"))
        fake = await comings.opened("2025-11-25")
        await fake.result(await fake.expect("tools/call"), text("once"))
        assert await call == "once"


async def test_a_request_that_is_lost_twice_is_not_sent_a_third_time() -> None:
    async with coming_back() as (client, fake, comings):
        asking = asyncio.create_task(client.list_tools())
        await fake.expect("tools/list")
        await fake.hang_up()
        fake = await comings.opened("2025-11-25")
        await fake.expect("tools/list")
        await fake.hang_up()
        with pytest.raises(ConnectionLost, match="the connection ended twice before tools/list was answered"):
            await asking
        assert comings.tried == 2


async def test_progress_goes_on_under_the_new_token() -> None:
    told: list[float] = []
    async with coming_back() as (client, fake, comings):
        await list_tools(client, fake, idempotentHint=True)
        call = asyncio.create_task(client.call("t", on_progress=lambda done, *more: told.append(done)))
        await fake.progress(await fake.expect("tools/call"), 1)
        await fake.hang_up()
        fake = await comings.opened("2025-11-25")
        request = await fake.expect("tools/call")
        await fake.progress(request, 0.5)
        await fake.result(request, text("x"))
        await call
        assert told == [1, 0.5]


async def test_answers_of_the_lost_connection_never_reach_the_new_one() -> None:
    """The ids are the same on both."""
    async with coming_back() as (client, fake, comings):
        call = asyncio.create_task(client.call("t"))
        old = await fake.expect("tools/call")
        await fake.send(b'{"jsonrpc":"2.0","id":%d,' % old["id"])
        await fake.hang_up()
        with pytest.raises(ConnectionLost):
            await call
        calls = [asyncio.create_task(client.call("t")) for _ in range(old["id"] + 1)]
        fake = await comings.opened("2025-11-25")
        requests = [await fake.expect("tools/call") for _ in calls]
        assert old["id"] in {request["id"] for request in requests}
        for request in requests:
            await fake.result(request, text("new"))
        assert set(await asyncio.gather(*calls)) == {"new"}


# --------------------------------------------------------------------------------------------------- deadlines


async def test_the_deadline_of_a_request_that_is_sent_again_is_its_own() -> None:
    clock = Clock()
    async with coming_back() as (client, fake, comings):
        asking = asyncio.create_task(client.list_tools())
        await fake.expect("tools/list")
        await clock.advance(40)
        await fake.hang_up()
        fake = await comings.opened("2025-11-25")
        await fake.expect("tools/list")
        await clock.advance(19)
        assert not asking.done()
        await clock.advance(2)
        with pytest.raises(RequestTimeout, match="no answer to tools/list within 60 s"):
            await asking
        await fake.expect("notifications/cancelled")


async def test_the_opening_counts_towards_the_deadline_and_is_told() -> None:
    clock = Clock()
    async with coming_back() as (client, fake, comings):
        asking = asyncio.create_task(client.list_tools(timeout=20))
        await fake.expect("tools/list")
        await fake.hang_up()
        slow = await comings.next()
        await clock.advance(21)
        with pytest.raises(
            RequestTimeout, match=r"no answer to tools/list within 2\d(\.\d+)? s.*is being opened again"
        ):
            await asking
        await slow.open("2025-11-25")
        await alive(client, slow)


async def test_a_request_that_waits_for_the_opening_has_its_deadline_from_the_beginning() -> None:
    clock = Clock()
    async with coming_back() as (client, fake, comings):
        await fake.hang_up()
        await clock.turn()
        call = asyncio.create_task(client.call("t"))
        fake = await comings.next()
        await clock.advance(20)
        await fake.open("2025-11-25")
        await fake.expect("tools/call")
        await clock.advance(39)
        assert not call.done()
        await clock.advance(2)
        with pytest.raises(RequestTimeout, match="within 60 s"):
            await call


async def test_an_opening_has_the_deadline_of_the_client() -> None:
    clock = Clock()
    async with coming_back(connect_timeout=10, timeout=None) as (client, fake, comings):
        await fake.hang_up()
        await clock.turn()
        call = asyncio.create_task(client.call("t"))
        await comings.next()
        await clock.advance(11)
        with pytest.raises(ConnectionLost, match=r"tools/call was not sent.*could not be opened again.*within 10 s"):
            await call


async def test_a_caller_that_gives_up_stops_the_opening_for_nobody_else() -> None:
    async with coming_back() as (client, fake, comings):
        await fake.hang_up()
        await Clock().turn()
        one, other = (asyncio.create_task(client.call("t", {"n": n})) for n in range(2))
        fake = await comings.next()
        one.cancel()
        with pytest.raises(asyncio.CancelledError):
            await one
        await fake.open("2025-11-25")
        request = await fake.expect("tools/call")
        assert request["params"]["arguments"] == {"n": 1}
        await fake.result(request, text("x"))
        assert await other == "x"


# --------------------------------------------------------------------------------------------------- lists


PAGE = {"tools": [TOOL], "nextCursor": "2"}


@pytest.mark.parametrize("when", ["during the second page", "between the pages"])
async def test_a_list_that_is_cut_is_read_from_its_beginning(when: str) -> None:
    """A cursor means nothing to a server that was started anew."""
    async with coming_back() as (client, fake, comings):
        listing = asyncio.create_task(client.list_tools())
        await fake.result(await fake.expect("tools/list"), PAGE)
        if when == "during the second page":
            await fake.expect("tools/list")
        await fake.hang_up()
        fake = await comings.opened("2025-11-25")
        first = await fake.expect("tools/list")
        assert "params" not in first
        await fake.result(first, {"tools": [{**TOOL, "name": "new"}], "nextCursor": "b"})
        second = await fake.expect("tools/list")
        assert second["params"] == {"cursor": "b"}
        await fake.result(second, {"tools": []})
        assert [tool.name for tool in await listing] == ["new"]


async def test_a_list_that_is_cut_twice_fails() -> None:
    async with coming_back() as (client, fake, comings):
        listing = asyncio.create_task(client.list_tools())
        for _ in range(2):
            await fake.result(await fake.expect("tools/list"), PAGE)
            await fake.expect("tools/list")
            await fake.hang_up()
            if comings.tried == 1:
                fake = await comings.opened("2025-11-25")
        with pytest.raises(ConnectionLost, match="before tools/list was answered"):
            await listing
        assert comings.tried == 2


# --------------------------------------------------------------------------------------------------- processes

PID = "opened(); request = read(); text(request, str(os.getpid())); read(); complain('out of memory'); os._exit(7)"
KILLED = "opened(); request = read(); text(request, str(os.getpid())); read(); os.kill(os.getpid(), 9)"


@pytest.mark.parametrize(("script", "code"), [(PID, 7), (KILLED, -9)], ids=["exits", "is killed"])
async def test_a_process_that_died_in_a_call_is_started_again_by_the_next(
    script: str, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with Client(child(script), revision="2025-11-25") as client:
        first = await client.call("pid")
        with pytest.raises(ServerExited, match="it may have run or not, and was not sent again") as exited:
            await client.call("die")
        assert exited.value.exit_code == code
        assert await client.call("pid") != first
        if code == 7:
            assert "exited with code 7\n  stderr: out of memory" in caplog.text


async def test_a_process_that_died_between_two_calls_is_started_again() -> None:
    script = "opened(); request = read(); text(request, str(os.getpid())); os._exit(3)"
    async with Client(child(script)) as client:
        pids: set[str] = set()
        for _ in range(3):
            pids.add(await client.call("pid"))
            assert client._process is not None
            await client._process.wait_exit()  # what is written before may reach it, or not
        assert len(pids) == 3


async def test_a_list_that_killed_the_server_is_asked_for_again_and_not_a_third_time() -> None:
    script = "opened(); read(); os._exit(4)"
    async with Client(child(script), revision="2025-11-25") as client:
        with pytest.raises(ServerExited, match="ended twice before tools/list was answered") as exited:
            await client.list_tools()
        assert exited.value.exit_code == 4


async def test_a_server_that_dies_at_every_start_is_started_once_for_each_request(tmp_path: Any) -> None:
    starts = tmp_path / "starts"
    script = f"""
first = not os.path.exists({str(starts)!r})
open({str(starts)!r}, "a").write("x")
if not first:
    complain("no licence")
    sys.exit(2)
opened()
read()
os._exit(0)
"""
    async with Client(child(script), revision="2025-11-25", connect_timeout=None) as client:
        with pytest.raises(ServerExited, match="exited with code 2[^$]*no licence") as exited:
            await client.list_tools()
        assert exited.value.exit_code == 2
        assert starts.read_text() == "xx"
        with pytest.raises(ServerExited, match="tools/call was not sent[^$]*no licence"):
            await client.call("t")
        assert starts.read_text() == "xxx"


async def test_notifications_wait_for_a_server_that_does_not_read() -> None:
    async with talking(own=["acme/told"]) as (client, fake):
        sent = 0

        async def tell() -> None:
            nonlocal sent
            for _ in range(50):
                await client.notify("acme/told", {"text": "x" * 100_000})
                sent += 1

        fake.reads.clear()
        telling = asyncio.create_task(tell())
        await Clock().turn()
        assert 10 <= sent < 40
        fake.reads.set()
        await telling


async def test_a_server_that_dies_is_named_as_in_the_log_and_quoted_from_the_request_on(tmp_path: Any) -> None:
    program = tmp_path / "studio.py"
    program.write_text(
        "import os, sys\n"
        "from modelwire import Server\n"
        "server = Server('studio')\n"
        "print('starting', file=sys.stderr, flush=True)\n"
        "@server.tool\n"
        "def paint() -> str:\n"
        "    print('out of paint', file=sys.stderr, flush=True)\n"
        "    os._exit(3)\n"
        "server.run()\n"
    )
    async with Client(program, env={"PYTHONPATH": os.pathsep.join(sys.path)}) as client:
        await client.ping()
        with pytest.raises(ServerExited) as exited:
            await client.call("paint")
    assert f"the server '{os.path.basename(sys.executable)} studio.py' exited with code 3" in str(exited.value)
    assert str(exited.value).endswith("stderr: (1 line before the request) ...\nout of paint")
    assert exited.value.stderr == "starting\nout of paint\n"
