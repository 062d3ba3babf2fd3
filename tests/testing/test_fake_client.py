"""A fake client: it sends what the test says, and matches what comes to it."""

from __future__ import annotations

import asyncio

import pytest

from modelwire import Context, Server
from modelwire.testing import REVISIONS, FakeClient, Served


def shop() -> Server:
    server = Server("shop")

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    async def ask(ctx: Context) -> str:
        found = await ctx.request("roots/list")
        return found.roots[0].uri

    @server.tool
    async def wait() -> str:
        await asyncio.Event().wait()
        return "never"

    @server.tool
    async def work(ctx: Context) -> str:
        ctx.progress(1, 2)
        ctx.notify("acme/note", {"x": 1})
        return "done"

    return server


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_server_is_opened_and_called(revision: str) -> None:
    async with FakeClient(shop(), revision) as fake:
        opened = await fake.open()
        assert ("protocolVersion" in opened) is (revision != REVISIONS[-1])
        assert await fake.text("add", {"a": 1, "b": 2}) == "3"
        assert (await fake.error("acme/none"))["code"] == -32601
        assert (await fake.request("tools/list"))["result"]["tools"][0]["name"] == "add"
        assert await fake.quiet()


async def test_requests_may_be_open_together_and_one_be_cancelled() -> None:
    async with FakeClient(shop()) as fake:
        await fake.open()
        waiting, other = await fake.begin_call("wait"), await fake.begin_call("add", {"a": 1, "b": 1}, id="mine")
        assert (await other.result())["structuredContent"] == {"result": 2}
        assert not waiting.done
        await fake.cancel(waiting, "no longer needed")
        assert await fake.quiet()
        assert not waiting.done
        assert fake.frames.sent("notifications/cancelled")[0]["params"]["reason"] == "no longer needed"


async def test_what_is_no_answer_is_in_the_inbox() -> None:
    async with FakeClient(shop()) as fake:
        await fake.open(capabilities={"roots": {}})
        request = await fake.begin_call("work", progressToken="t")
        assert (await fake.hear("notifications/progress", progressToken="t"))["progress"] == 1
        assert fake.heard("acme/note") == [{"x": 1}]
        assert (await request.result())["content"][0]["text"] == "done"
        asking = await fake.begin_call("ask")
        question = await fake.take("roots/list")
        await fake.send({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": [{"uri": "file:///x"}]}})
        assert (await asking.result())["content"][0]["text"] == "file:///x"
        assert [message["method"] for message in fake.inbox] == ["acme/note"]


async def test_frames_that_are_wrong_are_sent_as_they_are() -> None:
    async with FakeClient(shop()) as fake:
        await fake.open()
        assert (await fake.answer_to(b"{nonsense"))["error"]["code"] == -32700
        assert (await fake.answer_to({"jsonrpc": "2.0", "id": None, "method": "ping"}))["error"]["code"] == -32600


async def test_another_answer_than_expected_is_shown() -> None:
    async with FakeClient(shop()) as fake:
        await fake.open()
        with pytest.raises(
            AssertionError, match=r'acme/none was answered with no result: \{"jsonrpc": "2.0", "id": 2, "er'
        ):
            await fake.result("acme/none")
        with pytest.raises(AssertionError, match="ping was answered with no error"):
            await fake.error("ping")


@pytest.mark.slow
async def test_an_answer_that_does_not_come_and_one_that_cannot_come_any_more() -> None:
    async with FakeClient(shop(), patience=0.05) as fake:
        await fake.open()
        with pytest.raises(AssertionError, match=r"tools/call was not answered within 0\.05 s"):
            await fake.call("wait")
        waiting = await fake.begin_call("wait")
        await fake.hang_up()
        with pytest.raises(AssertionError, match="the server has closed"):
            await waiting.answer()


async def test_a_request_of_another_revision_on_the_same_connection() -> None:
    async with FakeClient(shop(), "2025-11-25") as fake:
        await fake.open()
        result = await fake.result("tools/list", revision="2026-07-28", logLevel="info")
        assert result["resultType"] == "complete"
        meta = fake.frames.sent("tools/list")[0]["params"]["_meta"]
        assert meta["io.modelcontextprotocol/logLevel"] == "info"


async def test_a_stream_of_ones_own() -> None:
    async with FakeClient(Served(shop())) as fake:
        await fake.open()
        assert await fake.text("add", {"a": 2, "b": 2}) == "4"


async def test_an_unknown_revision_is_refused() -> None:
    async with FakeClient(shop(), "1999-01-01") as fake:
        with pytest.raises(AssertionError, match="there is no revision '1999-01-01'; there are 2024-11-05"):
            await fake.open()
