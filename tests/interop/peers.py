"""Where the programs that others wrote are, and how tests start them and hold them to their end.

`make test` installs them (the targets are in the Makefile). Knows nothing of what the programs say.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import uuid
from collections.abc import AsyncIterator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from modelwire import Client

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PYTHON = ROOT / ".venv-interop" / "bin" / "python"
NODE = HERE / "node"
MODERN = "2026-07-28"
LEGACY = "2025-11-25"
OLD = "2025-03-26"
"""The last revision whose results carry no structured content."""
PATIENCE = 30.0
"""Seconds after which what a peer should have said or done is missing."""
MARK = "MODELWIRE_INTEROP_TEST"
"""The environment variable by which the processes of one test are found again, and those that they started."""

shared_loop = pytest.mark.asyncio(loop_scope="module")
"""For files whose tests share a client."""
needs_python_peers = pytest.mark.skipif(
    not (ROOT / ".venv-interop" / ".ready").exists(),
    reason="the Python peers are not installed in .venv-interop; `make test` does it",
)
needs_node_peers = pytest.mark.skipif(
    shutil.which("node") is None or not (NODE / "node_modules" / ".ready").exists(),
    reason="the npm peers are not installed in tests/interop/node; `make test` does it where node and npm are",
)


def python_server(name: str, *arguments: str) -> list[str]:
    """Return the command of a server that is a Python package, such as ``time``."""
    return [str(PYTHON.with_name(f"mcp-server-{name}")), *arguments]


def node_server(name: str, *arguments: str) -> list[str]:
    """Return the command of a server that is an npm package, such as ``everything``."""
    package = NODE / "node_modules" / "@modelcontextprotocol" / f"server-{name}"
    return ["node", str(package / "dist" / "index.js"), *arguments]


def program(name: str, *arguments: str) -> list[str]:
    """Return the command of a program of this folder that is written with a peer's library, by its path."""
    path = HERE / name
    return [str(PYTHON) if path.suffix == ".py" else "node", str(path), *arguments]


@asynccontextmanager
async def connected(command: Sequence[str], **settings: Any) -> AsyncIterator[Client]:
    """Give a client of a server; at the end nothing may be left of the server, which must have ended in peace.

    Args:
        command: The server.
        settings: As `Client` takes them.
    """
    with_mark = {**settings.pop("env", {}), MARK: uuid.uuid4().hex}
    async with Client(command, env=with_mark, connect_timeout=2 * PATIENCE, **settings) as client:
        yield client
    # On a busy machine an interpreter may take longer to end than it is waited for; it is then told to.
    assert client.exit_code in (0, -signal.SIGTERM), client.stderr
    assert processes(with_mark[MARK]) == []


def _revision_id(revision: str | None) -> str:
    return revision or "found out"


def clients_of(command: Sequence[str], *revisions: str | None, **settings: Any) -> Any:
    """Return a fixture: a client of a server that the tests of a file share, since many servers are slow to start.

    Args:
        command: The server.
        revisions: Those to speak, each in turn; None to find out, which is all when none is given.
        settings: As `Client` takes them.
    """

    @pytest_asyncio.fixture(scope="module", loop_scope="module", params=revisions or (None,), ids=_revision_id)
    async def client(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
        async with connected(command, revision=request.param, **settings) as client:
            yield client

    return client


def seen_by(
    client: Sequence[str],
    server: Sequence[str],
    mode: str,
    calls: Mapping[str, Any],
    *,
    whole: bool,
    over_http: bool = False,
) -> Any:
    """Run a client that is written with a peer's library, and return what it saw; nothing may be left of the server.

    Args:
        client: The client's command. It is given the plan on stdin as JSON, prints what it saw as JSON, and ends.
        server: The server's command.
        mode: The era, in the words of the library.
        calls: Which tools to call, with their arguments.
        whole: Whether to do everything that `tests/interop/server.py` is there for; or only to list and call.
        over_http: Whether the server is one of ours that is started before, to be found at a URL.
    """
    if over_http:
        with serving(server) as url:
            return _seen_by(client, {"server": [*server], "url": url, "mode": mode, "calls": calls, "whole": whole})
    return _seen_by(client, {"server": [*server], "url": None, "mode": mode, "calls": calls, "whole": whole})


@contextmanager
def serving(server: Sequence[str]) -> Generator[str]:
    """Have a server of ours serve over HTTP, and give its URL; it must end in peace."""
    command = [*server, "http://127.0.0.1:0/mcp"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, cwd=ROOT) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        found = re.search(r"listening on (\S+);", said)
        try:
            assert found is not None, said + process.stderr.read()
            yield found[1]
        finally:
            process.terminate()
            left = process.stderr.read()
    assert process.returncode == 0, left


def _seen_by(client: Sequence[str], plan: dict[str, Any]) -> Any:
    mark = uuid.uuid4().hex
    plan = {**plan, "env": {MARK: mark}}
    ran = subprocess.run(
        [*client],
        input=json.dumps(plan),
        capture_output=True,
        text=True,
        timeout=PATIENCE * 2,
        cwd=ROOT,
        env={**os.environ, MARK: mark},
    )
    assert ran.returncode == 0, f"{ran.returncode}\n{ran.stdout[-3000:]}\n{ran.stderr[-6000:]}"
    assert processes(mark) == []
    return json.loads(ran.stdout)


def processes(mark: str) -> list[str]:
    """Return the command lines of the running processes that have a mark in their environment."""
    wanted = f"{MARK}={mark}".encode()
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue  # it ended meanwhile, or is another user's
    return found
