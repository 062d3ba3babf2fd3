"""A server as a process: lines, encodings, what may be on either side of it, what its tools may do to it."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.wire import (
    MODERN,
    PATIENCE,
    REVISIONS,
    ROOT,
    Talk,
    child_talk,
    dumps,
    every_revision,
    modern_meta,
    opening,
)

pytestmark = pytest.mark.slow  # programs are started, or thousands of frames sent; `make test` does it

SERVER = Path(__file__).with_name("case_server.py")
INITIALIZE = dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening("2025-11-25")})
PING = dumps({"jsonrpc": "2.0", "id": "ping", "method": "ping"})
PONG = {"jsonrpc": "2.0", "id": "ping", "result": {}}


async def still_works(talk: Talk) -> None:
    assert await talk.text("echo", {"value": "still here"}) == "still here"
    assert talk.inbox == []


def run(data: bytes, *arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Run the server on some input, to its end."""
    given = {"input": data, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **given.pop("env", {})}
    return subprocess.run([sys.executable, *arguments, str(SERVER)], env=environment, timeout=20, **given)


def answers(output: bytes) -> list[Any]:
    assert output == b"" or output.endswith(b"\n")
    return [json.loads(line) for line in output.splitlines()]


# --------------------------------------------------------------------------------------------------- lines


@every_revision
async def test_every_line_that_is_no_message_gets_its_error_and_the_next_line_works(revision: str) -> None:
    lines = [
        b'{"jsonrpc":"2.0","id":1,"method":',
        b"nope",
        b"\xff\xfe",
        b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"x":' + b"[" * 2000 + b"]" * 2000 + b"}}",
        b'{"jsonrpc":"2.0","id":6,"method":"ping","params":{"x":NaN}}',
        b"\x00\x00\x00",
        b'"text"',
        b"[1,",
    ]
    async with child_talk(SERVER, revision=revision) as talk:
        for line in lines:
            answer = await talk.answer_to(line)
            assert answer["error"]["code"] in (-32700, -32600)
            await still_works(talk)
        assert talk.stderr.count(b"Traceback") == 0


async def test_line_ends_blank_lines_and_a_bom_are_tolerated() -> None:
    async with child_talk(SERVER) as talk:
        for data in (
            PING + b"\r\n",
            b"\n\n   \n\r\n\t\r\n" + PING + b"\n",
            b"\xef\xbb\xbf" + PING + b"\n",
            b"  " + PING + b"  \n",
        ):
            await talk.write_bytes(data)
            assert await talk.take(lambda message: True) == PONG
        assert await talk.quiet()


async def test_only_lf_ends_a_line_and_a_bom_inside_a_string_is_kept() -> None:
    value = "a\u2028b\u2029c\u0085d\ufeffe\x0b\x0c"
    async with child_talk(SERVER) as talk:
        frame = dumps(
            {
                "jsonrpc": "2.0",
                "id": 9,
                "method": "tools/call",
                "params": {"name": "echo", "arguments": {"value": value}},
            }
        )
        assert "\u2028".encode() in frame
        answer = await talk.answer_to(frame, valid=True)
        assert answer["result"]["content"][0]["text"] == value


async def test_text_arrives_intact_one_byte_at_a_time() -> None:
    async with child_talk(SERVER) as talk:
        frame = dumps(
            {
                "jsonrpc": "2.0",
                "id": 9,
                "method": "tools/call",
                "params": {"name": "echo", "arguments": {"value": "日本😀"}},
            }
        )
        talk.ledger.sent(frame)
        for byte in frame + b"\n":
            await talk.write_bytes(bytes([byte]))
        answer = await talk.take(lambda message: message.get("id") == 9)
        assert answer["result"]["content"][0]["text"] == "日本😀"


async def test_many_messages_in_one_write_are_all_answered() -> None:
    async with child_talk(SERVER) as talk:
        frames = b"".join(
            dumps({"jsonrpc": "2.0", "id": f"n{number}", "method": "ping"}) + b"\n" for number in range(500)
        )
        await talk.write_bytes(frames)
        ids = {(await talk.take(lambda message: True))["id"] for _ in range(500)}
        assert ids == {f"n{number}" for number in range(500)}


async def test_long_lines_pass_both_ways() -> None:
    async with child_talk(SERVER) as talk:
        value = "日x" * 150_000
        assert await talk.text("echo", {"value": value}) == value
        assert len(await talk.text("repeat", {"value": "x" * 1024, "times": 5 * 1024})) == 5 * 1024 * 1024
        await still_works(talk)


