"""``mw`` and sockets: serving at an address, and talking to what listens there."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from modelwire.cli.targets import is_address, resolve
from tests.cli.programs import PATIENCE, PROGRAM, WORKSHOP, mw

pytestmark = pytest.mark.slow  # programs are started, or thousands of frames sent; `make test` does it

LISTENING = "an MCP server, listening on "
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "me", "version": "1"}},
}


@contextmanager
def listening(*words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """``mw run``, and the address that it says on stderr."""
    with subprocess.Popen(
        [*PROGRAM, "run", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            lines: list[str] = []
            while LISTENING not in (line := process.stderr.readline()):
                lines.append(line)
                assert line, lines
            yield process, line.partition(LISTENING)[2].partition(";")[0]
        finally:
            process.kill()


@pytest.mark.parametrize("kind", ["tcp", "unix", "ws"])
def test_a_file_is_served_at_an_address_and_reached_there(kind: str, tmp_path: Path) -> None:
    where = {"tcp": "tcp://127.0.0.1:0", "unix": f"unix://{tmp_path}/s", "ws": "ws://127.0.0.1:0/mcp"}[kind]
    with listening(WORKSHOP, "--listen", where) as (process, url):
        listed = mw("list", url, "--json")
        assert listed.code == 0, listed.err
        assert listed.value["tools"]
        read = mw("read", url, "file:///notes.txt")
        assert read.value["contents"][0]["text"] == "Notizen\n日本語"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
        assert (process.returncode, out, err) == (130, "", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [["--http", "127.0.0.1:0"], ["--listen", "http://127.0.0.1:0/mcp"]])
def test_a_file_is_served_over_http(words: list[str]) -> None:
    with listening(*words, WORKSHOP) as (process, url):
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/mcp", url)
        with urlopen(Request(url, json.dumps(INITIALIZE).encode(), headers), timeout=PATIENCE) as answer:
            assert json.load(answer)["result"]["protocolVersion"] == "2025-11-25"
        process.terminate()
        out, err = process.communicate(timeout=PATIENCE)
        assert (process.returncode, out, err) == (0, "", "")


@pytest.mark.parametrize(
    "where", ["127.0.0.1:99999", "", "8000", ":8000", "127.0.0.1", "127.0.0.1:0/mcp", "http://127.0.0.1:0/mcp"]
)
def test_a_place_that_makes_no_sense_is_refused(where: str) -> None:
    ran = mw("run", "--http", where, WORKSHOP)
    assert ran.code == 1
    assert f"{where!r} is no HOST:PORT, such as 127.0.0.1:8000" in ran.err
    assert "--listen http://HOST:PORT/PATH" in ran.err


def test_the_wire_of_every_connection_is_shown() -> None:
    with listening("--wire", "--listen", "tcp://127.0.0.1:0", WORKSHOP) as (process, url):
        assert mw("list", url, "tools", "--json", "--revision", "2025-11-25").code == 0
        process.terminate()
        _, err = process.communicate(timeout=PATIENCE)
        assert '#1 in  → {"jsonrpc":"2.0","id":1,"method":"initialize"' in err


def test_each_line_of_the_wire_says_which_connection_it_is_of() -> None:
    with listening("--wire", "--listen", "tcp://127.0.0.1:0", WORKSHOP) as (process, url):
        for revision in ("2025-11-25", "2025-06-18"):
            assert mw("list", url, "tools", "--json", "--revision", revision).code == 0
        process.terminate()
        _, err = process.communicate(timeout=PATIENCE)
    for number, revision in ((1, "2025-11-25"), (2, "2025-06-18")):
        lines = [line.split(maxsplit=1)[1] for line in err.splitlines() if f" #{number} " in line]
        assert lines[0].startswith(f"#{number} new   a connection with the client 127.0.0.1:")
        assert lines[1].startswith(f'#{number} in  → {{"jsonrpc":"2.0","id":1,"method":"initialize"')
        assert revision in lines[1]
        assert any(line.startswith(f"#{number} out ←") for line in lines)
    assert len([line for line in err.splitlines() if "#" not in line]) == 0


@pytest.mark.parametrize("serves", ["mw", "the file"])
def test_connections_and_heartbeat_of_an_address_can_be_given(serves: str, tmp_path: Path) -> None:
    file = tmp_path / "it.py"
    call = "" if serves == "mw" else "server.run()\n"
    file.write_text(f'from modelwire import Server\nserver = Server("it", version="1")\n{call}')
    words = ["--listen", f"unix://{tmp_path}/s", "--max-connections", "1", "--heartbeat", "0.5"]
    with listening(str(file), *words) as (process, _), socket.socket(socket.AF_UNIX) as first:
        first.connect(f"{tmp_path}/s")
        first.sendall(f"{json.dumps(INITIALIZE)}\n".encode())
        lines = first.makefile()
        assert json.loads(lines.readline())["id"] == 0
        with socket.socket(socket.AF_UNIX) as second:
            second.connect(f"{tmp_path}/s")
            assert "1 connections are open, and max_connections allows no more" in second.makefile().readline()
        assert json.loads(lines.readline())["method"] == "ping"
        assert lines.readline() == "", "no answer to it, no connection"
        process.terminate()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--max-connections", "2"], "--max-connections is for a server that listens at an address: add --listen"),
        (["--heartbeat", "2"], "--heartbeat is for a server that listens at an address: add --listen"),
        (["--listen", "tcp://127.0.0.1:0", "--max-connections", "0"], "'0' is no number above 0"),
        (["--listen", "tcp://127.0.0.1:0", "--heartbeat", "-1"], "'-1' is no number of seconds above 0"),
    ],
)
def test_what_makes_no_sense_for_an_address_is_refused(words: list[str], said: str) -> None:
    ran = mw("run", WORKSHOP, *words)
    assert (ran.code, ran.out) == (1, "")
    assert said in ran.err


@pytest.mark.parametrize("call", ["server.run()", "import asyncio\nasyncio.run(server.serve())"])
def test_a_file_that_serves_while_it_is_imported_serves_at_the_address(call: str, tmp_path: Path) -> None:
    file = tmp_path / "it.py"
    file.write_text(f'from modelwire import Server\nserver = Server("it", version="1")\n{call}\n')
    where = f"unix://{tmp_path}/s"
    with subprocess.Popen([*PROGRAM, "run", str(file), "--listen", where], stderr=subprocess.DEVNULL) as process:
        try:
            while not (tmp_path / "s").exists():
                assert process.poll() is None
            assert mw("list", where, "--json").code == 0
        finally:
            process.kill()


def test_a_file_with_an_address_of_its_own_serves_there_once(tmp_path: Path) -> None:
    file = tmp_path / "it.py"
    where = f"unix://{tmp_path}/s"
    file.write_text(f'from modelwire import Server\nserver = Server("it", version="1")\nserver.run("{where}")\n')
    with listening(str(file)) as (process, url):
        assert url == where
        assert mw("list", url, "--json").code == 0
        process.terminate()
        out, _ = process.communicate(timeout=PATIENCE)
        assert (process.returncode, out) == (0, "")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("tcp://127.0.0.1", "the port is missing"),
        ("unix://x", "three slashes"),
        ("ftp://127.0.0.1:1", "give http://HOST:PORT/PATH, ws://HOST:PORT/PATH, tcp://HOST:PORT or unix:///PATH"),
        ("wss://127.0.0.1:1/mcp", "https:// and wss:// need cert= and key="),
        ("unix:///nowhere/at/all", "its folder does not exist; make it first"),
    ],
)
def test_an_address_that_cannot_be_served_ends_with_1(address: str, said: str) -> None:
    ran = mw("run", WORKSHOP, "--listen", address)
    assert (ran.code, ran.out) == (1, "")
    assert said in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["tcp://127.0.0.1"], 1, "the port is missing; write tcp://HOST:PORT"),
        (["unix://x.py"], 1, "three slashes"),
        (["tcp://127.0.0.1:0"], 1, "port 0 is for servers"),
        (["unix:///nowhere/at/all"], 4, "there is no such file. Is the server running?"),
        (["unix:///nowhere.py", "--env", "A=1"], 1, "--env is for servers that mw starts"),
        (["ws://127.0.0.1:1/x"], 4, "cannot connect to ws://127.0.0.1:1/x: nothing listens there"),
        (["ws://:1"], 1, "write ws://HOST:PORT/PATH or wss://HOST/PATH"),
        (["http://127.0.0.1:1"], 4, "http://127.0.0.1:1/: nothing listens there"),
        (["gopher://127.0.0.1:1"], 1, "is an address; this version knows http://HOST/PATH, ws://HOST:PORT/PATH, tcp"),
    ],
)
def test_what_is_wrong_with_an_address_is_told(words: list[str], code: int, said: str) -> None:
    ran = mw("list", *words)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err


def test_an_address_is_a_target_whatever_it_ends_with() -> None:
    for target in (
        "tcp://127.0.0.1:9000",
        "tcp://[::1]:9000",
        "unix:///run/server.py",
        "ws://a/server.py",
        "http://a/b.py",
    ):
        assert is_address(target)
        assert resolve(target, None).server == target


def test_the_help_names_addresses() -> None:
    for command in ("list", "call", "read", "prompt"):
        assert {"http://HOST/PATH,", "tcp://HOST:PORT"} <= set(mw(command, "--help").out.split())
    assert "--listen ADDRESS" in mw("run", "--help").out
