"""A fake server: it says what the test says, and a test that is wrong about the client is told how."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from modelwire import Client, PeerError, RpcError, types
from modelwire.testing import REVISIONS, Exactly, FakeServer

TWO = {"content": [{"type": "text", "text": "2"}]}


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_client_connects_and_calls(revision: str) -> None:
    async with FakeServer() as fake, fake.connected(revision) as client:
        assert client.revision.name == revision
        assert await fake.answer(client.call("add", {"a": 1}, returns=int), "tools/call", TWO) == 2
        assert fake.methods[-1] == "tools/call"
    assert fake.frames.received("tools/call")[0]["params"]["arguments"] == {"a": 1}


async def test_a_script_is_played_step_by_step() -> None:
    async with FakeServer() as fake, fake.connected("2025-11-25") as client:
        playing = asyncio.create_task(
            fake.play(
                ("tools/list", {"tools": []}),
                ({"method": "tools/call", "params": {"name": "add"}}, TWO),
                ("tools/call", RpcError(-32000, "out of order", {"since": 1})),
                ({"method": "acme/note", "params": {"x": int}}, None),
            )
        )
        assert await client.list_tools() == []
        assert await client.call("add") == "2"
        with pytest.raises(PeerError, match="out of order") as raised:
            await client.call("add")
        assert (raised.value.code, raised.value.data) == (-32000, {"since": 1})
        await client.notify("acme/note", {"x": 1})
        await playing


async def test_what_was_not_expected_is_told_with_each_difference_and_the_message() -> None:
    async with FakeServer() as fake, fake.connected() as client:
        call = asyncio.create_task(client.call("add", {"a": 1}))
        wanted = {"method": "tools/call", "params": {"name": "sub", "arguments": Exactly({"b": 1})}}
        with pytest.raises(AssertionError) as raised:
            await fake.expect(wanted)
        lines = str(raised.value).splitlines()
        assert lines[:4] == [
            "the client sent something else:",
            '  params.name: expected "sub", got "add"',
            "  params.arguments.b: missing",
            "  params.arguments.a: not expected, got 1",
        ]
        assert lines[4].startswith('  the message: {"jsonrpc": "2.0", "id": ')
        call.cancel()


async def test_an_answer_that_the_client_does_not_ask_for_is_told_and_the_call_given_up() -> None:
    async with FakeServer() as fake, fake.connected() as client:
        with pytest.raises(AssertionError, match="the client sent something else"):
            await fake.answer(client.call("add"), "prompts/get", {})
        await fake.expect("notifications/cancelled")


async def test_waiting_in_vain_ends_with_what_is_there_instead() -> None:
    async with FakeServer(patience=0.05) as fake, fake.connected() as client:
        await client.notify("acme/note", {"x": 1})
        with pytest.raises(AssertionError) as raised:
            await fake.take("acme/other")
        what, there = str(raised.value).splitlines()
        assert what == "after 0.05 s the test still waits for {'method': 'acme/other'}; in the inbox:"
        assert there.startswith('  {"jsonrpc": "2.0", "method": "acme/note"')
        assert await fake.hear("acme/note") == {"x": 1}
        with pytest.raises(AssertionError, match="still waits for a message; nothing is in the inbox"):
            await fake.next()
        with pytest.raises(AssertionError, match="still waits for the end of the connection"):
            await fake.closed()


async def test_a_client_that_has_closed_is_told() -> None:
    async with FakeServer() as fake:
        async with fake.connected():
            pass
        await fake.closed()
        with pytest.raises(AssertionError, match="the client has closed; expected was .*tools/call"):
            await fake.expect("tools/call")


async def test_requests_progress_and_bytes_that_are_wrong() -> None:
    heard: list[Any] = []
    roots = types.ClientCapabilities(roots=types.RootsCapability())
    handlers = {"roots/list": lambda params: {"roots": []}}
    async with (
        FakeServer() as fake,
        fake.connected("2025-11-25", {"tools": {}}, capabilities=roots, handlers=handlers) as client,
    ):
        assert client.capabilities.prompts is None
        assert (await fake.ask("q", "roots/list"))["result"] == {"roots": []}
        call = asyncio.create_task(client.call("add", on_progress=lambda *told: heard.append(told)))
        request = await fake.expect("tools/call")
        await fake.progress(request, 0.5, total=1, message="half")
        await fake.send(b"\xff no frame")
        await fake.error(request, -32603, "broken", {"why": "x"})
        with pytest.raises(PeerError, match="broken"):
            await call
        assert heard == [(0.5, 1.0, "half")]


async def test_hanging_up_and_not_reading() -> None:
    async with FakeServer() as fake, fake.connected() as client:
        fake.reads.clear()
        await client.notify("acme/one")
        await asyncio.sleep(0)
        await client.notify("acme/two")
        assert "acme/two" not in fake.methods
        fake.reads.set()
        await fake.hear("acme/two")
        await fake.hang_up()
        with pytest.raises(Exception, match="closed the connection"):
            await client.ping()


async def closing_after_nonsense(error: Exception | None) -> None:
    async with FakeServer() as fake:
        await fake.stream.send(b"{nonsense")
        await fake.stream.aclose()
        await fake.closed()
        if error is not None:
            raise error


async def test_what_the_client_must_not_send_fails_the_block() -> None:
    with pytest.raises(AssertionError, match=r"the client sent what it must not:\nno JSON .*\{nonsense"):
        await closing_after_nonsense(None)


async def test_an_error_of_the_test_itself_is_not_covered_by_faults() -> None:
    with pytest.raises(KeyError, match="mine"):
        await closing_after_nonsense(KeyError("mine"))


async def test_the_opening_may_be_answered_by_hand() -> None:
    async with FakeServer() as fake:
        opening = asyncio.create_task(Client(fake.stream).connect())
        await fake.error(await fake.expect("server/discover"), -32601)
        await fake.initialized(await fake.next(), "2025-06-18", {"tools": {}}, instructions="be brief")
        client = await opening
        assert client.instructions == "be brief"
        await client.close()
        assert json.loads(fake.frames[-1].data)["method"] == "notifications/initialized"
