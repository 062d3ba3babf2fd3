"""The result of a command on stdout: for people on a terminal, one JSON value otherwise.

Text that comes from a server is shown without control characters, so that it cannot drive the terminal. Nothing here
writes to stderr.
"""

from __future__ import annotations

import json
import sys
from typing import Any

_CONTROLS = [*range(0x20), 0x7F, *range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_SHOWN = {code: f"\\u{code:04x}" for code in _CONTROLS if chr(code) not in "\n\t"}


def safe_text(text: str) -> str:
    """Return text with its control characters spelled out, line ends and tabs excepted.

    Also those that change the direction of text. In JSON the spelling means the same.
    """
    return text.replace("\r\n", "\n").translate(_SHOWN)


class Output:
    """Where a command's result goes.

    Args:
        as_json: Whether JSON was asked for; a stdout that is no terminal gets it anyway.
    """

    def __init__(self, *, as_json: bool) -> None:
        self.is_json = as_json or not sys.stdout.isatty()

    def value(self, value: Any) -> None:
        """Write one JSON value with wire names: on one line, or indented on a terminal."""
        from modelwire.protocol import wire
        from modelwire.protocol.revisions import LATEST

        text = wire.encode(value, LATEST).decode()
        if sys.stdout.isatty():
            text = safe_text(pretty(json.loads(text)))
        self._write(text)

    def text(self, text: str) -> None:
        """Write text for people."""
        self._write(safe_text(text))

    def _write(self, text: str) -> None:
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
        sys.stdout.flush()


def pretty(value: Any) -> str:
    """Return decoded JSON, indented."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def one_line(value: Any) -> str:
    """Return decoded JSON on one line; text as it is."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
