"""Runs the official conformance suite: where it is, the server that it is set on, and the checks that come of it.

`make peers` installs the suite, and the Node that it needs, into `node/`; nothing else of it is on the machine. What
the checks amount to is `tests.conformance.verdicts`'s business.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

from tests.conformance.relay import speaking
from tests.conformance.verdicts import EXTENSIONS, HERE

ROOT = HERE.parent.parent
PACKAGES = HERE / "node" / "node_modules"
SUITE = PACKAGES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
"""Those that the suite knows."""
PATIENCE = 120.0
"""Seconds after which a run that should take a few has gone wrong."""
_LISTED = re.compile(r"^  - (\S+) \[(.*)\]$", re.MULTILINE)
_URL = re.compile(r"listening on (http://\S+);")

Checks = dict[str, list[dict[str, Any]]]
"""What became of a scenario's checks, by scenario."""


def node() -> str | None:
    """Return the Node that runs the suite: the one beside it, or, where npm has none for the machine, a new one."""
    beside = sorted(PACKAGES.glob("node-*/bin/node"))
    if beside:
        return str(beside[0])
    found = shutil.which("node")
    if found is None:
        return None
    version = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=PATIENCE).stdout
    return found if int(version.lstrip("v").partition(".")[0] or 0) >= 22 else None


def absent() -> str | None:
    """Return why the suite cannot be run here."""
    if not (PACKAGES / ".ready").exists():
        return "the conformance suite is not in tests/conformance/node; `make test` installs it where npm is"
    return None if node() else "the conformance suite needs Node 22 or later, and npm has none for this machine"


def scenarios() -> dict[str, list[str]]:
    """Return the server scenarios by revision; those of extensions under `EXTENSIONS`."""
    found: dict[str, list[str]] = {where: [] for where in (*REVISIONS, EXTENSIONS)}
    for name, of in _LISTED.findall(_run("list", "--server")):
        for where in of.split(","):
            found[EXTENSIONS if where == "extension" else where].append(name)
    return found


def unused_port() -> int:
    """Return a port of the machine that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def run(where: str, url: str, wanted: list[str]) -> Checks:
    """Set the suite on a server, and return its checks.

    Args:
        where: A revision, all of whose scenarios run one after the other; or `EXTENSIONS`.
        url: The server.
        wanted: The scenarios. Those of extensions are no suite and run each by itself.
    """
    with tempfile.TemporaryDirectory() as folder, _spoken(where, url) as url:
        which = [["--suite", "all", "--spec-version", where]]
        if where == EXTENSIONS:
            which = [["--scenario", name] for name in wanted]
        for arguments in which:
            _run("server", "--url", url, *arguments, "-o", folder)
        return {name: checks for name in wanted if (checks := _checks(Path(folder), name)) is not None}


def _spoken(where: str, url: str) -> contextlib.AbstractContextManager[str]:
    """Where the suite's client would speak another revision than the one to be tested, have it speak that."""
    return speaking(where, url) if where == "2025-06-18" else contextlib.nullcontext(url)


def _checks(folder: Path, scenario: str) -> list[dict[str, Any]] | None:
    written = re.compile(rf"server-{re.escape(scenario)}-\d{{4}}-\d\d-\d\dT[\d-]+Z")
    for found in folder.iterdir():
        if written.fullmatch(found.name) and (found / "checks.json").exists():
            return json.loads((found / "checks.json").read_text(encoding="utf-8"))
    return None


def _run(*arguments: str) -> str:
    """Run the suite's command. Its status says less than its files."""
    program = node()
    assert program is not None, absent()
    ran = subprocess.run([program, str(SUITE), *arguments], capture_output=True, text=True, timeout=PATIENCE)
    return ran.stdout


@contextlib.contextmanager
def served() -> Generator[str]:
    """Run the server in a process of its own, and return its URL.

    Raises:
        AssertionError: It did not start, ended before it was told to, did not end in peace, or a handler of it crashed.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    with tempfile.TemporaryDirectory() as folder:
        errors = Path(folder) / "stderr"
        with errors.open("wb") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.conformance.server"],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stderr=stderr,
            )
        try:
            yield _url(process, errors)
            assert process.poll() is None, f"the server ended while it was tested:\n{_end_of(errors)}"
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        assert process.returncode == 0, f"the server ended with {process.returncode}:\n{_end_of(errors)}"
        assert b"Traceback" not in errors.read_bytes(), f"something failed in the server:\n{_end_of(errors)}"


def _url(process: subprocess.Popen[bytes], errors: Path) -> str:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and process.poll() is None:
        found = _URL.search(errors.read_text())
        if found is not None:
            return found[1].replace("127.0.0.1", "localhost")  # the only name that every scenario takes
        time.sleep(0.02)
    raise AssertionError(f"the server did not start:\n{_end_of(errors)}")


def _end_of(errors: Path) -> str:
    return errors.read_text(errors="replace")[-3000:]
