"""Sets the suite on our server, `tests/conformance/server.py`, which it runs in a process of its own."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

from tests.conformance.relay import speaking
from tests.conformance.suite import PATIENCE, ROOT, Checks, Run, command, environment
from tests.conformance.verdicts import EXTENSIONS

_URL = re.compile(r"listening on (http://\S+);")


@contextlib.contextmanager
def ready() -> Generator[Run]:
    """Have the server running, and return what sets the suite on it; see `served`."""
    with served() as url:
        yield lambda where, wanted: run(where, url, wanted)


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
            command("server", "--url", url, *arguments, "-o", folder)
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


@contextlib.contextmanager
def served() -> Generator[str]:
    """Run the server in a process of its own, and return its URL.

    Raises:
        AssertionError: It did not start, ended before it was told to, did not end in peace, or a handler of it crashed.
    """
    with tempfile.TemporaryDirectory() as folder:
        errors = Path(folder) / "stderr"
        with errors.open("wb") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.conformance.server"],
                cwd=ROOT,
                env=environment(),
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
