"""How a server ends: the end of its input, signals, clients that vanish; nothing accepted is lost, nothing hangs."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.wire import MODERN, PATIENCE, PREFIX, ROOT, ChildTalk, child_talk, dumps, every_revision, opening

SERVER = Path(__file__).with_name("case_server.py")
SIGNALS = [signal.SIGINT, signal.SIGTERM]


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


async def release(fifo: Path, text: str = "released") -> None:
    await asyncio.to_thread(fifo.write_text, text)


def ended_by(number: signal.Signals) -> set[int]:
    return {0, 128 + number, -number, 130}


# --------------------------------------------------------------------------------------------------- the end of input


@every_revision
async def test_the_end_of_input_ends_the_process_with_zero(revision: str) -> None:
    async with child_talk(SERVER, revision=revision) as talk:
        talk.close_stdin()
        assert await talk.ended() == 0
        assert talk.stderr == b""


@pytest.mark.parametrize(("tool", "sign"), [("finish", "waiting"), ("block", "blocked")])
async def test_requests_accepted_before_the_end_of_input_are_answered(tool: str, sign: str, fifo: Path) -> None:
    async with child_talk(SERVER) as talk:
        slow = await talk.begin_call(tool, {"path": str(fifo)})
        quick = await talk.begin_call("echo", {"value": "quick"})
        await talk.says(sign)
        talk.close_stdin()
        assert (await quick.result())["content"][0]["text"] == "quick"
        assert not slow.done
        await release(fifo)
        assert (await slow.result())["content"][0]["text"] == "released"
        assert await talk.ended() == 0


@pytest.mark.parametrize("end", [b"\n", b"", b"\r\n"])
def test_everything_in_a_file_is_answered_its_last_line_ended_or_not(end: bytes) -> None:
    frames = [dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening("2025-11-25")})] + [
        dumps(
            {
                "jsonrpc": "2.0",
                "id": id,
                "method": "tools/call",
                "params": {"name": "echo", "arguments": {"value": "x"}},
            }
        )
        for id in range(1, 101)
    ]
    done = subprocess.run(
        [sys.executable, str(SERVER)], input=b"\n".join(frames) + end, capture_output=True, timeout=20
    )
    assert done.returncode == 0
    assert done.stdout.count(b'"result"') == 101
    assert done.stderr == b""


@pytest.mark.slow
@pytest.mark.parametrize(("tool", "sign"), [("hang", "hanging"), ("block_for_ever", "blocked")])
async def test_what_never_ends_is_given_up_and_the_exit_code_is_zero(tool: str, sign: str) -> None:
    async with child_talk(SERVER) as talk:
        await talk.begin_call(tool)
        await talk.says(sign)
        talk.close_stdin()
        assert await talk.ended() == 0
        assert b"Traceback" not in talk.stderr


async def test_an_open_subscription_does_not_hold_up_the_end_and_is_torn_down_in_order() -> None:
    async with child_talk(SERVER, revision=MODERN) as talk:
        pending = await talk.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        await talk.hear("notifications/subscriptions/acknowledged")
        talk.close_stdin()
        assert await talk.ended() == 0
        assert (await pending.result())["_meta"][PREFIX + "subscriptionId"] == pending.id
        assert [params["requestId"] for params in talk.heard("notifications/cancelled")] == [pending.id]
        last = [
            line for line in talk.output.splitlines() if b"notifications/cancelled" in line or b'"resultType"' in line
        ]
        assert b"notifications/cancelled" in last[-2]


async def test_exit_ends_the_process_with_zero_after_what_was_accepted(fifo: Path) -> None:
    async with child_talk(SERVER, revision="2024-11-05") as talk:
        slow = await talk.begin_call("block", {"path": str(fifo)})
        await talk.says("blocked")
        assert await talk.result("shutdown") == {}
        await talk.notify("exit")
        await release(fifo)
        assert (await slow.result())["content"][0]["text"] == "released"
        assert await talk.ended() == 0


# --------------------------------------------------------------------------------------------------- signals


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("kind", ["pipe", "terminal"])
async def test_one_signal_ends_an_idle_server_at_once(number: signal.Signals, kind: str) -> None:
    master, slave = pty.openpty()
    try:
        options: dict[str, Any] = {"stdin": slave, "opened": False} if kind == "terminal" else {}
        async with child_talk(SERVER, **options) as talk:
            if kind == "terminal":
                await talk.says("initialize")
            await one_signal_ends(talk, number)
    finally:
        os.close(master)
        os.close(slave)


async def one_signal_ends(talk: ChildTalk, number: signal.Signals) -> None:
    talk.process.send_signal(number)
    async with asyncio.timeout(4):
        code = await talk.ended()
    assert code in ended_by(number)
    assert b"Traceback" not in talk.stderr


async def test_ctrl_c_typed_at_a_terminal_ends_it() -> None:
    master, slave = pty.openpty()
    try:
        async with child_talk(SERVER, opened=False, stdin=slave, preexec_fn=lambda: _take_terminal(slave)) as talk:
            await talk.says("initialize")
            os.write(master, b"\x03")
            async with asyncio.timeout(4):
                assert await talk.ended() in ended_by(signal.SIGINT)
            assert b"Traceback" not in talk.stderr
    finally:
        os.close(master)
        os.close(slave)


def _take_terminal(fd: int) -> None:
    import fcntl
    import termios

    fcntl.ioctl(fd, termios.TIOCSCTTY, 0)


@pytest.mark.parametrize(
    ("number", "tool", "sign"),
    [
        (signal.SIGINT, "block_for_ever", "blocked"),
        (signal.SIGTERM, "hang", "hanging"),
        pytest.param(signal.SIGINT, "hang", "hanging", marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, "block_for_ever", "blocked", marks=pytest.mark.slow),
    ],
)
async def test_one_signal_ends_a_server_at_work(number: signal.Signals, tool: str, sign: str) -> None:
    async with child_talk(SERVER) as talk:
        await talk.begin_call(tool)
        await talk.says(sign)
        await one_signal_ends(talk, number)
        if tool == "hang":
            assert b"hung until" in talk.stderr  # its finally has run


@pytest.mark.parametrize("number", SIGNALS)
async def test_subscriptions_end_in_order_on_a_signal(number: signal.Signals) -> None:
    async with child_talk(SERVER, revision=MODERN) as talk:
        pending = await talk.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        await talk.hear("notifications/subscriptions/acknowledged")
        await one_signal_ends(talk, number)
        assert await pending.result()
        assert [params["requestId"] for params in talk.heard("notifications/cancelled")] == [pending.id]


@pytest.mark.parametrize("number", SIGNALS)
async def test_a_signal_right_after_the_start_leaves_no_traceback_of_ours(number: signal.Signals) -> None:
    async with child_talk(SERVER) as talk:
        call = await talk.begin_call("echo", {"value": "x"})
        await call.result()
        for _ in range(2):
            talk.process.send_signal(number)
        async with asyncio.timeout(4):
            code = await talk.ended()
        assert code in ended_by(number) | {1}
        assert b"modelwire" not in talk.stderr


# -------------------------------------------------------------------------------------------- clients that vanish


async def test_a_client_that_closes_both_ends_is_no_traceback() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(SERVER),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.write(
        dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening("2025-11-25")}) + b"\n"
    )
    await process.stdin.drain()
    await process.stdout.readline()
    process.stdout._transport.close()  # type: ignore[attr-defined]
    call = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "echo", "arguments": {"value": "x" * 100_000}}}
    for id in range(1, 20):
        process.stdin.write(dumps({**call, "id": id}) + b"\n")
    process.stdin.close()
    async with asyncio.timeout(PATIENCE):
        errors = await process.stderr.read()
        await process.wait()
    assert process.returncode in (0, 1)
    assert b"Traceback" not in errors


@pytest.mark.slow
def test_a_client_that_stops_reading_and_then_leaves_does_not_keep_the_server() -> None:
    call = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "repeat", "arguments": {"value": "x" * 1000}}}
    call["params"]["arguments"]["times"] = 1000  # type: ignore[index]
    opened = dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening("2025-11-25")})
    frames = [opened, *(dumps({**call, "id": id}) for id in range(1, 6))]
    with subprocess.Popen(
        [sys.executable, str(SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"\n".join(frames) + b"\n")
        process.stdin.close()  # and nothing is ever read
        assert process.wait(20) in (0, 1)
        assert b"Traceback" not in process.stderr.read()


STUBBORN = """
import asyncio
from modelwire import Server

server = Server("stubborn")

@server.tool
async def stay() -> str:
    print("staying", flush=True)
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

server.run()
"""


@pytest.mark.slow
@pytest.mark.parametrize("end", ["eof", "sigint", "sigterm"])
async def test_a_handler_that_ignores_its_cancellation_does_not_keep_the_server_alive(end: str) -> None:
    server = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        STUBBORN,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert server.stdin is not None
    assert server.stderr is not None
    meta = '{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'
    call = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"stay","_meta":' + meta + "}}\n"
    server.stdin.write(call.encode())
    assert await server.stderr.readline() == b"staying\n"
    if end == "eof":
        server.stdin.close()
    else:
        server.send_signal(signal.SIGINT if end == "sigint" else signal.SIGTERM)
    _, said = await asyncio.wait_for(server.communicate(), 30)
    assert server.returncode == (130 if end == "sigint" else 0)
    assert b"do not end although they are cancelled" in said
