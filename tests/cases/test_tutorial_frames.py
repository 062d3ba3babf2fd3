"""Every frame that tutorials print, fed to the side that would receive it, with the verdict that its line gives."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from modelwire import Client, Context, ProtocolViolation, Server, types
from modelwire.transports.memory import MemoryStream, memory_pair
from tests import spec
from tests.wire import PATIENCE, StreamTalk, stream_talk

FILE = spec.SHARED / "tutorial-frames.jsonl"
LINES = (
    [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines() if line.strip()]
    if FILE.is_file()
    else []
)
pytestmark = pytest.mark.skipif(not LINES, reason="the tutorial frames (../shared/tutorial-frames.jsonl) are not here")


def lines(sender: str, *verdicts: str) -> list[Any]:
    chosen = [line for line in LINES if line["sender"] == sender and line["verdict"] in verdicts]
    return [pytest.param(line, id=line["name"].replace(" ", "-")) for line in chosen]


def line(name: str) -> Any:
    return next(line["frame"] for line in LINES if line["name"] == name)


def test_each_line_has_a_test_of_its_kind() -> None:
    assert {(line["sender"], line["verdict"]) for line in LINES} == {
        (sender, verdict) for sender in ("client", "server") for verdict in ("valid", "tolerated", "violation")
    }


# --------------------------------------------------------------------------------------------------- to a server


def tutorial_server(gate: asyncio.Event) -> Server:
    server = Server("github-mcp-server", version="0.5.0")

    @server.tool
    async def create_issue(repo: str, title: str, body: str = "") -> str:
        return f"Issue in {repo}"

    @server.tool
    async def build_project(ctx: Context) -> str:
        ctx.progress(50, 100)
        return "built"

    @server.tool
    async def wait() -> str:
        await gate.wait()
        return "waited"

    @server.tool
    async def log(ctx: Context) -> str:
        ctx.log.debug("Fetched issue #42")
        return "logged"

    @server.tool
    async def sample(ctx: Context) -> str:
        answer = await ctx.request("sampling/createMessage", line("s1 sampling/createMessage")["params"])
        return answer.content.text

    @server.resource("file:///workspace/README.md")
    async def readme() -> str:
        return "# Hello World\n..."

    @server.prompt
    def code_review(pr_number: str, focus: str = "") -> str:
        return f"Review PR #{pr_number} focusing on {focus}..."

    return server


@contextlib.asynccontextmanager
async def conversation(**options: Any) -> AsyncIterator[StreamTalk]:
    gate = asyncio.Event()
    async with stream_talk(tutorial_server(gate), "2024-11-05", **options) as talk:
        yield talk
        gate.set()


@pytest.mark.parametrize("line", [one for one in lines("client", "valid") if "id" in one.values[0]["frame"]])
async def test_a_valid_request_is_answered_with_its_result(line: Any) -> None:
    frame = line["frame"]
    async with conversation(opened=frame["method"] != "initialize") as talk:
        answer = await talk.answer_to(frame, valid=True)
        assert answer["id"] == frame["id"]
        assert "result" in answer, answer
        if frame["method"] == "initialize":
            assert answer["result"]["protocolVersion"] == "2024-11-05"
        if "_meta" in frame.get("params", {}):
            await talk.hear("notifications/progress", progressToken="job-001", progress=50, total=100)


async def test_a_cancelled_notification_ends_its_request_without_an_answer() -> None:
    async with conversation() as talk:
        pending = await talk.begin_call("wait", id=3)
        await talk.raw(line("s1 cancelled, completed"), valid=True)
        await talk.settle()
        assert not pending.done


async def test_set_level_takes_effect() -> None:
    async with conversation() as talk:
        assert (await talk.answer_to(line("s1 setLevel, completed"), valid=True))["result"] == {}
        await talk.text("log")
        await talk.hear("notifications/message", level="debug", data="Fetched issue #42")


async def test_a_client_that_declares_a_server_capability_changes_nothing() -> None:
    async with conversation(opened=False) as talk:
        answer = await talk.answer_to(line("s2 initialize, tools capability at the client"), valid=True)
        assert answer["result"]["capabilities"]["tools"] == {"listChanged": True}


@pytest.mark.parametrize("line", lines("client", "violation"))
async def test_a_violation_of_the_client_is_an_invalid_request_and_costs_only_itself(line: Any) -> None:
    async with conversation() as talk:
        pending = await talk.begin_call("wait", id=3)
        answer = await talk.answer_to(line["frame"])
        assert answer["error"]["code"] == -32600
        assert answer.get("id") == line["frame"].get("id")
        await talk.settle()
        assert not pending.done  # the cancellation without "jsonrpc" was none
        assert talk.heard("notifications/progress") == []


async def test_bare_initialized_opens() -> None:
    async with conversation(opened=False) as talk:
        await talk.answer_to(line("s1 initialize"), valid=True)
        await talk.raw(line("s1 bare initialized"), valid=True)
        assert await talk.quiet()
        assert len((await talk.result("tools/list"))["tools"]) == 5


async def test_shutdown_and_exit_close() -> None:
    async with conversation() as talk:
        assert (await talk.answer_to(line("s1 shutdown"), valid=True)) == {"jsonrpc": "2.0", "id": 12, "result": {}}
        await talk.raw(line("s1 exit"), valid=True)
        await talk.closed()


async def test_a_sampling_answer_without_model_is_accepted_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    async with conversation(opened=False) as talk:
        await talk.open(capabilities={"sampling": {}})
        pending = await talk.begin_call("sample")
        question = await talk.take(lambda message: message.get("method") == "sampling/createMessage")
        await talk.raw({**line("s1 sampling answer without model"), "id": question["id"]})
        assert (await pending.result())["content"][0]["text"] == "摘要：..."
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "model" in caplog.text


# --------------------------------------------------------------------------------------------------- to a client


class ScriptedServer:
    """Answers ``initialize`` and pings, keeps every other frame for the test."""

    def __init__(self, stream: MemoryStream) -> None:
        self.stream = stream
        self.frames: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def run(self) -> None:
        while (frame := await self.stream.receive()) is not None:
            message = json.loads(frame)
            if message.get("method") == "initialize":
                await self.send({**line("s1 initialize result"), "id": message["id"]})
            elif message.get("method") == "ping":
                await self.send({"jsonrpc": "2.0", "id": message["id"], "result": {}})
            else:
                self.frames.put_nowait(message)

    async def send(self, message: Any) -> None:
        await self.stream.send(json.dumps(message).encode())

    async def next(self, method: str | None = None) -> dict[str, Any]:
        """Return the next frame, of a method or else one that is an answer."""
        async with asyncio.timeout(PATIENCE):
            while True:
                message = await self.frames.get()
                if message.get("method") == method:
                    return message

    async def answer(self, method: str, name: str) -> dict[str, Any]:
        """Answer the next request of that method with a frame of the file; return the request."""
        request = await self.next(method)
        await self.send({**line(name), "id": request["id"]})
        return request


@contextlib.asynccontextmanager
async def scripted(**options: Any) -> AsyncIterator[tuple[Client, ScriptedServer]]:
    mine, theirs = memory_pair()
    server = ScriptedServer(theirs)
    running = asyncio.create_task(server.run())
    async with Client(mine, revision="2024-11-05", timeout=PATIENCE, **options) as client:
        yield client, server
    await theirs.aclose()
    await running


async def test_the_initialize_result_is_read() -> None:
    async with scripted() as (client, server):
        assert client.revision is not None
        assert client.revision.name == "2024-11-05"
        assert client.server_info.name == "github-mcp-server"
        assert client.capabilities.resources is not None
        await server.next("notifications/initialized")


RESULTS = {
    "s1 tools/list result": lambda client: client.list_tools(),
    "s1 call ok": lambda client: client.call_tool("create_issue", {}),
    "s1 call failed": lambda client: client.call_tool("create_issue", {}),
    "s1 resources/read result": lambda client: client.read_resource("file:///workspace/README.md"),
    "s1 prompts/list result, completed": lambda client: client.list_prompts(),
    "s1 prompts/get result, completed": lambda client: client.get_prompt("code_review", {"pr_number": "42"}),
    "s2 time result without isError": lambda client: client.call_tool("get_current_time", {}),
}
METHODS = {
    "ListToolsResult": "tools/list",
    "CallToolResult": "tools/call",
    "ReadResourceResult": "resources/read",
    "ListPromptsResult": "prompts/list",
    "GetPromptResult": "prompts/get",
}
TYPES = {one["name"]: one["type"] for one in LINES}


@pytest.mark.parametrize("name", RESULTS)
async def test_a_valid_result_is_handed_over(name: str) -> None:
    async with scripted() as (client, server):
        calling = asyncio.create_task(RESULTS[name](client))
        await server.answer(METHODS[TYPES[name]], name)
        got = await calling
    result = line(name)["result"]
    if isinstance(got, types.CallToolResult):
        assert got.content[0].text == result["content"][0]["text"]
        assert bool(got.is_error) is result.get("isError", False)
    elif isinstance(got, list):
        assert [item.name for item in got] == [item["name"] for item in next(iter(result.values()))]
    elif isinstance(got, types.ReadResourceResult):
        assert got.contents[0].text == result["contents"][0]["text"]
    else:
        assert got.messages[0].content.text == result["messages"][0]["content"]["text"]


def test_every_valid_result_of_the_file_is_handed_over_in_a_test() -> None:
    valid = {
        one["name"] for one in LINES if one["sender"] == "server" and one["verdict"] == "valid" and "id" in one["frame"]
    }
    assert valid == {*RESULTS, "s1 initialize result", "s1 sampling/createMessage"}


@pytest.mark.parametrize(
    "name",
    [
        "s1 prompts/list result, jsonrpc and id left out",
        "s1 prompts/get result, jsonrpc and id left out",
        "s1 progress, no jsonrpc",
        "s1 log message, no jsonrpc",
    ],
)
async def test_a_frame_that_matches_nothing_is_dropped_and_costs_only_itself(name: str) -> None:
    heard: list[str] = []
    async with scripted(on_notification=lambda method, params: heard.append(method)) as (client, server):
        calling = asyncio.create_task(client.list_prompts())
        request = await server.next("prompts/list")
        await server.send(line(name))
        await server.send({**line("s1 prompts/list result, completed"), "id": request["id"]})
        assert len(await calling) == 1
        await client.ping()
    assert heard == []


@pytest.mark.parametrize("name", ["s1 resources/list with method AND result", "s2 result and error together"])
async def test_an_answer_of_two_kinds_fails_the_pending_request_at_once(name: str) -> None:
    async with scripted() as (client, server):
        calling = asyncio.create_task(client.list_resources(timeout=None))
        await server.answer("resources/list", name)
        with pytest.raises(ProtocolViolation):
            async with asyncio.timeout(PATIENCE):
                await calling
        await client.ping()


@pytest.mark.parametrize(
    "name", ["s2 initialize sent by the server", "s2 tools/list request inside a server's SSE event"]
)
async def test_a_request_in_the_wrong_direction_is_not_found(name: str) -> None:
    async with scripted() as (client, server):
        await server.send(line(name))
        answer = await server.next()
        assert (answer["id"], answer["error"]["code"]) == (line(name)["id"], -32601)
        await client.ping()


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("s2 tools/list as a notification", "tools/list"),
        ("s2 resources/list as a notification", "resources/list"),
        ("s2 notifications/root", "resources/list"),
    ],
)
async def test_an_announced_list_is_a_hint_to_list_again_and_its_params_are_not_trusted(name: str, method: str) -> None:
    async with scripted() as (client, server):
        tools = method == "tools/list"
        async with client.listen(tools=tools, resources=not tools) as events:
            await server.send(line(name))
            async with asyncio.timeout(PATIENCE):
                event = await anext(aiter(events))
            assert type(event).__name__ == ("ToolsChanged" if tools else "ResourcesChanged")
        listing = asyncio.create_task(client.list_tools() if tools else client.list_resources())
        request = await server.next(method)
        await server.send({"jsonrpc": "2.0", "id": request["id"], "result": {method.split("/")[0]: []}})
        assert await listing == []


async def test_progress_is_handed_to_the_call() -> None:
    steps: list[tuple[float, float | None]] = []
    async with scripted() as (client, server):
        calling = asyncio.create_task(
            client.call_tool("build_project", {}, on_progress=lambda done, total, message: steps.append((done, total)))
        )
        request = await server.next("tools/call")
        progress = line("s1 progress, completed")
        progress["params"]["progressToken"] = request["params"]["_meta"]["progressToken"]
        await server.send(progress)
        await server.send({**line("s1 call ok"), "id": request["id"]})
        await calling
    assert steps == [(50, 100)]


async def test_a_log_message_is_handed_over() -> None:
    logged: list[Any] = []
    async with scripted(on_log=logged.append) as (client, server):
        await server.send(line("s1 log message, completed"))
        await client.ping()
    assert [(message.level, message.logger, message.data) for message in logged] == [
        ("info", "github", "Fetched issue #42")
    ]


async def test_an_updated_resource_is_an_event() -> None:
    async with scripted() as (client, server):
        uri = "github://repos/octocat/issues"
        entering = client.listen(uris=[uri])
        opening = asyncio.create_task(entering.__aenter__())
        request = await server.next("resources/subscribe")
        assert request["params"]["uri"] == uri
        await server.send({"jsonrpc": "2.0", "id": request["id"], "result": {}})
        events = await opening
        await server.send(line("s1 updated"))
        async with asyncio.timeout(PATIENCE):
            assert (await anext(aiter(events))).uri == uri
        closing = asyncio.create_task(entering.__aexit__(None, None, None))
        request = await server.next("resources/unsubscribe")
        await server.send({"jsonrpc": "2.0", "id": request["id"], "result": {}})
        await closing


async def test_a_sampling_request_is_answered_by_the_handler() -> None:
    def sample(params: dict[str, Any]) -> dict[str, Any]:
        assert params["messages"][0]["content"]["text"] == "总结：..."
        return {"role": "assistant", "content": {"type": "text", "text": "摘要：..."}, "model": "m"}

    async with scripted(
        handlers={"sampling/createMessage": sample},
        capabilities=types.ClientCapabilities(sampling=types.SamplingCapability()),
    ) as (_, server):
        await server.send(line("s1 sampling/createMessage"))
        answer = await server.next()
        assert answer["id"] == 9
        assert answer["result"]["content"]["text"] == "摘要：..."
