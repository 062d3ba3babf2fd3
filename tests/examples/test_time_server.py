"""`examples/time_server.py`, as a process over stdio on every revision, and in memory."""

from __future__ import annotations

import asyncio
import contextlib
import re
import subprocess
import zoneinfo
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from modelwire import Client, InvalidParams, ResourceNotFound, ResourceUpdated, ToolError, types
from tests import spec
from tests.examples.programs import LOG, TIME_SERVER, Record, fresh_module, time_server

pytestmark = pytest.mark.slow  # programs are started, or thousands of frames sent; `make test` does it

SHANGHAI = timezone(timedelta(hours=8))
THE_TIME = re.compile(r"当前系统时间是：(\d{4})/([1-9]\d?)/([1-9]\d?) (\d\d):(\d\d):(\d\d)")
STARTED = "MCP 时间服务器已启动，通过 STDIO 通信。"

on_every_revision = pytest.mark.parametrize("revision", spec.REVISION_NAMES)
on_handshake_revisions = pytest.mark.parametrize("revision", spec.REVISION_NAMES[:-1])


async def log_text(client: Client) -> str:
    [part] = (await client.read_resource(LOG)).contents
    assert isinstance(part, types.TextResourceContents)
    assert (part.uri, part.mime_type) == (LOG, "text/plain")
    return part.text


async def wait_for_tool(client: Client, name: str, events: Any) -> types.Tool:
    while True:
        found = {tool.name: tool for tool in await client.list_tools()}
        if name in found:
            return found[name]
        await anext(events)


# ---------------------------------------------------------------- on every revision, on stdio


@on_every_revision
async def test_it_says_who_it_is_and_lists_what_it_has(revision: str) -> None:
    async with time_server(revision) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        [resource] = await client.list_resources()
        [prompt] = await client.list_prompts()
        info = client.server_info
    assert info is not None
    assert (info.name, info.version) == ("mcp-time-server", "0.1.0")
    assert list(tools) == ["get_current_time", "get_current_time_v2", "build_project"]
    plain = tools["get_current_time"]
    assert plain.description == "获取当前的系统日期和时间"
    assert plain.input_schema["additionalProperties"] is False
    assert not plain.input_schema.get("properties")
    assert tools["get_current_time_v2"].input_schema["required"] == ["timezone"]
    assert (resource.uri, resource.name) == (LOG, "服务器内部日志")
    assert prompt.name == "code_review"
    assert [(argument.name, argument.required) for argument in prompt.arguments or ()] == [
        ("pr_number", True),
        ("focus", False),
    ]


@on_every_revision
async def test_it_tells_the_time_in_shanghai(revision: str) -> None:
    async with time_server(revision) as client:
        before = datetime.now(SHANGHAI).replace(microsecond=0)
        [block] = (await client.call_tool("get_current_time")).content
        after = datetime.now(SHANGHAI)
    assert isinstance(block, types.TextContent)
    told = THE_TIME.fullmatch(block.text)
    assert told is not None
    assert before <= datetime(*map(int, told.groups()), tzinfo=SHANGHAI) <= after


@on_every_revision
async def test_a_zone_that_does_not_exist_is_an_error_of_the_tool_and_a_tool_that_does_not_one_of_the_protocol(
    revision: str,
) -> None:
    async with time_server(revision) as client:
        result = await client.call_tool("get_current_time_v2", {"timezone": "Asia/Shangai"})
        with pytest.raises(InvalidParams, match="get_current_time"):
            await client.call_tool("get_current_tim")
        with pytest.raises(ToolError, match="nobody"):
            await client.call("get_current_time", {"nobody": "wants this"})
        with pytest.raises(ResourceNotFound):
            await client.read_resource("file:///internal/other.txt")
    assert result.is_error is True
    [block] = result.content
    assert isinstance(block, types.TextContent)
    assert "Asia/Shangai" in block.text
    assert "Asia/Shanghai" in block.text


