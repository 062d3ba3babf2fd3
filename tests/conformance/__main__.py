"""`make conformance-server`: every server scenario of the suite, revision by revision, and what is wrong with which."""

from __future__ import annotations

import sys

from tests.conformance import suite
from tests.conformance.verdicts import Problem, allowances, judge


def main() -> int:
    """Run all of it, say what came of it, and return the exit status."""
    reason = suite.absent()
    if reason is not None:
        sys.exit(reason)
    failures, skips = allowances("expected_failures.txt"), allowances("not_applicable.txt")
    wanted = suite.scenarios()
    problems: list[Problem] = []
    with suite.served() as url:
        for where, names in wanted.items():
            run = [name for name in names if not skips.cover(where, name, "*")]
            found = judge(where, run, suite.run(where, url, run), failures, skips)
            wrong = len({problem.scenario for problem in found})
            left_out = f", {len(names) - len(run)} left out" if len(run) < len(names) else ""
            sys.stdout.write(f"{where}: {len(run) - wrong} of {len(run)} scenarios in order{left_out}\n")
            problems += found
    for problem in problems:
        sys.stdout.write(f"  {problem}\n")
    stale = [f"{lines.file}: nothing fits {line}" for lines in (failures, skips) for line in lines.stale(wanted)]
    sys.stdout.writelines(f"  {line}\n" for line in stale)
    return int(bool(problems or stale))


if __name__ == "__main__":
    sys.exit(main())
