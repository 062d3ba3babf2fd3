"""What is promised against the `mcp` package and checked with every change; `make bench` measures the rest."""

from __future__ import annotations

import pytest

from benchmarks.child import ROOT
from benchmarks.measurements import OURS, PEER, REGISTER, WEB_CALL, WEB_CLIENT, WEB_PROGRESS, Measurement
from tests.bench.least import least_ratio

pytestmark = pytest.mark.skipif(
    not (ROOT / ".venv-peers" / ".ready").exists(),
    reason="mcp is not installed in .venv-peers; `make test` does it",
)


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "measurement", [REGISTER, WEB_CALL, WEB_PROGRESS, WEB_CLIENT], ids=lambda measurement: measurement.name
)
def test_what_is_promised_against_mcp_holds(measurement: Measurement) -> None:
    (at_most,) = [bound.at_most for bound in measurement.bounds if bound.against == PEER]
    ours, theirs = (measurement.contestants[name]() for name in (OURS, PEER))
    try:
        assert least_ratio(ours, theirs, float(at_most), most_rounds=20) <= at_most
    finally:
        ours.close()
        theirs.close()
