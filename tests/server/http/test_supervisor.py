"""Several workers at one address: who answers, what becomes of those that die, and that all end together."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from modelwire import ConfigError, Server
from modelwire.server.http.supervisor import HOPELESS
from tests.server.http.asgi import BOTH
from tests.server.http.programs import COME_THROUGH, PATIENCE, Gate, Program, gate, script, serving, started
from tests.server.http.raw import Connection, call, connected, posted
from tests.server.http.test_ending import ended, listen, refused
from tests.wire import MODERN, dumps, modern_meta, opening

SERVER = f"""{COME_THROUGH}
import asyncio, sys
from modelwire import Context, Server
from modelwire.server.http import run, supervisor

WORKER = supervisor.VARIABLE in os.environ

server = Server("it", version="1")

@server.tool(inline=True)
def hold(gate: str) -> int:
    return come_through(gate)

@server.tool
def pass_by(gate: str) -> int:
    return come_through(gate)

@server.tool
def pid() -> int:
    return os.getpid()

@server.tool
async def greet(ctx: Context) -> str:
    form = {{"type": "object", "properties": {{"name": {{"type": "string"}}}}, "required": ["name"]}}
    name = (await ctx.elicit("Who?", schema=form))["name"]
    return f"hello {{name}} from {{os.getpid()}}"
"""
UNSTARTABLE = """
import os, sys
from pathlib import Path
if "MODELWIRE_WORKER" in os.environ and Path(__file__).with_name("broken").exists():
    sys.exit("it is broken")
"""
"""Before all else: with a file "broken" beside it, it cannot be started as a worker."""
AT_ONCE = "supervisor.DELAYS = (0.0,) * len(supervisor.DELAYS)"
RUN = """
if __name__ == "__main__":
    server.run("http://127.0.0.1:0/mcp", workers=2)
"""


pytestmark = pytest.mark.timeout(180)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks may have to wait until a worker has started."""
    monkeypatch.setattr(sys.modules[Connection.__module__], "PATIENCE", PATIENCE)


@pytest.fixture
async def here() -> AsyncIterator[Gate]:
    async with gate() as made:
        yield made


async def result(http: Connection) -> Any:
    """The text of a call's result."""
    status, _, body = await http.whole()
    assert status == 200, body
    return json.loads(body)["result"]["content"][0]["text"]


async def held(http: Connection, here: Gate) -> int:
    """Have the worker behind a connection hold its event loop, so that it accepts nobody; return its process."""
    await http.ask("POST", *call("hold", {"gate": here.address}))
    return await here.reached()


async def both(program: Program, here: Gate) -> set[int]:
    """The processes of two workers that answer at the same time."""
    async with connected(program.url) as one:
        first = await held(one, here)
        async with connected(program.url) as other:  # only now, so that it is not the first that accepts it
            second = await held(other, here)
            here.open()
            assert (int(await result(one)), int(await result(other))) == (first, second)
    return {first, second}


async def gone(processes: set[int]) -> None:
    """See that processes end."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            fd = os.pidfd_open(process)
            ready = await asyncio.to_thread(select.select, [fd], [], [], PATIENCE)
            os.close(fd)
            assert ready[0], process


def listening_at(port: int) -> int:
    """How many sockets of this machine listen at a port of 127.0.0.1."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum((words[1], words[3]) == (f"0100007F:{port:04X}", "0A") for words in lines)


# ------------------------------------------------------------------ answering


@pytest.mark.slow
async def test_several_workers_answer_at_one_socket(here: Gate, tmp_path: Path) -> None:
    async with serving(script(tmp_path, SERVER + RUN)) as program:
        assert program.said == [f"it: an MCP server in 2 workers, listening on {program.url}; Ctrl-C ends it"]
        found = await both(program, here)
        assert len(found) == 2
        assert program.process.pid not in found
        assert listening_at(urlsplit(program.url).port or 0) == 1


