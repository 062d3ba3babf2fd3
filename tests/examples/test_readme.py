"""What the READMEs claim: their tables name what exists, "not yet" names what does not, and their commands work.

`tests/test_docs.py` runs their Python blocks.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import modelwire
from modelwire import Client, ConfigError, Context, NotFound, RpcError, Server, ToolError
from modelwire.cli.commands import COMMANDS
from modelwire.cli.targets import PYTHON_VARIABLES
from modelwire.protocol.revisions import by_name
from modelwire.transports.launch import INHERITED
from tests.examples.programs import ROOT
from tests.test_docs import fenced_blocks

WORKS = {"README.md": "works", "README.zh-CN.md": "可用"}
NOT_YET = {"README.md": "not yet", "README.zh-CN.md": "尚不可用"}
OBJECTS = {"server": Server, "client": Client, "ctx": Context}
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def tables(page: str) -> list[list[list[str]]]:
    """The tables of a page: rows of cells, without heading and rule."""
    found: list[list[list[str]]] = []
    for block in re.findall(r"(?:^\|.*\|\n)+", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE):
        found.append([[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()[2:]])
    return found


def works(page: str) -> list[list[str]]:
    return next(
        rows for rows in tables(page) if all(len(row) == 3 and row[2] in (WORKS[page], NOT_YET[page]) for row in rows)
    )


def raised(page: str) -> list[list[str]]:
    """The table of what to raise in a handler: what, where, what comes of it."""
    return next(rows for rows in tables(page) if len(rows[0]) == 3 and rows != works(page))


def errors(page: str) -> list[list[str]]:
    return next(rows for rows in tables(page) if len(rows[0]) == 2)


def cited(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def command_exists(words: list[str]) -> bool:
    helped = subprocess.run([sys.executable, "-m", "modelwire", words[0], "--help"], capture_output=True, timeout=30)
    return helped.returncode == 0 and all(option in helped.stdout.decode() for option in words[1:])


def connects_to(scheme: str) -> bool:
    try:
        Client(f"{scheme}/run/x.sock" if scheme == "unix://" else f"{scheme}localhost:1")
    except ConfigError:
        return False
    return True


def exists(name: str) -> bool:
    """Whether what a table cites exists; the kinds of names that can be looked up are the ones to cite."""
    first, _, rest = name.partition(".")
    if name.startswith("mw "):
        return command_exists(name.split()[1:])
    if name.startswith("make "):
        return re.search(rf"^(?:[\w-]+ )*{name.removeprefix('make ')}(?: [\w-]+)*:", MAKEFILE, re.MULTILINE) is not None
    if name.endswith("://"):
        return connects_to(name)
    if re.fullmatch(r"\d{4}-\d\d-\d\d", name):
        return by_name(name) is not None
    if first in OBJECTS and rest:
        return has_attribute(OBJECTS[first], rest)
    if first == "modelwire":
        return importlib.util.find_spec(name) is not None
    return name in modelwire.__all__ or ("/" in name and (ROOT / name).is_file())


def has_attribute(kind: type, name: str) -> bool:
    return hasattr(kind, name) or name in getattr(kind, "__slots__", ())


@pytest.mark.parametrize("page", WORKS)
def test_the_table_of_what_works_is_true(page: str) -> None:
    rows = works(page)
    states = {WORKS[page]: True, NOT_YET[page]: False}
    assert {state for _, _, state in rows} == set(states)
    without_proof = [what for what, where, _ in rows if not cited(where)]
    assert without_proof == []
    wrong = [(name, state) for _, where, state in rows for name in cited(where) if exists(name) is not states[state]]
    assert wrong == []


def test_every_command_of_mw_is_in_the_table() -> None:
    named = {name.split()[1] for _, where, _ in works("README.md") for name in cited(where) if name[:3] == "mw "}
    assert named == set(COMMANDS)


def test_both_pages_have_the_same_rows_in_the_same_order() -> None:
    english, chinese = tables("README.md"), tables("README.zh-CN.md")
    assert len(english) == len(chinese) == 3
    assert [[[cited(cell) for cell in row] for row in rows] for rows in english] == [
        [[cited(cell) for cell in row] for row in rows] for rows in chinese
    ]


@pytest.mark.parametrize("page", WORKS)
def test_the_table_of_errors_has_every_public_error(page: str) -> None:
    named = [name for row in errors(page) for name in cited(row[0])]
    public = [name for name in modelwire.__all__ if is_error(getattr(modelwire, name)) and name != "ModelwireError"]
    assert sorted(named) == sorted(public)


def is_error(found: object) -> bool:
    return isinstance(found, type) and issubclass(found, modelwire.ModelwireError)


async def test_what_a_handler_raises_becomes_what_the_table_says() -> None:
    server = Server("raising")

    def failing(error: Exception) -> Callable[[], str]:
        def fail() -> str:
            raise error

        return fail

    server.add_tool(failing(ToolError("no luck")), name="says_no")
    server.add_tool(failing(RpcError(7, "seven")), name="answers")
    server.add_tool(failing(KeyError("secret")), name="crashes")
    server.add_resource("a:1", failing(ToolError("no luck")), name="says_no")
    server.add_resource("a:2", failing(NotFound("gone")), name="is_gone")
    server.add_prompt(failing(ToolError("no luck")), name="says_no")

    async def outcome(running: Awaitable[object]) -> tuple[str, str]:
        with pytest.raises(modelwire.ModelwireError) as raised:
            await running
        return type(raised.value).__name__, str(raised.value)

    async with Client(server) as client:
        assert await outcome(client.call("says_no")) == ("ToolError", "no luck")
        assert await outcome(client.call("answers")) == ("PeerError", "seven (7)")
        kind, text = await outcome(client.call("crashes"))
        assert (kind, "secret" in text) == ("ToolError", False)
        assert await outcome(client.read_resource("a:1")) == ("PeerError", "no luck (-32603)")
        assert await outcome(client.get_prompt("says_no")) == ("PeerError", "no luck (-32603)")
        assert (await outcome(client.read_resource("a:2")))[0] == "ResourceNotFound"
    assert [name for row in raised("README.md") for name in cited(row[0])] == [
        "ToolError", "ToolError", "NotFound", "RpcError",
    ]  # fmt: skip


@pytest.mark.parametrize("page", WORKS)
def test_the_variables_that_a_server_gets_are_named(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert [name for name in (*INHERITED, *PYTHON_VARIABLES) if f"`{name}`" not in text] == []


@pytest.mark.parametrize("page", WORKS)
def test_every_link_leads_to_a_file(page: str) -> None:
    links = re.findall(r"\]\(([^)]+)\)", (ROOT / page).read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (ROOT / link).is_file()] == []


def blocks_of_commands() -> list[list[str]]:
    return [block.code.splitlines() for block in fenced_blocks(ROOT / "README.md") if block.info == "sh"]


def begins_a_server(lines: list[str]) -> bool:
    """Whether the lines of a block but the first belong into another terminal."""
    return lines[0].startswith("mw run ") and " --http " in lines[0]


def shown_commands() -> list[str]:
    lines = [line for block in blocks_of_commands() if not begins_a_server(block) for line in block]
    return [line for line in lines if re.search(r"(^|\| )mw ", line)]


def test_there_are_commands_to_try() -> None:
    assert len(shown_commands()) > 5


@pytest.mark.slow
@pytest.mark.parametrize("line", shown_commands(), ids=lambda line: re.findall(r"mw (\w+)", line)[0])
def test_a_command_that_the_page_shows_works(line: str) -> None:
    ran = subprocess.run(["sh", "-c", line], cwd=ROOT, env=with_mw(), capture_output=True, timeout=50)
    assert ran.returncode == 0, ran.stderr.decode()
    assert ran.stdout.strip()


def with_mw() -> dict[str, str]:
    return os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


SHOWN = "http://127.0.0.1:8000"
SERVER = """
from modelwire import Server