async def test_a_line_above_max_message_costs_only_itself_and_names_the_setting() -> None:
    async with child_talk(SERVER, "100000") as talk:
        call = {"jsonrpc": "2.0", "id": 9, "method": "tools/call"}
        answer = await talk.answer_to({**call, "params": {"name": "echo", "arguments": {"value": "x" * 200_000}}})
        assert answer["error"]["code"] in (-32600, -32700)
        assert "max_message" in answer["error"]["message"]
        assert answer.get("id") in (None, 9)
        await still_works(talk)


async def test_whatever_the_locale_text_is_utf_8() -> None:
    env = {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    async with child_talk(SERVER, env=env) as talk:
        assert await talk.text("echo", {"value": "日本😀é"}) == "日本😀é"
        assert await talk.text("noise", {"kind": "printed"}) == "made printed"


@pytest.mark.parametrize("python", [["-W", "error"], ["-X", "dev"], ["-O"], ["-u"], ["-I", "-W", "error"]])
async def test_however_python_is_started_nothing_is_said_on_stderr(python: list[str]) -> None:
    async with child_talk(SERVER, python=python) as talk:
        await still_works(talk)
        talk.close_stdin()
        assert await talk.ended() == 0
        assert talk.stderr == b""


# --------------------------------------------------------------------------------------------------- stray output


async def test_what_tools_print_goes_to_stderr_and_every_call_is_answered() -> None:
    async with child_talk(SERVER) as talk:
        for kind in ("printed", "raw", "buffered", "child", "spawn pool", "fork pool", "forked"):
            for tool in ("noise", "inline_noise"):
                assert await talk.text(tool, {"kind": kind}) == f"made {kind}"
        await still_works(talk)
        talk.close_stdin()
        assert await talk.ended() == 0
    assert b"stray" not in talk.output
    for text in ("printed", "written", "raw", "buffer", "original", "child", "system", "from a worker", "forked"):
        assert f"stray: {text}".encode() in talk.stderr


async def test_a_forked_child_ends_by_the_signal_that_it_is_sent_and_the_server_stays() -> None:
    async with child_talk(SERVER) as talk:
        for tool in ("noise", "inline_noise"):
            assert await talk.text(tool, {"kind": "terminated"}) == "made terminated"
        await still_works(talk)


@pytest.mark.parametrize("kind", ["sys.stdin", "buffer", "input", "os.read", "child"])
async def test_who_reads_stdin_sees_its_end_and_swallows_no_message(kind: str) -> None:
    async with child_talk(SERVER) as talk:
        stolen = await talk.begin_call("steal", {"kind": kind})
        calls = [await talk.begin_call("echo", {"value": str(number)}) for number in range(20)]
        assert (await stolen.result())["content"][0]["text"] == "''"
        for call in calls:
            await call.result()
        await still_works(talk)


@pytest.mark.parametrize("revision", [REVISIONS[0], MODERN])
async def test_no_tool_ends_the_process(revision: str) -> None:
    async with child_talk(SERVER, revision=revision) as talk:
        for kind in ("exit", "cancelled", "self", "task", "base"):
            assert (await talk.call("leave", {"kind": kind}))["isError"] is True
            await still_works(talk)
        talk.close_stdin()
        assert await talk.ended() == 0


# -------------------------------------------------------------------------------------------- both eras, one process


async def test_one_process_serves_both_eras_at_once() -> None:
    async with child_talk(SERVER, revision="2024-11-05") as talk:
        old = await talk.begin_call("echo", {"value": "old"})
        new = await talk.begin_call("echo", {"value": "new"}, revision=MODERN)
        assert "resultType" not in await old.result()
        assert (await new.result())["resultType"] == "complete"


async def test_a_probe_before_initialize_is_answered() -> None:
    async with child_talk(SERVER, revision="2025-06-18", opened=False) as talk:
        assert (await talk.result("server/discover", revision=MODERN))["supportedVersions"] == [MODERN]
        await talk.open()
        await still_works(talk)


# -------------------------------------------------------------------------------------------- kinds of stdin and stdout


def test_input_from_a_pipe_that_ends_at_once_is_answered() -> None:
    done = run(INITIALIZE + b"\n")
    assert done.returncode == 0
    assert [answer["id"] for answer in answers(done.stdout)] == [0]


def test_input_and_output_may_be_files(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(INITIALIZE + b"\n" + PING + b"\n")
    with (tmp_path / "in").open("rb") as stdin, (tmp_path / "out").open("wb") as stdout:
        done = run(b"", input=None, stdin=stdin, stdout=stdout)
    assert done.returncode == 0
    assert [answer["id"] for answer in answers((tmp_path / "out").read_bytes())] == [0, "ping"]


def test_output_to_a_file_with_stderr_behind_it_loses_nothing(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(INITIALIZE + b"\n" + PING + b"\n")
    with (tmp_path / "in").open("rb") as stdin, (tmp_path / "out.log").open("wb") as stdout:
        done = run(b"", input=None, stdin=stdin, stdout=stdout, stderr=subprocess.STDOUT)
    assert done.returncode == 0
    assert [answer["id"] for answer in answers((tmp_path / "out.log").read_bytes())] == [0, "ping"]


def test_a_file_is_appended_to_where_it_was_opened_so(tmp_path: Path) -> None:
    log = tmp_path / "out.log"
    log.write_bytes(b'{"before":1}\n')
    with log.open("ab") as stdout:
        done = run(PING + b"\n", stdout=stdout)
    assert done.returncode == 0
    assert answers(log.read_bytes()) == [{"before": 1}, PONG]


def test_dev_null_on_either_side_ends_it_at_once() -> None:
    done = run(b"", input=None, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (0, b"")
    assert run(INITIALIZE + b"\n", stdout=subprocess.DEVNULL).returncode == 0
    assert run(b"", input=None, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL).returncode == 0


def test_a_closed_stdin_or_stdout_is_no_traceback() -> None:
    for redirection in ("<&-", ">&-", "<&- >&-"):
        command = ["sh", "-c", f'exec "$0" "$1" {redirection}', sys.executable, str(SERVER)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=20)
        assert done.stdout == b""
        assert b"Traceback" not in done.stderr


async def test_a_fifo_that_stays_open_is_answered_line_by_line(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writing = os.open(fifo, os.O_RDWR)
    reading = os.open(fifo, os.O_RDONLY)
    try:
        async with child_talk(SERVER, opened=False, stdin=reading) as talk:
            for _ in range(3):
                os.write(writing, PING + b"\n")
                assert await talk.take(lambda message: True) == PONG
            os.close(writing)
            os.close(reading)
            writing = reading = -1
            assert await talk.ended() == 0
    finally:
        for fd in (writing, reading):
            if fd >= 0:
                os.close(fd)


async def test_a_socket_may_be_both_ends() -> None:
    ours, theirs = socket.socketpair()
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(SERVER), stdin=theirs, stdout=theirs, stderr=subprocess.PIPE
    )
    theirs.close()
    reader, writer = await asyncio.open_connection(sock=ours)
    async with asyncio.timeout(PATIENCE):
        writer.write(INITIALIZE + b"\n" + PING + b"\n")
        assert json.loads(await reader.readline())["id"] == 0
        assert json.loads(await reader.readline()) == PONG
        writer.write_eof()
        assert await reader.read() == b""
        assert await process.wait() == 0
    assert process.stderr is not None
    assert await process.stderr.read() == b""
    writer.close()
    await writer.wait_closed()


async def test_on_a_terminal_it_says_what_it_awaits_and_answers_what_is_typed() -> None:
    master, slave = pty.openpty()
    flags = fcntl.fcntl(slave, fcntl.F_GETFL)
    try:
        async with child_talk(SERVER, opened=False, stdin=slave) as talk:
            await talk.says("initialize")
            os.write(master, PING + b"\n")
            assert await talk.take(lambda message: True) == PONG
            assert fcntl.fcntl(slave, fcntl.F_GETFL) == flags
            os.write(master, b"\x04")  # Ctrl-D
            assert await talk.ended() == 0
            assert b"Traceback" not in talk.stderr
        assert fcntl.fcntl(slave, fcntl.F_GETFL) == flags
    finally:
        os.close(master)
        os.close(slave)


async def test_a_client_that_does_not_read_does_not_stop_the_server_from_working() -> None:
    async with child_talk(SERVER) as talk:
        os.kill(talk.process.pid, 0)
        transport = talk.process.stdout._transport  # type: ignore[union-attr]
        transport.pause_reading()
        calls = [await talk.begin_call("repeat", {"value": "x" * 1000, "times": 200}) for _ in range(20)]
        await talk.begin_call("noise", {"kind": "printed"})
        await talk.says("stray: printed")  # stdout is full by now, and the loop runs all the same
        transport.resume_reading()
        for call in calls:
            assert len((await call.result())["content"][0]["text"]) == 200_000


def test_a_request_of_2026_07_28_needs_no_opening() -> None:
    frame = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": modern_meta()}}
    done = run(dumps(frame) + b"\n")
    assert done.returncode == 0
    (answer,) = answers(done.stdout)
    assert answer["result"]["resultType"] == "complete"
