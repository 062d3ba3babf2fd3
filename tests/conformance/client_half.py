"""Sets the suite on our client, `tests/conformance/client.py`: each scenario by itself, in two processes of its own.

Only so does the suite notice how the client ended; and more than two at once time out on small machines.
"""

from __future__ import annotations

import contextlib
import functools
import json
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.conformance.client import DONE
from tests.conformance.suite import REVISIONS, Checks, Run, command, environment
from tests.conformance.verdicts import EXTENSIONS, PROGRAM

AT_ONCE = 2
NEAR = {"NO_PROXY": "localhost", "no_proxy": "localhost"}
# The suite splits at blanks, without quotes, and hands the rest to a shell; when it gives up it ends only that one.
CLIENT = 'exec "$CONFORMANCE_PYTHON" -W error -m tests.conformance.client'


@contextlib.contextmanager
def ready() -> Generator[Run]:
    """Return what sets the suite on the client, two scenarios at a time."""
    yield functools.partial(run, at_once=AT_ONCE)


def run(where: str, wanted: Sequence[str], *, at_once: int = 1, program: str = CLIENT) -> Checks:
    """Set the suite on a client, and return its checks; a client that ended badly is one more that failed.

    Args:
        where: A revision, or `EXTENSIONS`, whose scenarios run on the newest.
        wanted: The scenarios.
        at_once: How many run at a time.
        program: What is started.
    """
    with ThreadPoolExecutor(at_once) as pool:
        return dict(zip(wanted, pool.map(functools.partial(_one, where, program), wanted)))


def _one(where: str, program: str, scenario: str) -> list[dict[str, Any]]:
    revision = ["--spec-version", where]
    if where == EXTENSIONS:  # by itself the suite speaks 2025-11-25 there, which knows no extensions
        revision = ["--spec-version", REVISIONS[-1], "--force"]
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["--command", program, "--scenario", scenario, *revision, "-o", folder]
        try:
            ran = command("client", *arguments, env=environment(CONFORMANCE_PYTHON=sys.executable, **NEAR))
        except subprocess.TimeoutExpired as error:
            return [_failed(f"the suite did not end within {error.timeout:g} s")]
        written = next(Path(folder).rglob("checks.json"), None)
        if written is None:
            return [_failed(f"the suite wrote no checks: {ran.stderr[-1000:]}")]
        checks: list[dict[str, Any]] = json.loads(written.read_text(encoding="utf-8"))
        stdout, stderr = ((written.parent / f"{name}.txt").read_text(encoding="utf-8") for name in ("stdout", "stderr"))
        wrong = fault(checks, ran.returncode, ran.stderr, stdout, stderr)
        return checks if wrong is None else [*checks, _failed(wrong)]


def fault(checks: Sequence[dict[str, Any]], status: int, said: str, stdout: str, stderr: str) -> str | None:
    """Return what is wrong with how a scenario ended.

    Args:
        checks: What the suite has checked.
        status: How the suite's command ended. It looks at how the client did, but not in every scenario.
        said: What it wrote to stderr.
        stdout: What the client wrote.
        stderr: Its stderr.
    """
    if "Traceback" in stderr:
        return f"something failed in the client: {stderr[-800:]}"
    if DONE not in stdout:
        return f"the client did not come to its end: {stderr[-800:]}"
    if status and not any(check["status"] in ("FAILURE", "WARNING") for check in checks):
        return f"the suite is content with every check, but not with how the client ended: {said[-1000:]}"
    return None


def _failed(why: str) -> dict[str, Any]:
    return {"id": PROGRAM, "status": "FAILURE", "errorMessage": why}
