"""Every example in the documentation runs: python blocks of the pages, and the prompts in docstrings of `src`.

A block with nothing but ``python`` behind its fence is run as a program of its own, with the page's folder as its
working directory and nothing on stdin. ``python file=server.py`` is written to that file of the folder
instead, for the blocks after it. Sketches belong in `docs/design.md`, which is left out.
"""

from __future__ import annotations

import doctest
import importlib
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src"
SKETCHES = {ROOT / "docs" / "design.md"}
PAGES = [path for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if path not in SKETCHES]
BLOCK_SECONDS = 20
FENCE = re.compile(r"(?P<indent> *)(?P<fence>`{3,}|~{3,}) *(?P<info>[^`]*)")
FILE_INFO = re.compile(r"python file=(?P<name>[A-Za-z0-9_.-]+)")


@dataclass(frozen=True)
class Block:
    """One fenced code block of a page; ``line`` is where its code begins."""

    info: str
    code: str
    line: int


def fenced_blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    blocks: list[Block] = []
    lines = iter(enumerate(page.read_text(encoding="utf-8").splitlines(), start=1))
    for number, line in lines:
        opened = FENCE.fullmatch(line)
        if opened is None:
            continue
        code: list[str] = []
        for _, inner in lines:
            closed = FENCE.fullmatch(inner)
            if closed and not closed["info"].strip() and closed["fence"].startswith(opened["fence"]):
                break
            code.append(inner.removeprefix(opened["indent"]))
        else:
            raise AssertionError(f"{page.name}:{number}: this code block never ends")
        blocks.append(Block(opened["info"].strip(), "\n".join(code) + "\n", number + 1))
    return blocks


def run_block(block: Block, place: str, folder: Path) -> str:
    """Run one block as a program. Returns what went wrong, or an empty string."""
    env = os.environ | {"PYTHONUTF8": "1", "PYTHONWARNINGS": "error"}
    program = "\n" * (block.line - 1) + block.code
    source = folder / f"{place.replace(':', '_line_')}.py"
    source.write_text(program, encoding="utf-8")
    try:
        subprocess.run(
            [sys.executable, source], cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True,
            timeout=BLOCK_SECONDS, check=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"{place}: still running after {BLOCK_SECONDS} s"
    except subprocess.CalledProcessError as failed:
        return f"{place}: exit code {failed.returncode}\n{failed.stderr.decode(errors='replace')}"
    return ""


def run_page(page: Path, folder: Path) -> list[str]:
    """Run the python blocks of a page in order. Returns what went wrong."""
    wrong: list[str] = []
    for block in fenced_blocks(page):
        place = f"{page.name}:{block.line}"
        named = FILE_INFO.fullmatch(block.info)
        if named:
            (folder / named["name"]).write_text(block.code, encoding="utf-8")
        elif block.info == "python":
            wrong.append(run_block(block, place, folder))
        elif block.info.startswith("python"):
            wrong.append(f"{place}: say `python` or `python file=NAME`, not {block.info!r}")
    return [one for one in wrong if one]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_python_block_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    assert run_page(page, tmp_path) == []


def test_a_block_can_use_the_files_that_earlier_blocks_wrote(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python file=seven.py\nN = 7\n```\ntext\n```python\nimport seven\nassert seven.N == 7\n```\n")
    assert run_page(page, tmp_path) == []


def test_a_block_that_fails_is_reported_with_its_page_and_line(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("text\n\n~~~~python\n1 / 0\n~~~~\n")
    [wrong] = run_page(page, tmp_path)
    assert wrong.startswith("page.md:4: exit code 1")
    assert "line 4" in wrong
    assert "ZeroDivisionError" in wrong


def test_a_block_with_an_unknown_word_behind_its_fence_is_reported(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python norun\n```\n")
    assert run_page(page, tmp_path) == ["page.md:2: say `python` or `python file=NAME`, not 'python norun'"]


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")


def run_docstrings(name: str) -> tuple[int, str]:
    """Run the examples in one module's docstrings. Returns how many there were, and what went wrong."""
    module = importlib.import_module(name)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for examples in doctest.DocTestFinder().find(module, name):
        runner.run(examples, out=report.append)
    return runner.summarize(verbose=False).attempted, "".join(report)


def test_every_example_in_a_docstring_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with_prompts = [path for path in sorted(SRC.rglob("*.py")) if "\n    >>> " in path.read_text(encoding="utf-8")]
    outcomes = {name: run_docstrings(name) for name in map(module_name, with_prompts)}
    assert {name: wrong for name, (_, wrong) in outcomes.items() if wrong} == {}
    assert [name for name, (attempted, _) in outcomes.items() if not attempted] == []


def test_a_docstring_example_that_does_not_hold_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wrong_example.py").write_text('"""Say.\n\n    >>> 1 + 1\n    3\n"""\n')
    monkeypatch.syspath_prepend(tmp_path)
    attempted, wrong = run_docstrings("wrong_example")
    assert attempted == 1
    assert "Got:\n    2" in wrong
