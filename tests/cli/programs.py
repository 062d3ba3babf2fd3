"""Run the command line as users do: over pipes and files (`mw`), and on a terminal (`Terminal`)."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import subprocess
import sys
import termios
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

PROGRAM = [sys.executable, "-W", "error", "-m", "modelwire"]
WORKSHOP = str(Path(__file__).with_name("servers") / "workshop.py")
CTRL_C = "\x03"
PATIENCE = 30
"""Seconds after which a program that does not answer has failed."""

INITIALIZE = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    b'"clientInfo":{"name":"test","version":"1"}}}\n'
)


@dataclass
class Ran:
    code: int
    out: str
    err: str

    @property
    def value(self) -> Any:
        """The one JSON value on stdout."""
        return json.loads(self.out)


def mw(*words: str, given: bytes = b"", env: dict[str, str] | None = None, cwd: Path | None = None) -> Ran:
    ran = subprocess.run(
        [*PROGRAM, *words],
        input=given,
        capture_output=True,
        timeout=PATIENCE,
        env={**os.environ, **(env or {})},
        cwd=cwd,
    )
    return Ran(ran.returncode, ran.stdout.decode(), ran.stderr.decode())


class Terminal:
    """A program on a terminal of its own: stdin, stdout, stderr, or stderr alone with ``out`` for stdout."""

    def __init__(self, *words: str, env: dict[str, str] | None = None, out: Path | None = None) -> None:
        self.shown = ""
        self._fd, theirs = pty.openpty()
        environ = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS")}
        with contextlib.ExitStack() as stack:
            stdout: Any = theirs if out is None else stack.enter_context(out.open("wb"))
            self.process = subprocess.Popen(
                [*PROGRAM, *words],
                stdin=theirs,
                stdout=stdout,
                stderr=theirs,
                env={**environ, "TERM": "xterm", **(env or {})},
                start_new_session=True,
                preexec_fn=own_terminal,
            )
        os.close(theirs)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._fd)

    def read_until(self, text: str) -> str:
        while text not in self.shown:
            if not self._read():
                raise AssertionError(f"the program ended before it showed {text!r}: {self.shown!r}")
        return self.shown

    def press(self, keys: str) -> None:
        os.write(self._fd, keys.encode())

    def finish(self) -> int:
        while self._read():
            pass
        return self.process.wait(PATIENCE)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._fd], [], [], PATIENCE)
        if not ready:
            raise AssertionError(f"nothing more was shown after {self.shown!r}")
        try:
            chunk = os.read(self._fd, 65536)
        except OSError:
            chunk = b""
        self.shown += chunk.decode("utf-8", "replace")
        return bool(chunk)


def own_terminal() -> None:
    """Make the terminal on stdin the one whose Ctrl-C this process feels."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def without_colours(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "")
