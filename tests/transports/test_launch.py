"""What a child inherits, and what is said when it cannot be started."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from modelwire.errors import ConfigError, ConnectionFailed
from modelwire.transports.launch import INHERITED, child_environment, launch
from modelwire.transports.process import spawn


@pytest.fixture
def parent(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name in ("PATH", "HOME", "LANG", "LC_TIME", "API_KEY", "NODE_OPTIONS", "NODE_PATH"):
        monkeypatch.setenv(name, f"parent's {name}")


@pytest.mark.usefixtures("parent")
def test_only_the_listed_variables_are_inherited() -> None:
    assert set(child_environment()) == {"PATH", "HOME", "LANG", "LC_TIME"}


@pytest.mark.usefixtures("parent")
def test_given_variables_are_added_and_win() -> None:
    environment = child_environment({"API_KEY": "given", "HOME": "/given", "EMPTY": ""})
    assert environment["API_KEY"] == "given"
    assert environment["HOME"] == "/given"
    assert environment["EMPTY"] == ""
    assert environment["PATH"] == "parent's PATH"


@pytest.mark.usefixtures("parent")
def test_more_names_may_be_inherited() -> None:
    assert "NODE_PATH" not in child_environment(pass_env=["NODE_OPTIONS"])
    assert {"NODE_OPTIONS", "NODE_PATH"} <= set(child_environment(pass_env=["NODE_*", "ABSENT"]))


def test_no_secret_has_a_listed_name() -> None:
    assert not [name for name in INHERITED if any(word in name for word in ("KEY", "TOKEN", "SECRET", "PASSWORD"))]


@pytest.mark.parametrize("env", [{"": "v"}, {"A=B": "v"}, {"A\0": "v"}, {"A": "v\0"}, {"A": 1}, {"A": None}, {1: "v"}])
def test_what_no_environment_can_hold_is_refused(env: Any) -> None:
    with pytest.raises(ConfigError, match="env:"):
        child_environment(env)


def script(path: Path, text: str, mode: int = 0o755) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def refusal(command: Any, cwd: str | None = None) -> str:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(ConnectionFailed) as raised:
        launch(command, env={"PATH": "/usr/bin:/bin"}, cwd=cwd)
    assert len(os.listdir("/proc/self/fd")) == before
    return str(raised.value)


def test_a_program_that_is_not_on_path() -> None:
    said = refusal(["no-such-program", "--api-key", "hidden"])
    assert said.startswith("cannot start 'no-such-program': no such program on PATH (/usr/bin:/bin).")
    assert "Install it" in said
    assert "hidden" not in said


def test_a_whole_command_line_in_one_item() -> None:
    assert "Every argument is an item of its own" in refusal(["python server.py"])


def test_a_path_that_does_not_exist(tmp_path: Path) -> None:
    assert f"there is no such file ({tmp_path}/bin/server)" in refusal(["bin/server"], str(tmp_path))


def test_a_file_that_is_not_executable(tmp_path: Path) -> None:
    path = script(tmp_path / "server.py", "#!/bin/sh\n", 0o644)
    assert "it is not executable. Make it so (chmod +x)" in refusal([path])


def test_a_directory(tmp_path: Path) -> None:
    assert "it is a directory" in refusal([str(tmp_path)])


def test_a_script_whose_interpreter_is_missing(tmp_path: Path) -> None:
    path = script(tmp_path / "server", "#!/no/such/interpreter\n")
    assert "the interpreter that its first line names does not exist" in refusal([path])


def test_a_script_without_a_first_line(tmp_path: Path) -> None:
    path = script(tmp_path / "server", "\0\0\0\0")
    assert "no #! line" in refusal([path])


def test_a_working_directory_that_is_missing_or_a_file(tmp_path: Path) -> None:
    file = script(tmp_path / "file", "")
    assert f"the working directory '{tmp_path}/gone' does not exist" in refusal(["cat"], f"{tmp_path}/gone")
    assert "is no directory" in refusal(["cat"], file)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("cat file", "a command is a list of arguments"),
        (b"cat", "a command is a list of arguments"),
        (Path("cat"), "a command is a list of arguments"),
        ([], "at least the name of a program"),
        ([""], "at least the name of a program"),
        (["cat", "a\0b"], "item 1 of the command must be a str without NUL"),
        (["cat", b"x"], "item 1 of the command must be a str"),
    ],
)
async def test_what_is_no_command_is_refused(command: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        await spawn(command)


async def test_a_path_object_may_name_the_program(tmp_path: Path) -> None:
    path = Path(script(tmp_path / "server", "#!/bin/sh\necho '[1]'\n"))
    stream = await spawn([path])
    assert await stream.receive() == b"[1]"
    await stream.aclose()
