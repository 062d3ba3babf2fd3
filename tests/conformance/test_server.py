"""Every server scenario of the official conformance suite, set on `tests/conformance/server.py`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance import server_half, suite
from tests.conformance.verdicts import EXTENSIONS, Allowances, allowances, judge

pytestmark = [
    pytest.mark.skipif(suite.absent() is not None, reason=str(suite.absent())),
    pytest.mark.timeout(180),
]


@pytest.fixture(scope="module")
def scenarios() -> dict[str, list[str]]:
    return suite.scenarios("server")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with server_half.served() as url:
        yield url


@pytest.fixture
def failures() -> Allowances:
    return allowances("server_expected_failures.txt")


@pytest.fixture
def skips() -> Allowances:
    return allowances("server_not_applicable.txt")


@pytest.mark.parametrize("where", [*suite.REVISIONS, EXTENSIONS])
def test_every_scenario_is_in_order(
    where: str, scenarios: dict[str, list[str]], url: str, failures: Allowances, skips: Allowances
) -> None:
    wanted = [name for name in scenarios[where] if not skips.cover(where, name, "*")]
    problems = judge(where, wanted, server_half.run(where, url, wanted), failures, skips)
    assert [str(problem) for problem in problems] == []


def test_the_suite_has_the_scenarios_that_we_know_of(scenarios: dict[str, list[str]]) -> None:
    assert {where: len(names) for where, names in scenarios.items()} == {
        "2025-03-26": 1,
        "2025-06-18": 27,
        "2025-11-25": 33,
        "2026-07-28": 40,
        EXTENSIONS: 13,
    }


@pytest.mark.parametrize("where", ["2025-11-25", "2026-07-28"])
def test_where_no_server_is_no_scenario_is_in_order(
    where: str, scenarios: dict[str, list[str]], failures: Allowances, skips: Allowances
) -> None:
    found = server_half.run(where, f"http://localhost:{server_half.unused_port()}/mcp", scenarios[where])
    problems = judge(where, scenarios[where], found, failures, skips)
    assert {problem.scenario for problem in problems} == set(scenarios[where])
