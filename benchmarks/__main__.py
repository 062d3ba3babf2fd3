"""``python -m benchmarks``: measures, prints, fails when a promise is not kept. The package's docstring says more."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import benchmarks
from benchmarks import report
from benchmarks.child import BenchError
from benchmarks.measurements import ALL, Measurement
from benchmarks.rounds import Effort, Outcome, run

QUICK = Effort(rounds=0.4, requests=0.3)


def main() -> int:
    """Run what the command line asks for.

    Returns:
        0 when all is well, 1 when a promise is not kept or a contestant fails.
    """
    options = _parser().parse_args()
    chosen = [measurement for measurement in ALL if _is_chosen(measurement, options.only)]
    if options.list:
        for measurement in chosen:
            print(f"{measurement.name:15}{measurement.title}")
        return 0
    if not chosen:
        print(f"Nothing is called {' or '.join(options.only)}; --list shows the names.", file=sys.stderr)
        return 2
    try:
        outcomes = _measure(chosen, QUICK if options.quick else Effort())
    except BenchError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 1
    if options.json is not None:
        report.write_json(options.json, outcomes)
    print(report.summary(outcomes))
    return 0 if all(outcome.kept for outcome in outcomes) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m benchmarks", description=benchmarks.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds and requests")
    parser.add_argument("--only", metavar="NAME", action="append", default=[], help="measure this alone")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write every sample to a file")
    parser.add_argument("--list", action="store_true", help="say what there is to measure")
    return parser


def _is_chosen(measurement: Measurement, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(measurement.name, pattern) for pattern in patterns)


def _measure(chosen: Sequence[Measurement], effort: Effort) -> list[Outcome]:
    print(report.HEAD)
    outcomes: list[Outcome] = []
    for measurement in chosen:
        outcomes.append(run(measurement, effort))
        print(report.block(outcomes[-1]), flush=True)
    return outcomes


if __name__ == "__main__":
    raise SystemExit(main())
