"""What a server and a client say to each other, frame by frame, under three revisions: `make demo`.

It starts `time_server.py` beside it once per revision, walks through everything that the protocol is used for, and ends
with status 1 when a step does not show what its heading promises. The server speaks Chinese, so remarks under the
frames say in English what it says. Plain and whole when piped; coloured on a terminal, very long frames shortened.

    python examples/demo.py [REVISION ...]
"""

from __future__ import annotations

import asyncio
import io
import json
import re
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Literal

from modelwire import Client, InvalidParams, ModelwireError, Observer, ResourceUpdated, types
from modelwire.cli.wire_view import WireView, wants_colour

SERVER = Path(__file__).with_name("time_server.py")
LOG = "file:///internal/server_log.txt"
ECHO_AFTER = "2"
SECONDS_PER_REVISION = 12
SHOWN_ON_A_TERMINAL = 400
"""Characters of a frame; the rest is counted. Elsewhere frames are whole."""
THE_TIME = re.compile(r"当前系统时间是：\d{4}/[1-9]\d?/[1-9]\d? \d\d:\d\d:\d\d")

TUTORIAL = "2024-11-05"
REVISIONS = {
    TUTORIAL: "the first revision, with the closing and the announced lists that tutorials teach",
    "2025-11-25": "the newest revision that is opened with a handshake",
    "2026-07-28": "no handshake: every request says who asks, and news come by subscription",
}

Direction = Literal["in", "out"]


class NotShown(Exception):
    """A step did not show what its heading promises."""


def expect(shown: bool, what: str) -> None:
    if not shown:
        raise NotShown(what)


def say(text: str, style: str = "") -> None:
    print(f"\x1b[{style}m{text}\x1b[0m" if style and wants_colour(sys.stdout) else text, flush=True)


def remark(*lines: str) -> None:
    """Say something about the frames above."""
    for line in lines:
        say(f"  # {line}", style="33")


class Seen(Observer):
    """Remembers which methods crossed the connection, so that a step can be held to what it promises."""

    def __init__(self) -> None:
        self._methods: list[tuple[Direction, str]] = []

    def frame(self, direction: Direction, frame: bytes) -> None:
        message = json.loads(frame)
        if "method" in message:
            self._methods.append((direction, message["method"]))

    def sent(self, method: str) -> bool:
        return ("out", method) in self._methods

    def received(self, method: str) -> bool:
        return ("in", method) in self._methods


