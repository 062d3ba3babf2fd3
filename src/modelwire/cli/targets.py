"""What a command line is pointed at, and the program that it stands for.

Nothing is started here, and no Python file is run: a file is only looked at.
"""

from __future__ import annotations

import ast
import os
import sys
from dataclasses import dataclass

from modelwire.cli.failures import UNREACHABLE, Failure, usage

PYTHON_VARIABLES = ("PYTHON*", "VIRTUAL_ENV")
"""What a Python file is given of our environment besides the minimum: it runs in the same Python."""


@dataclass(frozen=True)
class Target:
    """A server's program.

    Attributes:
        command: The program and its arguments.
        pass_env: Names of environment variables to hand on.
    """

    command: list[str]
    pass_env: tuple[str, ...] = ()


def resolve(target: str | None, command: list[str] | None) -> Target:
    """Return the program that a command line stands for.

    Args:
        target: ``FILE.py`` or ``FILE.py:OBJECT``, where it was given.
        command: What followed ``--``, where it was given.

    Raises:
        Failure: It makes no sense, or the file cannot be read.
    """
    if command is not None:
        if not command:
            raise usage("after -- the server's command is expected, such as: -- node server.js")
        return Target(command)
    assert target is not None
    path, object_name = split_object(target)
    if not path.endswith(".py"):
        raise usage(_no_file(target))
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        raise Failure(UNREACHABLE, "unreachable", f"cannot read {path!r}: {error.strerror}") from None
    path = os.path.join(os.curdir, path) if path.startswith("-") else path
    if object_name is None and has_main_part(source):
        return Target([sys.executable, path], PYTHON_VARIABLES)
    served = path if object_name is None else f"{path}:{object_name}"
    # -P: a file beside us must not stand in for a module of the standard library.
    return Target([sys.executable, "-P", "-m", "modelwire", "run", served], PYTHON_VARIABLES)


def split_object(target: str) -> tuple[str, str | None]:
    """Split ``FILE:OBJECT``; a file of exactly that name comes first."""
    path, colon, name = target.rpartition(":")
    if not colon or os.path.exists(target) or not all(part.isidentifier() for part in name.split(".")):
        return target, None
    return path, name


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


def _no_file(target: str) -> str:
    if "://" in target:
        return f"{target!r} is an address; this version starts servers and speaks stdio with them only"
    return f"{target!r} is no .py file. A command goes to the end of the line, after --, such as: -- node server.js"
