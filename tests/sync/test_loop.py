"""The loop that synchronous clients share: Ctrl-C, the end of the process, and forks. Each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.fake_server import child

ROOT = Path(__file__).resolve().parents[2]
PRELUDE = """
import asyncio, os, signal, sys, threading
from modelwire import ConfigError, ConnectionLost, Context, Server
from modelwire.sync import Client
from modelwire.sync.loop import shared
def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())  # one piece, whichever thread says it
server = Server("s")
@server.tool
async def wait() -> str:
    threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT)).start()
    try:
        await asyncio.Event().wait()
    finally:
        say("the server stopped")
@server.tool
async def hello() -> str:
    return "hello"
"""


def run(program: str, *arguments: str) -> list[str]:
    """Run a program; nothing may be left on its stderr. Returns the lines that it printed."""
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", PRELUDE + program, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (ran.stderr, ran.returncode) == ("", 0)
    return ran.stdout.splitlines()


def test_ctrl_c_gives_up_the_request_and_the_client_stays_usable() -> None:
    program = """
with Client(server) as client:
    for _ in range(2):
        try:
            client.call("wait")
        except KeyboardInterrupt:
            say("interrupted")
        say(client.call("hello"))
"""
    lines = run(program)
    assert sorted(lines) == sorted(["the server stopped", "interrupted", "hello"] * 2)


def test_ctrl_c_ends_the_block_and_the_program() -> None:
    program = """
try:
    with Client(server) as client:
        client.call("wait")
except KeyboardInterrupt:
    say("interrupted", client.connected)
"""
    assert run(program)[-1] == "interrupted False"


def test_ctrl_c_ends_the_wait_for_an_event() -> None:
    program = """
server.add_tool(lambda: "x", name="first")
with Client(server) as client, client.listen(tools=True) as events:
    async def waits():
        return bool(events._events._news._waiters)
    def interrupt():
        while not shared().run(waits):
            pass
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=interrupt).start()
    try:
        next(events)
    except KeyboardInterrupt:
        say("interrupted")
    server.add_tool(lambda: "x", name="second")
    say(next(events))
"""
    assert run(program) == ["interrupted", "ToolsChanged()"]


def test_what_is_open_at_the_end_of_the_process_is_closed() -> None:
    program = """
client = Client(sys.argv[1:]).connect()
say(client.call("pid"))
memory = Client(server).connect()
say(memory.call("hello"))
"""
    pid, hello = run(program, *child("opened(); text(read(), str(os.getpid())); serve()"))
    assert hello == "hello"
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return
    raise AssertionError(f"the server {pid} is still there")


def test_a_client_at_the_very_end_of_the_process_is_told_that_it_is_over() -> None:
    program = """
import atexit
def late():
    try:
        client.ping()
    except ConnectionLost as error:
        say(error)
    client.close()
atexit.register(late)  # runs after what is registered later: the end of the loop
client = Client(server).connect()
"""
    assert run(program) == ["the process is ending: its clients were closed"]


def test_a_callback_that_never_returns_does_not_keep_the_process() -> None:
    program = """
import logging, modelwire.sync.loop
logging.disable()
modelwire.sync.loop.END_SECONDS = 0.1
called = threading.Event()
def never(done, total, message):
    called.set()
    threading.Event().wait()
@server.tool
async def work(ctx: Context) -> str:
    ctx.progress(1)
    return "done"
client = Client(server).connect()
threading.Thread(target=client.call, args=("work",), kwargs={"on_progress": never}, daemon=True).start()
called.wait()
say("the end")
"""
    assert run(program) == ["the end"]


def test_a_forked_child_needs_a_client_of_its_own_and_harms_no_other() -> None:
    program = """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)
with Client(server) as client:
    say(client.call("hello"))
    pid = os.fork()
    if pid == 0:
        try:
            client.call("hello")
        except ConfigError as error:
            say(error)
        client.close()
        with Client(server) as mine:
            say("child:", mine.call("hello"))
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    say("parent:", client.call("hello"))
"""
    assert run(program) == [
        "hello",
        "this client was used before the process forked; make a new one in the child",
        "child: hello",
        "parent: hello",
    ]


def test_a_client_that_was_made_but_not_used_before_a_fork_works_in_the_child() -> None:
    program = """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)
Client(server).connect().close()
client = Client(server)
pid = os.fork()
if pid == 0:
    with client:
        say("child:", client.call("hello"))
    sys.exit(0)
assert os.waitpid(pid, 0)[1] == 0
"""
    assert run(program) == ["child: hello"]


def test_what_cannot_be_opened_is_not_kept_for_the_end_of_the_process() -> None:
    program = """
for _ in range(3):
    try:
        Client([sys.executable, "-c", ""]).connect()
    except ConnectionLost as error:
        say(type(error).__name__)
with Client(server) as client:
    say(len(shared().open))
say(len(shared().open))
"""
    assert run(program) == ["ServerExited"] * 3 + ["1", "0"]


def test_where_no_loop_can_be_made_that_is_an_error_and_no_wait_without_end() -> None:
    program = """
from modelwire.sync import loop
class Broken(asyncio.Runner):
    def __enter__(self):
        raise OSError("no file descriptor is left")
whole, asyncio.Runner = asyncio.Runner, Broken
client = Client(server)
try:
    client.connect()
except OSError as error:
    say(error)
asyncio.Runner = whole
with client:
    say(client.call("hello"))
"""
    assert run(program) == ["no file descriptor is left", "hello"]