@on_every_revision
async def test_the_log_grows_with_every_call_and_its_readers_are_told(revision: str) -> None:
    async with time_server(revision) as client:
        before = await log_text(client)
        async with client.listen(uris=[LOG]) as events:
            await client.call("get_current_time")
            assert await anext(events) == ResourceUpdated(LOG)
            after = await log_text(client)
    assert after.startswith(before)
    assert "get_current_time" in after.removeprefix(before)


@on_every_revision
async def test_echo_appears_later_and_clients_are_told(revision: str) -> None:
    record = Record()
    async with time_server(revision, "--echo-after", "1", record=record) as client:
        async with client.listen(tools=True) as events:
            tool = await wait_for_tool(client, "echo", events)
        assert await client.call("echo", {"message": '你好 {"a": 1}'}) == '你好 {"a": 1}'
    assert tool.description == "回显输入的任何文本"
    assert tool.input_schema["properties"] == {"message": {"type": "string", "description": "需要回显的文本"}}
    assert "notifications/tools/list_changed" in record.methods("server")


@on_every_revision
async def test_a_build_reports_progress_that_rises_to_the_end_and_says_what_it_does(revision: str) -> None:
    progress: list[tuple[float, float | None, str | None]] = []
    logs: list[types.LoggingMessageNotificationParams] = []
    async with time_server(revision, on_log=logs.append) as client:
        await client.set_log_level("debug")
        text = await client.call("build_project", {"steps": 2}, on_progress=lambda *seen: progress.append(seen))
    assert text == "构建完成，共 2 步"
    with_words = revision != "2024-11-05"
    assert progress == [(step, 2, f"第 {step} 步完成" if with_words else None) for step in (1, 2)]
    assert [(log.level, log.logger) for log in logs] == [
        ("info", "build"), ("debug", "build"), ("debug", "build"), ("info", "build"),
    ]  # fmt: skip


@on_every_revision
async def test_a_cancelled_build_stops(revision: str) -> None:
    record = Record()
    async with time_server(revision, record=record) as client, client.listen(uris=[LOG]) as events:
        begun = asyncio.Event()
        building = asyncio.create_task(
            client.call("build_project", {"steps": 1000}, on_progress=lambda *seen: begun.set())
        )
        await begun.wait()
        building.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await building
        while "构建已取消" not in await log_text(client):
            await anext(events)
    cancelled = [message["params"]["requestId"] for who, message in record.messages
                 if who == "client" and message.get("method") == "notifications/cancelled"]  # fmt: skip
    built = [message["id"] for _, message in record.messages
             if message.get("params", {}).get("name") == "build_project"]  # fmt: skip
    assert cancelled[:1] == built
    answered = [message["id"] for who, message in record.messages if who == "server" and "id" in message]
    assert built[0] not in answered


@on_every_revision
async def test_the_prompt_is_written_out_with_and_without_a_focus(revision: str) -> None:
    async with time_server(revision) as client:
        plain = await client.get_prompt("code_review", {"pr_number": 42})
        focused = await client.get_prompt("code_review", {"pr_number": 42, "focus": "安全"})
        with pytest.raises(InvalidParams, match="pr_number"):
            await client.get_prompt("code_review")
        with pytest.raises(InvalidParams, match="pr_number"):
            await client.get_prompt("code_review", {"pr_number": "the first one"})
    texts = [message.content.text for result in (plain, focused) for message in result.messages
             if isinstance(message.content, types.TextContent)]  # fmt: skip
    assert [("#42" in text, "安全" in text) for text in texts] == [(True, False), (True, True)]


@on_handshake_revisions
async def test_what_tutorials_teach_is_sent_when_it_is_asked_for(revision: str) -> None:
    record = Record()
    arguments = ("--announce-lists", "--echo-after", "600")
    async with time_server(revision, *arguments, record=record, polite_shutdown=True) as client:
        await client.ping()
    assert record.methods("server") == ["tools/list", "resources/list", "notifications/root"]
    assert record.methods("client")[-2:] == ["shutdown", "exit"]


