"""mcp-time-server: a small server that shows tools, a resource, a prompt, progress, cancellation, logs and changes.

    python examples/time_server.py [--echo-after SECONDS] [--announce-lists]
    mw run examples/time_server.py                      (imports this file: the options keep their defaults)

A client starts it by itself (`time_client.py` beside this file does); everything is said over standard input and
output. Importing this file starts nothing: `server` below is ready to be run, or to be given to a `Client` in the same
process.
"""

from __future__ import annotations

import argparse
import asyncio
import difflib
import io
import math
import sys
import zoneinfo
from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Annotated, Literal, NoReturn

from msgspec import Meta

from modelwire import Context, Observer, Server, ToolError

LOG_URI = "file:///internal/server_log.txt"
LOG_LINES = 1000
STEP_SECONDS = 0.2
# China has had no summer time since 1991, so that this needs no time zone database.
SHANGHAI = timezone(timedelta(hours=8), "Asia/Shanghai")


class EchoLater(Observer):
    """Registers the tool `echo` some time after the first message of the first client.

    An observer sees every message, on the event loop that serves. So the countdown begins when somebody is there to be
    told, needs no thread, and works the same however the server is started.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._timer: asyncio.TimerHandle | None = None

    def frame(self, direction: Literal["in", "out"], frame: bytes) -> None:
        if self._timer is None:
            say_started()
            self._timer = asyncio.get_running_loop().call_later(self.seconds, add_echo)


started: list[bool] = []
echo_later = EchoLater(5.0)
server = Server(
    "mcp-time-server",
    version="0.1.0",
    instructions="提供当前时间；其他时区用 get_current_time_v2。",
    observers=[echo_later],
)

# ---------------------------------------------------------------------------------------------- the running log

log_lines: deque[str] = deque(maxlen=LOG_LINES)


def now() -> datetime:
    """The current time, in UTC; the one clock of this program."""
    return datetime.now(UTC)


def in_words(moment: datetime) -> str:
    """A moment as 2026/1/2 00:03:04: month and day without zeros, 24 hours."""
    return f"{moment.year}/{moment.month}/{moment.day} {moment:%H:%M:%S}"


def note(what: str) -> None:
    """Write a line into the log, and tell whoever subscribed to it."""
    log_lines.append(f"[{in_words(now().astimezone(SHANGHAI))}] {what}")
    server.changed(LOG_URI)


@server.resource(LOG_URI, name="服务器内部日志", description="运行以来的日志，最新的在最后", mime_type="text/plain")
async def server_log() -> str:
    return "".join(f"{line}\n" for line in log_lines.copy())  # a worker thread may be adding one


# ---------------------------------------------------------------------------------------------- the time


@server.tool
async def get_current_time() -> str:
    """获取当前的系统日期和时间"""
    note("get_current_time 被调用")
    return f"当前系统时间是：{in_words(now().astimezone(SHANGHAI))}"


# A new parameter would break everybody who calls the tool above. So the new signature is a new tool beside it, and the
# old one goes on as it was. A plain `def` runs in a worker thread: this one may read files.
@server.tool
def get_current_time_v2(timezone: str, ctx: Context) -> str:
    """获取指定时区的当前日期和时间

    Args:
        timezone: IANA 时区名，例如 Asia/Shanghai、Europe/London 或 UTC
    """
    ctx.log.debug(f"查找时区 {timezone}", logger="time")
    there = now().astimezone(find_zone(timezone))
    note(f"get_current_time_v2 被调用，时区 {timezone}")
    return f"{timezone} 的当前时间是：{in_words(there)}"


def find_zone(name: str) -> tzinfo:
    """Return a time zone by its IANA name.

    Raises:
        ToolError: There is none, in words that help a model to ask again.
    """
    if name == "Asia/Shanghai":
        return SHANGHAI
    if name == "UTC":
        return UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        pass
    known = sorted(zoneinfo.available_timezones())
    if not known:
        raise ToolError(
            f"这台机器上没有时区数据库，所以找不到 {name[:80]!r}。现在可用的只有 Asia/Shanghai 和 UTC；"
            "在服务器上运行 pip install tzdata 后，所有 IANA 时区都可用。"
        )
    by_lower = {zone.lower(): zone for zone in known}
    near = [by_lower[found] for found in difflib.get_close_matches(name[:80].lower(), by_lower, n=3)]
    hint = f"是不是想用 {'、'.join(near)}？" if near else ""
    raise ToolError(f"没有名为 {name[:80]!r} 的时区。{hint}请给出 IANA 时区名，例如 Asia/Shanghai 或 Europe/London。")


# ---------------------------------------------------------------------------------------------- a tool that comes later


async def echo(message: str) -> str:
    """回显输入的任何文本

    Args:
        message: 需要回显的文本
    """
    note(f"echo 被调用，{len(message)} 个字符")
    return message


def add_echo() -> None:
    """Register `echo`; the server tells its clients that the list of tools changed."""
    server.add_tool(echo)
    note("新工具 echo 已注册")


# ---------------------------------------------------------------------------------------------- work that takes a while


@server.tool
async def build_project(ctx: Context, steps: Annotated[int, Meta(ge=1, le=1000)] = 5) -> str:
    """构建项目，逐步报告进度，可以随时取消

    Args:
        steps: 构建分几步，每步约 0.2 秒
    """
    ctx.log.info(f"开始构建，共 {steps} 步", logger="build")
    note(f"构建开始，共 {steps} 步")
    try:
        for step in range(1, steps + 1):
            await asyncio.sleep(STEP_SECONDS)
            ctx.progress(step, steps, f"第 {step} 步完成")
            ctx.log.debug({"step": step, "of": steps}, logger="build")
    except asyncio.CancelledError:
        note("构建已取消")
        raise
    ctx.log.info("构建完成", logger="build")
    note("构建完成")
    return f"构建完成，共 {steps} 步"


# ---------------------------------------------------------------------------------------------- a prompt


@server.prompt
async def code_review(pr_number: int, focus: str | None = None) -> str:
    """生成代码审查的提示词

    Args:
        pr_number: 拉取请求的编号
        focus: 重点关注什么，例如 安全 或 性能
    """
    text = f"请审查拉取请求 #{pr_number}：逐个文件说明改了什么、有什么问题、如何改进。"
    return text if focus is None else f"{text}请重点关注：{focus}。"


# ---------------------------------------------------------------------------------------------- the program


class ArgumentParser(argparse.ArgumentParser):
    """Ends with status 1 when the command line is wrong: to whoever starts servers, that is a failed start."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(1, f"MCP 时间服务器启动失败：{message}\n")


def seconds(text: str) -> float:
    value = float(text)
    if not (math.isfinite(value) and value >= 0):
        raise ValueError
    return value


def say_started() -> None:
    """Say on stderr, once, that the server runs: at its start, or with the first message where `main` is not run."""
    if not started:
        started.append(True)
        if isinstance(sys.stderr, io.TextIOWrapper):
            sys.stderr.reconfigure(encoding="utf-8")  # whatever the locale says
        print("MCP 时间服务器已启动，通过 STDIO 通信。", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description="MCP 时间服务器，通过 STDIO 通信")
    parser.add_argument(
        "--echo-after", type=seconds, default=echo_later.seconds, metavar="SECONDS",
        help="how long after the first message the tool echo appears; default 5",
    )  # fmt: skip
    parser.add_argument(
        "--announce-lists", action="store_true",
        help="also send changed lists as the notifications that some tutorials teach; no revision has them",
    )  # fmt: skip
    options = parser.parse_args(arguments)
    echo_later.seconds = options.echo_after
    server.announce_lists = options.announce_lists
    note("服务器启动")
    say_started()
    try:
        server.run()
    except Exception as error:
        print(f"MCP 时间服务器出错：{error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
