"""What a command line is pointed at: a server's program, or where one listens.

Nothing is started here, and no Python file is run: a file is only looked at.
"""

from __future__ import annotations

import ast
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from modelwire.cli.failures import UNREACHABLE, Failure, usage

PYTHON_VARIABLES = ("PYTHON*", "VIRTUAL_ENV")
"""What a Python file is given of our environment besides the minimum: it runs in the same Python."""


@dataclass(frozen=True)
class Target:
    """A server.

    Attributes:
        server: Its program and arguments, the address where it listens, or what names it in a configuration file.
        pass_env: Names of environment variables to hand on to a program.
        starts: Whether it may be started, where ``server`` is no program.
    """

    server: list[str] | str
    pass_env: tuple[str, ...] = ()
    starts: bool = False


def resolve(target: str | None, command: list[str] | None) -> Target:
    """Return the server that a command line stands for.

    Args:
        target: ``FILE.py``, ``FILE.py:OBJECT``, ``FILE.json#SERVER`` or an address, where it was given.
        command: What followed ``--``, where it was given.

    Raises:
        Failure: It makes no sense, or the file cannot be read.
    """
    if command is not None:
        if not command:
            raise usage("after -- the server's command is expected, such as: -- node server.js")
        return Target(command)
    assert target is not None
    if is_address(target) or is_config(target):
        return Target(target, starts=not is_address(target))
    if not is_python_file(target):
        raise usage(no_python_file(target))
    path, object_name = split_object(target)
    try:
        with open(path, "rb") as file:
            source = file.read()
    except FileNotFoundError:
        raise Failure(UNREACHABLE, "unreachable", no_such_file(path)) from None
    except OSError as error:
        raise Failure(UNREACHABLE, "unreachable", f"cannot read {path!r}: {error.strerror}") from None
    path = os.path.join(os.curdir, path) if path.startswith("-") else path
    if object_name is None and has_main_part(source):
        return Target([sys.executable, path], PYTHON_VARIABLES)
    served = path if object_name is None else f"{path}:{object_name}"
    from modelwire.client.targets import SERVED

    return Target([sys.executable, *SERVED, served], PYTHON_VARIABLES)


def split_object(target: str) -> tuple[str, str | None]:
    """Split ``FILE:OBJECT``; a file of exactly that name comes first."""
    from modelwire.client.targets import split_object as split

    return split(target)


def is_config(target: str) -> bool:
    """Whether a target is ``FILE.json#SERVER``, as far as its name says; its client reads the file."""
    from modelwire.client.configs import is_file

    return is_file(target)


def is_address(target: str) -> bool:
    """Whether a target is meant as an address where a server listens; its client says what is wrong with it."""
    from modelwire.transports.http.endpoint import is_http_url
    from modelwire.transports.socket_address import is_socket_url
    from modelwire.transports.websocket_address import is_websocket_url

    return is_http_url(target) or is_socket_url(target) or is_websocket_url(target)


def is_python_file(target: str) -> bool:
    """Whether a target is ``FILE.py`` or ``FILE.py:OBJECT``, as far as its name says."""
    return split_object(target)[0].endswith(".py")


def no_such_file(path: str) -> str:
    """Return the message for a file that is not there: where it was looked for, and what is there."""
    import difflib

    folder, name = os.path.split(os.path.abspath(path))
    try:
        files = sorted(file for file in os.listdir(folder) if file.endswith(".py"))
    except OSError:
        return f"there is no file {path!r}: the folder {folder!r} does not exist"
    near = difflib.get_close_matches(name, files, n=1, cutoff=0.6)
    if near:
        hint = f"Did you mean {os.path.join(os.path.dirname(path), near[0])!r}?"
    elif files:
        shown = ", ".join(files[:5]) + (f" and {len(files) - 5} more" if len(files) > 5 else "")
        hint = f"Its Python files are {shown}."
    else:
        hint = "It has no Python file."
    return f"there is no file {name!r} in {folder!r}. {hint}"


def has_main_part(source: bytes) -> bool:
    """Whether a Python source has ``if __name__ == "__main__":`` at its top level.

    False for what is no Python; whoever runs it will say why.
    """
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(isinstance(node, ast.If) and _asks_for_main(node.test) for node in module.body)


def _asks_for_main(test: ast.expr) -> bool:
    if isinstance(test, ast.BoolOp):
        return any(_asks_for_main(value) for value in test.values)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return False
    sides = (test.left, test.comparators[0])
    names = {side.id for side in sides if isinstance(side, ast.Name)}
    values = {side.value for side in sides if isinstance(side, ast.Constant)}
    return names == {"__name__"} and values == {"__main__"}


def no_python_file(target: str, program: str = "mw call", words: Sequence[str] = ()) -> str:
    """Return the message for a target that is no Python file: how its command is written.

    Args:
        target: The word that stands where the target belongs.
        program: The command, such as ``mw call``.
        words: What followed it on the command line.
    """
    from modelwire.client.targets import is_bare_address

    if is_bare_address(target):
        return (
            f"{target!r} is no .py file. An address begins with http:// or ws://, such as:\n  {program} http://{target}"
        )
    if "://" in target:
        known = "http://HOST/PATH, ws://HOST:PORT/PATH, tcp://HOST:PORT and unix:///PATH"
        return f"{target!r} is an address; this version knows {known} only"
    at = words.index(target) if target in words else len(words)
    before, after = list(words[:at]), list(words[at + 1 :])
    count = _own_words(after)
    own, rest = after[:count], after[count:]
    lines = [f"{target!r} is no .py file. A command goes to the end of the line, after --, such as:"]
    if own or not os.path.splitext(target)[1]:
        lines.append("  " + shlex.join([*program.split(), *before, *rest, "--", target, *own]))
    else:
        lines.append(f"  {program} -- node server.js")
    if len(own) == 1 and is_python_file(own[0]) and os.path.basename(target).startswith("python"):
        lines.append("A Python file needs no command:")
        lines.append("  " + shlex.join([*program.split(), *before, *own, *rest]))
    return "\n".join(lines)


def _own_words(words: list[str]) -> int:
    """How many words seem to belong to the program before them: its short options and a file, or ``-m MODULE``."""
    at = next((at for at, word in enumerate(words) if not word.startswith("-") or word.startswith("--")), len(words))
    if at == len(words):
        return 0
    is_module = at > 0 and words[at - 1] == "-m"
    is_file = "=" not in words[at] and "://" not in words[at] and os.path.splitext(words[at])[1] != ""
    return at + 1 if is_module or is_file else 0
