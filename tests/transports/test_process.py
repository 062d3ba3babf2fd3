"""A child process as a stream: what it is told, what it says, and that it never survives."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from modelwire.errors import ConnectionLost, FrameTooLarge, ServerExited
from modelwire.rpc.observer import Observer
from modelwire.transports import exits, process
from modelwire.transports.process import ProcessStream, spawn
from tests.transports.turns import let_others_run

MiB = 1024 * 1024

STUBBORN = """
import json, os, signal, subprocess
signal.signal(signal.SIGTERM, signal.SIG_IGN)  # inherited by what it starts
grandchild = subprocess.Popen(["sleep", "1000"])
print(json.dumps([os.getpid(), grandchild.pid]), flush=True)
while True:
    signal.pause()
"""

LEAVES_A_GRANDCHILD = """
import json, os, signal, subprocess, sys
if sys.argv[1] == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
grandchild = subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL)
print(json.dumps([os.getpid(), grandchild.pid]), flush=True)
sys.stdin.read()
os._exit(0)
"""


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DRAIN_SECONDS", "EOF_SECONDS", "TERM_SECONDS"):
        monkeypatch.setattr(process, name, 0.1)


@pytest.fixture
def long_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that needs any of these waits to end runs into its time limit."""
    for name in ("DRAIN_SECONDS", "EOF_SECONDS", "TERM_SECONDS"):
        monkeypatch.setattr(process, name, 1000)


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", code, *arguments]


async def all_frames(stream: ProcessStream) -> list[bytes]:
    frames: list[bytes] = []
    while (frame := await stream.receive()) is not None:
        frames.append(frame)
    return frames


async def output_of(command: list[str], **options: Any) -> list[Any]:
    stream = await spawn(command, **options)
    try:
        return [json.loads(frame) for frame in await all_frames(stream)]
    finally:
        await stream.aclose()


def watch(pids: list[int]) -> list[int]:
    return [os.pidfd_open(pid) for pid in pids]


def assert_gone(pidfds: list[int]) -> None:
    """Wait for the end that a signal already brought about; it takes the kernel a moment."""
    for pidfd in pidfds:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        assert poll.poll(10_000), "a process survived"
        os.close(pidfd)


# ------------------------------------------------------------------ frames


async def test_frames_go_both_ways_in_order() -> None:
    stream = await spawn(["cat"])
    sent = [b'{"n":%d}' % number for number in range(100)]
    for frame in sent:
        await stream.send(frame)
    assert [await stream.receive() for _ in sent] == sent
    await stream.aclose()
    assert stream.exit_code == 0


async def test_characters_survive_one_byte_at_a_time() -> None:
    code = 'import os\nfor b in "[\\"日本😀\\"]\\n".encode(): os.write(1, bytes([b]))'
    assert await output_of(python(code)) == [["日本😀"]]


async def test_a_mark_before_a_message_and_a_missing_line_end_are_tolerated() -> None:
    code = r"import os; os.write(1, b'\xef\xbb\xbf[1]\r\n\n[\"\xef\xbb\xbf\"]\n[3]')"
    assert await output_of(python(code)) == [[1], ["\ufeff"], [3]]


async def test_long_messages_cross_in_both_directions() -> None:
    stream = await spawn(["cat"])
    frame = b'"' + b"x" * (5 * MiB) + b'"'
    sending = asyncio.create_task(stream.send(frame))
    assert await stream.receive() == frame
    await sending
    await stream.aclose()


async def test_a_line_above_max_message_costs_only_itself() -> None:
    stream = await spawn(python("print('x' * 100_000); print('[2]')"), max_message=1000)
    with pytest.raises(FrameTooLarge, match="max_message=1000"):
        await stream.receive()
    assert await stream.receive() == b"[2]"
    await stream.aclose()


# ------------------------------------------------------------------ what the child is given


