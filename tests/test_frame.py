"""The promises of the package as a whole: light imports, one version, files that fit in the head."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import modelwire
from tests.conftest import ALLOWED_SKIPS, parse_allowed_skips, refuse_unlisted_skip
from tests.test_docs import fenced_blocks

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
LONGEST_FILE = 600
FOREIGN_TO_IMPORT = {
    "aiohttp", "attrs", "cyclopts", "httptools", "httpx", "jsonschema_rs", "pydantic", "rich", "starlette", "typer",
    "uvicorn", "uvloop", "websockets", "modelwire.cli",
}  # fmt: skip
NAMELESS_MODULES = {"utils", "util", "shared", "common", "helpers", "misc"}
FRESH_INTERPRETER = [sys.executable, "-X", "utf8", "-c"]


def test_importing_modelwire_loads_no_pydantic_no_http_library_and_no_command_line() -> None:
    code = "import json, sys, modelwire; print(json.dumps(sorted(sys.modules)))"
    loaded = json.loads(subprocess.run([*FRESH_INTERPRETER, code], capture_output=True, check=True).stdout)
    assert "modelwire" in loaded
    assert FOREIGN_TO_IMPORT.isdisjoint(loaded)


def test_importing_modelwire_prints_nothing_and_warns_of_nothing() -> None:
    ran = subprocess.run([*FRESH_INTERPRETER, "import modelwire"], capture_output=True, env={"PYTHONWARNINGS": "error"})
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


def test_the_version_is_the_one_that_is_installed() -> None:
    assert modelwire.__version__ == importlib.metadata.version("modelwire")


def test_every_public_name_exists() -> None:
    missing = [name for name in modelwire.__all__ if not hasattr(modelwire, name)]
    assert missing == []


def test_every_source_file_says_what_it_is_for() -> None:
    silent = [str(path) for path in SOURCES if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))]
    assert silent == []


def test_no_source_file_is_longer_than_600_lines() -> None:
    lengths = {str(path): len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    assert {path: length for path, length in lengths.items() if length > LONGEST_FILE} == {}


def test_no_module_has_a_name_that_says_nothing() -> None:
    named = {part for path in SOURCES for part in (*path.relative_to(ROOT).parts[:-1], path.stem)}
    assert named & NAMELESS_MODULES == set()


def test_every_folder_of_sources_is_a_package() -> None:
    folders = {path.parent for path in SOURCES} - {ROOT / "src"}
    assert [str(folder) for folder in sorted(folders) if not (folder / "__init__.py").is_file()] == []


def test_the_two_readmes_have_the_same_code_blocks() -> None:
    english, chinese = (fenced_blocks(ROOT / name) for name in ("README.md", "README.zh-CN.md"))
    assert english
    assert [(block.info, block.code) for block in english] == [(block.info, block.code) for block in chinese]


def test_the_constraints_pin_exact_versions_without_addresses_or_hashes() -> None:
    lines = [line for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if line[:1] != "#"]
    assert lines
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line)] == []


def test_an_allowed_skip_without_a_reason_is_refused() -> None:
    with pytest.raises(pytest.UsageError, match="give a reason"):
        parse_allowed_skips("tests/test_frame.py::test_x\n")


def test_every_allowed_skip_names_a_test_file_that_exists() -> None:
    gone = [pattern for pattern in ALLOWED_SKIPS if not list(ROOT.glob(pattern.partition("::")[0]))]
    assert gone == []


def test_a_skip_that_the_list_does_not_name_becomes_a_failure_with_its_reason() -> None:
    skipped = pytest.TestReport("tests/test_x.py::test_y[1]", ("x", 1, "y"), {}, "skipped", ("x", 1, "no net"), "call")
    refuse_unlisted_skip(skipped)
    assert skipped.failed
    assert "no net" in str(skipped.longrepr)


def test_a_skip_that_the_list_names_stays_a_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ALLOWED_SKIPS, "tests/test_x.py::test_y[*", "a fake")
    skipped = pytest.TestReport("tests/test_x.py::test_y[1]", ("x", 1, "y"), {}, "skipped", ("x", 1, "no net"), "call")
    refuse_unlisted_skip(skipped)
    assert skipped.skipped


def test_an_expected_failure_is_no_skip() -> None:
    xfailed = pytest.TestReport("tests/test_x.py::test_y", ("x", 1, "y"), {}, "skipped", "", "call", wasxfail="known")
    refuse_unlisted_skip(xfailed)
    assert xfailed.skipped


def test_the_page_of_the_package_is_the_readme() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["readme"] == "README.md"