@pytest.mark.slow
async def test_what_one_worker_has_asked_another_goes_on_with(here: Gate, tmp_path: Path) -> None:
    async with (
        serving(script(tmp_path, SERVER + RUN)) as program,
        connected(program.url) as asked,
        AsyncExitStack() as stack,
    ):
        capable = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}
        params: dict[str, Any] = {"name": "greet", "arguments": {}, "_meta": {**modern_meta(), **capable}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        await asked.ask("POST", *posted(message))
        question = json.loads((await asked.whole())[2])["result"]
        assert question["resultType"] == "input_required"
        first = await held(asked, here)  # so that it does not accept the other connection
        answering = await stack.enter_async_context(connected(program.url))
        (key,) = question["inputRequests"]
        params["inputResponses"] = {key: {"action": "accept", "content": {"name": "Ann"}}}
        params["requestState"] = question["requestState"]
        await answering.ask("POST", *posted(message))
        said = await result(answering)
        assert said.startswith("hello Ann from ")
        assert int(said.split()[-1]) != first


@pytest.mark.slow
async def test_sessions_are_refused_and_it_is_said_what_to_do(tmp_path: Path) -> None:
    async with serving(script(tmp_path, SERVER + RUN)) as program, connected(program.url) as http:
        message = {"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": opening("2025-11-25")}
        json_ = {"Content-Type": "application/json", "Accept": BOTH}
        await http.ask("POST", json_, dumps(message))
        status, headers, body = await http.whole()
        assert (status, "mcp-session-id" in headers) == (400, False)
        answer = json.loads(body)
        assert answer["id"] == 7
        assert answer["error"]["message"] == (
            "this server runs 2 workers, and sessions are kept in one: use one worker, or stateless=True, or a client "
            f"of {MODERN}"
        )
        await http.ask("POST", json_, b"{")
        assert json.loads((await http.whole())[2])["error"]["code"] == -32700
        await http.ask("GET", {"Accept": "text/event-stream", "Mcp-Session-Id": "x"})
        status, headers, _ = await http.whole()
        assert (status, headers["allow"]) == (405, "POST, OPTIONS")


@pytest.mark.slow
async def test_without_sessions_every_worker_answers_every_revision(here: Gate, tmp_path: Path) -> None:
    run = RUN.replace("workers=2", "workers=2, stateless=True")
    async with (
        serving(script(tmp_path, SERVER + run)) as program,
        connected(program.url) as one,
        AsyncExitStack() as stack,
    ):
        headers = {"Content-Type": "application/json", "Accept": BOTH}
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening("2025-11-25")}
        await one.ask("POST", headers, dumps(message))
        assert json.loads((await one.whole())[2])["result"]["protocolVersion"] == "2025-11-25"
        first = await held(one, here)
        other = await stack.enter_async_context(connected(program.url))
        message = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "pid", "arguments": {}}}
        await other.ask("POST", {**headers, "MCP-Protocol-Version": "2025-11-25"}, dumps(message))
        assert int(await result(other)) != first


# ------------------------------------------------------------------ dying


@pytest.mark.slow
async def test_a_worker_that_is_killed_is_replaced_and_who_waits_to_be_accepted_is_answered(
    here: Gate, tmp_path: Path
) -> None:
    async with serving(script(tmp_path, SERVER + RUN)) as program, AsyncExitStack() as stack:
        first = await held(await stack.enter_async_context(connected(program.url)), here)
        other = await stack.enter_async_context(connected(program.url))
        second = await held(other, here)
        waiting = await stack.enter_async_context(connected(program.url))  # nobody can accept it
        await waiting.ask("POST", *call("pid"))
        os.kill(first, signal.SIGKILL)
        line = await program.hear(str(first))
        assert line == f"worker {first} was ended by SIGKILL (signal 9); another takes its place\n"
        assert int(await result(waiting)) not in (first, second)
        here.open(second)
        assert int(await result(other)) == second
        assert second in await both(program, here)