async def test_arguments_arrive_as_they_are() -> None:
    arguments = ["a b", '"q"', "'", "", "--flag", "-", "日本😀", "$HOME", "*", "a\nb", "\\", ";ls"]
    code = "import json, sys; print(json.dumps(sys.argv[1:]))"
    assert await output_of(python(code, *arguments)) == [arguments]


async def test_a_given_variable_leaves_path_and_home_and_keeps_secrets_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "only-on-path"
    program.write_text(f"#!{sys.executable}\nimport json, os\nprint(json.dumps(dict(os.environ)))\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setenv("SECRET_TOKEN", "hidden")
    (environment,) = await output_of(["only-on-path"], env={"K": "v"})
    assert environment["K"] == "v"
    assert environment["PATH"] == os.environ["PATH"]
    assert environment["HOME"] == "/home/somebody"
    assert "SECRET_TOKEN" not in environment


async def test_the_working_directory_is_the_given_one(tmp_path: Path) -> None:
    assert await output_of(python("import json, os; print(json.dumps(os.getcwd()))"), cwd=tmp_path) == [str(tmp_path)]


async def test_the_child_leads_its_own_session_and_group_and_inherits_no_descriptor() -> None:
    code = "import json, os; print(json.dumps([os.getpid(), os.getpgid(0), os.getsid(0), os.listdir('/proc/self/fd')]))"
    ((pid, group, session, descriptors),) = await output_of(python(code))
    assert pid == group == session
    assert len(descriptors) == 4  # three, and the one that lists them


# ------------------------------------------------------------------ its end


async def test_the_end_of_the_child_ends_the_stream_with_code_and_stderr_known() -> None:
    stream = await spawn(python("import sys; print('[1]'); sys.stderr.write('no key'); sys.exit(3)"))
    assert await all_frames(stream) == [b"[1]"]
    assert stream.exit_code == 3
    assert stream.stderr_tail() == "no key"
    assert await stream.wait_exit() == 3
    with pytest.raises(ServerExited, match="exited with code 3") as raised:
        await stream.send(b"[]")
    assert (raised.value.exit_code, raised.value.stderr) == (3, "no key")
    await stream.aclose()


async def test_a_signal_is_a_negative_exit_code() -> None:
    stream = await spawn(["cat"])
    os.kill(stream.pid, signal.SIGKILL)
    assert await stream.wait_exit() == -signal.SIGKILL
    with pytest.raises(ServerExited, match="SIGKILL"):
        await stream.send(b"[]")
    assert await stream.receive() is None
    await stream.aclose()


async def test_the_end_is_known_without_a_pidfd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exits, "_open_pidfd", lambda pid: None)
    stream = await spawn(python("raise SystemExit(4)"))
    assert await stream.wait_exit() == 4
    await stream.aclose()


async def test_a_child_that_somebody_else_reaped_has_an_unknown_code() -> None:
    stream = await spawn(["cat"])
    os.kill(stream.pid, signal.SIGKILL)
    os.waitpid(stream.pid, 0)
    assert await stream.wait_exit() is None
    with pytest.raises(ServerExited, match="has ended"):
        await stream.send(b"[]")
    await stream.aclose()


async def test_sending_to_a_child_that_closed_its_stdin_is_connection_lost() -> None:
    stream = await spawn(python("import os, time; os.close(0); print('[]', flush=True); time.sleep(1000)"))
    await stream.receive()
    await stream.send(b"x")
    await let_others_run()
    with pytest.raises(ConnectionLost, match="its reader is gone"):
        await stream.send(b"x")
    os.kill(stream.pid, signal.SIGKILL)
    await stream.aclose()


@pytest.mark.usefixtures("short_waits")
async def test_a_grandchild_that_holds_stdout_does_not_hide_the_end() -> None:
    stream = await spawn(python(LEAVES_A_GRANDCHILD, "meek"))
    pids = json.loads(await stream.receive() or b"")
    gone = watch(pids)
    os.kill(pids[0], signal.SIGKILL)
    assert await stream.receive() is None
    assert stream.exit_code == -signal.SIGKILL
    await stream.aclose()
    assert_gone(gone)


