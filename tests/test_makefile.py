"""`make` installs when it must, and only then. Nothing is installed here: make is asked what it would do."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
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


# ------------------------------------------------------------------------------------------------ what others wrote

PEERS = {
    ".venv-peers/.ready": "benchmarks/constraints-peers.txt",
    ".venv-interop/.ready": "tests/interop/constraints.txt",
    "tests/interop/node/node_modules/.ready": "tests/interop/node/package.json",
    "tests/conformance/node/node_modules/.ready": "tests/conformance/node/package.json",
}
NPMRC = {f"tests/{folder}/node/node_modules": f"tests/{folder}/node/.npmrc" for folder in ("interop", "conformance")}


def would_install(checkout: Path, path: str | None = None) -> set[str]:
    """Return which of them `make peers` would make anew."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    env |= {} if path is None else {"PATH": path}
    make = shutil.which("make")
    assert make is not None
    ran = subprocess.run([make, "-n", "peers"], cwd=checkout, env=env, capture_output=True, text=True, timeout=30)
    assert ran.returncode == 0, ran.stderr
    return {stamp for stamp in PEERS if f"touch {stamp}" in ran.stdout}


@pytest.fixture
def with_peers(checkout: Path) -> Path:
    """A checkout, older than everything that `make peers` has installed in it."""
    for stamp, source in {**PEERS, **NPMRC}.items():
        (checkout / source).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / source, checkout / source)
        os.utime(checkout / source, (1, 1))
        if stamp in PEERS:
            (checkout / stamp).parent.mkdir(parents=True, exist_ok=True)
            (checkout / stamp).touch()
    return checkout


def test_peers_that_are_there_are_not_installed_again(with_peers: Path) -> None:
    assert would_install(with_peers) == set()


@pytest.mark.parametrize("stamp", PEERS)
def test_a_peer_is_installed_where_it_is_missing_or_its_versions_change(with_peers: Path, stamp: str) -> None:
    os.utime(with_peers / stamp, (2, 2))
    (with_peers / PEERS[stamp]).touch()
    assert would_install(with_peers) == {stamp}
    (with_peers / stamp).unlink()
    assert would_install(with_peers) == {stamp}


def test_without_npm_only_its_packages_are_left_out(with_peers: Path, tmp_path: Path) -> None:
    for stamp in PEERS:
        (with_peers / stamp).unlink()
    tools = tmp_path / "a path without npm"
    tools.mkdir()
    for tool in ("sh", "grep", "sed", "make", "python3"):
        (tools / tool).symlink_to(str(shutil.which(tool)))
    assert would_install(with_peers, str(tools)) == set(list(PEERS)[:2])


# ------------------------------------------------------------------------------------------------ a browser, a proxy


def make_with(checkout: Path, tools: Path, target: str, there: Mapping[str, str], user: int) -> str:
    """Make a target where there are only these programs, shell scripts by name; return what they have noted."""
    tools.mkdir()
    for tool in ("sh", "grep", "sed", "make", "python3", "rm", "chmod"):
        (tools / tool).symlink_to(str(shutil.which(tool)))
    for name, script in {"id": f"echo {user}", **there}.items():
        (tools / name).write_text(f"#!{shutil.which('sh')}\n{script}\n")
        (tools / name).chmod(0o755)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    make = shutil.which("make")
    assert make is not None
    ran = subprocess.run(
        [make, target, f"SBIN={tools}"],
        cwd=checkout,
        env={**env, "PATH": str(tools)},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert ran.returncode == 0, ran.stderr
    noted = tools / "ran"
    return noted.read_text() if noted.exists() else ""


@pytest.mark.parametrize(("target", "package"), [("chromium", "chromium"), ("nginx", "nginx-light")])
@pytest.mark.parametrize(
    ("is_there", "apt", "user", "installs"),
    [(True, True, 0, False), (False, True, 0, True), (False, True, 1000, False), (False, False, 0, False)],
)
def test_a_program_is_installed_where_that_can_be_done_without_asking(
    checkout: Path, tmp_path: Path, target: str, package: str, is_there: bool, apt: bool, user: int, installs: bool
) -> None:
    tools = tmp_path / "tools"
    note = f'echo "$0 $*" >> {tools}/ran'
    there = {**({target: note} if is_there else {}), **({"apt-get": note} if apt else {})}
    found = make_with(checkout, tools, target, there, user)
    assert (f"apt-get -qq install -y {package}" in found) is installs
    assert not (tools / "policy-rc.d").exists()


def test_debian_does_not_start_the_proxy_that_is_installed(checkout: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    policy = tools / "policy-rc.d"
    there = {"apt-get": f'test "$2" = update || {{ {policy}; echo "policy $?" >> {tools}/ran; }}'}
    assert make_with(checkout, tools, "nginx", there, 0) == "policy 101\n"
    assert not policy.exists()


def test_a_policy_that_is_there_is_left(checkout: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    make_with(checkout, tools, "nginx", {"apt-get": "true", "policy-rc.d": "exit 104"}, 0)
    assert "104" in (tools / "policy-rc.d").read_text()


def test_the_environment_that_runs_this_is_recognised() -> None:
    made_by_make = (ROOT / ".venv" / ".ready").exists()  # or the tests run from an environment of one's own
    found = [path.read_text() for path in (ROOT / ".venv").glob("lib/python*/site-packages/*.pth")]
    assert f"{ROOT}/src" in found or not made_by_make
