"""Names of what is registered: the nearest one to a misspelt name, and what the specification asks of a tool's.

This file looks nothing up and refuses nothing.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection

from modelwire.log import log as _log

_RECOMMENDED = re.compile(r"[A-Za-z0-9_.\-]{1,128}")
_LONG = 1000
_MANY = 500
"""Comparing costs the product of the lengths, for each that is known."""


def nearest(name: str, known: Collection[str]) -> str | None:
    """Return the known name that may have been meant, or None; also None where it would take long to find."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6) if len(name) <= _LONG and len(known) <= _MANY else []
    return near[0] if near else None


def did_you_mean(name: str, known: Collection[str]) -> str:
    """Return the end of a message about a name that does not exist; empty when none is near."""
    near = nearest(name, known)
    return "" if near is None else f"; did you mean {near!r}?"


def warn_of_tool_name(name: str) -> None:
    """Tell the log of a tool's name that clients may refuse; it is registered all the same.

    "Tool names SHOULD be between 1 and 128 characters in length"; "the following SHOULD be the only allowed characters:
    uppercase and lowercase ASCII letters (A-Z, a-z), digits (0-9), underscore (_), hyphen (-), and dot (.)" (2025-11-25
    and 2026-07-28, server/tools, Tool Names).
    """
    if not _RECOMMENDED.fullmatch(name):
        _log.warning(
            "tool %.200r: some clients refuse names that are not 1 to 128 of the characters A-Z a-z 0-9 _ - .", name
        )