@pytest.mark.slow
async def test_a_worker_that_is_told_to_end_finishes_what_it_does_and_is_replaced(here: Gate, tmp_path: Path) -> None:
    async with serving(script(tmp_path, SERVER + RUN)) as program:
        async with connected(program.url) as http:
            await http.ask("POST", *call("pass_by", {"gate": here.address}))
            first = await here.reached()
            os.kill(first, signal.SIGTERM)
            here.open()
            assert int(await result(http)) == first
        assert await program.hear("exited with code 0; another takes its place")
        assert first not in await both(program, here)


@pytest.mark.slow
async def test_while_one_worker_answers_others_are_started_again_and_again(here: Gate, tmp_path: Path) -> None:
    async with serving(script(tmp_path, UNSTARTABLE + SERVER + AT_ONCE + RUN)) as program:
        first, second = await both(program, here)
        (tmp_path / "broken").touch()
        os.kill(first, signal.SIGKILL)
        for _ in range(HOPELESS + 1):
            await program.hear("exited with code 1; another takes its place")
        async with connected(program.url) as http:
            await http.ask("POST", *call("pid"))
            assert int(await result(http)) == second
        (tmp_path / "broken").unlink()
        assert len(await both(program, here)) == 2


@pytest.mark.slow
async def test_where_no_worker_answers_and_none_can_be_started_it_gives_up(here: Gate, tmp_path: Path) -> None:
    async with serving(script(tmp_path, UNSTARTABLE + SERVER + AT_ONCE + RUN)) as program:
        found = await both(program, here)
        (tmp_path / "broken").touch()
        for process in found:
            os.kill(process, signal.SIGKILL)
        assert await program.end() == 1
        assert program.said[-1] == (
            "the server ends: no worker can be started; the last one exited with code 1 before it answered anybody: "
            "what it said stands above"
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "lines", "why"),
    [
        ("if WORKER: sys.exit('no database')", 2, "exited with code 1 before it answered anybody: what it said"),
        ("if WORKER: sys.exit(0)", 1, "exited with code 0 before it answered anybody: it is this program, started"),
        ("if WORKER: os.kill(os.getpid(), 9)", 1, "was ended by SIGKILL (signal 9) before it answered anybody"),
    ],
)
async def test_what_keeps_workers_from_starting_is_told_once(more: str, lines: int, why: str, tmp_path: Path) -> None:
    async with started(script(tmp_path, f"{SERVER}{more}\n{RUN}")) as program:
        assert await program.end() == 1
        assert why in program.said[-1]
        assert len(program.said) == lines


@pytest.mark.slow
async def test_a_program_that_serves_twice_is_told_that_it_cannot(tmp_path: Path) -> None:
    more = "if WORKER: server.run('http://127.0.0.1:0/other', workers=2)\n"
    async with started(script(tmp_path, SERVER + more + RUN)) as program:
        assert await program.end() == 1
        assert "has come to serve http://127.0.0.1:0/other" in program.said[-2]


# ------------------------------------------------------------------ the end


@pytest.mark.slow
@pytest.mark.parametrize(
    ("whom", "number", "status"), [("the supervisor", signal.SIGTERM, 0), ("all", signal.SIGINT, 130)]
)
async def test_a_signal_ends_all_workers_in_order(
    whom: str, number: signal.Signals, status: int, here: Gate, tmp_path: Path
) -> None:
    """To all: as a terminal sends SIGINT, and systemd SIGTERM."""
    async with serving(script(tmp_path, SERVER + RUN)) as program:
        workers = await both(program, here)
        async with connected(program.url) as working, connected(program.url) as listening:
            await working.ask("POST", *call("pass_by", {"gate": here.address}))
            await here.reached()
            await listen(listening)
            for process in [program.process.pid, *(workers if whom == "all" else ())]:
                os.kill(process, number)
            await ended(listening)
            here.open()
            assert int(await result(working)) in workers
        assert await program.end() == status
        await refused(program)
        await gone(workers)
        assert len(program.said) == 1


