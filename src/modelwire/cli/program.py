"""One run of the program: from words to a command, from its outcome to an exit code.

What the commands do is in `modelwire.cli.commands`; this file knows only their table.
"""

from __future__ import annotations

import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Any

from modelwire.cli.commands import COMMANDS
from modelwire.cli.failures import INTERRUPTED, OK, USAGE, Failure, usage
from modelwire.cli.parsing import EXIT_CODES, Parser

BROKEN_PIPE = 141
"""What a shell shows for a program that SIGPIPE ended."""


def run_program(argv: Sequence[str] | None) -> int:
    """Run one command and return its exit code. See `modelwire.cli.main`."""
    words, command = _split(list(sys.argv[1:] if argv is None else argv))
    _write_utf8()
    try:
        return _dispatch(words, command)
    except Failure as failure:
        failure.report(as_json="--json" in words)
        return failure.exit_code
    except KeyboardInterrupt:
        if sys.stderr.isatty():
            print(file=sys.stderr)  # the terminal has shown ^C
        Failure(INTERRUPTED, "interrupted", "interrupted").report(as_json="--json" in words)
        return INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        return BROKEN_PIPE


def _split(words: list[str]) -> tuple[list[str], list[str] | None]:
    """Take off what follows the first ``--``: no parser may touch it, so that it arrives exactly as given."""
    if "--" not in words:
        return words, None
    at = words.index("--")
    return words[:at], words[at + 1 :]


def _dispatch(words: list[str], command: list[str] | None) -> int:
    name, rest = (words[0], words[1:]) if words else ("", [])
    if name in ("-h", "--help", "help"):
        print(_help())
        return OK
    if name in ("-V", "--version"):
        from modelwire.version import __version__

        print(f"modelwire {__version__}")
        return OK
    if not name:
        print(_help(), file=sys.stderr)
        return USAGE
    if name not in COMMANDS:
        raise _unknown(name)
    module = importlib.import_module(COMMANDS[name][0])
    args = _parse(name, module, rest, command)
    return OK if args is None else module.run(args)


def _parse(name: str, module: Any, rest: list[str], command: list[str] | None) -> Any:
    """Return the arguments; None when all that was wanted is the command's help."""
    parser = Parser(f"mw {name}", module.USAGE_LINE, module.DESCRIPTION, module.EPILOG)
    module.configure(parser, command is not None and not {"-h", "--help"} & set(rest))
    try:
        args = parser.parse(rest)
    except SystemExit:
        return None
    args.command = command
    return args


def _help() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {summary}" for name, (_, summary) in COMMANDS.items()]
    return "\n".join(
        [
            "Usage: mw COMMAND ...",
            "",
            "Servers, clients and a clear view of the wire for the Model Context Protocol.",
            "",
            *lines,
            "",
            "mw COMMAND --help says more; mw --version shows the version. `modelwire` is the same program.",
            "",
            EXIT_CODES.rstrip(),
        ]
    )


def _unknown(name: str) -> Failure:
    import difflib

    near = difflib.get_close_matches(name, COMMANDS, n=1)
    hint = f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(COMMANDS)}."
    return usage(f"there is no command {name!r}. {hint} More: mw --help")


def _write_utf8() -> None:
    """The protocol is UTF-8, so what is shown of it is, too, whatever the locale."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _forget_stdout() -> None:
    """The reader of stdout is gone, as with ``mw list ... | head -1``; let the interpreter's own flush not complain."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    except (OSError, ValueError):
        pass
