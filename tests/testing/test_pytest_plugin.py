"""The fixtures for pytest, each in a pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from modelwire.testing import REVISIONS
from tests.test_docs import ROOT, fenced_blocks

pytestmark = pytest.mark.slow  # programs are started, or thousands of frames sent; `make test` does it

TESTS = """
import pytest
from modelwire import Server
from modelwire.testing import REVISIONS

server = Server("shop")
opened = []

@server.tool
async def add(a: int, b: int) -> int:
    return a + b

@pytest.mark.asyncio
async def test_add(mcp_client):
    client = await mcp_client(server)
    other = await mcp_client(server, revision="2025-06-18")
    opened.extend([client, other])
    assert await client.call("add", {"a": 1, "b": 2}, returns=int) == 3
    assert len(client.frames.sent("tools/call")) == 1
    assert other.revision.name == "2025-06-18"

def test_clients_are_closed_when_their_test_ends():
    assert [client.connected for client in opened] == [False, False]

def test_without_await(mcp_sync_client):
    client = mcp_sync_client(server)
    opened.append(client)
    assert client.call("add", {"a": 1, "b": 2}, returns=int) == 3

def test_they_are_closed_too():
    assert not opened[-1].connected

@pytest.mark.asyncio
async def test_every_revision(mcp_client, mcp_revision):
    client = await mcp_client(server, revision=mcp_revision)
    assert client.revision.name == mcp_revision

def test_all_revisions_are_there(request):
    mine = [item for item in request.session.items if "test_every_revision" in item.name]
    assert len(mine) == len(REVISIONS)
"""

FAILING = """
import pytest
from modelwire import Server

server = Server("shop")
server.add_tool(lambda: "hello", name="hello")

def test_that_fails(mcp_sync_client):
    client = mcp_sync_client(server)
    assert client.call("hello") == "bye"

def test_that_passes(mcp_sync_client):
    mcp_sync_client(server).call("hello")

def test_that_cannot_connect(mcp_sync_client):
    mcp_sync_client(["no-such-program"])
"""


def run(folder: Path, tests: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(tests)
    (folder / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    command = [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=50)


def test_the_fixtures_are_there_wherever_modelwire_is_installed(tmp_path: Path) -> None:
    ran = run(tmp_path, TESTS)
    assert "10 passed" in ran.stdout, ran.stdout + ran.stderr


def test_the_report_of_a_test_that_fails_has_the_frames(tmp_path: Path) -> None:
    ran = run(tmp_path, FAILING)
    assert "1 passed" in ran.stdout, ran.stdout + ran.stderr
    assert "2 failed" in ran.stdout
    assert ran.stdout.count("MCP frames of shop") == 1
    report = ran.stdout[ran.stdout.index("MCP frames of shop") :]
    assert 'out {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hello"' in report


def test_the_tests_that_the_readme_shows_pass_under_every_revision(tmp_path: Path) -> None:
    blocks = {block.info: block.code for block in fenced_blocks(ROOT / "README.md")}
    (tmp_path / "server.py").write_text(blocks["python file=server.py"])
    ran = run(tmp_path, blocks["python file=test_server.py"])
    assert f"{len(REVISIONS)} passed" in ran.stdout, ran.stdout + ran.stderr


def test_without_pytest_asyncio_the_fixture_says_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "pytest_asyncio.py").write_text("raise ImportError('hidden by the test')\n")
    tests = "def test_it(mcp_client):\n    pass\ndef test_other(mcp_sync_client):\n    pass\n"
    ran = run(tmp_path, tests, "-p", "no:asyncio", "-W", "ignore::pytest.PytestConfigWarning")
    assert "the fixture mcp_client needs pytest-asyncio: pip install pytest-asyncio" in ran.stdout, (
        ran.stdout + ran.stderr
    )
    assert "1 passed, 1 error" in ran.stdout


def test_the_plugin_loads_little() -> None:
    code = "import sys, modelwire.testing.pytest_plugin; print({'msgspec', 'modelwire.client'} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=True)
    assert ran.stdout.strip() == "set()"
