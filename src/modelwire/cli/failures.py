"""What can go wrong in a command, its exit code, and how it is told on stderr.

Expected errors become a `Failure`; nothing here prints a traceback or writes to stdout.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from modelwire.errors import (
    ConfigError,
    ConnectionFailed,
    ConnectionLost,
    InvalidParams,
    MethodNotFound,
    ModelwireError,
    ProtocolViolation,
    RequestTimeout,
    ResourceNotFound,
    RpcError,
    ServerExited,
)

OK = 0
USAGE = 1
NOT_FOUND = 2
UNREACHABLE = 4
FAILED = 5
TIMEOUT = 7
INTERRUPTED = 130

_ADVICE = {
    "give it headers={'Authorization': 'Bearer ...'}": 'put "headers" with it beside the "url" in FILE.json, and name '
    "it FILE.json#SERVER",
    "pass headers={'Authorization': '...'}": 'put "headers" with it beside the "url" in FILE.json, and name it '
    "FILE.json#SERVER",
    "for one of your own, give verify='ca.pem'": "for one of your own, set SSL_CERT_FILE=ca.pem",
    "Pass verify= a file with the authority that signed it": "Set SSL_CERT_FILE to a file with the authority that "
    "signed it",
}
"""What is advised of arguments in Python, and what does the same for `mw`."""

STDERR_LINES = 20
"""How much of the server's stderr a failure shows, and of it the beginning of a long traceback."""
TRACEBACK = "Traceback (most recent call last):"

_KINDS: tuple[tuple[type[ModelwireError], int, str], ...] = (
    (RequestTimeout, TIMEOUT, "timeout"),
    (ConnectionFailed, UNREACHABLE, "unreachable"),
    (ConnectionLost, UNREACHABLE, "unreachable"),
    (ConfigError, USAGE, "usage"),
    (ResourceNotFound, NOT_FOUND, "not-found"),
    (MethodNotFound, NOT_FOUND, "not-found"),
    (InvalidParams, USAGE, "refused-arguments"),
    (RpcError, FAILED, "server-error"),
    (ProtocolViolation, FAILED, "protocol-violation"),
)


class Failure(Exception):
    """A command ends here.

    Args:
        exit_code: The exit code.
        kind: One word for programs.
        message: What happened, to what, and what to do next.
        stderr: The end of what the server wrote to its stderr, to be shown.
        details: More for programs, shown under ``--json`` only.
    """

    def __init__(self, exit_code: int, kind: str, message: str, *, stderr: str = "", **details: Any) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.kind = kind
        self.message = message
        self.stderr = stderr
        self.details = details

    def as_text(self) -> str:
        """Return it for people."""
        text = f"mw: {self.message}"
        lines = stderr_end(self.stderr)
        return "\n".join(
            [text, *(["the server's stderr ended with:"] if lines else []), *(f"  {line}" for line in lines)]
        )

    def as_json(self) -> str:
        """Return it for programs: one line."""
        error = {"kind": self.kind, "message": self.message, "exitCode": self.exit_code, **self.details}
        if self.stderr.strip():
            error["stderr"] = "\n".join(stderr_end(self.stderr))
        return json.dumps({"error": error})

    def report(self, *, as_json: bool) -> None:
        """Tell it on stderr."""
        if as_json:
            print(self.as_json(), file=sys.stderr, flush=True)
            return
        from modelwire.cli.output import safe_text  # not before it is needed: see modelwire.cli

        print(safe_text(self.as_text()), file=sys.stderr, flush=True)


def stderr_end(stderr: str) -> list[str]:
    """Return the last lines of a server's stderr; what was left out is marked.

    Of a traceback that is longer, the line before it stays, too: it says what failed.
    """
    lines = stderr.rstrip().splitlines()
    first = len(lines) - STDERR_LINES
    if first <= 0:
        return lines
    begin = _traceback_begin(lines)
    if begin is None or begin >= first:
        return [_left_out(first, "above"), *lines[first:]]
    head, rest = lines[begin : begin + 2], lines[first + 2 :]
    above = [_left_out(begin, "above")] if begin else []
    return [*above, *head, _left_out(first - begin, "left out"), *rest]


def _traceback_begin(lines: list[str]) -> int | None:
    """Where the last error begins: at the line before its traceback, and before those that it followed from."""
    for at in range(len(lines) - 1, 0, -1):
        if lines[at] == TRACEBACK and lines[at - 1].strip():
            return at - 1
    return None


def _left_out(count: int, where: str) -> str:
    return f"… ({count} line{'' if count == 1 else 's'} {where})"


def usage(message: str) -> Failure:
    """Return the failure for a command line that makes no sense."""
    return Failure(USAGE, "usage", message)


def missing(kind: str, name: str, known: list[str], advice: str = "") -> Failure:
    """Return the failure for a tool, prompt or resource that the server does not have, with near misses.

    Args:
        kind: What it would have been.
        name: The name that was asked for.
        known: The names that there are.
        advice: What else to try.
    """
    import difflib

    near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    if near:
        hint = f"Did you mean {' or '.join(repr(name) for name in near)}?"
    elif known:
        shown = ", ".join(known[:10]) + (f" and {len(known) - 10} more" if len(known) > 10 else "")
        hint = f"It has: {shown}."
    else:
        hint = "It has none."
    message = f"the server has no {kind} {name!r}. {hint}" + (f" {advice}" if advice else "")
    return Failure(NOT_FOUND, "not-found", message, name=name, suggestions=near)


def failure_of(error: ModelwireError, stderr: str = "") -> Failure:
    """Return the failure that an error of the library comes to.

    Args:
        error: The error.
        stderr: What the server wrote to its stderr, where it may explain the error.
    """
    code, kind = next(((code, kind) for type_, code, kind in _KINDS if isinstance(error, type_)), (FAILED, "failed"))
    details: dict[str, Any] = {}
    message = str(error)
    for python, here in _ADVICE.items():
        message = message.replace(python, here)
    if isinstance(error, RpcError):
        details = {"code": error.code} | ({} if error.data is None else {"data": error.data})
        message = f"the server answered with an error: {error}"
    if isinstance(error, ServerExited | RequestTimeout):
        # The message shows stderr already; it is told apart here.
        message = message.partition("\n  stderr: ")[0]
        stderr = stderr or error.stderr
    if isinstance(error, RequestTimeout):
        message = message.replace(f"Pass {error.setting}= to", "Pass --timeout SECONDS to")
    return Failure(code, kind, message, stderr="" if code == USAGE else stderr, **details)