# ------------------------------------------------------------------ closing


def test_all_waits_together_stay_within_five_seconds() -> None:
    waits = process.DRAIN_SECONDS, process.EOF_SECONDS, process.TERM_SECONDS, 2 * process.KILL_SECONDS
    assert sum(waits) <= 5


@pytest.mark.usefixtures("long_waits")
async def test_a_child_that_obeys_the_end_of_stdin_is_not_waited_for_any_longer() -> None:
    stream = await spawn(["cat"])
    await stream.aclose()
    await stream.aclose()
    assert stream.exit_code == 0
    assert await stream.receive() is None
    with pytest.raises(ConnectionLost, match="closed on this side"):
        await stream.send(b"[]")


@pytest.mark.usefixtures("long_waits")
async def test_what_is_queued_is_written_before_stdin_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "received"
    stream = await spawn(["sh", "-c", f"cat > {path}"])
    frames = [b'"%d' % number + b"x" * 100_000 + b'"' for number in range(10)]
    for frame in frames:
        await stream.send(frame)
    await stream.aclose()
    assert path.read_bytes().splitlines() == frames


@pytest.mark.usefixtures("long_waits")
async def test_a_child_stuck_in_writing_can_still_end_by_itself() -> None:
    code = "import sys\nwhile True:\n  print('[]' * 1000)\n  if not sys.stdin.readline(): break\nprint('y' * 3_000_000)"
    stream = await spawn(python(code))
    await stream.send(b"[]")
    await stream.aclose()
    assert stream.exit_code == 0


async def test_sigterm_is_tried_before_sigkill(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "EOF_SECONDS", 0.1)
    monkeypatch.setattr(process, "TERM_SECONDS", 1000)
    code = "import signal, sys; signal.signal(15, lambda *_: sys.exit(7)); print('[]', flush=True); signal.pause()"
    stream = await spawn(python(code))
    await stream.receive()
    await stream.aclose()
    assert stream.exit_code == 7


@pytest.mark.usefixtures("short_waits")
async def test_a_stubborn_child_and_its_stubborn_grandchild_are_killed() -> None:
    stream = await spawn(python(STUBBORN))
    gone = watch(json.loads(await stream.receive() or b""))
    await stream.aclose()
    assert stream.exit_code == -signal.SIGKILL
    assert_gone(gone)


@pytest.mark.usefixtures("short_waits")
@pytest.mark.parametrize("manner", ["meek", "stubborn"])
async def test_what_an_obedient_child_leaves_behind_is_ended(manner: str) -> None:
    stream = await spawn(python(LEAVES_A_GRANDCHILD, manner))
    gone = watch(json.loads(await stream.receive() or b""))
    await stream.aclose()
    assert stream.exit_code == 0
    assert_gone(gone)


@pytest.mark.usefixtures("long_waits")
@pytest.mark.parametrize("turns", [0, 1, 2, 5, 50])
async def test_a_close_that_is_cancelled_still_kills(turns: int) -> None:
    stream = await spawn(python(STUBBORN))
    gone = watch(json.loads(await stream.receive() or b""))
    closing = asyncio.create_task(stream.aclose())
    await let_others_run(turns + 1)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert_gone(gone)
    await stream.aclose()
    assert stream.exit_code == -signal.SIGKILL


@pytest.mark.usefixtures("long_waits")
def test_a_loop_that_ends_while_closing_still_kills() -> None:
    tasks: list[asyncio.Task[None]] = []

    async def main() -> tuple[ProcessStream, list[int]]:
        stream = await spawn(python(STUBBORN))
        gone = watch(json.loads(await stream.receive() or b""))
        tasks.append(asyncio.create_task(stream.aclose()))
        await let_others_run()
        return stream, gone

    stream, gone = asyncio.run(main())
    assert_gone(gone)
    assert stream.exit_code == -signal.SIGKILL


