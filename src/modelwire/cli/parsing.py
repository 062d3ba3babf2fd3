"""The parser of one command line, and the options that client commands share.

Built on argparse, because ``mw --help`` should cost little more than starting Python. Nothing is run here.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from modelwire.cli.failures import usage

TARGET_HELP = """\
TARGET is one of:
  FILE.py            a Python file. If it has an `if __name__ == "__main__":` part it is started as a program
                     (`python FILE.py`); if not, its Server object is served by `mw run FILE.py`.
  FILE.py:OBJECT     that Server object of the file, served by `mw run`.
  FILE.json#SERVER   a server of a configuration file with `mcpServers`.
  http://HOST/PATH, or https://: a server over HTTP. Its "headers" (a token) go into FILE.json, beside its "url".
  tcp://HOST:PORT    a server that listens there, as after `mw run FILE.py --listen tcp://127.0.0.1:9000`.
  unix:///PATH       the same on a Unix socket.
  ws://HOST:PORT/PATH, or wss://: the same as a WebSocket.
  -- COMMAND...      in TARGET's place, at the end of the line: any program with its arguments, exactly as given,
                     such as: mw {name} {more}-- node server.js --port 1
"""

EXIT_CODES = """\
Exit codes: 0 done; 1 wrong use, or arguments that the tool or prompt does not take; 2 no such tool, prompt or
resource; 4 the server cannot be reached or has ended; 5 the tool or the server failed; 7 out of time; 130 interrupted.
"""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are failures of the command."""

    def __init__(self, prog: str, usage: str, description: str, epilog: str = "") -> None:
        super().__init__(
            prog=prog,
            usage=usage,
            description=description,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self.words: Sequence[str] = ()
        """What is parsed, for advice on how to write it instead."""

    def parse(self, words: Sequence[str]) -> Any:
        """Read the words of a command line; options may stand anywhere."""
        self.words = words
        return self.parse_intermixed_args(words)

    def error(self, message: str) -> NoReturn:
        """Raise the failure: what is wrong, and how it is used."""
        raise usage(f"{message}\nUsage: {self.usage}\nMore: {self.prog} --help")


def add_target(parser: Parser) -> None:
    """Add the server, which is checked before anything else is, so that its error is the one that is told."""

    def target(text: str) -> str:
        from modelwire.cli.targets import (
            is_address,
            is_config,
            is_python_file,
            no_python_file,
        )  # only where there is a target

        if not (is_address(text) or is_config(text) or is_python_file(text)):
            raise usage(no_python_file(text, parser.prog, parser.words))
        return text

    parser.add_argument("target", metavar="TARGET", type=target, help="the server: see below")


def add_client_options(parser: Parser) -> None:
    """Add what every command has that talks to a server."""
    group = parser.add_argument_group("talking to the server")
    group.add_argument(
        "--json", action="store_true", help="one JSON value on stdout, errors as one line of JSON on stderr"
    )
    group.add_argument("--wire", action="store_true", help="show every frame with direction and time on stderr")
    group.add_argument("--revision", metavar="DATE", help="the only revision to speak, such as 2025-06-18")
    group.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        help="how long connecting, and then each request, may take (by default 30, and 60 without a sign of life)",
    )
    group.add_argument(
        "--env",
        metavar="NAME[=VALUE]",
        action="append",
        default=[],
        help="a variable for a server that is started, which gets a minimal environment; without VALUE, as it is here",
    )
    group.add_argument("-v", "--verbose", action="store_true", help="show the server's stderr and its log messages")


def seconds(text: str) -> float:
    """Read a number of seconds from the command line."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return value


def host_and_port(text: str) -> str:
    """Read where to serve over HTTP from the command line."""
    host, colon, port = text.rpartition(":")
    whole = host and colon and "/" not in text and port.isascii() and port.isdigit() and len(port) <= 5
    if not whole or int(port) > 65535:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no HOST:PORT, such as 127.0.0.1:8000; a path of your own goes with --listen "
            "http://HOST:PORT/PATH"
        )
    return text


def count(text: str) -> int:
    """Read a number of things from the command line."""
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return int(text)
