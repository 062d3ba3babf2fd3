"""What is promised against the `mcp` package and checked with every change; `make bench` measures the rest."""

from __future__ import annotations

import pytest

from benchmarks import report, rounds
from benchmarks.child import ROOT
from benchmarks.measurements import REGISTER

pytestmark = pytest.mark.skipif(
    not (ROOT / ".venv-peers" / ".ready").exists(),
    reason="mcp is not installed in .venv-peers; `make test` does it",
)
LESS = rounds.Effort(rounds=0.4, requests=1)
"""Fewer rounds, each of the thousand tools that the promise is about: what a process does once weighs more on fewer."""


@pytest.mark.timeout(180)
def test_registering_tools_costs_the_promised_part_of_what_mcp_takes() -> None:
    outcome = rounds.run(REGISTER, LESS)
    assert outcome.kept, report.block(outcome)
