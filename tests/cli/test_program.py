"""The program as a whole: commands, wrong use, exit codes, and what goes to which stream."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys

import pytest

from modelwire.cli import main
from modelwire.version import __version__
from tests.cli.programs import PROGRAM, WORKSHOP, mw


def test_help_names_every_command_and_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    for command in ("run", "list", "call", "read", "prompt"):
        assert f"\n  {command} " in shown
    assert "7 out of time" in shown


@pytest.mark.parametrize("command", ["run", "list", "call", "read", "prompt"])
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"usage: mw {command} ")


def test_help_says_how_a_python_file_is_started(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "started as a program" in shown
    assert "served by `mw run FILE.py`" in shown
    assert "-- node server.js" in shown


def test_version_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"modelwire {__version__}\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Usage: mw COMMAND"),
        (["lst"], "Did you mean 'list'?"),
        (["dance"], "There are: run, list, call, read, prompt"),
        (["list"], "required: TARGET"),
        (["list", "--", *()], "after -- the server's command is expected"),
        (["list", "x.py", "toys"], "invalid choice: 'toys'"),
        (["list", "server.js"], "goes to the end of the line, after --"),
        (["list", "python", "shop.py"], "mw list -- python shop.py"),
        (["list", "python", "shop.py", "tools"], "mw list tools -- python shop.py"),
        (["call", "python", "shop.py", "get", "id=1"], "mw call get id=1 -- python shop.py"),
        (["read", "node", "server.js", "file:///x"], "mw read file:///x -- node server.js"),
        (["prompt", "node", "server.js", "review"], "mw prompt review -- node server.js"),
        (["list", "gopher://localhost/mcp"], "is an address"),
        (["list", WORKSHOP, "--timeout", "soon"], "no number of seconds"),
        (["list", WORKSHOP, "--timeout", "0"], "no number of seconds"),
        (["list", WORKSHOP, "--timeout", "nan"], "no number of seconds"),
        (["list", WORKSHOP, "--revision", "1999-01-01"], "known are 2024-11-05"),
        (["list", WORKSHOP, "--env", "=x"], "cannot be the name of an environment variable"),
        (["call", WORKSHOP], "required: TOOL"),
        (["call", WORKSHOP, "add", "three"], "write name=value"),
        (["call", WORKSHOP, "add", "a:=x"], "is no JSON"),
        (["call", WORKSHOP, "add", "--spin"], "unrecognized arguments: --spin"),
        (["run"], "required: FILE"),
    ],
)
def test_wrong_use_ends_with_1_and_says_what_is_right(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert "Traceback" not in err


def test_an_error_under_json_is_one_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "server.js", "--json"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    error = json.loads(err)["error"]
    assert (error["kind"], error["exitCode"]) == ("usage", 1)


def test_options_may_stand_anywhere() -> None:
    ran = mw("call", "--json", WORKSHOP, "add", "a=1", "--revision", "2025-06-18", "b=5")
    assert ran.code == 0, ran.err
    assert ran.value["structuredContent"] == {"result": 6} or ran.value["structuredContent"] == 6


@pytest.mark.parametrize("locale", ["C", "POSIX", "xx_YY.ISO-8859-1"])
def test_stdout_is_utf8_whatever_the_locale(locale: str) -> None:
    ran = mw("read", WORKSHOP, "file:///notes.txt", env={"LC_ALL": locale, "PYTHONCOERCECLOCALE": "0"})
    assert ran.value["contents"][0]["text"] == "Notizen\n日本語"


def test_a_reader_that_leaves_early_gets_no_traceback() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ran = subprocess.run(
        [*PROGRAM, "list", WORKSHOP], stdout=writing, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=30
    )
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (141, b"")


def test_help_loads_neither_asyncio_nor_msgspec_nor_rich() -> None:
    code = (
        "import sys, io; from modelwire.cli import main; sys.stdout = io.StringIO(); main(['call', '--help']); "
        "print(sorted({'asyncio', 'msgspec', 'rich', 'dataclasses', 'logging'} & set(sys.modules)), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert ran.stderr == b"[]\n"


@pytest.mark.bench
def test_help_costs_little_more_than_starting_python() -> None:
    def cpu(*command: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        for _ in range(10):
            subprocess.run([sys.executable, *command], stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    bare, ours = cpu("-c", "pass"), cpu("-m", "modelwire", "--help")
    assert ours < 6 * bare
