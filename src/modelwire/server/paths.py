"""`safe_join`: a path below a folder, from parts that a client sent.

It reads and opens nothing, and lists nothing: `modelwire.server.files` does.
"""

from __future__ import annotations

import errno
import os
import re
from os import PathLike
from pathlib import Path

from modelwire.errors import NotFound
from modelwire.log import log as _log

MAX_NAME = 255
"""Bytes in one name, as most file systems have it."""
MAX_PATH = 4096
"""Bytes in all parts together."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_DEVICE = re.compile(r"(?:CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(?:COM|LPT)[0-9¹²³])[ .]*(?:\..*)?", re.IGNORECASE)


def safe_join(base: str | PathLike[str], *parts: str | PathLike[str]) -> Path:
    """Join relative parts that somebody else chose to a folder of yours; what comes out is below that folder.

    Refused are absolute parts, ``..`` and ``.``, empty names, control characters, and, on every platform alike,
    what means something on one: backslashes, colons (drives, alternate streams), device names such as ``NUL.txt``,
    names that end in a dot or a space. Symbolic links are followed, and refused where they lead out of the folder.
    Nothing is decoded: a URI template has done that already, once.

    Whether the file exists is not checked. The check holds for the moment of the call: whoever may write below the
    folder can put a link in the file's place before you open it. `Server.add_directory` opens by descriptors and has
    no such moment; use it, or a folder that only you write to, where that matters.

    Args:
        base: The folder; links on the way to it are followed.
        *parts: What the client sent; a part may hold several names, with ``/`` between them.

    Returns:
        The real path, absolute and without links.

    Raises:
        NotFound: The parts lead elsewhere. From a handler of a resource this is "no such resource" to the client; in a
            tool, raise a `ToolError` instead if the model should read it. The message shows what the client sent and
            nothing of your file system.

    Example:
        ```
        @server.resource("docs://{+path}")
        def doc(path: str) -> str:
            return safe_join("docs", path).read_text()
        ```
    """
    written = "/".join(os.fspath(part) for part in parts)
    names = [name for part in parts for name in os.fspath(part).split("/")] or [""]
    reason = next((reason for name in names if (reason := _refusal(name)) is not None), None)
    if reason is None and len(written.encode()) > MAX_PATH:
        reason = f"it is longer than {MAX_PATH} bytes"
    if reason is not None:
        raise NotFound(f"{_shown(written)} is no path here: {reason}")
    root = os.path.realpath(base)
    found = os.path.realpath(os.path.join(root, *names))
    if not is_below(found, root) or _is_circle(found):
        _log.debug("%r is refused: links lead out of %r, or in a circle", written, root)
        raise NotFound(f"there is no {_shown(written)}")  # that there is a link is nobody's business
    return Path(found)


def is_below(path: str, root: str) -> bool:
    """Say whether a real path is that of a folder, or of something in it."""
    return path == root or path.startswith(root if root.endswith(os.sep) else root + os.sep)


def _is_circle(path: str) -> bool:
    """Say whether links lead in a circle; `os.path.realpath` leaves such links as they are."""
    try:
        os.stat(path)
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


def _refusal(name: str) -> str | None:
    """Why a name may not stand in a path that somebody else chose; None when it may."""
    if not name:
        return "a name in it is empty, or it is absolute"
    if name in (".", ".."):
        return f"it holds {name!r}"
    if _CONTROL.search(name) or _SURROGATE.search(name):
        return "it holds characters that no name may hold"
    if "\\" in name or ":" in name:
        return "it holds a backslash or a colon"
    if name[-1] in ". ":
        return "a name in it ends in a dot or a space"
    if _DEVICE.fullmatch(name):
        return "it names a device"
    if len(name.encode()) > MAX_NAME:
        return f"a name in it is longer than {MAX_NAME} bytes"
    return None


def _shown(written: str) -> str:
    return repr(written if len(written) <= 100 else written[:100] + "...")
