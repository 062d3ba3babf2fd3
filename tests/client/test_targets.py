"""What a client can be pointed at."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from modelwire import Client, ConfigError, ConnectionFailed, Server
from modelwire.client import targets
from modelwire.client.targets import Target
from tests.clock import Clock
from tests.fake_server import FakeServer, child, fake_server, talking

REPORTING = """
opened()
while (request := read()) is not None:
    if "id" in request:
        found = {"env": dict(os.environ), "cwd": os.getcwd(), "argv": sys.argv[1:]}
        result(request, content=[], structuredContent=found)
"""


def target(what: Any, **more: Any) -> Target:
    options: dict[str, Any] = {"env": None, "pass_env": (), "cwd": None, "stderr": None}
    return Target(what, max_message=1 << 20, **(options | more))


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (5, "give a command as a list"),
        (None, "give a command as a list"),
        ([], "a command is a list of strings"),
        (["python", 5], "a command is a list of strings"),
        ("python server.py -x", r"give a command as a list: \['python', 'server.py', '-x'\]"),
        ("http://", "write http://HOST:PORT/PATH or https://HOST/PATH"),
        ("http://[::1", "write http://HOST:PORT/PATH or https://HOST/PATH"),
        ("https://x:port/", "write http://HOST:PORT/PATH or https://HOST/PATH"),
        ("tcp://127.0.0.1", "the port is missing; write tcp://HOST:PORT"),
        ("unix://run/x.sock", "write unix:// and a path from the root, with three slashes in all"),
        ("127.0.0.1:8000/mcp", "an address begins with http:// or ws://, such as 'http://127.0.0.1:8000/mcp'"),
        ("localhost:8000", "an address begins with http:// or ws://, such as 'http://localhost:8000'"),
        ("example.com/mcp", "an address begins with http:// or ws://, such as 'http://example.com/mcp'"),
        ("htp://me:secret@example.com/mcp", "'htp://example.com/mcp' is no address .*: http://HOST/PATH, ws://HOST"),
        ("server.js", r"give a command as a list, such as \['node', 'server.js'\]"),
        ("no_such_server.py", "there is no file 'no_such_server.py'"),
    ],
)
def test_what_cannot_be_connected_to_says_what_can(what: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Client(what)


def test_an_unknown_revision_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="unknown revision '2030-01-01'; known are 2024-11-05, .*2026-07-28"):
        Client(["x"], revision="2030-01-01")


def test_a_file_is_run_with_this_python_wherever_the_command_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "server.py").touch()
    monkeypatch.chdir(tmp_path)
    for named in ("server.py", Path("server.py"), tmp_path / "server.py"):
        assert target(named).command == [sys.executable, str(tmp_path / "server.py")]


def test_a_target_is_called_what_people_know_it_by() -> None:
    assert str(target(["npx", "-y", "weather"])) == "npx -y weather"
    assert str(target(Server("weather"))) == "the server 'weather'"
    assert str(target("tcp://[::1]:9000")) == "tcp://[::1]:9000"
    assert str(target("unix:///run/x.sock")) == "unix:///run/x.sock"


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["npx", "-y", "weather", "--token", "s3cret"], "npx"),
        (["/usr/bin/python3", "/srv/weather.py", "s3cret"], "python3 weather.py"),
        (["uvx", "mcp-server-git"], "uvx mcp-server-git"),
        (["server/"], "server/"),
    ],
)
def test_the_log_calls_a_command_by_what_it_runs_and_shows_no_arguments(command: list[str], name: str) -> None:
    assert target(command).name == name


async def test_a_function_that_opens_a_stream_is_a_target_too() -> None:
    for asynchronous in (False, True):
        async with fake_server() as fake:

            async def later(fake: FakeServer = fake) -> Any:
                return fake.stream

            opened = target(later if asynchronous else lambda fake=fake: fake.stream)
            assert opened.can_restart
            assert await opened.open() is fake.stream


async def test_a_function_that_opens_no_stream_says_so() -> None:
    def fail() -> Any:
        raise OSError("no route")

    with pytest.raises(ConnectionFailed, match=r"no stream could be opened: OSError\('no route'\)"):
        await target(fail).open()
    with pytest.raises(ConfigError, match="the function that opens a message stream returned 5"):
        await target(lambda: 5).open()


async def test_a_command_that_does_not_exist_says_what_was_tried() -> None:
    with pytest.raises(ConnectionFailed, match="no-such-program"):
        await Client(["no-such-program", "-x"]).connect()


async def test_a_stream_serves_one_conversation() -> None:
    async with talking() as (client, _):
        await client.close()
        with pytest.raises(ConnectionFailed, match="was used once; give a new client a new stream"):
            await client.connect()


async def test_a_command_gets_its_words_as_they_are_and_a_small_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("A_SECRET", "hidden")
    monkeypatch.setenv("HANDED_ON", "yes")
    words = ["--flag", "a b", '"q"', "", "$HOME", "é"]
    command = child(REPORTING, *words)
    async with Client(command, env={"K": "v"}, pass_env=["HANDED_ON"], cwd=tmp_path) as client:
        found = await client.call("x")
    assert found["argv"] == words
    assert found["cwd"] == str(tmp_path)
    assert found["env"]["K"] == "v"
    assert found["env"]["HANDED_ON"] == "yes"
    assert found["env"]["PATH"] == os.environ["PATH"]
    assert "A_SECRET" not in found["env"]


async def test_stderr_is_kept_and_forwarded_line_by_line() -> None:
    lines: list[str] = []
    script = 'complain("starting"); complain("ready"); opened(); serve()'
    async with Client(child(script), stderr=lines.append) as client:
        assert await client.call("x") == "done"
    assert client.stderr == "starting\nready\n"
    assert lines == ["starting", "ready"]
    assert client.exit_code == 0


async def test_a_server_in_this_process_can_be_connected_to_again_and_again() -> None:
    server = Server("here")
    server.add_tool(lambda: "hi", name="greet")
    client = Client(server)
    for _ in range(3):
        async with client:
            assert await client.call("greet") == "hi"


async def test_a_server_in_this_process_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        name = "broken"
        dispatcher = None

        async def serve(self, stream: Any) -> None:
            await stream.aclose()
            raise ZeroDivisionError

    with pytest.raises(Exception, match="closed the connection"):
        await Client(Broken()).connect()
    assert "the server 'broken' failed" in caplog.text
    assert "ZeroDivisionError" in caplog.text


async def test_a_server_in_this_process_that_does_not_end_is_cancelled(caplog: pytest.LogCaptureFixture) -> None:
    class Stuck:
        name = "stuck"
        dispatcher = None

        async def serve(self, stream: Any) -> None:
            try:
                await asyncio.sleep(10_000)
            finally:
                self.ended = True

    stuck = Stuck()
    clock = Clock()
    opened = target(stuck)
    await opened.open()
    closing = asyncio.create_task(opened.closed())
    await clock.advance(targets.SERVER_SECONDS + 1)
    await closing
    assert stuck.ended
    assert "the server 'stuck' did not end within 10 s" in caplog.text
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_closing_what_was_never_opened_does_nothing() -> None:
    await target(["x"]).closed()
    async with fake_server() as fake:
        assert not target(fake.stream).can_restart
        assert target(["x"]).can_restart
        assert target("tcp://127.0.0.1:1").can_restart
        assert target("tcp://127.0.0.1:1").elsewhere


def test_an_object_of_a_file_is_a_target_as_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "server.py").touch()
    monkeypatch.chdir(tmp_path)
    found = target("server.py:app.server")
    assert found.command == [sys.executable, "-P", "-m", "modelwire", "run", f"{tmp_path / 'server.py'}:app.server"]
    assert found.name == f"{Path(sys.executable).name} server.py:app.server"
    with pytest.raises(ConfigError, match=r"'server.py:not-a-name' is no .py file"):
        target("server.py:not-a-name")
    with pytest.raises(ConfigError):
        target("missing.py:server")
