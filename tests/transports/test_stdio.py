"""Standard streams of every kind, each in a process of its own."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import tty
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

CHILD = Path(__file__).with_name("stdio_child.py")
FRAMES = b'{"a":1}\n{"b":"\xe6\x97\xa5"}\n{"c":3}\n'


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def start(stack: ExitStack, *behaviour: str, **streams: Any) -> subprocess.Popen[bytes]:
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    command = [sys.executable, "-W", "error", str(CHILD), *behaviour]
    child = stack.enter_context(subprocess.Popen(command, **streams))
    stack.callback(child.kill)
    return child


def run(*behaviour: str, given: bytes = b"", **streams: Any) -> tuple[bytes, bytes]:
    with ExitStack() as stack:
        child = start(stack, *behaviour, **streams)
        out, err = child.communicate(given)
        assert child.returncode == 0, (err or b"").decode()
        return out, err


def read_all(fd: int) -> bytes:
    """Read until the other end is closed; a terminal tells that with EIO."""
    found = bytearray()
    while True:
        try:
            chunk = os.read(fd, 4096)
        except OSError:
            chunk = b""
        if not chunk:
            return bytes(found)
        found += chunk


def feed(fd: int, data: bytes, stack: ExitStack) -> None:
    """Write from a thread: the child may only read later."""
    thread = threading.Thread(target=lambda: (os.write(fd, data), os.close(fd)))
    thread.start()
    stack.callback(thread.join)


# ------------------------------------------------------------------ where input comes from


def input_pipe(stack: ExitStack, tmp_path: Path) -> int:
    reading, writing = os.pipe()
    feed(writing, FRAMES, stack)
    return reading


def input_fifo(stack: ExitStack, tmp_path: Path) -> int:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    writing = os.open(path, os.O_WRONLY)
    os.set_blocking(reading, True)
    feed(writing, FRAMES, stack)
    return reading


def input_file(stack: ExitStack, tmp_path: Path) -> int:
    path = tmp_path / "input"
    path.write_bytes(FRAMES)
    return os.open(path, os.O_RDONLY)


def input_socket(stack: ExitStack, tmp_path: Path) -> int:
    ours, theirs = socket.socketpair()
    feed(ours.detach(), FRAMES, stack)
    return theirs.detach()


def input_terminal(stack: ExitStack, tmp_path: Path) -> int:
    master, slave = os.openpty()
    stack.callback(os.close, master)
    os.write(master, FRAMES + b"\x04")
    return slave


INPUTS = [input_pipe, input_fifo, input_file, input_socket, input_terminal]


@pytest.mark.parametrize("source", INPUTS)
def test_stdin_may_be_of_any_kind(source: Callable[[ExitStack, Path], int], stack: ExitStack, tmp_path: Path) -> None:
    stdin = source(stack, tmp_path)
    stack.callback(os.close, stdin)
    flags = fcntl.fcntl(stdin, fcntl.F_GETFL)
    assert run("echo", stdin=stdin)[0] == FRAMES
    assert fcntl.fcntl(stdin, fcntl.F_GETFL) == flags


def test_an_empty_stdin_is_the_end() -> None:
    assert run("echo", stdin=subprocess.DEVNULL) == (b"", b"")


def test_a_closed_stdin_is_the_end(stack: ExitStack) -> None:
    command = ["sh", "-c", 'exec "$@" <&-', "sh", sys.executable, "-W", "error", str(CHILD), "after_end"]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b'{"after":"the end"}\n'


def test_a_fifo_that_stays_open_is_answered_line_by_line(stack: ExitStack, tmp_path: Path) -> None:
    # What `tail -f requests | server` is to the server.
    child = start(stack, "echo", stdin=(reading := input_fifo_kept_open(stack, tmp_path))[0])
    os.close(reading[0])
    assert child.stdout is not None
    for line in FRAMES.splitlines(keepends=True):
        os.write(reading[1], line)
        assert child.stdout.readline() == line
    os.close(reading[1])
    assert child.wait() == 0


def input_fifo_kept_open(stack: ExitStack, tmp_path: Path) -> tuple[int, int]:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reading, True)
    return reading, os.open(path, os.O_WRONLY)


def test_a_terminal_is_known_as_one(stack: ExitStack) -> None:
    master, slave = os.openpty()
    stack.callback(os.close, master)
    stack.callback(os.close, slave)
    assert run("terminal", stdin=slave)[1] == b"terminal True\n"
    assert run("terminal")[1] == b"terminal False\n"


# ------------------------------------------------------------------ where output goes


def output_pipe(stack: ExitStack, tmp_path: Path) -> tuple[int, int]:
    return os.pipe()


def output_fifo(stack: ExitStack, tmp_path: Path) -> tuple[int, int]:
    return input_fifo_kept_open(stack, tmp_path)


def output_socket(stack: ExitStack, tmp_path: Path) -> tuple[int, int]:
    ours, theirs = socket.socketpair()
    return ours.detach(), theirs.detach()


def output_terminal(stack: ExitStack, tmp_path: Path) -> tuple[int, int]:
    master, slave = os.openpty()
    tty.setraw(slave)
    return master, slave


OUTPUTS = [output_pipe, output_fifo, output_socket, output_terminal]


@pytest.mark.parametrize("target", OUTPUTS)
def test_stdout_may_be_of_any_kind(
    target: Callable[[ExitStack, Path], tuple[int, int]], stack: ExitStack, tmp_path: Path
) -> None:
    ours, theirs = target(stack, tmp_path)
    stack.callback(os.close, ours)
    flags = fcntl.fcntl(theirs, fcntl.F_GETFL)
    child = start(stack, "echo", stdout=theirs)
    assert child.stdin is not None
    child.stdin.write(FRAMES)
    child.stdin.flush()
    assert os.read(ours, 4096) == FRAMES
    assert fcntl.fcntl(theirs, fcntl.F_GETFL) == flags, "while the stream is open"
    child.stdin.close()
    assert child.wait() == 0
    assert fcntl.fcntl(theirs, fcntl.F_GETFL) == flags
    os.close(theirs)
    assert read_all(ours) == b""


def test_stdout_may_be_a_file_that_is_appended_to_where_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "output"
    with path.open("wb", buffering=0) as output:
        output.write(b"before\n")
        run("echo", given=FRAMES, stdout=output)
        output.write(b"behind\n")
    assert path.read_bytes() == b"before\n" + FRAMES + b"behind\n"


def test_a_file_shared_with_stderr_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "out.log"
    with path.open("wb") as output:
        run("shared", stdout=output, stderr=subprocess.STDOUT)
    assert_shared_output_is_complete(path.read_bytes())


def test_stdout_may_be_dev_null() -> None:
    assert run("echo", given=FRAMES, stdout=subprocess.DEVNULL)[1] == b""


def test_a_closed_stdout_is_connection_lost(stack: ExitStack) -> None:
    command = ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-W", "error", str(CHILD), "unheard"]
    done = subprocess.run(command, input=b"[1]\n[2]\n", capture_output=True, check=True)
    assert done.stderr.decode().splitlines()[1].startswith("send: cannot write to stdout")


@pytest.mark.parametrize(
    ("target", "way"),
    [*((target, "as usual") for target in OUTPUTS), (output_pipe, "cautious"), (output_fifo, "cautious")],
)
def test_a_full_stdout_never_blocks_the_loop(
    target: Callable[[ExitStack, Path], tuple[int, int]], way: str, stack: ExitStack, tmp_path: Path
) -> None:
    ours, theirs = target(stack, tmp_path)
    stack.callback(os.close, ours)
    child = start(stack, "flood", way, stdout=theirs)
    os.close(theirs)
    assert child.stderr is not None
    assert child.stderr.readline() == b"loop runs True\n"
    assert child.stdin is not None
    child.stdin.close()
    assert read_all(ours) == b"".join(b'"%d' % number + b"x" * 100_000 + b'"\n' for number in range(40))
    assert child.wait() == 0


def assert_shared_output_is_complete(output: bytes) -> None:
    assert re.findall(rb"<<(\d+)>>", output) == [b"%d" % number for number in range(2000)]
    frames = b"".join(b'"%d' % number + b"x" * 50_000 + b'"\n' for number in range(20))
    assert re.sub(rb"<<\d+>>", b"", output) == frames


@pytest.mark.parametrize("target", OUTPUTS)
def test_stderr_on_the_same_description_stays_blocking_and_complete(
    target: Callable[[ExitStack, Path], tuple[int, int]], stack: ExitStack, tmp_path: Path
) -> None:
    ours, theirs = target(stack, tmp_path)
    stack.callback(os.close, ours)
    child = start(stack, "shared", stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
    os.close(theirs)
    assert_shared_output_is_complete(read_all(ours))  # in small pieces: a slow reader
    assert child.wait() == 0


def test_one_socket_may_be_stdin_and_stdout(stack: ExitStack) -> None:
    ours, theirs = socket.socketpair()
    child = start(stack, "echo", stdin=theirs, stdout=theirs)
    theirs.close()
    with ours:
        ours.sendall(FRAMES)
        ours.shutdown(socket.SHUT_WR)
        assert read_all(ours.fileno()) == FRAMES
    assert child.wait() == 0


def test_a_reader_that_is_gone_ends_sending_and_receiving(stack: ExitStack) -> None:
    child = start(stack, "unheard")
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdin.write(b"[1]\n")
    child.stdin.flush()
    assert child.stderr.readline() == b"told\n"
    child.stdout.close()
    child.stdin.write(b"[2]\n")
    child.stdin.flush()
    assert child.stderr.readline().startswith(b"send: stdout is closed: its reader is gone")
    assert child.stderr.readline().startswith(b"receive: stdout is closed: its reader is gone")
    child.stdin.close()
    assert child.wait() == 0


# ------------------------------------------------------------------ what is said


def test_characters_survive_one_byte_at_a_time(stack: ExitStack) -> None:
    child = start(stack, "echo", bufsize=0)
    assert child.stdin is not None
    assert child.stdout is not None
    line = '{"text":"日本😀"}\n'.encode()
    for byte in line:
        child.stdin.write(bytes([byte]))
    assert child.stdout.readline() == line
    child.stdin.close()
    assert child.wait() == 0


@pytest.mark.parametrize("locale", ["C", "POSIX", "en_US.ISO-8859-1", "zh_CN.GBK"])
def test_the_locale_does_not_matter(locale: str) -> None:
    env = {**os.environ, "LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    line = '{"text":"日本😀é"}\n'.encode()
    assert run("echo", given=line, env=env)[0] == line


def test_marks_blank_lines_and_windows_line_ends_are_tolerated() -> None:
    given = b'\xef\xbb\xbf{"a":1}\r\n\r\n\n  \n\xef\xbb\xbf{"b":2}\n{"c":"\xef\xbb\xbf"}'
    assert run("echo", given=given)[0] == b'{"a":1}\n{"b":2}\n{"c":"\xef\xbb\xbf"}\n'


def test_a_line_of_five_mebibytes_is_one_frame() -> None:
    given = b"{" + b"x" * (5 * 1024 * 1024) + b"}\n{}\n"
    assert run("echo", given=given)[0] == given


def test_a_line_above_max_message_costs_only_itself() -> None:
    assert run("small", given=b"[1]\n" + b"x" * 300_000 + b"\n[2]\n")[0] == b'[1]\n{"limit":100}\n[2]\n'


def test_frames_can_be_sent_after_the_end_of_stdin() -> None:
    assert run("after_end", given=b"[1]")[0] == b'{"after":"the end"}\n'


# ------------------------------------------------------------------ the process around it


def test_stray_output_goes_to_stderr_and_stray_input_is_empty() -> None:
    out, err = run("stray", given=FRAMES)
    assert out == b"before\n" + FRAMES + b"after\n"
    said = err.decode().splitlines()
    assert said == ["printed", "raw", "from a child", "read ''", "from a worker 1", "stdin '' 0", "last"]


def test_closing_gives_everything_back_and_leaks_no_descriptor() -> None:
    # The first line was read by the program itself; sys.stdin had read the second one ahead.
    out, err = run("restore", given=b"[1]\n[2]\n")
    assert out == b"[1] [2]\nprinted at the end\n"
    assert err == b"refused\nrefused\nrefused\n"


@pytest.mark.parametrize("target", [output_pipe, output_socket])
def test_a_forked_worker_that_lives_on_does_not_hold_the_connection_open(
    target: Callable[[ExitStack, Path], tuple[int, int]], stack: ExitStack, tmp_path: Path
) -> None:
    ours, theirs = target(stack, tmp_path)
    stack.callback(os.close, ours)
    child = start(stack, "fork", stdout=theirs)
    os.close(theirs)
    assert child.stderr is not None
    stack.callback(os.kill, int(child.stderr.readline()), signal.SIGKILL)
    assert child.stdin is not None
    child.stdin.write(FRAMES)
    child.stdin.close()
    assert read_all(ours) == FRAMES
    assert child.wait() == 0


@pytest.mark.parametrize("stdin", ["pipe", "terminal"])
def test_one_interrupt_ends_a_server_that_waits_for_input(stdin: str, stack: ExitStack) -> None:
    if stdin == "terminal":
        master, slave = os.openpty()
        stack.callback(os.close, master)
        stack.callback(os.close, slave)
        child = start(stack, "wait", stdin=slave)
    else:
        child = start(stack, "wait")
    assert child.stderr is not None
    assert child.stderr.readline() == b"ready\n"
    child.send_signal(signal.SIGINT)
    assert child.wait() == 130
    assert child.stderr.read() == b""


def test_streams_that_were_held_and_never_opened_are_given_back() -> None:
    code = (
        "import os, sys\nfrom modelwire.transports.stdio import held_stdio\n"
        "with held_stdio():\n    print('inside')\n    assert os.read(0, 1) == b''\nprint(sys.stdin.read())\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], input=b"kept", capture_output=True)
    assert (ran.stdout, ran.stderr) == (b"kept\n", b"inside\n")


def test_the_first_stream_that_is_opened_takes_what_was_held() -> None:
    code = (
        "import asyncio\nfrom modelwire.transports.stdio import held_stdio, open_stdio\n"
        "async def main():\n"
        "    with held_stdio():\n        print('inside')\n        stream = await open_stdio()\n"
        "    await stream.send(await stream.receive())\n    await stream.aclose()\n"
        "asyncio.run(main())\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], input=b'{"a":1}\n', capture_output=True)
    assert (ran.stdout, ran.stderr) == (b'{"a":1}\n', b"inside\n")