class Tour:
    """One walk through the protocol, under one revision."""

    def __init__(self, revision: str) -> None:
        self.revision = revision
        self.tutorial = revision == TUTORIAL
        self.seen = Seen()
        self.logs: list[types.LoggingMessageNotificationParams] = []
        options = ["--announce-lists"] if self.tutorial else []
        self.client = Client(
            [sys.executable, str(SERVER), "--echo-after", ECHO_AFTER, *options],
            revision=revision,
            polite_shutdown=self.tutorial,
            on_log=self.logs.append,
            observers=[WireView(sys.stdout, limit=SHOWN_ON_A_TERMINAL if sys.stdout.isatty() else None), self.seen],
        )
        self._listening = AsyncExitStack()
        self._new_tools: Any = None
        self._log_changes: Any = None

    async def walk(self) -> None:
        """Go through every step.

        Raises:
            NotShown: A step did not show what it should.
            ModelwireError: A step failed.
        """
        try:
            for number, (title, step) in enumerate(self.steps(), start=1):
                say(f"\n{self.revision} · {number}. {title}", style="1;36")
                await step()
        finally:
            await self.client.close()

    def steps(self) -> list[tuple[str, Callable[[], Awaitable[None]]]]:
        """What is shown, in order."""
        return [
            ("Opening · 建立连接", self.opening),
            ("Capabilities: what each side can do · 双方的能力", self.capabilities),
            ("Listening for new tools · 监听新工具", self.listening),
            ("Lists: tools, resources, prompts · 列出工具、资源和提示词", self.lists),
            ("A call that succeeds · 成功的调用", self.call),
            ("A call that fails: isError, in words that a model can act on · 失败的调用", self.failing_call),
            ("An unknown tool: a JSON-RPC error · 不存在的工具", self.unknown_tool),
            ("A resource · 读取资源", self.resource),
            ("A prompt · 获取提示词", self.prompt),
            ("A subscription to the resource, and its update · 订阅资源及其更新", self.subscription),
            ("A tool that appears while we are connected · 连接期间出现的新工具", self.new_tool),
            ("Progress of a call that takes a while · 进度", self.progress),
            ("Cancellation of a call that would take longer · 取消", self.cancellation),
            ("Log messages · 日志消息", self.log_messages),
            ("The end · 结束", self.end),
        ]

    async def opening(self) -> None:
        await self.client.connect()
        info = self.client.server_info
        expect(info is not None and info.name == "mcp-time-server", "who the server is")
        expect(self.client.revision.name == self.revision, "the revision that was asked for")
        expect(self.seen.sent("initialize") is self.client.revision.handshake, "the opening of this revision")

    async def capabilities(self) -> None:
        names = ("tools", "resources", "prompts", "logging", "completions")
        has = [name for name in names if getattr(self.client.capabilities, name) is not None]
        remark(f"The answer above says: the server has {', '.join(has)}. The client declared none of its own.")
        expect({"tools", "resources", "prompts", "logging"} <= set(has), "four capabilities of the server")

    async def listening(self) -> None:
        self._new_tools = await self._listening.enter_async_context(self.client.listen(tools=True))
        if self.client.revision.handshake:
            remark("Nothing to send: the server declared tools.listChanged, so it will tell by itself.")
        else:
            expect(self.seen.received("notifications/subscriptions/acknowledged"), "an acknowledgement")

    async def lists(self) -> None:
        tools = {tool.name for tool in await self.client.list_tools()}
        resources = [resource.uri for resource in await self.client.list_resources()]
        prompts = [prompt.name for prompt in await self.client.list_prompts()]
        expect({"get_current_time", "get_current_time_v2", "build_project"} <= tools, "three tools")
        expect((resources, prompts) == ([LOG], ["code_review"]), "a resource and a prompt")
        if self.tutorial:
            expect(self.seen.received("notifications/root"), "the lists, announced as tutorials teach it")
            remark(
                "The notifications tools/list, resources/list and notifications/root are in no revision of MCP: only",
                "tutorials teach them. This server sends them when it is told to (--announce-lists), after the opening",
                "and with every change. The standard's word for a change is notifications/tools/list_changed.",
                "通知 tools/list、resources/list 和 notifications/root 不属于任何修订版，只见于教程。",
            )

    async def call(self) -> None:
        answer = await self.client.call("get_current_time")
        expect(THE_TIME.fullmatch(answer) is not None, "the time")
        remark(f"The answer says: the current system time is {answer.partition('：')[2]} (in Shanghai).")

    async def failing_call(self) -> None:
        result = await self.client.call_tool("get_current_time_v2", {"timezone": "Mars/Olympus"})
        expect(result.is_error is True, "a result with isError")
        remark(
            "The answer says: there is no time zone named 'Mars/Olympus'; please give an IANA name, such as",
            "Asia/Shanghai or Europe/London.",
        )

    async def unknown_tool(self) -> None:
        try:
            await self.client.call_tool("get_curent_time")
        except InvalidParams:
            return
        raise NotShown("the error -32602")

    async def resource(self) -> None:
        expect("get_current_time 被调用" in await self._log_text(), "the calls in the server's log")
        remark("服务器启动 means that the server started, 被调用 that a tool was called.")

    async def prompt(self) -> None:
        result = await self.client.get_prompt("code_review", {"pr_number": 42, "focus": "性能"})
        [message] = result.messages
        text = message.content.text if isinstance(message.content, types.TextContent) else ""
        expect(message.role == "user" and "#42" in text and "性能" in text, "a message with both arguments in it")
        remark(
            "It says: please review pull request #42; say file by file what changed, what is wrong with it and how to",
            "improve it; mind performance (性能).",
        )

    async def subscription(self) -> None:
        self._log_changes = await self._listening.enter_async_context(self.client.listen(uris=[LOG]))
        await self.client.call("get_current_time")
        expect(await anext(self._log_changes) == ResourceUpdated(LOG), "an update")
        remark(
            "From here on, notifications/resources/updated comes whenever the server writes into its log, also between",
            "the frames of other steps.",
            "从这里开始，服务器每次写日志都会发送 notifications/resources/updated，其他步骤的帧之间也会出现。",
        )

    async def new_tool(self) -> None:
        async for _ in self._new_tools:
            if "echo" in {tool.name for tool in await self.client.list_tools()}:
                break
        expect(self.seen.received("notifications/tools/list_changed"), "list_changed")
        expect(not self.tutorial or self.seen.received("tools/list"), "the list, announced as tutorials teach it")
        expect(await self.client.call("echo", {"message": "你好，世界"}) == "你好，世界", "the text, echoed")
        remark("The text that was sent and came back says: hello, world.")
        if self.tutorial:
            remark(
                "Of the news, notifications/tools/list_changed is the standard's; tools/list as a notification is what",
                "only tutorials teach.",
                "notifications/tools/list_changed 是标准通知；把 tools/list 当作通知发送只见于教程。",
            )

    async def progress(self) -> None:
        heard: list[float] = []
        await self.client.call("build_project", {"steps": 4}, on_progress=lambda done, total, text: heard.append(done))
        expect(heard == [1, 2, 3, 4], "progress that rises to the end")
        if self.client.revision.name != TUTORIAL:
            remark("第 1 步完成 means that step 1 is done.")
        remark("开始构建，共 4 步 means that a build of 4 steps begins, 构建完成 that it is complete.")

    async def cancellation(self) -> None:
        begun = asyncio.Event()
        building = asyncio.create_task(
            self.client.call("build_project", {"steps": 100}, on_progress=lambda done, total, text: begun.set())
        )
        await asyncio.wait([building, asyncio.create_task(begun.wait())], return_when=asyncio.FIRST_COMPLETED)
        building.cancel()
        await asyncio.wait([building])
        expect(building.cancelled() and self.seen.sent("notifications/cancelled"), "a call that was given up")
        while "构建已取消" not in await self._log_text():
            await anext(self._log_changes)
        remark("The server's log has it, too: 构建已取消 means that the build was cancelled.")

    async def log_messages(self) -> None:
        await self.client.set_log_level("debug")
        self.logs.clear()
        await self.client.call("build_project", {"steps": 1})
        expect([message.level for message in self.logs] == ["info", "debug", "info"], "three log messages")

    async def end(self) -> None:
        await self._listening.aclose()
        await self.client.close()
        expect(not self.tutorial or (self.seen.sent("shutdown") and self.seen.sent("exit")), "shutdown and exit")
        expect(self.client.exit_code == 0, "a server that ends by itself, with status 0")
        if self.tutorial:
            remark(
                "shutdown and exit are in no revision of MCP: only tutorials teach them. The standard's way to end is",
                "to close the server's stdin.",
                "shutdown 和 exit 不属于任何修订版，只见于教程；标准的结束方式是关闭服务器的标准输入。",
            )
        remark(
            f"The server ended with status 0. On its stderr was: {self.client.stderr.strip()}",
            "That is: the MCP time server has started and speaks over stdio.",
        )

    async def _log_text(self) -> str:
        parts = (await self.client.read_resource(LOG)).contents
        return "".join(part.text for part in parts if isinstance(part, types.TextResourceContents))


