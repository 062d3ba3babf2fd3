"""What is promised against the `mcp` package and checked with every change; `make bench` measures the rest."""

from __future__ import annotations

import pytest

from benchmarks.child import ROOT
from benchmarks.measurements import OURS, PEER, REGISTER
from tests.bench.least import least_ratio

pytestmark = pytest.mark.skipif(
    not (ROOT / ".venv-peers" / ".ready").exists(),
    reason="mcp is not installed in .venv-peers; `make test` does it",
)


@pytest.mark.timeout(180)
def test_registering_tools_costs_the_promised_part_of_what_mcp_takes() -> None:
    (bound,) = REGISTER.bounds
    ours, theirs = (REGISTER.contestants[name]() for name in (OURS, PEER))
    try:
        assert least_ratio(ours, theirs, float(bound.at_most), most_rounds=20) <= bound.at_most
    finally:
        ours.close()
        theirs.close()
