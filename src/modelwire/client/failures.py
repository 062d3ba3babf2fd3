"""What becomes of a question that a function here failed to answer: words for the caller, the log, and the server.

The server is told that there is no answer, and never what went wrong inside. Where its own failure then repeats those
words (handshake revisions), the caller is told the reason instead. Nothing here is sent.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modelwire.errors import INTERNAL_ERROR, ModelwireError, PeerError, RpcError, ToolError, Unanswered
from modelwire.log import log as _log

USER_REJECTED = -1
"""The code for a message that the user does not want to be written (client/sampling, Error Handling)."""
KEPT = 32
"""How many failures are remembered for the requests that they may have spoilt."""
_OURS = str(Path(__file__).parent.parent)


class WrongAnswer(Unanswered):
    """What a function returned is no answer to the question."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A question that was not answered.

    Attributes:
        who: What to call the function that was to answer.
        method: How it was asked.
        message: What was asked, where the question says it in words.
        error: Why.
    """

    who: str
    method: str
    message: str | None
    error: Exception

    def words(self, name: str | None = None) -> str:
        """Return all of it in one clause, for people on this side.

        Args:
            name: What the server was asked for when it asked.
        """
        asked = self.method if self.message is None else f"{self.method} {self.message!r}"
        return f"{self.who} did not answer {asked}{'' if name is None else f' (of {name!r})'}: {self._why}"

    @property
    def told(self) -> str:
        """What the server is told."""
        if isinstance(self.error, WrongAnswer):
            return "the answer did not fit the question; the client's log says more"
        if isinstance(self.error, Unanswered):
            return "no answer was to be had; the client's log says more"
        return "the client failed to answer; the client's log says more"

    @property
    def _why(self) -> str:
        said = str(self.error)
        if isinstance(self.error, ModelwireError):
            return said
        return f"{type(self.error).__name__}: {said}" if said else type(self.error).__name__

    @property
    def place(self) -> str:
        """Where it was raised outside of this library, for the log; empty where that cannot be told."""
        frames = [f for f in traceback.extract_tb(self.error.__traceback__) if not f.filename.startswith(_OURS)]
        if not frames or isinstance(self.error, ModelwireError):
            return ""
        return f" ({frames[-1].filename}, line {frames[-1].lineno})"


class Failures:
    """The last failures of one client, where questions come as requests."""

    def __init__(self) -> None:
        self.count = 0
        """How many there have been."""
        self._last: deque[tuple[int, Failure]] = deque(maxlen=KEPT)

    def note(self, failure: Failure) -> RpcError:
        """Log a failure and remember it; return what the server is answered."""
        self.count += 1
        self._last.append((self.count, failure))
        _log.error("%s%s", failure.words(), failure.place)
        return RpcError(INTERNAL_ERROR, failure.told)

    def behind(self, said: str, since: int) -> Failure | None:
        """Return the failure because of which a request has failed; None unless that is sure.

        Args:
            said: What the server said of the request, which holds what it was told.
            since: `count` when the request was sent.
        """
        if self.count == since:
            return None
        found = list(self._told(said, since))
        # Requests that run at the same time may each have one; which is whose, nobody says.
        return found[-1] if found and len({failure.words() for failure in found}) == 1 else None

    def _told(self, said: str, since: int) -> Iterator[Failure]:
        return (failure for number, failure in self._last if number > since and failure.told in said)


class Blame:
    """A block in which one request is made: where it failed because of a failure here, that is raised instead.

    Args:
        failures: Those of the client.
        name: What the request is for.
    """

    __slots__ = ("_failures", "_name", "_since")

    def __init__(self, failures: Failures, name: str) -> None:
        self._failures = failures
        self._name = name
        self._since = failures.count

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ToolError | PeerError):
            ours = self._failures.behind(str(error.message), self._since)
            if ours is not None:
                raise unanswered_by(ours, self._name) from ours.error


def unanswered_by(failure: Failure, name: str) -> Unanswered:
    """Return the error for whoever made the request that a question belongs to; to be raised from the reason.

    Args:
        failure: What happened.
        name: What the request was for: the tool, prompt or URI.
    """
    error: Any = failure.error
    if isinstance(error, RpcError) and error.code == USER_REJECTED and failure.method == "sampling/createMessage":
        return Unanswered(
            f"{failure.who} declined {failure.method} (of {name!r}), so that the request cannot go on: "
            "the user declined; 2026-07-28 has no answer for that"
        )
    return Unanswered(failure.words(name))