async def main(revisions: Sequence[str]) -> int:
    started = time.monotonic()
    if sys.stdout.isatty():
        say("Very long frames are shortened on a terminal; they are whole in a file or a pipe: make demo | less")
    for revision in revisions:
        say(f"\n{'=' * 100}\n{revision}: {REVISIONS[revision]}\n{'=' * 100}", style="1")
        try:
            async with asyncio.timeout(SECONDS_PER_REVISION):
                await Tour(revision).walk()
        except TimeoutError:
            say(f"\nThis step did not end in time ({SECONDS_PER_REVISION} s for a revision).", style="1;31")
            return 1
        except (NotShown, ModelwireError) as error:
            say(f"\nThis step did not show what it should: {error}", style="1;31")
            return 1
    took = time.monotonic() - started
    say(f"\nEvery step under {', '.join(revisions)} showed what it should, in {took:.0f} s.", style="1;32")
    return 0


def chosen(arguments: Sequence[str]) -> Sequence[str]:
    """The revisions to show: those named, or all of this file."""
    unknown = [name for name in arguments if name not in REVISIONS]
    if unknown:
        sys.exit(f"The demo has no revision {unknown[0]!r}; it has {', '.join(REVISIONS)}.")
    return arguments or list(REVISIONS)


if __name__ == "__main__":
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that knows no Chinese
    sys.exit(asyncio.run(main(chosen(sys.argv[1:]))))
