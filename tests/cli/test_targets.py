"""What a target stands for. Nothing is started."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from modelwire.cli.failures import Failure
from modelwire.cli.targets import Target, has_main_part, no_python_file, no_such_file, resolve, split_object

SERVED = [sys.executable, "-P", "-m", "modelwire", "run"]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('if __name__ == "__main__":\n    main()\n', True),
        ('if "__main__" == __name__: main()\n', True),
        ('if __name__ == "__main__" and True:\n    main()\n', True),
        ('"""if __name__ == "__main__":"""\n', False),
        ('def f():\n    if __name__ == "__main__":\n        pass\n', False),
        ('if __name__ != "__main__":\n    pass\n', False),
        ("if x == y:\n    pass\n", False),
        ("not python at all", False),
        ("\0", False),
        ("", False),
    ],
)
def test_the_main_part_of_a_file_is_found(source: str, found: bool) -> None:
    assert has_main_part(source.encode()) is found


def test_a_file_with_main_part_is_started_as_a_program(tmp_path: Path) -> None:
    path = tmp_path / "s.py"
    path.write_text('if __name__ == "__main__": ...\n')
    assert resolve(str(path), None).server == [sys.executable, str(path)]


def test_a_file_without_is_served(tmp_path: Path) -> None:
    path = tmp_path / "s.py"
    path.write_text("server = 1\n")
    assert resolve(str(path), None).server == [*SERVED, str(path)]


def test_a_named_object_is_served_whatever_the_file_has(tmp_path: Path) -> None:
    path = tmp_path / "s.py"
    path.write_text('if __name__ == "__main__": ...\n')
    assert resolve(f"{path}:app.server", None).server == [*SERVED, f"{path}:app.server"]


def test_a_file_whose_name_begins_with_a_dash_is_no_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("-s.py").write_text("server = 1\n")
    assert resolve("-s.py", None).server == [*SERVED, "./-s.py"]


def test_a_command_is_taken_as_it_is() -> None:
    assert resolve(None, ["node", "", "a b", "--"]).server == ["node", "", "a b", "--"]


def test_a_colon_in_a_file_name_is_no_object(tmp_path: Path) -> None:
    path = tmp_path / "a:b"
    path.write_text("")
    assert split_object(str(path)) == (str(path), None)
    assert split_object("a.py:b") == ("a.py", "b")
    assert split_object("a.py:1") == ("a.py:1", None)


@pytest.mark.parametrize(("target", "command"), [("server.js", None), ("gopher://x/mcp", None), (None, [])])
def test_what_is_no_target_is_refused(target: str | None, command: list[str] | None) -> None:
    with pytest.raises(Failure) as caught:
        resolve(target, command)
    assert caught.value.exit_code == 1


@pytest.mark.parametrize(
    ("words", "advised"),
    [
        ("python shop.py get id=1", "mw call get id=1 -- python shop.py"),
        ("--wire python3 -u shop.py get", "mw call --wire get -- python3 -u shop.py"),
        ("python -m shop get", "mw call get -- python -m shop"),
        ("node server.js get --json", "mw call get --json -- node server.js"),
        ("./server get path=a.txt", "mw call get path=a.txt -- ./server"),
        ("server.js get", "mw call -- node server.js"),
    ],
)
def test_a_command_in_the_targets_place_is_shown_where_it_belongs(words: str, advised: str) -> None:
    given = words.split()
    target = next(word for word in given if not word.startswith("-"))
    assert no_python_file(target, "mw call", given).splitlines()[1] == f"  {advised}"


@pytest.mark.parametrize("target", ["127.0.0.1:8000/mcp", "localhost:8000", "example.com/mcp"])
def test_an_address_without_its_scheme_is_shown_with_one(target: str) -> None:
    assert f"such as:\n  mw list http://{target}\n" in no_python_file(target, "mw list", [target]) + "\n"


def test_a_python_file_after_an_interpreter_is_said_to_need_no_command() -> None:
    advice = no_python_file("python", "mw call", ["python", "shop.py", "get", "name=a b"])
    assert advice.splitlines()[-1] == "  mw call shop.py get 'name=a b'"


def test_a_file_that_is_not_there_is_told_with_its_folder_and_the_nearest_one(tmp_path: Path) -> None:
    folder = tmp_path / "servers"
    assert no_such_file(str(folder / "x.py")).endswith(f"the folder {str(folder)!r} does not exist")
    folder.mkdir()
    assert no_such_file(str(folder / "x.py")) == f"there is no file 'x.py' in {str(folder)!r}. It has no Python file."
    (folder / "server.py").touch()
    (folder / "notes.txt").touch()
    assert no_such_file(str(folder / "servr.py")).endswith(f"Did you mean {str(folder / 'server.py')!r}?")
    assert no_such_file(str(folder / "x.py")).endswith("Its Python files are server.py.")


def test_the_nearest_file_is_named_as_the_path_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "server.py").touch()
    assert no_such_file("servr.py") == f"there is no file 'servr.py' in {str(tmp_path)!r}. Did you mean 'server.py'?"


def test_a_server_of_a_configuration_file_is_left_to_its_client() -> None:
    assert resolve("mcp.json#weather", None) == Target("mcp.json#weather", starts=True)
