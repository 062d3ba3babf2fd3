"""The official conformance suite: where it is, what scenarios it has, and how its command is run.

`make peers` installs the suite, and the Node that it needs, into `node/`; nothing else of it is on the machine. It is
set on a server by `tests.conformance.server_half`, on a client by `tests.conformance.client_half`; what the checks
amount to is `tests.conformance.verdicts`'s business.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from tests.conformance.verdicts import EXTENSIONS, HERE

ROOT = HERE.parent.parent
PACKAGES = HERE / "node" / "node_modules"
SUITE = PACKAGES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
"""Those that the suite knows."""
PATIENCE = 120.0
"""Seconds after which a run that should take a few has gone wrong."""
_LISTED = re.compile(r"^  - (\S+) \[(.*)\]$", re.MULTILINE)

Side: TypeAlias = Literal["server", "client"]
Checks: TypeAlias = dict[str, list[dict[str, Any]]]
"""What became of a scenario's checks, by scenario."""
Run: TypeAlias = Callable[[str, list[str]], Checks]
"""Runs scenarios of a revision, or of `EXTENSIONS`."""


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


def scenarios(side: Side) -> dict[str, list[str]]:
    """Return the scenarios that are set on a server, or a client, by revision; those of extensions by `EXTENSIONS`."""
    found: dict[str, list[str]] = {where: [] for where in (*REVISIONS, EXTENSIONS)}
    for name, of in _LISTED.findall(command("list", f"--{side}").stdout):
        for where in of.split(","):
            found[EXTENSIONS if where == "extension" else where].append(name)
    return found


def environment(**more: str) -> Mapping[str, str]:
    """Return the environment of a program that imports from this checkout."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]), **more}


def command(*arguments: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run the suite's command in the checkout. Its status says less than its files."""
    program = node()
    assert program is not None, absent()
    return subprocess.run(
        [program, str(SUITE), *arguments], cwd=ROOT, env=env, capture_output=True, text=True, timeout=PATIENCE
    )
