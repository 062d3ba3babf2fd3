"""What the log says when a user's function fails: its own part of the traceback, and a hint where one helps.

The peer is told nothing of it. This file only writes to the log.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from modelwire.errors import PeerError
from modelwire.log import log as _log

_OURS = str(Path(__file__).parent.parent)


def log_crash(what: str, error: BaseException) -> None:
    """Write a failure to the log, with the traceback from the user's own function on.

    Args:
        what: What failed, such as ``tool 'add' failed``.
        error: Why.
    """
    hint = ""
    if isinstance(error, PeerError):
        hint = " (a PeerError is what a client receives; a handler raises ToolError, NotFound or RpcError)"
    _log.error("%s%s", what, hint, exc_info=(type(error), error, _users_part(error.__traceback__)))


def _users_part(trace: TracebackType | None) -> TracebackType | None:
    """Leave out the frames in which modelwire comes to call the function; later ones of ours are the user's doing."""
    rest = trace
    while rest is not None and rest.tb_frame.f_code.co_filename.startswith(_OURS):
        rest = rest.tb_next
    return rest or trace
