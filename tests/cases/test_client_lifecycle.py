"""Opening as processes do it: every way to answer the probe, slow starters, noise before anything."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from modelwire import Client, ServerExited, ToolError
from modelwire.client.connect import PROBE_WAIT
from tests.clock import Clock
from tests.fake_server import MODERN, child

SAYS_WHAT_IT_GOT = """
got = []
plain_read = read
def read():
    request = plain_read()
    if request is not None:
        got.append(request["method"])
    return request
"""
ANSWERS = """
opened(request)
request = read()
text(request, " ".join(got))
read()
"""
ANSWERS_TO_THE_PROBE: dict[str, str] = {
    **{str(code): f"error(request, {code})" for code in (-32601, -32602, -32600, -32603, -32000, -32700, 0)},
    "an error with id null": 'say({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "?"}})',
    "an error without an id": 'say({"jsonrpc": "2.0", "error": {"code": -32700, "message": "?"}})',
    "an empty result": "result(request)",
    "noise": r"write(b'Unknown method: server/discover\n'); error(request)",
    "half a line that goes on": """write(b'{"jsonrpc": "2.0", '); error(request); error(request)""",
}


@pytest.mark.parametrize("answer", ANSWERS_TO_THE_PROBE.values(), ids=ANSWERS_TO_THE_PROBE)
async def test_whatever_a_server_of_the_handshake_answers_to_the_probe_initialize_follows(answer: str) -> None:
    script = f"{SAYS_WHAT_IT_GOT}request = read(); {answer}; request = read(){ANSWERS}"
    async with Client(child(script)) as client:
        assert await client.call("x") == "server/discover initialize notifications/initialized tools/call"


async def test_a_server_that_ignores_the_probe_is_asked_to_initialize_after_a_while() -> None:
    clock = Clock()
    ready = asyncio.Event()
    script = f"{SAYS_WHAT_IT_GOT}request = read(); complain('ignored'); request = read(){ANSWERS}"
    async with asyncio.timeout(30):
        client = Client(child(script), stderr=lambda line: ready.set())
        connecting = asyncio.create_task(client.connect())
        await ready.wait()
        await clock.advance(PROBE_WAIT + 0.1)
        await connecting
        assert await client.call("x") == "server/discover initialize notifications/initialized tools/call"
        await client.close()


@pytest.mark.parametrize("end", ["os._exit(1)", "os._exit(0)", "os.kill(os.getpid(), 11)", "os.close(1); wait()"])
async def test_a_server_that_dies_of_the_probe_is_started_again_and_never_probed_any_more(
    end: str, tmp_path: Path, short_waits: None
) -> None:
    told = tmp_path / "methods"
    script = f"""
request = read()
with open({str(told)!r}, "a") as file:
    file.write(request["method"] + "\\n")
if request["method"] == "server/discover":
    {end}
opened(request)
serve()
"""
    client = Client(child(script))
    for _ in range(2):
        async with client:
            assert await client.call("x") == "done"
    assert told.read_text().split() == ["server/discover", "initialize", "initialize"]


async def test_a_server_that_dies_of_everything_is_an_exit_and_no_loop(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    script = f'open({str(starts)!r}, "a").write("x"); read(); complain("no licence"); os._exit(5)'
    with pytest.raises(ServerExited, match="exited with code 5[^$]*no licence"):
        await Client(child(script)).connect()
    assert starts.read_text() == "xx"


SLOW = """
import sys
open(sys.argv[1]).read()
from modelwire import Server
server = Server("slow")
@server.tool
def era() -> str:
    return "awake"
server.run()
"""


async def test_a_server_that_takes_long_to_start_is_not_taken_for_an_old_one(tmp_path: Path) -> None:
    """Ten seconds of imports: by then it has both questions in its input, and answers the first one first."""
    clock = Clock()
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    client = Client([sys.executable, "-c", SLOW, str(gate)], env={"PYTHONPATH": os.pathsep.join(sys.path)})
    connecting = asyncio.create_task(client.connect())
    await clock.turn()
    await clock.advance(PROBE_WAIT + 5)
    assert not connecting.done()
    await asyncio.to_thread(gate.write_text, "go")
    await connecting
    assert client.revision.name == MODERN
    assert await client.call("era") == "awake"
    await client.close()


@pytest.mark.parametrize("era", ["handshake", "per-request"])
async def test_banners_noise_and_broken_lines_cost_only_themselves(era: str, caplog: pytest.LogCaptureFixture) -> None:
    noise = r"""write(b"\x1b[1mWelcome!\x1b[0m\n{\"jsonrpc\": \"2.0\",\n\xff\xfe\n" + b"=" * 70000 + b"\n")"""
    script = rf"""
def noise():
    {noise}
noise()
request = read()
noise()
if {era!r} == "handshake":
    opened(request)
else:
    result(request, resultType="complete", supportedVersions=["{MODERN}"], capabilities={{"tools": {{}}}}, ttlMs=0,
           cacheScope="private")
for _ in range(3):
    noise()
    request = read()
    noise()
    text(request, "heard")
read()
"""
    async with Client(child(script), max_message=65536) as client:
        assert [await client.call("x") for _ in range(3)] == ["heard"] * 3
    dropped = [record for record in caplog.records if "a frame was dropped" in record.getMessage()]
    assert [record.levelname for record in dropped].count("WARNING") <= 2, "said once for each kind"


async def test_a_tool_that_fails_costs_no_other_call() -> None:
    script = """
opened()
requests = [read() for _ in range(6)]
for number, request in enumerate(requests):
    if number % 3 == 0:
        result(request, content=[{"type": "text", "text": "no such city"}], isError=True)
    elif number % 3 == 1:
        error(request, -32603)
    else:
        text(request, "fine")
read()
"""
    async with Client(child(script)) as client:
        calls = [asyncio.create_task(client.call("x")) for _ in range(6)]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(outcome).__name__ for outcome in outcomes] == ["ToolError", "PeerError", "str"] * 2
    assert isinstance(outcomes[0], ToolError)