@pytest.mark.slow
async def test_a_second_signal_ends_all_at_once(here: Gate, tmp_path: Path) -> None:
    async with (
        serving(script(tmp_path, f"{SERVER}run.GRACE = 1000\n{RUN}")) as program,
        connected(program.url) as working,
        connected(program.url) as listening,
    ):
        await working.ask("POST", *call("pass_by", {"gate": here.address}))
        await here.reached()
        await listen(listening)
        program.process.send_signal(signal.SIGTERM)
        await ended(listening)
        program.process.send_signal(signal.SIGTERM)
        assert await program.end() == -signal.SIGTERM


@pytest.mark.slow
async def test_a_worker_that_does_not_end_is_killed(here: Gate, tmp_path: Path) -> None:
    async with serving(script(tmp_path, f"{SERVER}supervisor.PATIENCE = 0.2\n{RUN}")) as program:
        first, _ = await both(program, here)
        os.kill(first, signal.SIGSTOP)
        program.process.send_signal(signal.SIGTERM)
        assert await program.end() == 0
        assert program.said[-1].startswith("did not end within 0.2 s, and is killed: worker ")
        assert str(first) in program.said[-1]


@pytest.mark.slow
async def test_workers_end_when_their_supervisor_is_killed_whatever_they_do(here: Gate, tmp_path: Path) -> None:
    async with serving(script(tmp_path, SERVER + RUN)) as program:
        workers = await both(program, here)
        async with connected(program.url) as http:
            await held(http, here)
            program.process.kill()
            await program.end()
        await gone(workers)
        await refused(program)


@pytest.mark.slow
async def test_a_signal_before_anybody_answers_ends_it(here: Gate, tmp_path: Path) -> None:
    slow = f"if WORKER: come_through({here.address!r})\n"
    async with started(script(tmp_path, SERVER + slow + RUN)) as program:
        await here.reached()
        program.process.send_signal(signal.SIGTERM)
        assert await program.end() == 0
        assert program.said == []


# ------------------------------------------------------------------ what cannot be


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "2", None])
def test_a_number_of_workers_that_makes_no_sense_is_refused(count: Any) -> None:
    with pytest.raises(ConfigError, match="workers is a number of processes, at least 1, not"):
        Server("it").run("http://127.0.0.1:0/mcp", workers=count)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"sse": True}, "sse=True needs one worker"),
        ({"health": "up"}, "a path begins with a slash"),
        ({"heartbeat": 5}, "heartbeat= does nothing for HTTP"),
        ({"cert": "x"}, "need cert="),
    ],
)
def test_options_that_make_no_sense_are_refused_before_a_worker_starts(options: Any, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        Server("it").run("http://127.0.0.1:0/mcp", workers=2, **options)


@pytest.mark.parametrize(("endpoint", "why"), [(None, "endpoints that have an address"), ("tcp://127.0.0.1:0", "tcp")])
def test_workers_are_for_http(endpoint: str | None, why: str) -> None:
    with pytest.raises(ConfigError, match=f"workers= .*{why}"):
        Server("it").run(endpoint, workers=2)


async def test_inside_a_running_loop_there_is_one_process() -> None:
    server = Server("it")
    async with server.serving("http://127.0.0.1:0/mcp", workers=1) as serving:
        assert serving.url
    with pytest.raises(ConfigError, match=r"workers=2 needs a program of its own: server\.run"):
        await server.serve("http://127.0.0.1:0/mcp", workers=2)


def test_several_workers_need_what_seals_their_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(ConfigError, match=r"several workers need the package cryptography.*modelwire\[state\]"):
        Server("it").run("http://127.0.0.1:0/mcp", workers=2)


def test_a_thread_cannot_supervise() -> None:
    raised: list[BaseException] = []

    def run() -> None:
        try:
            Server("it").run("http://127.0.0.1:0/mcp", workers=2)
        except ConfigError as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert "main thread" in str(raised[0])