server = Server("weather", version="1")

@server.tool
def forecast(city: str) -> str:
    return f"sun over {city}"
"""


@pytest.mark.slow
def test_the_commands_to_try_a_server_over_http_work(tmp_path: Path) -> None:
    [(run, *others)] = [block for block in blocks_of_commands() if begins_a_server(block)]
    (tmp_path / "server.py").write_text(SERVER, encoding="utf-8")
    with subprocess.Popen(
        shlex.split(run.replace(":8000", ":0")), cwd=tmp_path, env=with_mw(), stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stderr is not None
            here = re.search(r"http://127[^/]+", server.stderr.readline())
            assert here is not None
            said = [answer_to(line.replace(SHOWN, here[0])) for line in others]
        finally:
            server.terminate()
    assert server.returncode == 0
    called, listed, opened = said
    assert "sun over Oslo" in called
    assert '"name":"forecast"' in listed
    assert "mcp-session-id: " in opened.lower()


def answer_to(line: str) -> str:
    """What a command prints; curl need not be here, so its requests are made without it."""
    words = shlex.split(line, comments=True)
    if words[0] != "curl":
        ran = subprocess.run(words, env=with_mw(), capture_output=True, text=True, timeout=50)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout
    options = argparse.ArgumentParser()
    options.add_argument("url")
    options.add_argument("-i", action="store_true")
    options.add_argument("-H", action="append")
    options.add_argument("-d")
    given = options.parse_args(words[1:])
    headers = dict(header.split(": ", 1) for header in given.H)
    asked = urllib.request.Request(given.url, given.d.encode(), {"Accept": "*/*", **headers})
    with urllib.request.urlopen(asked, timeout=50) as answer:
        return (str(answer.headers) if given.i else "") + answer.read().decode()
