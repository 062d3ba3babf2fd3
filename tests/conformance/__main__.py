"""`make conformance`: every scenario of the suite, revision by revision, what is wrong with which, and the sum of it.

``python -m tests.conformance`` runs both halves; ``server`` or ``client`` behind it only that one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import cast

from tests.conformance import client_half, server_half, suite
from tests.conformance.verdicts import allowances, judge

HALVES: dict[suite.Side, Callable[[], AbstractContextManager[suite.Run]]] = {
    "server": server_half.ready,
    "client": client_half.ready,
}


@dataclass
class Tally:
    """What came of it. A scenario counts once for every revision that it ran on."""

    passed: int = 0
    failed: int = 0
    stale: int = 0
    left_out: dict[str, None] = field(default_factory=dict[str, None])

    def __str__(self) -> str:
        stale = f", {self.stale} lines of lists that nothing fits" if self.stale else ""
        names = f": {', '.join(self.left_out)}" if self.left_out else ""
        return f"{self.passed} scenarios passed, {self.failed} failed{stale}, {len(self.left_out)} left out{names}"


def run(side: suite.Side, tally: Tally) -> None:
    """Run one half, say what came of it, and count it."""
    failures, skips = allowances(f"{side}_expected_failures.txt"), allowances(f"{side}_not_applicable.txt")
    wanted = suite.scenarios(side)
    with HALVES[side]() as run:
        for where, names in wanted.items():
            chosen = [name for name in names if not skips.cover(where, name, "*")]
            tally.left_out |= dict.fromkeys(name for name in names if name not in chosen)
            problems = judge(where, chosen, run(where, chosen), failures, skips)
            wrong = len({problem.scenario for problem in problems})
            tally.failed += wrong
            tally.passed += len(chosen) - wrong
            left_out = f", {len(names) - len(chosen)} left out" if len(chosen) < len(names) else ""
            _say(f"{side}, {where}: {len(chosen) - wrong} of {len(chosen)} scenarios in order{left_out}")
            for problem in problems:
                _say(f"  {problem}")
    for lines in (failures, skips):
        for line in lines.stale(wanted):
            tally.stale += 1
            _say(f"  {lines.file}: nothing fits {line}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(sides: list[str]) -> int:
    """Run what is asked for, and return the exit status."""
    if not set(sides) <= set(HALVES):
        sys.exit(f"usage: python -m tests.conformance [{'] ['.join(HALVES)}]")
    reason = suite.absent()
    if reason is not None:
        sys.exit(reason)
    tally = Tally()
    for side in cast("list[suite.Side]", sides) or HALVES:
        run(side, tally)
    _say(str(tally))
    return int(bool(tally.failed or tally.stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
