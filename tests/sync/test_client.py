"""A client for programs that do not await: threads, running loops, callbacks, and the end of a conversation."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from modelwire import (
    ConfigError,
    ConnectionFailed,
    ConnectionLost,
    Context,
    InvalidParams,
    RequestTimeout,
    Server,
    ServerExited,
    ToolError,
    types,
)
from modelwire.sync import Client
from tests.fake_server import child


class Waiting:
    """A server with a tool that says that it was called, and never answers."""

    def __init__(self) -> None:
        self.server = Server("waiting")
        self.began = threading.Event()
        self.ended = threading.Event()
        self.server.tool(self.wait)
        self.server.add_tool(lambda: "hello", name="hello", inline=True)

    async def wait(self) -> str:
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()
        return "never"


def shop() -> Server:
    server = Server("shop", instructions="Ask for kettles.")

    @server.tool
    async def order(id: int, ctx: Context) -> str:
        ctx.progress(1, 2, "half")
        ctx.log.info("ordering")
        if id == 0:
            raise ToolError("sold out")
        return f"item {id}"

    @server.tool
    def in_a_thread(n: int) -> int:
        return n

    @server.resource("shop://{id}")
    def item(id: int) -> str:
        return f"item {id}"

    @server.prompt
    def praise(what: str) -> str:
        return f"Praise {what}."

    server.complete("praise", "what")(lambda typed: [typed + "!"])
    return server


def test_methods_return_what_those_that_are_awaited_do() -> None:
    with Client(shop()) as client:
        assert client.connected
        assert client.server_info is not None
        assert (client.server_info.name, client.instructions) == ("shop", "Ask for kettles.")
        assert client.revision.name == "2026-07-28"
        assert client.capabilities.tools is not None
        assert (client.timeout, client.stderr, client.exit_code) == (60.0, "", None)
        assert (client.tools, client.resources) == (None, None)
        assert [tool.name for tool in client.list_tools()] == ["order", "in_a_thread"]
        assert client.tools is not None
        assert client.list_resources() == client.resources == []
        assert [template.uri_template for template in client.list_resource_templates()] == ["shop://{id}"]
        assert [prompt.name for prompt in client.list_prompts()] == ["praise"]
        assert client.call("order", {"id": 1}, timeout=5) == "item 1"
        assert client.call("in_a_thread", {"n": 7}, returns=int) == 7
        result = client.call_tool("order", {"id": 0})
        assert result.is_error
        [content] = client.read_resource("shop://1").contents
        assert isinstance(content, types.TextResourceContents)
        assert content.text == "item 1"
        assert client.get_prompt("praise", {"what": "tea"}).messages[0].content == types.TextContent("Praise tea.")
        assert client.complete("praise", "what", "t").values == ["t!"]
        assert client.request("tools/list")["tools"][0]["name"] == "order"
        client.ping()
        client.set_log_level("error")
        client.notify("com.example/note", {"x": 1})
    assert not client.connected


def test_errors_are_those_of_the_asynchronous_client() -> None:
    with Client(shop()) as client:
        with pytest.raises(ToolError, match="sold out"):
            client.call("order", {"id": 0})
        with pytest.raises(InvalidParams, match="ordr"):
            client.call("ordr")
        with pytest.raises(ConfigError, match="timeout must be a number"):
            client.ping(timeout="x")  # type: ignore[arg-type]
    with pytest.raises(ConnectionFailed, match="the client is not connected"):
        Client(shop()).ping()
    with pytest.raises(ConnectionFailed, match="no-such-program"):
        Client(["no-such-program"]).connect()
    with pytest.raises(ConfigError, match="cannot connect to 5"):
        Client(5)
    with pytest.raises(KeyError, match="mine"), Client(shop()):
        raise KeyError("mine")


def test_subscriptions_of_handshake_revisions() -> None:
    server = Server("s")
    server.add_resource("a:1", lambda: "x", name="x")
    heard = threading.Event()

    def hear(method: str, params: dict[str, Any]) -> None:
        if params == {"uri": "a:1"}:
            heard.set()

    with Client(server, revision="2025-11-25", on_notification=hear) as client:
        client.subscribe("a:1")
        server.changed("a:1")
        assert heard.wait(10)
        client.unsubscribe("a:1")


def test_a_server_in_a_process() -> None:
    with Client(child("complain('starting'); opened(); serve()")) as client:
        assert client.call("x") == "done"
        assert client.stderr == "starting\n"
    assert client.exit_code == 0
    with pytest.raises(ServerExited, match="code 3"):
        Client(child("sys.exit(3)")).connect()


def test_a_client_can_connect_again() -> None:
    client = Client(shop())
    for _ in range(2):
        with client:
            client.ping()
        client.close()


# --------------------------------------------------------------------------------------------------- threads and loops


def test_several_threads_use_one_client_at_once() -> None:
    server = Server("together")
    there = 0
    all_there = asyncio.Event()

    @server.tool
    async def together(n: int) -> int:
        nonlocal there
        there += 1
        if there == 8:
            all_there.set()
        await all_there.wait()
        return n

    with Client(server) as client, ThreadPoolExecutor(8) as pool:
        results = pool.map(lambda n: client.call("together", {"n": n}, returns=int), range(8))
        assert list(results) == list(range(8))


def test_clients_share_one_thread_that_does_not_keep_the_process() -> None:
    with Client(shop()) as one, Client(shop()) as other:
        one.ping()
        other.ping()
        threads = [thread for thread in threading.enumerate() if thread.name == "modelwire.sync"]
        assert [thread.daemon for thread in threads] == [True]


async def test_a_client_works_where_a_loop_runs_already() -> None:
    with Client(shop()) as client:
        assert client.call("order", {"id": 3}) == "item 3"


@pytest.mark.slow
def test_closing_from_another_thread_ends_waiting_calls_with_a_clear_error() -> None:
    waiting = Waiting()
    with Client(waiting.server) as client, ThreadPoolExecutor(1) as pool:
        call = pool.submit(client.call, "wait")
        assert waiting.began.wait(10)
        client.close()
        with pytest.raises(ConnectionLost, match="ended before tools/call was answered"):
            call.result(10)
    assert waiting.ended.wait(10)


def test_a_timeout_costs_only_its_request() -> None:
    waiting = Waiting()
    with Client(waiting.server) as client:
        with pytest.raises(RequestTimeout):
            client.call("wait", timeout=0.01)
        assert waiting.ended.wait(10)
        assert client.call("hello") == "hello"


# --------------------------------------------------------------------------------------------------- callbacks


def test_callbacks_run_in_the_thread_of_the_loop() -> None:
    threads: list[tuple[Any, str]] = []

    def progress(done: float, total: float | None, message: str | None) -> None:
        threads.append((message, threading.current_thread().name))

    logged = threading.Event()

    def log(entry: types.LoggingMessageNotificationParams) -> None:
        threads.append((entry.data, threading.current_thread().name))
        logged.set()

    with Client(shop(), on_log=log) as client:
        client.call("order", {"id": 1}, on_progress=progress)
        assert logged.wait(10)
    assert sorted(threads) == [("half", "modelwire.sync"), ("ordering", "modelwire.sync")]


def test_a_callback_that_calls_a_client_is_told_why_that_cannot_be(caplog: pytest.LogCaptureFixture) -> None:
    with Client(shop()) as client:
        client.call("order", {"id": 1}, on_progress=lambda *progress: client.ping())
        client.ping()
    assert "a callback runs in the thread of the clients' event loop" in caplog.text
    assert "RuntimeWarning" not in caplog.text


def test_handlers_answer_in_worker_threads_where_they_may_use_a_client() -> None:
    server = Server("asks")

    @server.tool
    async def ask(ctx: Context) -> str:
        found = await ctx.request("roots/list")
        return found.roots[0].uri

    with Client(shop()) as other:

        def roots(params: dict[str, Any]) -> dict[str, Any]:
            return {"roots": [{"uri": f"file:///{other.call('order', {'id': 1})}", "name": "x"}]}

        async def roots_awaited(params: dict[str, Any]) -> dict[str, Any]:
            return {"roots": [{"uri": f"file:///{threading.current_thread().name}", "name": "x"}]}

        capabilities = types.ClientCapabilities(roots=types.RootsCapability())
        for handler, uri in [(roots, "file:///item 1"), (roots_awaited, "file:///modelwire.sync")]:
            options: Any = {"revision": "2025-11-25", "capabilities": capabilities}
            with Client(server, handlers={"roots/list": handler}, **options) as client:
                assert client.call("ask") == uri


def test_what_is_fresh_is_not_asked_for_again_and_can_be_all_the_same() -> None:
    reads: list[int] = []
    server = Server("s")
    server.add_resource("a:b", lambda: str(reads.append(1)), name="b", ttl=60)
    with Client(server) as client:
        first = client.read_resource("a:b")
        assert client.read_resource("a:b").contents == first.contents
        assert len(reads) == 1
        client.read_resource("a:b", fresh=True)
        assert len(reads) == 2
