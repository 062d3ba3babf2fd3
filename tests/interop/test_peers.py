"""What is talked to is fixed to exact versions, without addresses; and a process that is left over is found."""

from __future__ import annotations

import json
import re
import subprocess
import sys

from tests.interop.peers import HERE, MARK, NODE, processes


def test_versions_are_exact_and_no_address_is_written_down() -> None:
    pins = [line for line in (HERE / "constraints.txt").read_text().splitlines() if line[:1] != "#"]
    assert [pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", pin)] == []
    assert {"mcp", "fastmcp", "mcp-server-time"} <= {pin.partition("==")[0] for pin in pins}
    packages = json.loads((NODE / "package.json").read_text())["dependencies"]
    assert [version for version in packages.values() if not re.fullmatch(r"\d+\.\d+\.\d+", version)] == []
    settings = (NODE / ".npmrc").read_text().splitlines()
    assert "package-lock=false" in settings
    assert "ignore-scripts=true" in settings
    assert not (NODE / "package-lock.json").exists()


def test_a_process_is_found_by_its_mark_as_long_as_it_runs() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env={MARK: "one"})
    try:
        assert len(processes("one")) == 1
        assert processes("another") == []
    finally:
        child.communicate(b"\n")
    assert processes("one") == []
