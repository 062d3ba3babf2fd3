"""What the conformance suite's checks amount to. It is kinder than we are: it ignores warnings, skips and crashes.

Plain values: nothing here starts anything. A scenario is in order when it has said so itself (at least one check of its
own succeeded), and none of its checks failed, warned, was skipped or turned into a remark, but those named in
`..._expected_failures.txt` and `..._not_applicable.txt`, of which server and client have one each, with a reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
EXTENSIONS = "extensions"
"""Stands for a revision where a scenario belongs to none."""
NOTHING = "nothing-checked"
"""The check that is missing where a scenario has not said anything."""
PROGRAM = "client-program"
"""The check of ours that has failed where a client ended badly."""
_WHOLE_WIRE = ("wire-schema-valid", "wire-schema-harness-error")
"""Checks that succeed for a server that says nothing at all."""
_TOLD = frozenset(
    {
        "incoming-request",
        "incoming-response",
        "incoming-sse-event",
        "outgoing-request",
        "outgoing-response",
        "outgoing-sse-event",
        "outgoing-stream-close",
        "server-info",
        "stream-closed",
    }
)
"""What the suite tells of its own doing."""


@dataclass(frozen=True)
class Problem:
    """A check that is not as it should be. Several may have one id and differ by their names."""

    where: str
    scenario: str
    check: str
    status: str
    why: str = ""
    name: str = ""

    def __str__(self) -> str:
        why = f": {self.why}" if self.why else ""
        return f"{self.where} {self.scenario} {self.check} {self.status}{why}"


@dataclass
class Allowances:
    """The lines of a file that names checks, and which of them were of use."""

    file: str
    lines: list[tuple[str, str, str]]
    used: set[tuple[str, str, str]] = field(default_factory=set[tuple[str, str, str]])

    def cover(self, where: str, scenario: str, *called: str) -> bool:
        """Whether a line names a check, as one of the ways in which it is called."""
        found = [
            line
            for line in self.lines
            if fnmatchcase(where, line[0])
            and fnmatchcase(scenario, line[1])
            and any(fnmatchcase(check, line[2]) for check in called)
        ]
        self.used.update(found)
        return bool(found)

    def stale(self, wheres: Iterable[str]) -> list[str]:
        """Return the lines that nothing fitted, of those that speak of one of these revisions."""
        wanted = [line for line in self.lines if any(fnmatchcase(where, line[0]) for where in wheres)]
        return [" ".join(line) for line in wanted if line not in self.used]


def allowances(file: str, text: str | None = None) -> Allowances:
    """Read one of the files.

    Raises:
        ValueError: A line has another form, or no reason.
    """
    lines: list[tuple[str, str, str]] = []
    for line in (HERE / file).read_text(encoding="utf-8").splitlines() if text is None else text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        named, dashes, reason = line.partition(" -- ")
        words = named.split()
        if not dashes or not reason.strip() or len(words) != 3:
            raise ValueError(f"{file}: write 'WHERE SCENARIO CHECK -- reason', not {line!r}")
        lines.append((words[0], words[1], words[2]))
    return Allowances(file, lines)


def judge(
    where: str,
    wanted: Sequence[str],
    found: Mapping[str, Sequence[Mapping[str, Any]]],
    failures: Allowances,
    skips: Allowances,
) -> list[Problem]:
    """Return what is not as it should be.

    Args:
        where: The revision, or `EXTENSIONS`.
        wanted: The scenarios that should have run.
        found: Their checks, by scenario; one that crashed has none.
        failures: What may fail or warn.
        skips: What may be skipped, or be a mere remark.
    """
    problems: list[Problem] = []
    for scenario in wanted:
        checks = found.get(scenario, ())
        of_it = [_problem(where, scenario, check) for check in checks]
        if not any(check["status"] == "SUCCESS" and check["id"] not in _WHOLE_WIRE for check in checks):
            said = "it crashed, or was not run" if not checks else "none of its own checks succeeded"
            of_it.append(Problem(where, scenario, NOTHING, "MISSING", said))
        problems += [problem for problem in of_it if problem is not None and not _covered(problem, failures, skips)]
    return problems


def _problem(where: str, scenario: str, check: Mapping[str, Any]) -> Problem | None:
    status, name = check["status"], check["id"]
    if status == "SUCCESS" or (status == "INFO" and name in _TOLD):
        return None
    why = check.get("errorMessage") or check.get("description") or ""
    return Problem(where, scenario, name, status, why, check.get("name") or "")


def _covered(problem: Problem, failures: Allowances, skips: Allowances) -> bool:
    allowed = skips if problem.status in ("SKIPPED", "INFO") else failures
    return allowed.cover(problem.where, problem.scenario, problem.check, problem.name)
