"""What people see: tables, text, colours, progress, and Ctrl-C."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.programs import CTRL_C, WORKSHOP, Terminal, without_colours

pytestmark = pytest.mark.slow  # programs are started, or thousands of frames sent; `make test` does it


def shown(*words: str, code: int = 0, env: dict[str, str] | None = None) -> str:
    with Terminal(*words, env=env) as terminal:
        ended = terminal.finish()
    assert ended == code, terminal.shown
    assert "Traceback" not in terminal.shown
    return terminal.shown


def test_lists_are_tables() -> None:
    text = without_colours(shown("list", WORKSHOP))
    assert text.startswith("workshop 1.2.3, revision 2026-07-28")
    assert "a: integer, b?: integer" in text
    assert "file:///notes.txt" in text
    assert "pr, focus?" in text


def test_a_server_without_what_is_listed_is_said_to_have_none(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("from modelwire import Server\nserver = Server('empty')\n")
    assert "it has no tools, resources or prompts" in shown("list", str(tmp_path / "empty.py"))
    assert "it has no prompts" in shown("list", str(tmp_path / "empty.py"), "prompts")


def test_a_result_is_its_text() -> None:
    assert shown("call", WORKSHOP, "add", "a=1").strip() == "3"


def test_a_structured_result_is_indented_json() -> None:
    assert '\r\n  "text": "x",' in shown("call", WORKSHOP, "show", "text=x")


def test_a_resource_is_its_text_and_a_blob_its_size() -> None:
    assert shown("read", WORKSHOP, "file:///notes.txt").split() == ["Notizen", "日本語"]
    assert "image/png, 40 bytes" in shown("read", WORKSHOP, "file:///blob")


def test_a_prompt_is_its_messages_under_their_roles() -> None:
    assert shown("prompt", WORKSHOP, "review", "pr=1").split("\r\n")[:2] == ["user:", "Review 1, mind None."]


def test_a_failed_tool_is_told_once() -> None:
    assert shown("call", WORKSHOP, "fail", code=5).count("no luck today") == 1


def test_control_characters_of_a_server_do_not_reach_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text(
        "from modelwire import Server\nserver = Server('evil')\n"
        "@server.tool\ndef paint() -> str:\n"
        "    '''\\x1b[2J [bold]loud[/bold]'''\n    return '\\x1b]0;owned\\x07 \\x9b31m'\n"
    )
    target = str(tmp_path / "evil.py")
    assert shown("call", target, "paint").strip() == "\\u001b]0;owned\\u0007 \\u009b31m"
    text = shown("list", target)
    assert "\\u001b[2J" in text
    assert "[bold]loud[/bold]" in text


def test_json_on_a_terminal_is_json_and_indented() -> None:
    assert shown("list", WORKSHOP, "prompts", "--json").startswith('{\r\n  "prompts": [')


def test_the_wire_is_coloured_and_long_frames_are_shortened() -> None:
    text = shown("list", WORKSHOP, "tools", "--json", "--wire")
    assert "\x1b[36mout →" in text
    assert "\x1b[32min  ←" in text
    assert " bytes)" in text


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colours_can_be_declined(env: dict[str, str]) -> None:
    assert "\x1b" not in shown("call", WORKSHOP, "add", "a=1", "--wire", env=env)


def test_progress_is_one_line_that_is_rewritten_and_erased(tmp_path: Path) -> None:
    with Terminal("call", WORKSHOP, "steps", "count=3", out=tmp_path / "out") as terminal:
        assert terminal.finish() == 0
    assert "\r\x1b[2K2/3 (67%)  step 2" in terminal.shown
    assert terminal.shown.endswith("\r\x1b[2K")
    assert '"walked"' in (tmp_path / "out").read_text()


@pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
def test_ctrl_c_cancels_the_call_on_the_server_and_ends_with_130(revision: str, tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    with Terminal("call", WORKSHOP, "steps", "count=2", f"witness={witness}", "--revision", revision) as terminal:
        terminal.read_until("step 2")
        terminal.press(CTRL_C)
        assert terminal.finish() == 130
    assert witness.read_text() == "the caller gave up"
    assert "Traceback" not in terminal.shown
    assert "mw: interrupted" in terminal.shown


def test_ctrl_c_while_connecting_ends_with_130() -> None:
    silent = "import sys; print('started', file=sys.stderr, flush=True); sys.stdin.read()"
    with Terminal("list", "-v", "--", sys.executable, "-c", silent) as terminal:
        terminal.read_until("started")
        terminal.press(CTRL_C)
        assert terminal.finish() == 130
    assert "Traceback" not in terminal.shown


def test_without_rich_tables_are_refused_with_the_pip_line_and_json_works(tmp_path: Path) -> None:
    (tmp_path / "rich.py").write_text("raise ImportError('no rich here')\n")
    env = {"PYTHONPATH": str(tmp_path)}
    assert "pip install 'modelwire[cli]'" in shown("list", WORKSHOP, code=1, env=env)
    assert '"tools": [' in shown("list", WORKSHOP, "tools", "--json", env=env)