async def test_any_task_may_close_and_all_wait_for_the_same_end() -> None:
    stream = await spawn(["cat"])
    receiving = asyncio.create_task(stream.receive())
    await let_others_run()
    await asyncio.gather(*(stream.aclose() for _ in range(3)))
    assert await receiving is None
    assert stream.exit_code == 0


def test_a_thread_that_is_not_the_main_one_may_spawn() -> None:
    found: list[object] = []

    async def main() -> None:
        stream = await spawn(["cat"])
        await stream.send(b"[1]")
        found.append(await stream.receive())
        await stream.aclose()
        found.append(stream.exit_code)

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    thread.join()
    assert found == [b"[1]", 0]


def test_a_child_does_not_outlive_a_parent_that_is_killed() -> None:
    code = (
        "import asyncio\nfrom modelwire.transports.process import spawn\n"
        "async def main():\n  s = await spawn(['cat'])\n  print(s.pid, flush=True)\n  await s.wait_exit()\n"
        "asyncio.run(main())"
    )
    with subprocess.Popen(python(code), stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        gone = watch([int(parent.stdout.readline())])
        parent.kill()
    assert_gone(gone)


@pytest.mark.usefixtures("long_waits")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 warns of forks beside threads
async def test_a_forked_worker_does_not_keep_the_child_from_its_end_of_stdin() -> None:
    stream = await spawn(["cat"])
    worker = os.fork()
    if worker == 0:
        signal.pause()
    try:
        await stream.aclose()
        assert stream.exit_code == 0
    finally:
        os.kill(worker, signal.SIGKILL)
        os.waitpid(worker, 0)


async def test_no_descriptor_is_left_over() -> None:
    async def cycle() -> None:
        stream = await spawn(["cat"])
        await stream.send(b"[]")
        assert await stream.receive() == b"[]"
        await stream.aclose()

    await cycle()
    before = os.listdir("/proc/self/fd")
    for _ in range(20):
        await cycle()
    assert os.listdir("/proc/self/fd") == before


# ------------------------------------------------------------------ stderr and observers


class Notes(Observer):
    def __init__(self) -> None:
        self.said = b""
        self.exits: list[int] = []

    def stderr(self, chunk: bytes) -> None:
        self.said += chunk

    def exited(self, exit_code: int) -> None:
        self.exits.append(exit_code)


async def test_observers_see_all_of_stderr_and_one_exit() -> None:
    class Broken(Observer):
        def exited(self, exit_code: int) -> None:
            raise RuntimeError("an observer's own fault")

    notes = Notes()
    stream = await spawn(python("import sys; sys.stderr.write('one\\ntwo'); sys.exit(5)"), observers=[Broken(), notes])
    assert await stream.receive() is None
    await stream.aclose()
    assert (notes.said, notes.exits) == (b"one\ntwo", [5])


async def test_a_chatty_child_is_not_stuck_and_the_last_64_kib_are_kept() -> None:
    code = "import sys\nfor n in range(16): sys.stderr.write(f'{n:x}' * 65536)\nsys.stderr.write('end')\nprint('[]')"
    stream = await spawn(python(code))
    assert await all_frames(stream) == [b"[]"]
    assert stream.stderr_tail() == "f" * 65533 + "end"
    await stream.aclose()


async def test_stderr_lines_go_to_a_function() -> None:
    lines: list[str] = []
    code = r"import os; text = 'one\r\n日本😀\n\nend'.encode(); os.write(2, text[:9]); os.write(2, text[9:])"
    stream = await spawn(python(code), forward_stderr=lines.append)
    assert await stream.receive() is None
    await stream.aclose()
    assert lines == ["one", "日本😀", "", "end"]


async def test_an_end_that_nobody_receives_is_an_exit_code_after_closing() -> None:
    stream = await spawn(python("import sys; sys.stdin.read(); sys.stderr.write('bye'); sys.exit(9)"))
    await stream.aclose()
    assert stream.exit_code == 9
    assert stream.stderr_tail() == "bye"
