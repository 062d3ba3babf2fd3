"""Starting a child process: its environment, its pipes, and what to say when it cannot be started.

No shell ever sees a command. What the child does afterwards is not this file's business.
"""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modelwire.errors import ConfigError, ConnectionFailed
from modelwire.transports import orphans

INHERITED = (
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
)
"""What a child sees of our environment unless told otherwise: enough to find programs, files and the language.

A program's environment is full of other programs' secrets, so everything else is left out. ``*`` at the end stands for
any ending.
"""

_SHOWN_PATH = 200


@dataclass(frozen=True, slots=True)
class Launched:
    """A child process, the leader of its own session and process group, and our non-blocking ends of its pipes."""

    popen: subprocess.Popen[bytes]
    stdin: int
    stdout: int
    stderr: int


def child_environment(env: Mapping[str, str] | None = None, pass_env: Iterable[str] = ()) -> dict[str, str]:
    """Return the environment of a child.

    Args:
        env: Variables to set; they win over inherited ones, and the inherited ones stay.
        pass_env: Names of further variables to inherit; ``*`` at the end stands for any ending.

    Raises:
        ConfigError: A name or value that no environment can hold.
    """
    names = (*INHERITED, *pass_env)
    exact = {name for name in names if not name.endswith("*")}
    prefixes = tuple(name[:-1] for name in names if name.endswith("*"))
    found = {name: value for name, value in os.environ.items() if name in exact or name.startswith(prefixes)}
    given: Mapping[Any, Any] = env or {}
    for name, value in given.items():
        check_variable(name, value)
    return {**found, **given}


def check_variable(name: object, value: object) -> None:
    """Raise `ConfigError` for what no environment can hold."""
    if not isinstance(name, str) or not name or "=" in name or "\0" in name:
        raise ConfigError(f"env: {name!r} cannot be the name of an environment variable")
    if not isinstance(value, str) or "\0" in value:
        raise ConfigError(f"env: the value of {name} must be a str without NUL, not a {type(value).__name__}")


def launch(command: Sequence[str | os.PathLike[str]], *, env: Mapping[str, str], cwd: str | None) -> Launched:
    """Start a child with pipes for its standard streams. It is watched over until `orphans.release` is called.

    Args:
        command: The program, looked up in the PATH of ``env`` unless it contains a slash, and its arguments.
        env: Its whole environment.
        cwd: Its working directory; None for ours.

    Raises:
        ConfigError: The command is not a list of arguments.
        ConnectionFailed: It could not be started; the message says what was tried and what to do.
    """
    argv = _arguments(command)
    with contextlib.ExitStack() as on_failure, contextlib.ExitStack() as always:
        ours: list[int] = []
        theirs: list[int] = []
        for child_reads in (True, False, False):
            reading, writing = os.pipe()
            own, other = (writing, reading) if child_reads else (reading, writing)
            on_failure.callback(os.close, own)
            always.callback(os.close, other)
            os.set_blocking(own, False)
            ours.append(own)
            theirs.append(other)
        with orphans.expecting(theirs[0]) as guard:
            popen = _start(argv, theirs, env, cwd)
            guard(popen.pid)
        on_failure.pop_all()
    return Launched(popen, *ours)


def _arguments(command: Sequence[str | os.PathLike[str]]) -> list[str]:
    given: Any = command
    if isinstance(given, str | bytes | os.PathLike):
        raise ConfigError("a command is a list of arguments, no shell splits it: write ['program', 'argument', ...]")
    argv: list[Any] = [os.fspath(item) for item in command]
    if not argv or not argv[0]:
        raise ConfigError("a command needs at least the name of a program")
    for position, item in enumerate(argv):
        if not isinstance(item, str) or "\0" in item:
            raise ConfigError(f"item {position} of the command must be a str without NUL")
    return argv


def _start(argv: list[str], fds: list[int], env: Mapping[str, str], cwd: str | None) -> subprocess.Popen[bytes]:
    stdin, stdout, stderr = fds
    try:
        return subprocess.Popen(
            argv, stdin=stdin, stdout=stdout, stderr=stderr, env=env, cwd=cwd, start_new_session=True, close_fds=True
        )
    except OSError as error:
        raise ConnectionFailed(f"cannot start {argv[0]!r}: {_explain(error, argv[0], env, cwd)}") from error


def _explain(error: OSError, program: str, env: Mapping[str, str], cwd: str | None) -> str:
    """Say why and what to do. Never shows arguments or variables: they may hold secrets."""
    if cwd is not None and not os.path.isdir(cwd):
        return f"the working directory {cwd!r} does not exist or is no directory. Create it, or pass another cwd=."
    if cwd is not None and error.filename == cwd:
        return f"the working directory {cwd!r} cannot be entered ({error.strerror}). Pass another cwd=."
    path = os.path.join(cwd or os.curdir, program)
    if error.errno == errno.ENOENT:
        return _explain_not_found(program, path, env)
    if error.errno == errno.EACCES and os.path.isdir(path) and os.sep in program:
        return "it is a directory. Name the program inside it."
    if error.errno == errno.EACCES:
        return "it is not executable. Make it so (chmod +x), or put its interpreter first: ['python', 'server.py']."
    if error.errno == errno.ENOEXEC:
        return "it is no program and has no #! line. Put its interpreter first: ['sh', 'server.sh']."
    return f"{error.strerror}."


def _explain_not_found(program: str, path: str, env: Mapping[str, str]) -> str:
    split = " Every argument is an item of its own: no shell splits the command." if " " in program else ""
    if os.sep not in program:
        searched = env.get("PATH", os.defpath)
        shown = searched if len(searched) <= _SHOWN_PATH else f"{searched[:_SHOWN_PATH]}..."
        return f"no such program on PATH ({shown}). Install it, or give its full path.{split}"
    if os.path.exists(path):
        return "the interpreter that its first line names does not exist. Correct that line, or name an interpreter."
    return f"there is no such file ({os.path.abspath(path)}). Check the path; it counts from cwd=.{split}"
