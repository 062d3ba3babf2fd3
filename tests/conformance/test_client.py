"""Every client scenario of the official conformance suite but authorization's, set on `tests/conformance/client.py`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance import client_half, suite
from tests.conformance.client import DONE, SCENARIOS
from tests.conformance.verdicts import EXTENSIONS, PROGRAM, allowances, judge

pytestmark = pytest.mark.timeout(180)
with_the_suite = pytest.mark.skipif(suite.absent() is not None, reason=str(suite.absent()))
SUCCESS, FAILURE = ({"id": "one", "status": status} for status in ("SUCCESS", "FAILURE"))


@pytest.fixture(scope="module")
def scenarios() -> dict[str, list[str]]:
    return suite.scenarios("client")


def wanted_of(where: str, names: list[str]) -> list[str]:
    skips = allowances("client_not_applicable.txt")
    return [name for name in names if not skips.cover(where, name, "*")]


def problems(where: str, wanted: list[str], **how: Any) -> list[str]:
    found = client_half.run(where, wanted, **how)
    lists = (allowances("client_expected_failures.txt"), allowances("client_not_applicable.txt"))
    return [str(problem) for problem in judge(where, wanted, found, *lists)]


@with_the_suite
@pytest.mark.parametrize("where", ["2025-06-18", "2025-11-25", "2026-07-28", EXTENSIONS])
def test_every_scenario_is_in_order(where: str, scenarios: dict[str, list[str]]) -> None:
    assert problems(where, wanted_of(where, scenarios[where])) == []


@with_the_suite
def test_the_suite_has_the_scenarios_that_we_know_of(scenarios: dict[str, list[str]]) -> None:
    assert {where: len(names) for where, names in scenarios.items()} == {
        "2025-03-26": 2,
        "2025-06-18": 5,
        "2025-11-25": 19,
        "2026-07-28": 33,
        EXTENSIONS: 10,
    }
    wanted = {name for where, names in scenarios.items() for name in wanted_of(where, names)}
    assert wanted == set(SCENARIOS)


@with_the_suite
def test_only_authorization_and_the_loading_of_skills_are_left_out(scenarios: dict[str, list[str]]) -> None:
    left_out = {name for where, names in scenarios.items() for name in names if name not in wanted_of(where, names)}
    assert {name for name in left_out if not name.startswith("auth/")} == {
        f"sep-2640-client-verify-{what}" for what in ("digest", "size", "frontmatter")
    }


# By the suite's own verdict these pass, the one for a client that did nothing, the other for one that crashed.
@with_the_suite
@pytest.mark.parametrize("program", ["true", "false"])
def test_a_client_that_does_nothing_or_crashes_is_in_order_nowhere(program: str) -> None:
    wanted = ["http-standard-headers", "http-invalid-tool-headers"]
    found = problems("2026-07-28", wanted, program=program)
    assert {line.split()[1] for line in found if f" {PROGRAM} FAILURE" in line} == set(wanted)


@pytest.mark.parametrize(
    ("checks", "status", "stdout", "stderr", "fault"),
    [
        ([SUCCESS], 0, DONE, "", None),
        ([SUCCESS], 0, DONE, "a warning", None),
        ([SUCCESS, FAILURE], 1, DONE, "", None),  # a problem, but not this one
        ([SUCCESS], 0, "", "", "did not come to its end"),
        ([SUCCESS, FAILURE], 1, "", "", "did not come to its end"),
        ([SUCCESS], 0, DONE, "Traceback (most recent call last):", "something failed"),
        ([SUCCESS], 1, DONE, "", "not with how the client ended: it timed out"),
    ],
)
def test_how_a_client_ended(
    checks: list[dict[str, Any]], status: int, stdout: str, stderr: str, fault: str | None
) -> None:
    found = client_half.fault(checks, status, "it timed out", stdout, stderr)
    assert (found is None) if fault is None else (fault in str(found))
