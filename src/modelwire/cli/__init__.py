"""The command line: ``modelwire``, or ``mw`` for short.

This file is the entry point and loads nothing: a command pays only for what it uses.
"""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: The words after the program's name; by default those of this process.

    Returns:
        The exit code: 0 done, 1 wrong use, wrong arguments or a failed start, 2 no such tool, prompt or resource, 4 the
        server cannot be reached, 5 the tool or the server failed, 7 out of time, 130 interrupted.
    """
    from modelwire.cli.program import run_program

    return run_program(argv)