@spec.needs_spec
@on_every_revision
async def test_every_frame_is_valid_by_the_official_schema_of_the_revision(revision: str) -> None:
    record = Record()
    async with time_server(revision, record=record) as client:
        await client.call("get_current_time")
    assert record.faults(revision) == []
    record.messages.append(("server", {"jsonrpc": "2.0", "method": "notifications/nonsense"}))
    assert record.faults(revision) != []


# ---------------------------------------------------------------- the program


async def test_it_says_on_stderr_that_it_has_started() -> None:
    async with time_server("2025-11-25") as client:
        await client.ping()
    assert client.stderr == STARTED + "\n"


@pytest.mark.parametrize("value", ["soon", "-1", "nan", "inf", ""])
def test_a_start_that_fails_ends_with_status_1_and_says_why(value: str) -> None:
    command = [*TIME_SERVER, f"--echo-after={value}"]
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=30)
    assert ran.returncode == 1
    assert ran.stdout == b""
    assert "--echo-after" in ran.stderr.decode()
    assert STARTED not in ran.stderr.decode()


# ---------------------------------------------------------------- in memory


@pytest.mark.parametrize(
    ("moment", "told"),
    [
        (datetime(2026, 1, 1, 16, 3, 4, tzinfo=UTC), "2026/1/2 00:03:04"),
        (datetime(2026, 12, 31, 15, 59, 59, 999_999, tzinfo=UTC), "2026/12/31 23:59:59"),
        (datetime(2026, 7, 9, 4, 0, 0, tzinfo=UTC), "2026/7/9 12:00:00"),
    ],
)
async def test_the_time_has_24_hours_and_month_and_day_without_zeros(moment: datetime, told: str) -> None:
    module = fresh_module("time_server")
    module.now = lambda: moment
    async with Client(module.server) as client:
        assert await client.call("get_current_time") == f"当前系统时间是：{told}"
        assert (
            await client.call("get_current_time_v2", {"timezone": "Asia/Shanghai"})
            == f"Asia/Shanghai 的当前时间是：{told}"
        )
        assert await log_text(client) == (
            f"[{told}] get_current_time 被调用\n[{told}] get_current_time_v2 被调用，时区 Asia/Shanghai\n"
        )


@pytest.mark.parametrize("name", ["", "Asia", "../../etc/passwd", "/etc/passwd", "a\0b", "x" * 5000, "时区", "mars"])
async def test_no_name_of_a_zone_does_harm(name: str) -> None:
    async with Client(fresh_module("time_server").server) as client:
        with pytest.raises(ToolError, match="没有名为") as failed:
            await client.call("get_current_time_v2", {"timezone": name})
        assert len(str(failed.value)) < 1000
        assert "当前系统时间是" in await client.call("get_current_time")


async def test_without_a_time_zone_database_shanghai_and_utc_still_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise zoneinfo.ZoneInfoNotFoundError(name)

    monkeypatch.setattr(zoneinfo, "ZoneInfo", missing)
    monkeypatch.setattr(zoneinfo, "available_timezones", lambda: set[str]())
    module = fresh_module("time_server")
    module.now = lambda: datetime(2026, 1, 1, 16, 3, 4, tzinfo=UTC)
    async with Client(module.server) as client:
        assert (await client.call("get_current_time")).endswith("2026/1/2 00:03:04")
        assert (await client.call("get_current_time_v2", {"timezone": "Asia/Shanghai"})).endswith("2026/1/2 00:03:04")
        assert (await client.call("get_current_time_v2", {"timezone": "UTC"})).endswith("2026/1/1 16:03:04")
        with pytest.raises(ToolError, match="pip install tzdata"):
            await client.call("get_current_time_v2", {"timezone": "Europe/London"})


async def test_the_countdown_to_echo_begins_with_the_first_message_and_not_with_the_import() -> None:
    module = fresh_module("time_server")
    module.echo_later.seconds = 0
    await asyncio.sleep(0)
    assert "echo" not in module.server.features.tools.registry.keys()  # noqa: SIM118 - no mapping
    async with Client(module.server) as client, client.listen(tools=True) as events:
        await wait_for_tool(client, "echo", events)
