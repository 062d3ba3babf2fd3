"""`make` installs when it must, and only then. Nothing is installed here: make is asked what it would do."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("Makefile", "pyproject.toml", "constraints.txt", "src/modelwire/version.py")
INSTALLS = "-e '.[cli,dev]'"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout, older than its environment, in which modelwire is installed as `make` does it."""
    for name in SOURCES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
        os.utime(tmp_path / name, (1, 1))
    packages(tmp_path).mkdir(parents=True)
    (packages(tmp_path) / "_modelwire.pth").write_text(f"{tmp_path.resolve()}/src")
    (tmp_path / ".venv" / ".ready").touch()
    return tmp_path


def packages(checkout: Path) -> Path:
    return checkout / ".venv" / "lib" / "python3.11" / "site-packages"


def would_do(checkout: Path) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    ran = subprocess.run(["make", "-n", "demo"], cwd=checkout, env=env, capture_output=True, text=True, timeout=30)
    assert ran.returncode == 0, ran.stderr
    assert "examples/demo.py" in ran.stdout
    return ran.stdout


def test_an_environment_of_this_checkout_is_used_as_it_is(checkout: Path) -> None:
    assert INSTALLS not in would_do(checkout)


def test_without_an_environment_one_is_made(checkout: Path) -> None:
    shutil.rmtree(checkout / ".venv")
    assert INSTALLS in would_do(checkout)


@pytest.mark.parametrize("content", [None, "/another/checkout/src"])
def test_an_environment_with_another_modelwire_is_installed_anew(checkout: Path, content: str | None) -> None:
    installed = packages(checkout) / "_modelwire.pth"
    if content is None:
        installed.unlink()  # `pip install .` removes it
    else:
        installed.write_text(content)
    assert INSTALLS in would_do(checkout)


def test_a_change_of_the_dependencies_is_installed(checkout: Path) -> None:
    (checkout / "pyproject.toml").touch()
    os.utime(checkout / ".venv" / ".ready", (2, 2))
    assert INSTALLS in would_do(checkout)


def test_the_environment_that_runs_this_is_recognised() -> None:
    made_by_make = (ROOT / ".venv" / ".ready").exists()  # or the tests run from an environment of one's own
    found = [path.read_text() for path in (ROOT / ".venv").glob("lib/python*/site-packages/*.pth")]
    assert f"{ROOT}/src" in found or not made_by_make
