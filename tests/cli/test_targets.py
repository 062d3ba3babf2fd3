"""What a target stands for. Nothing is started."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from modelwire.cli.failures import Failure
from modelwire.cli.targets import has_main_part, resolve, split_object

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
    assert resolve(str(path), None).command == [sys.executable, str(path)]


def test_a_file_without_is_served(tmp_path: Path) -> None:
    path = tmp_path / "s.py"
    path.write_text("server = 1\n")
    assert resolve(str(path), None).command == [*SERVED, str(path)]


def test_a_named_object_is_served_whatever_the_file_has(tmp_path: Path) -> None:
    path = tmp_path / "s.py"
    path.write_text('if __name__ == "__main__": ...\n')
    assert resolve(f"{path}:app.server", None).command == [*SERVED, f"{path}:app.server"]


def test_a_file_whose_name_begins_with_a_dash_is_no_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("-s.py").write_text("server = 1\n")
    assert resolve("-s.py", None).command == [*SERVED, "./-s.py"]


def test_a_command_is_taken_as_it_is() -> None:
    assert resolve(None, ["node", "", "a b", "--"]).command == ["node", "", "a b", "--"]


def test_a_colon_in_a_file_name_is_no_object(tmp_path: Path) -> None:
    path = tmp_path / "a:b"
    path.write_text("")
    assert split_object(str(path)) == (str(path), None)
    assert split_object("a.py:b") == ("a.py", "b")
    assert split_object("a.py:1") == ("a.py:1", None)


@pytest.mark.parametrize(("target", "command"), [("server.js", None), ("https://x/mcp", None), (None, [])])
def test_what_is_no_target_is_refused(target: str | None, command: list[str] | None) -> None:
    with pytest.raises(Failure) as caught:
        resolve(target, command)
    assert caught.value.exit_code == 1
