"""What type checkers know of methods that are made from others: everything, overloads included."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
from typing import Any, assert_type

import modelwire
from modelwire import GroupEvent, sync, types

def clients(client: sync.Client, group: sync.Group) -> None:
    assert_type(client.call("x", {"a": 1}, returns=int), int)
    assert_type(client.call("x", timeout=5), Any)
    found: int | None = client.call("x", returns=int | None)
    assert_type(group.call("x", returns=list[str]), list[str])
    assert_type(group.call("x"), Any)
    assert_type(client.list_tools(), list[types.Tool])
    assert_type(group.list_tools(timeout=None), list[types.Tool])
    assert_type(group.read_resource("x"), types.ReadResourceResult)
    assert_type(sync.Client(["x"], timeout=5).connect(), sync.Client)
    with group.listen(tools=True) as changes:
        for change in changes:
            assert_type(change, GroupEvent)

async def awaited(group: modelwire.Group) -> None:
    assert_type(await group.call("x", returns=int), int)
    assert_type(await group.call("x"), Any)
    found: list[int] | None = await group.call("x", returns=list[int] | None)
    assert_type(await group.call_tool("x", timeout=5), types.CallToolResult)
    assert_type(await group.complete("x", "y"), types.Completion)

def wrong(client: sync.Client, group: sync.Group) -> None:
    client.call("x", retuns=int)
    client.list_tools(5)
    group.call(5)
    sync.Client("x", timout=5)
"""


@pytest.mark.slow
def test_type_checkers_know_what_methods_take_and_return(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, str(program)]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=55, check=False)
    found = json.loads(ran.stdout)["generalDiagnostics"]
    wrong = PROGRAM[: PROGRAM.index("def wrong")].count("\n")
    lines = [one["range"]["start"]["line"] for one in found if one["severity"] == "error"]
    assert sorted(set(lines)) == [wrong + 1, wrong + 2, wrong + 3, wrong + 4], found
