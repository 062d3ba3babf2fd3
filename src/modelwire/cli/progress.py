"""The progress of a call, as one line on a terminal that is rewritten. Shows nothing elsewhere."""

from __future__ import annotations

import os
import sys
from types import TracebackType

from modelwire.cli.output import safe_text

_ERASE = "\r\x1b[2K"


class ProgressLine:
    """Shows progress on stderr while its ``with`` block runs.

    Args:
        plain: Write a line of its own for each message, because other lines go to the terminal as well.
        silent: Show nothing, because the frames are shown.
    """

    def __init__(self, *, plain: bool = False, silent: bool = False) -> None:
        self._plain = plain
        self._shows = sys.stderr.isatty() and not silent
        self._is_dirty = False

    def show(self, progress: float, total: float | None, message: str | None) -> None:
        """Show one notification of progress."""
        if not self._shows:
            return
        line = _line(progress, total, message)
        if self._plain:
            sys.stderr.write(f"{line}\n")
        else:
            # Twice as wide as counted, at worst: a line that wraps cannot be erased.
            width = _columns() - 1
            shown = line if line.isascii() else line[: width // 2]
            sys.stderr.write(f"{_ERASE}{shown[:width]}")
            self._is_dirty = True
        sys.stderr.flush()

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_dirty:
            sys.stderr.write(_ERASE)
            sys.stderr.flush()


def _columns() -> int:
    """How wide the terminal is; one that does not say counts as 80."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def _line(progress: float, total: float | None, message: str | None) -> str:
    amount = f"{progress:g}" if not total else f"{progress:g}/{total:g} ({progress / total:.0%})"
    words = safe_text(message or "").replace("\n", " ")
    return f"{amount}  {words}".rstrip()
