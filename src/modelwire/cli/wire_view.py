"""The wire view: every frame of a connection as one line, for people to read.

    0.012 out → {"jsonrpc":"2.0","id":1,"method":"tools/list"}
    0.015 in  ← {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}

Seconds since the view was made; ``out`` was sent by this program and ``in`` received by it; the arrow points to the
server with →, to the client with ←, on whichever side one looks. Where there are many connections, each line can have
the connection's number, as in ``#3 in  →``. Secrets are masked. Frames themselves are never changed.
"""

from __future__ import annotations

import copy
import os
import sys
import time
from collections.abc import Callable
from typing import Literal, TextIO

from modelwire.cli.masking import masked
from modelwire.cli.output import safe_text
from modelwire.rpc.observer import Direction, Observer

TERMINAL_LIMIT = 240
"""Characters of a frame that a terminal shows; elsewhere frames are whole."""

_RESET = "\x1b[0m"
_DIM = "\x1b[2m"
_COLOURS = {"→": "\x1b[36m", "←": "\x1b[32m"}
_RED = "\x1b[31m"


class WireView(Observer):
    """Prints every frame; give it to ``Client(observers=[...])`` or ``Server(observers=[...])``.

    Args:
        stream: Where to print; stderr by default.
        side: Which side this program is, for the arrows.
        colour: Whether to colour; by default on a terminal, unless the environment has ``NO_COLOR``.
        limit: The most characters of a frame to show, or None for all; by default 240 on a terminal and all elsewhere.
        clock: Tells the time in seconds.
        numbered: Whether to show the numbers of connections, and each that begins.

    Example:
        ```
        async with Client("server.py", observers=[WireView()]) as client:
            await client.list_tools()
        ```
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        side: Literal["client", "server"] = "client",
        colour: bool | None = None,
        limit: int | Literal["auto"] | None = "auto",
        clock: Callable[[], float] = time.monotonic,
        numbered: bool = False,
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        is_terminal = self._stream.isatty()
        self._colour = wants_colour(self._stream) if colour is None else colour
        self._limit = (TERMINAL_LIMIT if is_terminal else None) if limit == "auto" else limit
        self._is_terminal = is_terminal
        self._arrows = {"out": "→", "in": "←"} if side == "client" else {"out": "←", "in": "→"}
        self._clock = clock
        self._started = clock()
        self._numbered = numbered
        self._number = ""

    def connection(self, number: int, peer: str) -> Observer:
        """Return a view that shows the connection's number, where numbers are shown."""
        if not self._numbered:
            return self
        view = copy.copy(self)
        view._number = f"#{number} "
        view._print("new  ", f"a connection with {safe_text(peer)}", _DIM)
        return view

    def frame(self, direction: Direction, frame: bytes) -> None:
        """Print one frame."""
        text = masked(frame).decode("utf-8", "backslashreplace").strip().replace("\r", " ").replace("\n", " ")
        if self._is_terminal:
            text = safe_text(text)
        arrow = self._arrows[direction]
        colour = _RED if '"error":{' in text else _COLOURS[arrow]
        self._print(f"{direction:<3} {arrow}", shortened(text, self._limit), colour)

    def exited(self, exit_code: int) -> None:
        """Print that the server's process ended."""
        self._print("end  ", f"the server's process ended with exit code {exit_code}", _DIM)

    def _print(self, what: str, text: str, colour: str) -> None:
        time_ = f"{self._clock() - self._started:8.3f}"
        what = self._number + what
        if self._colour:
            line = f"{_DIM}{time_}{_RESET} {colour}{what} {text}{_RESET}\n"
        else:
            line = f"{time_} {what} {text}\n"
        self._stream.write(line)
        self._stream.flush()


def shortened(text: str, limit: int | None) -> str:
    """Return the beginning of a text, and how many bytes of it were left out."""
    if limit is None or len(text) <= limit:
        return text
    left_out = len(text[limit:].encode("utf-8", "surrogatepass"))
    return f"{text[:limit]}… (+{left_out} bytes)"


def wants_colour(stream: TextIO) -> bool:
    """Whether to colour what goes to a stream: a terminal that can, and nobody who objects (``NO_COLOR``)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
